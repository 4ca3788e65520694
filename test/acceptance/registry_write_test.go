package acceptance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// checkReplace puts documents in the place of others.
func checkReplace(t *testing.T, r *registry) {
	name := "com.example.replace/server"
	before := r.write(t, "POST", "/publish", document(name, "1.0.0")).official()
	r.publish(t, name, "2.0.0", "3.0.0")
	r.send(t, "PATCH", at(name, "1.0.0")+"/status", `{"status":"deprecated","statusMessage":"use 2"}`).want(t, http.StatusOK)
	r.setStatus(t, name, "3.0.0", "deleted")
	standing := one(t, r.get(t, at(name, "1.0.0"))).official()

	changed := document(name, "1.0.0")
	changed["title"], changed["description"] = "Weather", "Says more than before"
	replaced := r.write(t, "PUT", at(name, "1.0.0"), changed)
	after := replaced.official()
	if !same(t, replaced.Server, changed) || !same(t, one(t, r.get(t, at(name, "1.0.0"))), replaced) {
		t.Errorf("the document is %v, want %v", replaced.Server, changed)
	}
	if after.Status != "deprecated" || after.message() != "use 2" || after.PublishedAt != before.PublishedAt ||
		after.StatusChangedAt != standing.StatusChangedAt || after.UpdatedAt <= standing.UpdatedAt || after.IsLatest {
		t.Errorf("after the replacement it is %+v, before %+v", after, standing)
	}

	broken := document(name, "1.0.0")
	delete(broken, "description")
	for _, c := range []struct {
		what    string
		path    string
		body    any
		status  int
		mention string
	}{
		{"another version", at(name, "1.0.0"), document(name, "2.0.0"), 400, "version"},
		{"another name", at(name, "1.0.0"), document("com.example.replace/other", "1.0.0"), 400, "name"},
		{"name in other letters", at(name, "1.0.0"), document("com.example.Replace/server", "1.0.0"), 400, "name"},
		{"no name", at(name, "1.0.0"), map[string]any{"version": "1.0.0"}, 400, "name"},
		{"no version", at(name, "1.0.0"), map[string]any{"name": name}, 400, "version"},
		{"name is a number", at(name, "1.0.0"), map[string]any{"name": 1, "version": "1.0.0"}, 400, "name"},
		{"another version of a server that is not there", at("com.example.replace/none", "1.0.0"), document(name, "1.0.0"), 400, "name"},
		{"missing version", at(name, "9.0.0"), document(name, "9.0.0"), 404, "not found"},
		{"missing server", at("com.example.replace/none", "1.0.0"), document("com.example.replace/none", "1.0.0"), 404, "not found"},
		{"deleted version", at(name, "3.0.0"), document(name, "3.0.0"), 404, "not found"},
		{"missing version, broken document", at(name, "9.0.0"), map[string]any{"name": name, "version": "9.0.0"}, 404, "not found"},
		{"latest is no version", at(name, "latest"), document(name, "latest"), 404, "not found"},
		{"broken document", at(name, "1.0.0"), broken, 422, "description"},
		{"unknown property", at(name, "1.0.0"), with(document(name, "1.0.0"), "titel", "x"), 422, "title"},
	} {
		t.Run(c.what, func(t *testing.T) { r.send(t, "PUT", c.path, c.body).wantFault(t, c.status, c.mention) })
	}
	if got := one(t, r.get(t, at(name, "1.0.0"))); !same(t, got, replaced) {
		t.Errorf("refused replacements changed %+v to %+v", replaced, got)
	}
}

// checkDelete deletes versions.
func checkDelete(t *testing.T, r *registry) {
	name := "com.example.delete/server"
	r.publish(t, name, "1.0.0", "2.0.0")
	before := one(t, r.get(t, at(name, "2.0.0")))
	gone := r.write(t, "DELETE", at(name, "2.0.0"), nil)
	meta := gone.official()
	if !same(t, gone.Server, before.Server) || meta.Status != "deleted" || meta.StatusMessage != nil || meta.IsLatest ||
		meta.PublishedAt != before.official().PublishedAt || meta.StatusChangedAt <= before.official().StatusChangedAt || meta.StatusChangedAt != meta.UpdatedAt {
		t.Errorf("the deleted version is %+v", gone)
	}
	r.send(t, "DELETE", at(name, "2.0.0"), nil).wantFault(t, http.StatusNotFound)
	for _, path := range []string{at(name, "9.0.0"), at("com.example.delete/none", "1.0.0"), at("none", "1.0.0"), at(name, "latest"), at(name, "*")} {
		r.send(t, "DELETE", path, nil).wantFault(t, http.StatusNotFound)
	}
	for _, query := range []string{"", "?include_deleted=false", "?include_deleted="} {
		r.get(t, at(name, "2.0.0")+query).wantFault(t, http.StatusNotFound)
	}
	if got := one(t, r.get(t, at(name, "2.0.0")+"?include_deleted=true")); !same(t, got, gone) {
		t.Errorf("it reads back as %+v, want %+v", got, gone)
	}
	r.send(t, "POST", "/publish", document(name, "2.0.0")).wantFault(t, http.StatusConflict, "2.0.0")
	r.send(t, "PUT", at(name, "2.0.0"), document(name, "2.0.0")).wantFault(t, http.StatusNotFound)
	if back := r.setStatus(t, name, "2.0.0", "active").official(); back.Status != "active" || !back.IsLatest {
		t.Errorf("back again it is %+v", back)
	}
	flag := one(t, r.get(t, at(name, "1.0.0"))).official()
	if flag.IsLatest || flag.UpdatedAt <= flag.StatusChangedAt {
		t.Errorf("the version whose flag turned is %+v, want a new updatedAt", flag)
	}
}

