package authorization

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

type node = html.Node

const callbackHost = "http://127.0.0.1"

// TestCodeFlow follows a client from the metadata to a call of a tool: sign-in, consent, code, tokens, which name the
// resource alone, and a refresh. Only the person's own server takes the token.
func TestCodeFlow(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s := startSite(t, e)
		var m struct {
			Issuer, Authorization_endpoint, Token_endpoint, Jwks_uri, Registration_endpoint string
			Grant_types_supported, Scopes_supported, Token_endpoint_auth_methods_supported  []string
			Client_id_metadata_document_supported                                           bool
		}
		a := apiclient.Call(t, "GET", s.API+"/.well-known/oauth-authorization-server", nil).WantStatus(t, http.StatusOK)
		a.Decode(t, &m)
		if m.Issuer != s.origin || m.Token_endpoint != s.origin+"/oauth2/token" || m.Registration_endpoint != "" ||
			!slices.Equal(m.Grant_types_supported, []string{"authorization_code", "refresh_token"}) ||
			!m.Client_id_metadata_document_supported || a.Header.Get("Access-Control-Allow-Origin") != "*" ||
			a.Header.Get("Cache-Control") != "public, max-age=300" {
			t.Errorf("the metadata are %s, %v", a.Body, a.Header)
		}
		if status := statusOf(t, "GET", s.API+"/.well-known/openid-configuration"); status != http.StatusNotFound {
			t.Errorf("there is an OpenID configuration: %d", status)
		}

		b := s.newBrowser(t)
		if status := s.begin(b, s.request("scope", "read")); status != http.StatusOK || !strings.HasPrefix(b.Page.URL.Path, "/console/sign-in") {
			t.Fatalf("the request leads to %s: %d", b.Page.URL, status)
		}
		signIn(b, ada)
		b.WantText("The Editor", "127.0.0.1", weather, "read").WantNoText("write")
		b.Press("Allow", http.StatusOK)
		back := wayBack(b)
		if back.Get("state") != "st ate&" || back.Get("iss") != s.origin || len(back.Get("code")) != 43 {
			t.Fatalf("the client gets %v", back)
		}
		status, header, got := post(t, s.Service, "/oauth2/token", exchange(back.Get("code")))
		if status != http.StatusOK || got.Scope != "read" || got.ExpiresIn != 600 || got.Refresh == "" || header.Get("Access-Control-Allow-Origin") != "*" {
			t.Fatalf("the tokens are %d %+v %v", status, got, header)
		}
		head, said := claims(t, got.Access)
		if head["typ"] != "at+jwt" || head["alg"] != "EdDSA" || said["aud"] != weatherURL || said["iss"] != s.origin ||
			said["client_id"] != "editor" || said["scope"] != "read" || said["sid"] == nil || said["auth_time"] == nil || said["acr"] == nil {
			t.Errorf("the token says %v %v", head, said)
		}
		fixture.AwaitFresh(t, "the rule", func() bool { return s.ask(t, s.Service, got.Access, weatherURL) == http.StatusOK })
		if status := s.ask(t, s.Service, got.Access, notesURL); status != http.StatusUnauthorized {
			t.Errorf("another server answers %d", status)
		}
		for _, path := range []string{"/auth/session", "/v0.1/servers", "/registries/all/v0.1/servers", admin + "/people", "/sessions"} {
			if a := apiclient.Call(t, "GET", s.API+path, nil, "Authorization", "Bearer "+got.Access); a.Status != http.StatusUnauthorized {
				t.Errorf("%s takes a token of another resource: %d %s", path, a.Status, a.Body)
			}
		}
		status, _, next := post(t, s.Service, "/oauth2/token", renewal(got.Refresh))
		if status != http.StatusOK || next.Refresh == got.Refresh || next.Scope != "read" {
			t.Errorf("the refresh: %d %+v", status, next)
		}
		s.begin(b, s.request("scope", "read", "prompt", "login"))
		signIn(b, ada)
		if again := wayBack(b); again.Get("code") == "" {
			t.Errorf("after another sign-in: %v", again)
		}
		if status, _, _ := post(t, s.Service, "/oauth2/token", renewal(next.Refresh)); status != http.StatusOK {
			t.Errorf("another sign-in for an application ends what there was: %d", status)
		}
		s.begin(b, s.request("scope", "read")) // the consent is remembered
		if again := wayBack(b); again.Get("code") == "" {
			t.Errorf("the second request: %v", again)
		}
	})
}

