package registryapi_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/readcache"
	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/resttest"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
)

// TestViewTokens reads a view that needs a token, in the header and in the path.
func TestViewTokens(t *testing.T) {
	address := serve(t, registryapi.Config{}, &registryStub{}, &registryStub{}) + "/registries/"
	for _, path := range []string{"/v0.1/servers", "/v0/servers", "/v0.1/servers/a%2Fb/versions", "/allowlist/claude.json"} {
		for _, got := range []response{
			call(t, "GET", address+"inner"+path, "", "Authorization", "Bearer secret"), call(t, "GET", address+"inner/t/secret"+path, ""),
		} {
			if got.status != 200 || !strings.HasPrefix(got.header.Get("Cache-Control"), "private, ") {
				t.Errorf("%s: %+v", path, got)
			}
		}
		for _, got := range []response{
			call(t, "GET", address+"inner"+path, ""), call(t, "GET", address+"inner/t/other"+path, "", "Authorization", "Bearer secret"),
		} {
			if got.status != 401 || got.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s without the token: %+v", path, got)
			}
		}
		if got := call(t, "GET", address+"team/t/any"+path, ""); got.status != 200 || strings.Contains(got.header.Get("Cache-Control"), "private") {
			t.Errorf("%s of a public view: %+v", path, got)
		}
	}
}

// TestTokensAreNotLogged: a failure is logged with the path, and without the token in it.
func TestTokensAreNotLogged(t *testing.T) {
	var lines bytes.Buffer
	logger := logrus.New()
	logger.SetOutput(&lines)
	stub := &registryStub{}
	api, end := registryapi.New(registryapi.Config{}, registryapi.Reads{Registry: stub, Views: stubViews{stub}}, stub, readcache.Ports{})
	t.Cleanup(end)
	server := rest.New(resttest.Config(), rest.Ports{
		Parts: []rest.Part{api}, Throttle: unlimited{}, Clock: clocktest.NewManual(time.Unix(1_800_000_000, 0)), Log: logrus.NewEntry(logger),
	})
	if got := call(t, "GET", resttest.Serve(t, server)+"/registries/broken/t/hush/v0.1/servers", ""); got.status != 500 {
		t.Fatalf("%+v", got)
	}
	if text := lines.String(); strings.Contains(text, "hush") || !strings.Contains(text, "/registries/broken/t/[token]/v0.1/servers") {
		t.Errorf("the log is %s", text)
	}
}

// TestReadsOfViews: each read of a view reads the servers of the view, and never the registry itself.
func TestReadsOfViews(t *testing.T) {
	whole, part := &registryStub{}, &registryStub{err: fault.New(fault.NotFound, "not in the view")}
	api, end := registryapi.New(registryapi.Config{}, registryapi.Reads{Registry: whole, Views: stubViews{part}}, whole, readcache.Ports{})
	t.Cleanup(end)
	server := rest.New(resttest.Config(), rest.Ports{
		Parts: []rest.Part{api}, Throttle: unlimited{}, Clock: clocktest.NewManual(time.Unix(1_800_000_000, 0)), Log: discardLog(),
	})
	address := resttest.Serve(t, server) + "/registries/"
	for _, place := range []string{"all", "team", "team/t/any", "inner/t/secret"} {
		for path, want := range map[string]string{
			"/v0.1/servers": "list", "/v0/servers": "list", "/v0.1/servers/a%2Fb/versions": "versions", "/v0/servers/a%2Fb/versions": "versions",
			"/v0.1/servers/a%2Fb/versions/1.0.0": "version", "/v0/servers/a%2Fb/versions/latest": "version", "/install?server=a/b&client=claude": "version",
		} {
			part.calls = nil
			got := call(t, "GET", address+place+path, "")
			if got.status != 404 || len(part.calls) != 1 || part.calls[0] != want {
				t.Errorf("%s%s: %d after the calls %q", place, path, got.status, part.calls)
			}
		}
	}
	if len(whole.calls) > 0 {
		t.Errorf("the registry itself got %q", whole.calls)
	}
}