// checkStatus makes every transition, and every one that changes nothing.
func checkStatus(t *testing.T, r *registry) {
	name := "com.example.status/server"
	r.publish(t, name, "1.0.0")
	all := []string{"active", "deprecated", "deleted"}
	for _, from := range all {
		for _, to := range all {
			if got := one(t, r.get(t, at(name, "1.0.0")+"?include_deleted=true")).official(); got.Status != from {
				r.setStatus(t, name, "1.0.0", from)
			}
			a := r.send(t, "PATCH", at(name, "1.0.0")+"/status", map[string]string{"status": to})
			if from == to {
				a.wantFault(t, http.StatusBadRequest, "no changes to apply")
			} else if got := one(t, a).official(); got.Status != to {
				t.Errorf("from %s to %s it is %+v", from, to, got)
			}
		}
	}
	checkMessages(t, r, name)
	for _, body := range badStatusBodies() {
		for _, path := range []string{at(name, "1.0.0"), at(name), at(name, "9.9.9"), at("com.example.status/none")} {
			wantError(t, r.send(t, "PATCH", path+"/status", body).want(t, http.StatusBadRequest))
		}
	}
	for _, path := range []string{at(name, "9.9.9"), at("com.example.status/none", "1.0.0"), at("com.example.status/none"), at("none"), at(name, "latest")} {
		r.send(t, "PATCH", path+"/status", `{"status":"active"}`).wantFault(t, http.StatusNotFound)
	}
}

func badStatusBodies() []string {
	return []string{
		`{}`, `{"status":""}`, `{"status":null}`, `{"status":"Active"}`, `{"status":"yanked"}`, `{"status":1}`, `{"status":["active"]}`,
		`{"status":"active","statusMessage":"fine"}`, `{"status":"deprecated","statusMessage":7}`,
		`{"status":"deprecated","statusMessage":"` + strings.Repeat("x", 501) + `"}`,
		`{"status":"deprecated","statusMessage":"\u0000"}`, `{"status":"deprecated","reason":"x"}`, `{"Status":"deprecated"}`,
		`{"status":"deprecated","status":"active"}`, `{"statusMessage":"x"}`, `[]`, `"deprecated"`, `null`, `{"status":`, ``,
	}
}

// checkMessages follows the message and the times of a version's status.
func checkMessages(t *testing.T, r *registry, name string) {
	r.send(t, "PATCH", at(name, "1.0.0")+"/status", `{"status":"active"}`)
	last := one(t, r.get(t, at(name, "1.0.0"))).official()
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
		{`{"status":"deprecated","statusMessage":""}`, "", false, 400},
		{`{"status":"deprecated","statusMessage":null}`, "", false, 400},
		{`{"status":"deprecated","statusMessage":"again"}`, "again", false, 200},
		{`{"status":"deprecated","statusMessage":""}`, "", false, 200},
		{`{"status":"deleted","statusMessage":"leak"}`, "leak", true, 200},
		{`{"status":"active","statusMessage":""}`, "", true, 200},
		{`{"status":"active","statusMessage":null}`, "", false, 400},
	} {
		a := r.send(t, "PATCH", at(name, "1.0.0")+"/status", c.body).want(t, c.status)
		if c.status == http.StatusBadRequest {
			a.wantFault(t, http.StatusBadRequest, "no changes to apply")
			continue
		}
		changed := one(t, a)
		now := changed.official()
		if now.message() != c.message || (now.StatusMessage == nil) != (c.message == "") || (now.StatusChangedAt > last.StatusChangedAt) != c.moves ||
			now.UpdatedAt <= last.UpdatedAt || now.PublishedAt != last.PublishedAt {
			t.Errorf("%s makes it %+v, before %+v", c.body, now, last)
		}
		if got := one(t, r.get(t, at(name, "1.0.0")+"?include_deleted=true")); !same(t, got, changed) {
			t.Errorf("it reads back as %+v, want %+v", got, changed)
		}
		last = now
	}
}

// changes is an AllVersionsStatusResponse.
type changes struct {
	UpdatedCount *int     `json:"updatedCount"`
	Servers      []record `json:"servers"`
}

