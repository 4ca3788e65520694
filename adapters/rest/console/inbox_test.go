package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// TestInbox has one thing of each kind that waits, and checks who sees it, in which order, and the number in the
// header. A person sees only their own, as far as the trust of the session admits.
func TestInbox(t *testing.T) {
	const origin = "https://registry.example.com"
	issuer := oidcissuer.Start(t)
	e, s := start(t, "REGISTRY_REVIEW=on", "DECIDE=on", "PUBLIC_URL="+origin, "GITHUB_OIDC_ISSUER="+issuer.URL, "WEBHOOK_RETRY_FOR=1s")
	ada := e.NewWriter(t, s, "ada@example.com", "publish com.example/*", "publish io.github.example/*")
	author, eve := openVerified(t, e, s, ada), newVerified(t, e, s, "eve@example.com", "publish org.other/*")
	for _, b := range []*browser{author, eve} {
		b.Open("/console/inbox", http.StatusOK).WantText("Nothing waits for you. Find a server")
		b.Open("/console/home", http.StatusOK).WantText("Waits for you Nothing.", "No server yet: operators decide by access rules.", "Nothing is published yet.")
	}

	publishVersion(t, s, ada, "com.example/weather", "1.0.0")
	claims := issuer.NewClaims(origin, time.Now())
	claims["repository"], claims["repository_owner"] = "example/tools", "example"
	claims["sub"] = "repo:example/tools:ref:refs/heads/main"
	apiclient.Call(t, "POST", s.API+"/v0/auth/github-oidc", map[string]string{"oidc_token": issuer.Sign(t, claims)}).
		WantStatus(t, http.StatusUnauthorized)
	soon := time.Now().UTC().AddDate(0, 0, 5).Format(time.DateOnly)
	author.Open("/console/account/tokens?new=1", http.StatusOK)
	author.Press("Make this token", http.StatusOK, "name", "nightly", "scopes", "registry:read", "expiresAt", soon)
	e.RunCommand(t, "", "webhook", "add", "https://hooks.invalid/in", "--events", "published") // a name of no DNS (RFC 6761)
	e.RunCommand(t, "", "mirror", "add", "up", "https://registry.invalid")
	e.RunCommand(t, "", "access", "rule", "set", "use", "--subject", "everyone", "--server", "com.example/*", "--effect", "allow")

	bea := e.NewPerson(t, "bea@example.com", "review com.example/*")
	b := signedIn(t, s, bea)
	b.WantText("Inbox 1 waiting", "Waits for you 1", "com.example/weather 1.0.0 New server")
	b.Follow("Inbox 1 waiting", http.StatusOK)
	b.WantText("com.example/weather 1.0.0 New server, by ada@example.com", "New host")
	b.WantNoText("nightly", "hooks.invalid", "example/tools")
	b.Follow("com.example/weather", http.StatusOK)
	b.Press("Approve", http.StatusForbidden, "comment", "It is ours.")
	b.verify(e, bea, http.StatusOK)
	b.Press("Approve", http.StatusOK)
	b.Open("/console/inbox", http.StatusOK).WantText("Nothing waits for you. What was approved").WantNoText("waiting")

	author.Open("/console/home", http.StatusOK)
	author.WantText("What you have submitted com.example/weather 1.0.0 Approved “It is ours.” by bea@example.com",
		"Ends soon nightly Token that ends ends in", "Changed last", "You may use com.example/weather May use everything.")
	author.Open("/console/inbox", http.StatusOK)
	author.WantText("Inbox 2 waiting", "repo:example/tools:ref:refs/heads/main Refused proof Nobody has allowed it to publish io.github.example/*",
		"nightly Token that ends ends in")
	author.Follow("repo:example/tools:ref:refs/heads/main", http.StatusOK).WantText("Check that it is yours.")
	eve.Open("/console/inbox", http.StatusOK).WantText("Nothing waits for you.")

	waitForOperators(t, e, s)
	weak := signedIn(t, s, e.NewPerson(t, "uma@example.com", operate))
	weak.Open("/console/inbox", http.StatusOK).WantText("More may wait").WantNoText("hooks.invalid", "registry.invalid", "Denied calls")
	olga := newVerified(t, e, s, "olga@example.com", operate)
	await.Until(t, "what fails", func() bool {
		olga.Open("/console/inbox", http.StatusOK)
		return strings.Contains(olga.Text(), "Webhook that fails") && strings.Contains(olga.Text(), "Mirror that fails") && strings.Contains(olga.Text(), "has 20 entries")
	})
	olga.WantText("Inbox 4 waiting", "hooks.invalid Webhook that fails 1 events were not delivered", "up Mirror that fails",
		"Acme Company sign-in the company's sign-in does not answer now", "Denied calls They rose The log has 20 entries of the last day, and 0 of the day before")
	if text := olga.Text(); strings.Index(text, "Acme") > strings.Index(text, "Mirror that fails") {
		t.Errorf("what is dangerous is not first: %s", text)
	}
	olga.Follow("Denied calls", http.StatusOK).WantPath("/console/operator/log?type=ACCESS_DECISION")
}

// waitForOperators makes a provider that is away, and denied calls.
func waitForOperators(t *testing.T, e *fixture.Environment, s *fixture.Service) {
	t.Helper()
	e.RunCommand(t, "", "provider", "add", "acme", "--display-name", "Acme", "--issuer", "https://acme.invalid", "--client-id", "c", "--domain", "acme.example")
	_, err := e.OpenDatabase(t).ExecContext(t.Context(), "UPDATE company_providers SET problem = $1, problem_at = created_at", company.ProblemAway)
	must.Succeed(t, err)
	e.RunCommand(t, "", "service-account", "set", "gate", "--description", "a proxy")
	e.RunCommand(t, "", "grant", "add", "--service", "gate", "--action", "operate", "--resource", "*")
	olga := newVerified(t, e, s, "oli@example.com", operate)
	olga.Open("/console/operator/service-accounts/gate", http.StatusOK)
	olga.Press("Make this token", http.StatusOK, "name", "t", "scopes", "decide")
	key := olga.Secret()
	for i := range 20 {
		apiclient.Call(t, "POST", s.API+"/access/v1/evaluation", map[string]any{
			"subject": map[string]string{"type": "person", "id": "ada@example.com"}, "action": map[string]string{"name": "tools/call"},
			"resource": map[string]any{"type": "mcp_tool", "id": fmt.Sprint("tool", i), "properties": map[string]string{"server": "org.other/x"}},
		}, "Authorization", "Bearer "+key).WantStatus(t, http.StatusOK)
	}
}
