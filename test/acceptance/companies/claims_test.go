package companies

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// TestAddressesThatAreNotVerified signs in an unknown person by an address of an account that the
// provider does not call verified, or that only looks like it (N13).
func TestAddressesThatAreNotVerified(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		e.NewPerson(t, "kim@acme.example")
		for name, b := range map[string]oidcissuer.Behaviour{
			"False":                {Claims: object{"email_verified": "False"}},
			"0":                    {Claims: object{"email_verified": 0}},
			"a list":               {Claims: object{"email_verified": []string{}}},
			"userinfo contradicts": {Userinfo: object{"email_verified": false}},
			"userinfo contradicts in other words": {
				Claims: object{"groups": []string{}}, Userinfo: object{"email_verified": "no"},
			},
			"the ID token contradicts": {Claims: object{"email_verified": false}, Userinfo: object{"email_verified": true}},
			"the sign of Kelvin":       {Claims: object{"email": "\u212Aim@acme.example"}},
		} {
			claims := object{"sub": name, "email": "kim@acme.example"}
			for k, v := range b.Claims {
				claims[k] = v
			}
			b.Claims = claims
			s.provider.Behave(b)
			if page := s.newBrowser(t).signIn(); page.status != 403 {
				t.Errorf("%s: status %d: %s", name, page.status, pageText(page.body))
			}
		}
		s.provider.Behave(oidcissuer.Behaviour{
			Claims: object{"sub": "kim", "email": "kim@acme.example"}, Userinfo: object{"email_verified": "true"},
		})
		s.newBrowser(t).signIn().want(200, "kim@acme.example")
	})
}

// TestGroupsThatCannotBeRead checks that a provider that requires groups says why there are none: on the
// page, in the event and in its last problem.
func TestGroupsThatCannotBeRead(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		s.want(t, 200, "PUT", providers+"/acme", s.settings("create", true, "requiredGroups", []string{"staff"}))
		for _, test := range []struct {
			claims        []any
			page, problem string
		}{
			{[]any{"_claim_names", object{"groups": "src1"}}, "did not send your groups, because there are too many", "overage"},
			{[]any{"groups", make([]string, 2001)}, "sent more than 2,000 groups", "too_many"},
			{[]any{"groups", 7}, "in a form that cannot be read", "number"},
			{[]any{"groups", []string{"others"}}, "in no group at your company", ""},
		} {
			s.provider.SignIn("u1", "ada@acme.example", test.claims...)
			s.newBrowser(t).signIn().want(403, test.page)
			event := s.events(t, "LOGIN_ATTEMPT")[0]
			if problem, _ := event["problem"].(string); problem != test.problem || event["reason"] != "not_in_required_group" {
				t.Errorf("%s: the event is %v", test.page, event)
			}
			if last := s.want(t, 200, "GET", providers+"/acme", nil)["lastProblem"]; test.problem != "" && last != "groups: "+test.problem {
				t.Errorf("%s: the last problem is %v", test.page, last)
			}
		}
		s.want(t, 200, "PUT", providers+"/acme", s.settings("create", true,
			"groupGrants", []object{{"group": "devs", "action": "edit", "resource": "*"}}))
		s.provider.SignIn("u1", "ada@acme.example")
		s.newBrowser(t).signIn().want(200)
		if last := s.want(t, 200, "GET", providers+"/acme", nil)["lastProblem"]; last != "the last sign-in had no claim groups, on which 1 grant depends" {
			t.Errorf("without a claim the last problem is %v", last)
		}
	})
}

// TestErrorOfProvider checks that an error of a provider is an event and its last problem, and that it does
// not count as away.
func TestErrorOfProvider(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		s.provider.Behave(oidcissuer.Behaviour{Answer: func(q url.Values) {
			q.Del("code")
			q.Set("error", "invalid_scope")
		}})
		s.newBrowser(t).signIn().want(403, "invalid_scope")
		if event := s.events(t, "LOGIN_ATTEMPT")[0]; event["reason"] != "refused_by_provider" || event["provider"] != "acme" {
			t.Errorf("the event is %v", event)
		}
		p := s.want(t, 200, "GET", providers+"/acme", nil)
		if p["lastProblem"] != "the company's sign-in says: invalid_scope" {
			t.Errorf("the last problem is %v", p["lastProblem"])
		}
		s.wantUp(t, true)
	})
}

// TestRefusedClient checks that a client secret that has expired is a problem of the provider: an event, its
// last problem, a step of its test, and away, until it is replaced. A code that is refused is none.
func TestRefusedClient(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		code := "invalid_grant"
		s.provider.Behave(oidcissuer.Behaviour{Exchange: func(w http.ResponseWriter, _ url.Values) bool {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, `{"error":%q,"error_description":"AADSTS7000222"}`, code) // the client may be gone
			return true
		}})
		s.newBrowser(t).signIn().want(400, "refuses the code")
		s.wantUp(t, true)
		for _, code = range []string{"invalid_client", "unauthorized_client"} {
			s.newBrowser(t).signIn().want(503, "client secret")
			if event := s.events(t, "LOGIN_ATTEMPT")[0]; event["reason"] != "invalid_client" || event["provider"] != "acme" {
				t.Errorf("%s: the event is %v", code, event)
			}
			for range 2 { // a test does not take the problem away
				test := s.want(t, 200, "POST", providers+"/acme/test", nil)
				steps := test["steps"].([]any)
				if last := steps[len(steps)-1].(object); test["ok"] != false || last["name"] != "client" || last["ok"] != false {
					t.Errorf("%s: the test says %v", code, test)
				}
			}
			if p := s.want(t, 200, "GET", providers+"/acme", nil)["lastProblem"]; !strings.Contains(p.(string), "client secret") {
				t.Errorf("%s: the last problem is %v", code, p)
			}
			s.wantUp(t, false)
			s.want(t, 200, "PUT", providers+"/acme", s.settings("clientSecret", "new for "+code))
			s.wantUp(t, true)
		}
	})
}

// TestAnotherIssuer checks that a provider with another issuer has neither the secret nor the sessions of
// the one before (N6).
func TestAnotherIssuer(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s, evil := startSite(t, e), oidcissuer.StartProvider(t)
		s.provider.SignIn("u1", "ada@acme.example")
		ada := s.newBrowser(t).signIn()
		settings := s.settings("create", true)
		delete(settings, "clientSecret")
		s.want(t, 200, "PUT", providers+"/acme", settings)
		if !ada.isSignedIn() {
			t.Fatal("the same issuer has ended a session")
		}
		settings["issuer"] = evil.URL
		if p := s.want(t, 200, "PUT", providers+"/acme", settings); p["hasSecret"] != false {
			t.Errorf("the provider is %v", p)
		}
		if ada.isSignedIn() {
			t.Error("a session of the issuer before goes on")
		}
	})
}
