package consolebrowser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/pquerna/otp/totp"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/chromium"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

const documentOf = `{"$schema":"https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json","name":"%s","description":"Weather.","version":"1.0.0","remotes":[{"type":"streamable-http","url":"https://weather.example.com/mcp"}]}`

// act is what a person does on a page: fields are filled in, a button is clicked, and the next page
// shows a text. Without a page, it is the page that is open.
type act struct {
	page   string
	fields []string // in turn with their values; ticked is the value of a box
	button string
	text   string
}

// ticked is the value of a field that is a box: its name is the value of the box.
const ticked = "ticked"

// pictureName makes the name of a picture from the path of a page.
var pictureName = strings.NewReplacer("/", "-", "?new=1", "-new", "?", "-", "=", "-")

// do does one act after another.
func (p *person) do(acts ...act) {
	p.t.Helper()
	for _, one := range acts {
		if one.page != "" {
			p.open("/console/" + one.page)
		}
		for i := 0; i < len(one.fields); i += 2 {
			if one.fields[i+1] == ticked {
				p.tick(one.fields[i])
			} else {
				p.set(one.fields[i], one.fields[i+1])
			}
		}
		if one.page != "" {
			chromium.SavePicture(p.t, p.tab, "first-"+pictureName.Replace(one.page))
		}
		p.click(one.button)
		p.wantText(one.text)
	}
}

// TestFromNothing plays docs/first-registry.md: from the address of the setup in the log of an empty
// service to a curated registry of five invited people, in browsers alone. Then they do each act of
// the console. TestForms in adapters/rest/console has the forms without JavaScript.
func TestFromNothing(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t, append(append(fixture.RegistrySettings(), fixture.RelaxedRiskSettings...), "REGISTRY_REVIEW=on")...)
	olga := setUp(t, e, s)
	people := map[string]*person{}
	for _, one := range []struct{ name, action string }{
		{"ada", "publish"}, {"bea", "review"}, {"cem", "publish"}, {"dan", "edit"}, {"eve", "operate"},
	} {
		people[one.name] = olga.inviteTo(s, one.name+"@example.com", one.action)
	}
	olga.do(objects...)
	ada, bea := people["ada"], people["bea"]
	ada.do(
		act{"publish", []string{"document", "{"}, "Check only", "The document breaks a rule"},
		act{"", []string{"document", fmt.Sprintf(documentOf, "com.example/weather")}, "Publish", "The document waits for review."},
		act{"publish", []string{"document", fmt.Sprintf(documentOf, "com.example.auto/news")}, "Publish", "com.example.auto/news"},
		act{"publish", []string{"document", fmt.Sprintf(documentOf, "com.example/tides")}, "Publish", "The document waits for review."},
	)
	bea.do(
		act{"reviews", nil, "com.example/weather", "Pending"},
		act{"", []string{"comment", "Fine."}, "Approve", "Approved. The document is listed now."},
		act{"reviews", nil, "com.example/tides", "Pending"},
		act{"", []string{"comment", "Why?"}, "Reject", "Rejected. The submitter is told why."},
		act{"servers/com.example/weather", nil, "Put in quarantine", "Put a server in quarantine"},
		act{"", []string{"reason", "It sends data elsewhere."}, "Put in quarantine", "It is in quarantine, and listed nowhere."},
		act{"", nil, "Release com.example/weather 1.0.0", "It is released, and listed as before."},
	)
	people["dan"].do(
		act{"own/com.example/weather?version=1.0.0", []string{"status", "deprecated", "message", "Use another one."}, "Change the status",
			"The status is changed."},
		act{"?q=weather", nil, "deprecated 1", "Deprecated"})
	olga.open("/console/")
	olga.wantText("com.example/weather", "com.example.auto/news")
	people["eve"].do(actsOfOperators...)
	actOnAccount(t, people["cem"])
	people["olga"] = olga
	for _, p := range people {
		p.wantNoComplaints()
	}
}

// objects are a policy, a view with a token, a mirror, a webhook and a rule for reviews.
var objects = []act{
	{"operator/policies?new=1", []string{"pattern", "org.example/*", "domain", "example.org"}, "Add this policy", "The policy is added."},
	{"operator/views?new=1", []string{"name", "data", "access", "token"}, "Add this view", "The view is added."},
	{"", nil, "/registries/data", "View data"},
	{"", []string{"token", "team"}, "Make this token", "It is shown once."},
	{"operator/mirrors?new=1", []string{"name", "public", "url", "https://registry.invalid", "include", "io.github.*"}, "Add this mirror", "The mirror is added."},
	{"operator/webhooks?new=1", []string{"url", "https://hooks.example.com/in", "published", ticked}, "Add this webhook", "It is shown once."},
	{"operator/review-rules?new=1", []string{"resource", "com.example.auto/*", "publisher", "ada@example.com", "when", "any"}, "Add this rule",
		"The rule is added."},
}

