package console_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// accessStep3 is the last step of a new rule.
const accessStep3 = "/console/operator/access?new=1&step=3"

// TestAccessRules changes each field of a rule. A rule after which no call is allowed needs a
// confirmation.
func TestAccessRules(t *testing.T) {
	e, s := start(t)
	b := newOperator(t, e, s)
	b.Follow("Access rules", http.StatusOK)
	b.WantText("This service is not asked about calls (DECIDE=off)", "No rule yet: the default decides every call.", "Without a rule denied ACCESS_DEFAULT=deny", "Mode enforce")
	b.Open(accessStep3, http.StatusOK)
	b.Press("Add this rule", http.StatusOK, "name", "platform", "order", "10", "subjects", "everyone", "servers", "com.example/*")
	b.changeAccessRule()
	b.confirmLockout()
	b.Press("Remove the rule platform", http.StatusOK)
	b.Open("/console/operator/access/rules/platform", http.StatusNotFound)
	b.Open("/console/operator/log?type=REGISTRY_CHANGE", http.StatusOK).WantText("platform")
}

// changeAccessRule changes each field of a rule.
func (b *browser) changeAccessRule() {
	b.T.Helper()
	b.Open(accessStep3, http.StatusOK)
	b.Press("Add this rule", http.StatusOK, "name", "other", "subjects", "everyone", "servers", "*") // so that no change locks out
	const rule = "/console/operator/access/rules/platform?step="
	steps := map[string]string{"subjects": "1", "effect": "1", "servers": "2"}
	for _, c := range [][2]string{
		{"order", "11"}, {"subjects", "everyone\nservice:ci"}, {"servers", "com.example/a\norg.example/*"}, {"tools", "write"},
		{"minTrust", "FULL_TRUST"}, {"networks", "192.0.2.0/24"}, {"expiresAt", "2099-03-01T18:30:00.5Z"}, {"expiresAt", "2099-03-02"},
		{"mode", "observe"}, {"minTrust", ""}, {"effect", "deny"}, {"tools", ""}, {"effect", "allow"}, {"mode", "enforce"},
	} {
		b.Open(rule+cmp.Or(steps[c[0]], "3"), http.StatusOK)
		b.Press("Save this rule", http.StatusOK, c[0], c[1]).WantText("The changes are saved.")
		if got := b.Field(c[0]); got != c[1] {
			b.T.Errorf("%s is %q, want %q", c[0], got, c[1])
		}
		if c[1] == "observe" {
			b.WantText("It only observes: it decides nothing")
		}
	}
	b.Open(rule+"3", http.StatusOK)
	b.Press("Save this rule", http.StatusOK, "methods", "tools/list", "expiresAt", "", "networks", "")
	b.WantText("Allows everybody with a valid token and the service account ci to list tools of com.example/a and org.example/*.")
	b.Open("/console/operator/access/rules/other", http.StatusOK)
	b.Press("Remove the rule other", http.StatusOK)
}

// confirmLockout stores a rule after which no call is allowed: the form needs a confirmation.
func (b *browser) confirmLockout() {
	b.T.Helper()
	form := []string{"name", "stop", "order", "0", "effect", "deny", "subjects", "anyone", "servers", "*"}
	b.Open("/console/operator/access", http.StatusOK)
	if !strings.Contains(b.Page.Body, "Nobody may call any server then: no other rule allows anything.") {
		b.T.Error("the question before the removal of the only rule that allows does not say so")
	}
	b.Open(accessStep3, http.StatusOK).WantNoText("Confirmation")
	b.Press("Add this rule", http.StatusUnprocessableEntity, form...)
	b.WantText("Confirmation: with this rule, no call of any server is allowed any more.")
	b.Press("Add this rule", http.StatusOK, "confirm", "true")
	b.WantText("The rule is added.", "Forbids anybody, also without a token, to use every server.")
	b.Press("Remove the rule stop", http.StatusOK)
}

