package console

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// meStatus returns the status of a request of a token for its own owner.
func meStatus(t *testing.T, s *fixture.Service, token string) int {
	t.Helper()
	return apiclient.Call(t, "GET", s.API+"/admin/v1/me", nil, "Authorization", "Bearer "+token).Status
}

// TestOwnTokens makes and removes a token of a person.
func TestOwnTokens(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RegistrySettings()...)
		ada := e.NewPerson(t, "ada@example.com", "publish com.example/*")
		b := newBrowser(t, s)
		b.signIn(ada)
		b.open("/console/step-up", http.StatusOK)
		b.verify(e, ada, http.StatusOK)
		b.open("/console/account", http.StatusOK)
		b.follow("Tokens", http.StatusOK)
		b.press("Make this token", http.StatusUnprocessableEntity, "name", "CI", "networks", "here")
		b.wantText("Networks must not have")
		if b.field("name") != "CI" {
			t.Errorf("the form has the name %q", b.field("name"))
		}
		b.press("Make this token", http.StatusUnprocessableEntity, "expiresAt", "2001-01-01", "networks", "",
			"scopes", "registry:read")
		b.wantText("End must be 1 to 365 days from now.")
		b.press("Make this token", http.StatusOK, "expiresAt", "")
		token := b.secret()
		if got := meStatus(t, s, token); got != http.StatusOK {
			t.Errorf("the token has the status %d", got)
		}
		b.follow("My tokens", http.StatusOK)
		b.wantText("CI", token[:12]+"…", "registry:read", "everywhere")
		b.wantNoText(token)
		b.wantForeign("/console/account/tokens", url.Values{"name": {"x"}, "scopes": {"registry:read"}})
		b.open("/console/account/tokens", http.StatusOK)
		b.press("Remove the token CI", http.StatusOK)
		b.wantText("The token is removed.", "No token yet.")
		if got := meStatus(t, s, token); got != http.StatusUnauthorized {
			t.Errorf("after its removal the token has the status %d", got)
		}
	})
}

// TestFormsOfServiceAccounts adds a service account, with a grant, a workload and a token, and removes it.
func TestFormsOfServiceAccounts(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RegistrySettings()...)
		b := newOperator(t, e, s)
		b.follow("Service accounts", http.StatusOK)
		b.press("Add this service account", http.StatusUnprocessableEntity, "name", "Deploy")
		b.wantText("Name must have 1 to 40 lower-case letters")
		b.press("Add this service account", http.StatusOK, "name", "deploy", "description", "Publishes releases.")
		b.wantText("The service account is added.", "Publishes releases.")
		b.follow("deploy", http.StatusOK)
		b.press("Save this service account", http.StatusOK, "description", "Publishes.")
		b.wantText("The changes are saved.")
		b.press("Add this grant", http.StatusUnprocessableEntity, "resource", "com example")
		b.press("Add this grant", http.StatusOK, "resource", "com.example/*")
		b.wantText("The grant is added.", "publish com.example/*")
		b.press("Add this workload", http.StatusUnprocessableEntity, "issuer", "https://evil.example", "subject", "x",
			"workloadScopes", "registry:publish")
		b.wantText("https://evil.example")
		b.press("Add this workload", http.StatusOK, "issuer", "https://token.actions.githubusercontent.com",
			"subject", "repo:acme/tools:*", "claims", "ref=refs/heads/main")
		b.wantText("repo:acme/tools:*", "ref: refs/heads/main", "registry:publish")
		b.press("Make this token", http.StatusUnprocessableEntity, "name", "")
		b.press("Make this token", http.StatusOK, "name", "CI", "scopes", "registry:publish")
		token := b.secret()
		if got := meStatus(t, s, token); got != http.StatusOK {
			t.Errorf("the token has the status %d", got)
		}
		b.follow("The service account deploy", http.StatusOK)
		b.wantText("publish com.example/*", "repo:acme/tools:*", "CI")
		b.press("Remove the workload repo:acme/tools:*", http.StatusOK)
		b.wantNoText("repo:acme/tools:*")
		b.open("/console/operator/grants", http.StatusOK)
		b.press("Remove the grant to publish com.example/* of service:deploy", http.StatusOK)
		b.wantText("The grant is removed.")
		b.wantForeign("/console/operator/service-accounts/deploy/tokens", url.Values{"name": {"x"}})
		b.open("/console/operator/service-accounts", http.StatusOK)
		b.press("Remove the service account deploy", http.StatusOK)
		b.wantText("The service account is removed.")
		if got := meStatus(t, s, token); got != http.StatusUnauthorized {
			t.Errorf("after the removal of its account the token has the status %d", got)
		}
	})
}
