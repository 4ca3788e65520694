package companies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// TestProviders administers providers by the API.
func TestProviders(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		got := s.want(t, 200, "GET", providers+"/acme", nil)
		if got["hasSecret"] != true || got["clientSecret"] != nil || got["recheck"] != "1h" || got["maxSession"] != "12h" ||
			fmt.Sprint(got["scopes"]) != "[openid profile email]" || got["groupsClaim"] != "groups" ||
			got["scopeClaim"] != "scope" || fmt.Sprint(got["audiences"]) != "[]" {
			t.Errorf("the provider is %v", got)
		}
		if list := s.want(t, 200, "GET", providers, nil)["providers"].([]any); len(list) != 1 {
			t.Errorf("the providers are %v", list)
		}
		s.checkFields(t)
		s.checkWrites(t)
		ok := s.want(t, 200, "POST", providers+"/acme/test", nil)
		if ok["ok"] != true {
			t.Errorf("the test says %v", ok)
		}
		s.want(t, 200, "PUT", providers+"/acme", s.settings("networks", []string{}))
		far := s.want(t, 200, "POST", providers+"/acme/test", nil)
		step := far["steps"].([]any)[0].(object)
		if far["ok"] != false || step["name"] != "discovery" || !strings.Contains(step["message"].(string), "not public") {
			t.Errorf("without networks the test says %v", far)
		}
		s.newBrowser(t).open("/console/sign-in/company/acme").want(503)
		s.wantCode(t, 404, "resource_not_found", "POST", providers+"/none/test", nil)
		s.newBrowser(t).open("/console/sign-in/company/none").want(404)
	})
}

// checkFields tries wrong values of fields. Each rule is checked in core/auth/company.
func (s *site) checkFields(t *testing.T) {
	t.Helper()
	for field, values := range map[string][]any{
		"issuer":       {"", "http://a.example", "https://u@a.example", 7, nil},
		"clientId":     {""},
		"clientSecret": {strings.Repeat("x", 1025), 7},
		"domains":      {[]string{"localhost"}, []string{"A.example", "a.example"}},
		"enforce":      {"true", 1},
		"recheck":      {"9s", 60},
		"groupGrants":  {[]object{{"group": "g", "action": "own", "resource": "*"}}},
		"secondFactor": {"mfa", object{"acr": "x"}},
		"other":        {1},
	} {
		for _, value := range values {
			s.wantCode(t, 400, "validation_error", "PUT", providers+"/acme", s.settings(field, value))
		}
	}
	s.wantCode(t, 400, "validation_error", "PUT", providers+"/Acme", s.settings())
	s.wantCode(t, 400, "validation_error", "PUT", providers+"/acme", s.settings("enforce", true, "domains", []string{}))
	s.wantCode(t, 400, "validation_error", "GET", providers+"?limit=0", nil)
	if got := s.want(t, 200, "PUT", providers+"/acme", s.settings("maxSession", "30d")); got["maxSession"] != "720h" {
		t.Errorf("30d is shown as %v", got["maxSession"])
	}
}

// checkWrites checks conditions, conflicts and secrets of writes.
func (s *site) checkWrites(t *testing.T) {
	t.Helper()
	s.want(t, 200, "PUT", providers+"/acme", s.settings())
	s.wantCode(t, 412, "precondition_failed", "PUT", providers+"/acme", s.settings(), "If-None-Match", "*")
	s.wantCode(t, 412, "precondition_failed", "DELETE", providers+"/acme", nil, "If-Match", `"x"`)
	s.wantCode(t, 409, "conflict", "PUT", providers+"/other", s.settings())
	kept := s.settings()
	delete(kept, "clientSecret")
	if got := s.want(t, 200, "PUT", providers+"/acme", kept); got["hasSecret"] != true {
		t.Error("a secret that was left out is not kept")
	}
	if got := s.want(t, 200, "PUT", providers+"/acme", s.settings("clientSecret", nil)); got["hasSecret"] != false {
		t.Error("a secret that is null is kept")
	}
	s.want(t, 200, "PUT", providers+"/acme", s.settings())
	for i := range 19 {
		s.want(t, 201, "PUT", fmt.Sprintf("%s/p%d", providers, i), s.settings("domains", []string{}))
	}
	s.wantCode(t, 409, "conflict", "PUT", providers+"/p19", s.settings("domains", []string{}))
	for i := range 19 {
		s.want(t, 204, "DELETE", fmt.Sprintf("%s/p%d", providers, i), nil)
	}
	s.wantCode(t, 404, "resource_not_found", "DELETE", providers+"/p1", nil)
	s.wantCode(t, 404, "resource_not_found", "GET", providers+"/p1", nil)
	reader := s.e.NewWriter(t, s.Service, "reader@example.com")
	for _, call := range [][2]string{
		{"GET", providers}, {"GET", providers + "/acme"}, {"PUT", providers + "/acme"}, {"DELETE", providers + "/acme"},
		{"POST", providers + "/acme/test"},
	} {
		var body any
		if call[0] == "PUT" {
			body = s.settings()
		}
		apiclient.Call(t, call[0], s.API+call[1], body).WantStatus(t, 401)
		apiclient.Call(t, call[0], s.API+call[1], body, reader.Bearer()...).WantStatus(t, 403)
	}
}

