package plugins

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestPackageChecks publishes documents with packages of a private npm registry. The real plugin
// calls this registry.
func TestPackageChecks(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		npm := fixture.StartNPMRegistry(t)
		registries := filepath.Join(e.Dir, "registries.json")
		content, err := json.Marshal(map[string]any{
			"npm": []any{map[string]string{"baseUrl": npm.URL, "token": "the-token"}},
		})
		must.Succeed(t, err)
		fixture.WriteFile(t, registries, string(content))
		s := e.Start(t, "PACKAGE_CHECKS=enforce", "PACKAGE_REGISTRIES="+registries)
		p := e.NewPerson(t, "ada@example.com", "publish *")
		p.Login(t, s)
		p.StepUp(t, e, s)
		publish := func(s *fixture.Service, name, registryType, identifier, version string) apiclient.Response {
			doc := fixture.NewServerDocument(name, version)
			doc["packages"] = []any{map[string]any{
				"registryType": registryType, "registryBaseUrl": npm.URL, "identifier": identifier, "version": version,
				"transport": map[string]string{"type": "stdio"},
			}}
			return apiclient.Call(t, "POST", s.API+"/v0.1/publish", doc, p.Bearer()...)
		}
		publish(s, "com.example/claimed", "npm", "claimed", "1.0.0").WantStatus(t, http.StatusOK)
		for _, refused := range []struct{ name, registryType, identifier, version, says string }{
			{"com.example/other", "npm", "claimed", "1.0.0", "mcpName"},
			{"com.example/claimed", "npm", "claimed", "2.0.0", "2.0.0"},
			{"com.example/claimed", "npm", "none", "3.0.0", "none"},
			{"com.example/claimed", "conda", "claimed", "4.0.0", "npm"},
		} {
			a := publish(s, refused.name, refused.registryType, refused.identifier, refused.version).WantStatus(t,
				http.StatusUnprocessableEntity)
			if sentence := apiclient.WantRegistryError(t, a); !strings.Contains(sentence, refused.says) ||
				!strings.Contains(sentence, "packages[0]") {
				t.Errorf("%v: %q", refused, sentence)
			}
		}
		away := publish(s, "com.example/claimed", "npm", "broken", "5.0.0").WantStatus(t, http.StatusServiceUnavailable)
		if sentence := apiclient.WantRegistryError(t, away); strings.Count(sentence, "try again later") != 1 {
			t.Errorf("a registry that is away: %q", sentence)
		}
		apiclient.Call(t, "GET", fixture.ServerURL(s, "com.example/claimed", "/versions/5.0.0"), nil).WantStatus(t,
			http.StatusNotFound)
		if e.Shared {
			lenient := e.Start(t, "PACKAGE_CHECKS=warn", "PACKAGE_REGISTRIES="+registries)
			publish(lenient, "com.example/claimed", "npm", "none", "6.0.0").WantStatus(t, http.StatusOK)
			a := apiclient.Call(t, "GET", lenient.API+"/audit-logs?eventType=REGISTRY_CHANGE&limit=1", nil,
				p.Bearer()...).WantStatus(t, http.StatusOK)
			if !strings.Contains(string(a.Body), "none") {
				t.Errorf("the audit log does not name the failed check of the accepted package: %s", a.Body)
			}
		}
	})
}
