package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// secret returns the secret that the page shows, and checks that it can be copied and is not kept.
func (b *browser) secret() string {
	b.t.Helper()
	b.wantText("It is shown once.")
	shown := find(b.page.root, func(n *html.Node) bool { return attribute(n, "id") == "secret" })
	if shown == nil || textOf(shown) == "" {
		b.t.Fatalf("%s shows no secret:\n%s", b.page.url, b.text())
	}
	if find(b.page.root, func(n *html.Node) bool { return attribute(n, "data-copy") == "secret" }) == nil {
		b.t.Error("the secret has no copy button")
	}
	if got := b.page.header.Get("Cache-Control"); got != "no-store" {
		b.t.Errorf("the page with the secret has Cache-Control: %s", got)
	}
	return textOf(shown)
}

// wantForeign checks that a form of another site is refused.
func (b *browser) wantForeign(path string, fields url.Values) {
	b.t.Helper()
	r := b.request(http.MethodPost, path, []byte(fields.Encode()), "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "https://evil.example")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	b.send(r, http.StatusForbidden)
}

// TestFormsOfViews adds a view, changes it, and makes and removes a token of it.
func TestFormsOfViews(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RegistrySettings()...)
		b := newOperator(t, e, s)
		status := func(token string) int {
			return apiclient.Call(t, "GET", s.API+"/registries/data/v0.1/servers", nil, "Authorization", "Bearer "+token).Status
		}
		b.follow("Views", http.StatusOK)
		b.press("Add this view", http.StatusOK, "name", "data", "include", "com.example/*", "access", "token")
		b.press("Add this view", http.StatusUnprocessableEntity, "name", "data")
		b.wantText("There is one with this name already.")
		if b.field("name") != "data" {
			t.Errorf("the form has the name %q", b.field("name"))
		}
		b.follow("/registries/data", http.StatusOK)
		if b.field("include") != "com.example/*" || b.field("access") != "token" {
			t.Errorf("the form has %q, %q", b.field("include"), b.field("access"))
		}
		b.press("Save this view", http.StatusUnprocessableEntity, "exclude", "com example")
		b.wantText(`Exclude: resource pattern`)
		b.press("Save this view", http.StatusOK, "exclude", "com.example/x*")
		b.wantText("The changes are saved.")
		b.press("Make this token", http.StatusUnprocessableEntity, "token", "Team Data")
		b.wantText("Name of the token must have 1 to 40 lower-case letters")
		b.press("Make this token", http.StatusOK, "token", "team")
		token := b.secret()
		if got := status(token); got != http.StatusOK {
			t.Errorf("with the token the view has the status %d", got)
		}
		b.follow("The view data", http.StatusOK)
		b.wantText("Name Made Act team")
		b.wantNoText(token)
		b.wantForeign("/console/operator/views/data/tokens", url.Values{"token": {"other"}})
		b.open("/console/operator/views/data", http.StatusOK)
		b.press("Remove the token team", http.StatusOK)
		b.wantText("The token is removed.")
		if got := status(token); got != http.StatusUnauthorized {
			t.Errorf("after its removal the token has the status %d", got)
		}
		b.open("/console/operator/views/none", http.StatusNotFound)
		b.open("/console/operator/log?type=REGISTRY_CHANGE", http.StatusOK)
		b.wantText("bea@example.com made the token")
	})
}