// TestAccessRulesInOrder shows the rules in the order in which they hold, those about a server and a
// person, those of a file read-only, and says which settings hold.
func TestAccessRulesInOrder(t *testing.T) {
	e, s := start(t, "ACCESS_MODE=observe", "ACCESS_DEFAULT=allow")
	set := func(name string, args ...string) {
		e.RunCommand(t, "", append([]string{"access", "rule", "set", name}, args...)...)
	}
	set("a-late", "--order", "30", "--effect", "allow", "--subject", "everyone", "--server", "*")
	set("z-first", "--order", "1", "--effect", "deny", "--subject", "service:ci", "--server", "com.example/*", "--mode", "observe")
	set("publishers", "--order", "2", "--effect", "allow", "--subject", "grant:publish", "--server", "com.example/*")
	e.RunCommand(t, `{"apiVersion": "tollgate.dev/v1", "kind": "State", "accessRules": [{"name": "filed", "order": 3, "effect": "allow",
		"subjects": ["person:ada@example.com"], "servers": ["org.example/x"], "tools": ["\u202eelif"]}]}`, "apply", "-f", "-", "--owner", "platform")
	e.NewPerson(t, "ada@example.com", "publish com.example/x")
	b := newOperator(t, e, s)
	order := func(path string, want ...string) {
		t.Helper()
		b.Open("/console/operator/access"+path, http.StatusOK)
		text := b.Text()
		at := 0
		for _, name := range []string{"z-first", "publishers", "filed", "a-late"} {
			i := strings.Index(text, name+" ")
			if wanted := len(want) > 0 && want[0] == name; wanted != (i >= 0) {
				t.Errorf("%s: shows %s = %t", path, name, i >= 0)
			} else if wanted {
				if i < at {
					t.Errorf("%s: %s is not in its place", path, name)
				}
				at, want = i, want[1:]
			}
		}
	}
	order("", "z-first", "publishers", "filed", "a-late")
	b.WantText("No rule decides: ACCESS_MODE=observe counts", "Without a rule allowed ACCESS_DEFAULT=allow", "managed by platform",
		"Only observes", "4 rules, in the order", `to call the tool \u202eelif of org.example/x`)
	order("?server=com.example/x", "z-first", "publishers", "a-late")
	order("?subject=ada@example.com", "publishers", "filed", "a-late")
	order("?subject=ada@example.com&server=org.example/x", "filed", "a-late")
	b.WantText("2 rules that could apply")
	order("?subject=bea@example.com&server=com.example/x", "a-late")
	b.Open("/console/operator/access?server=x&subject=ada@example.com", http.StatusUnprocessableEntity)
	b.WantText("Server: name must have at least 3 characters")
	b.Open("/console/operator/access?subject=none@example.com", http.StatusUnprocessableEntity)
	b.WantText("Subject: there is no active person:none@example.com.")
	b.Open("/console/operator/access/rules/filed", http.StatusOK)
	b.WantText("managed by platform", "Subjects person:ada@example.com", `Tools \u202eelif`)
	b.WantNoText("Save this rule", "Remove it")
	b.Submit("/console/operator/access/rules/filed", http.StatusConflict, url.Values{
		"order": {"1"}, "effect": {"allow"}, "subjects": {"everyone"}, "servers": {"*"},
	})
	b.WantText("The file of platform manages this")
	b.Submit("/console/operator/access/rules/filed/remove", http.StatusConflict, nil)
}

