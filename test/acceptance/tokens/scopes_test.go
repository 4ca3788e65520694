package tokens

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/openapi"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// route is a request, with the scopes of which a token needs one.
type route struct {
	method, path string
	body         any
	scopes       []string
}

const registryRoot = "/v0.1"

// routes returns the routes for which a token needs a scope, and two for which it needs none. The
// objects that they name do not exist.
func routes(t *testing.T) []route {
	t.Helper()
	x := registryRoot + "/x/dev.tollgate"
	version := registryRoot + "/servers/com.example%2Fnone/versions/1.0.0"
	all := []route{
		{"GET", registryRoot + "/servers", nil, nil},
		{"POST", registryRoot + "/publish", map[string]any{"name": "com.example/none"}, []string{"registry:publish"}},
		{"PUT", version, fixture.NewServerDocument("com.example/none", "1.0.0"), []string{"registry:edit"}},
		{"DELETE", version, nil, []string{"registry:edit"}},
		{"PATCH", version + "/status", map[string]any{"status": "deprecated"}, []string{"registry:publish", "registry:edit"}},
		{"GET", x + "/reviews", nil, []string{"registry:read"}},
		{"GET", x + "/reviews/" + unknownID, nil, []string{"registry:read"}},
		{"POST", x + "/reviews/" + unknownID + "/approve", map[string]any{}, []string{"registry:review"}},
		{"POST", x + "/reviews/" + unknownID + "/reject", map[string]any{"comment": "no"}, []string{"registry:review"}},
		{"GET", x + "/quarantine", nil, []string{"registry:read"}},
		{"POST", x + "/quarantine", map[string]any{"serverName": "com.example/none", "reason": "bad"}, []string{"registry:review"}},
		{"DELETE", x + "/quarantine?serverName=com.example%2Fnone", nil, []string{"registry:review"}},
		{"GET", x + "/publishers", nil, []string{"registry:read"}},
		{"POST", x + "/publishers", map[string]any{"method": "dns", "pattern": "com.example/*", "domain": "x"}, []string{"admin:write"}},
		{"DELETE", x + "/publishers/" + unknownID, nil, []string{"admin:write"}},
		{"PATCH", registryRoot + "/servers/com.example%2Fnone/status", map[string]any{"status": "deprecated"},
			[]string{"registry:publish", "registry:edit"}},
		{"GET", me, nil, nil},
	}
	for _, r := range openapi.AdminRoutes(t) {
		needed := "admin:write"
		switch {
		case strings.HasPrefix(r.Path, "/reviews/"): // TestReviewsOfOperators
			continue
		case r.Path == "/audit":
			needed = "audit:read"
		case r.Method == "GET", r.Path == "/access/explain": // it reads, with a question in the body
			needed = "admin:read"
		}
		all = append(all, route{r.Method, admin + r.Path, r.Body, []string{needed}})
	}
	return all
}

var allScopes = []string{
	"registry:read", "registry:publish", "registry:edit", "registry:review", "admin:read", "admin:write", "audit:read",
	"decide",
}

// includes reports whether a scope includes one of others.
func includes(scope string, others []string) bool {
	return len(others) == 0 || slices.Contains(others, scope) ||
		scope == "admin:write" && slices.Contains(others, "admin:read")
}

// TestScopes checks each scope at each route, for the token of a person and of a service account
// with every grant: beyond its scope it is refused with the challenge of RFC 6750, and within it
// never for the scope.
func TestScopes(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	s := startSite(t, e)
	s.makeService(t, "operate ", "publish *", "edit *", "review *")
	all := routes(t)
	for kind, path := range map[string]string{"a person": myTokens, "a service account": ciTokens} {
		for _, scope := range allScopes {
			secret := s.make(t, path, s.operator.Bearer(), scope).Token
			for _, r := range all {
				a := s.call(t, r.method, r.path, r.body, bearer(secret)...)
				what := strings.Join([]string{kind, "with", scope + ":", r.method, r.path}, " ")
				switch refused := strings.HasPrefix(a.Header.Get("WWW-Authenticate"), scopeHeader); {
				case !includes(scope, r.scopes):
					wantInsufficient(t, what, a, r.scopes...)
				case refused || a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden:
					t.Errorf("%s: %d %s", what, a.Status, a.Body)
				}
			}
		}
	}
	s.wantNoSecrets(t)
}

