package adminapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/rest/adminapi"
	"github.com/tollgate-dev/tollgate/core/access/ruling"
	"github.com/tollgate-dev/tollgate/core/auth/authorizing"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/auth/registering"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/core/registry/watching"
	"github.com/tollgate-dev/tollgate/test/apiclient"
)

// route is a route, with the address of an object that does not exist.
type route struct {
	method, pattern, path string
	body                  any // breaks no rule of form; nil where the route reads none
}

// routes returns all routes that are mounted, but for those below /me.
func (s *site) routes(t *testing.T) (all []route) {
	t.Helper()
	bodies := s.bodies(t)
	app := fiber.New()
	adminapi.New(adminapi.UseCases{Kinds: inprocess.NewKinds(
		new(federating.Providers), ruling.New(ruling.Ports{}), new(viewing.Operator), new(mirroring.Operator), new(delegating.Services),
		registering.NewClients(registering.Ports{}), registering.NewResources(registering.Ports{}), watching.NewSources(watching.SourcePorts{}),
		viewing.NewCollections(nil, nil, nil), authorizing.Config{On: true},
	)}).Mount(app)
	fill := strings.NewReplacer(":name", "none", ":id", unknownID)
	for _, r := range app.GetRoutes(true) {
		pattern := strings.TrimPrefix(r.Path, "/admin/v1")
		if r.Method == http.MethodHead || strings.HasPrefix(pattern+"/", "/me/") {
			continue
		}
		body, ok := bodies[r.Method+" "+pattern]
		if delete(bodies, r.Method+" "+pattern); !ok && (r.Method == http.MethodPut || r.Method == http.MethodPatch) {
			t.Errorf("the test has no body for %s %s", r.Method, pattern)
		}
		all = append(all, route{r.Method, pattern, fill.Replace(pattern), body})
	}
	if len(bodies) > 0 || len(all) < 70 {
		t.Errorf("of %d routes, these are not mounted: %v", len(all), bodies)
	}
	return all
}

// bodies returns the bodies of the routes that read one.
func (s *site) bodies(t *testing.T) map[string]any {
	t.Helper()
	token := object{"name": "t", "scopes": []string{"admin:read"}}
	bodies := map[string]any{
		"POST /people": object{"email": "new@example.com", "name": "New"}, "PATCH /people/:id": object{},
		"POST /views/:name/tokens": object{"name": "t"}, "POST /service-accounts/:name/tokens": token,
		"POST /webhooks/:id/redeliver": object{}, "POST /reviews/approve": object{"ids": []string{unknownID}},
		"POST /reviews/reject": object{"ids": []string{unknownID}, "comment": "no"},
		"PUT /methods":         object{"methods": []any{}},
		"POST /apply":          object{"apiVersion": "tollgate.dev/v1", "kind": "State"},
		"POST /access/explain": object{"subject": "anyone", "server": "com.example/none"},
	}
	for _, k := range s.kinds(t) {
		switch {
		case k.Name != "":
			bodies["PUT "+k.Path+"/:name"] = k.Body
		default:
			bodies["POST "+k.Path] = k.Body
			if k.Change != nil {
				bodies["PATCH "+k.Path+"/:id"] = k.Change
			}
		}
	}
	return bodies
}

// scopes returns the scopes of which a token needs one, and those that it needs as well.
func (r route) scopes() (needed []string) {
	switch {
	case strings.HasPrefix(r.path, "/reviews/"):
		return []string{"registry:review", "admin:write"}
	case r.path == "/audit":
		return []string{"audit:read"}
	case r.method == http.MethodGet, r.path == "/access/explain": // it reads, with a question in the body
		return []string{"admin:read"}
	case r.method == http.MethodPost && r.path == "/grants": // and what they give
		return []string{"admin:write", "registry:edit"}
	case r.method == http.MethodPost && r.path == "/policies":
		return []string{"admin:write", "registry:publish"}
	}
	return []string{"admin:write"}
}