// TestRefusedAtAPage checks the requests that never go back to an address, since that was not checked.
func TestRefusedAtAPage(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		b := s.newBrowser(t)
		for name, change := range map[string][]string{
			"unknown client":       {"client_id", "nobody"},
			"no client":            {"client_id", ""},
			"no redirect URI":      {"redirect_uri", ""},
			"a suffix":             {"redirect_uri", callback + "2"},
			"a path below":         {"redirect_uri", callback + "/x"},
			"a query":              {"redirect_uri", callback + "?x"},
			"a fragment":           {"redirect_uri", callback + "#x"},
			"another host":         {"redirect_uri", "http://localhost/callback"},
			"a host that ends so":  {"redirect_uri", "http://127.0.0.1.evil.example/callback"},
			"localhost in a name":  {"redirect_uri", "http://localhost.evil.example/callback"},
			"user information":     {"redirect_uri", "http://127.0.0.1@evil.example/callback"},
			"another scheme":       {"redirect_uri", "https://127.0.0.1/callback"},
			"a script":             {"redirect_uri", "javascript:alert(1)"},
			"a document elsewhere": {"client_id", "https://evil.example/client.json"},
			"a document by http":   {"client_id", "http://vscode.dev/client.json"},
			"a host with a dot":    {"client_id", "https://vscode.dev./client.json"},
			"a port":               {"client_id", "https://vscode.dev:8443/client.json"},
			"dot segments":         {"client_id", "https://vscode.dev/../client.json"},
		} {
			status := s.begin(b, s.request(change...))
			if status != http.StatusBadRequest || b.Page.Header.Get("Location") != "" || strings.Contains(b.Page.Body, `href="http://127.0.0.1`) ||
				strings.Contains(b.Page.Body, `href="javascript:`) {
				t.Errorf("%s: %d %s", name, status, b.Text())
			}
		}
		q := s.request()
		q.Add("redirect_uri", "https://evil.example")
		if status := s.begin(b, q); status != http.StatusBadRequest {
			t.Errorf("two redirect URIs: %d", status)
		}
		if status := s.begin(b, s.request("redirect_uri", "http://127.0.0.1:5123/callback")); status != http.StatusOK {
			t.Errorf("any port of a URI without one: %d %s", status, b.Text())
		}
		if status := statusOf(t, "POST", s.API+"/oauth2/authorize"); status != http.StatusMethodNotAllowed {
			t.Errorf("POST: %d", status)
		}
	})
}

