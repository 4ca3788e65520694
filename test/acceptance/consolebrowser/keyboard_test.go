package consolebrowser

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/chromium"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestKeyboard signs in, steps up, publishes a document with three mistakes, mends them, has it
// reviewed by a second person, copies the snippet, and ends a session and revokes a device: by
// keyboard alone, with and without JavaScript.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	for _, scripts := range []bool{true, false} {
		t.Run(fmt.Sprintf("JavaScript=%t", scripts), func(t *testing.T) {
			t.Parallel()
			useKeyboard(t, fixture.NewEnvironment(t, "embedded"), scripts)
		})
	}
}

func useKeyboard(t *testing.T, e *fixture.Environment, scripts bool) {
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
	p.signOut()

	p.signIn("bea@example.com")
	p.press("Inbox 1 waiting")
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
	p.signOut()

	p.signIn(ada.Email)
	p.openMenu(ada.Email)
	p.press("My account")
	before := chromium.Evaluate[int](t, p.tab, rows("sessions"))
	p.press("End the session of Firefox on Linux") // that of the API
	if after := chromium.Evaluate[int](t, p.tab, rows("sessions")); after != before-1 {
		t.Errorf("there are %s sessions, want %d", strconv.Itoa(after), before-1)
	}
	if scripts {
		p.useKeys()
	}
	p.press("Revoke Firefox on Linux")
	p.wantText("The device is revoked, and its sessions are ended.")
	p.wantNoComplaints()
}

// useKeys moves in the menu of the account, which is one stop of Tab, and goes elsewhere and back by the keys after g.
func (p *person) useKeys() {
	p.t.Helper()
	if n := chromium.Evaluate[int](p.t, p.tab, `document.querySelectorAll(".menu a:not([tabindex='-1'])").length`); n != 1 {
		p.t.Errorf("the menu has %d stops of Tab", n)
	}
	p.tab.Run(p.t, chromedp.Evaluate[chromedp.Void](`void document.querySelector(".menu [aria-current]").focus()`))
	p.tab.Type(p.t, kb.ArrowDown)
	if name := chromium.Evaluate[string](p.t, p.tab, nameOfFocus); name != "Password" {
		p.t.Errorf("the arrow leads to %q", name)
	}
	const keysShown = `document.querySelector(".keys > dl").checkVisibility()`
	for _, shown := range []bool{true, false} { // the key that shows them also hides them
		p.tab.Type(p.t, "?")
		if chromium.Evaluate[bool](p.t, p.tab, keysShown) != shown {
			p.t.Errorf("the keys are shown: %t", !shown)
		}
	}
	p.tab.Type(p.t, "g")
	p.tab.Follow(p.t, "g s", func() { p.tab.Type(p.t, "s") })
	p.wantText("1 server")
	p.open("/console/account")
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
	p.fill("Search servers", "NEWS")
	await.Until(t, "the list with one server, and its address", func() bool { // the first letter finds it too
		return !strings.Contains(p.text(), "com.example/weather") && strings.Contains(p.text(), "com.example/news") &&
			chromium.Evaluate[bool](t, p.tab, `location.search.includes("q=NEWS")`)
	})
	if !chromium.Evaluate[bool](t, p.tab, `window.before === true`) {
		t.Error("the page is a new one")
	}
	p.wantNoComplaints()
}

// rows returns an expression for the number of rows in the table after a heading.
func rows(heading string) string {
	return fmt.Sprintf(
		`(() => { let e = document.getElementById(%q); while (e.tagName !== "TABLE") e = e.nextElementSibling; return e.tBodies[0].rows.length; })()`, heading)
}
