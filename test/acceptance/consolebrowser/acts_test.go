package consolebrowser

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/pquerna/otp/totp"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/chromium"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// click clicks on a link or a button by its name, and waits for the page that follows.
func (p *person) click(name string) {
	p.t.Helper()
	p.tab.Run(p.t, chromedp.Evaluate[chromedp.Void](`void (window.before = true)`))
	clicked := chromium.Evaluate[bool](p.t, p.tab, fmt.Sprintf(`(() => {
		const named = ["main a, main button, .who button", "nav a"].flatMap(where => [...document.querySelectorAll(where)])
			.find(e => (e.getAttribute("aria-label") || e.textContent).trim() === %q);
		named?.click();
		return named !== undefined;
	})()`, name))
	if !clicked {
		p.t.Fatalf("there is no %q on\n%s", name, p.text())
	}
	await.Until(p.t, "the page after "+name, func() bool {
		loaded, err := chromedp.Run(p.tab.Context,
			chromedp.Evaluate[bool](
				`window.before === undefined && document.readyState === "complete" && document.querySelector("main") !== null`))
		return err == nil && loaded
	})
}

// set gives a field a value: a text, or the value of an option.
func (p *person) set(id, value string) {
	p.t.Helper()
	if got := chromium.Evaluate[string](p.t, p.tab,
		fmt.Sprintf(
			`(() => { const e = document.getElementById(%q); if (e) e.value = %q; return e ? e.value : "missing"; })()`,
			id, value)); got != value {
		p.t.Fatalf("the field %s has %q, want %q", id, got, value)
	}
}

func (p *person) wantNoComplaints() {
	p.t.Helper()
	for _, complaint := range p.errors.TakeAll() {
		if !strings.Contains(complaint, "status of 4") { // the statuses of forms with mistakes
			p.t.Error(complaint)
		}
	}
}

// TestActs does each act of the console in a browser, with and without JavaScript. TestKeyboard has
// those of publishing and reviewing, and the end of sessions.
func TestActs(t *testing.T) {
	t.Parallel()
	for _, scripts := range []bool{true, false} {
		t.Run(fmt.Sprintf("JavaScript=%t", scripts), func(t *testing.T) {
			t.Parallel()
			fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
				skipInShort(t, e, scripts)
				s := e.Start(t,
					append(append(fixture.RegistrySettings(), fixture.RelaxedRiskSettings...), "REGISTRY_REVIEW=on")...)
				ada := e.NewWriter(t, s, "ada@example.com", "publish *", "edit *")
				bea := e.NewWriter(t, s, "bea@example.com", "review *")
				for _, version := range []string{"1.0.0", "1.1.0"} {
					ada.PostJSON(t, s, "/v0.1/publish", fixture.NewServerDocument("com.example/weather", version)).
						WantStatus(t, http.StatusOK)
				}
				e.RunCommand(t, "", "publisher", "add", "--method", "dns", "--domain", "example.com", "--pattern",
					"com.example/*")
				e.RunCommand(t, "", "webhook", "add", "https://hooks.example.com/in", "--events", "published")
				e.NewPerson(t, "cem@example.com", "operate *")
				open := func(email string) *person {
					p := newPerson(t, e, s)
					if !scripts {
						p.tab.DisableScripts(t)
					}
					p.signIn(email)
					return p
				}
				actAsReviewer(t, s, bea, open(bea.Email))
				actAsPublisher(open(ada.Email))
				actAsOperator(open("cem@example.com"))
				actOnAccount(t, open("cem@example.com"))
			})
		})
	}
}

// skipInShort skips two of the four combinations in a short run, in which there is each environment
// and each kind of browser once.
func skipInShort(t *testing.T, e *fixture.Environment, scripts bool) {
	t.Helper()
	if testing.Short() && scripts != e.Shared {
		t.Skip("long: uses each page with the other database too; make test-long runs it")
	}
}

// actAsReviewer approves one version and rejects another, and puts a version in quarantine and
// back.
func actAsReviewer(t *testing.T, s *fixture.Service, bea *fixture.Person, p *person) {
	t.Helper()
	var list struct {
		Reviews []struct{ ID, Version string }
	}
	apiclient.Call(t, "GET", s.API+"/v0.1/x/dev.tollgate/reviews?state=pending", nil, bea.Bearer()...).WantStatus(t,
		http.StatusOK).Decode(t, &list)
	for i, review := range list.Reviews {
		p.open("/console/reviews/" + review.ID)
		p.set("comment", "Because of "+review.Version)
		decision, text := "Approve", "Approved. The document is listed now."
		if review.Version == "1.1.0" {
			decision, text = "Reject", "Rejected. The submitter is told why."
		}
		p.click(decision)
		if i == 0 {
			p.verify(bea.Email)
			p.click(decision)
		}
		p.wantText(text, "Because of "+review.Version)
	}
	p.open("/console/servers/com.example/weather")
	p.click("Put in quarantine")
	p.set("reason", "It sends data elsewhere.")
	p.click("Put in quarantine")
	p.wantText("It is in quarantine, and listed nowhere.")
	p.click("Release com.example/weather 1.0.0")
	p.wantText("It is released, and listed as before.")
	p.wantNoComplaints()
}

