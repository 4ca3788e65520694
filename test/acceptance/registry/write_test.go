package registry

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// checkReplace replaces documents.
func checkReplace(t *testing.T, r *registry) {
	name := "com.example.replace/server"
	before := r.write(t, "POST", "/publish", fixture.NewServerDocument(name, "1.0.0")).Official()
	r.publish(t, name, "2.0.0", "3.0.0")
	r.send(t, "PATCH", fixture.ServerPath(name, "1.0.0")+"/status", `{"status":"deprecated","statusMessage":"use 2"}`).
		WantStatus(t, http.StatusOK)
	r.setStatus(t, name, "3.0.0", "deleted")
	standing := decodeRecord(t, r.get(t, fixture.ServerPath(name, "1.0.0"))).Official()

	changed := fixture.NewServerDocument(name, "1.0.0")
	changed["title"], changed["description"] = "Weather", "Says more than before"
	replaced := r.write(t, "PUT", fixture.ServerPath(name, "1.0.0"), changed)
	after := replaced.Official()
	if !equalJSON(t, replaced.Server, changed) ||
		!equalJSON(t, decodeRecord(t, r.get(t, fixture.ServerPath(name, "1.0.0"))), replaced) {
		t.Errorf("the document is %v, want %v", replaced.Server, changed)
	}
	if after.Status != "deprecated" || after.Message() != "use 2" || after.PublishedAt != before.PublishedAt ||
		after.StatusChangedAt != standing.StatusChangedAt || after.UpdatedAt <= standing.UpdatedAt || after.IsLatest {
		t.Errorf("after the replacement it is %+v, before %+v", after, standing)
	}

	broken := fixture.NewServerDocument(name, "1.0.0")
	delete(broken, "description")
	other := "com.example.replace/none"
	for what, c := range map[string]struct {
		version string
		body    any
		status  int
		mention string
	}{
		"another version": {"1.0.0", fixture.NewServerDocument(name, "2.0.0"), 400, "version"},
		"another name":    {"1.0.0", fixture.NewServerDocument(other, "1.0.0"), 400, "name"},
		"no version":      {"1.0.0", object{"name": name}, 400, "version"},
		"missing":         {"9.0.0", fixture.NewServerDocument(name, "9.0.0"), 404, "not found"},
		"deleted":         {"3.0.0", fixture.NewServerDocument(name, "3.0.0"), 404, "not found"},
		"latest":          {"latest", fixture.NewServerDocument(name, "latest"), 404, "not found"},
		"broken":          {"1.0.0", broken, 422, "description"},
	} {
		t.Run(what, func(t *testing.T) {
			wantFault(t, r.send(t, "PUT", fixture.ServerPath(name, c.version), c.body), c.status, c.mention)
		})
	}
	wantFault(t, r.send(t, "PUT", fixture.ServerPath(other, "1.0.0"), fixture.NewServerDocument(other, "1.0.0")), 404)
	if got := decodeRecord(t, r.get(t, fixture.ServerPath(name, "1.0.0"))); !equalJSON(t, got, replaced) {
		t.Errorf("refused replacements changed %+v to %+v", replaced, got)
	}
}

