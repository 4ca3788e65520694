package mirroring

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/upstream"
)

// TestMirrors checks each rule of mirrors on two instances. Each check has names of its own.
func TestMirrors(t *testing.T) {
	checks := []struct {
		name  string
		check func(*testing.T, *site)
	}{
		{"what comes over", checkFollows},
		{"owners", checkOwners},
		{"the service reads by itself", checkServiceReads},
		{"writes here", checkLocked},
		{"publications that win", checkTakeover},
		{"hostile registries", checkHostile},
		{"removal", checkRemove},
		{"one reads at a time", checkOneReads},
		{"a command that is killed", checkKilled},
		{"events", checkEvents},
		{"a mirror of Tollgate", checkTollgate},
		{"bad input", checkBadInput},
	}
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t, `"mirror":"won"`, `"action":"mirror_run"`)
		t.Parallel()
		s := openSite(t, e)
		for _, c := range checks {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.check(t, s)
			})
		}
	})
}

func checkFollows(t *testing.T, s *site) {
	up := upstream.Start(t, records("follow", 5)...)
	up.Put(upstream.Record{Document: upstream.Document("com.example.other/s", "1.0.0", "Not taken")})
	s.add(t, "follow", up, "--include", "com.example.follow/*")
	s.sync(t, "follow")
	s.wantListed(t, "example.follow", linesOf("follow", 5, "follow")...)
	s.wantListed(t, "example.other")
	list, err := parsePage(apiclient.Call(t, "GET", s.one.API+"/v0.1/servers?limit=1&search=example.follow", nil))
	must.Succeed(t, err)
	meta := list.Servers[0].Meta
	at, err := time.Parse(time.RFC3339, meta.Origin.FetchedAt)
	if meta.Origin.URL != up.URL || err != nil || time.Since(at).Abs() > time.Minute ||
		meta.Official.PublishedAt != "2026-01-02T03:04:05.000000Z" || !meta.Official.IsLatest {
		t.Errorf("the first version has %+v, origin %+v", meta.Official, meta.Origin)
	}
	if state := s.state(t,
		"follow"); state.State != "ok" || state.Servers != 5 || state.LastSuccess == nil || state.FailingSince != nil ||
		state.Reason != "" {
		t.Errorf("mirror list has %+v", state)
	}
	for _, at := range []*fixture.Service{s.one, s.other} {
		await.Until(t, "the metrics show the mirror", func() bool {
			return at.Metric("tollgate_mirror_servers", "mirror", "follow") == 5 &&
				at.Metric("tollgate_mirror_last_success_timestamp_seconds", "mirror", "follow") > 1e9
		})
	}

	rest := linesOf("follow", 5, "follow")[3:]
	now := time.Now()
	up.Put(
		upstream.Record{
			Document: upstream.Document(serverOf("follow", 0), "2.0.0", "Newer"), PublishedAt: now, UpdatedAt: now,
		},
		upstream.Record{
			Document: upstream.Document(serverOf("follow", 1), "1.0.0", "Another document"), UpdatedAt: now,
		},
		upstream.Record{
			Document: upstream.Document(serverOf("follow", 2), "1.0.0", "Forecasts"), Status: "deprecated",
			Message: "use another one", UpdatedAt: now,
		},
	)
	if got := s.sync(t, "follow"); got != (summary{Records: 3, Servers: 5, Added: 1, Replaced: 1, Status: 1}) {
		t.Errorf("the second sync: %+v", got)
	}
	s.wantListed(t, "example.follow", serverOf("follow", 0)+"@1.0.0 active of follow",
		serverOf("follow", 0)+"@2.0.0 active of follow",
		serverOf("follow", 1)+"@1.0.0 active of follow", serverOf("follow", 2)+"@1.0.0 deprecated of follow",
		rest[0], rest[1])
	wantContains(t,
		string(apiclient.Call(t, "GET", s.other.API+"/v0.1"+fixture.ServerPath(serverOf("follow", 1), "latest"),
			nil).Body), "Another document")
	wantContains(t,
		string(apiclient.Call(t, "GET", s.other.API+"/v0.1"+fixture.ServerPath(serverOf("follow", 2), "latest"),
			nil).Body), `"statusMessage":"use another one"`)

	up.Put(upstream.Record{
		Document: upstream.Document(serverOf("follow", 1), "1.0.0", "Another document"), Status: "deleted",
		UpdatedAt: time.Now(),
	})
	up.Forget(serverOf("follow", 2))
	if got := s.sync(t, "follow", "--full"); got.Status != 2 || got.Servers != 3 || !got.Full {
		t.Errorf("the third sync: %+v", got)
	}
	s.wantListed(t, "example.follow", serverOf("follow", 0)+"@1.0.0 active of follow",
		serverOf("follow", 0)+"@2.0.0 active of follow",
		serverOf("follow", 1)+"@1.0.0 deleted of follow", serverOf("follow", 2)+"@1.0.0 deleted of follow",
		rest[0], rest[1])
}