// actAsPublisher checks a document, changes the status of a server, and finds it by the filters.
func actAsPublisher(p *person) {
	p.t.Helper()
	p.open("/console/publish")
	p.set("document", "{")
	p.click("Check only")
	p.wantText("The document breaks a rule", "Line 1, column 1")
	p.open("/console/own/com.example/weather?version=1.0.0")
	p.set("status", "deprecated")
	p.set("message", "Use another one.")
	p.click("Change the status")
	p.verify("ada@example.com")
	p.click("Change the status")
	p.wantText("The status is changed.")
	p.open("/console/")
	p.set("status", "deprecated")
	p.click("Search")
	p.wantText("com.example/weather", "Deprecated")
	p.wantNoComplaints()
}

// actAsOperator changes accounts, grants and views, and removes a policy and a webhook.
func actAsOperator(p *person) {
	p.t.Helper()
	p.open("/console/operator/people/bea@example.com")
	p.verify("cem@example.com")
	for _, act := range []struct{ button, text string }{
		{"End all sessions of this account", "The sessions are ended."}, {"Lock", "The account is locked"}, {
			"Unlock", "The account is unlocked.",
		},
		{"Disable this account", "The account is disabled"}, {"Enable", "The account is enabled."},
	} {
		p.click(act.button)
		p.wantText(act.text)
	}
	p.open("/console/operator/grants")
	p.set("email", "bea@example.com")
	p.set("resource", "org.example/*")
	p.click("Add this grant")
	p.wantText("The grant is added.", "org.example/*")
	p.click("Remove the grant to publish org.example/* of bea@example.com")
	p.wantText("The grant is removed.")
	p.open("/console/operator/views")
	p.set("name", "data")
	p.click("Add this view")
	p.wantText("The view is added.", "/registries/data")
	p.click("/registries/data")
	p.set("token", "team")
	p.click("Make this token")
	p.wantText("It is shown once.", "tgview_")
	p.click("The view data")
	p.click("Remove the token team")
	p.wantText("The token is removed.")
	p.open("/console/operator/views")
	p.click("Remove the view data")
	p.wantText("The view is removed.")
	p.open("/console/operator/mirrors")
	p.set("name", "public")
	p.set("url", "https://registry.invalid")
	p.click("Add this mirror")
	p.wantText("The mirror is added.")
	p.click("public")
	p.click("Remove the mirror public")
	p.wantText("The mirror is removed.")
	p.open("/console/operator/review-rules")
	p.set("resource", "com.example/*")
	p.click("Add this rule")
	p.wantText("The rule is added.")
	p.open("/console/operator/policies")
	p.set("pattern", "org.example/*")
	p.set("domain", "example.org")
	p.click("Add this policy")
	p.wantText("The policy is added.")
	p.click("Remove the policy for com.example/*")
	p.wantText("The policy is removed.")
	p.open("/console/operator/webhooks")
	p.click("Remove the webhook of hooks.example.com")
	p.wantText("The webhook is removed.")
	p.set("url", "https://hooks.example.org/in")
	p.tab.Run(p.t, chromedp.Evaluate[chromedp.Void](`void (document.getElementById("events").checked = true)`))
	p.click("Add this webhook")
	p.wantText("The secret of the webhook of hooks.example.org", "It is shown once.")
	p.open("/console/operator/limits")
	p.set("for", "shop")
	p.set("descriptors", "tenant=free")
	p.click("Explain")
	p.wantText("Decided by")
	p.open("/console/operator/risk")
	p.set("email", "bea@example.com")
	p.click("Show")
	p.wantText("bea@example.com")
	p.open("/console/operator/log")
	p.set("type", "ACCOUNT_CHANGE")
	p.click("Show")
	p.wantText("cem@example.com", "locked the account")
	p.wantNoComplaints()
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
	p.verify("cem@example.com")
	p.click("Set up an authenticator app")
	secret := strings.ReplaceAll(chromium.Evaluate[string](t, p.tab,
		`document.querySelector("[name=secret]").value`), " ", "")
	p.set("code", "000000")
	p.click("Turn it on")
	p.wantText("Code is wrong.", "Scan this with your app")
	code, err := totp.GenerateCode(secret, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	p.set("code", code)
	p.click("Turn it on")
	p.wantText("The authenticator app is on.", "They are not shown again.")
	recovery := chromium.Evaluate[string](t, p.tab, `document.querySelector(".codes code").textContent`)
	p.open("/console/account/authenticator")
	p.set("code", recovery)
	p.click("Turn it off")
	p.wantText("The authenticator app is turned off.")
	p.open("/console/account/password")
	p.set("currentPassword", fixture.Password)
	p.set("newPassword", "Another-Horse-8-Battery")
	p.click("Change the password")
	p.wantText("The password is changed, and all other sessions are ended.")
	p.click("My audit log")
	p.set("type", "CREDENTIAL_CHANGE")
	p.click("Show")
	p.wantText("turned on the authenticator app", "turned off the second factor")
	p.click("Sign out")
	p.wantText("Sign in")
	p.wantNoComplaints()
}
