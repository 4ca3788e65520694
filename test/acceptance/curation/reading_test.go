package curation

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/tollgate-dev/tollgate/adapters/rest/apidocs"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// openReads are the paths that stay open if reading the registry needs a caller (contract C-41), and
// /decide/http, which shows no server and admits proxies only. TestDocumentHasAllRoutes checks that the
// document has every route, so that a new one is either here, or needs a caller.
var openReads = regexp.MustCompile(`^(/health|/ready|/v0(\.1)?/(health|ping|version)|/openapi\.(yaml|json)|/docs(/.*)?|` +
	`/\.well-known/.*|/auth/providers|/v2.*|/decide/http)$`)

var pathParameter = regexp.MustCompile(`\{([a-zA-Z]+)\}`)

// readPaths returns the paths of all reads, of things that are there if the registry has
// com.example/a.
func readPaths(t *testing.T) (paths []string) {
	t.Helper()
	document, err := openapi3.NewLoader().LoadFromData(apidocs.Document())
	must.Succeed(t, err)
	known := map[string]string{
		"{serverName}": "com.example%2Fa", "{version}": "1.0.0", "{view}": "all", "{file}": "claude.json", "{format}": "json",
	}
	for path, item := range document.Paths.Map() {
		if item.Get != nil {
			paths = append(paths, pathParameter.ReplaceAllStringFunc(path, func(name string) string {
				if value, ok := known[name]; ok {
					return value
				}
				return "x"
			}))
		}
	}
	return paths
}

// isRegistry reports whether a path is a read of servers, which a token with the scope to read may
// make.
var isRegistry = regexp.MustCompile(`^(/v0(\.1)?/(x/dev\.tollgate/)?servers.*|/registries/all/(v0.*|allowlist.*|install|openapi.*))$`)

// TestPrivateRegistry: if reading needs a caller, each read that is not open is refused without one,
// on two instances and both databases (contract C-40, C-41, C-43).
func TestPrivateRegistry(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		const public = "https://tools.example.com"
		s := openSite(t, e, "REGISTRY_READ=people", "REGISTRY_REVIEW=off", "PUBLIC_URL="+public,
			"OAUTH_AUTHORIZATION_SERVERS=https://login.example.com")
		s.send(t, s.ada, "POST", "/v0.1/publish", newEntry("com.example/a", "1.0.0")).WantStatus(t, http.StatusOK)
		tokens := map[string]string{"registry:read": "", "registry:edit": ""}
		for scope := range tokens {
			var made struct{ Token string }
			s.send(t, s.ada, "POST", "/admin/v1/me/tokens", map[string]any{
				"name": strings.ReplaceAll(scope, ":", "-"), "scopes": []string{scope},
			}).WantStatus(t, http.StatusCreated).Decode(t, &made)
			tokens[scope] = made.Token
		}
		seen := 0
		for _, path := range readPaths(t) {
			address := s.one.API + path
			if strings.HasSuffix(path, "/install") {
				address += "?server=com.example%2Fa&client=claude"
			}
			as := func(token string) apiclient.Response {
				return apiclient.Call(t, "GET", address, nil, "Authorization", "Bearer "+token)
			}
			got := apiclient.Call(t, "GET", address, nil)
			if open := openReads.MatchString(path); open != (got.Status != http.StatusUnauthorized) {
				t.Errorf("%s of no one is %d, open: %t", path, got.Status, open)
			}
			if !isRegistry.MatchString(path) || strings.Contains(path, "/t/x/") {
				continue
			}
			seen++
			challenge := `Bearer scope="mcp-registry:read", resource_metadata="` + public + `/.well-known/oauth-protected-resource`
			if strings.HasPrefix(path, "/v0.1/") {
				challenge += "/v0.1"
			}
			if got.Header.Get("WWW-Authenticate") != challenge+`"` {
				t.Errorf("%s has the challenge %s", path, got.Header.Get("WWW-Authenticate"))
			}
			for _, token := range []string{tokens["registry:read"], s.eve.AccessToken} {
				if a := as(token); a.Status >= 400 && !strings.Contains(path, "install") ||
					!strings.HasPrefix(a.Header.Get("Cache-Control"), "private, ") && a.Status < 400 {
					t.Errorf("%s: %d %s %v", path, a.Status, a.Body, a.Header)
				}
			}
			if a := as(tokens["registry:edit"]); a.Status != http.StatusForbidden ||
				!strings.HasPrefix(a.Header.Get("WWW-Authenticate"),
					`Bearer error="insufficient_scope", scope="mcp-registry:read", resource_metadata="`+public) {
				t.Errorf("%s with another scope: %d %v", path, a.Status, a.Header)
			}
		}
		if seen < 16 {
			t.Errorf("only %d reads", seen)
		}
		if a := s.send(t, s.newRisky(t), "GET", "/v0.1/servers", nil); a.Status != http.StatusForbidden || !strings.HasPrefix(
			a.Header.Get("WWW-Authenticate"), `Bearer error="insufficient_user_authentication"`) {
			t.Errorf("at HIGH_RISK: %d %v", a.Status, a.Header)
		}
		checkMetadata(t, s)
		checkPrivateConsole(t, s, tokens["registry:read"])
		checkEndOfReaders(t, s, tokens["registry:read"])
	})
}

