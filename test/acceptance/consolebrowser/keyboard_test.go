package consolebrowser

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/chromium"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// person is somebody at a browser who has only a keyboard.
type person struct {
	t      *testing.T
	e      *fixture.Environment
	tab    chromium.Tab
	errors *chromium.Complaints
}

func newPerson(t *testing.T, e *fixture.Environment, s *fixture.Service) *person {
	t.Helper()
	p := &person{t: t, e: e, tab: chromium.Open(t)}
	address := strings.Replace(s.API, "127.0.0.1", "localhost", 1)
	p.errors = chromium.RecordComplaints(t, p.tab, address)
	err := chromedp.Listen(p.tab.Context, func(event any) {
		if _, asks := event.(*page.EventJavascriptDialogOpening); asks {
			go func() { // a listener must not wait for the browser
				// the test fails where the act is missing
				_, _ = chromedp.Call(p.tab.Context, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{
					Accept: true,
				})
			}()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	p.tab.Run(t, chromedp.Navigate(address+"/"))
	return p
}

// focus presses Tab until an element with a name has the focus: a link or a button by its text, a
// field by its label.
func (p *person) focus(name string) {
	p.t.Helper()
	const most = 300
	for range most {
		p.tab.Type(p.t, "\t")
		if chromium.Evaluate[string](p.t, p.tab, nameOfFocus) == name {
			return
		}
	}
	p.t.Fatalf("no Tab leads to %q on\n%s", name, p.text())
}

// nameOfFocus is the accessible name of what has the focus.
const nameOfFocus = `(() => {
	const e = document.activeElement;
	return (e.getAttribute("aria-label") || e.labels?.[0]?.textContent || e.textContent || "").trim();
})()`

// press presses Enter on a link or a button, and waits for the page that follows.
func (p *person) press(name string) {
	p.t.Helper()
	p.focus(name)
	p.enter()
}

// enter presses Enter and waits for the page that follows.
func (p *person) enter() {
	p.t.Helper()
	p.tab.Run(p.t, chromedp.Evaluate[chromedp.Void](`void (window.before = true)`))
	p.tab.Type(p.t, "\r")
	await.Until(p.t, "the next page", func() bool {
		loaded, err := chromedp.Run(p.tab.Context,
			chromedp.Evaluate[bool](
				`window.before === undefined && document.readyState === "complete" && document.querySelector("main") !== null`))
		return err == nil && loaded
	})
}

// fill focuses a field and types a text in place of what it has.
func (p *person) fill(label, text string) {
	p.t.Helper()
	p.focus(label)
	p.tab.Run(p.t, chromedp.Evaluate[chromedp.Void](`void document.activeElement.select()`))
	p.tab.Type(p.t, text)
}

func (p *person) text() string {
	return chromium.Evaluate[string](p.t, p.tab, `document.body.innerText`)
}

func (p *person) wantText(texts ...string) {
	p.t.Helper()
	shown := p.text()
	for _, text := range texts {
		if !strings.Contains(shown, text) {
			p.t.Fatalf("the page does not show %q:\n%s", text, shown)
		}
	}
}

// signIn signs in with the page that is open.
func (p *person) signIn(email string) {
	p.t.Helper()
	p.press("Sign in")
	p.fill("E-mail address", email)
	p.fill("Password", fixture.Password)
	p.enter()
	p.wantText(email)
}

// verify enters the code for a step-up.
func (p *person) verify(email string) {
	p.t.Helper()
	p.press("Send a code to " + email[:1] + "…" + email[strings.Index(email, "@"):])
	await.Until(p.t, "the focus on the code", func() bool {
		return chromium.Evaluate[bool](p.t, p.tab, `document.activeElement.matches("[autocomplete=one-time-code]")`)
	})
	p.tab.Type(p.t, p.e.LastCode(p.t, email))
	p.enter()
}

// TestKeyboard signs in, steps up, publishes a document with three mistakes, mends them, has it
// reviewed by a second person, copies the snippet, and ends a session and revokes a device: by
// keyboard alone, with and without JavaScript.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	for _, scripts := range []bool{true, false} {
		t.Run(fmt.Sprintf("JavaScript=%t", scripts), func(t *testing.T) {
			t.Parallel()
			fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) { useKeyboard(t, e, scripts) })
		})
	}
}

