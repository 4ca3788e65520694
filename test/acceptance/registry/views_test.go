package registry

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestViews reads views of a registry through two instances (contract C-30 to C-35).
func TestViews(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		t.Parallel()
		v := &viewed{registry: openRegistry(t, e), other: e.Start(t, fixture.RegistrySettings()...)}
		v.publish(t, "com.example/a", "1.0.0", "2.0.0")
		v.publish(t, "com.example/b", "1.0.0", "2.0.0")
		v.publish(t, "com.example/draft", "1.0.0")
		v.publish(t, "com.example/old", "1.0.0")
		v.publish(t, "org.example/c", "1.0.0")
		v.setStatus(t, "com.example/b", "2.0.0", "deprecated")
		v.setStatus(t, "com.example/old", "1.0.0", "deprecated")
		v.run(t, "view", "add", "team", "--include", "com.example/*", "--exclude", "com.example/draft")
		v.run(t, "view", "add", "stable", "--deprecated", "hide")
		v.run(t, "view", "add", "inner", "--exclude", "org.*", "--access", "token")
		for _, c := range []struct {
			name  string
			check func(*testing.T, *viewed)
		}{
			{"selection", checkSelection}, {"hidden versions", checkHidden}, {"cursors", checkViewCursors}, {
				"tokens", checkViewTokens,
			},
			{"statuses", checkViewStatuses}, {"allow lists", checkViewAllowLists}, {"commands", checkViewCommands}, {
				"changes", checkViewChanges,
			},
			{"description", checkViewDescription},
		} {
			t.Run(c.name, func(t *testing.T) { c.check(t, v) })
		}
	})
}

// viewed is a registry with views, and a second instance.
type viewed struct {
	*registry
	other *fixture.Service
}

// run runs an operator command.
func (v *viewed) run(t *testing.T, args ...string) string {
	t.Helper()
	return v.RunCommand(t, "", args...)
}

// read reads a path below /registries.
func (v *viewed) read(t *testing.T, path string, header ...string) apiclient.Response {
	t.Helper()
	return apiclient.Call(t, http.MethodGet, v.s.API+"/registries/"+path, nil, header...)
}

// await waits until both instances answer with a status. A call that begins more than a second after
// the change must get it.
func (v *viewed) await(t *testing.T, path string, status int, header ...string) {
	t.Helper()
	for _, s := range []*fixture.Service{v.s, v.other} {
		fixture.AwaitFresh(t, path, func() bool {
			return apiclient.Call(t, http.MethodGet, s.API+"/registries/"+path, nil, header...).Status == status
		})
	}
}

// names returns the entries of a list, the latest versions with a star.
func (v *viewed) names(t *testing.T, path string, header ...string) []string {
	t.Helper()
	var l fixture.ServerPage
	v.read(t, path, header...).WantStatus(t, 200).Decode(t, &l)
	names := []string{}
	for _, r := range l.Servers {
		id := r.ID()
		if r.Meta[fixture.OfficialKey].IsLatest {
			id += "*"
		}
		names = append(names, id)
	}
	return names
}

func (v *viewed) wantNames(t *testing.T, path string, want ...string) {
	t.Helper()
	if got := v.names(t, path); !slices.Equal(got, want) {
		t.Errorf("%s has %q, want %q", path, got, want)
	}
}

func checkSelection(t *testing.T, v *viewed) {
	team := []string{
		"com.example/a@1.0.0", "com.example/a@2.0.0*", "com.example/b@1.0.0", "com.example/b@2.0.0*",
		"com.example/old@1.0.0*",
	}
	for _, prefix := range []string{"/v0.1", "/v0"} {
		v.wantNames(t, "team"+prefix+"/servers", team...)
		v.wantNames(t, "team/t/any"+prefix+"/servers?search=EXAMPLE/A", "com.example/a@1.0.0", "com.example/a@2.0.0*")
		v.wantNames(t, "team"+prefix+"/servers/com.example%2Fa/versions", "com.example/a@2.0.0*", "com.example/a@1.0.0")
		v.wantNames(t, "all"+prefix+"/servers?search=org", "org.example/c@1.0.0*")
		v.read(t, "team"+prefix+fixture.ServerPath("com.example/a", "latest")).WantStatus(t, 200)
		for _, name := range []string{"com.example/draft", "org.example/c"} {
			wantFault(t, v.read(t, "team"+prefix+fixture.ServerPath(name, "latest")), 404, "not found")
			wantFault(t, v.read(t, "team"+prefix+fixture.ServerPath(name, "1.0.0")), 404, "not found")
			wantFault(t, v.read(t, "team"+prefix+fixture.ServerPath(name)+"/versions"), 404, "not found")
		}
		wantFault(t, v.read(t, "unknown"+prefix+"/servers"), 404, "registry view not found")
	}
	var pages []string
	for query := "limit=2"; query != ""; {
		var l fixture.ServerPage
		v.read(t, "team/v0.1/servers?"+query).WantStatus(t, 200).Decode(t, &l)
		pages = append(pages, l.Names()...)
		query = ""
		if l.Next() != "" {
			query = "limit=2&cursor=" + url.QueryEscape(l.Next())
		}
	}
	if got := strings.Join(pages, " "); got != strings.ReplaceAll(strings.Join(team, " "), "*", "") {
		t.Errorf("pages have %s", got)
	}
}

