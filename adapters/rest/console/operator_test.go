package console

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// operatorPages are all pages of operators.
var operatorPages = []string{
	"", "/people", "/grants", "/policies", "/views", "/mirrors", "/webhooks", "/review-rules", "/service-accounts", "/providers",
	"/limits", "/risk", "/log", "/access", "/access/explain",
}

// newOperator returns a browser in which a person with the grant operate has full trust.
func newOperator(t *testing.T, e *fixture.Environment, s *fixture.Service) *browser {
	t.Helper()
	bea := e.NewPerson(t, "bea@example.com", "operate *")
	b := newBrowser(t, s)
	b.signIn(bea)
	b.follow("Operator", http.StatusOK)
	b.wantPath("/console/step-up?next=%2Fconsole%2Foperator")
	b.verify(e, bea, http.StatusOK)
	b.wantPath("/console/operator")
	return b
}

// TestOperatorPagesNeedTheGrant: without the grant operate each page is forbidden, also with all
// other grants, and without full trust it leads to a step-up.
func TestOperatorPagesNeedTheGrant(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RegistrySettings()...)
		ada := e.NewPerson(t, "ada@example.com", "publish *", "edit *", "review *")
		b := newBrowser(t, s)
		b.open("/console/operator", http.StatusOK)
		b.wantPath("/console/sign-in?next=%2Fconsole%2Foperator")
		b.signIn(ada)
		b.wantNoText("Operator")
		b.open("/console/step-up", http.StatusOK)
		b.verify(e, ada, http.StatusOK)
		for _, page := range operatorPages {
			b.open("/console/operator"+page, http.StatusForbidden)
		}
		for _, act := range []string{
			"/people/ada@example.com/lock", "/grants", "/grants/remove", "/views", "/views/x/remove",
			"/webhooks/1/remove", "/policies/1/remove", "/providers/x/remove", "/providers/x/test", "/access", "/access/rules/x",
			"/access/rules/x/remove",
		} {
			b.send(b.request(http.MethodPost, "/console/operator"+act, []byte("email=ada%40example.com&action=operate"),
				"application/x-www-form-urlencoded"), http.StatusForbidden)
		}
		o := newOperator(t, e, s)
		for _, page := range operatorPages {
			o.open("/console/operator"+page, http.StatusOK)
		}
		o.open("/console/quarantine", http.StatusForbidden) // operate does not include review
	})
}