// TestFormsOfMirrors adds, changes, reads and removes a mirror.
func TestFormsOfMirrors(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RegistrySettings()...)
		b := newOperator(t, e, s)
		b.follow("Mirrors", http.StatusOK)
		b.press("Add this mirror", http.StatusUnprocessableEntity, "name", "public", "url", "registry.example.com")
		b.wantText("Address must be an absolute URL")
		b.press("Add this mirror", http.StatusUnprocessableEntity, "name", "public", "url", "https://registry.invalid",
			"interval", "soon")
		b.wantText("Interval must be a time such as 10m or 24h.")
		b.press("Add this mirror", http.StatusOK, "interval", "24h", "include", "io.github.*")
		b.wantText("The mirror is added.", "registry.invalid")
		b.follow("public", http.StatusOK)
		b.press("Save this mirror", http.StatusUnprocessableEntity, "interval", "1s")
		b.wantText("Interval must be from 1m0s")
		b.press("Save this mirror", http.StatusOK, "interval", "12h", "lenient", "true")
		b.wantText("The changes are saved.")
		if b.field("interval") != "12h0m0s" || b.field("lenient") != "true" || b.field("include") != "io.github.*" {
			t.Errorf("the form has %q, %q, %q", b.field("interval"), b.field("lenient"), b.field("include"))
		}
		b.press("Read it now", http.StatusOK)
		b.wantText("It is read soon.")
		b.wantForeign("/console/operator/mirrors/public/remove", url.Values{"purge": {"true"}})
		b.open("/console/operator/mirrors/public", http.StatusOK)
		b.wantText("All servers that it has taken over are deleted.")
		b.press("Remove with its servers the mirror public", http.StatusOK)
		b.wantText("The mirror is removed.", "No mirror yet.")
	})
}

// TestFormsOfWebhooks adds a webhook, whose secret is shown once, changes it and sends a test.
func TestFormsOfWebhooks(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RegistrySettings()...)
		b := newOperator(t, e, s)
		b.follow("Webhooks", http.StatusOK)
		b.press("Add this webhook", http.StatusUnprocessableEntity, "url", "http://hooks.example.com/in")
		b.wantText("Address must begin with https://")
		b.press("Add this webhook", http.StatusOK, "url", "http://127.0.0.1:1/in?key=hunter2", "resource", "com.example/*",
			"events", "published")
		secret := b.secret()
		b.follow("The webhook of 127.0.0.1:1", http.StatusOK)
		b.wantText("http://127.0.0.1:1/…", "published of com.example/*", "Nothing was sent yet.")
		b.wantNoText(secret)
		b.press("Send a test", http.StatusConflict)
		b.wantText("There is a problem The connection failed.", "Change it", "test dead none none after")
		b.wantNoText("Nothing was sent yet.", "Send again")
		b.open("/console/operator/webhooks", http.StatusOK)
		b.wantText("127.0.0.1:1/…")
		b.wantNoText("hunter2")
		b.follow("http://127.0.0.1:1/…", http.StatusOK)
		b.press("Save this webhook", http.StatusUnprocessableEntity, "resource", "com example")
		b.press("Save this webhook", http.StatusOK, "resource", "*", "events", "status")
		b.wantText("The changes are saved.", "status of *")
		b.wantForeign("/console/operator/webhooks", url.Values{"url": {"https://evil.example"}, "events": {"published"}})
		b.open("/console/operator/webhooks", http.StatusOK)
		b.wantNoText("evil.example")
	})
}

// TestFormsOfPolicies adds policies of both kinds.
func TestFormsOfPolicies(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RegistrySettings()...)
		e.NewPerson(t, "ada@example.com", "publish com.example/*")
		b := newOperator(t, e, s)
		b.follow("Policies", http.StatusOK)
		b.press("Add this policy", http.StatusUnprocessableEntity, "method", "dns", "pattern", "com.example/*")
		b.wantText("Domain")
		for _, wrong := range [][]string{
			{"domain", "example.com", "expiresAt", "soon"}, {"domain", "example.com", "expiresAt", "2001-01-31"},
			{"domain", "example.com", "expiresAt", "", "owner", "nobody@example.com"},
			{"domain", "", "owner", "", "method", "github-oidc", "claims", "repository"},
		} {
			b.press("Add this policy", http.StatusUnprocessableEntity, wrong...)
		}
		b.wantText("Claims must be of the form name=value, each name once.")
		b.press("Add this policy", http.StatusOK, "claims", "repository=acme/tools\nref=refs/heads/main", "actions", "status")
		b.wantText("The policy is added.", "repository: acme/tools", "ref: refs/heads/main", "status", "an operator")
		b.press("Add this policy", http.StatusOK, "method", "dns", "pattern", "com.example/*", "domain", "example.com",
			"owner", "ada@example.com", "expiresAt", "2199-01-31")
		b.wantText("ada@example.com", "until", "2199, 00:00")
		b.wantForeign("/console/operator/policies", url.Values{"method": {"dns"}})
	})
}

