package console_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/webtest"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// startCompany starts a service with the provider acme, which shows second factors, and a person with
// an identity there.
func startCompany(t *testing.T, e *fixture.Environment) (*fixture.Service, *oidcissuer.Provider, *fixture.Person) {
	t.Helper()
	s, provider := run(t, e, "TRUSTED_PROXIES=127.0.0.1/32,::1/128"), oidcissuer.StartProvider(t)
	olga := e.NewWriter(t, s, "olga@example.com", "operate *")
	apiclient.Call(t, "PUT", s.API+"/admin/v1/providers/acme", map[string]any{
		"displayName": "Acme", "issuer": provider.URL, "clientId": provider.ClientID, "clientSecret": provider.Secret,
		"domains": []string{"acme.example"}, "networks": []string{"127.0.0.0/8"},
		"secondFactor": map[string]any{"acr": []string{"gold"}},
	}, olga.Bearer()...).WantStatus(t, http.StatusCreated)
	ada := e.NewPerson(t, "ada@acme.example", "publish *")
	provider.SignIn("u1", ada.Email)
	newBrowser(t, s).Open("/console/sign-in/company/acme", http.StatusOK)
	provider.SignIn("u1", ada.Email, "acr", "gold", "auth_time", time.Now().Unix())
	return s, provider, ada
}

// newTab returns another tab of the browser.
func (b *browser) newTab() *browser {
	tab := *b.Browser
	return &browser{&tab}
}

// address returns the address of the link to the provider.
func (b *browser) address() string {
	b.T.Helper()
	link := webtest.Find(b.Page.Root, func(n *html.Node) bool {
		return n.Data == "a" && strings.Contains(webtest.Attribute(n, "href"), "/step-up/company/")
	})
	if link == nil {
		b.T.Fatalf("there is no link to the provider: %s", b.Text())
	}
	return webtest.Attribute(link, "href")
}

// TestStepUpAtCompany verifies a person at the company, in a new tab while a form waits, which comes
// back as it was filled in, and else in the same tab.
func TestStepUpAtCompany(t *testing.T) {
	e := newEnvironment(t)
	s, provider, ada := startCompany(t, e)
	b := signedIn(t, s, ada)
	b.Open("/console/publish", http.StatusOK)
	text, err := json.MarshalIndent(fixture.NewServerDocument("com.example/tool", "1.0.0"), "", "  ")
	must.Succeed(t, err)
	document := string(text)
	b.Press("Publish", http.StatusForbidden, "document", document)
	b.Press("Sign in at Acme again", http.StatusOK)
	b.Press("Continue", http.StatusUnprocessableEntity).WantText("You are not verified yet.")
	tab := b.newTab()
	tab.Open(b.address(), http.StatusOK).WantPath("/console/step-up/verified")
	tab.WantText("You are verified", "ada@acme.example")
	b.Press("Continue", http.StatusOK).WantPath("/console/publish").WantFields("document", document)
	b.Press("Publish", http.StatusOK)
	b.Press("Sign out", http.StatusOK)

	b.Open("/console/sign-in?next=/console/own", http.StatusOK)
	b.signIn(ada)
	b.Open("/console/step-up?next=/console/account/tokens", http.StatusOK)
	b.Press("Sign in at Acme again", http.StatusOK)
	elsewhere := newBrowser(t, s)
	r := elsewhere.Request(http.MethodGet, b.address(), nil, "")
	r.Header.Set("X-Forwarded-For", "192.0.2.9")
	elsewhere.Send(r, http.StatusOK).WantText("Did you begin this?")
	e.RunCommand(t, "", "provider", "add", "other", "--issuer", provider.URL, "--client-id", "tollgate", "--domain", "other.example",
		"--enforce", "--force", "--network", "127.0.0.0/8")
	elsewhere.Open("/console/sign-in", http.StatusOK).Press("Sign in", http.StatusOK, "email", "ada@other.example")
	elsewhere.WantText("People with an address like ada@other.example sign in at their company.")
	provider.SignIn("u1", ada.Email, "acr", "bronze", "auth_time", time.Now().Unix())
	failed := b.newTab()
	failed.Open(b.address(), http.StatusUnauthorized).WantText("The company has not checked a second factor.")
	provider.SignIn("u1", ada.Email, "acr", "gold", "auth_time", time.Now().Unix())
	b.Open(b.address(), http.StatusOK).WantPath("/console/account/tokens").WantNoText("not verified")
}

// TestLinkAtCompany links a company sign-in from the account page: by a form, a link to the provider, and a
// question that names the identity and the account.
func TestLinkAtCompany(t *testing.T) {
	e := newEnvironment(t)
	s, provider, _ := startCompany(t, e)
	eve := e.NewWriter(t, s, "eve@other.example")
	provider.SignIn("u2", "eve@acme.example")
	b := signedIn(t, s, eve)
	b.Open("/console/step-up?next=/console/account", http.StatusOK)
	b.Verify(e, eve.Email, http.StatusOK)
	b.Press("Link Acme", http.StatusOK).WantText("Go on at your company")
	b.Follow("Go on", http.StatusOK).WantText("Link this company sign-in?", "eve@acme.example", "eve@other.example")
	b.Press("Link to eve@other.example", http.StatusOK).WantText("is linked")
}
