package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// wantStatus checks the status of a request with a token.
func wantStatus(t *testing.T, s *fixture.Service, path, token string, status int) {
	t.Helper()
	apiclient.Call(t, "GET", s.API+path, nil, "Authorization", "Bearer "+token).WantStatus(t, status)
}

// TestTokens makes tokens of views, service accounts and people: each is shown once, and good until
// it is removed.
func TestTokens(t *testing.T) {
	e, s := start(t)
	b := newOperator(t, e, s)
	b.Open("/console/operator/views?new=1", http.StatusOK)
	b.Press("Add this view", http.StatusOK, "name", "data", "access", "token")
	b.Open("/console/operator/service-accounts?new=1", http.StatusOK)
	b.Press("Add this service account", http.StatusOK, "name", "deploy")
	for _, c := range []struct {
		page, back, good, remove string
		fields                   []string
	}{
		{"operator/views/data", "The view data", "/registries/data/v0.1/servers", "Remove the token CI", []string{"token", "ci"}},
		{"operator/service-accounts/deploy", "The service account deploy", "/admin/v1/me", "Remove the token CI", []string{"name", "ci", "scopes", "registry:publish"}},
		{"account/tokens", "My tokens", "/admin/v1/me", "Remove the token CI", []string{"name", "ci", "scopes", "registry:read"}},
	} {
		b.Open("/console/"+c.page, http.StatusOK)
		b.Press("Make this token", http.StatusOK, c.fields...)
		token := b.Secret()
		wantStatus(t, s, c.good, token, http.StatusOK)
		b.Follow(c.back, http.StatusOK).WantText("ci").WantNoText(token)
		b.Press("Remove the token ci", http.StatusOK).WantText("The token is removed.")
		wantStatus(t, s, c.good, token, http.StatusUnauthorized)
	}
	b.Open("/console/operator/service-accounts/deploy", http.StatusOK)
	b.Press("Make this token", http.StatusOK, "name", "last", "scopes", "registry:publish")
	token := b.Secret()
	b.Open("/console/operator/service-accounts", http.StatusOK)
	b.Press("Remove the service account deploy", http.StatusOK)
	wantStatus(t, s, "/admin/v1/me", token, http.StatusUnauthorized)
	b.Open("/console/account/tokens", http.StatusOK)
	day := time.Now().UTC().AddDate(0, 0, 10).Format(time.DateOnly)
	b.Press("Make this token", http.StatusOK, "name", "ten days", "scopes", "registry:read", "expiresAt", day)
	b.Follow("My tokens", http.StatusOK)
	if until := day + "T23:59:59Z"; !strings.Contains(b.Page.Body, until) {
		t.Errorf("no token is good until the end of its last day, %s", until)
	}
	b.Open("/console/operator/log?type=REGISTRY_CHANGE", http.StatusOK).WantText("bea@example.com made the token")
}

// TestGrantsAndRules adds and removes a grant and a review rule, which count from the next request
// on.
func TestGrantsAndRules(t *testing.T) {
	e, s := start(t, "REGISTRY_REVIEW=on")
	ada := e.NewWriter(t, s, "ada@example.com")
	publication := func(name string, listed int) int {
		status := ada.PostJSON(t, s, "/v0.1/publish", fixture.NewServerDocument(name, "1.0.0")).Status
		wantVersion(t, s, name, "1.0.0", listed)
		return status
	}
	want := func(when string, got, status int) {
		t.Helper()
		if got != status {
			t.Errorf("%s the publication has the status %d", when, got)
		}
	}
	b := newOperator(t, e, s)
	b.Follow("Rights", http.StatusOK).WantText("bea@example.com operate *")
	want("without a grant", publication("com.example/a", http.StatusNotFound), http.StatusForbidden)
	b.Follow("New grant", http.StatusOK)
	b.Press("Add this grant", http.StatusOK, "email", "ada@example.com", "action", "publish", "resource", "com.example/*")
	b.WantText("The grant is added.", "ada@example.com publish com.example/*")
	want("with the grant", publication("com.example/a", http.StatusNotFound), http.StatusOK)
	b.Open("/console/operator/review-rules?new=1", http.StatusOK)
	b.Press("Add this rule", http.StatusOK, "resource", "com.example/*", "publisher", "ada@example.com", "when", "any")
	b.WantText("ada@example.com", "Always")
	want("with the rule", publication("com.example/b", http.StatusOK), http.StatusOK)
	b.Press("Remove the rule for com.example/*", http.StatusOK).WantText("each document waits for a person")
	want("without the rule", publication("com.example/c", http.StatusNotFound), http.StatusOK)
	b.Open("/console/operator/rights", http.StatusOK)
	b.Press("Remove the grant to publish com.example/* of ada@example.com", http.StatusOK)
	want("after the grant", publication("com.example/d", http.StatusNotFound), http.StatusForbidden)
	// Only who is not the last operator can take the own grant away, and is not an operator any more.
	b.Press("Remove the grant to operate * of bea@example.com", http.StatusConflict)
	b.WantText("This is the last active person who can operate the service")
	e.NewPerson(t, "olga@example.com", "operate *")
	b.Open("/console/operator/rights", http.StatusOK)
	b.Press("Remove the grant to operate * of bea@example.com", http.StatusForbidden)
}

