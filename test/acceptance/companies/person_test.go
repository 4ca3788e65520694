package companies

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// TestWhoItIs tries who may sign in, and ways to take over an account that were seen elsewhere.
func TestWhoItIs(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		for _, email := range []string{"bert@acme.example", "locked@acme.example", "off@acme.example", "far@other.example"} {
			e.NewPerson(t, email)
		}
		e.NewPerson(t, "boss@acme.example", "operate *")
		e.RunCommand(t, "", "user", "lock", "--email", "locked@acme.example")
		e.RunCommand(t, "", "user", "disable", "--email", "off@acme.example")
		for _, test := range []struct {
			name, subject, email string
			claims               []any
			status               int
			text, reason         string
		}{
			{"an unverified address", "t1", "bert@acme.example", []any{"email_verified", false}, 403, "not known here", "unknown_person"},
			{"an address that is not verified, as a text", "t1", "bert@acme.example", []any{"email_verified", "false"}, 403, "not known here", "unknown_person"},
			{"an address of a foreign domain", "t2", "far@other.example", nil, 403, "not known here", "unknown_person"},
			{"a new address of a foreign domain", "t2", "new@other.example", nil, 403, "not known here", "unknown_person"},
			{"a subdomain", "t3", "bert@sub.acme.example", nil, 403, "not known here", "unknown_person"},
			{"a domain that ends like it", "t3", "bert@notacme.example", nil, 403, "not known here", "unknown_person"},
			{"two addresses in one", "t3", "bert@acme.example@evil.example", nil, 403, "not known here", "unknown_person"},
			{"no address", "t3", "", nil, 403, "not known here", "unknown_person"},
			{"an operator", "t4", "boss@acme.example", nil, 403, "account page", "operator_not_linked"},
			{"a locked account", "t5", "locked@acme.example", nil, 403, "locked", "account_locked"},
			{"a disabled account", "t6", "off@acme.example", nil, 403, "disabled", "account_disabled"},
			{"the account of the address", "u2", "BERT@acme.example", nil, 200, "bert@acme.example", ""},
			{"a moved subject", "t7", "bert@acme.example", nil, 403, "not known here", "unknown_person"},
			{"the known subject with an address of another", "u2", "boss@acme.example", nil, 200, "bert@acme.example", ""},
			{"the known subject with an unverified address", "u2", "x@y.example", []any{"email_verified", false}, 200, "bert@acme.example", ""},
			{"a new person", "u3", "new@acme.example", nil, 200, "new@acme.example", ""},
		} {
			s.provider.SignIn(test.subject, test.email, test.claims...)
			b := s.newBrowser(t).signIn()
			if b.status != test.status || !strings.Contains(b.body, test.text) {
				t.Errorf("%s: status %d, want %d with %q: %s", test.name, b.status, test.status, test.text, pageText(b.body))
			}
			if d := s.events(t, "LOGIN_ATTEMPT")[0]; test.reason != "" && d["reason"] != test.reason {
				t.Errorf("%s: the event is %v, want the reason %s", test.name, d, test.reason)
			}
		}
		s.want(t, 200, "PUT", providers+"/acme", s.settings("create", false))
		s.provider.SignIn("u4", "another@acme.example")
		s.newBrowser(t).signIn().want(403, "not known here")
	})
}

