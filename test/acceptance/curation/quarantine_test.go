package curation

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

const (
	quarantinePath = "/v0.1/x/dev.tollgate/quarantine"
	reason         = "it sends what it reads to another host"
)

// quarantineEntry is an entry as the API and the commands show it.
type quarantineEntry struct {
	ServerName        string
	Version           *string
	Reason, Since, By string
}

// TestQuarantine checks each rule of quarantine on two instances (contract C-20 to C-24).
func TestQuarantine(t *testing.T) {
	checks := []struct {
		name  string
		check func(*testing.T, *site)
	}{
		{"a version", checkQuarantinedVersion},
		{"a server", checkQuarantinedServer},
		{"a server and a version of it", checkQuarantinedTwice},
		{"writes of publishers", checkLockout},
		{"remote URLs", checkFreedRemoteURL},
		{"errors", checkQuarantineErrors},
		{"list", checkQuarantineList},
		{"many publishers", checkManyPublishers},
		{"commands", checkQuarantineCommands},
		{"import", checkImportIntoQuarantine},
	}
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t, "com.example/contested-")
		s := openSite(t, e, "REGISTRY_REVIEW=off")
		for _, c := range checks {
			t.Run(c.name, func(t *testing.T) { c.check(t, s) })
		}
	})
}

// newEntry returns a document whose title and remote contain its name and version, so that a text
// finds it in each read.
func newEntry(name, version string) map[string]any {
	mark := markOf(name, version)
	remote := map[string]any{"type": "streamable-http", "url": "https://" + mark + ".example/mcp"}
	return fixture.WithProperty(titled(name, version, mark), "remotes", []any{remote})
}

// markOf returns the text that only one version has.
func markOf(name, version string) string {
	return strings.NewReplacer("com.example/", "", ".", "-").Replace(name + "-v" + version)
}

// publish publishes versions of a server.
func (s *site) publish(t *testing.T, name string, versions ...string) {
	t.Helper()
	for _, v := range versions {
		s.send(t, s.ada, "POST", "/v0.1/publish", newEntry(name, v)).WantStatus(t, http.StatusOK)
	}
}

// hold puts a version in quarantine, or the whole server for an empty version.
func (s *site) hold(t *testing.T, name, version string) quarantineEntry {
	t.Helper()
	body := map[string]any{"serverName": name, "reason": reason}
	if version != "" {
		body["version"] = version
	}
	var q quarantineEntry
	s.send(t, s.bea, "POST", quarantinePath, body).WantStatus(t, http.StatusOK).Decode(t, &q)
	return q
}

// release releases a version, or the whole server for an empty version, by the other instance.
func (s *site) release(t *testing.T, by *fixture.Person, name, version string) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, "DELETE",
		s.other.API+quarantinePath+"?serverName="+url.QueryEscape(name)+"&version="+url.QueryEscape(version), nil,
		by.Bearer()...)
}

// states returns the state of each version of a server, deleted ones too.
func (s *site) states(t *testing.T, instance *fixture.Service, name string) map[string]fixture.VersionState {
	t.Helper()
	var list fixture.ServerPage
	apiclient.Call(t, "GET", instance.API+"/v0.1"+fixture.ServerPath(name)+"/versions?include_deleted=true", nil).
		WantStatus(t, http.StatusOK).Decode(t, &list)
	states := map[string]fixture.VersionState{}
	for _, r := range list.Servers {
		states[r.Server["version"].(string)] = r.Official()
	}
	return states
}

// readsOfQuarantine are the paths of reads that show no version in quarantine.
func readsOfQuarantine(name, version string) []string {
	search := name[strings.Index(name, "/")+1:]
	return []string{
		"/v0.1/servers?limit=100&search=" + search, "/v0/servers?limit=100&version=latest&search=" + search,
		"/v0.1/servers?search=" + markOf(name, version),
		"/v0.1/servers?version=" + version + "&search=" + search, "/v0.1" + fixture.ServerPath(name) + "/versions",
		"/v0.1" + fixture.ServerPath(name, "latest"), "/v0" + fixture.ServerPath(name, version),
		"/registries/all/install?client=claude&server=" + name,
		"/registries/all/install?client=claude&server=" + name + "&version=" + version,
	}
}

