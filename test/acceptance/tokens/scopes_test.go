package tokens

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
)

// route is a request, with the scopes of which a token needs one.
type route struct {
	method, path string
	body         any
	scopes       []string
}

const registryRoot = "/v0.1"

// routes returns the routes of the registry for which a token needs a scope, and two for which it
// needs none. The objects that they name do not exist.
func routes() []route {
	x := registryRoot + "/x/dev.tollgate"
	version := registryRoot + "/servers/com.example%2Fnone/versions/1.0.0"
	return []route{
		{"GET", registryRoot + "/servers", nil, nil},
		{"POST", registryRoot + "/publish", map[string]any{"name": "com.example/none"}, []string{"registry:publish"}},
		{"PUT", version, fixture.NewServerDocument("com.example/none", "1.0.0"), []string{"registry:edit"}},
		{"DELETE", version, nil, []string{"registry:edit"}},
		{"PATCH", version + "/status", map[string]any{"status": "deprecated"}, []string{"registry:publish",
			"registry:edit"}},
		{"GET", x + "/servers/com.example%2Fnone/versions/1.0.0/tools", nil, nil},
		{"PUT", x + "/servers/com.example%2Fnone/versions/1.0.0/tools", map[string]any{"package": 0, "tools": []any{}},
			[]string{"registry:publish", "registry:review"}},
		{"POST", x + "/servers/com.example%2Fnone/versions/1.0.0/tools/ask", nil, []string{"registry:review"}},
		{"GET", x + "/reviews", nil, []string{"registry:read"}},
		{"GET", x + "/reviews/" + unknownID, nil, []string{"registry:read"}},
		{"POST", x + "/reviews/" + unknownID + "/approve", map[string]any{}, []string{"registry:review"}},
		{"POST", x + "/reviews/" + unknownID + "/reject", map[string]any{"comment": "no"}, []string{"registry:review"}},
		{"GET", x + "/quarantine", nil, []string{"registry:read"}},
		{"POST", x + "/quarantine", map[string]any{"serverName": "com.example/none", "reason": "bad"},
			[]string{"registry:review"}},
		{"DELETE", x + "/quarantine?serverName=com.example%2Fnone", nil, []string{"registry:review"}},
		{"GET", x + "/publishers", nil, []string{"registry:read"}},
		{"POST", x + "/publishers", map[string]any{"method": "dns", "pattern": "com.example/*", "domain": "x"},
			[]string{"admin:write"}},
		{"DELETE", x + "/publishers/" + unknownID, nil, []string{"admin:write"}},
		{"PATCH", registryRoot + "/servers/com.example%2Fnone/status", map[string]any{"status": "deprecated"},
			[]string{"registry:publish", "registry:edit"}},
		{"GET", me, nil, nil},
	}
}

var allScopes = []string{
	"registry:read", "registry:publish", "registry:edit", "registry:review", "admin:read", "admin:write", "audit:read",
	"decide",
}

// TestScopes checks each scope at each route of the registry, for the token of a person and of a
// service account with every grant: beyond its scope it is refused with the challenge of RFC 6750,
// and within it never for the scope. Tests of adapters/rest/adminapi check those of administration.
func TestScopes(t *testing.T) {
	t.Parallel()
	s := startSite(t, fixture.NewEnvironment(t, "embedded"))
	s.makeService(t, "operate ", "publish *", "edit *", "review *")
	for kind, path := range map[string]string{"a person": myTokens, "a service account": ciTokens} {
		for _, scope := range allScopes {
			secret := s.make(t, path, s.operator.Bearer(), scope).Token
			for _, r := range routes() {
				a := s.call(t, r.method, r.path, r.body, bearer(secret)...)
				what := strings.Join([]string{kind, "with", scope + ":", r.method, r.path}, " ")
				switch refused := strings.HasPrefix(a.Header.Get("WWW-Authenticate"), scopeHeader); {
				case len(r.scopes) > 0 && !slices.Contains(r.scopes, scope):
					wantInsufficient(t, what, a, r.scopes...)
				case refused || a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden:
					t.Errorf("%s: %d %s", what, a.Status, a.Body)
				}
			}
		}
	}
	s.wantNoSecrets(t)
}

// TestScopesWithoutGrants checks that no scope gives what the owner has no grant for.
func TestScopesWithoutGrants(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	s := startSite(t, e)
	s.makeService(t)
	service := s.make(t, ciTokens, s.operator.Bearer(), allScopes...)
	for _, r := range routes() {
		open := len(r.scopes) == 0 || r.scopes[0] == "registry:read" && !strings.Contains(r.path, "quarantine") ||
			strings.Contains(r.path, "/publishers") || strings.Contains(r.path, "/reviews/")
		a := s.call(t, r.method, r.path, r.body, bearer(service.Token)...)
		if !open && a.Status != http.StatusForbidden {
			t.Errorf("a service account without grants: %s %s: %d %s", r.method, r.path, a.Status, a.Body)
		}
	}
	anna := e.NewWriter(t, s.Service, "anna@example.com", "edit com.example/*")
	status := registryRoot + "/servers/com.example%2Fnone/versions/1.0.0/status"
	body := map[string]any{"status": "deprecated"}
	for scope, want := range map[string]int{"registry:edit": http.StatusNotFound,
		"registry:publish": http.StatusForbidden} {
		made := s.make(t, myTokens, anna.Bearer(), scope) // of the two grants for a status
		s.call(t, "PATCH", status, body, bearer(made.Token)...).WantStatus(t, want)
	}
}