// checkDelete deletes versions.
func checkDelete(t *testing.T, r *registry) {
	name := "com.example.delete/server"
	r.publish(t, name, "1.0.0", "2.0.0")
	before := decodeRecord(t, r.get(t, fixture.ServerPath(name, "2.0.0")))
	gone := r.write(t, "DELETE", fixture.ServerPath(name, "2.0.0"), nil)
	meta := gone.Official()
	if !equalJSON(t, gone.Server, before.Server) || meta.Status != "deleted" || meta.StatusMessage != nil ||
		meta.IsLatest ||
		meta.PublishedAt != before.Official().PublishedAt ||
		meta.StatusChangedAt <= before.Official().StatusChangedAt || meta.StatusChangedAt != meta.UpdatedAt {
		t.Errorf("the deleted version is %+v", gone)
	}
	wantFault(t, r.send(t, "DELETE", fixture.ServerPath(name, "2.0.0"), nil), http.StatusNotFound)
	for _, path := range []string{
		fixture.ServerPath("com.example.delete/none", "1.0.0"), fixture.ServerPath(name, "latest"),
	} {
		wantFault(t, r.send(t, "DELETE", path, nil), http.StatusNotFound)
	}
	wantFault(t, r.get(t, fixture.ServerPath(name, "2.0.0")), http.StatusNotFound)
	if got := decodeRecord(t,
		r.get(t, fixture.ServerPath(name, "2.0.0")+"?include_deleted=true")); !equalJSON(t, got, gone) {
		t.Errorf("it reads back as %+v, want %+v", got, gone)
	}
	wantFault(t, r.send(t, "POST", "/publish", fixture.NewServerDocument(name, "2.0.0")), http.StatusConflict, "2.0.0")
	wantFault(t, r.send(t, "PUT", fixture.ServerPath(name, "2.0.0"), fixture.NewServerDocument(name, "2.0.0")),
		http.StatusNotFound)
	if back := r.setStatus(t, name, "2.0.0", "active").Official(); back.Status != "active" || !back.IsLatest {
		t.Errorf("back again it is %+v", back)
	}
	flag := decodeRecord(t, r.get(t, fixture.ServerPath(name, "1.0.0"))).Official()
	if flag.IsLatest || flag.UpdatedAt <= flag.StatusChangedAt {
		t.Errorf("the version whose flag turned is %+v, want a new updatedAt", flag)
	}
}

// checkStatus makes every transition, and every change that has no effect.
func checkStatus(t *testing.T, r *registry) {
	name := "com.example.status/server"
	r.publish(t, name, "1.0.0")
	all := []string{"active", "deprecated", "deleted"}
	for _, from := range all {
		for _, to := range all {
			if got := decodeRecord(t, r.get(t, fixture.ServerPath(name, "1.0.0")+"?include_deleted=true")).
				Official(); got.Status != from {
				r.setStatus(t, name, "1.0.0", from)
			}
			a := r.send(t, "PATCH", fixture.ServerPath(name, "1.0.0")+"/status", map[string]string{"status": to})
			if from == to {
				wantFault(t, a, http.StatusBadRequest, "no changes to apply")
			} else if got := decodeRecord(t, a).Official(); got.Status != to {
				t.Errorf("from %s to %s it is %+v", from, to, got)
			}
		}
	}
	checkMessages(t, r, name)
	for _, body := range []string{`{}`, `{"status":"yanked"}`, `{"status":"active","statusMessage":"fine"}`, `[]`} {
		for _, path := range []string{fixture.ServerPath(name, "1.0.0"), fixture.ServerPath(name)} {
			apiclient.WantRegistryError(t, r.send(t, "PATCH", path+"/status", body).
				WantStatus(t, http.StatusBadRequest))
		}
	}
	for _, path := range []string{
		fixture.ServerPath(name, "9.9.9"), fixture.ServerPath("com.example.status/none"),
		fixture.ServerPath(name, "latest"),
	} {
		wantFault(t, r.send(t, "PATCH", path+"/status", `{"status":"active"}`), http.StatusNotFound)
	}
}

// checkMessages checks the message and the times of a version's status.
func checkMessages(t *testing.T, r *registry, name string) {
	r.send(t, "PATCH", fixture.ServerPath(name, "1.0.0")+"/status", `{"status":"active"}`)
	last := decodeRecord(t, r.get(t, fixture.ServerPath(name, "1.0.0"))).Official()
	long := strings.Repeat("ü", 500) // characters, not bytes
	for _, c := range []struct {
		body, message string
		moves         bool // statusChangedAt
		status        int
	}{
		{`{"status":"deprecated","statusMessage":"use \"b\"\n"}`, "use \"b\"\n", true, 200},
		{`{"status":"deprecated","statusMessage":"use \"b\"\n"}`, "", false, 400},
		{`{"status":"deprecated","statusMessage":"` + long + `"}`, long, false, 200},
		{`{"status":"deprecated"}`, "", false, 200},
		{`{"status":"deleted","statusMessage":"leak"}`, "leak", true, 200},
		{`{"status":"active","statusMessage":""}`, "", true, 200},
	} {
		a := r.send(t, "PATCH", fixture.ServerPath(name, "1.0.0")+"/status", c.body).WantStatus(t, c.status)
		if c.status == http.StatusBadRequest {
			wantFault(t, a, http.StatusBadRequest, "no changes to apply")
			continue
		}
		changed := decodeRecord(t, a)
		now := changed.Official()
		if now.Message() != c.message || (now.StatusMessage == nil) != (c.message == "") ||
			(now.StatusChangedAt > last.StatusChangedAt) != c.moves ||
			now.UpdatedAt <= last.UpdatedAt || now.PublishedAt != last.PublishedAt {
			t.Errorf("%s makes it %+v, before %+v", c.body, now, last)
		}
		if got := decodeRecord(t, r.get(t, fixture.ServerPath(name, "1.0.0")+"?include_deleted=true")); !equalJSON(t,
			got, changed) {
			t.Errorf("it reads back as %+v, want %+v", got, changed)
		}
		last = now
	}
}

