package tokens

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// TestEndsOnEveryInstance checks that what ends a token on one instance ends it on the other one
// too, which has just accepted it, at the next request.
func TestEndsOnEveryInstance(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		issuer := oidcissuer.Start(t)
		const origin = "https://tools.example.com"
		settings := []string{"OIDC_ISSUERS=" + issuer.URL, "PUBLIC_URL=" + origin}
		s := startSite(t, e, settings...)
		other := e.Start(t, append(fixture.RegistrySettings(), settings...)...)
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
			workload := s.proveWorkload(t, issuer, origin)
			if status := onOther(made.Token, me); status != http.StatusOK {
				t.Fatalf("before %s: %d", c.name, status)
			}
			if status := onOther(workload, me); status != http.StatusOK {
				t.Fatalf("a workload before %s: %d", c.name, status)
			}
			c.end(made)
			if status := onOther(made.Token, me); status != http.StatusUnauthorized {
				t.Errorf("after %s: %d", c.name, status)
			}
			want := http.StatusUnauthorized
			if c.name == "the token is deleted" { // another one
				want = http.StatusOK
			}
			if status := onOther(workload, me); status != want {
				t.Errorf("a workload after %s: %d, want %d", c.name, status, want)
			}
		}
		for verb, undo := range map[string]string{"lock": "unlock", "disable": "enable"} {
			owner := e.NewWriter(t, s.Service, verb+"@example.com", "publish com.example/*")
			made := s.make(t, myTokens, owner.Bearer(), "registry:read")
			if status := onOther(made.Token, me); status != http.StatusOK {
				t.Fatalf("before %s: %d", verb, status)
			}
			e.RunCommand(t, "", "user", verb, "--email", owner.Email)
			if status := onOther(made.Token, me); status != http.StatusUnauthorized {
				t.Errorf("after %s: %d", verb, status)
			}
			e.RunCommand(t, "", "user", undo, "--email", owner.Email)
			await.Until(t, "the token after "+undo, func() bool { return onOther(made.Token, me) == http.StatusOK })
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

// proveWorkload lets the service account ci admit the identities of an issuer, and returns the token
// of one.
func (s *site) proveWorkload(t *testing.T, issuer *oidcissuer.Issuer, origin string) string {
	t.Helper()
	workload := map[string]any{"issuer": issuer.URL, "subject": "repo:acme/*", "scopes": []string{"registry:read"}}
	s.call(t, "PUT", ci, map[string]any{"workloads": []any{workload}}, s.operator.Bearer()...).
		WantStatus(t, http.StatusOK)
	claims := issuer.NewClaims(origin, time.Now())
	claims["sub"] = "repo:acme/tools"
	claims["jti"] = fmt.Sprint(time.Now().UnixNano()) // each proof is good once
	var proved struct{ AccessToken string }
	s.call(t, "POST", "/auth/workload", map[string]string{"serviceAccount": "ci", "token": issuer.Sign(t, claims)}).
		WantStatus(t, http.StatusOK).Decode(t, &proved)
	s.secrets = append(s.secrets, proved.AccessToken)
	return proved.AccessToken
}

// TestSessionEndsOnEveryInstance checks that what ends a session on one instance ends it on the other
// one too, which has just accepted it.
func TestSessionEndsOnEveryInstance(t *testing.T) {
	t.Parallel()
	e := fixture.NewProduction(t)
	s := startSite(t, e)
	other := e.Start(t, fixture.RegistrySettings()...)
	for _, c := range []struct{ name, method, path string }{
		{"sign-out", "POST", "/auth/logout"},
		{"end", "DELETE", "/sessions/SESSION"},
		{"end-sessions", "POST", admin + "/people/PERSON/end-sessions"},
		{"disable", "POST", admin + "/people/PERSON/disable"},
	} {
		owner := e.NewWriter(t, s.Service, c.name+"@example.com")
		onOther := func() int {
			return apiclient.Call(t, "GET", other.API+"/auth/session", nil, owner.Bearer()...).Status
		}
		if status := onOther(); status != http.StatusOK {
			t.Fatalf("before %s: %d", c.name, status)
		}
		session, person := fixture.ReadSession(t, s.Service, owner)
		who, body := owner, any(nil)
		if strings.HasPrefix(c.path, admin) {
			who = s.operator
		} else if c.method == "POST" {
			body = map[string]string{"sessionId": session}
		}
		path := strings.NewReplacer("SESSION", session, "PERSON", person).Replace(c.path)
		if a := s.call(t, c.method, path, body, who.Bearer()...); a.Status >= http.StatusBadRequest {
			t.Fatalf("%s: %d %s", c.name, a.Status, a.Body)
		}
		if status := onOther(); status != http.StatusUnauthorized {
			t.Errorf("after %s: %d", c.name, status)
		}
	}
}