// checkStatusAll changes all versions of a server at once.
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
		{`{"status":"deleted"}`, nil, "3.0.0"},
		{`{"status":"active"}`, []string{"3.0.0", "2.0.0", "1.0.0"}, "3.0.0"},
		{`{"status":"active"}`, nil, "3.0.0"},
	} {
		a := r.send(t, "PATCH", at(name)+"/status", c.body)
		if c.changed == nil {
			a.wantFault(t, http.StatusBadRequest, "no changes to apply")
			continue
		}
		var got changes
		a.want(t, http.StatusOK).decode(t, &got)
		var versions []string
		for _, v := range got.Servers {
			versions = append(versions, v.Server["version"].(string))
			if stored := one(t, r.get(t, at(name, v.Server["version"].(string))+"?include_deleted=true")); !same(t, stored, v) {
				t.Errorf("%s answers %+v, stored is %+v", c.body, v, stored)
			}
		}
		slices.Sort(versions)
		slices.Reverse(versions)
		if got.UpdatedCount == nil || *got.UpdatedCount != len(c.changed) || !slices.Equal(versions, c.changed) {
			t.Errorf("%s answers %s, want %v", c.body, a.body, c.changed)
		}
		wantLatest(t, r, name, c.latest, []string{c.body})
	}
}

// checkRemotes wants the address of a remote to belong to one server.
func checkRemotes(t *testing.T, r *registry) {
	taken := func(name, version, address string) answer {
		doc := document("com.example.remotes/"+name, version)
		doc["remotes"] = []any{map[string]any{"type": "sse", "url": address}, map[string]any{"type": "streamable-http", "url": address}}
		return r.send(t, "POST", "/publish", doc)
	}
	const address = "https://mcp.example.com/Path?q=A"
	taken("owner", "1.0.0", address).want(t, http.StatusOK)
	taken("owner", "1.1.0", address).want(t, http.StatusOK) // its own
	for i, other := range []string{
		address, "HTTPS://mcp.example.com/Path?q=A", "https://MCP.Example.COM/Path?q=A", "https://mcp.example.com:443/Path?q=A", "hTTps://mcp.EXAMPLE.com:443/Path?q=A",
	} {
		taken(fmt.Sprintf("thief%d", i), "1.0.0", other).wantFault(t, http.StatusConflict, "remote URL", address)
	}
	for i, other := range []string{
		"http://mcp.example.com/Path?q=A", "https://mcp.example.com:8443/Path?q=A", "https://mcp.example.com/path?q=A",
		"https://mcp.example.com/Path?q=a", "https://mcp.example.com/Path", "https://mcp.example.com/Path?q=A#f", "https://mcp.example.com:80/Path?q=A",
	} {
		taken(fmt.Sprintf("other%d", i), "1.0.0", other).want(t, http.StatusOK)
	}
	taken("port", "1.0.0", "http://port.example.com:80/").want(t, http.StatusOK)
	taken("port2", "1.0.0", "http://port.example.com/").want(t, http.StatusConflict)

	// By replacement.
	r.publish(t, "com.example.remotes/late", "1.0.0")
	late := document("com.example.remotes/late", "1.0.0")
	late["remotes"] = []any{map[string]any{"type": "sse", "url": address}}
	r.send(t, "PUT", at("com.example.remotes/late", "1.0.0"), late).wantFault(t, http.StatusConflict, "remote URL", address)

	// A deleted version holds its address no longer, and does not get it back
	// while another server has it.
	r.setStatus(t, "com.example.remotes/owner", "1.0.0", "deprecated")
	r.write(t, "DELETE", at("com.example.remotes/owner", "1.1.0"), nil)
	taken("heir", "1.0.0", address).want(t, http.StatusConflict)
	r.write(t, "DELETE", at("com.example.remotes/owner", "1.0.0"), nil)
	taken("heir", "1.0.0", address).want(t, http.StatusOK)
	for _, status := range []string{"active", "deprecated"} {
		body := map[string]string{"status": status}
		r.send(t, "PATCH", at("com.example.remotes/owner", "1.0.0")+"/status", body).wantFault(t, http.StatusConflict, "remote URL", address)
		r.send(t, "PATCH", at("com.example.remotes/owner")+"/status", body).wantFault(t, http.StatusConflict, "remote URL", address)
	}
	for _, v := range r.list(t, at("com.example.remotes/owner")+"/versions?include_deleted=true").Servers {
		if v.official().Status != "deleted" {
			t.Errorf("%s is %+v after a refused change", v.id(), v.official())
		}
	}
	heir := document("com.example.remotes/heir", "1.0.0") // moves away
	r.write(t, "PUT", at("com.example.remotes/heir", "1.0.0"), heir)
	r.setStatus(t, "com.example.remotes/owner", "1.0.0", "active")
	taken("thief", "1.0.0", address).want(t, http.StatusConflict)
}

// TestRemotesShared wants no such conflict where an operator allows it.
func TestRemotesShared(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t, append(registryEnviron(), "REMOTE_URL_UNIQUE=false")...)
		r := &registry{e, s, e.writerFor(t, s, "writer@example.com", "publish *")}
		for _, name := range []string{"com.example/a", "com.example/b"} {
			doc := document(name, "1.0.0")
			doc["remotes"] = []any{map[string]any{"type": "sse", "url": "https://mcp.example.com"}}
			r.write(t, "POST", "/publish", doc)
		}
	})
}

// with returns a document with one more property.
func with(doc map[string]any, name string, value any) map[string]any {
	doc[name] = value
	return doc
}