// wantHeld waits until a version is hidden on each instance, and checks each read of both.
func (s *site) wantHeld(t *testing.T, name, version string) {
	t.Helper()
	mark := markOf(name, version)
	for _, instance := range []*fixture.Service{s.one, s.other} {
		for _, path := range readsOfQuarantine(name, version) {
			await.Until(t, path+" without "+mark, func() bool {
				return !strings.Contains(string(apiclient.Call(t, "GET", instance.API+path, nil).Body), mark)
			})
		}
		apiclient.Call(t, "GET", instance.API+"/v0.1"+fixture.ServerPath(name, version), nil).WantStatus(t,
			http.StatusNotFound)
		if state := s.states(t, instance, name)[version]; state.Status != "deleted" || state.Message() != reason {
			t.Errorf("%s %s with include_deleted is %+v, want it deleted with the reason", name, version, state)
		}
		s.wantDenied(t, instance, mark)
	}
}

// wantDenied waits until an instance denies the remote of a version in its allow lists.
func (s *site) wantDenied(t *testing.T, instance *fixture.Service, mark string) {
	t.Helper()
	await.Until(t, "the allow list denies "+mark, func() bool {
		var list struct {
			Allowed []struct{ ServerURL string } `json:"allowedMcpServers"`
			Denied  []struct{ ServerURL string } `json:"deniedMcpServers"`
		}
		apiclient.Call(t, "GET", instance.API+"/registries/all/allowlist/claude.json", nil).WantStatus(t,
			http.StatusOK).Decode(t, &list)
		has := func(e struct{ ServerURL string }) bool { return strings.Contains(e.ServerURL, mark) }
		return slices.ContainsFunc(list.Denied, has) && !slices.ContainsFunc(list.Allowed, has)
	})
	await.Until(t, "kiro's allow list is without "+mark, func() bool {
		return !strings.Contains(
			string(apiclient.Call(t, "GET", instance.API+"/registries/all/allowlist/kiro.json", nil).Body), mark)
	})
}

// wantRestored waits until each instance has a version in the state that it had before, with a
// later update.
func (s *site) wantRestored(t *testing.T, name, version string, before fixture.VersionState) {
	t.Helper()
	for _, instance := range []*fixture.Service{s.one, s.other} {
		await.Until(t, fmt.Sprintf("%s %s is restored as %+v", name, version, before), func() bool {
			after := s.states(t, instance, name)[version]
			return after.Status == before.Status && after.Message() == before.Message() &&
				after.StatusChangedAt == before.StatusChangedAt &&
				after.PublishedAt == before.PublishedAt && after.IsLatest == before.IsLatest &&
				after.UpdatedAt > before.UpdatedAt
		})
	}
}

func checkQuarantinedVersion(t *testing.T, s *site) {
	const name = "com.example/one-version"
	s.publish(t, name, "1.0.0", "2.0.0")
	before := s.states(t, s.one, name)
	q := s.hold(t, name, "2.0.0")
	_, reviewer := fixture.ReadSession(t, s.one, s.bea)
	if q.ServerName != name || q.Version == nil || *q.Version != "2.0.0" || q.Reason != reason || q.By != reviewer ||
		q.Since == "" {
		t.Errorf("the entry is %+v", q)
	}
	s.wantHeld(t, name, "2.0.0")
	s.wantShown(t, name, "latest", markOf(name, "1.0.0"))
	if state := s.states(t, s.other, name)["1.0.0"]; !state.IsLatest || state.Status != "active" {
		t.Errorf("the other version is %+v, want it to be the latest", state)
	}
	s.release(t, s.bea, name, "2.0.0").WantStatus(t, http.StatusNoContent)
	for _, version := range []string{"1.0.0", "2.0.0"} {
		s.wantRestored(t, name, version, before[version])
	}
	s.wantShown(t, name, "latest", markOf(name, "2.0.0"))
}

