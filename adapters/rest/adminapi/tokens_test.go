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