// TestFormsOfReviewRules adds and removes a rule, by which documents are approved.
func TestFormsOfReviewRules(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, append(fixture.RegistrySettings(), "REGISTRY_REVIEW=on")...)
		ada := e.NewWriter(t, s, "ada@example.com", "publish com.example/*")
		listed := func(name string) int {
			ada.PostJSON(t, s, "/v0.1/publish", fixture.NewServerDocument(name, "1.0.0")).WantStatus(t, http.StatusOK)
			return apiclient.Call(t, "GET", s.API+"/v0.1/servers/"+url.PathEscape(name)+"/versions/1.0.0", nil).Status
		}
		b := newOperator(t, e, s)
		b.follow("Review rules", http.StatusOK)
		b.press("Add this rule", http.StatusUnprocessableEntity, "resource", "com example", "when", "any")
		b.wantText("The pattern of servers")
		b.press("Add this rule", http.StatusUnprocessableEntity, "resource", "com.example/*", "publisher", "x@example.com")
		b.wantText("Publisher has no account.")
		b.press("Add this rule", http.StatusOK, "publisher", "ada@example.com", "when", "any")
		b.wantText("The rule is added.", "ada@example.com", "Always")
		if got := listed("com.example/one"); got != http.StatusOK {
			t.Errorf("with the rule the document has the status %d", got)
		}
		b.wantForeign("/console/operator/review-rules", url.Values{"resource": {"*"}, "when": {"any"}})
		b.open("/console/operator/review-rules", http.StatusOK)
		b.press("Remove the rule for com.example/*", http.StatusOK)
		b.wantText("The rule is removed.", "each document waits for a person")
		if got := listed("com.example/two"); got != http.StatusNotFound {
			t.Errorf("without the rule the document has the status %d", got)
		}
	})
}

// TestSelectedReviews approves and rejects several documents at once, each as if it were alone.
func TestSelectedReviews(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, append(fixture.RegistrySettings(), "REGISTRY_REVIEW=on")...)
		ada := e.NewWriter(t, s, "ada@example.com", "publish com.example/*")
		bea := e.NewWriter(t, s, "bea@example.com", "publish com.example/*", "review *")
		submit := func(p *fixture.Person, name string) {
			p.PostJSON(t, s, "/v0.1/publish", fixture.NewServerDocument(name, "1.0.0")).WantStatus(t, http.StatusOK)
		}
		for _, name := range []string{"com.example/a", "com.example/b"} {
			submit(ada, name)
		}
		submit(bea, "com.example/own")
		b := newBrowser(t, s)
		b.signIn(bea)
		b.open("/console/step-up", http.StatusOK)
		b.verify(e, bea, http.StatusOK)
		b.open("/console/reviews", http.StatusOK)
		ids := map[string][]string{}
		for _, n := range all(b.page.root, func(n *html.Node) bool { return attribute(n, "name") == "ids" }) {
			ids[strings.Fields(attribute(n, "aria-label"))[1]] = []string{attribute(n, "value")}
		}
		decide := func(decision, comment string, status int, names ...string) {
			form := url.Values{"decision": {decision}, "comment": {comment}}
			for _, name := range names {
				form.Add("ids", ids["com.example/"+name][0])
			}
			b.send(b.request(http.MethodPost, "/console/reviews", []byte(form.Encode()),
				"application/x-www-form-urlencoded"), status)
		}
		decide("approve", "", http.StatusUnprocessableEntity)
		b.wantText("Select 1 to 100 reviews.")
		decide("reject", "", http.StatusUnprocessableEntity, "a")
		b.wantText("Comment is required")
		decide("reject", "Not ours.", http.StatusOK, "a")
		b.wantText("Rejected. The submitters are told why.")
		decide("approve", "", http.StatusUnprocessableEntity, "b", "own") // not the own one
		b.wantText("1 of 2 were refused")
		for name, want := range map[string]int{"a": http.StatusNotFound, "b": http.StatusOK, "own": http.StatusNotFound} {
			apiclient.Call(t, "GET", s.API+"/v0.1/servers/com.example%2F"+name+"/versions/1.0.0", nil).WantStatus(t, want)
		}
		b.wantForeign("/console/reviews", url.Values{"decision": {"approve"}, "ids": ids["com.example/own"]})
	})
}