func checkQuarantinedServer(t *testing.T, s *site) {
	const name = "com.example/whole-server"
	s.publish(t, name, "1.0.0", "2.0.0", "3.0.0")
	s.send(t, s.ada, "PATCH", "/v0.1"+fixture.ServerPath(name, "2.0.0")+"/status",
		`{"status":"deprecated","statusMessage":"use 3"}`).WantStatus(t, http.StatusOK)
	s.send(t, s.ada, "DELETE", "/v0.1"+fixture.ServerPath(name, "1.0.0"), nil).WantStatus(t, http.StatusOK)
	before := s.states(t, s.one, name)
	if q := s.hold(t, name, ""); q.Version != nil {
		t.Errorf("the entry is %+v, want no version", q)
	}
	for _, version := range []string{"2.0.0", "3.0.0"} {
		s.wantHeld(t, name, version)
	}
	apiclient.Call(t, "GET", s.other.API+"/v0.1"+fixture.ServerPath(name)+"/versions", nil).WantStatus(t,
		http.StatusNotFound)
	apiclient.Call(t, "GET", s.other.API+"/v0.1"+fixture.ServerPath(name, "latest"), nil).WantStatus(t,
		http.StatusNotFound)
	s.release(t, s.bea, name, "").WantStatus(t, http.StatusNoContent)
	for version, state := range before {
		s.wantRestored(t, name, version, state)
	}
	if state := s.states(t, s.other, name)["2.0.0"]; state.Status != "deprecated" || state.Message() != "use 3" {
		t.Errorf("a deprecated version is released as %+v", state)
	}
}

// checkQuarantinedTwice releases a server of which one version is in quarantine of its own.
func checkQuarantinedTwice(t *testing.T, s *site) {
	const name = "com.example/held-twice"
	s.publish(t, name, "1.0.0", "2.0.0")
	before := s.states(t, s.one, name)
	s.hold(t, name, "2.0.0")
	s.hold(t, name, "")
	s.send(t, s.bea, "POST", quarantinePath, map[string]any{"serverName": name, "version": "2.0.0", "reason": "again"}).
		WantStatus(t, http.StatusConflict)
	s.hold(t, name, "1.0.0")
	s.release(t, s.bea, name, "").WantStatus(t, http.StatusNoContent)
	s.wantHeld(t, name, "1.0.0")
	s.wantHeld(t, name, "2.0.0")
	for _, version := range []string{"1.0.0", "2.0.0"} {
		s.release(t, s.bea, name, version).WantStatus(t, http.StatusNoContent)
	}
	for version, state := range before {
		s.wantRestored(t, name, version, state)
	}
}

// checkLockout tries each write of a publisher (contract C-22).
func checkLockout(t *testing.T, s *site) {
	const name = "com.example/locked"
	s.publish(t, name, "1.0.0", "2.0.0")
	writes := func(version string) []apiclient.Response {
		path := "/v0.1" + fixture.ServerPath(name, version)
		return []apiclient.Response{
			s.send(t, s.ada, "POST", "/v0.1/publish", newEntry(name, version)),
			s.send(t, s.ada, "PUT", path, newEntry(name, version)),
			// breaks a rule too
			s.send(t, s.ada, "PUT", path, `{"name":"com.example/locked","version":"`+version+`","description":""}`),
			s.send(t, s.ada, "PATCH", path+"/status", `{"status":"active"}`),
			s.send(t, s.ada, "DELETE", path, nil),
		}
	}
	wantRefused := func(a apiclient.Response, what string) {
		t.Helper()
		if got := apiclient.WantRegistryError(t,
			a.WantStatus(t, http.StatusForbidden)); got != what+" is in quarantine: "+reason {
			t.Errorf("the error is %q", got)
		}
	}
	s.hold(t, name, "1.0.0")
	for _, a := range writes("1.0.0") {
		wantRefused(a, name+" 1.0.0")
	}
	s.publish(t, name, "3.0.0")
	var changed struct{ UpdatedCount int }
	s.send(t, s.ada, "PATCH", "/v0.1"+fixture.ServerPath(name)+"/status", `{"status":"deprecated"}`).WantStatus(t,
		http.StatusOK).Decode(t, &changed)
	if changed.UpdatedCount != 2 {
		t.Errorf("%d versions changed, want the two that are not in quarantine", changed.UpdatedCount)
	}
	s.wantHeld(t, name, "1.0.0")
	s.hold(t, name, "")
	for _, version := range []string{"2.0.0", "4.0.0"} {
		for _, a := range writes(version) {
			wantRefused(a, name)
		}
	}
	wantRefused(s.send(t, s.ada, "PATCH", "/v0.1"+fixture.ServerPath(name)+"/status", `{"status":"active"}`), name)
	if a := s.send(t, s.eve, "POST", "/v0.1/publish", newEntry(name, "4.0.0")).WantStatus(t,
		http.StatusForbidden); strings.Contains(string(a.Body), reason) {
		t.Errorf("a person without a grant gets the reason: %s", a.Body)
	}
	s.release(t, s.bea, name, "").WantStatus(t, http.StatusNoContent)
	s.release(t, s.bea, name, "1.0.0").WantStatus(t, http.StatusNoContent)
	for i, a := range writes("2.0.0") {
		if want := []int{409, 200, 422, 200, 200}[i]; a.Status != want {
			t.Errorf("write %d after the release: status %d, want %d: %s", i, a.Status, want, a.Body)
		}
	}
}