// changes is the schema AllVersionsStatusResponse.
type changes struct {
	UpdatedCount *int                   `json:"updatedCount"`
	Servers      []fixture.ServerRecord `json:"servers"`
}

// checkStatusAll changes the status of all versions of a server in one call.
func checkStatusAll(t *testing.T, r *registry) {
	name := "com.example.all/server"
	r.publish(t, name, "1.0.0", "2.0.0", "3.0.0")
	r.setStatus(t, name, "2.0.0", "deprecated")
	for _, c := range []struct {
		body    string
		changed []string
		latest  string
	}{
		{`{"status":"deprecated"}`, []string{"3.0.0", "1.0.0"}, "3.0.0"},
		{`{"status":"deprecated"}`, nil, "3.0.0"},
		{`{"status":"deprecated","statusMessage":"old"}`, []string{"3.0.0", "2.0.0", "1.0.0"}, "3.0.0"},
		{`{"status":"deleted"}`, []string{"3.0.0", "2.0.0", "1.0.0"}, "3.0.0"},
		{`{"status":"active"}`, []string{"3.0.0", "2.0.0", "1.0.0"}, "3.0.0"},
	} {
		a := r.send(t, "PATCH", fixture.ServerPath(name)+"/status", c.body)
		if c.changed == nil {
			wantFault(t, a, http.StatusBadRequest, "no changes to apply")
			continue
		}
		var got changes
		a.WantStatus(t, http.StatusOK).Decode(t, &got)
		var versions []string
		for _, v := range got.Servers {
			versions = append(versions, v.Server["version"].(string))
			if stored := decodeRecord(t,
				r.get(t, fixture.ServerPath(name, v.Server["version"].(string))+"?include_deleted=true")); !equalJSON(
				t, stored, v) {
				t.Errorf("%s answers %+v, stored is %+v", c.body, v, stored)
			}
		}
		slices.Sort(versions)
		slices.Reverse(versions)
		if got.UpdatedCount == nil || *got.UpdatedCount != len(c.changed) || !slices.Equal(versions, c.changed) {
			t.Errorf("%s answers %s, want %v", c.body, a.Body, c.changed)
		}
		wantLatest(t, r, name, c.latest, []string{c.body})
	}
}

