package registry

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// checkPublication publishes a version and reads it in every way, under both prefixes.
func checkPublication(t *testing.T, r *registry) {
	name := "com.example.publication/server"
	doc := fixture.NewServerDocument(name, "1.0.0")
	published := r.write(t, "POST", "/publish", doc)
	meta := published.Official()
	if meta.Status != "active" || meta.StatusMessage != nil || !meta.IsLatest ||
		meta.PublishedAt != meta.UpdatedAt || meta.PublishedAt != meta.StatusChangedAt {
		t.Errorf("a new version is %+v", meta)
	}
	for _, prefix := range []string{"/v0.1", "/v0"} {
		for _, path := range []string{fixture.ServerPath(name, "1.0.0"), fixture.ServerPath(name, "latest")} {
			if got := decodeRecord(t,
				apiclient.Call(t, "GET", r.s.API+prefix+path, nil)); !equalJSON(t, got, published) ||
				!equalJSON(t, got.Server, doc) {
				t.Errorf("%s%s is %+v, want %+v", prefix, path, got, published)
			}
		}
		for _, path := range []string{fixture.ServerPath(name) + "/versions", "/servers?search=" + name} {
			var l fixture.ServerPage
			apiclient.Call(t, "GET", r.s.API+prefix+path, nil).WantStatus(t, http.StatusOK).Decode(t, &l)
			if len(l.Servers) != 1 || !equalJSON(t, l.Servers[0], published) || l.Metadata.NextCursor != nil {
				t.Errorf("%s%s is %+v, want %+v", prefix, path, l, published)
			}
		}
	}
	wantFault(t, r.send(t, "POST", "/publish", doc), http.StatusConflict, "1.0.0", name)
	second := fixture.NewServerDocument("com.example.publication/other", "1.0.0")
	decodeRecord(t, apiclient.Call(t, "POST", r.s.API+"/v0/publish", second, r.writer.Bearer()...))
	decodeRecord(t,
		apiclient.Call(t, "PUT", r.s.API+"/v0"+fixture.ServerPath(name, "1.0.0"), doc, r.writer.Bearer()...))
	decodeRecord(t,
		apiclient.Call(t, "PATCH", r.s.API+"/v0"+fixture.ServerPath(name, "1.0.0")+"/status", `{"status":"deprecated"}`,
			r.writer.Bearer()...))
	apiclient.Call(t, "PATCH", r.s.API+"/v0"+fixture.ServerPath(name)+"/status", `{"status":"active"}`,
		r.writer.Bearer()...).WantStatus(t, http.StatusOK)
	decodeRecord(t,
		apiclient.Call(t, "DELETE", r.s.API+"/v0"+fixture.ServerPath(name, "1.0.0"), nil, r.writer.Bearer()...))
	apiclient.Call(t, "POST", r.s.API+"/v0/validate", doc).WantStatus(t, http.StatusOK)
}

// checkPaths sends names and versions with escaped characters in paths.
func checkPaths(t *testing.T, r *registry) {
	name := "com.Example.paths/A_b-c.D"
	versions := []string{"1.0.0+build.5", "v2.0.0", "Release 7/a%b?#", "ü"}
	r.publish(t, name, versions...)
	for _, v := range versions {
		if got := decodeRecord(t, r.get(t, fixture.ServerPath(name, v))); got.Server["version"] != v {
			t.Errorf("%s answers version %v", v, got.Server["version"])
		}
		if got := r.list(t, "/servers?search="+name+"&version="+fixture.EscapePath(v)); len(got.Servers) != 1 {
			t.Errorf("filter %s answers %v", v, got.Names())
		}
	}
	for path, status := range map[string]int{
		fixture.ServerPath("com.example.paths/A_b-c.D", "v2.0.0"): 404, // names are case-sensitive
		fixture.ServerPath(name, "V2.0.0"):                        404, fixture.ServerPath(name): 404, "/server": 404,
		"/servers/com.Example.paths/A_b-c.D/versions/v2.0.0": 404, fixture.ServerPath("none") + "/versions": 404,
		fixture.ServerPath(name, strings.Repeat("9", 300)): 404, "/servers/a%00b%2Fc/versions": 400,
		"/servers/a%2Fb/versions/%ff": 400,
	} {
		apiclient.WantRegistryError(t, r.get(t, path).WantStatus(t, status))
	}
}

