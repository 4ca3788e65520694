package authorization

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/chromium"
	"github.com/tollgate-dev/tollgate/test/acceptance/internal/proxyserver"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// sunny is the tool server of the chain, which nginx protects.
const sunny = "com.example/sunny"

// chain is an unmodified client of the go-sdk, and the Chromium of its person.
type chain struct {
	*site
	window  chromium.Tab
	back    string          // where the client waits for the code
	came    chan url.Values // what comes there
	signIns int
	shown   string         // by the page of the consent
	config  *oauth2.Config // by which the client renews its tokens
}

// TestChain goes all the way of a person with an unmodified client: the 401 of a tool server that nginx protects, the metadata
// of the tool server and of the authorization server, the sign-in and the consent in Chromium, the code, the tokens, a
// call that nginx lets through, and a refresh. Then the tool server is put into quarantine: nginx denies the next call,
// and no token is renewed.
func TestChain(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		c := &chain{site: startSite(t, e)}
		address := c.startProtected(t)
		c.window = chromium.Open(t)
		c.startCallback(t)
		handler := c.newHandler(t)
		session, err := connect(t, address, handler)
		must.Succeed(t, err)
		defer func() { _ = session.Close() }() // nginx lets nothing through any more
		for _, text := range []string{"The Editor", "registered here", "127.0.0.1", ada, sunny, "not reviewed", address, "forecast"} {
			if !strings.Contains(c.shown, text) {
				t.Errorf("the page of the consent does not show %q:\n%s", text, c.shown)
			}
		}
		call := func() (string, error) {
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "forecast"})
			if err != nil {
				return "", err
			}
			text, _ := result.Content[0].(*mcp.TextContent) // another content has no text
			return text.Text, nil
		}
		_, id := fixture.ReadSession(t, c.Service, c.ada)
		text, err := call()
		if err != nil || text != "sunny for "+id || c.signIns != 1 {
			t.Fatalf("the tool says %q, error %v, after %d sign-ins", text, err, c.signIns)
		}
		token := c.renew(t, c.tokenOf(t, handler))

		c.setQuarantine(t, sunny, true)
		stale := fixture.AwaitFresh(t, "the call is denied", func() bool { _, err = call(); return err != nil })
		if !strings.Contains(err.Error(), http.StatusText(http.StatusForbidden)) || c.signIns != 1 {
			t.Errorf("the call in quarantine: %v, after %d sign-ins", err, c.signIns)
		}
		t.Logf("the last call that was allowed began %v after the quarantine", stale)
		fixture.AwaitFresh(t, "the refresh is refused", func() bool {
			renewed, err := c.config.TokenSource(t.Context(), &oauth2.Token{RefreshToken: token.RefreshToken}).Token()
			if err == nil {
				token = renewed
				return false
			}
			refused := (*oauth2.RetrieveError)(nil)
			if !errors.As(err, &refused) || refused.ErrorCode != "invalid_grant" {
				t.Fatalf("the refresh in quarantine: %v", err)
			}
			return true
		})
	})
}

// startProtected starts the tool server and nginx before it, which gets decisions and passes the token on, since the tool
// server checks it too, and the host, since on this computer the go-sdk refuses others than that of this computer. It
// returns the address that clients call, which is that of a resource.
func (c *chain) startProtected(t *testing.T) (address string) {
	t.Helper()
	proxyserver.Need(t, "nginx")
	listen := net.JoinHostPort("127.0.0.1", instance.FreePort())
	address = "http://" + listen + "/weather/mcp"
	c.publish(t, sunny, address)
	c.put(t, "/resources/sunny", object{"url": address, "servers": []string{sunny}, "scopes": []string{"forecast"}, "minTrust": "UNVERIFIED"})
	web := httptest.NewServer(weatherOf(t, c.origin, address, "http://"+listen+"/.well-known/oauth-protected-resource/weather/mcp"))
	t.Cleanup(web.Close)
	config := proxyserver.Example(t, "nginx.conf", proxyserver.Place{Listen: listen, Service: c.API, Upstream: web.URL, Key: c.key})
	proxyserver.Start(t, "nginx", listen, strings.NewReplacer(weather, sunny, `proxy_set_header Authorization "";`, "proxy_set_header Host $host;").Replace(config))
	c.ada.Login(t, c.Service)
	fixture.AwaitFresh(t, "the rule", func() bool { return c.ask(t, c.Service, c.ada.AccessToken, address) == http.StatusOK })
	return address
}

// startCallback starts what waits for the code at the client.
func (c *chain) startCallback(t *testing.T) {
	t.Helper()
	c.came = make(chan url.Values, 1)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/callback" { // Chromium asks for a picture too
			c.came <- r.URL.Query()
		}
		_, _ = io.WriteString(w, "You can close this page.") // the browser may have gone
	}))
	t.Cleanup(web.Close)
	c.back = web.URL + "/callback"
}

// newHandler returns what lets the client sign Ada in, in Chromium.
func (c *chain) newHandler(t *testing.T) *auth.AuthorizationCodeHandler {
	t.Helper()
	h, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		PreregisteredClient: &oauthex.ClientCredentials{ClientID: "editor", Issuer: c.origin}, RedirectURL: c.back,
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			c.signIns++
			got := c.agreeInChromium(t, args.URL)
			if got.Get("error") != "" {
				return nil, fmt.Errorf("the server refuses: %v", got)
			}
			return &auth.AuthorizationResult{Code: got.Get("code"), State: got.Get("state"), Iss: got.Get("iss")}, nil
		},
		NewTokenSource: func(ctx context.Context, config *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
			c.config = config
			return config.TokenSource(ctx, token), nil
		},
	})
	must.Succeed(t, err)
	return h
}

// agreeInChromium opens the address of a request, signs Ada in, agrees, and returns what the client gets.
func (c *chain) agreeInChromium(t *testing.T, address string) url.Values {
	t.Helper()
	c.window.Run(t, chromedp.Navigate(address))
	c.window.Set(t, "email", ada)
	c.window.Set(t, "password", fixture.Password)
	c.window.Follow(t, "the sign-in", func() { c.window.Click(t, "Sign in") })
	c.shown = c.window.Text(t)
	c.window.Click(t, "Allow")
	return await.Receive(t, "the code", c.came)
}

// tokenOf returns the tokens that the client has.
func (c *chain) tokenOf(t *testing.T, h *auth.AuthorizationCodeHandler) *oauth2.Token {
	t.Helper()
	source, err := h.TokenSource(t.Context())
	must.Succeed(t, err)
	token, err := source.Token()
	must.Succeed(t, err)
	return token
}

// renew renews tokens as the client does when they have ended.
func (c *chain) renew(t *testing.T, token *oauth2.Token) *oauth2.Token {
	t.Helper()
	renewed, err := c.config.TokenSource(t.Context(), &oauth2.Token{RefreshToken: token.RefreshToken}).Token()
	must.Succeed(t, err)
	if renewed.RefreshToken == token.RefreshToken || renewed.AccessToken == token.AccessToken {
		t.Errorf("the refresh gives the same tokens: %+v", renewed)
	}
	return renewed
}