// TestOperatorPeople locks, unlocks, disables and enables an account and ends its sessions.
func TestOperatorPeople(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RegistrySettings()...)
		ada := e.NewPerson(t, "ada@example.com", "publish com.example/*")
		ada.Login(t, s)
		b := newOperator(t, e, s)
		b.follow("People", http.StatusOK)
		b.wantText("ada@example.com", "bea@example.com", "A Person", "Active")
		b.open("/console/operator/people?after=ada@example.com", http.StatusOK)
		b.wantNoText("ada@example.com A Person")
		b.open("/console/operator/people", http.StatusOK)
		b.follow("ada@example.com", http.StatusOK)
		b.wantText("Second factor no", "Not confirmed", "publish com.example/*", "127.0.0.1", "This person has no tokens.")
		b.wantNoText("Unlock Disable")
		signInStatus := func() int {
			return apiclient.Call(t, "POST", s.API+"/auth/login",
				map[string]any{"email": ada.Email, "password": fixture.Password, "deviceInfo": ada.Device}).Status
		}
		b.press("End all sessions", http.StatusOK)
		b.wantText("The sessions are ended.", "not signed in anywhere")
		apiclient.Call(t, "GET", s.API+"/auth/session", nil, ada.Bearer()...).WantStatus(t, http.StatusUnauthorized)
		for _, step := range []struct {
			button, text string
			status       int
		}{
			{"Lock", "State Locked", http.StatusForbidden}, {"Unlock", "State Active", http.StatusOK},
			{"Disable", "State Disabled", http.StatusUnauthorized}, {"Enable", "State Active", http.StatusOK},
		} {
			b.press(step.button, http.StatusOK)
			b.wantText(step.text)
			if got := signInStatus(); got != step.status {
				t.Errorf("after %s the sign-in has the status %d, want %d", step.button, got, step.status)
			}
		}
		for signInStatus() == http.StatusOK { // wrong passwords on the device lock it
			for range 5 {
				apiclient.Call(t, "POST", s.API+"/auth/login",
					map[string]any{"email": ada.Email, "password": "wrong", "deviceInfo": ada.Device})
			}
		}
		b.open("/console/operator/people/ada@example.com", http.StatusOK)
		b.wantText("State Active Locked after wrong passwords or codes until")
		b.press("Unlock", http.StatusOK)
		b.wantNoText("Locked after wrong")
		if got := signInStatus(); got != http.StatusOK {
			t.Errorf("after Unlock the sign-in has the status %d", got)
		}
		b.open("/console/operator/people/nobody@example.com", http.StatusNotFound)
		b.open("/console/operator/people/nobody", http.StatusNotFound)

		b.open("/console/operator/log?email=ada@example.com&type=ACCOUNT_CHANGE", http.StatusOK)
		b.wantText("bea@example.com locked the account ada@example.com")
		b.open("/console/operator/log?email=nobody@example.com", http.StatusUnprocessableEntity)
		b.wantText("There is no account with this e-mail address.")
		b.open("/console/operator/risk?email=ada@example.com", http.StatusOK)
		b.wantText("ada@example.com 30", "Not verified", "Device no step-up or MFA was passed on the device +30")
		b.wantNoText("History", "UNVERIFIED", "From")
		b.follow("ada@example.com", http.StatusOK)
		b.wantNoText("bea@example.com 2")
	})
}

// TestOperatorGrants adds and removes a grant, which counts from the next request on.
func TestOperatorGrants(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RegistrySettings()...)
		ada := e.NewWriter(t, s, "ada@example.com")
		publish := func(version string) int {
			return ada.PostJSON(t, s, "/v0.1/publish", fixture.NewServerDocument("com.example/weather", version)).Status
		}
		b := newOperator(t, e, s)
		b.follow("Grants", http.StatusOK)
		b.wantText("bea@example.com operate *")
		b.press("Add this grant", http.StatusUnprocessableEntity, "email", "nobody@example.com", "action", "publish",
			"resource", "com.example/*")
		b.wantText("E-mail address has no account.")
		if b.field("email") != "nobody@example.com" || b.field("resource") != "com.example/*" {
			t.Errorf("the form has %q, %q", b.field("email"), b.field("resource"))
		}
		b.press("Add this grant", http.StatusUnprocessableEntity, "email", "ada@example.com", "action", "publish",
			"resource", "com example")
		b.press("Add this grant", http.StatusUnprocessableEntity, "email", "ada@example.com", "action", "operate",
			"resource", "com.example/*")
		if got := publish("1.0.0"); got != http.StatusForbidden {
			t.Errorf("without a grant the publication has the status %d", got)
		}
		b.press("Add this grant", http.StatusOK, "email", "ada@example.com", "action", "publish", "resource",
			"com.example/*")
		b.wantText("The grant is added.", "ada@example.com publish com.example/*")
		// a second time changes nothing
		b.press("Add this grant", http.StatusOK, "email", "ada@example.com", "action", "publish", "resource",
			"com.example/*")
		if got := publish("1.0.0"); got != http.StatusOK {
			t.Errorf("with the grant the publication has the status %d", got)
		}
		b.open("/console/operator/grants", http.StatusOK)
		b.press("Remove the grant to publish com.example/* of ada@example.com", http.StatusOK)
		b.wantText("The grant is removed.")
		if got := publish("1.1.0"); got != http.StatusForbidden {
			t.Errorf("after the grant was removed the publication has the status %d", got)
		}
		// Only who is not the last operator can take the own grant away, and is not an operator any more.
		b.press("Remove the grant to operate * of bea@example.com", http.StatusConflict)
		b.wantText("This is the last active person who can operate the service")
		e.NewPerson(t, "olga@example.com", "operate *")
		b.open("/console/operator/grants", http.StatusOK)
		b.press("Remove the grant to operate * of bea@example.com", http.StatusForbidden)
	})
}

