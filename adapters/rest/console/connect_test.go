package console

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// shown returns the text of the element with an id, which a button copies.
func (b *browser) shown(id string) string {
	b.t.Helper()
	n := find(b.page.root, func(n *html.Node) bool { return attribute(n, "id") == id })
	if n == nil || find(b.page.root, func(n *html.Node) bool { return attribute(n, "data-copy") == id }) == nil {
		b.t.Fatalf("%s has nothing to copy with the id %s", b.page.url, id)
	}
	return textOf(n)
}

// TestConnect checks that the addresses that the page shows are those that answer, for everybody
// and for a view that needs a token, and who learns of such a view.
func TestConnect(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.RunCommand(t, "", "view", "add", "open", "--include", "com.example/*")
		e.RunCommand(t, "", "view", "add", "data", "--access", "token")
		token := strings.TrimSpace(e.RunCommand(t, "", "view", "token", "add", "data", "--name", "team"))
		s := e.Start(t, fixture.RegistrySettings()...)
		b := newBrowser(t, s)
		answers := func(address string, status int) {
			t.Helper()
			apiclient.Call(t, "GET", strings.Replace(address, b.base, s.API, 1), nil).WantStatus(t, status)
		}
		b.open("/console/", http.StatusOK)
		b.follow("Connect", http.StatusOK)
		if got := b.shown("service"); got != b.base {
			t.Errorf("the address is %s, want %s", got, b.base)
		}
		b.wantText(".vscode/mcp.json", "View open")
		b.wantNoText("data")
		answers(b.shown("address")+"/v0.1/servers", http.StatusOK)
		answers(b.shown("list"), http.StatusOK)
		for _, client := range []string{"copilot", "claude", "gemini", "kiro"} {
			b.press("Show", http.StatusOK, "client", client, "view", "open")
			answers(b.shown("list"), http.StatusOK)
		}
		b.press("Show", http.StatusOK, "client", "cursor")
		b.wantText(".cursor/mcp.json")
		b.wantNoText("For administrators")
		b.press("Show", http.StatusOK, "client", "other")
		answers(b.shown("address")+"/v0.1/servers", http.StatusOK)
		b.open("/console/connect?client=emacs", http.StatusUnprocessableEntity)
		b.open("/console/connect?view=data", http.StatusUnprocessableEntity)
		b.open("/console/connect?view=nothing", http.StatusUnprocessableEntity)
		b.signIn(e.NewPerson(t, "ada@example.com"))
		b.open("/console/connect?client=kiro&view=data", http.StatusOK)
		b.wantNoText(token)
		answers(b.shown("list"), http.StatusUnauthorized)
		answers(strings.Replace(b.shown("list"), "TOKEN", token, 1), http.StatusOK)
		b.press("Show", http.StatusOK, "client", "other")
		answers(strings.Replace(b.shown("address"), "TOKEN", token, 1)+"/v0.1/servers", http.StatusOK)
		answers(strings.Replace(b.shown("address"), "/t/TOKEN", "", 1)+"/v0.1/servers", http.StatusUnauthorized)
	})
}

// TestConnectAddress checks the address behind a proxy and with PUBLIC_URL.
func TestConnectAddress(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	proxied := func(b *browser) *http.Request {
		r := b.request(http.MethodGet, "/console/connect", nil, "")
		r.Header.Set("X-Forwarded-For", "192.0.2.1")
		r.Header.Set("X-Forwarded-Host", "tools.example.com")
		r.Header.Set("X-Forwarded-Proto", "https")
		return r
	}
	for want, settings := range map[string][]string{
		"https://tools.example.com":         {"TRUSTED_PROXIES=127.0.0.1/32,::1/128"},
		"https://registry.example.com/some": {"PUBLIC_URL=https://registry.example.com/some/"},
	} {
		b := newBrowser(t, e.Start(t, append(fixture.RegistrySettings(), settings...)...))
		b.send(proxied(b), http.StatusOK)
		if got := b.shown("service"); got != want {
			t.Errorf("with %v the address is %s", settings, got)
		}
	}
}