// checkFreedRemoteURL releases a version whose remote URL another server has now.
func checkFreedRemoteURL(t *testing.T, s *site) {
	const name, thief = "com.example/robbed", "com.example/robber"
	s.publish(t, name, "1.0.0")
	s.hold(t, name, "")
	s.send(t, s.ada, "POST", "/v0.1/publish",
		fixture.WithProperty(newEntry(thief, "1.0.0"), "remotes", newEntry(name, "1.0.0")["remotes"])).WantStatus(t,
		http.StatusOK)
	if a := s.release(t, s.bea, name, "").WantStatus(t,
		http.StatusConflict); !strings.Contains(apiclient.WantRegistryError(t, a),
		"https://"+markOf(name, "1.0.0")+".example/mcp") {
		t.Errorf("the error is %s, want the URL in it", a.Body)
	}
	if state := s.states(t, s.one, name)["1.0.0"]; state.Status != "deleted" || state.Message() != reason {
		t.Errorf("after a refused release it is %+v", state)
	}
	s.hold(t, thief, "")
	s.release(t, s.bea, name, "").WantStatus(t, http.StatusNoContent)
	s.wantShown(t, name, "latest", markOf(name, "1.0.0"))
	s.release(t, s.bea, thief, "").WantStatus(t, http.StatusConflict)
}

func checkQuarantineErrors(t *testing.T, s *site) {
	const name = "com.example/wrong-requests"
	s.publish(t, name, "1.0.0")
	low := *s.bea
	low.Device = map[string]string{
		"userAgent": "curl/8.0", "screenResolution": "1x1", "timezone": "UTC", "language": "en",
	}
	low.DeviceToken = ""
	low.Login(t, s.one)
	good := `{"serverName":"` + name + `","reason":"x"}`
	for _, c := range []struct {
		label  string
		by     *fixture.Person // nil for no token
		body   string
		status int
		words  string
	}{
		{"no token", nil, good, 401, ""},
		{"no token and no object", nil, `[]`, 401, ""},
		{"no object", s.eve, `[]`, 400, "object"},
		{"empty", s.bea, ``, 400, "object"},
		{"no name", s.bea, `{"reason":"x"}`, 400, "serverName"},
		{"wrong type", s.eve, `{"serverName":"` + name + `","version":1}`, 400, "version"},
		{"empty version", s.bea, `{"serverName":"` + name + `","version":"","reason":"x"}`, 400, "version"},
		{"no grant", s.eve, `{"serverName":"` + name + `"}`, 403, name},
		{"other grants", s.bea, `{"serverName":"com.examples/a","reason":"x"}`, 403, "com.examples/a"},
		{"no trust", &low, `{"serverName":"` + name + `"}`, 403, ""},
		{"no reason", s.bea, `{"serverName":"` + name + `"}`, 400, "reason"},
		{"blank reason", s.bea, `{"serverName":"com.example/unknown","reason":" \n"}`, 400, "reason"},
		{
			"long reason", s.bea, `{"serverName":"` + name + `","reason":"` + strings.Repeat("ü", 501) + `"}`,
			400, "reason",
		},
		{"unknown server", s.bea, `{"serverName":"com.example/unknown","reason":"x"}`, 404, "server not found"},
		{"no name of a server", s.bea, `{"serverName":"unknown","reason":"x"}`, 404, "server not found"},
		{
			"unknown version", s.bea, `{"serverName":"` + name + `","version":"9.0.0","reason":"x"}`, 404,
			"version not found",
		},
		{"too large", s.bea, `{"reason":"` + strings.Repeat("x", 2<<20) + `"}`, 413, ""},
	} {
		var header []string
		if c.by != nil {
			header = c.by.Bearer()
		}
		a := apiclient.Call(t, "POST", s.one.API+quarantinePath, c.body, header...)
		if a.Status != c.status || !strings.Contains(apiclient.WantRegistryError(t, a), c.words) {
			t.Errorf("%s: status %d %s, want %d and %q", c.label, a.Status, a.Body, c.status, c.words)
		}
	}
	apiclient.Call(t, "POST", s.one.API+quarantinePath, "x", append(s.bea.Bearer(), "Content-Type", "text/plain")...).
		WantStatus(t, http.StatusUnsupportedMediaType)
	apiclient.Call(t, "DELETE", s.one.API+quarantinePath+"?serverName="+name, nil).WantStatus(t,
		http.StatusUnauthorized)
	s.release(t, s.eve, name, "").WantStatus(t, http.StatusForbidden)
	s.release(t, &low, name, "").WantStatus(t, http.StatusForbidden)
	for _, query := range []string{
		"", "?serverName=", "?version=1.0.0", "?serverName=%00", "?serverName=a&version=%FF",
	} {
		s.send(t, s.bea, "DELETE", quarantinePath+query, nil).WantStatus(t, http.StatusBadRequest)
	}
	for _, version := range []string{"", "1.0.0", "9.0.0"} {
		s.release(t, s.bea, name, version).WantStatus(t, http.StatusNotFound)
	}
	s.hold(t, name, "1.0.0")
	if a := s.send(t, s.bea, "POST", quarantinePath, `{"serverName":"`+name+`","version":"1.0.0","reason":"x"}`).
		WantStatus(t, http.StatusConflict); !strings.Contains(string(a.Body), "in quarantine already") {
		t.Errorf("the error is %s", a.Body)
	}
	s.release(t, s.bea, name, "").WantStatus(t, http.StatusNotFound)
	s.release(t, s.bea, name, "1.0.0").WantStatus(t, http.StatusNoContent)
	s.release(t, s.bea, name, "1.0.0").WantStatus(t, http.StatusNotFound)
}