func useKeyboard(t *testing.T, e *fixture.Environment, scripts bool) {
	skipInShort(t, e, scripts)
	s := e.Start(t, append(fixture.RegistrySettings(), "REGISTRY_REVIEW=on")...)
	ada := e.NewWriter(t, s, "ada@example.com", "publish com.example/*")
	e.NewPerson(t, "bea@example.com", "review *")
	p := newPerson(t, e, s)
	if !scripts {
		p.tab.DisableScripts(t)
	}
	p.signIn(ada.Email)
	p.press("Publish")
	const good = `{"$schema":"https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json","name":"com.example/weather","description":"Weather.","version":"1.0.0","remotes":[{"type":"streamable-http","url":"https://weather.example.com/mcp"}]}`
	p.fill("Server document",
		strings.NewReplacer(`"1.0.0"`, `1`, `"Weather."`, `""`, `https://weather`, `gopher://weather`).Replace(good))
	p.press("Publish")
	p.wantText("The document breaks 3 rules")
	await.Until(t, "the focus on the mistakes", func() bool {
		return chromium.Evaluate[bool](t, p.tab, `document.activeElement.matches(".problems")`)
	})
	p.fill("Server document", good)
	p.press("Publish")
	p.wantText("To go on with Publish, enter a one-time code.")
	p.verify(ada.Email)
	if got := chromium.Evaluate[string](t, p.tab, `document.querySelector("textarea").value.trim()`); got != good {
		t.Errorf("after the step-up the document is %s", got)
	}
	p.focus("Server document") // behind the link of the same name as the button
	p.press("Publish")
	p.wantText("The document waits for review.")
	p.press("Sign out")

	p.signIn("bea@example.com")
	p.press("Reviews 1 waiting")
	p.press("com.example/weather")
	p.fill("Comment", "Fine.")
	p.press("Approve")
	p.verify("bea@example.com")
	p.press("Approve")
	p.wantText("Approved. The document is listed now.")
	p.press("Servers")
	p.press("com.example/weather")
	if scripts {
		p.focus("Copy the name")
		p.tab.Type(t, "\r")
		await.Until(t, "the copy", func() bool {
			return strings.Contains(p.text(), "Copied") || strings.Contains(p.text(), "Press Ctrl+C")
		})
	}
	p.press("Sign out")

	p.signIn(ada.Email)
	p.press("Account of " + ada.Email)
	before := chromium.Evaluate[int](t, p.tab, rows("sessions"))
	p.press("End the session of Firefox on Linux") // that of the API
	if after := chromium.Evaluate[int](t, p.tab, rows("sessions")); after != before-1 {
		t.Errorf("there are %s sessions, want %d", strconv.Itoa(after), before-1)
	}
	p.press("Revoke Firefox on Linux")
	p.wantText("The device is revoked, and its sessions are ended.")
	for _, complaint := range p.errors.TakeAll() {
		if !strings.Contains(complaint, "status of 4") { // the statuses of forms with mistakes
			t.Error(complaint)
		}
	}
}

// TestSearchWhileTyping types into the search of the catalogue: the list follows without a new
// page, and the address too.
func TestSearchWhileTyping(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t, fixture.RegistrySettings()...)
	ada := e.NewWriter(t, s, "ada@example.com", "publish com.example/*")
	for _, name := range []string{"com.example/news", "com.example/weather"} {
		ada.PostJSON(t, s, "/v0.1/publish", fixture.NewServerDocument(name, "1.0.0")).WantStatus(t, http.StatusOK)
	}
	p := newPerson(t, e, s)
	p.wantText("com.example/news", "com.example/weather")
	p.tab.Run(t, chromedp.Evaluate[chromedp.Void](`void (window.before = true)`))
	p.fill("Search names, titles and descriptions", "NEWS")
	await.Until(t, "the list with one server, and its address", func() bool { // the first letter finds it too
		return !strings.Contains(p.text(), "com.example/weather") && strings.Contains(p.text(), "com.example/news") &&
			chromium.Evaluate[bool](t, p.tab, `location.search.includes("q=NEWS")`)
	})
	if !chromium.Evaluate[bool](t, p.tab, `window.before === true`) {
		t.Error("the page is a new one")
	}
	for _, complaint := range p.errors.TakeAll() {
		t.Error(complaint)
	}
}

// rows returns an expression for the number of rows in the table after a heading.
func rows(heading string) string {
	return fmt.Sprintf(
		`(() => { let e = document.getElementById(%q); while (e.tagName !== "TABLE") e = e.nextElementSibling; return e.tBodies[0].rows.length; })()`, heading)
}