// actsOfOperators change accounts and grants, remove the objects, and read the other pages.
var actsOfOperators = []act{
	{"operator/people/bea@example.com", nil, "End all sessions of this account", "The sessions are ended."},
	{"", nil, "Lock", "The account is locked"}, {"", nil, "Unlock", "The account is unlocked."},
	{"", nil, "Disable this account", "The account is disabled"}, {"", nil, "Enable", "The account is enabled."},
	{"operator/rights?new=1", []string{"email", "bea@example.com", "resource", "org.example/*"}, "Add this grant", "org.example/*"},
	{"", nil, "Remove the grant to publish org.example/* of bea@example.com", "The grant is removed."},
	{"operator/views/data", nil, "Remove the token team", "The token is removed."},
	{"operator/views", nil, "Remove the view data", "The view is removed."},
	{"operator/mirrors", nil, "public", "registry.invalid"}, {"", nil, "Remove the mirror public", "The mirror is removed."},
	{"operator/policies", nil, "Remove the policy for org.example/*", "The policy is removed."},
	{"operator/webhooks", nil, "Remove the webhook of hooks.example.com", "The webhook is removed."},
	{"operator/limits", []string{"for", "shop", "descriptors", "tenant=free"}, "Explain", "Decided by"},
	{"operator/risk", []string{"email", "bea@example.com"}, "Show", "sign-in"},
	{"operator/log", []string{"type", "ACCOUNT_CHANGE"}, "Show", "locked the account"},
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
	chromium.SavePicture(t, p.tab, "first-setup")
	p.click("Make the account")
	p.wantText("What is not set up yet", "Set up an authenticator app", "PUBLIC_URL", "TLS_CERT")
	chromium.SavePicture(t, p.tab, "first-checklist")
	return p
}

const invitedPassword = "Another-Horse-8-Battery"

// inviteTo invites a person, who accepts in another browser.
func (p *person) inviteTo(s *fixture.Service, email, action string) *person {
	p.t.Helper()
	p.open("/console/operator/people?new=1")
	p.set("email", email)
	p.set("name", "A Person")
	p.tick(action)
	p.set("resource", "*")
	chromium.SavePicture(p.t, p.tab, "first-invite")
	p.click("Invite")
	p.wantText("It is shown once.", "It was not sent")
	link := chromium.Evaluate[string](p.t, p.tab, `document.getElementById("secret").textContent`)
	invited := newPerson(p.t, p.e, s)
	invited.tab.Run(p.t, chromedp.Navigate(link))
	invited.set("password", invitedPassword)
	invited.click("Set the password")
	invited.wantText("Welcome", "Set up an authenticator app")
	invited.waitForPerson(email)
	return invited
}

// actOnAccount does what people do with their account: names and trust of devices, the
// authenticator app, the password, the audit log.
func actOnAccount(t *testing.T, p *person) {
	t.Helper()
	p.open("/console/account")
	device := chromium.Evaluate[string](t, p.tab,
		`document.querySelector("#devices ~ table th[scope=row] bdi").textContent`)
	p.set(chromium.Evaluate[string](t, p.tab, `document.querySelector("input[name=name]").id`), "Laptop")
	p.click("Save the name of " + device)
	p.wantText("The device is renamed.")
	p.click("Trust Laptop")
	p.wantText("The device is trusted from its next sign-in on.")
	p.click("Authenticator app")
	p.click("Set up an authenticator app")
	secret := strings.ReplaceAll(chromium.Evaluate[string](t, p.tab,
		`document.querySelector("[name=secret]").value`), " ", "")
	p.set("code", "000000")
	p.click("Turn it on")
	p.wantText("Code is wrong.", "Scan this with your app")
	code, err := totp.GenerateCode(secret, time.Now())
	must.Succeed(t, err)
	p.set("code", code)
	p.click("Turn it on")
	p.wantText("The authenticator app is on.", "They are not shown again.")
	recovery := chromium.Evaluate[string](t, p.tab, `document.querySelector(".codes code").textContent`)
	p.open("/console/account/authenticator")
	p.set("code", recovery)
	p.click("Turn it off")
	p.wantText("The authenticator app is turned off.")
	p.do(
		act{"account/password", []string{"currentPassword", invitedPassword, "newPassword", fixture.Password}, "Change the password",
			"The password is changed, and all other sessions are ended."},
		act{"", nil, "My audit log", "events"},
		act{"", []string{"type", "CREDENTIAL_CHANGE"}, "Show", "turned off the second factor"},
		act{"", nil, "Sign out", "Sign in"},
	)
}