// checkRemotes checks that only one server can have the URL of a remote.
func checkRemotes(t *testing.T, r *registry) {
	taken := func(name, version, address string) apiclient.Response {
		doc := fixture.NewServerDocument("com.example.remotes/"+name, version)
		doc["remotes"] = []any{
			map[string]any{"type": "sse", "url": address}, map[string]any{"type": "streamable-http", "url": address},
		}
		return r.send(t, "POST", "/publish", doc)
	}
	const address = "https://mcp.example.com/Path?q=A"
	taken("owner", "1.0.0", address).WantStatus(t, http.StatusOK)
	taken("owner", "1.1.0", address).WantStatus(t, http.StatusOK) // its own version
	for i, other := range []string{address, "hTTps://mcp.EXAMPLE.com:443/Path?q=A"} {
		wantFault(t, taken(fmt.Sprintf("thief%d", i), "1.0.0", other), http.StatusConflict, "remote URL", address)
	}
	taken("other", "1.0.0", "https://mcp.example.com/path?q=A").WantStatus(t, http.StatusOK)

	// By replacement.
	r.publish(t, "com.example.remotes/late", "1.0.0")
	late := fixture.NewServerDocument("com.example.remotes/late", "1.0.0")
	late["remotes"] = []any{map[string]any{"type": "sse", "url": address}}
	wantFault(t, r.send(t, "PUT", fixture.ServerPath("com.example.remotes/late", "1.0.0"), late), http.StatusConflict,
		"remote URL", address)

	// A deleted version does not reserve its URL, and cannot be restored while another server has
	// the URL.
	r.setStatus(t, "com.example.remotes/owner", "1.0.0", "deprecated")
	r.write(t, "DELETE", fixture.ServerPath("com.example.remotes/owner", "1.1.0"), nil)
	taken("heir", "1.0.0", address).WantStatus(t, http.StatusConflict)
	r.write(t, "DELETE", fixture.ServerPath("com.example.remotes/owner", "1.0.0"), nil)
	taken("heir", "1.0.0", address).WantStatus(t, http.StatusOK)
	for _, status := range []string{"active", "deprecated"} {
		body := map[string]string{"status": status}
		wantFault(t, r.send(t, "PATCH", fixture.ServerPath("com.example.remotes/owner", "1.0.0")+"/status", body),
			http.StatusConflict, "remote URL", address)
		wantFault(t, r.send(t, "PATCH", fixture.ServerPath("com.example.remotes/owner")+"/status", body),
			http.StatusConflict, "remote URL", address)
	}
	for _, v := range r.list(t,
		fixture.ServerPath("com.example.remotes/owner")+"/versions?include_deleted=true").Servers {
		if v.Official().Status != "deleted" {
			t.Errorf("%s is %+v after a refused change", v.ID(), v.Official())
		}
	}
	heir := fixture.NewServerDocument("com.example.remotes/heir", "1.0.0") // moves away
	r.write(t, "PUT", fixture.ServerPath("com.example.remotes/heir", "1.0.0"), heir)
	r.setStatus(t, "com.example.remotes/owner", "1.0.0", "active")
	taken("thief", "1.0.0", address).WantStatus(t, http.StatusConflict)
}

// TestRemotesShared checks that several servers may have one URL, as in the public registry, and
// what happens to them when the operator makes URLs unique (contract R-32).
func TestRemotesShared(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		const address = "https://mcp.example.com/shared"
		s := e.Start(t, fixture.RegistrySettings()...)
		r := &registry{e, s, e.NewWriter(t, s, "writer@example.com", "publish *", "edit *")}
		document := func(name, version string) map[string]any {
			remotes := []any{map[string]any{"type": "sse", "url": address}}
			return fixture.WithProperty(fixture.NewServerDocument(name, version), "remotes", remotes)
		}
		for _, name := range []string{"com.example/a", "com.example/b", "com.example/c"} {
			r.write(t, "POST", "/publish", document(name, "1.0.0"))
		}
		r.setStatus(t, "com.example/c", "1.0.0", "deleted")
		r.setStatus(t, "com.example/c", "1.0.0", "active")
		r.setStatus(t, "com.example/c", "1.0.0", "deleted")
		s.Stop()

		r.s = e.Start(t, append(fixture.RegistrySettings(), "REMOTE_URL_UNIQUE=true")...)
		r.setStatus(t, "com.example/a", "1.0.0", "deprecated")
		r.setStatus(t, "com.example/a", "1.0.0", "active")
		for _, refused := range []apiclient.Response{
			r.send(t, "POST", "/publish", document("com.example/d", "1.0.0")),
			r.send(t, "POST", "/publish", document("com.example/a", "2.0.0")),
			r.send(t, "PUT", fixture.ServerPath("com.example/b", "1.0.0"), document("com.example/b", "1.0.0")),
			r.send(t, "PATCH", fixture.ServerPath("com.example/c", "1.0.0")+"/status", map[string]string{
				"status": "active",
			}),
		} {
			wantFault(t, refused, http.StatusConflict, "remote URL", address)
		}
		r.write(t, "POST", "/publish", fixture.NewServerDocument("com.example/a", "2.0.0"))
		// gives it up
		r.write(t, "PUT", fixture.ServerPath("com.example/b", "1.0.0"),
			fixture.NewServerDocument("com.example/b", "1.0.0"))
		r.write(t, "POST", "/publish", document("com.example/a", "3.0.0"))
		r.send(t, "POST", "/publish", document("com.example/b", "2.0.0")).WantStatus(t, http.StatusConflict)
	})
}
