package console

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
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, append(fixture.RegistrySettings(), fixture.RiskPolicy("relaxed"))...)
		provider := oidcissuer.StartProvider(t)
		b := newOperator(t, e, s)
		b.follow("Company sign-in", http.StatusOK)
		b.wantText("No provider yet: people sign in with passwords.", b.base+"/console/sign-in/company/NAME/callback")
		form := []string{
			"name", "acme", "displayName", "Acme", "issuer", provider.URL, "clientId", provider.ClientID,
			"clientSecret", provider.Secret, "domains", "acme.example\n other.example ", "create", "true",
			"networks", "127.0.0.0/8", "groupGrants", "devs=publish:com.acme/*",
		}
		for field, wrong := range map[string][2]string{
			"name": {"Acme", "Name must have"}, "issuer": {"acme", "Issuer must be a URL"}, "clientId": {" ", "Client ID must have"},
			"scopes": {"email", "Scopes must have openid."}, "recheck": {"1s", "Check again every must be a duration"},
			"domains":     {"acme.example\nacme", "E-mail domains, entry 2, must be the domain"},
			"groupGrants": {"devs=publish", "Grants by groups, entry 1, must be GROUP=ACTION:RESOURCE"},
			"networks":    {"ten", "Networks, entry 1, must be a network"}, "clientSecret": {"a\tb", "Client secret must have"},
			"enforce": {"true", "Passwords: no person who can operate"},
		} {
			b.open("/console/operator/providers", http.StatusOK)
			b.press("Add this provider", http.StatusUnprocessableEntity, append(form, field, wrong[0])...)
			b.wantText(wrong[1])
			if got := b.field("displayName"); got != "Acme" {
				t.Errorf("%s: the form has the name %q", field, got)
			}
		}
		b.open("/console/operator/providers", http.StatusOK)
		b.press("Add this provider", http.StatusOK, form...)
		b.wantPath("/console/operator/providers/acme?done=provider")
		b.wantText("The provider is added.", "Not used yet", "It has one", b.base+"/console/sign-in/company/acme/callback",
			b.base+"/auth/company/acme/logout")
		if got := b.field("domains"); got != "acme.example\nother.example" || b.field("scopes") != "openid profile email" {
			t.Errorf("the form has the domains %q and the scopes %q", got, b.field("scopes"))
		}
		if html := b.page.body; strings.Contains(html, provider.Secret) {
			t.Error("the page shows the secret")
		}
		b.press("Test", http.StatusOK)
		b.wantText("discovery OK the discovery document is that of "+provider.URL, "keys OK")
		b.wantSignedIn(s, provider)
		b.changeProvider(provider)
		b.removeProvider(e, provider)
	})
}

// wantSignedIn signs a person in at a provider, and checks what operators see of the person.
func (b *browser) wantSignedIn(s *fixture.Service, provider *oidcissuer.Provider) {
	b.t.Helper()
	provider.SignIn("u1", "ada@acme.example", "groups", "devs")
	ada := newBrowser(b.t, s)
	ada.open("/console/sign-in/company/acme?return=/console/account", http.StatusOK)
	ada.wantText("ada@acme.example")
	b.open("/console/operator/people", http.StatusOK)
	b.wantText("publish com.acme/* provider:acme", "operate *")
	b.follow("ada@acme.example", http.StatusOK)
	b.wantText("publish com.acme/* provider:acme", "acme u1 ada@acme.example")
	b.wantNoText("Remove the grant")
	b.submit("/console/operator/people/ada@acme.example/grants/remove", http.StatusConflict,
		map[string][]string{"action": {"publish"}, "resource": {"com.acme/*"}})
	b.open("/console/operator/grants", http.StatusOK)
	b.wantText("ada@acme.example publish com.acme/* provider:acme", "bea@example.com operate * by hand")
	b.open("/console/operator/providers", http.StatusOK)
	b.wantText("Acme", "Works", "acme.example other.example")
	provider.SignIn("u1", "ada@acme.example", "groups", 7)
	newBrowser(b.t, s).open("/console/sign-in/company/acme?return=/console/account", http.StatusOK)
	b.open("/console/operator/providers", http.StatusOK)
	b.wantText("Problem", "groups: number")
}

// changeProvider changes the fields of a provider: the secret stays unless it is changed.
func (b *browser) changeProvider(provider *oidcissuer.Provider) {
	b.t.Helper()
	b.follow("Acme", http.StatusOK)
	for name, value := range map[string]string{
		"displayName": "Acme Inc.", "requiredGroups": "devs\nops team", "emailClaim": "mail", "groupsClaim": "roles", "acr": "gold",
		"amr": "mfa\notp", "recheck": "5m", "maxSession": "2d", "scopes": "openid groups",
		"audiences": "api://a\nhttps://b.example/", "scopeClaim": "scp",
	} {
		b.press("Save this provider", http.StatusOK, name, value)
		b.wantText("The changes are saved.", "It has one")
		if got := b.field(name); got != strings.Replace(value, "2d", "48h", 1) {
			b.t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
	b.press("Save this provider", http.StatusUnprocessableEntity, "issuer", provider.URL+"?")
	b.press("Save this provider", http.StatusOK, "issuer", provider.URL, "noSecret", "true")
	b.wantText("Not set: PKCE alone")
}

// removeProvider removes a provider; one that a file manages is read-only.
func (b *browser) removeProvider(e *fixture.Environment, provider *oidcissuer.Provider) {
	b.t.Helper()
	b.press("Remove the provider acme", http.StatusOK)
	b.wantText("The provider is removed.", "No provider yet")
	b.open("/console/operator/people/ada@acme.example", http.StatusOK)
	b.wantText("This person has no grants", provider.URL+" u1", "not signed in anywhere")
	e.RunCommand(b.t, `{"apiVersion": "tollgate.dev/v1", "kind": "State", "providers": [{"name": "acme", "issuer": "`+
		provider.URL+`", "clientId": "tollgate", "create": true, "domains": ["acme.example"]}]}`,
		"apply", "-f", "-", "--owner", "platform")
	b.open("/console/operator/providers/acme", http.StatusOK)
	b.wantText("managed by platform", "E-mail domains acme.example", "New people Who has no account")
	b.wantNoText("Save this", "Remove it")
	fields := url.Values{"issuer": {provider.URL}, "clientId": {"other"}}
	b.submit("/console/operator/providers/acme", http.StatusConflict, fields)
	b.wantText("The file of platform manages this", "Client ID tollgate")
	b.submit("/console/operator/providers/acme/remove", http.StatusConflict, nil)
	b.open("/console/operator/providers/unknown", http.StatusNotFound)
}