// TestRoutes checks at each route who may use it, and that what is wrong with a request comes
// before that.
func TestRoutes(t *testing.T) {
	s := openSite(t, "OAUTH=on", "PUBLIC_URL=https://tools.example.com")
	s.e.WantAuditEvents(t)
	low := s.e.NewPerson(t, "low@example.com", "operate *")
	low.Login(t, s.Service)
	bad := s.badTokens(t)
	for _, r := range s.routes(t) {
		for name, header := range bad {
			a := s.do(t, r.method, r.path, r.body, header...)
			if a.Status != http.StatusUnauthorized || a.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s %s with %s: %d %s", r.method, r.pattern, name, a.Status, a.Body)
			}
		}
		a := s.do(t, r.method, r.path, r.body, s.eve.Bearer()...).WantStatus(t, http.StatusForbidden)
		apiclient.WantAuthError(t, a, "access_denied")
		a = s.do(t, r.method, r.path, r.body, low.Bearer()...).WantStatus(t, http.StatusForbidden)
		apiclient.WantAuthError(t, a, "insufficient_trust")
		if r.body != nil {
			s.refuseBodies(t, r)
		}
	}
}

// badTokens returns headers with which nobody is known.
func (s *site) badTokens(t *testing.T) map[string][]string {
	t.Helper()
	const neverMade = "tgp_000000000000000000000000000000000000000000017jAMh"
	bearers := map[string]string{
		"no token": "", "no JWT": "Bearer not.a.token", "another scheme": "Basic YTpi",
		"a token that was never made": "Bearer " + neverMade,
		"a wrong checksum":            "Bearer " + neverMade[:len(neverMade)-1] + "i",
		"a token that has ended":      "Bearer " + s.ownToken(t, object{"scopes": allScopes}),
		"a token of another network": "Bearer " + s.ownToken(t, object{"scopes": allScopes,
			"networks": []string{"192.0.2.0/24"}}),
		"a token that was removed": "Bearer " + s.ownToken(t, object{"scopes": allScopes}),
		"a part of a token":        "Bearer " + neverMade[:20],
	}
	db := s.e.OpenDatabase(t)
	for name, change := range map[string]string{
		"a token that has ended":   "UPDATE api_tokens SET expires_at = created_at WHERE prefix = ?",
		"a token that was removed": "DELETE FROM api_tokens WHERE prefix = ?",
	} {
		prefix := strings.TrimPrefix(bearers[name], "Bearer ")[:12]
		if _, err := db.ExecContext(t.Context(), change, prefix); err != nil {
			t.Fatal(err)
		}
	}
	headers := map[string][]string{}
	for name, value := range bearers {
		headers[name] = []string{"Authorization", value}
	}
	return headers
}

// refuseBodies checks that a wrong body is refused before a caller without the grant, and after one
// who is not known.
func (s *site) refuseBodies(t *testing.T, r route) {
	t.Helper()
	large := strings.Repeat(" ", 5<<20)
	for _, wrong := range []struct {
		body   any
		header []string
		status int
	}{
		{"{", nil, http.StatusBadRequest}, {"[1]", nil, http.StatusBadRequest}, {object{"other": 1}, nil,
			http.StatusBadRequest},
		{"a=b", []string{"Content-Type", "text/plain"}, http.StatusUnsupportedMediaType},
		{large, nil, http.StatusRequestEntityTooLarge},
	} {
		for _, caller := range [][]string{s.eve.Bearer(), nil} {
			status := wrong.status
			if caller == nil {
				status = http.StatusUnauthorized
			}
			if a := s.do(t, r.method, r.path, wrong.body, append(caller, wrong.header...)...); a.Status != status {
				t.Errorf("%s %s with %.20v: %d %s, want %d", r.method, r.pattern, wrong.body, a.Status, a.Body, status)
			}
		}
	}
}

