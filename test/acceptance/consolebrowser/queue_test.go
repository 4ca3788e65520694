package consolebrowser

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/chromium"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// The queue that the tests decide, and what a reviewer may need for it at most.
const (
	harmless   = 11
	mostKeys   = 25
	mostClicks = 20
)

// dangers are ways in which a new version is dangerous. Each has a mark that differs between the queues.
var dangers = []struct {
	name   string
	change func(doc, pkg map[string]any, mark string)
}{
	{"host", func(doc, _ map[string]any, mark string) {
		doc["remotes"] = remotes("https://examp1e-" + mark + ".net/mcp")
	}},
	{"another", func(doc, _ map[string]any, mark string) {
		doc["remotes"] = append(doc["remotes"].([]any), remotes("http://collect-"+mark+".example.net/mcp")...)
	}},
	{"secret", func(doc, _ map[string]any, mark string) {
		doc["remotes"].([]any)[0].(map[string]any)["headers"] = []any{map[string]any{"name": "X-SSO-" + mark, "isSecret": true, "description": "Paste your cookie"}}
	}},
	{"package", func(_, pkg map[string]any, mark string) { pkg["identifier"] = "@examp1e/server-" + mark }},
	{"source", func(_, pkg map[string]any, mark string) {
		pkg["registryType"], pkg["identifier"] = "pypi", "server-"+mark
	}},
	{"command", func(_, pkg map[string]any, mark string) { pkg["runtimeHint"] = "sh-" + mark }},
	{"argument", func(_, pkg map[string]any, mark string) {
		pkg["runtimeArguments"] = []any{map[string]any{"type": "positional", "value": "evil-" + mark}}
	}},
	{"variable", func(_, pkg map[string]any, mark string) {
		pkg["environmentVariables"] = []any{map[string]any{"name": "TOKEN_" + mark, "isSecret": true}}
	}},
}

func remotes(url string) []any { return []any{map[string]any{"type": "streamable-http", "url": url}} }

// queue is a service with a reviewer, for whom documents wait.
type queue struct {
	*person

	s    *fixture.Service
	ada  *fixture.Person // who publishes
	acts int             // keys or clicks
}

// TestQueue decides 20 reviews, 9 of them dangerous, by keys alone, and 20 others by mouse: what is harmless together, and
// what is dangerous on its page, where the red words are seen without scrolling. It counts what a reviewer does.
func TestQueue(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t, append(append(fixture.RegistrySettings(), fixture.RelaxedRiskSettings...), "REGISTRY_REVIEW=on")...)
	q := &queue{s: s, ada: e.NewWriter(t, s, "ada@example.com", "publish *")}
	for i := range harmless {
		q.publish(t, "text-"+strconv.Itoa(i), "1.0.0", nil)
	}
	for _, d := range dangers {
		q.publish(t, d.name, "1.0.0", nil)
	}
	e.RunCommand(t, "", "review", "approve", "--all-pending")
	bea := e.NewWriter(t, s, "bea@example.com", "review *")
	q.person = newPerson(t, e, s)
	q.tab.SetViewport(t, chromium.Viewports(1400, 360)[0])
	q.signIn(bea.Email)
	q.open("/console/step-up?next=/console/home")
	q.verify(bea.Email)

	q.fillQueue("1.1.0", "a")
	q.decide(q.byKeys())
	if q.acts > mostKeys {
		t.Errorf("20 reviews needed %d keys, more than %d", q.acts, mostKeys)
	}
	q.wantDecided(bea)
	t.Logf("20 reviews needed %d keys", q.acts)

	q.acts = 0
	q.fillQueue("1.2.0", "b")
	q.open("/console/home")
	q.decide(q.byMouse())
	if q.acts > mostClicks {
		t.Errorf("20 reviews needed %d clicks, more than %d", q.acts, mostClicks)
	}
	q.wantDecided(bea)
	t.Logf("20 reviews needed %d clicks", q.acts)
	q.wantNoComplaints()
}

// publish publishes a version with a package, which may be changed before.
func (q *queue) publish(t *testing.T, name, version string, change func(doc, pkg map[string]any)) {
	t.Helper()
	doc := fixture.NewServerDocument("com.example/"+name, version)
	pkg := map[string]any{"registryType": "npm", "identifier": "example-server", "version": "1.0.0", "transport": map[string]any{"type": "stdio"}}
	doc["packages"] = []any{pkg}
	if change != nil {
		change(doc, pkg)
	}
	q.ada.PostJSON(t, q.s, "/v0.1/publish", doc).WantStatus(t, http.StatusOK)
}