// TestOperatorRegistry adds and removes a view, and shows policies, mirrors and webhooks.
func TestOperatorRegistry(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, fixture.RegistrySettings()...)
		e.RunCommand(t, "", "publisher", "add", "--method", "dns", "--domain", "example.com", "--pattern",
			"com.example/*")
		e.RunCommand(t, "", "mirror", "add", "public", "https://registry.example.com", "--include", "io.github.*",
			"--interval", "24h")
		e.RunCommand(t, "", "webhook", "add", "https://hooks.example.com/in?token=hunter2", "--events", "published")
		b := newOperator(t, e, s)
		b.follow("Views", http.StatusOK)
		b.press("Add this view", http.StatusUnprocessableEntity, "name", "Data", "include", "com.example/*")
		b.wantText("Name must have 1 to 40 lower-case letters")
		b.press("Add this view", http.StatusOK, "name", "data", "include", "com.example/* com.other/*",
			"access", "token")
		b.wantText("The view is added.", "/registries/data", "com.example/* com.other/*", "token")
		apiclient.Call(t, "GET", s.API+"/registries/data/v0.1/servers", nil).WantStatus(t, http.StatusUnauthorized)
		b.press("Remove the view data", http.StatusOK)
		b.wantText("The view is removed.")
		apiclient.Call(t, "GET", s.API+"/registries/data/v0.1/servers", nil).WantStatus(t, http.StatusNotFound)

		b.follow("Policies", http.StatusOK)
		b.wantText("example.com", "com.example/*")
		b.press("Remove the policy for com.example/*", http.StatusOK)
		b.wantText("The policy is removed.", "No policy yet")
		b.follow("Mirrors", http.StatusOK)
		b.wantText("public", "registry.example.com")
		b.follow("Webhooks", http.StatusOK)
		b.wantText("hooks.example.com", "published", "Not delivered 0")
		b.wantNoText("hunter2")
		b.press("Remove the webhook of hooks.example.com", http.StatusOK)
		b.wantText("The webhook is removed.", "No webhook yet")
		b.open("/console/operator", http.StatusOK)
		b.wantText("This instance", "database ok", "otp-log courier running")
		if e.Shared { // the database knows who is connected
			b.wantText("All instances")
		}
	})
}

// TestOperatorLimits shows the rules in force, which of them applies, and the keys over their
// limit.
func TestOperatorLimits(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		rules := "domain: bakery\ndescriptors:\n" +
			"  - key: customer\n    value: ada\n    rate_limit: {unit: hour, requests_per_unit: 2, name: vip}\n" +
			"  - key: customer\n    value: \"a*\"\n    shadow_mode: true\n    rate_limit: {unit: minute, requests_per_unit: 5}\n" +
			"  - key: customer\n    rate_limit: {unlimited: true}\n"
		if err := os.WriteFile(filepath.Join(e.RulesDir, "bakery.yaml"), []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
		s := e.Start(t)
		for range 3 {
			body := map[string]any{
				"domain": "bakery", "descriptors": []any{
					map[string]any{"entries": []any{map[string]string{"key": "customer", "value": "ada"}}},
				},
			}
			apiclient.Call(t, "POST", s.RateLimitAPI+"/json", body)
		}
		b := newOperator(t, e, s)
		b.follow("Limits", http.StatusOK)
		b.wantText("customer=ada bakery customer=ada 3 1", "customer=ada vip 2 per hour 3 1", "bakery.yaml:3",
			"customer=a* 5 per minute shadow mode", "customer unlimited")
		b.press("Explain", http.StatusOK, "for", "bakery", "descriptors", "customer=anna\ncustomer=<b>bob</b>,x=1")
		b.wantText("Decided by customer=a*: 5 per minute, shadow mode, in",
			"the pattern matches, and no exact value does",
			"customer=<b>bob</b>,x=1",
			"No rule applies: the rules end at level 1, but the descriptor has more entries.")
		b.press("Explain", http.StatusOK, "for", "bakery", "descriptors", "customer")
		b.wantText("Write each descriptor on a line, as key=value,key=value")
		b.press("Explain", http.StatusOK, "for", "bakery", "descriptors", strings.Repeat("customer=a\n", 11))
		b.wantText("Ask about at most 10 descriptors at once.")
		hot := apiclient.Call(t, "GET", s.Debug+"/ratelimit/hot", nil).WantStatus(t, http.StatusOK)
		want := `{"rules":[{"domain":"bakery","path":["customer=ada"],"keys":[{"descriptor":"customer=ada","hits":3,"refused":1,"error":0}]}]}`
		if got := strings.TrimSpace(string(hot.Body)); got != want {
			t.Errorf("hot keys are %s, want %s", got, want)
		}
	})
}

