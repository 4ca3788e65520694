package authorization

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
)

// startBrowser returns the address of a browser of Ada: it opens the address of a request, agrees, and answers with the
// way back to the client.
func (s *site) startBrowser(t *testing.T) string {
	t.Helper()
	b := s.newBrowser(t)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address, _ := io.ReadAll(r.Body) // an empty one is refused
		_, query, _ := strings.Cut(string(address), "?")
		back := s.agree(b, query)
		_, _ = io.WriteString(w, callback+"?"+back.Encode()) // the client has gone
	}))
	t.Cleanup(web.Close)
	return web.URL
}

// runNode runs a script of testdata below whose folder the packages of npm are, and reads what it prints.
func runNode(t *testing.T, into any, script string, arguments ...string) {
	t.Helper()
	packages := os.Getenv("TEST_MCP")
	if packages == "" {
		t.Skip("needs the packages of npm: run the test by test/servers/with.sh, or set TEST_MCP")
	}
	var log bytes.Buffer
	c := exec.CommandContext(t.Context(), "node", append([]string{"testdata/" + script, packages}, arguments...)...)
	c.Stderr = &log
	text, err := c.Output()
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Errorf("%s: %v: %s%s", script, err, text, log.String())
	}
}

// TestJavaScriptClients runs openid-client and the TypeScript SDK, unmodified.
func TestJavaScriptClients(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e, "MCP=on", "REGISTRY_READ=people")
		browser := s.startBrowser(t)
		type answer struct {
			Tokens, Renewed tokens
			Afterwards      string
		}
		var got answer
		runNode(t, &got, "openid-client.mjs", s.origin, weatherURL, callback, browser)
		if got.Tokens.Scope != "read write" || got.Renewed.Access == "" || got.Afterwards != "invalid_grant" {
			t.Errorf("openid-client: %+v", got)
		}
		var made struct{ ClientSecret string }
		s.put(t, "/clients/server", object{"name": "Server", "redirectUris": []string{callback}, "method": "client_secret_basic"}).Decode(t, &made)
		got = answer{}
		runNode(t, &got, "openid-client.mjs", s.origin, weatherURL, callback, browser, made.ClientSecret)
		if got.Tokens.Access == "" || got.Afterwards != "invalid_grant" {
			t.Errorf("openid-client with a secret: %+v", got)
		}
		address := toolServer(t, s.origin)
		s.publish(t, "com.example/sunny", address)
		s.put(t, "/resources/sunny", object{"url": address, "servers": []string{"com.example/sunny"}, "scopes": []string{"forecast"}, "minTrust": "UNVERIFIED"})
		for tool, at := range map[string]string{"forecast": address, "search_servers": s.origin + "/mcp"} {
			var said struct {
				Asked  struct{ Resource string }
				Scope  string
				Result []string
			}
			runNode(t, &said, "sdk.mjs", at, tool, callback, browser)
			want := map[string]string{"forecast": "sunny for", "search_servers": weather}[tool]
			if !strings.Contains(strings.Join(said.Result, "\n"), want) {
				t.Errorf("the SDK at %s: %+v", at, said)
			}
		}
	})
}
