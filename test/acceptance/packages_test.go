package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackageChecks publishes documents with packages of a private npm
// registry, which the real plugin asks.
func TestPackageChecks(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		npm := npmRegistry(t)
		registries := filepath.Join(e.dir, "registries.json")
		content, err := json.Marshal(map[string]any{"npm": []any{map[string]string{"baseUrl": npm.URL, "token": "the-token"}}})
		if err != nil {
			t.Fatal(err)
		}
		write(t, registries, string(content))
		s := e.start(t, "PACKAGE_CHECKS=enforce", "PACKAGE_REGISTRIES="+registries)
		p := e.newPerson(t, "ada@example.com", "publish *")
		p.login(t, s)
		p.stepUp(t, e, s)
		publish := func(s *service, name, registryType, identifier, version string) answer {
			doc := document(name, version)
			doc["packages"] = []any{map[string]any{
				"registryType": registryType, "registryBaseUrl": npm.URL, "identifier": identifier, "version": version,
				"transport": map[string]string{"type": "stdio"},
			}}
			return call(t, "POST", s.api+"/v0.1/publish", doc, p.bearer()...)
		}
		publish(s, "com.example/claimed", "npm", "claimed", "1.0.0").want(t, http.StatusOK)
		for _, refused := range []struct{ name, registryType, identifier, version, says string }{
			{"com.example/other", "npm", "claimed", "1.0.0", "mcpName"},
			{"com.example/claimed", "npm", "claimed", "2.0.0", "2.0.0"},
			{"com.example/claimed", "npm", "none", "3.0.0", "none"},
			{"com.example/claimed", "conda", "claimed", "4.0.0", "npm"},
		} {
			a := publish(s, refused.name, refused.registryType, refused.identifier, refused.version).want(t, http.StatusUnprocessableEntity)
			if sentence := wantError(t, a); !strings.Contains(sentence, refused.says) || !strings.Contains(sentence, "packages[0]") {
				t.Errorf("%v: %q", refused, sentence)
			}
		}
		away := publish(s, "com.example/claimed", "npm", "broken", "5.0.0").want(t, http.StatusServiceUnavailable)
		if sentence := wantError(t, away); strings.Count(sentence, "try again later") != 1 {
			t.Errorf("a registry that is away: %q", sentence)
		}
		call(t, "GET", serverURL(s, "com.example/claimed", "/versions/5.0.0"), nil).want(t, http.StatusNotFound)
		if e.shared {
			lenient := e.start(t, "PACKAGE_CHECKS=warn", "PACKAGE_REGISTRIES="+registries)
			publish(lenient, "com.example/claimed", "npm", "none", "6.0.0").want(t, http.StatusOK)
			a := call(t, "GET", lenient.api+"/audit-logs?eventType=REGISTRY_CHANGE&limit=1", nil, p.bearer()...).want(t, http.StatusOK)
			if !strings.Contains(string(a.body), "none") {
				t.Errorf("the audit log does not tell of the package that is kept all the same: %s", a.body)
			}
		}
	})
}

// npmRegistry answers as an npm registry with one package, claimed by
// com.example/claimed in version 1.0.0, and one that it cannot serve.
func npmRegistry(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer the-token" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		const manifest = `{"name":"claimed","version":"1.0.0","mcpName":"com.example/claimed"}`
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasPrefix(r.URL.Path, "/broken"):
			w.WriteHeader(http.StatusBadGateway)
		case r.URL.Path == "/claimed/1.0.0":
			_, _ = fmt.Fprint(w, manifest)
		case r.URL.Path == "/claimed":
			_, _ = fmt.Fprintf(w, `{"name":"claimed","versions":{"1.0.0":%s}}`, manifest)
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `"version not found"`)
		}
	}))
	t.Cleanup(server.Close)
	return server
}
