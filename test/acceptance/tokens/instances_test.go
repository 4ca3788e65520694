package tokens

import (
	"net/http"
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/apiclient"
	"github.com/tollgate-dev/tollgate/test/acceptance/internal/fixture"
)

// TestEndsOnEveryInstance checks that what ends a token on one instance ends it on the other one
// too, which has just accepted it, at the next request.
func TestEndsOnEveryInstance(t *testing.T) {
	t.Parallel()
	fixture.InEachEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		s := startSite(t, e)
		other := e.Start(t, fixture.RegistrySettings()...)
		onOther := func(secret, path string) int {
			t.Helper()
			return apiclient.Call(t, "GET", other.API+path, nil, bearer(secret)...).Status
		}
		act := func(method, path string, body any) func(token) {
			return func(token) {
				t.Helper()
				if a := s.call(t, method, path, body, s.operator.Bearer()...); a.Status >= http.StatusBadRequest {
					t.Errorf("%s %s: %d %s", method, path, a.Status, a.Body)
				}
			}
		}
		for _, c := range []struct {
			name string
			end  func(made token)
		}{
			{"the token is deleted", func(made token) { act("DELETE", ciTokens+"/"+made.ID, nil)(made) }},
			{"the account is disabled", act("PUT", ci, map[string]any{"state": "disabled"})},
			{"the account is deleted", act("DELETE", ci, nil)},
		} {
			s.makeService(t)
			made := s.make(t, ciTokens, s.operator.Bearer(), "registry:read")
			if status := onOther(made.Token, me); status != http.StatusOK {
				t.Fatalf("before %s: %d", c.name, status)
			}
			c.end(made)
			if status := onOther(made.Token, me); status != http.StatusUnauthorized {
				t.Errorf("after %s: %d", c.name, status)
			}
		}
		for _, verb := range []string{"lock", "disable"} {
			owner := e.NewWriter(t, s.Service, verb+"@example.com", "publish com.example/*")
			made := s.make(t, myTokens, owner.Bearer(), "registry:read")
			if status := onOther(made.Token, me); status != http.StatusOK {
				t.Fatalf("before %s: %d", verb, status)
			}
			e.RunCommand(t, "", "user", verb, "--email", verb+"@example.com")
			if status := onOther(made.Token, me); status != http.StatusUnauthorized {
				t.Errorf("after %s: %d", verb, status)
			}
		}
		s.makeService(t, "operate *")
		made := s.make(t, ciTokens, s.operator.Bearer(), "admin:read")
		if status := onOther(made.Token, services); status != http.StatusOK {
			t.Fatalf("with the grant: %d", status)
		}
		e.RunCommand(t, "", "grant", "remove", "--service", "ci", "--action", "operate", "--resource", "*")
		if status := onOther(made.Token, services); status != http.StatusForbidden {
			t.Errorf("without the grant: %d", status)
		}
	})
}
