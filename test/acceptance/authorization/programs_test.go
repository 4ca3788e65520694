package authorization

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/program"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// requestAddress is what a program writes for the person.
var requestAddress = regexp.MustCompile(`http://localhost:\d+/oauth2/authorize\?[^\s\x1b\x07]+`)

// TestPrograms runs Codex and Claude Code, unmodified, as a registered client at a tool server of the go-sdk, and at this
// registry: each signs Ada in. Their documents are in the internet.
func TestPrograms(t *testing.T) {
	t.Parallel()
	codex, claude := program.New(t, "TEST_CODEX"), program.New(t, "TEST_CLAUDE_CODE")
	s := startSite(t, fixture.NewEnvironment(t, "embedded"), "MCP=on", "REGISTRY_READ=people")
	s.put(t, "/clients/editor", object{"name": "The Editor", "redirectUris": []string{callback, "http://localhost/callback"}})
	sunny := toolServer(t, s.origin)
	s.publish(t, "com.example/sunny", sunny)
	s.put(t, "/resources/sunny", object{"url": sunny, "servers": []string{"com.example/sunny"}, "scopes": []string{"forecast"}, "minTrust": "UNVERIFIED"})
	open := func(address string) { s.sendBack(t, address) }
	for name, address := range map[string]string{"sunny": sunny, "registry": s.origin + "/mcp"} {
		claude.Run(t, "mcp", "add", "--transport", "http", "--client-id", "editor", name, address)
		if text := claude.SignIn(t, requestAddress, open, "mcp", "login", name); !strings.Contains(text, "Authenticated with") {
			t.Errorf("Claude Code at %s: %s", address, text)
		}
		if text := claude.Run(t, "mcp", "list"); !strings.Contains(text, address+" (HTTP) - ✔ Connected") {
			t.Errorf("Claude Code at %s afterwards: %s", address, text)
		}
		text := codex.SignIn(t, requestAddress, open, "-c", `mcp_oauth_credentials_store="file"`, "mcp", "add", "--oauth-client-id", "editor", "--url", address, name)
		if !strings.Contains(text, "Successfully logged in") {
			t.Errorf("Codex at %s: %s", address, text)
		}
	}
}

// sendBack agrees to a request, and sends the code to the program that waits for it.
func (s *site) sendBack(t *testing.T, address string) {
	t.Helper()
	_, query, _ := strings.Cut(address, "?")
	b := s.newBrowser(t)
	s.answer(b, query)
	back, redirected := strings.CutPrefix(b.Page.Header.Get("Refresh"), "0; url=")
	if !redirected {
		back = b.Page.Header.Get("Location") // the consent was remembered
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, back, nil)
	must.Succeed(t, err)
	response, err := http.DefaultClient.Do(r)
	must.Succeed(t, err)
	_ = response.Body.Close() // the program says what it has got
}