// TestRefusedAtTheClient checks the requests that go back to the client, with the error of the RFC.
func TestRefusedAtTheClient(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		b := s.newBrowser(t)
		for name, c := range map[string]struct {
			change []string
			want   string
		}{
			"implicit":              {[]string{"response_type", "token"}, "unsupported_response_type"},
			"no response type":      {[]string{"response_type", ""}, "invalid_request"},
			"no challenge":          {[]string{"code_challenge", ""}, "invalid_request"},
			"a short challenge":     {[]string{"code_challenge", "x"}, "invalid_request"},
			"plain":                 {[]string{"code_challenge_method", "plain"}, "invalid_request"},
			"no method":             {[]string{"code_challenge_method", ""}, "invalid_request"},
			"no resource":           {[]string{"resource", ""}, "invalid_target"},
			"another resource":      {[]string{"resource", "https://tools.example.com/other"}, "invalid_target"},
			"a fragment":            {[]string{"resource", weatherURL + "#x"}, "invalid_target"},
			"a relative resource":   {[]string{"resource", "/weather"}, "invalid_target"},
			"another scope":         {[]string{"scope", "admin"}, "invalid_scope"},
			"nobody is signed in":   {[]string{"prompt", "none"}, "login_required"},
			"none and login":        {[]string{"prompt", "none login"}, "invalid_request"},
			"an unknown level":      {[]string{"acr_values", "gold"}, "unmet_authentication_requirements"},
			"an age that is no age": {[]string{"max_age", "-1"}, "invalid_request"},
			"a long state":          {[]string{"state", strings.Repeat("x", 1025)}, "invalid_request"},
		} {
			s.begin(b, s.request(c.change...))
			got := wayBack(b)
			if got.Get("error") != c.want || got.Get("iss") != s.origin || got.Get("code") != "" {
				t.Errorf("%s: %v, want %s", name, got, c.want)
			}
		}
		q := s.request()
		q.Add("resource", notesURL)
		if s.begin(b, q); wayBack(b).Get("error") == "" {
			t.Error("two resources are accepted")
		}
	})
}

// TestCodesAreGoodOnce checks that a code that comes twice at once, at two instances, gives tokens once, and that its
// second use ends them.
func TestCodesAreGoodOnce(t *testing.T) {
	t.Parallel()
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		s.startOther(t)
		code := s.code(t, s.request())
		s.put(t, "/clients/other", object{"name": "Other", "redirectUris": []string{callback}})
		wantRefused(t, s.Service, "no verifier", exchange(code, "code_verifier", ""), "invalid_grant")
		wantRefused(t, s.Service, "another verifier", exchange(code, "code_verifier", strings.Repeat("x", 43)), "invalid_grant")
		code = s.code(t, s.request())
		wantRefused(t, s.Service, "another client", exchange(code, "client_id", "other"), "invalid_grant")
		wantRefused(t, s.Service, "unknown client", exchange(code, "client_id", "nobody"), "invalid_client")
		got := s.twice(t, exchange(code))
		if got.Access == "" {
			t.Fatal("no call got tokens")
		}
		wantRefused(t, s.Service, "the refresh token after a second use", renewal(got.Refresh), "invalid_grant")
		fixture.AwaitFresh(t, "the end", func() bool { return s.ask(t, s.other, got.Access, weatherURL) == http.StatusUnauthorized })
		if log := s.manage(t, "GET", "/audit?type=SUSPICIOUS_ACTIVITY", nil); !strings.Contains(string(log.Body), "replay") {
			t.Errorf("no event of a replay: %s", log.Body)
		}
	})
}

// twice sends a form to both instances at once, and returns the tokens that one gave. The other refuses.
func (s *site) twice(t *testing.T, form url.Values) (got tokens) {
	t.Helper()
	type answer struct {
		status int
		tokens
	}
	answers := make(chan answer, 2)
	for _, of := range []*fixture.Service{s.Service, s.other} {
		go func() {
			status, _, one := post(t, of, "/oauth2/token", form)
			answers <- answer{status, one}
		}()
	}
	good := 0
	for range 2 {
		if one := <-answers; one.status == http.StatusOK {
			got, good = one.tokens, good+1
		} else if one.Error != "invalid_grant" {
			t.Errorf("the other answer is %d %+v", one.status, one.tokens)
		}
	}
	if good != 1 {
		t.Errorf("%d of two calls got tokens", good)
	}
	return got
}

// TestRefreshTokensAreGoodOnce checks that a refresh token that comes twice at once ends its family, and no session.
func TestRefreshTokensAreGoodOnce(t *testing.T) {
	t.Parallel()
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		s.startOther(t)
		first, second := s.token(t), s.token(t)
		next := s.twice(t, renewal(first.Refresh))
		wantRefused(t, s.Service, "the next one", renewal(next.Refresh), "invalid_grant")
		if status, _, got := post(t, s.Service, "/oauth2/token", renewal(second.Refresh)); status != http.StatusOK {
			t.Errorf("another family has ended too: %d %+v", status, got)
		}
	})
}

