package registryapi_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// TestViewTokens reads a view that needs a token, in the header and in the path.
func TestViewTokens(t *testing.T) {
	address := serve(t, registryapi.Config{}, newServers(t, record(t, "com.example/a", "1.0.0")), nil) + "/registries/"
	for _, path := range []string{
		"/v0.1/servers", "/v0/servers", "/v0.1/servers/com.example%2Fa/versions", "/allowlist/claude.json",
	} {
		for _, got := range []response{
			call(t, "GET", address+"inner"+path, "", "Authorization", "Bearer secret"),
			call(t, "GET", address+"inner/t/secret"+path, ""),
		} {
			if got.status != 200 || !strings.HasPrefix(got.header.Get("Cache-Control"), "private, ") {
				t.Errorf("%s: %+v", path, got)
			}
		}
		for _, got := range []response{
			call(t, "GET", address+"inner"+path, ""),
			call(t, "GET", address+"inner/t/other"+path, "", "Authorization", "Bearer secret"),
		} {
			if got.status != 401 || !strings.HasSuffix(got.header.Get("WWW-Authenticate"), readParameter) {
				t.Errorf("%s without the token: %+v", path, got)
			}
		}
		if got := call(t, "GET", address+"team/t/any"+path, ""); got.status != 200 ||
			strings.Contains(got.header.Get("Cache-Control"), "private") {
			t.Errorf("%s of a public view: %+v", path, got)
		}
	}
}

// brokenViews cannot be read.
type brokenViews struct{ registrystore.Views }

func (brokenViews) List(context.Context) ([]view.View, error) { return nil, errors.New("broken") }

// TestTokensAreNotLogged: a failure is logged with the path, and without the token in it.
func TestTokensAreNotLogged(t *testing.T) {
	var lines bytes.Buffer
	logger := logrus.New()
	logger.SetOutput(&lines)
	url := serveReads(t, registryapi.Config{}, newReads(newServers(t), brokenViews{}), nil, logrus.NewEntry(logger))
	if got := call(t, "GET", url+"/registries/broken/t/hush/v0.1/servers", ""); got.status != 503 {
		t.Fatalf("%+v", got)
	}
	if text := lines.String(); strings.Contains(text, "hush") ||
		!strings.Contains(text, "/registries/broken/t/[token]/v0.1/servers") {
		t.Errorf("the log is %s", text)
	}
}

// TestReadsOfViews: each read of a view reads the servers of the view, and never the registry
// itself.
func TestReadsOfViews(t *testing.T) {
	url := serve(t, registryapi.Config{},
		newServers(t, record(t, "com.example/in", "1.0.0"), record(t, "org.example/out", "1.0.0")), nil)
	reads := map[string]int{ // the statuses for a server that is not in the view
		"/v0.1/servers?search=%s": 200, "/v0/servers?search=%s": 200, "/v0.1/servers/%s/versions": 404,
		"/v0/servers/%s/versions":         404,
		"/v0.1/servers/%s/versions/1.0.0": 404, "/v0/servers/%s/versions/latest": 404,
		"/install?server=%s&client=claude": 404,
	}
	for place, isWhole := range map[string]bool{
		"all": true, "team": false, "team/t/any": false, "inner/t/secret": false,
	} {
		for path, outside := range reads {
			inside := strings.ReplaceAll(path, "%s", "com.example%2Fin")
			if got := call(t, "GET", url+"/registries/"+place+inside,
				""); got.status != 200 && !strings.Contains(path, "install") ||
				strings.Contains(got.body, `"count":0`) {
				t.Errorf("%s%s: %d %s", place, inside, got.status, got.body)
			}
			path = strings.ReplaceAll(path, "%s", "org.example%2Fout")
			got := call(t, "GET", url+"/registries/"+place+path, "")
			shown := got.status == 200 && !strings.Contains(got.body, `"count":0`) ||
				strings.Contains(got.body, "it has neither packages nor remotes")
			if shown != isWhole || !isWhole && got.status != outside {
				t.Errorf("%s%s: %d %s", place, path, got.status, got.body)
			}
		}
	}
}
