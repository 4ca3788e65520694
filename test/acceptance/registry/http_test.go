package registry

import (
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
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
	versions := []string{"1.0.0+build.5", "v2.0.0", "2021-03-15", "1.0.0-rc.1", "Release 7/a%b?#", "ü"}
	r.publish(t, name, versions...)
	for _, v := range versions {
		if got := decodeRecord(t, r.get(t, fixture.ServerPath(name, v))); got.Server["version"] != v {
			t.Errorf("%s answers version %v", v, got.Server["version"])
		}
		if got := r.list(t, "/servers?search="+name+"&version="+fixture.EscapePath(v)); len(got.Servers) != 1 {
			t.Errorf("filter %s answers %v", v, got.Names())
		}
	}
	for _, path := range []string{
		// names are case-sensitive
		fixture.ServerPath("com.example.paths/A_b-c.D", "v2.0.0"),
		fixture.ServerPath("com.Example.paths/a_b-c.d", "v2.0.0"),
		// and versions
		fixture.ServerPath(name, "V2.0.0"), fixture.ServerPath(name, "2.0.0"), fixture.ServerPath(name, "LATEST"),
		fixture.ServerPath("none", "1.0.0"), fixture.ServerPath("a b/c", "1.0.0"),
		fixture.ServerPath(name, strings.Repeat("9", 300)), fixture.ServerPath(name, "^1.0.0"),
		fixture.ServerPath("com.example.paths/none") + "/versions", fixture.ServerPath("none") + "/versions",
		fixture.ServerPath(name), "/servers/com.Example.paths/A_b-c.D/versions/v2.0.0", "/server",
	} {
		apiclient.WantRegistryError(t, r.get(t, path).WantStatus(t, http.StatusNotFound))
	}
	for _, path := range []string{
		"/servers/a%00b%2Fc/versions", "/servers/a%2Fb/versions/%ff", "/servers/%ff%2Fb/versions/1.0.0",
	} {
		apiclient.WantRegistryError(t, r.get(t, path).WantStatus(t, http.StatusBadRequest))
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
		if got := head.Header.Get("Content-Length"); got != "" && got != strconv.Itoa(len(get.Body)) {
			t.Errorf("HEAD %s has length %s, GET has %d", path, got, len(get.Body))
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
		{"DELETE", fixture.ServerPath(name) + "/versions", []string{"GET", "HEAD", "OPTIONS"}},
		{"POST", fixture.ServerPath(name, "1.0.0"), []string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE"}},
		{"GET", "/publish", []string{"POST"}},
		{"GET", "/validate", []string{"POST"}},
		{"PUT", fixture.ServerPath(name) + "/status", []string{"PATCH"}},
		{"GET", fixture.ServerPath(name, "1.0.0") + "/status", []string{"PATCH"}},
		{"PROPFIND", "/servers", []string{"GET"}},
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

// checkBodies sends malformed bodies to every endpoint that has a body.
func checkBodies(t *testing.T, r *registry, name string) {
	for _, end := range []struct {
		method, path string
		largest      int // the status for a body of the largest allowed size
	}{
		{"POST", "/publish", http.StatusUnprocessableEntity},
		{"POST", "/validate", http.StatusOK},
		{"PUT", fixture.ServerPath(name, "1.0.0"), http.StatusBadRequest},
		{"PATCH", fixture.ServerPath(name, "1.0.0") + "/status", http.StatusBadRequest},
		{"PATCH", fixture.ServerPath(name) + "/status", http.StatusBadRequest},
	} {
		method, path := end.method, end.path
		for _, body := range []string{
			"", " ", "{", "nothing", `{"a":1}{}`, "[]", "null", `"text"`, "7", `{"name":"\u0000"}`,
			"{\"name\":\"\x00\"}", "{\"name\":\"\xff\"}",
			`{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`,
		} {
			apiclient.WantRegistryError(t, r.send(t, method, path, body).WantStatus(t, http.StatusBadRequest))
		}
		sendAs := func(body, contentType string) apiclient.Response {
			return apiclient.Call(t, method, r.s.API+"/v0.1"+path, body,
				append(r.writer.Bearer(), "Content-Type", contentType)...)
		}
		for _, contentType := range []string{
			"text/plain", "application/x-www-form-urlencoded", "application/xml", "application/jsonx",
		} {
			apiclient.WantRegistryError(t, sendAs("{}", contentType).WantStatus(t, http.StatusUnsupportedMediaType))
		}
		for _, contentType := range []string{"application/json; charset=utf-8", "Application/JSON", ""} {
			if a := sendAs("{}", contentType); a.Status == http.StatusUnsupportedMediaType {
				t.Errorf("%s %s refuses the content type %q", method, path, contentType)
			}
		}
		apiclient.WantRegistryError(t,
			r.send(t, method, path, strings.Repeat(" ", 1<<20+1)).WantStatus(t, http.StatusRequestEntityTooLarge))
		r.send(t, method, path, `{"name":"`+strings.Repeat("x", 1<<20-11)+`"}`).WantStatus(t, end.largest)
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
		for _, prefix := range []string{"/v0.1", "/v0"} {
			for path, method := range map[string]string{
				"/publish": "POST", fixture.ServerPath(name, "1.0.0"): "PUT",
				fixture.ServerPath(name, "none"): "DELETE", "/servers/%00/versions/1": "DELETE",
				"/servers/%ff/versions/1": "PUT",
			} {
				for _, header := range [][]string{
					nil, off.writer.Bearer(), {"Authorization", "Bearer x"}, {"Content-Type", "text/plain"},
				} {
					for _, body := range []any{
						nil, "{", fixture.NewServerDocument(name, "2.0.0"), strings.Repeat(" ", 1<<20+1),
					} {
						apiclient.WantRegistryError(t,
							apiclient.Call(t, method, off.s.API+prefix+path, body, header...).WantStatus(t,
								http.StatusNotImplemented))
					}
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