// TestWhatEndsTokens checks that what has changed counts at the next refresh, and within a second at decisions.
func TestWhatEndsTokens(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		s.startOther(t)
		for name, c := range map[string]struct{ end, restore func() }{
			"quarantine": {func() { s.setQuarantine(t, weather, true) }, func() { s.setQuarantine(t, weather, false) }},
			"the rule":   {func() { s.setRule(t, "deny", "deny") }, func() { s.setRule(t, "deny", "allow") }},
			"the resource": {
				func() { s.manage(t, "DELETE", "/resources/weather", nil).WantStatus(t, http.StatusNoContent) },
				func() {
					s.put(t, "/resources/weather", object{"url": weatherURL, "servers": []string{weather}, "scopes": []string{"read"}, "minTrust": "UNVERIFIED"})
				},
			},
			"the client": {
				func() { s.manage(t, "DELETE", "/clients/editor", nil).WantStatus(t, http.StatusNoContent) },
				func() { s.put(t, "/clients/editor", object{"name": "The Editor", "redirectUris": []string{callback}}) },
			},
		} {
			got := s.token(t)
			fixture.AwaitFresh(t, name, func() bool { return s.ask(t, s.other, got.Access, weatherURL) == http.StatusOK })
			code := s.code(t, s.request())
			c.end()
			fixture.AwaitFresh(t, name, func() bool { return s.ask(t, s.other, got.Access, weatherURL) != http.StatusOK })
			want := "invalid_grant"
			if name == "the client" {
				want = "invalid_client"
			}
			fixture.AwaitFresh(t, name, func() bool {
				_, _, answer := post(t, s.Service, "/oauth2/token", renewal(got.Refresh))
				if answer.Error == "" {
					got = answer
				}
				return answer.Error == want
			})
			if _, _, answer := post(t, s.Service, "/oauth2/token", exchange(code)); answer.Error == "" {
				t.Errorf("%s: a code from before is good", name)
			}
			c.restore()
			fixture.AwaitFresh(t, name+" is back", func() bool { return s.authorize(t, s.request()).Get("code") != "" })
		}
	})
}

func (s *site) setRule(t *testing.T, name, effect string) {
	t.Helper()
	s.put(t, "/access-rules/"+name, object{"order": 1, "effect": effect, "subjects": []string{"person:" + ada}, "servers": []string{weather}})
}

// TestConsentIsTheirs checks that only the page of the person, in the browser of the request, can agree.
func TestConsentIsTheirs(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s := startSite(t, e)
		e.NewPerson(t, "ben@example.com")
		b := s.newBrowser(t)
		b.SignIn(ada, fixture.Password)
		s.begin(b, s.request())
		b.WantText("The Editor")
		if policy := b.Page.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-ancestors 'none'") || b.Page.Header.Get("X-Frame-Options") != "DENY" {
			t.Errorf("frames may have the page: %v", b.Page.Header)
		}
		allow := b.Submission("Allow")
		path := allow.URL.Path
		if status := b.Try(webtest.FromElsewhere(b.Submission("Allow"))); status != http.StatusForbidden {
			t.Errorf("the form of another site: %d", status)
		}
		other := s.newBrowser(t)
		other.SignIn("ben@example.com", fixture.Password)
		if status := other.Try(other.Request(http.MethodGet, strings.TrimSuffix(path, "/decide"), nil, "")); status != http.StatusNotFound {
			t.Errorf("another browser sees the request: %d %s", status, other.Text())
		}
		s.begin(b, s.request())
		stale := b.Submission("Allow")
		b.Open("/console/", http.StatusOK)
		b.Press("Sign out", http.StatusOK)
		b.SignIn("ben@example.com", fixture.Password) // in another tab
		if b.Try(stale); b.Page.Header.Get("Location") != "" || strings.Contains(b.Page.Body, "code=") {
			t.Errorf("the form that Ada saw lets Ben agree: %d %s", b.Page.Status, b.Text())
		}
		s.begin(b, s.request())
		if got := wayBack(b); got.Get("error") != "access_denied" {
			t.Errorf("Ben, who may call nothing: %v", got)
		}
		a := s.newBrowser(t)
		a.SignIn(ada, fixture.Password)
		s.begin(a, s.request())
		a.Press("Deny", http.StatusOK)
		if got := wayBack(a); got.Get("error") != "access_denied" {
			t.Errorf("no: %v", got)
		}
	})
}

