package adminapi_test

import (
	"net/http"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/must"
)

func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

// TestTokens makes, uses and removes tokens of a person and of a service account.
func TestTokens(t *testing.T) {
	s := openSite(t)
	s.e.WantAuditEvents(t)
	s.want(t, http.StatusCreated, "PUT", "/service-accounts/ci", object{"description": "builds"})
	s.want(t, http.StatusOK, "GET", "/me", nil)
	for _, path := range []string{"/me/tokens", "/service-accounts/ci/tokens"} {
		draft := object{"name": "t", "scopes": []string{"registry:read", "admin:read"},
			"networks": []string{"127.0.0.0/8"}}
		made := decode(t, s.want(t, http.StatusCreated, "POST", path, draft))
		token := s.keep(t, text(made, "token"))
		s.wantAs(t, bearer(token), http.StatusOK, "GET", "/me", nil)
		s.want(t, http.StatusOK, "GET", path, nil)
		s.newToken(t, path, object{"scopes": []string{"decide"}})
		first := decode(t, s.read(t, path+"?limit=1"))
		next := decode(t, s.read(t, path+"?limit=1&cursor="+text(first["metadata"].(object), "nextCursor")))
		if len(first["tokens"].([]any)) != 1 || len(next["tokens"].([]any)) != 1 {
			t.Errorf("the pages are %v and %v", first, next)
		}
		s.play(t, "token", "{path}", path, "{id}", text(made, "id"))
		s.wantAs(t, bearer(token), http.StatusUnauthorized, "GET", "/me", nil)
	}
	s.play(t, "tokens of nobody")
	s.lockAccount(t)
}

// lockAccount checks that a service account that is disabled or removed is not known by its tokens.
func (s *site) lockAccount(t *testing.T) {
	t.Helper()
	const ci = "/service-accounts/ci"
	token := bearer(s.newToken(t, ci+"/tokens", object{"scopes": []string{"decide"}}))
	for _, change := range []struct {
		method string
		body   any
		status int
	}{
		{"PUT", object{"state": "disabled"}, http.StatusUnauthorized}, {"PUT", object{"state": "active"},
			http.StatusOK},
		{"DELETE", nil, http.StatusUnauthorized}, {"PUT", object{}, http.StatusUnauthorized},
	} {
		if a := s.do(t, change.method, ci, change.body, s.olga.Bearer()...); a.Status >= http.StatusBadRequest {
			t.Fatalf("%s: %d %s", change.method, a.Status, a.Body)
		}
		s.wantAs(t, token, change.status, "GET", "/me", nil)
	}
}

// TestWhoMakesTokens checks that a token makes no other for its owner, that a session needs trust,
// and that nobody gives a token or a workload what the caller lacks.
func TestWhoMakesTokens(t *testing.T) {
	s := openSite(t, "PUBLIC_URL=https://tools.example.com")
	low := s.e.NewPerson(t, "low@example.com")
	low.Login(t, s.Service)
	one, draft := "/me/tokens/"+unknownID, object{"name": "t", "scopes": []string{"decide"}}
	s.want(t, http.StatusCreated, "PUT", "/service-accounts/ci", object{})
	for name, c := range map[string]struct {
		caller                    []string
		code                      string
		list, add, remove, anyone int
	}{
		"nobody":  {nil, "", 401, 401, 401, 401},
		"a token": {bearer(s.ownToken(t, object{"scopes": allScopes})), "access_denied", 403, 403, 403, 200},
		"an account": {
			bearer(s.newToken(t, "/service-accounts/ci/tokens", object{"scopes": allScopes})), "access_denied", 403,
			403, 403, 200,
		},
		"low trust":  {low.Bearer(), "insufficient_trust", 200, 403, 404, 200},
		"full trust": {s.eve.Bearer(), "", 200, 201, 404, 200},
	} {
		for _, r := range []struct {
			status       int
			method, path string
			body         any
		}{
			{c.list, "GET", "/me/tokens", nil}, {c.add, "POST", "/me/tokens", draft},
			{c.remove, "DELETE", one, nil}, {c.anyone, "GET", "/me", nil},
		} {
			a := s.do(t, r.method, r.path, r.body, c.caller...)
			if a.Status != r.status {
				t.Errorf("%s: %s %s: %d %s, want %d", name, r.method, r.path, a.Status, a.Body, r.status)
			}
			if a.Status == http.StatusForbidden {
				apiclient.WantAuthError(t, a, c.code)
			}
		}
	}
}

