package consolebrowser

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
)

// TestApplicationPages checks the pages of the authorization server as TestPages does those of the console.
func TestApplicationPages(t *testing.T) {
	if testing.Short() {
		t.Skip("long: 17 pages in a browser; the tests of adapters/rest/console have them without one")
	}
	t.Parallel()
	e, port := fixture.NewEnvironment(t, "embedded"), instance.FreePort()
	s := e.Start(t, append(append(fixture.RegistrySettings(), fixture.RelaxedRiskSettings...),
		"OAUTH=on", "PORT="+port, "PUBLIC_URL=http://localhost:"+port)...)
	site := &site{t, e, s, readAxe(t), map[string]string{}}
	ada := e.NewWriter(t, s, "ada@example.com", "publish *", "operate *")
	const path = "/a-long-path-of-a-tool-server/which-has-no-place-on-a-narrow-page/without-a-break/mcp"
	for name, remote := range map[string]string{"com.example/weather": "https://tools.example.com/weather/mcp", longName: "https://tools.example.com" + path} {
		document := fixture.NewServerDocument(name, "1.0.0")
		document["title"] = "Weather"
		document["remotes"] = []any{map[string]any{"type": "streamable-http", "url": remote}}
		ada.PostJSON(t, s, "/v0.1/publish", document).WantStatus(t, http.StatusOK)
	}
	p := newPerson(t, e, s)
	p.signIn("ada@example.com")
	p.open("/console/operator")
	p.verify("ada@example.com")
	site.checkClients(p, "https://tools.example.com"+path)
	site.checkRequests(p, "https://tools.example.com"+path)
}

// checkClients checks the pages of clients and resources, empty ones and those with something on them.
func (s *site) checkClients(p *person, resource string) {
	s.checkAll(p, "empty-clients", "operator/clients", "empty-resources", "operator/resources", "new-resource", "operator/resources?new=1")
	for name, value := range map[string]string{
		"name": "tools", "url": resource, "servers": longName, "scopes": "forecast:read forecast:a-scope-with-a-long-name-that-has-no-space", "tokenTtl": "59",
	} {
		p.set(name, value)
	}
	s.checkAct(p, "wrong-resource", act{"", nil, "Add this resource", ""})
	p.set("tokenTtl", "60")
	p.click("Add this resource")
	client := []string{
		"clientId", "editor", "name", "The Editor of the Organisation with a Long Name",
		"redirectUris", "http://127.0.0.1/callback\nhttps://a-very-long-host-name.example.com/" + strings.Repeat("path/", 30),
	}
	s.checkAct(p, "wrong-client-id", act{"operator/clients?new=1", append(client, "clientId", "https://x"), "Add this client", ""})
	p.do(act{"operator/clients?new=1", client, "Add this client", ""})
	s.checkAct(p, "client-secret", act{"operator/clients?new=1", []string{
		"clientId", "server", "name", "Server", "redirectUris", "https://app.example.com/back", "method", "client_secret_basic",
	}, "Add this client", ""})
	s.checkAll(p, "clients", "operator/clients", "client", "operator/clients/server",
		"resources", "operator/resources", "resource", "operator/resources/tools")
}

// checkRequests checks what a person meets who lets an application act, and what the account shows then.
func (s *site) checkRequests(p *person, resource string) {
	codes := make(chan string, 1)
	application := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/callback" {
			codes <- r.URL.Query().Get("code")
		}
		w.WriteHeader(http.StatusNoContent) // the browser keeps the page that leads here
	}))
	s.t.Cleanup(application.Close)
	ask := "/oauth2/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {"editor"}, "redirect_uri": {application.URL + "/callback"}, "resource": {resource},
		// the challenge and its verifier below are those of RFC 7636, appendix B
		"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"},
	}.Encode()
	stranger := newPerson(s.t, s.e, s.s)
	stranger.open(ask)
	s.checkOpen(stranger, "application-sign-in")
	s.check(p, "no-applications", "/console/account/applications")
	p.open(strings.Replace(ask, "=editor", "=nobody", 1))
	s.checkOpen(p, "unknown-client")
	s.e.RunCommand(s.t, "", "access", "rule", "set", "all", "--order", "10", "--effect", "allow", "--subject", "everyone", "--server", "*")
	p.open(ask)
	s.checkOpen(p, "consent")
	p.tab.Click(s.t, "Allow")
	code := await.Receive(s.t, "the code", codes)
	await.Until(s.t, "the browser goes elsewhere", func() bool { return strings.Contains(strings.Join(p.errors.TakeAll(), " "), "/callback") })
	s.checkOpen(p, "return")
	apiclient.Call(s.t, "POST", s.s.API+"/oauth2/token", url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {application.URL + "/callback"}, "client_id": {"editor"},
		"code_verifier": {"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"}, "resource": {resource},
	}.Encode(), "Content-Type", "application/x-www-form-urlencoded").WantStatus(s.t, http.StatusOK)
	s.check(p, "applications", "/console/account/applications")
}