func checkHidden(t *testing.T, v *viewed) {
	all := []string{
		"com.example/a@1.0.0", "com.example/a@2.0.0*", "com.example/b@1.0.0*", "com.example/draft@1.0.0*",
		"org.example/c@1.0.0*",
	}
	v.wantNames(t, "stable/v0.1/servers", all...)
	v.wantNames(t, "stable/v0.1/servers?include_deleted=true", all...)
	latest := slices.Delete(slices.Clone(all), 0, 1)
	v.wantNames(t, "stable/v0.1/servers?version=latest", latest...)
	v.wantNames(t, "stable/v0.1/servers?version=latest&updated_since=2020-01-01T00:00:00Z", latest...)
	v.wantNames(t, "stable/v0.1/servers?version=2.0.0", "com.example/a@2.0.0*")
	v.wantNames(t, "stable/v0.1/servers/com.example%2Fb/versions", "com.example/b@1.0.0*")
	for version, want := range map[string]string{"latest": "1.0.0", "1.0.0": "1.0.0"} {
		r := decodeRecord(t, v.read(t, "stable/v0.1"+fixture.ServerPath("com.example/b", version)))
		if r.Server["version"] != want || !r.Meta[fixture.OfficialKey].IsLatest {
			t.Errorf("%s is %s, latest: %t", version, r.ID(), r.Meta[fixture.OfficialKey].IsLatest)
		}
	}
	wantFault(t, v.read(t, "stable/v0.1"+fixture.ServerPath("com.example/b", "2.0.0")), 404, "not found")
	wantFault(t, v.read(t, "stable/v0.1"+fixture.ServerPath("com.example/old", "latest")), 404, "not found")
	wantFault(t, v.read(t, "stable/v0.1"+fixture.ServerPath("com.example/old")+"/versions"), 404, "not found")
	v.wantNames(t, "team/v0.1/servers?version=latest&search=/b", "com.example/b@2.0.0*")
}

// checkViewCursors: a cursor is good in its own view only.
func checkViewCursors(t *testing.T, v *viewed) {
	places := map[string]string{
		"": "/v0.1", "all": "/registries/all/v0.1", "team": "/registries/team/v0", "stable": "/registries/stable/v0.1",
	}
	for from, path := range places {
		var l fixture.ServerPage
		apiclient.Call(t, "GET", v.s.API+path+"/servers?limit=1", nil).WantStatus(t, 200).Decode(t, &l)
		for to, other := range places {
			a := apiclient.Call(t, "GET", v.s.API+other+"/servers?cursor="+url.QueryEscape(l.Next()), nil)
			if to == from {
				a.WantStatus(t, 200)
			} else {
				wantFault(t, a, 400, "cursor", "another view")
			}
		}
	}
}