// TestExplainACall explains calls of a person, a service account and a caller without a token.
func TestExplainACall(t *testing.T) {
	e, s := start(t, "DECIDE=on")
	e.NewWriter(t, s, "ada@example.com", "publish com.example/*").PostJSON(t, s, "/v0.1/publish",
		fixture.NewServerDocument("com.example/weather", "1.0.0")).WantStatus(t, http.StatusOK)
	for i, rule := range [][]string{
		{"strangers", "--subject", "service:ci", "--server", "*", "--effect", "deny"},
		{"mail", "--subject", "everyone", "--server", "org.example/*", "--effect", "allow"},
		{"lists", "--subject", "everyone", "--server", "*", "--method", "tools/list", "--effect", "allow"},
		{"removals", "--subject", "everyone", "--server", "*", "--tool", "rm", "--effect", "deny"},
		{"office", "--subject", "everyone", "--server", "*", "--network", "10.0.0.0/8", "--effect", "allow"},
		{"watch", "--subject", "everyone", "--server", "*", "--effect", "deny", "--mode", "observe"},
		{"publishers", "--subject", "grant:publish", "--server", "com.example/*", "--effect", "allow", "--min-trust", "UNVERIFIED"},
	} {
		e.RunCommand(t, "", append([]string{"access", "rule", "set", "--order", string('1' + rune(i))}, rule...)...)
	}
	b := newOperator(t, e, s)
	b.Follow("Access rules", http.StatusOK)
	b.Follow("Explain a call", http.StatusOK).WantNoText("passed over")
	ask := func(status int, fields url.Values, want ...string) {
		t.Helper()
		b.Open("/console/operator/access/explain?"+fields.Encode(), status).WantText(want...)
	}
	call := func(more ...string) url.Values {
		v := url.Values{"server": {"com.example/weather"}, "method": {"tools/call"}, "tool": {"forecast"}}
		for i := 0; i < len(more); i += 2 {
			v.Set(more[i], more[i+1])
		}
		return v
	}
	ask(http.StatusOK, call("subject", "ada@example.com"), "Allowed The rule publishers allows the call.", "Matches the subject by grant:publish, "+
		"of the grant publish com.example/*", "com.example/weather Listed", "strangers It is not about this subject.", "mail It is not about this server.",
		"lists It is not about this method.", "removals It is not about this tool.", "office It is not about this address.",
		"watch It matches, and only observes.", "The rule watch only observes. It would deny the call.", "ada@example.com")
	b.WantFields("subject", "ada@example.com")
	ask(http.StatusOK, call("subject", "ada@example.com", "tool", "rm"), "Denied The rule removals denies the call.")
	ask(http.StatusOK, call("subject", "ada@example.com", "trust", "HIGH_RISK"), "Challenged The session is at high risk, and no rule opens anything")
	ask(http.StatusOK, call("address", "10.1.2.3", "subject", "bea@example.com"), "The rule office allows the call.")
	ask(http.StatusOK, call(), "Challenged No rule decides the call, and the default denies it. There is no token", "a caller without a token")
	ask(http.StatusOK, call("server", "com.example/none"), "Denied The server is not listed, and such servers are denied.", "Not listed")
	ask(http.StatusOK, call("server", "https://\u202example.com/mcp"), "Denied Programs disagree where the address leads")
	ask(http.StatusUnprocessableEntity, call("subject", "x@@"), "Subject: person: must be followed by an e-mail address.")
	ask(http.StatusUnprocessableEntity, call("subject", "none@example.com"), "Subject: there is no active person:none@example.com.")
	ask(http.StatusUnprocessableEntity, call("tool", ""), "Tool must be the name of the tool that is called.")
	ask(http.StatusUnprocessableEntity, call("server", " "), "Server must be a name or an address.")
	ask(http.StatusUnprocessableEntity, call("server", "://"), "Server must be a name or a URL")
	ask(http.StatusUnprocessableEntity, call("address", "ten"), "Address of the client must be an IP address.")
	b.callersAndUsage(e, s)
	e.RunCommand(t, "", "access", "rule", "remove", "stop")
	b.explainAmongMany(e)
}

// explainAmongMany checks that the rules about others are left out if there are many, and are listed in pages.
func (b *browser) explainAmongMany(e *fixture.Environment) {
	b.T.Helper()
	var rules []map[string]any
	for i := range 150 {
		rules = append(rules, map[string]any{
			"name": fmt.Sprintf("other-%03d", i), "order": 0, "effect": "allow", "subjects": []string{"service:other"}, "servers": []string{"*"},
		})
	}
	state, err := json.Marshal(map[string]any{"apiVersion": "tollgate.dev/v1", "kind": "State", "accessRules": rules})
	must.Succeed(b.T, err)
	e.RunCommand(b.T, string(state), "apply", "-f", "-", "--owner", "many")
	question := "/console/operator/access/explain?server=com.example/weather&method=tools/call&tool=forecast&subject=ada@example.com"
	await.Until(b.T, "the rules", func() bool {
		b.Open(question, http.StatusOK)
		return strings.Contains(b.Text(), "Show all that were passed over")
	})
	b.WantText("And 152 rules that are not listed here", "removals It is not about this tool.", "The newest session began at")
	b.WantNoText("other-000")
	b.Follow("Show all that were passed over", http.StatusOK)
	b.WantText("1 to 100 of 156", "other-099 It is not about this subject.")
	b.Follow("Later", http.StatusOK).WantText("101 to 156 of 156", "other-100", "watch It matches, and only observes.")
	b.Follow("Earlier", http.StatusOK).WantText("1 to 100 of 156")
}