// TestRemovedProvider checks that the grants and sessions of a provider end with it, and that its
// identities are good again.
func TestRemovedProvider(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		with := s.settings("create", true, "groupGrants", []object{{"group": "devs", "action": "publish", "resource": "com.acme/*"}})
		s.want(t, 200, "PUT", providers+"/acme", with)
		s.provider.SignIn("u1", "ada@acme.example", "groups", "devs")
		b := s.newBrowser(t).signIn().want(200)
		if got := s.grants(t, "ada@acme.example"); len(got) != 1 {
			t.Fatalf("the grants are %v", got)
		}
		s.want(t, 204, "DELETE", providers+"/acme", nil)
		if got := s.grants(t, "ada@acme.example"); len(got) != 0 {
			t.Errorf("the grants are %v", got)
		}
		if b.open("/console/account"); !strings.HasPrefix(b.path, "/console/sign-in") {
			t.Errorf("the session goes on at %s", b.path)
		}
		s.want(t, 201, "PUT", providers+"/again", s.settings())
		s.provider.SignIn("u1", "elsewhere@other.example")
		s.newBrowser(t).open("/console/sign-in/company/again?return=/console/account").want(200, "ada@acme.example")
	})
}

// TestOfferedProviders checks what is offered to whom, before a sign-in.
func TestOfferedProviders(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		e.NewPerson(t, "ada@acme.example")
		for query, want := range map[string]int{
			"": 1, "?email=ada@acme.example": 1, "?email=anyone@ACME.example": 1, "?email=a@other.example": 0,
			"?email=a@sub.acme.example": 0,
		} {
			var got struct {
				Providers []struct{ Name, DisplayName string }
				Password  bool
			}
			apiclient.Call(t, "GET", s.API+"/auth/providers"+query, nil).WantStatus(t, 200).Decode(t, &got)
			if len(got.Providers) != want || !got.Password || want == 1 && got.Providers[0].DisplayName != "Acme" {
				t.Errorf("%s offers %+v", query, got)
			}
		}
		apiclient.WantAuthError(t, apiclient.Call(t, "GET", s.API+"/auth/providers?email=x", nil).WantStatus(t, 400), "validation_error")
	})
}

// TestProvidersInAFile applies and exports providers.
func TestProvidersInAFile(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		s.want(t, 204, "DELETE", providers+"/acme", nil)
		with := s.settings("name", "acme", "secondFactor", object{"amr": []string{"mfa"}})
		document := object{"apiVersion": "tollgate.dev/v1", "kind": "State", "providers": []object{with}}
		operation := func(document object, query string) object {
			return s.want(t, 200, "POST", "/admin/v1/apply"+query, document)["changes"].([]any)[0].(object)
		}
		if c := operation(document, ""); c["change"] != "create" || c["kind"] != "provider" || c["key"] != "acme" ||
			c["fields"].(object)["secret"] != "changed" {
			t.Errorf("the change is %v", c)
		}
		if c := operation(document, ""); c["change"] != "none" {
			t.Errorf("the second time the change is %v", c)
		}
		delete(with, "clientSecret")
		with["create"] = true
		if c := operation(document, ""); c["change"] != "update" {
			t.Errorf("the change is %v", c)
		}
		got := s.want(t, 200, "GET", providers+"/acme", nil)
		if got["hasSecret"] != true || got["managedBy"] != "default" || got["create"] != true {
			t.Errorf("the provider is %v", got)
		}
		s.wantCode(t, 409, "conflict", "PUT", providers+"/acme", s.settings())
		s.wantCode(t, 409, "conflict", "DELETE", providers+"/acme", nil)
		s.wantCode(t, 400, "validation_error", "POST", "/admin/v1/apply", object{
			"apiVersion": "tollgate.dev/v1", "kind": "State", "providers": []object{{"name": "x", "issuer": "x", "clientId": "x"}},
		})
		delete(document, "providers")
		if c := operation(document, "?prune=true"); c["change"] != "delete" {
			t.Errorf("the change is %v", c)
		}
	})
}

// TestAuditEvents checks the events of company sign-in as they are stored.
func TestAuditEvents(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s := startSite(t, e)
		s.want(t, 200, "PUT", providers+"/acme", s.settings("create", true, "clientSecret", "another secret",
			"groupGrants", []object{{"group": "devs", "action": "publish", "resource": "*"}}))
		s.provider.SignIn("u1", "ada@acme.example", "groups", "devs")
		s.want(t, 200, "PUT", providers+"/acme", s.settings("create", true,
			"groupGrants", []object{{"group": "devs", "action": "publish", "resource": "*"}}))
		s.newBrowser(t).signIn().want(200)
		s.provider.SignIn("u1", "ada@acme.example", "groups", 7)
		s.newBrowser(t).signIn().want(200)
		s.provider.SignIn("u2", "ada@acme.example")
		s.newBrowser(t).signIn().want(403)
		s.provider.Behave(oidcissuer.Behaviour{Claims: object{"sub": "u1"}, Token: func(c map[string]any) { c["nonce"] = "other" }})
		s.newBrowser(t).signIn().want(401)
		s.linkOperator(t)
		s.unlink(t)
		e.RunCommand(t, "", "user", "break-glass", "--email", "ada@acme.example", "--for", "5m")
		s.want(t, 204, "DELETE", providers+"/acme", nil)
	})
}

// linkOperator links an identity to the operator in a browser.
func (s *site) linkOperator(t *testing.T) {
	t.Helper()
	s.provider.SignIn("u3", "olga@elsewhere.example")
	b := s.newBrowser(t)
	b.post("/console/sign-in", "email", s.operator.Email, "password", fixture.Password)
	b.open("/console/step-up").post("/console/step-up/send", "step-up.method", "EMAIL_OTP")
	s.verify(t, b)
	b.link("acme").want(200, "is linked")
}

// unlink unlinks the identity of the operator by the API.
func (s *site) unlink(t *testing.T) {
	t.Helper()
	id := s.want(t, 200, "GET", "/auth/identities", nil)["identities"].([]any)[0].(object)["id"].(string)
	s.want(t, 204, "DELETE", "/auth/identities/"+id, nil)
}
