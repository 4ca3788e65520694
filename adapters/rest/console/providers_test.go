package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// TestOperatorProviders adds a provider, tests it, changes each field and removes it. Its secret is not
// shown, and a person who signs in there is shown with the identity and the origin of the grants.
func TestOperatorProviders(t *testing.T) {
	e, s := start(t, fixture.RiskPolicy("relaxed"))
	provider := oidcissuer.StartProvider(t)
	b := newOperator(t, e, s)
	b.Follow("Company sign-in", http.StatusOK)
	b.WantText("No provider yet: people sign in with passwords.")
	b.Follow("Add the first one", http.StatusOK).WantText(b.Base + "/console/sign-in/company/NAME/callback")
	b.WantText("Connect Name", "Who may come in E-mail domains", "What they get Grants by groups", "More Text of its button")
	b.testNewProvider(provider)
	b.Press("Add this provider", http.StatusOK, "name", "acme", "displayName", "Acme", "issuer", provider.URL, "clientId", provider.ClientID,
		"clientSecret", provider.Secret, "domains", "acme.example\n other.example ", "create", "true", "networks", "127.0.0.0/8",
		"groupGrants", "devs=publish:com.acme/*")
	b.WantPath("/console/operator/providers/acme?done=provider")
	b.WantText("The provider is added.", "Not used yet", "It has one", b.Base+"/console/sign-in/company/acme/callback",
		b.Base+"/auth/company/acme/logout")
	b.WantFields("domains", "acme.example\nother.example", "scopes", "openid profile email")
	if html := b.Page.Body; strings.Contains(html, provider.Secret) {
		t.Error("the page shows the secret")
	}
	b.Press("Test", http.StatusOK).WantText("discovery OK the discovery document is that of "+provider.URL, "keys OK")
	b.wantSignedIn(s, provider)
	b.changeProvider(provider)
	b.removeProvider(e, provider)
}

// testNewProvider tests a provider that is not stored: an address that is refused names the field that helps.
func (b *browser) testNewProvider(provider *oidcissuer.Provider) {
	b.T.Helper()
	b.Press("Test", http.StatusUnprocessableEntity, "name", "acme", "issuer", "acme", "clientId", "x").WantText("Issuer must be a URL")
	b.Press("Test", http.StatusOK, "name", "acme", "issuer", provider.URL, "clientId", provider.ClientID, "clientSecret", provider.Secret)
	b.WantText("discovery Failed", "is not public: put its network into Networks", b.Base+"/console/sign-in/company/acme/callback")
	if !strings.Contains(b.Page.Body, `<a href="#networks">`) || !strings.Contains(b.Page.Body, "<details open><summary>More") {
		b.T.Error("the test does not lead to the field of the networks")
	}
	if strings.Contains(b.Page.Body, provider.Secret) {
		b.T.Error("the page shows the secret")
	}
	b.Press("Test", http.StatusOK, "networks", "127.0.0.0/8").WantText("discovery OK", "keys OK").WantFields("issuer", provider.URL, "networks", "127.0.0.0/8")
	b.Open("/console/operator/providers", http.StatusOK).WantText("No provider yet")
	b.Follow("New provider", http.StatusOK)
}

// wantSignedIn signs a person in at a provider, and checks what operators see of the person.
func (b *browser) wantSignedIn(s *fixture.Service, provider *oidcissuer.Provider) {
	b.T.Helper()
	provider.SignIn("u1", "ada@acme.example", "groups", "devs")
	ada := newBrowser(b.T, s)
	ada.Open("/console/sign-in/company/acme?return=/console/account", http.StatusOK).WantText("ada@acme.example")
	b.Open("/console/operator/people", http.StatusOK).WantText("publish com.acme/* provider:acme", "operate *")
	b.Follow("ada@acme.example", http.StatusOK).WantText("publish com.acme/* provider:acme", "acme u1 ada@acme.example")
	b.WantNoText("Remove the grant")
	b.Submit("/console/operator/people/ada@acme.example/grants/remove", http.StatusConflict,
		map[string][]string{"action": {"publish"}, "resource": {"com.acme/*"}})
	b.Open("/console/operator/rights", http.StatusOK)
	b.WantText("ada@acme.example publish com.acme/* provider:acme", "bea@example.com operate * by hand")
	b.Open("/console/operator/providers", http.StatusOK).WantText("Acme", "Works", "acme.example other.example")
	b.Open("/console/operator/providers/acme", http.StatusOK).WantText("The last sign-in had the claims", " groups ", " sub")
	provider.SignIn("u1", "ada@acme.example")
	newBrowser(b.T, s).Open("/console/sign-in/company/acme?return=/console/account", http.StatusOK)
	b.Open("/console/operator/providers/acme", http.StatusOK).WantText("Problem", "the last sign-in had no claim groups, on which 1 grant depends")
	provider.SignIn("u1", "ada@acme.example", "groups", 7)
	newBrowser(b.T, s).Open("/console/sign-in/company/acme?return=/console/account", http.StatusOK)
	b.Open("/console/operator/providers", http.StatusOK).WantText("Problem", "groups: number")
}

// changeProvider changes the fields of a provider: the secret stays unless it is changed.
func (b *browser) changeProvider(provider *oidcissuer.Provider) {
	b.T.Helper()
	b.Follow("Acme", http.StatusOK)
	for name, value := range map[string]string{
		"displayName": "Acme Inc.", "requiredGroups": "devs\nops team", "emailClaim": "mail", "groupsClaim": "roles", "acr": "gold",
		"amr": "mfa\notp", "recheck": "5m", "maxSession": "2d", "scopes": "openid groups",
		"audiences": "api://a\nhttps://b.example/", "scopeClaim": "scp",
	} {
		b.Press("Save this provider", http.StatusOK, name, value).WantText("The changes are saved.", "It has one")
		if got := b.Field(name); got != strings.Replace(value, "2d", "48h", 1) {
			b.T.Errorf("%s is %q, want %q", name, got, value)
		}
	}
	b.Press("Save this provider", http.StatusOK, "issuer", provider.URL, "noSecret", "true")
	b.WantText("Not set: PKCE alone")
}

// removeProvider removes a provider; one that a file manages is read-only.
func (b *browser) removeProvider(e *fixture.Environment, provider *oidcissuer.Provider) {
	b.T.Helper()
	b.Press("Remove the provider acme", http.StatusOK).WantText("The provider is removed.", "No provider yet")
	b.Open("/console/operator/people/ada@acme.example", http.StatusOK)
	b.WantText("This person has no grants", provider.URL+" u1", "not signed in anywhere")
	e.RunCommand(b.T, `{"apiVersion": "tollgate.dev/v1", "kind": "State", "providers": [{"name": "acme", "issuer": "`+
		provider.URL+`", "clientId": "tollgate", "create": true, "domains": ["acme.example"]}]}`,
		"apply", "-f", "-", "--owner", "platform")
	b.Open("/console/operator/providers/acme", http.StatusOK)
	b.WantText("managed by platform", "E-mail domains acme.example", "New people Who has no account")
	b.WantNoText("Save this", "Remove it")
	fields := url.Values{"issuer": {provider.URL}, "clientId": {"other"}}
	b.Submit("/console/operator/providers/acme", http.StatusConflict, fields)
	b.WantText("The file of platform manages this", "Client ID tollgate")
	b.Submit("/console/operator/providers/acme/remove", http.StatusConflict, nil)
	b.Open("/console/operator/providers/unknown", http.StatusNotFound)
}