// TestStepUp checks that a request for more trust, or for a newer sign-in, leads to a step-up and back.
func TestStepUp(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e, fixture.RiskPolicy("relaxed"))
		s.put(t, "/resources/weather", object{"url": weatherURL, "servers": []string{weather}, "minTrust": "FULL_TRUST"})
		b := s.newBrowser(t)
		s.begin(b, s.request())
		signIn(b, ada)
		b.WantText("Verify that it is you").Verify(e, ada, http.StatusOK)
		b.Press("Allow", http.StatusOK)
		code := wayBack(b).Get("code")
		status, _, got := post(t, s.Service, "/oauth2/token", exchange(code))
		if status != http.StatusOK {
			t.Fatalf("after the step-up: %d %+v", status, got)
		}
		if _, said := claims(t, got.Access); !strings.Contains(fmt.Sprint(said["acr"]), "FULL_TRUST") && said["acr"] == nil {
			t.Errorf("the token says %v", said)
		}
		s.begin(b, s.request("prompt", "none", "max_age", "0"))
		if got := wayBack(b); got.Get("error") != "unmet_authentication_requirements" {
			t.Errorf("an old sign-in, without a page: %v", got)
		}
	})
}

// TestIntrospection checks who may examine a token, and what is said of one that has ended.
func TestIntrospection(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s := startSite(t, e)
		got := s.token(t)
		examine := func(key string) (int, object) {
			t.Helper()
			var said object
			a := apiclient.Call(t, "POST", s.API+"/oauth2/introspect", url.Values{"token": {got.Access}}.Encode(),
				"Content-Type", "application/x-www-form-urlencoded", "Authorization", "Bearer "+key)
			a.Decode(t, &said)
			return a.Status, said
		}
		if status, said := examine(s.key); status != http.StatusOK || said["active"] != false || len(said) != 1 {
			t.Errorf("an account that the resource does not name: %d %v", status, said)
		}
		s.put(t, "/resources/weather", object{
			"url": weatherURL, "servers": []string{weather}, "scopes": []string{"read", "write"}, "minTrust": "UNVERIFIED", "introspectors": []string{"service:proxy"},
		})
		if status, said := examine(s.key); status != http.StatusOK || said["active"] != true || said["aud"] != weatherURL || said["client_id"] != "editor" || said["acr"] == nil {
			t.Errorf("the account that it names: %d %v", status, said)
		}
		for _, path := range []string{"/oauth2/introspect", "/oauth2/revoke", "/oauth2/token"} {
			a := apiclient.Call(t, "POST", s.API+path, "", "Content-Type", "application/x-www-form-urlencoded", "Authorization", "Bearer "+s.key)
			if path == "/oauth2/introspect" && a.Status != http.StatusBadRequest || a.Status < 400 || a.Status > 401 {
				t.Errorf("%s without anything: %d %s", path, a.Status, a.Body)
			}
		}
		if status, _, answer := post(t, s.Service, "/oauth2/revoke", url.Values{"client_id": {"editor"}}); status != http.StatusBadRequest {
			t.Errorf("the revocation of nothing: %d %+v", status, answer)
		}
		for _, path := range []string{"/oauth2/revoke", "/oauth2/token", "/.well-known/oauth-authorization-server"} {
			a := apiclient.Call(t, "OPTIONS", s.API+path, nil, "Origin", "https://app.example", "Access-Control-Request-Method", "POST")
			if a.Status != http.StatusNoContent || a.Header.Get("Access-Control-Allow-Origin") != "*" || a.Header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("the preflight of %s: %d %v", path, a.Status, a.Header)
			}
		}
		if status, _ := examine("x"); status != http.StatusUnauthorized {
			t.Errorf("no token: %d", status)
		}
		if status, _ := examine(s.newToken(t, "proxy", "registry:read")); status != http.StatusForbidden {
			t.Errorf("another scope: %d", status)
		}
		if status, _, answer := post(t, s.Service, "/oauth2/revoke", url.Values{"token": {got.Refresh}, "client_id": {"nobody"}}); status != http.StatusUnauthorized {
			t.Errorf("another client revokes: %d %+v", status, answer)
		}
		if status, _, answer := post(t, s.Service, "/oauth2/revoke", url.Values{"token": {got.Refresh}, "client_id": {"editor"}}); status != http.StatusOK {
			t.Errorf("the client revokes: %d %+v", status, answer)
		}
		if status, said := examine(s.key); status != http.StatusOK || said["active"] != false {
			t.Errorf("after the end: %d %v", status, said)
		}
		wantRefused(t, s.Service, "after the end", renewal(got.Refresh), "invalid_grant")
	})
}

