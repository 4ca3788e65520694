package registry

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestMetricsOfTheRegistry checks that each change of the registry, successful or refused, counts
// in its metrics and in no others, and that checked tokens are counted.
func TestMetricsOfTheRegistry(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		npm := fixture.StartNPMRegistry(t)
		registries := filepath.Join(e.Dir, "registries.json")
		fixture.WriteFile(t, registries, `{"npm": [{"baseUrl": "`+npm.URL+`", "token": "the-token"}]}`)
		s := e.Start(t, "PACKAGE_CHECKS=enforce", "PACKAGE_REGISTRIES="+registries)
		ada := e.NewWriter(t, s, "ada@example.com", "publish com.example/*", "edit com.example/*")
		send := func(status int, method, path string, body any) func() {
			return func() {
				t.Helper()
				apiclient.Call(t, method, s.API+"/v0.1"+path, body, ada.Bearer()...).WantStatus(t, status)
			}
		}
		doc, foreign, broken := fixture.NewServerDocument("com.example/weather", "1.0.0"),
			fixture.NewServerDocument("org.example/weather", "1.0.0"),
			fixture.NewServerDocument("com.example/weather", "2.0.0")
		delete(broken, "description")
		version := fixture.ServerPath("com.example/weather", "1.0.0")
		s.WantCounted(t, send(http.StatusOK, "POST", "/publish", doc), "publications_total publish done")
		s.WantCounted(t, send(http.StatusConflict, "POST", "/publish", doc), "publications_total publish conflict")
		s.WantCounted(t, send(http.StatusForbidden, "POST", "/publish", foreign),
			"publications_total publish forbidden")
		s.WantCounted(t, send(http.StatusUnprocessableEntity, "POST", "/publish", broken),
			"publications_total publish invalid")
		s.WantCounted(t, send(http.StatusOK, "PUT", version, doc), "publications_total replace done")
		deprecated := map[string]string{"status": "deprecated"}
		s.WantCounted(t, send(http.StatusOK, "PATCH", version+"/status", deprecated), "publications_total status done")
		s.WantCounted(t,
			send(http.StatusBadRequest, "PATCH", fixture.ServerPath("com.example/weather")+"/status", deprecated),
			"publications_total status invalid")
		s.WantCounted(t, send(http.StatusOK, "DELETE", version, nil), "publications_total delete done")
		s.WantCounted(t, send(http.StatusNotFound, "DELETE", version, nil), "publications_total delete not_found")
		s.WantCounted(t, func() {
			apiclient.Call(t, "DELETE", s.API+"/v0.1"+version, nil).WantStatus(t, http.StatusUnauthorized)
		}, "publications_total delete unauthenticated")

		claimed := fixture.NewServerDocument("com.example/claimed", "1.0.0")
		claim := map[string]any{
			"registryType": "npm", "registryBaseUrl": npm.URL, "identifier": "claimed", "version": "1.0.0",
			"transport": map[string]string{"type": "stdio"},
		}
		claimed["packages"] = []any{claim}
		s.WantCounted(t, send(http.StatusOK, "POST", "/publish", claimed), "publications_total publish done",
			"package_checks_total owned npm")
		claim["identifier"], claimed["version"] = "none", "2.0.0"
		s.WantCounted(t, send(http.StatusUnprocessableEntity, "POST", "/publish", claimed),
			"publications_total publish invalid", "package_checks_total refused npm")
		claim["registryType"] = "conda"
		s.WantCounted(t, send(http.StatusUnprocessableEntity, "POST", "/publish", claimed),
			"publications_total publish invalid", "package_checks_total unsupported other")

		before := s.Metric("tollgate_session_checks_total")
		send(http.StatusNotFound, "DELETE", version, nil)()
		if n := s.Metric("tollgate_session_checks_total") - before; n != 1 {
			t.Errorf("one checked token counts %v", n)
		}
	})
}