// checkHTTP checks methods, headers, content types and sizes.
func checkHTTP(t *testing.T, r *registry) {
	name := "com.example.http/server"
	r.publish(t, name, "1.0.0")
	reads := []string{
		"/servers?search=" + name, fixture.ServerPath(name) + "/versions", fixture.ServerPath(name, "1.0.0"),
		fixture.ServerPath(name, "latest"),
	}
	for _, path := range reads {
		get, head := r.get(t, path).WantStatus(t, http.StatusOK),
			apiclient.Call(t, "HEAD", r.s.API+"/v0.1"+path, nil).WantStatus(t, http.StatusOK)
		if len(head.Body) != 0 || head.Header.Get("Content-Type") != get.Header.Get("Content-Type") {
			t.Errorf("HEAD %s has %d bytes and headers %v", path, len(head.Body), head.Header)
		}
		options := apiclient.Call(t, "OPTIONS", r.s.API+"/v0.1"+path, nil, "Origin", "https://editor.example",
			"Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "authorization")
		if options.Status/100 != 2 || len(options.Body) != 0 {
			t.Errorf("OPTIONS %s is %d %s", path, options.Status, options.Body)
		}
		// Clients may send unknown parameters.
		if extra := r.get(t,
			path+map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")]+"foo=bar&search2=%00"); string(
			extra.Body) != string(get.Body) {
			t.Errorf("an unknown parameter changes %s: %s", path, extra.Body)
		}
		for _, a := range []apiclient.Response{get, head, options} {
			wantCORS(t, path, a)
		}
	}
	for path, status := range map[string]int{
		"/servers?limit=0": 400, "/servers?cursor=x": 400, fixture.ServerPath(name, "9.9.9"): 404,
		fixture.ServerPath("com.example.http/none") + "/versions":      404,
		fixture.ServerPath(name, "1.0.0") + "?include_deleted=perhaps": 400,
		fixture.ServerPath(name) + "/versions?include_deleted=perhaps": 400,
	} {
		a := r.get(t, path).WantStatus(t, status)
		apiclient.WantRegistryError(t, a)
		wantCORS(t, path, a)
		apiclient.Call(t, "HEAD", r.s.API+"/v0.1"+path, nil).WantStatus(t, status)
	}
	checkMethods(t, r, name)
	checkBodies(t, r, name)
}

func wantCORS(t *testing.T, path string, a apiclient.Response) {
	t.Helper()
	for header, want := range map[string]string{
		"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Methods": "GET, OPTIONS",
		"Access-Control-Allow-Headers": "Authorization, Content-Type",
	} {
		if got := a.Header.Get(header); got != want {
			t.Errorf("%s: %s is %q, want %q", path, header, got, want)
		}
	}
}

// checkMethods checks that an unsupported method returns 405 with the supported methods.
func checkMethods(t *testing.T, r *registry, name string) {
	for _, c := range []struct {
		method, path string
		allowed      []string
	}{
		{"POST", "/servers", []string{"GET", "HEAD", "OPTIONS"}},
		{"POST", fixture.ServerPath(name, "1.0.0"), []string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE"}},
		{"GET", "/publish", []string{"POST"}},
		{"GET", "/validate", []string{"POST"}},
		{"PUT", fixture.ServerPath(name) + "/status", []string{"PATCH"}},
	} {
		a := apiclient.Call(t, c.method, r.s.API+"/v0.1"+c.path, nil).WantStatus(t, http.StatusMethodNotAllowed)
		apiclient.WantRegistryError(t, a)
		allow := strings.Split(strings.ReplaceAll(a.Header.Get("Allow"), " ", ""), ",")
		for _, m := range c.allowed {
			if !slices.Contains(allow, m) {
				t.Errorf("%s %s allows %v, want %s", c.method, c.path, allow, m)
			}
		}
	}
}

// checkBodies sends bodies that no endpoint reads to every endpoint that has a body.
func checkBodies(t *testing.T, r *registry, name string) {
	version := fixture.ServerPath(name, "1.0.0")
	for path, end := range map[string]struct {
		method  string
		largest int // the status for a body of the largest allowed size
	}{
		"/publish":                           {"POST", http.StatusUnprocessableEntity},
		"/validate":                          {"POST", http.StatusOK},
		version:                              {"PUT", http.StatusBadRequest},
		version + "/status":                  {"PATCH", http.StatusBadRequest},
		fixture.ServerPath(name) + "/status": {"PATCH", http.StatusBadRequest},
	} {
		for body, status := range map[string]int{
			"": 400, "{": 400, "[]": 400, `{"a":1}{}`: 400, "{\"name\":\"\xff\"}": 400,
			`{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`: 400,
			strings.Repeat(" ", 1<<20+1): 413,
		} {
			apiclient.WantRegistryError(t, r.send(t, end.method, path, body).WantStatus(t, status))
		}
		as := func(contentType string) apiclient.Response {
			return r.sendIf(t, end.method, path, "{}", "Content-Type", contentType)
		}
		apiclient.WantRegistryError(t, as("application/jsonx").WantStatus(t, http.StatusUnsupportedMediaType))
		if a := as("Application/JSON; charset=utf-8"); a.Status == http.StatusUnsupportedMediaType {
			t.Errorf("%s %s refuses JSON", end.method, path)
		}
		r.send(t, end.method, path, `{"name":"`+strings.Repeat("x", 1<<20-11)+`"}`).WantStatus(t, end.largest)
	}
}

// TestWritesOff checks that writes return 501 before any other error, while reads and changes of
// status still work.
func TestWritesOff(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		on := openRegistry(t, e)
		name := "com.example.off/server"
		on.publish(t, name, "1.0.0")
		on.s.Stop()
		off := &registry{e, e.Start(t, append(fixture.RegistrySettings(), "REGISTRY_WRITES=off")...), on.writer}
		for _, w := range newWrites(name) {
			if w.method == "PATCH" {
				continue // which is on
			}
			for _, prefix := range []string{"/v0.1", "/v0"} {
				for _, header := range [][]string{nil, off.writer.Bearer(), {"Content-Type", "text/plain"}} {
					a := apiclient.Call(t, w.method, off.s.API+prefix+w.path, w.body, header...)
					apiclient.WantRegistryError(t, a.WantStatus(t, http.StatusNotImplemented))
				}
			}
		}
		if got := off.setStatus(t, name, "1.0.0", "deprecated"); got.Official().Status != "deprecated" {
			t.Errorf("status is %+v", got)
		}
		off.send(t, "PATCH", fixture.ServerPath(name)+"/status", `{"status":"active"}`).WantStatus(t, http.StatusOK)
		off.send(t, "POST", "/validate", fixture.NewServerDocument(name, "2.0.0")).WantStatus(t, http.StatusOK)
		decodeRecord(t, off.get(t, fixture.ServerPath(name, "latest")))
	})
}

// TestCursorOutlivesTheProcess checks that a cursor is valid on another instance and after a
// restart, but not on another deployment.
func TestCursorOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		r := openRegistry(t, e)
		r.publish(t, "com.example.moves/server", "1.0.0", "2.0.0", "3.0.0")
		cursor := r.list(t, "/servers?limit=1&search=Moves").Next()
		r.s.Stop()
		again := &registry{e, e.Start(t, append(fixture.RegistrySettings(), "HOST=127.0.0.1")...), r.writer}
		if got := again.list(t, "/servers?cursor="+cursor).Names(); !slices.Equal(got, []string{
			"com.example.moves/server@2.0.0", "com.example.moves/server@3.0.0",
		}) {
			t.Errorf("page is %v", got)
		}
		stranger := fixture.NewEnvironment(t, "stranger")
		stranger.Environ = append(stranger.Environ, "DATA_DIR="+filepath.Join(stranger.Dir, "other"))
		foreign := &registry{Environment: stranger, s: stranger.Start(t, fixture.RegistrySettings()...)}
		wantFault(t, foreign.get(t, "/servers?cursor="+cursor), http.StatusBadRequest, "cursor")
	})
}
