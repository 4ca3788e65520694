package console_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestOperatorPeople locks, unlocks, disables and enables an account and ends its sessions.
func TestOperatorPeople(t *testing.T) {
	e, s := start(t)
	ada := e.NewPerson(t, "ada@example.com", "publish com.example/*")
	ada.Login(t, s)
	b := newOperator(t, e, s)
	b.Follow("People", http.StatusOK).WantText("ada@example.com", "bea@example.com", "A Person", "Active")
	b.Open("/console/operator/people?after=ada@example.com", http.StatusOK).WantNoText("ada@example.com A Person")
	b.Open("/console/operator/people", http.StatusOK)
	b.Follow("ada@example.com", http.StatusOK)
	b.WantText("Second factor no", "Not confirmed", "publish com.example/*", "127.0.0.1", "This person has no tokens.")
	b.WantNoText("Unlock Disable")
	signInStatus := func() int {
		return apiclient.Call(t, "POST", s.API+"/auth/login",
			map[string]any{"email": ada.Email, "password": fixture.Password, "deviceInfo": ada.Device}).Status
	}
	b.Press("End all sessions", http.StatusOK).WantText("The sessions are ended.", "not signed in anywhere")
	apiclient.Call(t, "GET", s.API+"/auth/session", nil, ada.Bearer()...).WantStatus(t, http.StatusUnauthorized)
	for _, step := range []struct {
		button, text string
		status       int
	}{
		{"Lock", "State Locked", http.StatusForbidden}, {"Unlock", "State Active", http.StatusOK},
		{"Disable", "State Disabled", http.StatusUnauthorized}, {"Enable", "State Active", http.StatusOK},
	} {
		b.Press(step.button, http.StatusOK).WantText(step.text)
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
	b.Open("/console/operator/people/ada@example.com", http.StatusOK)
	b.WantText("State Active Locked after wrong passwords or codes until")
	b.Press("Unlock", http.StatusOK).WantNoText("Locked after wrong")
	if got := signInStatus(); got != http.StatusOK {
		t.Errorf("after Unlock the sign-in has the status %d", got)
	}
	b.Open("/console/operator/people/nobody@example.com", http.StatusNotFound)
	b.Open("/console/operator/people/nobody", http.StatusNotFound)

	b.Open("/console/operator/log?email=ada@example.com&type=ACCOUNT_CHANGE", http.StatusOK)
	b.WantText("bea@example.com locked the account ada@example.com")
	b.Open("/console/operator/log?email=nobody@example.com", http.StatusUnprocessableEntity)
	b.WantText("There is no account with this e-mail address.")
	b.Open("/console/operator/risk?email=ada@example.com", http.StatusOK)
	b.WantText("ada@example.com 100 High risk Failed sign-ins within 15 minutes", "no step-up or MFA was passed on the device +30",
		"Began: Not verified: no more without a code, whatever the score", "locked the account ada@example.com")
	b.WantNoText("History", "UNVERIFIED", "bea@example.com Not verified")
	b.Follow("ada@example.com", http.StatusOK).WantNoText("bea@example.com 2")
}

// TestRiskOfAWeek finds who had unusual sign-ins in a week, and what became of them, with each filter.
func TestRiskOfAWeek(t *testing.T) {
	e, s := start(t)
	ada, eve := e.NewPerson(t, "ada@example.com"), e.NewPerson(t, "eve@example.com")
	eve.Login(t, s)
	ada.Login(t, s)
	ada.StepUp(t, e, s)
	ada.Login(t, s)
	b := newOperator(t, e, s)
	b.Open("/console/operator/risk", http.StatusOK)
	b.WantText("ada@example.com 30 Not verified → Full trust", "Then: requested a code by e-mail; entered the right code by e-mail. Now: Full trust.",
		"2 sign-ins", "eve@example.com 30 Not verified New device", "Nothing came after it: no code was entered in it.")
	day := func(days int) string { return time.Now().UTC().AddDate(0, 0, days).Format(time.DateOnly) }
	for query, shown := range map[string]string{
		"?email=ada@example.com": "ada", "?email=eve@example.com&level=UNVERIFIED": "eve", "?level=HIGH_RISK": "", "?score=31": "",
		"?email=eve@example.com&level=FULL_TRUST": "", "?score=30&week=" + day(0): "ada eve", "?week=" + day(-7): "", "?week=" + day(7): "",
		"?week=0001-01-01": "ada eve", "?score=x&week=%00&level=%00": "", "?email=nobody@example.com": "",
	} {
		b.Open("/console/operator/risk"+query, http.StatusOK)
		for _, name := range []string{"ada", "eve"} {
			if got := b.Element("href", "/console/operator/people/"+name+"@example.com") != nil; got != strings.Contains(shown, name) {
				t.Errorf("%s shows %s: %v", query, name, got)
			}
		}
	}
	b.Open("/console/operator/risk?score=0", http.StatusOK)
	b.Follow("The week before", http.StatusOK).WantText("No sign-in of this week matches")
	b.Follow("The next week", http.StatusOK).WantText("eve@example.com 30")
	newVerified(t, e, s, "pia@example.com", "publish *").Open("/console/operator/risk", http.StatusForbidden)
}

// TestOperatorLimits shows the rules in force, which of them applies, and the keys over their
// limit.
func TestOperatorLimits(t *testing.T) {
	e := newEnvironment(t)
	fixture.WriteFile(t, filepath.Join(e.RulesDir, "bakery.yaml"), "domain: bakery\ndescriptors:\n"+
		"  - key: customer\n    value: ada\n    rate_limit: {unit: hour, requests_per_unit: 2, name: vip}\n"+
		"  - key: customer\n    value: \"a*\"\n    shadow_mode: true\n    rate_limit: {unit: minute, requests_per_unit: 5}\n"+
		"  - key: customer\n    rate_limit: {unlimited: true}\n")
	s := run(t, e)
	for range 3 {
		body := map[string]any{
			"domain": "bakery", "descriptors": []any{
				map[string]any{"entries": []any{map[string]string{"key": "customer", "value": "ada"}}},
			},
		}
		apiclient.Call(t, "POST", s.RateLimitAPI+"/json", body)
	}
	b := newOperator(t, e, s)
	b.Follow("Limits", http.StatusOK)
	b.WantText("customer=ada bakery customer=ada 3 1", "customer=ada vip 2 per hour 3 1", "bakery.yaml:3",
		"customer=a* 5 per minute shadow mode", "customer unlimited")
	b.Press("Explain", http.StatusOK, "for", "bakery", "descriptors", "customer=anna\ncustomer=<b>bob</b>,x=1")
	b.WantText("Decided by customer=a*: 5 per minute, shadow mode, in",
		"the pattern matches, and no exact value does",
		"customer=<b>bob</b>,x=1",
		"No rule applies: the rules end at level 1, but the descriptor has more entries.")
	b.Press("Explain", http.StatusOK, "for", "bakery", "descriptors", "customer")
	b.WantText("Write each descriptor on a line, as key=value,key=value")
	b.Press("Explain", http.StatusOK, "for", "bakery", "descriptors", strings.Repeat("customer=a\n", 11))
	b.WantText("Ask about at most 10 descriptors at once.")
	hot := apiclient.Call(t, "GET", s.Debug+"/ratelimit/hot", nil).WantStatus(t, http.StatusOK)
	want := `{"rules":[{"domain":"bakery","path":["customer=ada"],"keys":[{"descriptor":"customer=ada","hits":3,"refused":1,"error":0}]}]}`
	if got := strings.TrimSpace(string(hot.Body)); got != want {
		t.Errorf("hot keys are %s, want %s", got, want)
	}
}

// TestOperatorDeadEvents shows the events that were not delivered, and sends them again.
func TestOperatorDeadEvents(t *testing.T) {
	e, s := start(t, "WEBHOOK_RETRY_FOR=1s")
	ada := e.NewWriter(t, s, "ada@example.com", "publish *")
	// a name that no DNS has (RFC 6761)
	e.RunCommand(t, "", "webhook", "add", "https://hooks.invalid/in", "--events", "published")
	publishVersion(t, s, ada, "com.example/weather", "1.0.0")
	b := newOperator(t, e, s)
	await.Until(t, "an event that is dead", func() bool {
		b.Open("/console/operator/webhooks", http.StatusOK)
		return strings.Contains(b.Text(), "Not delivered 1")
	})
	b.WantText("The newest that were not delivered", "com.example/weather 1.0.0")
	b.Open("/console/operator", http.StatusOK).WantText("1 event was not delivered. Webhooks")
	b.Open("/console/operator/webhooks", http.StatusOK)
	b.Press("Send them again to hooks.invalid", http.StatusOK).WantPath("/console/operator/webhooks?done=redelivered")
	b.WantText("The events are sent again.")
}

// TestOperatorState shows what a file manages: without forms, and with what has changed since.
func TestOperatorState(t *testing.T) {
	e, s := start(t)
	b := newOperator(t, e, s)
	b.Open("/console/operator/state", http.StatusOK).WantText("No file was applied yet.")
	const file = `{"apiVersion": "tollgate.dev/v1", "kind": "State", "views": [{"name": "data"}, {"name": "gone"}],
		"mirrors": [{"name": "up", "url": "https://registry.invalid"}],
		"policies": [{"method": "dns", "domain": "example.com", "pattern": "com.example/*"}],
		"webhooks": [{"url": "https://hooks.invalid", "events": ["status"]}]}`
	e.RunCommand(t, file, "apply", "-f", "-", "--owner", "platform")
	b.Open("/console/operator/state", http.StatusOK)
	b.WantText("platform", "By an operator command", "Objects 5", "Drift none")
	e.RunCommand(t, "", "view", "remove", "gone")
	e.RunCommand(t, `{"apiVersion": "tollgate.dev/v1", "kind": "State", "views": [{"name": "data", "access": "token"}]}`,
		"apply", "-f", "-", "--owner", "other", "--adopt")
	b.Open("/console/operator/state", http.StatusOK)
	b.WantText("Drift 2", "view data", `access: "public" → "token"`, `managedBy: "platform" → "other"`,
		"view gone", "does not exist any more")
	for path, owner := range map[string]string{"views": "other", "mirrors": "platform", "policies": "platform", "webhooks": "platform"} {
		b.Open("/console/operator/"+path, http.StatusOK).WantText("managed by " + owner).WantNoText("Remove")
	}
}

// TestOperatorReadsTheHistory checks that the page Risk shows the score of the history with its
// reasons next to the points.
func TestOperatorReadsTheHistory(t *testing.T) {
	e, s := start(t)
	ada := e.NewPerson(t, "ada@example.com")
	var record strings.Builder
	for n := 505; n > 0; n-- {
		line := map[string]any{
			"id": n, "ts": time.Now().Add(-time.Duration(n) * 7 * time.Hour).Unix(), "email": ada.Email,
			"ip":              "127.0.0.1",
			"passwordCorrect": true, "stepUpPassed": true,
		}
		for name, value := range ada.Device {
			line[name] = value
		}
		text, err := json.Marshal(line)
		must.Succeed(t, err)
		record.WriteString(string(text) + "\n")
	}
	file := filepath.Join(e.Dir, "record.jsonl")
	fixture.WriteFile(t, file, record.String())
	e.RunCommand(t, "", "risk", "learn", file)
	ada.Device["userAgent"] = "Mozilla/5.0 (Windows NT 10.0; rv:60.0) Gecko/20100101 Firefox/60.0"
	ada.Login(t, s)
	b := newOperator(t, e, s)
	b.Open("/console/operator/risk?email=ada@example.com", http.StatusOK)
	b.WantText("no step-up or MFA was passed on the device", "points 30: the lower trust level of both counts",
		"of all sign-ins here")

	own := newBrowser(t, s) // of somebody who knows the password
	own.signIn(ada)
	own.Open("/console/account/log?type=RISK_EVALUATION", http.StatusOK).WantText("Risk score")
	own.WantNoText("of all sign-ins here", "no step-up or MFA was passed on the device", "History")
}