// checkOwners checks that nobody answers for a server here because another registry says so, and that who is set here stays.
func checkOwners(t *testing.T, s *site) {
	up := upstream.Start(t)
	put := func(version string, at time.Time) {
		for i := range 2 {
			up.Put(upstream.Record{Document: upstream.Document(serverOf("owners", i), version, "Forecasts"), UpdatedAt: at, Meta: `{
				"dev.tollgate/owner":{"owner":"Team Evil","contact":"evil@example.com"}, "io.modelcontextprotocol.registry/official":{
				"status":"active","publishedAt":"` + at.Format(time.RFC3339) + `","updatedAt":"` + at.Format(time.RFC3339) + `","isLatest":true}}`})
		}
	}
	owner := func(i int) string {
		return "/v0.1/x/dev.tollgate/servers/" + strings.ReplaceAll(serverOf("owners", i), "/", "%2F") + "/owner"
	}
	want := func(team string, i int) {
		t.Helper()
		got := struct{ Owner, Contact string }{Owner: "?"}
		if apiclient.Call(t, "GET", s.one.API+owner(i), nil).WantStatus(t, 200).Decode(t, &got); got.Owner != team || got.Contact != "" {
			t.Errorf("for server %d answers %+v, want %q", i, got, team)
		}
	}
	put("1.0.0", time.Now().Add(-time.Hour))
	s.add(t, "owners", up)
	s.sync(t, "owners")
	s.wantListed(t, "example.owners", linesOf("owners", 2, "owners")...)
	want("", 0)
	s.send(t, s.ada, "PUT", owner(0), map[string]string{"owner": "Team Here"}).WantStatus(t, 200)
	put("2.0.0", time.Now())
	if got := s.sync(t, "owners"); got.Added != 2 {
		t.Errorf("the second sync: %+v", got)
	}
	want("Team Here", 0)
	want("", 1)
}

// checkServiceReads checks that an instance reads a new mirror without a command.
func checkServiceReads(t *testing.T, s *site) {
	up := upstream.Start(t, records("service", 2)...)
	s.add(t, "service", up)
	s.wantListed(t, "example.service", linesOf("service", 2, "service")...)
	await.Until(t, "the metrics count the read", func() bool {
		return s.one.Metric("tollgate_mirror_reads_total", "outcome", "succeeded")+
			s.other.Metric("tollgate_mirror_reads_total", "outcome", "succeeded") > 0
	})
}

func checkLocked(t *testing.T, s *site) {
	up := upstream.Start(t, records("locked", 1)...)
	s.add(t, "locked", up)
	s.sync(t, "locked")
	name := serverOf("locked", 0)
	s.wantListed(t, "example.locked", linesOf("locked", 1, "locked")...)
	for what, a := range map[string]apiclient.Response{
		"publish": s.send(t, s.ada, "POST", "/v0.1/publish", fixture.NewServerDocument(name, "2.0.0")),
		"an invalid publish": s.send(t, s.ada, "POST", "/v0.1/publish",
			fixture.WithProperty(fixture.NewServerDocument(name, "2.0.0"), "title", "")),
		"PUT": s.send(t, s.ada, "PUT", "/v0.1"+fixture.ServerPath(name, "1.0.0"),
			fixture.NewServerDocument(name, "1.0.0")),
		"PATCH": s.send(t, s.ada, "PATCH", "/v0.1"+fixture.ServerPath(name, "1.0.0")+"/status",
			`{"status":"deprecated"}`),
		"PATCH of all": s.send(t, s.ada, "PATCH", "/v0.1"+fixture.ServerPath(name)+"/status",
			`{"status":"deprecated"}`),
		"DELETE": s.send(t, s.ada, "DELETE", "/v0.1"+fixture.ServerPath(name, "1.0.0"), nil),
	} {
		if a.Status != http.StatusForbidden || !strings.Contains(string(a.Body), "the mirror locked") {
			t.Errorf("%s: %d %s", what, a.Status, a.Body)
		}
	}
	fixture.WriteFile(t, s.e.Dir+"/locked.json", upstream.Document(name, "3.0.0", "Imported"))
	stdout, _, code := s.e.TryCommand(t, "", "registry", "import", s.e.Dir+"/locked.json")
	if code != 1 {
		t.Errorf("the import ended with %d", code)
	}
	wantContains(t, stdout, "the mirror locked")
	s.wantListed(t, "example.locked", linesOf("locked", 1, "locked")...)
}