// TestOperatorDeadEvents shows the events that were not delivered, and sends them again.
func TestOperatorDeadEvents(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, append(fixture.RegistrySettings(), "WEBHOOK_RETRY_FOR=1s")...)
		ada := e.NewWriter(t, s, "ada@example.com", "publish *")
		// a name that no DNS has (RFC 6761)
		e.RunCommand(t, "", "webhook", "add", "https://hooks.invalid/in", "--events", "published")
		ada.PostJSON(t, s, "/v0.1/publish", fixture.NewServerDocument("com.example/weather", "1.0.0")).WantStatus(t,
			http.StatusOK)
		b := newOperator(t, e, s)
		await.Until(t, "an event that is dead", func() bool {
			b.open("/console/operator/webhooks", http.StatusOK)
			return strings.Contains(b.text(), "Not delivered 1")
		})
		b.wantText("The newest that were not delivered", "com.example/weather 1.0.0")
		b.open("/console/operator", http.StatusOK)
		b.wantText("1 event was not delivered. Webhooks")
		b.open("/console/operator/webhooks", http.StatusOK)
		b.press("Send them again to hooks.invalid", http.StatusOK)
		b.wantPath("/console/operator/webhooks?done=redelivered")
		b.wantText("The events are sent again.")
	})
}

// TestOperatorState shows what a file manages: without forms, and with what has changed since.
func TestOperatorState(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t)
		b := newOperator(t, e, s)
		b.open("/console/operator/state", http.StatusOK)
		b.wantText("No file was applied yet.")
		const file = `{"apiVersion": "tollgate.dev/v1", "kind": "State", "views": [{"name": "data"}, {"name": "gone"}],
			"mirrors": [{"name": "up", "url": "https://registry.invalid"}],
			"policies": [{"method": "dns", "domain": "example.com", "pattern": "com.example/*"}],
			"webhooks": [{"url": "https://hooks.invalid", "events": ["status"]}]}`
		e.RunCommand(t, file, "apply", "-f", "-", "--owner", "platform")
		b.open("/console/operator/state", http.StatusOK)
		b.wantText("platform", "By an operator command", "Objects 5", "Drift none")
		e.RunCommand(t, "", "view", "remove", "gone")
		e.RunCommand(t, `{"apiVersion": "tollgate.dev/v1", "kind": "State", "views": [{"name": "data", "access": "token"}]}`,
			"apply", "-f", "-", "--owner", "other", "--adopt")
		b.open("/console/operator/state", http.StatusOK)
		b.wantText("Drift 2", "view data", `access: "public" → "token"`, `managedBy: "platform" → "other"`,
			"view gone", "does not exist any more")
		for path, owner := range map[string]string{"views": "other", "mirrors": "platform", "policies": "platform", "webhooks": "platform"} {
			b.open("/console/operator/"+path, http.StatusOK)
			b.wantText("managed by " + owner)
			b.wantNoText("Remove")
		}
	})
}