// listHeld reads everything in quarantine that a person sees, two entries at a time.
func (s *site) listHeld(t *testing.T, by *fixture.Person) (names []string) {
	t.Helper()
	for cursor := ""; ; {
		var page struct {
			Quarantined []quarantineEntry
			Metadata    struct {
				NextCursor string
				Count      int
			}
		}
		apiclient.Call(t, "GET", s.other.API+quarantinePath+"?limit=2&cursor="+cursor, nil, by.Bearer()...).
			WantStatus(t, http.StatusOK).Decode(t, &page)
		if page.Metadata.Count != len(page.Quarantined) || len(page.Quarantined) > 2 {
			t.Fatalf("%d entries, count %d", len(page.Quarantined), page.Metadata.Count)
		}
		for _, q := range page.Quarantined {
			version := ""
			if q.Version != nil {
				version = " " + *q.Version
			}
			names = append(names, q.ServerName+version)
		}
		if cursor = page.Metadata.NextCursor; cursor == "" {
			return names
		}
	}
}

func checkQuarantineList(t *testing.T, s *site) {
	s.publish(t, "com.example/listed", "1.0.0", "2.0.0")
	s.send(t, s.ada, "POST", "/v0.1/publish", newEntry("com.examples/listed", "1.0.0")).WantStatus(t, http.StatusOK)
	for _, version := range []string{"2.0.0", "", "1.0.0"} {
		s.hold(t, "com.example/listed", version)
	}
	s.send(t, s.cem, "POST", "/v0/x/dev.tollgate/quarantine",
		`{"serverName":"com.examples/listed","version":null,"reason":"x"}`).WantStatus(t, http.StatusOK)
	inside := []string{"com.example/listed", "com.example/listed 1.0.0", "com.example/listed 2.0.0"}
	for by, want := range map[*fixture.Person][]string{
		s.bea: inside, s.cem: append(slices.Clone(inside), "com.examples/listed"),
	} {
		got := slices.DeleteFunc(s.listHeld(t, by), func(name string) bool {
			return !strings.Contains(name, "/listed")
		})
		if !slices.Equal(got, want) {
			t.Errorf("%s sees %v, want %v", by.Email, got, want)
		}
	}
	s.send(t, s.eve, "GET", quarantinePath, nil).WantStatus(t, http.StatusForbidden)
	apiclient.Call(t, "GET", s.one.API+quarantinePath, nil).WantStatus(t, http.StatusUnauthorized)
	var servers fixture.ServerPage
	apiclient.Call(t, "GET", s.one.API+"/v0.1/servers?limit=1", nil).Decode(t, &servers)
	for query, word := range map[string]string{
		"limit=0": "limit", "limit=101": "limit", "limit=x": "limit", "cursor=x": "cursor",
		"cursor=" + servers.Next(): "cursor",
	} {
		if a := s.send(t, s.bea, "GET", quarantinePath+"?"+query, nil).WantStatus(t,
			http.StatusBadRequest); !strings.Contains(apiclient.WantRegistryError(t, a), word) {
			t.Errorf("%s: %s, want an error that names %s", query, a.Body, word)
		}
	}
	for _, version := range []string{"2.0.0", "", "1.0.0"} {
		s.release(t, s.bea, "com.example/listed", version).WantStatus(t, http.StatusNoContent)
	}
	s.release(t, s.bea, "com.examples/listed", "").WantStatus(t, http.StatusForbidden)
	s.release(t, s.cem, "com.examples/listed", "").WantStatus(t, http.StatusNoContent)
}