// TestNoEscalation checks that a token makes no token, and no workload, with scopes or networks
// that it lacks.
func TestNoEscalation(t *testing.T) {
	s := openSite(t, "PUBLIC_URL=https://tools.example.com")
	s.want(t, http.StatusCreated, "PUT", "/service-accounts/ci", object{})
	writer := bearer(s.ownToken(t, object{"scopes": []string{"admin:write", "decide"}}))
	bound := bearer(s.ownToken(t, object{"scopes": []string{"admin:write"}, "networks": []string{"127.0.0.0/8",
		"::1/128"}}))
	for _, c := range []struct {
		caller           []string
		scopes, networks []string
		status           int
	}{
		{writer, []string{"admin:write"}, nil, 201}, {writer, []string{"admin:read", "decide"}, nil, 201},
		{writer, []string{"decide", "audit:read"}, nil, 403}, {writer, []string{"registry:publish"}, nil, 403},
		{bound, []string{"admin:write"}, nil, 403}, {bound, []string{"admin:write"}, []string{"0.0.0.0/0"}, 403},
		{bound, []string{"admin:write"}, []string{"127.0.0.1/32", "192.0.2.0/24"}, 403},
		{bound, []string{"admin:write"}, []string{"127.0.0.1/32"}, 201}, {s.olga.Bearer(), []string{"audit:read"}, nil,
			201},
	} {
		s.wantAs(t, c.caller, c.status, "POST", "/service-accounts/ci/tokens",
			object{"name": "t", "scopes": c.scopes, "networks": append([]string{}, c.networks...)})
		workload := object{"issuer": githubIssuer, "subject": "repo:acme/tools:*", "scopes": c.scopes}
		body, status := object{"workloads": []object{workload}}, c.status
		if &c.caller[0] == &bound[0] { // workloads may be anywhere
			status = http.StatusForbidden
		} else if status == http.StatusCreated {
			status = http.StatusOK
		}
		s.wantAs(t, c.caller, status, "PUT", "/service-accounts/ci", body)
	}
}

// TestStaleSessionMakesNoToken checks that a session in which no password or code was given lately makes no
// token, neither for its person nor for a service account (contract A-64).
func TestStaleSessionMakesNoToken(t *testing.T) {
	s := openSite(t)
	s.do(t, "PUT", "/service-accounts/ci", object{}, s.olga.Bearer()...).WantStatus(t, http.StatusCreated)
	for _, column := range []string{"created_at", "reauthenticated_at"} {
		past := column + " - 3600000000"
		if s.e.Shared {
			past = column + " - interval '1 hour'"
		}
		_, err := s.e.OpenDatabase(t).ExecContext(t.Context(), "UPDATE sessions SET "+column+" = "+past)
		must.Succeed(t, err)
	}
	for _, path := range []string{"/me/tokens", "/service-accounts/ci/tokens"} {
		a := s.do(t, "POST", path, object{"name": "t", "scopes": []string{"registry:read"}}, s.olga.Bearer()...)
		apiclient.WantAuthError(t, a.WantStatus(t, http.StatusForbidden), "insufficient_trust")
		if list := decode(t, s.read(t, path))["tokens"].([]any); len(list) != 0 {
			t.Errorf("%s has %v", path, list)
		}
	}
}

