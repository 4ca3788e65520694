package acceptance

import (
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// checkPublication publishes and reads back, by every way of reading, under
// both prefixes.
func checkPublication(t *testing.T, r *registry) {
	name := "com.example.publication/server"
	doc := document(name, "1.0.0")
	published := r.write(t, "POST", "/publish", doc)
	meta := published.official()
	if meta.Status != "active" || meta.StatusMessage != nil || !meta.IsLatest ||
		meta.PublishedAt != meta.UpdatedAt || meta.PublishedAt != meta.StatusChangedAt {
		t.Errorf("a new version is %+v", meta)
	}
	for _, prefix := range []string{"/v0.1", "/v0"} {
		for _, path := range []string{at(name, "1.0.0"), at(name, "latest")} {
			if got := one(t, call(t, "GET", r.s.api+prefix+path, nil)); !same(t, got, published) || !same(t, got.Server, doc) {
				t.Errorf("%s%s is %+v, want %+v", prefix, path, got, published)
			}
		}
		for _, path := range []string{at(name) + "/versions", "/servers?search=" + name} {
			var l list
			call(t, "GET", r.s.api+prefix+path, nil).want(t, http.StatusOK).decode(t, &l)
			if len(l.Servers) != 1 || !same(t, l.Servers[0], published) || l.Metadata.NextCursor != nil {
				t.Errorf("%s%s is %+v, want %+v", prefix, path, l, published)
			}
		}
	}
	r.send(t, "POST", "/publish", doc).wantFault(t, http.StatusConflict, "1.0.0", name)
	second := document("com.example.publication/other", "1.0.0")
	one(t, call(t, "POST", r.s.api+"/v0/publish", second, r.writer.bearer()...))
	one(t, call(t, "PUT", r.s.api+"/v0"+at(name, "1.0.0"), doc, r.writer.bearer()...))
	one(t, call(t, "PATCH", r.s.api+"/v0"+at(name, "1.0.0")+"/status", `{"status":"deprecated"}`, r.writer.bearer()...))
	call(t, "PATCH", r.s.api+"/v0"+at(name)+"/status", `{"status":"active"}`, r.writer.bearer()...).want(t, http.StatusOK)
	one(t, call(t, "DELETE", r.s.api+"/v0"+at(name, "1.0.0"), nil, r.writer.bearer()...))
	call(t, "POST", r.s.api+"/v0/validate", doc).want(t, http.StatusOK)
}

// checkPaths sends names and versions as paths carry them.
func checkPaths(t *testing.T, r *registry) {
	name := "com.Example.paths/A_b-c.D"
	versions := []string{"1.0.0+build.5", "v2.0.0", "2021-03-15", "1.0.0-rc.1", "Release 7/a%b?#", "ü"}
	r.publish(t, name, versions...)
	for _, v := range versions {
		if got := one(t, r.get(t, at(name, v))); got.Server["version"] != v {
			t.Errorf("%s answers version %v", v, got.Server["version"])
		}
		if got := r.list(t, "/servers?search="+name+"&version="+escape(v)); len(got.Servers) != 1 {
			t.Errorf("filter %s answers %v", v, got.names())
		}
	}
	for _, path := range []string{
		at("com.example.paths/A_b-c.D", "v2.0.0"), at("com.Example.paths/a_b-c.d", "v2.0.0"), // names are case-sensitive
		at(name, "V2.0.0"), at(name, "2.0.0"), at(name, "LATEST"), // and versions
		at("none", "1.0.0"), at("a b/c", "1.0.0"), at(name, strings.Repeat("9", 300)), at(name, "^1.0.0"),
		at("com.example.paths/none") + "/versions", at("none") + "/versions",
		at(name), "/servers/com.Example.paths/A_b-c.D/versions/v2.0.0", "/server", at(name, "v2.0.0") + "/",
	} {
		wantError(t, r.get(t, path).want(t, http.StatusNotFound))
	}
	for _, path := range []string{"/servers/a%00b%2Fc/versions", "/servers/a%2Fb/versions/%ff", "/servers/%ff%2Fb/versions/1.0.0"} {
		wantError(t, r.get(t, path).want(t, http.StatusBadRequest))
	}
}

// checkHTTP looks at methods, headers, types and sizes.
func checkHTTP(t *testing.T, r *registry) {
	name := "com.example.http/server"
	r.publish(t, name, "1.0.0")
	reads := []string{"/servers?search=" + name, at(name) + "/versions", at(name, "1.0.0"), at(name, "latest")}
	for _, path := range reads {
		get, head := r.get(t, path).want(t, http.StatusOK), call(t, "HEAD", r.s.api+"/v0.1"+path, nil).want(t, http.StatusOK)
		if len(head.body) != 0 || head.header.Get("Content-Type") != get.header.Get("Content-Type") {
			t.Errorf("HEAD %s has %d bytes and headers %v", path, len(head.body), head.header)
		}
		if got := head.header.Get("Content-Length"); got != "" && got != strconv.Itoa(len(get.body)) {
			t.Errorf("HEAD %s has length %s, GET has %d", path, got, len(get.body))
		}
		options := call(t, "OPTIONS", r.s.api+"/v0.1"+path, nil, "Origin", "https://editor.example",
			"Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "authorization")
		if options.status/100 != 2 || len(options.body) != 0 {
			t.Errorf("OPTIONS %s is %d %s", path, options.status, options.body)
		}
		// Clients send parameters of their own.
		if extra := r.get(t, path+map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")]+"foo=bar&search2=%00"); string(extra.body) != string(get.body) {
			t.Errorf("an unknown parameter changes %s: %s", path, extra.body)
		}
		for _, a := range []answer{get, head, options} {
			wantCORS(t, path, a)
		}
	}
	for path, status := range map[string]int{
		"/servers?limit=0": 400, "/servers?cursor=x": 400, at(name, "9.9.9"): 404, at("com.example.http/none") + "/versions": 404,
		at(name, "1.0.0") + "?include_deleted=perhaps": 400, at(name) + "/versions?include_deleted=perhaps": 400,
	} {
		a := r.get(t, path).want(t, status)
		wantError(t, a)
		wantCORS(t, path, a)
		call(t, "HEAD", r.s.api+"/v0.1"+path, nil).want(t, status)
	}
	checkMethods(t, r, name)
	checkBodies(t, r, name)
}

func wantCORS(t *testing.T, path string, a answer) {
	t.Helper()
	for header, want := range map[string]string{
		"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Methods": "GET, OPTIONS",
		"Access-Control-Allow-Headers": "Authorization, Content-Type",
	} {
		if got := a.header.Get(header); got != want {
			t.Errorf("%s: %s is %q, want %q", path, header, got, want)
		}
	}
}

// checkMethods wants 405 with what there is instead.
func checkMethods(t *testing.T, r *registry, name string) {
	for _, c := range []struct {
		method, path string
		allowed      []string
	}{
		{"POST", "/servers", []string{"GET", "HEAD", "OPTIONS"}},
		{"DELETE", at(name) + "/versions", []string{"GET", "HEAD", "OPTIONS"}},
		{"POST", at(name, "1.0.0"), []string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE"}},
		{"GET", "/publish", []string{"POST"}},
		{"GET", "/validate", []string{"POST"}},
		{"PUT", at(name) + "/status", []string{"PATCH"}},
		{"GET", at(name, "1.0.0") + "/status", []string{"PATCH"}},
		{"PROPFIND", "/servers", []string{"GET"}},
	} {
		a := call(t, c.method, r.s.api+"/v0.1"+c.path, nil).want(t, http.StatusMethodNotAllowed)
		wantError(t, a)
		allow := strings.Split(strings.ReplaceAll(a.header.Get("Allow"), " ", ""), ",")
		for _, m := range c.allowed {
			if !slices.Contains(allow, m) {
				t.Errorf("%s %s allows %v, want %s", c.method, c.path, allow, m)
			}
		}
	}
}

// checkBodies sends bodies that cannot be read, to every endpoint with one.
func checkBodies(t *testing.T, r *registry, name string) {
	for _, end := range []struct {
		method, path string
		largest      int // the status of a body as large as may be
	}{
		{"POST", "/publish", http.StatusUnprocessableEntity},
		{"POST", "/validate", http.StatusOK},
		{"PUT", at(name, "1.0.0"), http.StatusBadRequest},
		{"PATCH", at(name, "1.0.0") + "/status", http.StatusBadRequest},
		{"PATCH", at(name) + "/status", http.StatusBadRequest},
	} {
		method, path := end.method, end.path
		for _, body := range []string{
			"", " ", "{", "nothing", `{"a":1}{}`, "[]", "null", `"text"`, "7", `{"name":"\u0000"}`, "{\"name\":\"\x00\"}", "{\"name\":\"\xff\"}",
			`{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`,
		} {
			wantError(t, r.send(t, method, path, body).want(t, http.StatusBadRequest))
		}
		sendAs := func(body, contentType string) answer {
			return call(t, method, r.s.api+"/v0.1"+path, body, append(r.writer.bearer(), "Content-Type", contentType)...)
		}
		for _, contentType := range []string{"text/plain", "application/x-www-form-urlencoded", "application/xml", "application/jsonx"} {
			wantError(t, sendAs("{}", contentType).want(t, http.StatusUnsupportedMediaType))
		}
		for _, contentType := range []string{"application/json; charset=utf-8", "Application/JSON", ""} {
			if a := sendAs("{}", contentType); a.status == http.StatusUnsupportedMediaType {
				t.Errorf("%s %s refuses the content type %q", method, path, contentType)
			}
		}
		wantError(t, r.send(t, method, path, strings.Repeat(" ", 1<<20+1)).want(t, http.StatusRequestEntityTooLarge))
		r.send(t, method, path, `{"name":"`+strings.Repeat("x", 1<<20-11)+`"}`).want(t, end.largest)
	}
}

// TestWritesOff wants 501 before anything else, reads and changes of status as
// ever.
func TestWritesOff(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		on := openRegistry(t, e)
		name := "com.example.off/server"
		on.publish(t, name, "1.0.0")
		on.s.stop()
		off := &registry{e, e.start(t, append(registryEnviron(), "REGISTRY_WRITES=off")...), on.writer}
		for _, prefix := range []string{"/v0.1", "/v0"} {
			for path, method := range map[string]string{
				"/publish": "POST", at(name, "1.0.0"): "PUT", at(name, "none"): "DELETE", "/servers/%00/versions/1": "DELETE", "/servers/%ff/versions/1": "PUT",
			} {
				for _, header := range [][]string{nil, off.writer.bearer(), {"Authorization", "Bearer x"}, {"Content-Type", "text/plain"}} {
					for _, body := range []any{nil, "{", document(name, "2.0.0"), strings.Repeat(" ", 1<<20+1)} {
						wantError(t, call(t, method, off.s.api+prefix+path, body, header...).want(t, http.StatusNotImplemented))
					}
				}
			}
		}
		if got := off.setStatus(t, name, "1.0.0", "deprecated"); got.official().Status != "deprecated" {
			t.Errorf("status is %+v", got)
		}
		off.send(t, "PATCH", at(name)+"/status", `{"status":"active"}`).want(t, http.StatusOK)
		off.send(t, "POST", "/validate", document(name, "2.0.0")).want(t, http.StatusOK)
		one(t, off.get(t, at(name, "latest")))
	})
}

// TestCursorOutlivesTheProcess wants a cursor good on another instance, after
// a restart, and on no other deployment.
func TestCursorOutlivesTheProcess(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		r := openRegistry(t, e)
		r.publish(t, "com.example.moves/server", "1.0.0", "2.0.0", "3.0.0")
		cursor := r.list(t, "/servers?limit=1&search=Moves").next()
		r.s.stop()
		again := &registry{e, e.start(t, append(registryEnviron(), "HOST=127.0.0.1")...), r.writer}
		if got := again.list(t, "/servers?cursor="+cursor).names(); !slices.Equal(got, []string{"com.example.moves/server@2.0.0", "com.example.moves/server@3.0.0"}) {
			t.Errorf("page is %v", got)
		}
		stranger := newEnvironment(t, "stranger")
		stranger.environ = append(stranger.environ, "DATA_DIR="+filepath.Join(stranger.dir, "other"))
		foreign := &registry{environment: stranger, s: stranger.start(t, registryEnviron()...)}
		foreign.get(t, "/servers?cursor="+cursor).wantFault(t, http.StatusBadRequest, "cursor")
	})
}