// checkManyPublishers puts a server in quarantine while 20 publishers change it on two instances.
// Each change is before the quarantine or refused by it: no change shows anything, and the release
// restores what each left.
func checkManyPublishers(t *testing.T, s *site) {
	for round := range 5 {
		name := fmt.Sprintf("com.example/contested-%d", round)
		s.publish(t, name, "1.0.0")
		answers := fixture.CallInParallel(t, 21, func(i int) (apiclient.Response, error) {
			instance := []*fixture.Service{s.one, s.other}[i%2]
			switch {
			case i == 10:
				return apiclient.TryCall("POST", instance.API+quarantinePath, map[string]any{
					"serverName": name, "reason": reason,
				}, s.bea.Bearer()...)
			case i%4 < 2:
				return apiclient.TryCall("POST", instance.API+"/v0.1/publish", newEntry(name, fmt.Sprintf("2.%d.0", i)),
					s.ada.Bearer()...)
			}
			status := fmt.Sprintf(`{"status":"deprecated","statusMessage":"%d"}`, i)
			return apiclient.TryCall("PATCH", instance.API+"/v0.1"+fixture.ServerPath(name, "1.0.0")+"/status", status,
				s.ada.Bearer()...)
		})
		published := []string{"1.0.0"}
		for i, a := range answers {
			switch {
			case i == 10:
				a.WantStatus(t, http.StatusOK)
			case a.Status == http.StatusOK && i%4 < 2:
				published = append(published, fmt.Sprintf("2.%d.0", i))
			case a.Status != http.StatusOK &&
				(a.Status != http.StatusForbidden || !strings.Contains(string(a.Body), reason)):
				t.Errorf("change %d: status %d: %s", i, a.Status, a.Body)
			}
		}
		for _, instance := range []*fixture.Service{s.one, s.other} {
			await.Until(t, name+" is hidden", func() bool {
				states := s.states(t, instance, name)
				for _, state := range states {
					if state.Status != "deleted" || state.Message() != reason {
						return false
					}
				}
				return len(states) == len(published)
			})
		}
		s.release(t, s.bea, name, "").WantStatus(t, http.StatusNoContent)
		states, latest := s.states(t, s.other, name), 0
		for _, version := range published {
			if states[version].Status == "deleted" || states[version].Status == "" ||
				version != "1.0.0" && states[version].Status != "active" {
				t.Errorf("after the release %s is %+v", version, states[version])
			}
			if states[version].IsLatest {
				latest++
			}
		}
		if latest != 1 {
			t.Errorf("after the release %d versions are the latest", latest)
		}
	}
}

