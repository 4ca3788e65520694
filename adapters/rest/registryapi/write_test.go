package registryapi_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
)

const onePath = "/servers/com.example%2Fserver/versions/1.0.0%2Bbuild"

// writes returns the write endpoints and the calls that they make.
func writes() map[string]struct{ method, path, call string } {
	return map[string]struct{ method, path, call string }{
		"publish": {"POST", "/publish", "publish"},
		"replace": {"PUT", onePath, "replace"},
		"delete":  {"DELETE", onePath, "delete"},
		"status":  {"PATCH", onePath + "/status", "status"},
		"all":     {"PATCH", "/servers/com.example%2Fserver/status", "all"},
	}
}

func TestWrites(t *testing.T) {
	for name, w := range writes() {
		for _, prefix := range []string{"/v0.1", "/v0"} {
			t.Run(name+prefix, func(t *testing.T) {
				s := &writerStub{records: []registry.Record{record(t, "com.example/server", "1.0.0+build")}}
				url := serve(t, registryapi.Config{}, newServers(t), s)
				a := call(t, w.method, url+prefix+w.path, `{"some":"body"}`, "Authorization", "Bearer the.token",
					"Content-Type", "application/json")
				if a.status != 200 || len(s.calls) != 1 || s.calls[0] != w.call {
					t.Fatalf("%d %s, called %v", a.status, a.body, s.calls)
				}
				if name == "all" {
					compareGolden(t, "changed.golden.json", a.body)
				} else {
					compareGolden(t, "version.golden.json", a.body)
				}
				if s.who != authoritytest.PersonFrom("the.token", netip.MustParseAddr("127.0.0.1")) {
					t.Errorf("the caller is %+v", s.who)
				}
				if name != "delete" && string(s.request.Body) != `{"some":"body"}` {
					t.Errorf("body %q", s.request.Body)
				}
				want := publishing.Target{Name: "com.example/server", Version: "1.0.0+build"}
				switch name {
				case "publish":
					want = publishing.Target{}
				case "all":
					want.Version = ""
				}
				if s.target != want {
					t.Errorf("target %+v, want %+v", s.target, want)
				}
			})
		}
	}
}

func TestErrorsOfWrites(t *testing.T) {
	for want, f := range map[int]*fault.Error{
		400: fault.New(fault.Invalid, "a sentence"),
		401: fault.New(fault.Unauthenticated, "a sentence").WithCode("invalid_token"),
		403: fault.New(fault.Forbidden, "a sentence").WithCode("insufficient_trust").WithDetail("challenge",
			jsonvalue.Text(`Bearer error="x"`)),
		404: fault.New(fault.NotFound, "a sentence"),
		409: fault.New(fault.Conflict, "a sentence"),
		422: fault.New(fault.Invalid, "a sentence").WithCode(registry.CodeRules),
		501: fault.New(fault.Unsupported, "a sentence"),
		503: fault.New(fault.Unavailable, "a sentence"),
	} {
		for name, w := range writes() {
			s := &writerStub{err: f}
			url := serve(t, registryapi.Config{}, newServers(t), s)
			a := call(t, w.method, url+"/v0.1"+w.path, `{}`)
			a.expect(t, want, `{"error":"a sentence"}`)
			challenge := a.header.Get("WWW-Authenticate")
			if want == 401 && challenge != "Bearer" || want == 403 && challenge != `Bearer error="x"` {
				t.Errorf("%s: WWW-Authenticate %q", name, challenge)
			}
		}
	}
}

func TestSizeAndTypeAreCheckedBeforeTheToken(t *testing.T) {
	s := &writerStub{err: fault.New(fault.Unauthenticated, "no token")}
	url := serve(t, registryapi.Config{}, newServers(t), s)
	for name, w := range writes() {
		if name == "delete" {
			continue // it has no body
		}
		a := call(t, w.method, url+"/v0.1"+w.path, "<a/>", "Content-Type", "application/xml")
		a.expect(t, 415, `{"error":"content type must be application/json"}`)
	}
	call(t, "POST", url+"/v0.1/publish", strings.Repeat(" ", rest.MaxBody+1)).
		expect(t, 413, `{"error":"body is larger than 1048576 bytes"}`)
	if len(s.calls) != 0 {
		t.Errorf("called %v", s.calls)
	}
}

func TestWritesOffIsCheckedFirst(t *testing.T) {
	s := &writerStub{err: fault.New(fault.Unsupported, "switched off")}
	url := serve(t, registryapi.Config{WritesOff: true}, newServers(t), s)
	for name, w := range writes() {
		switchable := w.method != "PATCH"
		large := call(t, w.method, url+"/v0.1"+w.path, strings.Repeat(" ", rest.MaxBody+1))
		wrongType := call(t, w.method, url+"/v0.1"+w.path, "a=b", "Content-Type", "text/plain")
		if switchable {
			large.expect(t, 501, `{"error":"writing is switched off on this registry"}`)
			wrongType.expect(t, 501, `{"error":"switched off"}`)
			continue
		}
		if large.status != 413 || wrongType.status != 415 {
			t.Errorf("%s: %d and %d", name, large.status, wrongType.status)
		}
	}
	if a := call(t, "POST", url+"/v0.1/validate", strings.Repeat(" ", rest.MaxBody+1)); a.status != 413 {
		t.Errorf("validate: %d", a.status)
	}
}

func TestValidate(t *testing.T) {
	s := &writerStub{}
	url := serve(t, registryapi.Config{}, newServers(t), s)
	good := `{"$schema":"https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",` +
		`"name":"com.example/server","description":"A server","version":"1.0.0"}`
	a := call(t, "POST", url+"/v0.1/validate", good)
	if a.status != 200 || !strings.HasPrefix(a.body, `{"valid":true,"issues":[`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	a = call(t, "POST", url+"/v0/validate", `{"name":"no slash","description":"A server","version":"1.0.0"}`)
	if a.status != 200 || !strings.HasPrefix(a.body, `{"valid":false,"issues":[{"type":"`) ||
		!strings.Contains(a.body, `{"type":"schema","path":"name","message":"`) ||
		!strings.Contains(a.body, `"severity":"error","reference":"ServerDetail/name/pattern"}`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	for _, body := range []string{"", "{", "[]", "null", `{"name":"\u0000"}`} {
		if a := call(t, "POST", url+"/v0.1/validate", body); a.status != 400 ||
			!strings.HasPrefix(a.body, `{"error":"`) {
			t.Errorf("%q: %d %s", body, a.status, a.body)
		}
	}
	call(t, "POST", url+"/v0.1/validate", "{}", "Content-Type", "text/plain").
		expect(t, 415, `{"error":"content type must be application/json"}`)
	if a := call(t, "GET", url+"/v0.1/validate", ""); a.status != 405 || a.header.Get("Allow") != "POST" {
		t.Errorf("GET: %d", a.status)
	}
}