// TestGroups checks grants by groups, and every odd form of the claim.
func TestGroups(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		give := func(group, action, resource string) object {
			return object{"group": group, "action": action, "resource": resource}
		}
		s.want(t, 200, "PUT", providers+"/acme", s.settings("create", true, "groupGrants", []object{
			give("devs", "publish", "com.acme/*"), give("devs", "edit", "com.acme/*"), give("ops", "operate", "*"),
			give("both", "publish", "com.acme/*"),
		}))
		e.NewPerson(t, "bert@acme.example", "publish com.acme/*", "review com.acme/*")
		byHand := []string{"publish com.acme/* hand", "review com.acme/* hand"}
		devs := []string{"edit com.acme/* provider:acme", "publish com.acme/* provider:acme"} // also what there is by hand
		many := make([]string, 2001)
		for i := range many {
			many[i] = "g"
		}
		many[0] = "devs"
		for _, test := range []struct {
			name    string
			claims  []any
			want    []string // by the provider
			problem string
		}{
			{"a list", []any{"groups", []string{"devs", "x"}}, devs, ""},
			{"absent", nil, nil, ""},
			{"one string", []any{"groups", "devs"}, devs, ""},
			{"another case", []any{"groups", []string{"Devs", "devs "}}, nil, ""},
			{"operate", []any{"groups", []string{"ops", "devs"}}, append(devs, "operate * provider:acme"), ""},
			{"an object", []any{"groups", object{"devs": true}}, nil, "object"},
			{"a number", []any{"groups", 7}, nil, "number"},
			{"a list with a number", []any{"groups", []any{"devs", 7}}, nil, "not_a_list"},
			{"2,001 groups", []any{"groups", many}, nil, "too_many"},
			{"2,000 groups", []any{"groups", many[:2000]}, devs, ""},
			{"a reference", []any{"_claim_names", object{"groups": "src1"}}, nil, "overage"},
			{"hasgroups", []any{"hasgroups", true}, nil, "overage"},
			{"null", []any{"groups", nil}, nil, ""},
		} {
			s.provider.SignIn("u1", "bert@acme.example", test.claims...)
			b := s.newBrowser(t).signIn().want(200)
			got := s.grants(t, "bert@acme.example")
			want := slices.Sorted(slices.Values(append(slices.Clone(test.want), byHand...)))
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s: the grants are %v, want %v", test.name, got, want)
			}
			if test.problem == "" {
				continue
			}
			if !strings.Contains(b.body, "groups") {
				t.Errorf("%s: the page says nothing of the groups", test.name)
			}
			if d := s.events(t, "ACCOUNT_CHANGE")[0]; d["problem"] != test.problem {
				t.Errorf("%s: the event is %v", test.name, d)
			}
			if p := s.want(t, 200, "GET", providers+"/acme", nil)["lastProblem"]; p != "groups: "+test.problem {
				t.Errorf("%s: the last problem of the provider is %v", test.name, p)
			}
		}
		s.provider.Behave(oidcissuer.Behaviour{Claims: object{"sub": "u1"}, Userinfo: object{"email": "bert@acme.example", "groups": "devs"}})
		s.newBrowser(t).signIn().want(200)
		if got := s.grants(t, "bert@acme.example"); len(got) != 4 {
			t.Errorf("with groups of the userinfo document the grants are %v", got)
		}
		s.wantProtected(t)
		s.provider.Behave(oidcissuer.Behaviour{Claims: object{"sub": "u1"}, Userinfo: object{"sub": "u9", "groups": "devs"}})
		s.newBrowser(t).signIn().want(401)
		s.want(t, 200, "PUT", providers+"/acme", s.settings("requiredGroups", []string{"staff"}))
		s.provider.SignIn("u1", "bert@acme.example", "groups", []string{"devs"})
		s.newBrowser(t).signIn().want(403, "no group at your company")
		s.provider.SignIn("u1", "bert@acme.example", "groups", []string{"staff"})
		s.newBrowser(t).signIn().want(200)
	})
}

// wantProtected checks that a grant of a provider cannot be removed by hand.
func (s *site) wantProtected(t *testing.T) {
	t.Helper()
	for _, g := range s.want(t, 200, "GET", "/admin/v1/grants?limit=100", nil)["grants"].([]any) {
		if g := g.(object); g["origin"] == "provider:acme" {
			s.wantCode(t, 409, "conflict", "DELETE", "/admin/v1/grants/"+g["id"].(string), nil)
			s.wantCode(t, 409, "conflict", "DELETE", "/admin/v1/grants/"+g["id"].(string)+"?force=true", nil)
			return
		}
	}
	t.Error("there is no grant of the provider")
}

// TestIdentities checks what a person sees of the own identities, links and unlinks.
func TestIdentities(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		list := func() []any { return s.want(t, 200, "GET", "/auth/identities", nil)["identities"].([]any) }
		if got := list(); len(got) != 0 {
			t.Fatalf("the identities are %v", got)
		}
		b := s.newBrowser(t)
		b.post("/console/sign-in", "email", s.operator.Email, "password", fixture.Password)
		b.open("/console/account").want(200, "Link <bdi>Acme")
		s.provider.SignIn("u1", "somebody@elsewhere.example")
		b.post("/console/account/companies/acme/link").want(403, "Verify that it is you")
		b.post("/console/step-up/send", "step-up.method", "EMAIL_OTP")
		s.verify(t, b)
		b.link("acme").want(200, "is linked", "elsewhere.example")
		got := list()[0].(object)
		if got["provider"] != "acme" || got["subject"] != "u1" || got["email"] != "somebody@elsewhere.example" {
			t.Errorf("the identity is %v", got)
		}
		s.newBrowser(t).signIn().want(200, s.operator.Email)
		s.provider.SignIn("u2", "ada@acme.example")
		s.newBrowser(t).signIn().want(200)
		b.askLink("acme").want(409, "linked to another account")
		s.provider.SignIn("u3", "bert@acme.example")
		b.askLink("acme").want(409, "another identity")
		path := "/auth/identities/" + got["id"].(string)
		s.want(t, 204, "DELETE", path, nil)
		s.wantCode(t, 404, "resource_not_found", "DELETE", path, nil)
		s.wantCode(t, 400, "validation_error", "DELETE", "/auth/identities/x", nil)
		s.provider.SignIn("u1", "somebody@elsewhere.example")
		s.newBrowser(t).signIn().want(403)
		s.wantEvents(t, "unlink", "link")
		apiclient.Call(t, "GET", s.API+"/auth/identities", nil).WantStatus(t, 401)
	})
}