// TestNoRoute checks what is no route: 401 comes before 404 and 405.
func TestNoRoute(t *testing.T) {
	s := openSite(t)
	for _, r := range []struct {
		method, path string
		status       int
	}{
		{"PATCH", "/grants", http.StatusMethodNotAllowed}, {"GET", "/none", http.StatusNotFound},
		{"PATCH", "/none", http.StatusNotFound}, {"GET", "", http.StatusNotFound},
		{"GET", "/clients", http.StatusNotFound}, {"GET", "/resources", http.StatusNotFound}, // without the authorization server
	} {
		for _, body := range []string{"", strings.Repeat(" ", 5<<20)} {
			s.do(t, r.method, r.path, body).WantStatus(t, http.StatusUnauthorized)
		}
		a := s.wantAs(t, s.eve.Bearer(), r.status, r.method, r.path, nil)
		if r.status == http.StatusMethodNotAllowed && !strings.Contains(a.Header.Get("Allow"), "POST") {
			t.Errorf("Allow is %q", a.Header.Get("Allow"))
		}
	}
	off := s.e.Start(t, "ADMIN_API=off")
	apiclient.Call(t, "GET", off.API+"/admin/v1/grants", nil, s.olga.Bearer()...).WantStatus(t, http.StatusNotFound)
}

var allScopes = []string{
	"registry:read", "registry:publish", "registry:edit", "registry:review", "admin:read", "admin:write", "audit:read",
	"decide",
}

// TestScopes checks each scope at each route, for a person and for a service account with every
// grant: without its scopes a token is refused with the challenge of RFC 6750, and with them never
// for the scope.
func TestScopes(t *testing.T) {
	s := openSite(t, "OAUTH=on", "PUBLIC_URL=https://tools.example.com")
	s.want(t, http.StatusCreated, "PUT", "/service-accounts/ci", object{})
	for _, action := range []string{"operate", "review"} {
		s.want(t, http.StatusCreated, "POST", "/grants", object{"service": "ci", "action": action, "resource": "*"})
	}
	all := s.routes(t)
	for _, path := range []string{"/me/tokens", "/service-accounts/ci/tokens"} {
		for _, held := range append([]string{"registry:review admin:write"}, allScopes...) {
			token := s.newToken(t, path, object{"scopes": strings.Fields(held)})
			for _, r := range all {
				s.checkScopes(t, r, strings.Fields(held), token)
			}
		}
	}
}

func (s *site) checkScopes(t *testing.T, r route, held []string, token string) {
	t.Helper()
	missing := slices.DeleteFunc(r.scopes(), func(needed string) bool {
		return slices.Contains(held, needed) || needed == "admin:read" && slices.Contains(held, "admin:write")
	})
	a := s.do(t, r.method, r.path, r.body, "Authorization", "Bearer "+token)
	challenge := a.Header.Get("WWW-Authenticate")
	if len(missing) > 0 {
		want := `Bearer error="insufficient_scope", scope="` + missing[0] + `"`
		if a.Status != http.StatusForbidden || challenge != want {
			t.Errorf("%s %s with %v: %d %q, want 403 %s", r.method, r.pattern, held, a.Status, challenge, want)
		}
	} else if challenge != "" || a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden {
		t.Errorf("%s %s with %v: %d %s", r.method, r.pattern, held, a.Status, a.Body)
	}
}

// newToken makes a token below a path, and returns it.
func (s *site) newToken(t *testing.T, path string, members object) string {
	t.Helper()
	a := s.do(t, "POST", path, with(object{"name": "t"}, members), s.olga.Bearer()...)
	made := decode(t, a.WantStatus(t, http.StatusCreated))
	return s.keep(t, text(made, "token"))
}

// ownToken makes a token of the operator, and returns it.
func (s *site) ownToken(t *testing.T, members object) string {
	t.Helper()
	return s.newToken(t, "/me/tokens", members)
}