// TestTokenGivesNoMoreThanItHas tries to get from a token with admin:write to what it does not have: by
// grants, by links, by a telephone number and by groups of a provider (N7).
func TestTokenGivesNoMoreThanItHas(t *testing.T) {
	s := openSite(t)
	token := func(scopes ...string) []string {
		a := s.do(t, "POST", "/me/tokens", object{"name": "t", "scopes": scopes}, s.olga.Bearer()...)
		return bearer(text(decode(t, a.WantStatus(t, http.StatusCreated)), "token"))
	}
	admin, publisher, session := token("admin:write"), token("admin:write", "registry:publish"), s.olga.Bearer()
	operate := object{"action": "operate", "resource": "*"}
	publish := object{"action": "publish", "resource": "com.example/*"}
	review := object{"action": "review", "resource": "*"}
	person := func(email string, grants ...object) object {
		return object{"email": email, "name": "Mallory", "grants": append([]object{}, grants...)}
	}
	made := decode(t, s.do(t, "POST", "/people", person("bert@example.com"), admin...).WantStatus(t, http.StatusCreated))
	bert := text(made, "id")
	if link := made["invitation"].(object); link["url"] != nil {
		t.Errorf("a token gets the link %v", link)
	}
	toBert := func(g object) object {
		return object{"person": bert, "action": g["action"], "resource": g["resource"]}
	}
	provider := func(g object) object {
		return object{"issuer": "https://login.example", "clientId": "tollgate", "groupGrants": []object{
			{"group": "devs", "action": g["action"], "resource": g["resource"]},
		}}
	}
	ofDomain := func(client string) object {
		return object{"issuer": "https://login.example", "clientId": client, "domains": []string{"example.org"}}
	}
	policy := object{"method": "github-oidc", "pattern": "com.example/*", "actions": []string{"publish"}, "subject": "repo:acme/tools:*"}
	for _, c := range []struct {
		name, method, path string
		caller             []string
		body               any
		status             int
	}{
		{"invites an operator", "POST", "/people", publisher, person("m1@example.com", operate), 403},
		{"invites a reviewer", "POST", "/people", publisher, person("m2@example.com", review), 403},
		{"invites a publisher without the scope", "POST", "/people", admin, person("m3@example.com", publish), 403},
		{"invites a publisher", "POST", "/people", publisher, person("m4@example.com", publish), 201},
		{"gives operate", "POST", "/grants", publisher, toBert(operate), 403},
		{"gives publish without the scope", "POST", "/grants", admin, toBert(publish), 403},
		{"gives publish", "POST", "/grants", publisher, toBert(publish), 201},
		{"changes a telephone number", "PATCH", "/people/" + bert, publisher, object{"phone": "+491700000000"}, 403},
		{"changes a name", "PATCH", "/people/" + bert, publisher, object{"name": "Bert"}, 200},
		{"makes a policy without the scope", "POST", "/policies", admin, policy, 403},
		{"gives operate by groups", "PUT", "/providers/p1", publisher, provider(operate), 403},
		{"gives publish by groups without the scope", "PUT", "/providers/p2", admin, provider(publish), 403},
		{"gives publish by groups", "PUT", "/providers/p3", publisher, provider(publish), 201},
		{"a session gives operate by groups", "PUT", "/providers/p4", session, provider(operate), 201},
		{"keeps what a session has given", "PUT", "/providers/p4", admin, provider(operate), 200},
		{"gives it to the groups of another issuer", "PUT", "/providers/p4", admin, func() object {
			evil := provider(operate)
			evil["issuer"] = "https://evil.example"
			return evil
		}(), 403},
		{"makes a provider with domains", "PUT", "/providers/p5", publisher, ofDomain("tollgate"), 403},
		{"a session makes one", "PUT", "/providers/p5", session, ofDomain("tollgate"), 201},
		{"keeps it", "PUT", "/providers/p5", publisher, ofDomain("tollgate"), 200},
		{"changes it", "PUT", "/providers/p5", publisher, ofDomain("other"), 403},
		{"takes its domains", "PUT", "/providers/p5", publisher, object{"issuer": "https://login.example", "clientId": "tollgate"}, 403},
		{"gives one domains", "PUT", "/providers/p3", publisher, ofDomain("tollgate"), 403},
		{"a session gives operate", "POST", "/grants", session, toBert(operate), 201},
	} {
		if a := s.do(t, c.method, c.path, c.body, c.caller...); a.Status != c.status {
			t.Errorf("%s: status %d, want %d: %s", c.name, a.Status, c.status, a.Body)
		}
	}
	for _, path := range []string{"/people/" + bert + "/invitation", "/people/" + s.olgaID(t) + "/reset-link"} {
		a := s.do(t, "POST", path, nil, publisher...)
		if got := decode(t, a); a.Status == http.StatusOK && got["url"] != nil {
			t.Errorf("%s gives a token the link %v", path, got)
		}
		if got := decode(t, s.do(t, "POST", path, nil, session...).WantStatus(t, http.StatusOK)); got["url"] == nil {
			t.Errorf("%s gives a session no link: %v", path, got)
		}
	}
}