// fillQueue publishes what waits.
func (q *queue) fillQueue(version, mark string) {
	q.t.Helper()
	for i := range harmless {
		q.publish(q.t, "text-"+strconv.Itoa(i), version, func(doc, pkg map[string]any) {
			if doc["description"] = "It says more: " + mark; i%2 == 0 {
				pkg["version"] = version
			}
		})
	}
	for _, d := range dangers {
		q.publish(q.t, d.name, version, func(doc, pkg map[string]any) { d.change(doc, pkg, mark) })
	}
	q.publish(q.t, "new-"+mark, version, nil)
}

// hand is how a reviewer does something, and what it costs.
type hand struct{ open, together, approve, reject func() }

func (q *queue) byKeys() hand {
	press := func(key string) { q.acts++; q.tab.Type(q.t, key) }
	follow := func(key string) { q.tab.Follow(q.t, key, func() { press(key) }) }
	decide := func(key, button string) func() {
		return func() {
			press(key)
			if name := chromium.Evaluate[string](q.t, q.tab, nameOfFocus); name != button {
				q.t.Fatalf("after %s the focus is on %q", key, name)
			}
			follow("\r")
		}
	}
	return hand{
		open: func() { press("g"); follow("r") }, together: func() { follow("h") },
		approve: decide("a", "Approve"), reject: decide("r", "Reject"),
	}
}

func (q *queue) byMouse() hand {
	click := func(name string) func() {
		return func() {
			q.acts++
			q.wantInView(name, fmt.Sprintf(`[...document.querySelectorAll("main a, main button, header a")].find(e => e.textContent.trim() === %q)`, name))
			q.click(name)
		}
	}
	reject := click("Reject")
	return hand{
		open: click("Inbox 20 waiting"), together: click("Approve 11 harmless reviews"), approve: click("Approve"),
		reject: func() { reject(); q.wantText("Comment is filled in from what is dangerous"); reject() },
	}
}

// wantInView checks that an element is in the window without scrolling, and that nothing covers it.
func (q *queue) wantInView(what, element string) {
	q.t.Helper()
	const seen = `(() => {
		const e = %s, r = e?.getBoundingClientRect();
		return scrollY === 0 && r !== undefined && e.contains(document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2));
	})()`
	if !chromium.Evaluate[bool](q.t, q.tab, fmt.Sprintf(seen, element)) {
		q.t.Errorf("%s is not in the window:\n%s", what, q.text())
	}
}

// decide decides all that waits: what is harmless together, and then what is dangerous, a third of which is rejected.
func (q *queue) decide(by hand) {
	q.t.Helper()
	by.open()
	chromium.SavePicture(q.t, q.tab, "queue")
	by.together()
	q.wantText("Approved. The documents are listed now.")
	for i := range harmless {
		q.wantText("com.example/text-" + strconv.Itoa(i) + " 1.")
	}
	for i := range len(dangers) + 1 {
		q.wantText(fmt.Sprintf("1 of %d waiting", len(dangers)+1-i))
		q.wantInView("what is dangerous", `document.querySelector("main .points .danger strong")`)
		chromium.SavePicture(q.t, q.tab, fmt.Sprintf("queue-%d", i))
		if i%3 == 2 {
			by.reject()
			q.wantText("Rejected. The submitter is told why.")
			continue
		}
		by.approve()
		q.wantText("Approved. The document is listed now.")
	}
}

// wantDecided checks that nothing waits, and that what was rejected last has its reason.
func (q *queue) wantDecided(bea *fixture.Person) {
	q.t.Helper()
	list := func(state string) (all []struct{ Comment string }) {
		var page struct{ Reviews []struct{ Comment string } }
		apiclient.Call(q.t, "GET", q.s.API+"/v0.1/x/dev.tollgate/reviews?limit=100&state="+state, nil, bea.Bearer()...).Decode(q.t, &page)
		return page.Reviews
	}
	rejected := list("rejected")
	if n := len(list("pending")); n != 0 || len(rejected) == 0 || !strings.HasPrefix(rejected[len(rejected)-1].Comment, "This is dangerous: ") {
		q.t.Errorf("%d wait, and rejected are %+v", n, rejected)
	}
}