// checkQuarantineCommands checks that what commands change is seen by the instances. What they print is
// tested in cmd/tollgate/operator.
func checkQuarantineCommands(t *testing.T, s *site) {
	const name = "com.example/by-command"
	s.publish(t, name, "1.0.0", "2.0.0")
	before := s.states(t, s.one, name)
	s.e.RunCommand(t, "", "registry", "quarantine", name, "--version", "2.0.0", "--reason", reason)
	s.wantHeld(t, name, "2.0.0")
	s.hold(t, name, "")
	if list := s.e.RunCommand(t, "", "registry", "quarantine", "--list"); !strings.Contains(list, "bea@example.com") {
		t.Errorf("the list does not have the person: %s", list)
	}
	s.e.RunCommand(t, "", "registry", "release", name)
	s.e.RunCommand(t, "", "registry", "release", name, "--version", "2.0.0")
	for version, state := range before {
		s.wantRestored(t, name, version, state)
	}
}

// checkImportIntoQuarantine imports what is in quarantine: it is refused with the reason (contract
// C-22).
func checkImportIntoQuarantine(t *testing.T, s *site) {
	const name = "com.example/imported"
	list := `{"servers":[{"server":{"name":"` + name + `","description":"Forecasts","version":"1.0.0"}},
		{"server":{"name":"` + name + `","description":"Forecasts","version":"2.0.0"}}]}`
	s.publish(t, name, "1.0.0")
	for _, c := range []struct {
		version              string // that is in quarantine
		code, taken, refused int
	}{{"", 1, 0, 2}, {"1.0.0", 0, 1, 1}} {
		s.hold(t, name, c.version)
		var result struct {
			Taken, Refused int
			Records        []struct{ Reason string }
		}
		stdout, _, code := s.e.TryCommand(t, list, "registry", "import", "--output", "json", "-")
		if fixture.DecodeJSON(t, stdout, &result); code != c.code || result.Taken != c.taken || result.Refused != c.refused ||
			!strings.Contains(result.Records[0].Reason, strings.TrimSpace(name+" "+c.version)+" is in quarantine: "+reason) {
			t.Errorf("%q: exit %d, %+v", c.version, code, result)
		}
		s.wantHeld(t, name, "1.0.0")
		if c.version == "" {
			s.release(t, s.bea, name, "").WantStatus(t, http.StatusNoContent)
		}
	}
}

// TestQuarantineAndReview approves what waits for review while it is in quarantine: that is refused
// until it is released, and rejecting stays possible (contract C-22).
func TestQuarantineAndReview(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := openSite(t, e)
		const name = "com.example/waiting"
		first := s.submit(t, s.ada, newEntry(name, "1.0.0"))
		// not listed
		s.send(t, s.bea, "POST", quarantinePath, `{"serverName":"`+name+`","reason":"x"}`).WantStatus(t,
			http.StatusNotFound)
		s.approve(t, s.bea, first)
		replacement := pendingID(t,
			s.send(t, s.ada, "PUT", "/v0.1"+fixture.ServerPath(name, "1.0.0"),
				fixture.WithProperty(newEntry(name, "1.0.0"), "title", "replaced")))
		next := s.submit(t, s.ada, newEntry(name, "2.0.0"))
		for _, version := range []string{"1.0.0", ""} {
			s.hold(t, name, version)
			what := strings.TrimSpace(name + " " + version)
			want := what + " is in quarantine: " + reason + "; release it first"
			if got := apiclient.WantRegistryError(t,
				s.decide(t, s.bea, replacement, "approve", nil).WantStatus(t, http.StatusConflict)); got != want {
				t.Errorf("the error is %q, want %q", got, want)
			}
			if version == "" {
				s.decide(t, s.bea, next, "approve", nil).WantStatus(t, http.StatusConflict)
				if _, stderr, code := s.e.TryCommand(t, "", "review", "approve", "--all-pending"); code != 1 ||
					!strings.Contains(stderr, want) {
					t.Errorf("approving everything: exit %d, %s", code, stderr)
				}
			}
			s.send(t, s.ada, "PUT", "/v0.1"+fixture.ServerPath(name, "1.0.0"), newEntry(name, "1.0.0")).WantStatus(t,
				http.StatusForbidden)
			s.release(t, s.bea, name, version).WantStatus(t, http.StatusNoContent)
		}
		s.approve(t, s.bea, replacement)
		s.wantShown(t, name, "latest", "replaced")
		s.hold(t, name, "")
		s.decide(t, s.bea, next, "reject", `{"comment":"no"}`).WantStatus(t, http.StatusOK)
		s.send(t, s.ada, "POST", "/v0.1/publish", newEntry(name, "2.0.0")).WantStatus(t, http.StatusForbidden)
	})
}