// checkHostile checks that no wrong answer of another registry changes what is listed.
func checkHostile(t *testing.T, s *site) {
	up := upstream.Start(t, records("hostile", 250)...)
	s.add(t, "hostile", up)
	s.sync(t, "hostile")
	want := linesOf("hostile", 250, "hostile")
	s.wantListed(t, "example.hostile", want...)
	up.Put(upstream.Record{
		Document: upstream.Document(serverOf("hostile", 0), "1.0.0", "Another document"), UpdatedAt: time.Now(),
	})
	for reason, behaviour := range map[string]upstream.Behaviour{
		"500":                   {Fault: upstream.Status(http.StatusInternalServerError), OnPage: 2},
		"404":                   {Fault: upstream.Status(http.StatusNotFound)},
		"ends in the middle":    {Fault: upstream.BreakOff(), OnPage: 3},
		"HTML":                  {Fault: upstream.HTML()},
		"read before":           {Cursors: upstream.CursorsLoop},
		"which is not a public": {Fault: upstream.Redirect("http://127.0.0.1:1/v0.1/servers")},
		"not a public address":  {Fault: upstream.Redirect("http://localhost:1/v0.1/servers"), OnPage: 2},
		"nextCursor is longer":  {Cursors: upstream.CursorsLong},
		"less than half":        {Percent: 40},
	} {
		up.Behave(behaviour)
		wantContains(t, s.failSync(t, "hostile", "--full"), reason)
		state := s.state(t, "hostile")
		if state.State != "failing" || state.FailingSince == nil || state.LastSuccess == nil || state.Servers != 250 {
			t.Errorf("%s: mirror list has %+v", reason, state)
		}
		wantContains(t, state.Reason, reason)
	}
	s.wantListed(t, "example.hostile", want...)
	if body := string(apiclient.Call(t, "GET", s.one.API+"/v0.1"+fixture.ServerPath(serverOf("hostile", 0), "latest"),
		nil).Body); strings.Contains(body, "Another document") {
		t.Error("a document of a list that failed was taken")
	}
	for _, at := range []*fixture.Service{s.one, s.other} {
		await.Until(t, "the metrics show the failure", func() bool {
			return at.Metric("tollgate_mirror_failing", "mirror", "hostile") == 1
		})
	}
	up.Behave(upstream.Behaviour{Shuffled: true, Fault: upstream.TooManyRequests(0), Times: 1})
	s.sync(t, "hostile", "--full")
	if state := s.state(t, "hostile"); state.State != "ok" || state.FailingSince != nil || state.Reason != "" {
		t.Errorf("after a success, mirror list has %+v", state)
	}
	s.wantListed(t, "example.hostile", want...)
	wantContains(t,
		string(apiclient.Call(t, "GET", s.one.API+"/v0.1"+fixture.ServerPath(serverOf("hostile", 0), "latest"),
			nil).Body), "Another document")
}

func checkRemove(t *testing.T, s *site) {
	for _, word := range []string{"keep", "purge"} {
		up := upstream.Start(t, records(word, 3)...)
		s.add(t, word, up)
		s.sync(t, word)
		s.wantListed(t, "example."+word, linesOf(word, 3, word)...)
	}
	s.e.RunCommand(t, "", "mirror", "remove", "keep")
	s.wantListed(t, "example.keep", serverOf("keep", 0)+"@1.0.0 active", serverOf("keep", 1)+"@1.0.0 active",
		serverOf("keep", 2)+"@1.0.0 active")
	s.send(t, s.ada, "POST", "/v0.1/publish", fixture.NewServerDocument(serverOf("keep", 0), "2.0.0")).WantStatus(t,
		http.StatusOK)

	wantContains(t, s.e.RunCommand(t, "", "mirror", "remove", "purge", "--purge"), "deleted")
	s.wantListed(t, "example.purge")
	if a := apiclient.Call(t, "GET", s.other.API+"/v0.1"+fixture.ServerPath(serverOf("purge", 0), "1.0.0"),
		nil); a.Status != http.StatusNotFound {
		t.Errorf("a purged version is %d", a.Status)
	}
	s.send(t, s.ada, "POST", "/v0.1/publish", fixture.NewServerDocument(serverOf("purge", 0), "1.0.0")).WantStatus(t,
		http.StatusOK)
	up := upstream.Start(t, records("purge", 3)...)
	s.add(t, "purge", up)
	s.sync(t, "purge")
	s.wantListed(t, "example.purge", serverOf("purge", 0)+"@1.0.0 active",
		serverOf("purge", 1)+"@1.0.0 active of purge", serverOf("purge", 2)+"@1.0.0 active of purge")
	for _, at := range []*fixture.Service{s.one, s.other} {
		await.Until(t, "the metrics forget a mirror", func() bool {
			return at.Metric("tollgate_mirror_servers", "mirror", "keep") == 0
		})
	}
}

func checkBadInput(t *testing.T, s *site) {
	for want, args := range map[string][]string{
		"the name of a mirror":         {"add", "Bad", "https://example.com"},
		`there is no mirror "missing"`: {"sync", "missing"},
		`no mirror "missing"`:          {"diff", "missing"},
		`mirror "missing"`:             {"remove", "missing"},
	} {
		_, stderr, code := s.e.TryCommand(t, "", append([]string{"mirror"}, args...)...)
		if code != 1 {
			t.Errorf("%v ended with %d", args, code)
		}
		wantContains(t, stderr, want)
	}
}