// TestThisRegistry checks that a client publishes with a token of this registry as the person, and only with the scope
// and at the level.
func TestThisRegistry(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		e.RunCommand(t, "", "grant", "add", "--email", ada, "--action", "publish", "--resource", "com.ada/*")
		var m struct {
			Resource string
			Servers  []string `json:"authorization_servers"`
		}
		for _, path := range []string{"", "/v0.1"} {
			apiclient.Call(t, "GET", s.API+"/.well-known/oauth-protected-resource"+path, nil).WantStatus(t, http.StatusOK).Decode(t, &m)
			if m.Resource != s.origin || !slices.Equal(m.Servers, []string{s.origin}) {
				t.Errorf("%s: %+v", path, m)
			}
		}
		reads := s.token(t, "resource", s.origin, "scope", "mcp-registry:read")
		writes := s.token(t, "resource", s.origin, "scope", "mcp-registry:read mcp-registry:write", "acr_values", "", "prompt", "")
		publish := func(token, name string) apiclient.Response {
			t.Helper()
			return apiclient.Call(t, "POST", s.API+"/v0.1/publish", fixture.NewServerDocument(name, "1.0.0"), "Authorization", "Bearer "+token)
		}
		if a := publish(reads.Access, "com.ada/one"); a.Status != http.StatusForbidden || !strings.Contains(a.Header.Get("WWW-Authenticate"), `error="insufficient_scope"`) ||
			!strings.Contains(a.Header.Get("WWW-Authenticate"), "mcp-registry:write") {
			t.Errorf("without the scope: %d %s %v", a.Status, a.Body, a.Header)
		}
		if a := publish(writes.Access, "com.ada/one"); a.Status != http.StatusForbidden || !strings.Contains(a.Header.Get("WWW-Authenticate"), "acr_values") {
			t.Errorf("without the trust: %d %s %v", a.Status, a.Body, a.Header)
		}
		b := s.newBrowser(t)
		s.begin(b, s.request("resource", s.origin, "acr_values", acrOfFullTrust(t, s)))
		signIn(b, ada)
		b.Verify(e, ada, http.StatusOK)
		if strings.Contains(b.Text(), "Allow") {
			b.Press("Allow", http.StatusOK)
		}
		_, _, full := post(t, s.Service, "/oauth2/token", exchange(wayBack(b).Get("code"), "resource", s.origin))
		if a := publish(full.Access, "com.ada/one"); a.Status != http.StatusOK {
			t.Errorf("with both: %d %s", a.Status, a.Body)
		}
		if a := publish(full.Access, "com.other/one"); a.Status != http.StatusForbidden {
			t.Errorf("another namespace: %d", a.Status)
		}
		for _, path := range []string{admin + "/people", "/auth/session", "/sessions"} {
			if a := apiclient.Call(t, "GET", s.API+path, nil, "Authorization", "Bearer "+full.Access); a.Status != http.StatusUnauthorized && a.Status != http.StatusForbidden {
				t.Errorf("%s: %d", path, a.Status)
			}
		}
	})
}

