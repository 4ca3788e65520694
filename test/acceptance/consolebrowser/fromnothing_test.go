package consolebrowser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/chromium"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestFromNothing plays docs/first-registry.md: from the address of the setup in the log of an empty
// service to a curated registry of five invited people, in browsers alone.
func TestFromNothing(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		skipInShort(t, e, false)
		s := e.Start(t,
			append(append(fixture.RegistrySettings(), fixture.RelaxedRiskSettings...), "REGISTRY_REVIEW=on")...)
		olga := setUp(t, e, s)
		people := map[string]*person{}
		for _, one := range []struct{ name, action string }{
			{"ada", "publish"}, {"bea", "review"}, {"cem", "publish"}, {"dan", "edit"}, {"eve", "operate"},
		} {
			people[one.name] = olga.inviteTo(s, one.name+"@example.com", one.action)
		}
		olga.addObjects()
		const doc = `{"$schema":"https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json","name":"%s","description":"Weather.","version":"1.0.0","remotes":[{"type":"streamable-http","url":"https://weather.example.com/mcp"}]}`
		ada, bea := people["ada"], people["bea"]
		ada.publish(fmt.Sprintf(doc, "com.example/weather"))
		ada.wantText("The document waits for review.")
		ada.publish(fmt.Sprintf(doc, "com.example.auto/news"))
		bea.open("/console/reviews")
		bea.click("com.example/weather")
		bea.set("comment", "Fine.")
		bea.click("Approve")
		bea.wantText("Approved. The document is listed now.")
		olga.open("/console/")
		olga.wantText("com.example/weather", "com.example.auto/news")
		for _, p := range people {
			p.wantNoComplaints()
		}
		olga.wantNoComplaints()
	})
}

// setUp makes the first account with the address in the log.
func setUp(t *testing.T, e *fixture.Environment, s *fixture.Service) *person {
	t.Helper()
	const page = "/console/setup?code="
	s.AwaitLog(page)
	_, after, _ := strings.Cut(s.Process.Log(), page)
	p := newPerson(t, e, s)
	p.wantText("This service is not set up yet")
	p.open(page + after[:strings.IndexAny(after, "\" \n\\")])
	p.set("email", "olga@example.com")
	p.set("name", "Olga")
	p.set("password", fixture.Password)
	p.click("Make the account")
	p.wantText("What is not set up yet", "Set up an authenticator app", "PUBLIC_URL", "TLS_CERT")
	return p
}

// inviteTo invites a person, who accepts in another browser.
func (p *person) inviteTo(s *fixture.Service, email, action string) *person {
	p.t.Helper()
	p.open("/console/operator/people")
	p.set("email", email)
	p.set("name", "A Person")
	p.tick(action)
	p.set("resource", "*")
	p.click("Invite this person")
	p.wantText("It is shown once.", "It was not sent")
	link := chromium.Evaluate[string](p.t, p.tab, `document.getElementById("secret").textContent`)
	invited := newPerson(p.t, p.e, s)
	invited.tab.Run(p.t, chromedp.Navigate(link))
	invited.set("password", "Another-Horse-8-Battery")
	invited.click("Set the password")
	invited.wantText("Welcome", "Set up an authenticator app", email)
	return invited
}

// tick ticks the box with a value.
func (p *person) tick(value string) {
	p.t.Helper()
	if !chromium.Evaluate[bool](p.t, p.tab,
		fmt.Sprintf(`(() => { const e = document.querySelector("input[type=checkbox][value=%s]"); e.checked = true; return e.checked; })()`, value)) {
		p.t.Fatalf("the box %s is not ticked", value)
	}
}

// addObjects adds a policy, a view with a token, a mirror, a webhook and a rule for reviews.
func (p *person) addObjects() {
	p.t.Helper()
	p.open("/console/operator/policies")
	p.set("pattern", "org.example/*")
	p.set("domain", "example.org")
	p.click("Add this policy")
	p.wantText("The policy is added.")
	p.open("/console/operator/views")
	p.set("name", "data")
	p.set("access", "token")
	p.click("Add this view")
	p.click("/registries/data")
	p.set("token", "team")
	p.click("Make this token")
	p.wantText("It is shown once.", "tgview_")
	p.open("/console/operator/mirrors")
	p.set("name", "public")
	p.set("url", "https://registry.invalid")
	p.click("Add this mirror")
	p.wantText("The mirror is added.")
	p.open("/console/operator/webhooks")
	p.set("url", "https://hooks.example.com/in")
	p.tick("published")
	p.click("Add this webhook")
	p.wantText("The secret of the webhook", "It is shown once.")
	p.open("/console/operator/review-rules")
	p.set("resource", "com.example.auto/*")
	p.set("publisher", "ada@example.com")
	p.set("when", "any")
	p.click("Add this rule")
	p.wantText("The rule is added.", "com.example.auto/*")
}

// publish sends a document.
func (p *person) publish(document string) {
	p.t.Helper()
	p.open("/console/publish")
	p.set("document", document)
	p.click("Publish")
}
