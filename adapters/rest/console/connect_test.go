package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
)

// TestConnect checks that the addresses that the page shows are those that answer, for everybody
// and for a view that needs a token, and who learns of such a view.
func TestConnect(t *testing.T) {
	e, s := start(t, "MCP=on")
	e.RunCommand(t, "", "view", "add", "open", "--include", "com.example/*")
	e.RunCommand(t, "", "view", "add", "data", "--access", "token")
	token := strings.TrimSpace(e.RunCommand(t, "", "view", "token", "add", "data", "--name", "team"))
	b := newBrowser(t, s)
	answers := func(address string, status int) {
		t.Helper()
		apiclient.Call(t, "GET", strings.Replace(address, b.Base, s.API, 1), nil).WantStatus(t, status)
	}
	b.Open("/console/", http.StatusOK)
	b.Follow("Connect", http.StatusOK)
	if got := b.Shown("service"); got != b.Base {
		t.Errorf("the address is %s, want %s", got, b.Base)
	}
	b.WantText(".vscode/mcp.json", "View open").WantNoText("data")
	if got := b.Shown("mcp"); got != b.Base+"/mcp" {
		t.Errorf("the address of the MCP server is %s", got)
	}
	answers(b.Shown("address")+"/v0.1/servers", http.StatusOK)
	answers(b.Shown("list"), http.StatusOK)
	for _, client := range []string{"copilot", "claude", "gemini", "kiro", "codex"} {
		b.Press("Show", http.StatusOK, "client", client, "view", "open")
		answers(b.Shown("list"), http.StatusOK)
	}
	b.Press("Show", http.StatusOK, "client", "cursor").WantText(".cursor/mcp.json").WantNoText("For administrators")
	b.Press("Show", http.StatusOK, "client", "other")
	answers(b.Shown("address")+"/v0.1/servers", http.StatusOK)
	b.Open("/console/connect?client=emacs", http.StatusUnprocessableEntity)
	b.Open("/console/connect?view=data", http.StatusUnprocessableEntity)
	b.Open("/console/connect?view=nothing", http.StatusUnprocessableEntity)
	b.signIn(e.NewPerson(t, "ada@example.com"))
	b.Open("/console/connect?client=kiro&view=data", http.StatusOK).WantNoText(token)
	answers(b.Shown("list"), http.StatusUnauthorized)
	answers(strings.Replace(b.Shown("list"), "TOKEN", token, 1), http.StatusOK)
	b.Press("Show", http.StatusOK, "client", "other")
	answers(strings.Replace(b.Shown("address"), "TOKEN", token, 1)+"/v0.1/servers", http.StatusOK)
	answers(strings.Replace(b.Shown("address"), "/t/TOKEN", "", 1)+"/v0.1/servers", http.StatusUnauthorized)
}

// TestConnectAddress checks the address behind a proxy and with PUBLIC_URL.
func TestConnectAddress(t *testing.T) {
	e := newEnvironment(t)
	proxied := func(b *browser) *http.Request {
		r := b.Request(http.MethodGet, "/console/connect", nil, "")
		r.Header.Set("X-Forwarded-For", "192.0.2.1")
		r.Header.Set("X-Forwarded-Host", "tools.example.com")
		r.Header.Set("X-Forwarded-Proto", "https")
		return r
	}
	for want, settings := range map[string][]string{
		"https://tools.example.com":         {"TRUSTED_PROXIES=127.0.0.1/32,::1/128"},
		"https://registry.example.com/some": {"PUBLIC_URL=https://registry.example.com/some/"},
	} {
		b := newBrowser(t, run(t, e, settings...))
		b.Send(proxied(b), http.StatusOK)
		if got := b.Shown("service"); got != want {
			t.Errorf("with %v the address is %s", settings, got)
		}
	}
}
