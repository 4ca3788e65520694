package authorization

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

const (
	jwtBearer     = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	assertionType = "oauth-id-jag+jwt"
)

// company is a provider that vouches for its people, and a client that proves itself.
type company struct {
	*oidcissuer.Provider
	s      *site
	secret string // of the client agent
	made   int
}

func (s *site) startCompany(t *testing.T) *company {
	t.Helper()
	c := &company{Provider: oidcissuer.StartProvider(t), s: s}
	s.put(t, "/providers/acme", object{
		"issuer": c.URL, "clientId": c.ClientID, "clientSecret": c.Secret, "domains": []string{"acme.example"}, "create": true, "idJag": true,
		"networks": []string{"127.0.0.0/8"}, "secondFactor": object{"amr": []string{"mfa"}},
	})
	s.put(t, "/access-rules/acme", object{
		"order": 20, "effect": "allow", "subjects": []string{"group:acme/devs"}, "servers": []string{"com.example/*"},
	})
	var made struct{ ClientSecret string }
	s.put(t, "/clients/agent", object{"name": "Agent", "redirectUris": []string{callback}, "method": "client_secret_post"}).Decode(t, &made)
	c.secret = made.ClientSecret
	return c
}

// assertion returns the claims of a good assertion, with changes; a nil value removes one.
func (c *company) assertion(changes ...any) object {
	now := time.Now()
	c.made++
	all := object{
		"iss": c.URL, "sub": "u1", "aud": c.s.origin, "client_id": "agent", "resource": weatherURL, "scope": "read", "jti": time.Now().String(),
		"iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(), "email": "eve@acme.example", "groups": []string{"devs"}, "auth_time": now.Unix(),
		"amr": []string{"mfa"},
	}
	for i := 0; i < len(changes); i += 2 {
		if name := changes[i].(string); changes[i+1] == nil {
			delete(all, name)
		} else {
			all[name] = changes[i+1]
		}
	}
	return all
}

// form returns the form for an assertion.
func (c *company) form(assertion string, changes ...string) url.Values {
	return with(url.Values{"grant_type": {jwtBearer}, "assertion": {assertion}, "client_id": {"agent"}, "client_secret": {c.secret}}, changes...)
}

// TestAssertions checks that an assertion of a company gives a token for one person, client and resource, once, and no
// account of somebody with the same address.
func TestAssertions(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s := startSite(t, e)
		c := s.startCompany(t)
		sign := func(changes ...any) string { return c.Key().SignTyped(t, assertionType, c.assertion(changes...)) }
		first := sign()
		status, _, got := post(t, s.Service, "/oauth2/token", c.form(first))
		if status != http.StatusOK || got.Refresh != "" || got.Scope != "read" {
			t.Fatalf("the assertion: %d %+v", status, got)
		}
		if _, said := claims(t, got.Access); said["aud"] != weatherURL || said["client_id"] != "agent" || said["sid"] != nil {
			t.Errorf("the token says %v", said)
		}
		fixture.AwaitFresh(t, "the rule", func() bool { return s.ask(t, s.Service, got.Access, weatherURL) == http.StatusOK })
		wantRefused(t, s.Service, "used twice", c.form(first), "invalid_grant")
		for name, form := range map[string]url.Values{
			"another audience":  c.form(sign("aud", "https://other.example")),
			"two audiences":     c.form(sign("aud", []string{s.origin, "https://other.example"})),
			"another client":    c.form(sign("client_id", "editor")),
			"another issuer":    c.form(sign("iss", "https://other.example")),
			"good for too long": c.form(sign("exp", time.Now().Add(20*time.Minute).Unix())),
			"expired":           c.form(sign("iat", time.Now().Add(-time.Hour).Unix(), "exp", time.Now().Add(-50*time.Minute).Unix())),
			"without jti":       c.form(sign("jti", nil)),
			"without person":    c.form(sign("sub", nil)),
			"of Ada's address":  c.form(sign("sub", "u2", "email", ada)),
			"of no group":       c.form(sign("groups", []string{})),
			"an ID token":       c.form(c.Key().Sign(t, c.assertion())),
			"of another key":    c.form(oidcissuer.NewKey(t, "RS256").SignTyped(t, assertionType, c.assertion())),
			"no JWT":            c.form("x"),
		} {
			wantRefused(t, s.Service, name, form, "invalid_grant")
		}
		wantRefused(t, s.Service, "another resource", c.form(sign(), "resource", notesURL), "invalid_target")
		wantRefused(t, s.Service, "no secret", c.form(sign(), "client_secret", ""), "invalid_client")
		wantRefused(t, s.Service, "a wrong secret", c.form(sign(), "client_secret", "x"), "invalid_client")
		wantRefused(t, s.Service, "a client that proves nothing", c.form(sign("client_id", "editor"), "client_id", "editor", "client_secret", ""), "unauthorized_client")
		s.manage(t, "DELETE", "/providers/acme", nil).WantStatus(t, http.StatusNoContent)
		fixture.AwaitFresh(t, "the end of the provider", func() bool { return s.ask(t, s.Service, got.Access, weatherURL) != http.StatusOK })
	})
}

// TestGoSDKOfACompany runs the enterprise handler of the go-sdk: the provider exchanges its ID token for an assertion, and
// this service the assertion for a token.
func TestGoSDKOfACompany(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		c := s.startCompany(t)
		address := toolServer(t, s.origin)
		s.publish(t, "com.example/sunny", address)
		s.put(t, "/resources/sunny", object{"url": address, "servers": []string{"com.example/sunny"}, "scopes": []string{"read"}})
		c.Behave(oidcissuer.Behaviour{Exchange: func(w http.ResponseWriter, form url.Values) bool {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(object{ // the client has gone
				"access_token":      c.Key().SignTyped(t, assertionType, c.assertion("aud", form.Get("audience"), "resource", form.Get("resource"))),
				"issued_token_type": oauthex.TokenTypeIDJAG, "token_type": "N_A", "expires_in": 300,
			})
			return true
		}})
		h, err := extauth.NewEnterpriseHandler(&extauth.EnterpriseHandlerConfig{
			IdPIssuerURL: c.URL, IdPCredentials: &oauthex.ClientCredentials{ClientID: "agent-at-acme"},
			MCPAuthServerURL: s.origin, MCPResourceURI: address,
			MCPCredentials: &oauthex.ClientCredentials{ClientID: "agent", ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: c.secret}},
			IDTokenFetcher: func(context.Context) (*oauth2.Token, error) {
				return (&oauth2.Token{AccessToken: "x"}).WithExtra(object{"id_token": c.Key().Sign(t, c.assertion())}), nil
			},
		})
		must.Succeed(t, err)
		session, err := connect(t, address, h)
		must.Succeed(t, err)
		defer func() { _ = session.Close() }() // the server ends with the test
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "forecast"})
		must.Succeed(t, err)
		if text, ok := result.Content[0].(*mcp.TextContent); !ok || !strings.HasPrefix(text.Text, "sunny for ") {
			t.Errorf("the tool says %+v", result.Content[0])
		}
	})
}