// TestRefusedTokens checks at each route that needs a scope that a token is refused which has ended,
// was deleted, has a wrong checksum or comes from another network.
func TestRefusedTokens(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	s := startSite(t, e)
	callers := map[string]string{
		"has a wrong checksum": wrongSum, "was never made": neverMade,
		"has ended":   s.make(t, myTokens, s.operator.Bearer(), allScopes...).Token,
		"was deleted": s.make(t, myTokens, s.operator.Bearer(), allScopes...).Token,
	}
	for what, change := range map[string]string{
		"has ended": "UPDATE api_tokens SET expires_at = created_at WHERE prefix = ?", "was deleted": "DELETE FROM api_tokens WHERE prefix = ?",
	} {
		if _, err := e.OpenDatabase(t).ExecContext(t.Context(), change, callers[what][:12]); err != nil {
			t.Fatal(err)
		}
	}
	var elsewhere token
	s.call(t, "POST", myTokens, map[string]any{
		"name": "t", "scopes": allScopes, "networks": []string{"192.0.2.0/24"},
	}, s.operator.Bearer()...).WantStatus(t, http.StatusCreated).Decode(t, &elsewhere)
	callers["is of another network"] = elsewhere.Token
	for _, r := range routes(t) {
		for what, secret := range callers {
			a := s.call(t, r.method, r.path, r.body, bearer(secret)...)
			isOpen := len(r.scopes) == 0 && r.path != me
			if !isOpen && (a.Status != http.StatusUnauthorized || a.Header.Get("WWW-Authenticate") == "") {
				t.Errorf("a token that %s: %s %s: %d %s", what, r.method, r.path, a.Status, a.Body)
			}
		}
	}
}

// TestReviewsOfOperators checks that the decision of many reviews needs both scopes.
func TestReviewsOfOperators(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	s := startSite(t, e)
	for _, act := range []string{"approve", "reject"} {
		body := map[string]any{"ids": []string{unknownID}, "comment": "no"}
		for missing, scope := range map[string]string{"registry:review": "admin:write", "admin:write": "registry:review"} {
			secret := s.make(t, myTokens, s.operator.Bearer(), scope).Token
			wantInsufficient(t, act, s.call(t, "POST", admin+"/reviews/"+act, body, bearer(secret)...), missing)
		}
		both := s.make(t, myTokens, s.operator.Bearer(), "admin:write", "registry:review").Token
		s.call(t, "POST", admin+"/reviews/"+act, body, bearer(both)...).WantStatus(t, http.StatusOK)
	}
}

// TestScopesWithoutGrants checks that no scope gives what the owner has no grant for.
func TestScopesWithoutGrants(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	s := startSite(t, e)
	s.makeService(t)
	anna := e.NewWriter(t, s.Service, "anna@example.com", "edit com.example/*")
	mine, service := s.make(t, myTokens, anna.Bearer(), allScopes...), s.make(t, ciTokens, s.operator.Bearer(), allScopes...)
	half := s.make(t, myTokens, anna.Bearer(), "registry:publish") // of the two grants for a status
	for _, r := range routes(t) {
		open := len(r.scopes) == 0 || r.scopes[0] == "registry:read" && !strings.Contains(r.path, "quarantine") ||
			strings.Contains(r.path, "/publishers") || strings.Contains(r.path, "/reviews/")
		if a := s.call(t, r.method, r.path, r.body, bearer(service.Token)...); !open && a.Status != http.StatusForbidden {
			t.Errorf("a service account without grants: %s %s: %d %s", r.method, r.path, a.Status, a.Body)
		}
	}
	status := registryRoot + "/servers/com.example%2Fnone/versions/1.0.0/status"
	body := map[string]any{"status": "deprecated"}
	s.call(t, "PATCH", status, body, bearer(mine.Token)...).WantStatus(t, http.StatusNotFound)
	s.call(t, "PATCH", status, body, bearer(half.Token)...).WantStatus(t, http.StatusForbidden)
}

// TestNoEscalation checks that a token makes no token, and no workload, with scopes that it lacks.
func TestNoEscalation(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	s := startSite(t, e, "PUBLIC_URL=https://tools.example.com")
	s.makeService(t)
	writer := s.make(t, myTokens, s.operator.Bearer(), "admin:write", "decide")
	for _, scopes := range [][]string{{"admin:write"}, {"admin:read", "decide"}} {
		s.make(t, ciTokens, bearer(writer.Token), scopes...)
	}
	for scope, scopes := range map[string][]string{
		"audit:read": {"decide", "audit:read"}, "registry:publish": {"registry:publish"},
	} {
		a := s.call(t, "POST", ciTokens, map[string]any{"name": "t", "scopes": scopes}, bearer(writer.Token)...)
		wantInsufficient(t, "a token with "+scope, a, scope)
		workload := map[string]any{
			"issuer": "https://token.actions.githubusercontent.com", "subject": "repo:acme/tools:*", "scopes": scopes,
		}
		a = s.call(t, "PUT", ci, map[string]any{"workloads": []any{workload}}, bearer(writer.Token)...)
		wantInsufficient(t, "a workload with "+scope, a, scope)
		s.call(t, "PUT", ci, map[string]any{"workloads": []any{workload}}, s.operator.Bearer()...).
			WantStatus(t, http.StatusOK)
	}
}