// callersAndUsage checks who may call a server on its page, and what people may use on theirs.
func (b *browser) callersAndUsage(e *fixture.Environment, s *fixture.Service) {
	b.T.Helper()
	const server = "/console/servers/com.example/weather"
	b.Open(server, http.StatusOK)
	b.WantText("Who may call it Last asked by a proxy: never, since this instance started. Rule What it does strangers Forbids the service account ci to use every server.",
		"publishers Allows people with the grant publish", "Calls that no rule matches are denied.")
	b.WantNoText("mail Allows")
	b.WantText("Calls 0 calls, 0 denied in the last 7 days")
	day := time.Now().Unix() / (24 * 60 * 60)
	for _, days := range []int64{0, 6, 7} {
		_, err := e.OpenDatabase(b.T).ExecContext(b.T.Context(), "INSERT INTO server_calls (day, name, calls, denied) VALUES ($1, 'com.example/weather', 602, 2)", day-days)
		must.Succeed(b.T, err)
	}
	b.Open(server, http.StatusOK).WantText("Calls 1,204 calls, 4 denied in the last 7 days")
	b.Follow("Its access rules", http.StatusOK).WantText("6 rules that could apply")
	b.Open("/console/account/access", http.StatusOK)
	b.WantText("com.example/weather May list tools. May not call the tool rm. May use everything, from 10.0.0.0/8.")
	b.WantNoText("at UNVERIFIED or above")
	stranger := newBrowser(b.T, s)
	stranger.Open(server, http.StatusOK).WantNoText("Who may call it", "in the last 7 days")
	stranger.Open("/console/account/access", http.StatusOK)
	stranger.WantPath("/console/sign-in?next=%2Fconsole%2Faccount%2Faccess")
	cem := signedIn(b.T, s, e.NewPerson(b.T, "cem@example.com", "edit com.example/*"))
	cem.Open(server, http.StatusOK).WantText("Who may call it", "strangers Forbids").WantNoText("Its access rules")
	dan := signedIn(b.T, s, e.NewPerson(b.T, "dan@example.com", "publish org.example/*", "edit org.example/*"))
	dan.Open(server, http.StatusOK).WantNoText("Who may call it")
	dan.Follow("My account", http.StatusOK)
	dan.Follow("What may I use", http.StatusOK).WantText("com.example/weather May list tools.")
	e.RunCommand(b.T, "", "access", "rule", "set", "stop", "--order", "0", "--subject", "anyone", "--server", "*", "--effect", "deny")
	await.Until(b.T, "the rule holds", func() bool {
		dan.Open("/console/account/access", http.StatusOK)
		return strings.Contains(dan.Text(), "You may use no server yet.")
	})
	dan.Open("/console/account/access?after=~", http.StatusOK).WantText("You may use no further server.")
}