// acrOfFullTrust returns the greatest of the levels that the metadata name.
func acrOfFullTrust(t *testing.T, s *site) string {
	t.Helper()
	var m struct {
		Levels []string `json:"acr_values_supported"`
	}
	apiclient.Call(t, "GET", s.API+"/.well-known/oauth-authorization-server", nil).WantStatus(t, http.StatusOK).Decode(t, &m)
	if len(m.Levels) != 4 {
		t.Fatalf("the levels are %q", m.Levels)
	}
	for _, l := range m.Levels {
		if strings.Contains(strings.ToLower(l), "full") {
			return l
		}
	}
	t.Fatalf("the levels are %q", m.Levels)
	return ""
}

// TestOff checks that nothing of it exists by default.
func TestOff(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RegistrySettings()...)
		for _, path := range []string{"/oauth2/authorize", "/oauth2/continue/x"} {
			if status := statusOf(t, "GET", s.API+path); status != http.StatusNotFound {
				t.Errorf("%s: %d", path, status)
			}
		}
		for path, methods := range map[string][]string{
			"/.well-known/oauth-authorization-server": {"GET", "OPTIONS"}, "/oauth2/token": {"POST", "OPTIONS"},
			"/oauth2/revoke": {"POST", "OPTIONS"}, "/oauth2/introspect": {"POST"},
		} {
			for _, method := range methods {
				apiclient.Call(t, method, s.API+path, nil).WantStatus(t, http.StatusNotFound)
			}
		}
		operator := e.NewWriter(t, s, "olga@example.com", "operate *")
		for _, path := range []string{"/clients", "/resources", "/clients/x"} {
			if status := statusOf(t, "GET", s.API+admin+path, operator.Bearer()...); status != http.StatusNotFound {
				t.Errorf("%s: %d", path, status)
			}
		}
	})
}

// TestStoredObjects stores clients and resources under conditions, and leaves those alone that a file manages.
func TestStoredObjects(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		client := object{"name": "An agent", "redirectUris": []string{callback}}
		resource := object{"url": "https://tools.example.com/agent/mcp", "servers": []string{weather}}
		call := func(method, path string, body object, header ...string) apiclient.Response {
			t.Helper()
			return apiclient.Call(t, method, s.API+admin+path, body, append(s.operator.Bearer(), header...)...)
		}
		state := object{
			"apiVersion": "tollgate.dev/v1", "kind": "State", "clients": []object{maps.Clone(client)}, "resources": []object{maps.Clone(resource)},
		}
		state["clients"].([]object)[0]["clientId"], state["resources"].([]object)[0]["name"] = "filed", "filed"
		state["resources"].([]object)[0]["url"] = "https://tools.example.com/filed/mcp"
		call("POST", "/apply?owner=platform", state).WantStatus(t, http.StatusOK)
		for list, body := range map[string]object{"/clients/": client, "/resources/": resource} {
			call("PUT", list+"agent", body, "If-None-Match", "*").WantStatus(t, http.StatusCreated)
			call("PUT", list+"agent", body).WantStatus(t, http.StatusOK)
			call("PUT", list+"agent", body, "If-Match", `"0"`).WantStatus(t, http.StatusPreconditionFailed)
			call("DELETE", list+"agent", nil, "If-Match", `"0"`).WantStatus(t, http.StatusPreconditionFailed)
			call("PUT", list+"filed", body).WantStatus(t, http.StatusConflict)
			call("DELETE", list+"filed", nil).WantStatus(t, http.StatusConflict)
			call("DELETE", list+"agent", nil).WantStatus(t, http.StatusNoContent)
		}
	})
}