// verify enters the code of a step-up, of the operator unless an address says whose.
func (s *site) verify(t *testing.T, b *browser, email ...string) {
	t.Helper()
	b.post("/console/step-up/verify", "step-up.challenge", hidden(b, "step-up.challenge"), "step-up.method", "EMAIL_OTP",
		"step-up.code", s.e.LastCode(t, append(email, s.operator.Email)[0]))
}

// TestSecondFactor checks what a second factor of the provider is worth, and that a person with an
// authenticator is asked for a code without one.
func TestSecondFactor(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		s.want(t, 200, "PUT", providers+"/acme", s.settings("create", true, "secondFactor", object{"amr": []string{"mfa"}}))
		level := func(claims ...any) string {
			s.provider.SignIn("u1", "ada@acme.example", claims...)
			s.newBrowser(t).signIn().want(200)
			return s.events(t, "LOGIN_ATTEMPT")[0]["trustLevel"].(string)
		}
		if got := level(); got != "UNVERIFIED" {
			t.Errorf("without a second factor the level is %s", got)
		}
		if got := level("amr", []string{"pwd", "mfa"}, "auth_time", time.Now().Unix()); got != "FULL_TRUST" {
			t.Errorf("with a second factor the level is %s", got)
		}
		if got := level("amr", []string{"mfa"}, "auth_time", time.Now().Add(-13*time.Hour).Unix()); got == "FULL_TRUST" {
			t.Errorf("with an old second factor the level is %s", got)
		}
		bert := e.NewPerson(t, "bert@acme.example")
		app := e.EnrolAuthenticator(t, bert)
		s.provider.SignIn("u2", "bert@acme.example")
		b := s.newBrowser(t).signIn().want(200, "Second factor")
		address, err := url.Parse(b.path)
		if err != nil || !strings.HasPrefix(b.path, "/console/sign-in/code?") {
			t.Fatalf("the sign-in leads to %s", b.path)
		}
		b.post("/console/sign-in/code", "user", address.Query().Get("user"), "next", "/console/account", "code", app.Code(t, 1)).
			want(200, "bert@acme.example")
		s.want(t, 204, "DELETE", providers+"/acme", nil) // the session came from the provider
		if b.open("/console/account"); !strings.HasPrefix(b.path, "/console/sign-in") {
			t.Errorf("the session goes on at %s", b.path)
		}
	})
}

// TestShownPerson checks that operators see the identities of a person and the origin of each grant.
func TestShownPerson(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		s.want(t, 200, "PUT", providers+"/acme", s.settings("create", true, "groupGrants",
			[]object{{"group": "devs", "action": "publish", "resource": "com.acme/*"}}))
		s.provider.SignIn("u1", "ada@acme.example", "groups", "devs")
		s.newBrowser(t).signIn().want(200)
		e.RunCommand(t, "", "grant", "add", "--email", "ada@acme.example", "--action", "edit", "--resource", "com.acme/*")
		id := s.want(t, 200, "GET", "/admin/v1/people?q=ada", nil)["people"].([]any)[0].(object)["id"].(string)
		found := s.want(t, 200, "GET", "/admin/v1/people/"+id+"/identities", nil)["identities"].([]any)
		if len(found) != 1 || found[0].(object)["provider"] != "acme" || found[0].(object)["subject"] != "u1" {
			t.Errorf("the identities are %v", found)
		}
		var shown struct {
			Grants     []struct{ Action, Resource, Origin string }
			Identities []struct{ Provider, Subject, Email string }
		}
		e.ReadCommand(t, &shown, "user", "show", "--email", "ada@acme.example")
		if len(shown.Identities) != 1 || shown.Identities[0].Provider != "acme" || len(shown.Grants) != 2 ||
			shown.Grants[0].Origin != "hand" || shown.Grants[1].Origin != "provider:acme" {
			t.Errorf("the command shows %+v", shown)
		}
	})
}