// TestOperatorRegistry reads what operators and commands have added on the pages of the registry.
func TestOperatorRegistry(t *testing.T) {
	e, s := start(t)
	e.RunCommand(t, "", "mirror", "add", "public", "https://registry.example.com", "--include", "io.github.*", "--interval", "24h")
	e.RunCommand(t, "", "webhook", "add", "https://hooks.example.com/in?token=hunter2", "--events", "published")
	e.NewPerson(t, "ada@example.com", "publish com.example/*")
	b := newOperator(t, e, s)
	b.WantText("This instance", "database ok", "otp-log courier running")
	b.Follow("Views", http.StatusOK)
	b.Follow("New view", http.StatusOK)
	b.Press("Add this view", http.StatusOK, "name", "data", "include", "com.example/* com.other/*", "access", "token")
	b.WantText("/registries/data", "com.example/* com.other/*", "token")
	wantStatus(t, s, "/registries/data/v0.1/servers", "x", http.StatusUnauthorized)
	b.Follow("/registries/data", http.StatusOK).WantFields("include", "com.example/* com.other/*", "access", "token")
	b.Open("/console/operator/views", http.StatusOK)
	b.Press("Remove the view data", http.StatusOK)
	wantStatus(t, s, "/registries/data/v0.1/servers", "x", http.StatusNotFound)
	b.Open("/console/operator/views/data", http.StatusNotFound)
	b.Follow("All servers", http.StatusOK)
	b.Open("/console/operator/policies?new=1", http.StatusOK)
	b.Press("Add this policy", http.StatusOK, "method", "github-oidc", "pattern", "com.example/*",
		"claims", "repository=acme/tools\nref=refs/heads/main", "actions", "status")
	b.WantText("repository: acme/tools", "ref: refs/heads/main", "status", "an operator")
	b.Press("Remove the policy for com.example/*", http.StatusOK).WantText("No policy yet")
	b.Follow("New policy", http.StatusOK)
	b.Press("Add this policy", http.StatusOK, "method", "dns", "pattern", "com.example/*", "domain", "example.com",
		"owner", "ada@example.com", "expiresAt", "2199-01-31")
	b.WantText("example.com", "ada@example.com", "until", "2199, 00:00")
	b.Follow("Mirrors", http.StatusOK).WantText("registry.example.com")
	b.Follow("public", http.StatusOK).WantText("All servers that it has taken over are deleted.")
	b.Press("Remove with its servers the mirror public", http.StatusOK).WantText("No mirror yet.")
	b.Follow("Webhooks", http.StatusOK).WantText("hooks.example.com", "published", "Not delivered 0")
	b.WantNoText("hunter2")
	b.Press("Remove the webhook of hooks.example.com", http.StatusOK).WantText("No webhook yet")
	b.Follow("New webhook", http.StatusOK)
	b.Press("Add this webhook", http.StatusOK, "url", "http://127.0.0.1:1/in?key=hunter2", "resource", "com.example/*", "events", "published")
	secret := b.Secret()
	b.Follow("The webhook of 127.0.0.1:1", http.StatusOK)
	b.WantText("http://127.0.0.1:1/…", "published of com.example/*", "Nothing was sent yet.")
	b.WantNoText(secret, "hunter2")
	b.Press("Send a test", http.StatusConflict)
	b.WantText("There is a problem The connection failed.", "Change it", "test dead none none after")
	b.WantNoText("Nothing was sent yet.", "Send again")
}