// checkMetadata: web pages may read the metadata, and who has it gets nothing.
func checkMetadata(t *testing.T, s *site) {
	t.Helper()
	for _, path := range []string{"", "/v0.1"} {
		address := s.one.API + "/.well-known/oauth-protected-resource" + path
		a := apiclient.Call(t, "GET", address, nil).WantStatus(t, http.StatusOK)
		apiclient.Call(t, "GET", address, nil, "If-None-Match", a.Header.Get("ETag")).WantStatus(t, http.StatusNotModified)
		apiclient.Call(t, "OPTIONS", address, nil, "Origin", "https://example.com", "Access-Control-Request-Method", "GET").
			WantStatus(t, http.StatusNoContent)
	}
}

// checkPrivateConsole: the catalogue leads to the sign-in, and programs send a token.
func checkPrivateConsole(t *testing.T, s *site, token string) {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, path := range []string{"/console/", "/console/servers/com.example/a", "/console/servers/com.example/a/versions/1.0.0"} {
		get := func(header ...string) apiclient.Response {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.one.API+path, nil)
			must.Succeed(t, err)
			for i := 0; i+1 < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			got, err := client.Do(r)
			must.Succeed(t, err)
			defer got.Body.Close()
			body, err := io.ReadAll(got.Body)
			must.Succeed(t, err)
			return apiclient.Response{Status: got.StatusCode, Header: got.Header, Body: body}
		}
		if a := get("Accept", "text/html"); a.Status != http.StatusSeeOther || !strings.Contains(a.Header.Get("Location"), "/sign-in") {
			t.Errorf("%s of no one: %d %v", path, a.Status, a.Header)
		}
		if a := get("Accept", "application/json"); a.Status != http.StatusUnauthorized || strings.Contains(string(a.Body), "com.example/a") {
			t.Errorf("%s as JSON: %d %s", path, a.Status, a.Body)
		}
		if a := get("Accept", "application/json", "Authorization", "Bearer "+token); a.Status != http.StatusOK ||
			!strings.Contains(string(a.Body), "com.example/a") {
			t.Errorf("%s with a token: %d %s", path, a.Status, a.Body)
		}
	}
}

// checkEndOfReaders: a session and a token that end are refused on the other instance, which has
// just accepted them, within a second.
func checkEndOfReaders(t *testing.T, s *site, token string) {
	t.Helper()
	path := s.other.API + "/v0.1/servers"
	reads := func(token string) func() bool {
		return func() bool {
			return apiclient.Call(t, "GET", path, nil, "Authorization", "Bearer "+token).Status == http.StatusOK
		}
	}
	for what, one := range map[string]struct {
		token string
		end   func()
	}{
		"a session that ended": {s.eve.AccessToken, func() {
			id, _ := fixture.ReadSession(t, s.one, s.eve)
			s.eve.PostJSON(t, s.one, "/auth/logout", map[string]any{"sessionId": id})
		}},
		"a person who is disabled": {s.cem.AccessToken, func() { s.e.RunCommand(t, "", "user", "disable", "--email", "cem@example.com") }},
		"a token of one":           {token, func() { s.e.RunCommand(t, "", "user", "disable", "--email", "ada@example.com") }},
	} {
		if !reads(one.token)() {
			t.Fatalf("%s could not read", what)
		}
		one.end()
		await.Until(t, what, func() bool { return !reads(one.token)() })
	}
}
