package console

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// startCompany starts a service with the provider acme, which shows second factors, and a person with
// an identity there.
func startCompany(t *testing.T, e *fixture.Environment) (*fixture.Service, *oidcissuer.Provider, *fixture.Person) {
	t.Helper()
	s, provider := e.Start(t, fixture.RegistrySettings()...), oidcissuer.StartProvider(t)
	olga := e.NewWriter(t, s, "olga@example.com", "operate *")
	apiclient.Call(t, "PUT", s.API+"/admin/v1/providers/acme", map[string]any{
		"displayName": "Acme", "issuer": provider.URL, "clientId": provider.ClientID, "clientSecret": provider.Secret,
		"domains": []string{"acme.example"}, "networks": []string{"127.0.0.0/8"},
		"secondFactor": map[string]any{"acr": []string{"gold"}},
	}, olga.Bearer()...).WantStatus(t, http.StatusCreated)
	ada := e.NewPerson(t, "ada@acme.example", "publish *")
	provider.SignIn("u1", ada.Email)
	newBrowser(t, s).open("/console/sign-in/company/acme", http.StatusOK)
	provider.SignIn("u1", ada.Email, "acr", "gold", "auth_time", time.Now().Unix())
	return s, provider, ada
}

// newTab returns another tab of the browser.
func (b *browser) newTab() *browser { return &browser{t: b.t, client: b.client, base: b.base} }

// address returns the address of the link to the provider.
func (b *browser) address() string {
	b.t.Helper()
	link := find(b.page.root, func(n *html.Node) bool {
		return n.Data == "a" && strings.Contains(attribute(n, "href"), "/step-up/company/")
	})
	if link == nil {
		b.t.Fatalf("there is no link to the provider: %s", b.text())
	}
	return attribute(link, "href")
}

// TestStepUpAtCompany verifies a person at the company, in a new tab while a form waits, which comes
// back as it was filled in, and else in the same tab.
func TestStepUpAtCompany(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s, provider, ada := startCompany(t, e)
		b := newBrowser(t, s)
		b.signIn(ada)
		b.open("/console/publish", http.StatusOK)
		text, err := json.MarshalIndent(fixture.NewServerDocument("com.example/tool", "1.0.0"), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		document := string(text)
		b.press("Publish", http.StatusForbidden, "document", document)
		b.press("Sign in at Acme again", http.StatusOK)
		b.press("Continue", http.StatusUnprocessableEntity)
		b.wantText("You are not verified yet.")
		tab := b.newTab()
		tab.open(b.address(), http.StatusOK)
		tab.wantPath("/console/step-up/verified")
		tab.wantText("You are verified", "ada@acme.example")
		b.press("Continue", http.StatusOK)
		b.wantPath("/console/publish")
		if got := b.field("document"); got != document {
			t.Errorf("the form has %q", got)
		}
		b.press("Publish", http.StatusOK)
		b.press("Sign out", http.StatusOK)

		b.open("/console/sign-in?next=/console/own", http.StatusOK)
		b.signIn(ada)
		b.open("/console/step-up?next=/console/account/tokens", http.StatusOK)
		b.press("Sign in at Acme again", http.StatusOK)
		provider.SignIn("u1", ada.Email, "acr", "bronze", "auth_time", time.Now().Unix())
		failed := b.newTab()
		failed.open(b.address(), http.StatusUnauthorized)
		failed.wantText("The company has not checked a second factor.")
		provider.SignIn("u1", ada.Email, "acr", "gold", "auth_time", time.Now().Unix())
		b.open(b.address(), http.StatusOK)
		b.wantPath("/console/account/tokens")
		b.wantNoText("not verified")
	})
}