func checkViewTokens(t *testing.T, v *viewed) {
	token := strings.TrimSpace(v.run(t, "view", "token", "add", "inner"))
	second := strings.TrimSpace(v.run(t, "view", "token", "add", "inner", "--name", "second"))
	bearer := []string{"Authorization", "Bearer " + token}
	v.await(t, "inner/v0.1/servers", 200, bearer...)
	v.await(t, "inner/t/"+second+"/v0.1/servers", 200)
	if got := v.names(t, "inner/t/"+token+"/v0/servers?version=latest"); len(got) != 4 {
		t.Errorf("inner has %q", got)
	}
	paths := []string{
		"/v0.1/servers", "/v0/servers", "/v0.1/servers/com.example%2Fa/versions",
		"/v0.1" + fixture.ServerPath("com.example/a", "1.0.0"), "/v0.1/x/dev.tollgate" + fixture.ServerPath("com.example/a", "1.0.0") + "/tools",
		"/allowlist/claude.json", "/install?server=com.example/a&client=claude",
	}
	for _, path := range paths {
		for address, header := range map[string][]string{"inner" + path: bearer, "inner/t/" + token + path: nil} {
			a := v.read(t, address, header...).WantStatus(t, 200)
			if got := a.Header.Get("Cache-Control"); !strings.HasPrefix(got, "private, ") ||
				strings.Contains(path, "allowlist") != (got == "private, max-age=60") {
				t.Errorf("%s: Cache-Control %s", path, got)
			}
			v.read(t, address, append(slices.Clone(header), "If-None-Match", a.Header.Get("ETag"))...).
				WantStatus(t, 304)
		}
		for _, wrong := range []apiclient.Response{
			v.read(t, "inner"+path), v.read(t, "inner"+path, "Authorization", "Bearer "+token+"x"),
			v.read(t, "inner"+path, v.writer.Bearer()...),
			v.read(t, "inner/t/"+token+"x"+path), v.read(t, "inner/t/x"+path, bearer...),
		} {
			wantFault(t, wrong, 401, "needs one of its tokens")
			if !strings.HasSuffix(wrong.Header.Get("WWW-Authenticate"), `scope="mcp-registry:read"`) {
				t.Errorf("%s: WWW-Authenticate %q", path, wrong.Header.Get("WWW-Authenticate"))
			}
		}
	}
	if listed := v.run(t, "view", "token", "list",
		"inner"); !strings.Contains(listed, "default") || !strings.Contains(listed, "second") ||
		strings.Contains(listed, "tgview_") {
		t.Errorf("the tokens are listed as %s", listed)
	}
	v.run(t, "view", "token", "remove", "inner")
	v.await(t, "inner/v0.1/servers", 401, bearer...)
	v.read(t, "inner/t/"+second+"/v0.1/servers").WantStatus(t, 200)
	for _, s := range []*fixture.Service{v.s, v.other} {
		if log := s.Process.Log(); strings.Contains(log, "tgview_") {
			t.Errorf("a token is in the log: %s", log)
		}
	}
	if audit := v.run(t, "audit", "search", "--output", "json"); strings.Contains(audit, "tgview_") ||
		!strings.Contains(audit, "view_token_add") || !strings.Contains(audit, "view_token_remove") ||
		!strings.Contains(audit, "view_add") {
		t.Errorf("the audit log: %.2000s", audit)
	}
}

// checkViewStatuses gets each status that the API describes, in both forms of the paths.
func checkViewStatuses(t *testing.T, v *viewed) {
	token := strings.TrimSpace(v.run(t, "view", "token", "add", "inner", "--name", "statuses"))
	v.await(t, "inner/t/"+token+"/v0.1/servers", 200)
	for _, place := range []string{"inner", "inner/t/" + token} {
		header := []string{"Authorization", "Bearer " + token}
		for _, path := range []string{
			"/v0.1/servers?limit=0", "/v0/servers?limit=0", "/v0.1/servers/com.example%2Fa/versions?include_deleted=x",
			"/v0.1" + fixture.ServerPath("com.example/a", "1.0.0") + "?include_deleted=x", "/install?client=claude",
			"/v0.1/x/dev.tollgate" + fixture.ServerPath("com.example/a", "1.0.0") + "/tools" + "?include_deleted=x",
		} {
			v.read(t, place+path, header...).WantStatus(t, 400)
		}
		for _, path := range []string{
			"/v0.1/servers/none/versions", "/v0.1" + fixture.ServerPath("org.example/c", "1.0.0"),
			"/allowlist/none.json", "/install?server=org.example/c&client=claude",
			"/v0.1/x/dev.tollgate" + fixture.ServerPath("org.example/c", "1.0.0") + "/tools",
		} {
			v.read(t, place+path, header...).WantStatus(t, 404)
		}
		v.read(t, strings.Replace(place, "inner", "none", 1)+"/v0.1/servers", header...).WantStatus(t, 404)
		for _, path := range []string{
			"/v0.1/servers", "/v0.1/servers/com.example%2Fa/versions",
			"/v0.1" + fixture.ServerPath("com.example/a", "1.0.0"), "/allowlist/claude.json", "/install",
			"/v0.1/x/dev.tollgate" + fixture.ServerPath("com.example/a", "1.0.0") + "/tools",
			"/openapi.yaml", "/openapi.json",
		} {
			apiclient.Call(t, "OPTIONS", v.s.API+"/registries/"+place+path, nil).WantStatus(t, 204)
		}
	}
}