// TestNewRuleInSteps adds a rule in three steps, which keep what was entered, name what exists, warn of
// what does not, and try the rule before it is stored.
func TestNewRuleInSteps(t *testing.T) {
	e, s := start(t, "DECIDE=on", fixture.RiskPolicy("relaxed"))
	e.NewWriter(t, s, "ada@example.com", "publish com.example/*").PostJSON(t, s, "/v0.1/publish",
		fixture.NewServerDocument("com.example/weather", "1.0.0")).WantStatus(t, http.StatusOK)
	e.RunCommand(t, "", "service-account", "set", "ci")
	provider := oidcissuer.StartProvider(t)
	e.RunCommand(t, `{"apiVersion": "tollgate.dev/v1", "kind": "State", "providers": [{"name": "corp", "issuer": "`+provider.URL+
		`", "clientId": "tollgate", "create": true, "domains": ["corp.example"], "networks": ["127.0.0.0/8"]}]}`, "apply", "-f", "-", "--owner", "platform")
	provider.Secret = ""
	provider.SignIn("u1", "eng@corp.example", "groups", []string{"engineers"})
	newBrowser(t, s).Open("/console/sign-in/company/corp?return=/console/account", http.StatusOK)
	b := newOperator(t, e, s)
	b.Follow("Access rules", http.StatusOK)
	b.Follow("New access rule", http.StatusOK).WantText("Allows … to use …", "Subjects").WantNoText("Order", "Add this rule", "Least trust")
	for _, name := range []string{"group:corp/engineers", "person:eng@corp.example", "service:ci", "grant:publish", "everyone"} {
		if !strings.Contains(b.Page.Body, `<option value="`+name+`">`) {
			t.Errorf("the form does not offer %s", name)
		}
	}
	b.Press("Next", http.StatusUnprocessableEntity).WantText("Subjects must have")
	b.Press("Next", http.StatusUnprocessableEntity, "subjects", "\x00\u202e"+strings.Repeat("x", 5000)).WantText("Subjects, entry 1")
	b.Press("Next", http.StatusOK, "subjects", "group:corp/enginers\nada@example.com")
	b.WantText("No group corp/enginers was seen yet. Nearest: corp/engineers", "Allows people of corp/enginers and ada@example.com to use …").WantNoText("….")
	b.Press("Next", http.StatusOK, "servers", "com.exmple/*")
	b.WantText("No server com.exmple/* was seen yet. Nearest: com.example/*", "com.exmple/*.").WantFields("subjects", "group:corp/enginers\nperson:ada@example.com", "order", "100")
	b.Press("Back", http.StatusOK).WantFields("servers", "com.exmple/*")
	b.Press("Back", http.StatusOK)
	b.Press("Next", http.StatusOK, "subjects", "group:corp/engineers").WantNoText("No group")
	b.Press("Next", http.StatusOK, "servers", "com.example/*").WantNoText("was seen yet")
	b.WantFields("trySubject", "group:corp/engineers", "tryServer", "") // the call to try is of the rule
	b.tryNewRule()
	b.Press("Add this rule", http.StatusOK, "name", "engineers", "minTrust", "UNVERIFIED").WantText("The rule is added.")
	b.Follow("engineers", http.StatusOK).WantFields("subjects", "group:corp/engineers")
	b.Press("Next", http.StatusOK).WantFields("servers", "com.example/*", "name", "")
	b.Open("/console/operator/access?new=1&subject=ada@example.com&server=com.example/weather", http.StatusOK)
	b.WantText("Allows ada@example.com to use com.example/weather.")
}

// tryNewRule tries the rule of the form, which stays unsaved.
func (b *browser) tryNewRule() {
	b.T.Helper()
	b.Press("Try it", http.StatusUnprocessableEntity, "tools", "a*b").WantText("Tools, entry 1, is wrong")
	b.Press("Try it", http.StatusOK, "tools", "").WantText("This instance decided no call within the last day")
	folded := func(want bool) {
		b.T.Helper()
		if strings.Contains(b.Page.Body, `<details class="field"><summary>More conditions`) != want {
			b.T.Errorf("more conditions are folded: %t", !want)
		}
	}
	folded(true)
	b.Press("Try it", http.StatusUnprocessableEntity, "networks", "x")
	folded(false)
	b.Press("Try it", http.StatusOK, "networks", "10.0.0.0/8")
	folded(false)
	b.Press("Try it", http.StatusOK, "networks", "")
	b.Press("Try it", http.StatusOK, "trySubject", "none@example.com", "tryServer", "com.example/weather").WantText("Subject: there is no active person:none@example.com.")
	b.Press("Try it", http.StatusOK, "trySubject", "eng@corp.example", "tryTool", "forecast", "minTrust", "UNVERIFIED")
	b.WantText("The call now Denied No rule decides the call", "With this rule Allowed The rule unsaved allows the call.")
	b.WantFields("subjects", "group:corp/engineers", "minTrust", "UNVERIFIED", "name", "")
	if size := len(b.Page.Body); size > 100_000 {
		b.T.Errorf("the page has %d bytes", size)
	}
}