// TestTokenAppliesNoMoreThanItHas has a token apply files that give what it must not give (contract A-92).
// Nothing of a refused file is stored.
func TestTokenAppliesNoMoreThanItHas(t *testing.T) {
	s := openSite(t)
	admin := bearer(s.ownToken(t, object{"name": "a", "scopes": []string{"admin:write"}}))
	publisher := bearer(s.ownToken(t, object{"name": "p", "scopes": []string{"admin:write", "registry:publish"}}))
	session := s.olga.Bearer()
	const head = stateHead + "serviceAccounts: [{name: bot}]\n"
	grant := func(action, resource string) string {
		return head + "grants: [{service: bot, action: " + action + ", resource: '" + resource + "'}]\n"
	}
	provider := func(more string) string {
		return stateHead + "providers: [{name: corp, issuer: 'https://login.example', clientId: tollgate" + more + "}]\n"
	}
	domains, byGroup := provider(", domains: [example.org]"), provider(", groupGrants: [{group: g, action: publish, resource: '*'}]")
	policy := stateHead + "policies: [{method: dns, domain: example.com, pattern: 'com.example/*', actions: [publish]}]\n"
	workload := stateHead + "serviceAccounts: [{name: ci, workloads: [{issuer: 'https://token.actions.githubusercontent.com', " +
		"subject: 'repo:acme/x:*', audience: tollgate, scopes: ['registry:publish']}]}]\n"
	for _, c := range []struct {
		name   string
		caller []string
		file   string
		status int
	}{
		{"gives operate", publisher, grant("operate", "*"), 403},
		{"gives publish without the scope", admin, grant("publish", "*"), 403},
		{"gives edit without the scope", publisher, grant("edit", "*"), 403},
		{"makes a policy without the scope", admin, policy, 403},
		{"gives a workload a scope", admin, workload, 403},
		{"gives grants by groups without the scope", admin, byGroup, 403},
		{"makes a provider with domains", publisher, domains, 403},
		{"gives publish", publisher, grant("publish", "*"), 200},
		{"gives grants by groups", publisher, byGroup, 200},
		{"gives the provider domains", publisher, domains, 403},
		{"a session gives them", session, domains, 200},
		{"a file that changes nothing", admin, domains, 200},
		{"takes the domains away", publisher, provider(""), 403},
		{"keeps a grant that it could not give", admin, grant("publish", "*"), 200},
		{"a session gives operate", session, grant("operate", "*"), 200},
	} {
		before := string(s.read(t, "/state").WantStatus(t, 200).Body)
		header := append(append([]string{}, c.caller...), "Content-Type", "application/yaml")
		if a := s.do(t, "POST", "/apply", c.file, header...); a.Status != c.status {
			t.Errorf("%s: status %d, want %d: %s", c.name, a.Status, c.status, a.Body)
		}
		if after := string(s.read(t, "/state").WantStatus(t, 200).Body); c.status != 200 && after != before {
			t.Errorf("%s: the state was\n%s\nand is\n%s", c.name, before, after)
		}
	}
}

// olgaID returns the id of the operator.
func (s *site) olgaID(t *testing.T) string {
	t.Helper()
	return text(decode(t, s.read(t, "/me")), "id")
}