func checkViewAllowLists(t *testing.T, v *viewed) {
	for name, want := range map[string]string{
		"team":   `{"allowedMcpServers":[{"serverUrl":"https://com.example.a/mcp"},{"serverUrl":"https://com.example.b/mcp"},{"serverUrl":"https://com.example.old/mcp"}],"deniedMcpServers":[]}`,
		"stable": `{"allowedMcpServers":[{"serverUrl":"https://com.example.a/mcp"},{"serverUrl":"https://com.example.b/mcp"},{"serverUrl":"https://com.example.draft/mcp"},{"serverUrl":"https://org.example.c/mcp"}],"deniedMcpServers":[]}`,
	} {
		a := v.read(t, name+"/allowlist/claude.json").WantStatus(t, 200)
		var compact bytes.Buffer
		must.Succeed(t, json.Compact(&compact, a.Body))
		if got := compact.String(); got != want || a.Header.Get("Cache-Control") != "public, max-age=60" {
			t.Errorf("%s: %s, %s\nwant %s", name, a.Header.Get("Cache-Control"), got, want)
		}
		if printed := v.run(t, "allowlist", "--for", "claude", "--view", name); printed != string(a.Body) {
			t.Errorf("the command prints %s", printed)
		}
	}
	wantFault(t, v.read(t, "team/install?server=org.example/c&client=claude"), 404, "not found")
	v.read(t, "stable/install?server=com.example/b&client=claude").WantStatus(t, 200)
	wantFault(t, v.read(t, "stable/install?server=com.example/b&version=2.0.0&client=claude"), 404, "not found")
}

func checkViewCommands(t *testing.T, v *viewed) {
	var listed []struct {
		Name, Deprecated, Access string
		Include, Exclude         []string
	}
	v.ReadCommand(t, &listed, "view", "list")
	if len(listed) != 3 || listed[2].Name != "team" || !slices.Equal(listed[2].Include, []string{"com.example/*"}) ||
		listed[0].Access != "token" {
		t.Errorf("the views are listed as %+v", listed)
	}
}

// checkViewChanges: another instance sees within a second that a view is added, replaced and
// removed, also if it has kept its responses.
func checkViewChanges(t *testing.T, v *viewed) {
	path := "changing/v0.1/servers"
	v.run(t, "view", "add", "changing", "--include", "com.example/a")
	v.await(t, path, 200)
	v.run(t, "view", "remove", "changing")
	v.await(t, path, 404)
	v.run(t, "view", "add", "changing", "--include", "org.example/c")
	v.await(t, path, 200)
	v.wantNames(t, path, "org.example/c@1.0.0*")
	v.run(t, "view", "remove", "changing")
	v.run(t, "view", "add", "changing", "--access", "token")
	v.await(t, path, 401)
}

// checkViewDescription reads the description of the API below the address of views, as a registry
// does that mirrors them (contract O-16).
func checkViewDescription(t *testing.T, v *viewed) {
	token := strings.TrimSpace(v.run(t, "view", "token", "add", "inner", "--name", "description"))
	v.await(t, "inner/t/"+token+"/openapi.json", 200)
	wantToolHiveUpstream(t, v.s.API)
	for place, kept := range map[string]string{
		"all": "no-cache", "team": "no-cache", "team/t/any": "no-cache", "inner/t/" + token: "private, no-cache",
	} {
		for _, file := range []string{"/openapi.yaml", "/openapi.json"} {
			a := v.read(t, place+file).WantStatus(t, 200)
			if root := apiclient.Call(t, http.MethodGet, v.s.API+file, nil); !bytes.Equal(a.Body, root.Body) ||
				a.Header.Get("Cache-Control") != kept {
				t.Errorf("%s%s: %s, or another document", place, file, a.Header.Get("Cache-Control"))
			}
			v.read(t, place+file, "If-None-Match", a.Header.Get("ETag")).WantStatus(t, 304)
		}
	}
	for _, file := range []string{"/openapi.yaml", "/openapi.json"} {
		v.read(t, "inner"+file, "Authorization", "Bearer "+token).WantStatus(t, 200)
		v.read(t, "inner"+file).WantStatus(t, 401)
		v.read(t, "inner/t/none"+file).WantStatus(t, 401)
		v.read(t, "none"+file).WantStatus(t, 404)
		v.read(t, "none/t/"+token+file).WantStatus(t, 404)
	}
}

// wantToolHiveUpstream checks what toolhive-registry-server wants of the address of an upstream
// before it reads anything else (stacklok/toolhive-registry-server at 127c8c8,
// internal/sources/api_upstream.go, Validate).
func wantToolHiveUpstream(t *testing.T, address string) {
	t.Helper()
	var document map[string]any
	if err := yaml.Unmarshal(apiclient.Call(t, http.MethodGet, address+"/openapi.yaml", nil).WantStatus(t, 200).Body,
		&document); err != nil {
		t.Fatal(err)
	}
	info, _ := document["info"].(map[string]any)
	if version, _ := info["version"].(string); version != "1.0.0" {
		t.Errorf("%s: info.version is %q, want 1.0.0", address, version)
	}
	if description, _ := info["description"].(string); !strings.Contains(description,
		"https://github.com/modelcontextprotocol/registry") {
		t.Errorf("%s: info.description does not have the URL of the repository of the public registry", address)
	}
}
