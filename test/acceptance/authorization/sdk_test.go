package authorization

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// newHandler returns what lets a client of the go-sdk sign Ada in, with a document or else as the client editor. Her
// browser agrees, and passes a step-up where one is needed.
func (s *site) newHandler(t *testing.T, d *document) *auth.AuthorizationCodeHandler {
	t.Helper()
	b := s.newBrowser(t)
	config := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: callback,
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			_, query, _ := strings.Cut(args.URL, "?")
			got := s.agree(b, query)
			if got.Get("error") != "" {
				return nil, fmt.Errorf("the server refuses: %v", got)
			}
			return &auth.AuthorizationResult{Code: got.Get("code"), State: got.Get("state"), Iss: got.Get("iss")}, nil
		},
	}
	if d != nil {
		config.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: d.url}
	} else {
		config.PreregisteredClient = &oauthex.ClientCredentials{ClientID: "editor", Issuer: s.origin}
	}
	h, err := auth.NewAuthorizationCodeHandler(config)
	must.Succeed(t, err)
	return h
}

// agree lets Ada agree to a request, and returns what the client gets.
func (s *site) agree(b *webtest.Browser, query string) url.Values {
	s.answer(b, query)
	return wayBack(b)
}

// answer opens a request in a browser of Ada, who signs in, passes a step-up and agrees, where she is asked to.
func (s *site) answer(b *webtest.Browser, query string) {
	b.Try(b.Request(http.MethodGet, "/oauth2/authorize?"+query, nil, ""))
	if strings.HasPrefix(b.Page.URL.Path, "/console/sign-in") {
		signIn(b, ada)
	}
	if strings.HasPrefix(b.Page.URL.Path, "/console/step-up") {
		b.Verify(s.environment, ada, http.StatusOK)
	}
	if strings.Contains(b.Text(), "Allow") {
		b.Press("Allow", http.StatusOK)
	}
}

// connect connects a client of the go-sdk to an MCP server.
func connect(t *testing.T, endpoint string, h auth.OAuthHandler) (*mcp.ClientSession, error) {
	t.Helper()
	return mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: endpoint, OAuthHandler: h, DisableStandaloneSSE: true, MaxRetries: -1}, nil)
}

// toolServer is an MCP server of the go-sdk that takes the tokens of an issuer for its own address alone.
func toolServer(t *testing.T, issuer string) (address string) {
	t.Helper()
	web := httptest.NewUnstartedServer(nil)
	origin := "http://" + web.Listener.Addr().String()
	address = origin + "/mcp"
	const place = "/.well-known/oauth-protected-resource/mcp"
	mux := http.NewServeMux()
	mux.Handle("/mcp", weatherOf(t, issuer, address, origin+place))
	mux.Handle(place, auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource: address, AuthorizationServers: []string{issuer},
	}))
	web.Config.Handler = mux
	web.Start()
	t.Cleanup(web.Close)
	return address
}

// weatherOf returns an MCP server of the go-sdk with one tool, which says who has called it. It takes the tokens of an
// issuer for an address alone. metadata is where its metadata are.
func weatherOf(t *testing.T, issuer, address, metadata string) http.Handler {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "weather", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "forecast"}, func(_ context.Context, r *mcp.CallToolRequest, _ struct {
		Query string `json:"query,omitempty"`
	}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "sunny for " + r.Extra.TokenInfo.UserID}}}, nil, nil
	})
	keys := oidc.NewRemoteKeySet(context.WithoutCancel(t.Context()), issuer+"/.well-known/jwks.json")
	verifier := oidc.NewVerifier(issuer, keys, &oidc.Config{ClientID: address, SupportedSigningAlgs: []string{oidc.EdDSA, oidc.ES256, oidc.RS256}})
	return auth.RequireBearerToken(func(ctx context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		verified, err := verifier.Verify(ctx, token)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", auth.ErrInvalidToken, err)
		}
		return &auth.TokenInfo{UserID: verified.Subject, Expiration: verified.Expiry}, nil
	}, &auth.RequireBearerTokenOptions{ResourceMetadataURL: metadata})(
		mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
}

// TestGoSDK runs the unmodified client, known by its document, and server of the go-sdk: the client meets the 401 of a tool server, reads who
// issues its tokens, signs a person in, and calls a tool with the token. The tool server refuses a token for another
// one.
func TestGoSDK(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		d := startDocument(t)
		s := startSite(t, e, d.admitted()...)
		address := toolServer(t, s.origin)
		s.publish(t, "com.example/sunny", address)
		s.put(t, "/resources/sunny", object{"url": address, "servers": []string{"com.example/sunny"}, "minTrust": "FULL_TRUST"})
		session, err := connect(t, address, s.newHandler(t, d))
		must.Succeed(t, err)
		defer func() { _ = session.Close() }() // the server ends with the test
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "forecast"})
		must.Succeed(t, err)
		s.ada.Login(t, s.Service)
		_, id := fixture.ReadSession(t, s.Service, s.ada)
		if text, ok := result.Content[0].(*mcp.TextContent); !ok || text.Text != "sunny for "+id {
			t.Errorf("the tool says %+v", result.Content[0])
		}
		r, err := http.NewRequestWithContext(t.Context(), "POST", address, strings.NewReader("{}"))
		must.Succeed(t, err)
		r.Header.Set("Authorization", "Bearer "+s.token(t).Access)
		if status := do(t, r, &object{}); status != http.StatusUnauthorized {
			t.Errorf("a token for another server: %d", status)
		}
	})
}

// TestGoSDKAtThisRegistry runs the client of the go-sdk at this registry as an MCP server that only people may read.
func TestGoSDKAtThisRegistry(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e, "MCP=on", "REGISTRY_READ=people")
		session, err := connect(t, s.origin+"/mcp", s.newHandler(t, nil))
		must.Succeed(t, err)
		defer func() { _ = session.Close() }() // the server ends with the test
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "search_servers", Arguments: object{"query": "weather"}})
		must.Succeed(t, err)
		if text, err := json.Marshal(result); err != nil || !strings.Contains(string(text), weather) {
			t.Errorf("the tool says %s, error %v", text, err)
		}
	})
}
