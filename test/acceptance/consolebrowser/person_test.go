package consolebrowser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/chromium"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// shared is the browser of the tests. The first person starts it, and the last one ends it.
var shared struct {
	mu     sync.Mutex
	people int
	window context.Context
	stop   func()
}

// openWindow returns a window of the browser, with cookies of its own.
func openWindow(t *testing.T) chromium.Tab {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.people == 0 {
		startBrowser(t)
	}
	shared.people++
	ctx, leave := chromedp.NewContext(shared.window, chromedp.WithNewBrowserContext())
	t.Cleanup(func() {
		leave()
		shared.mu.Lock()
		defer shared.mu.Unlock()
		if shared.people--; shared.people == 0 {
			shared.stop()
		}
	})
	if err := chromedp.Do(ctx); err != nil { // opens the window
		t.Fatal(err)
	}
	return chromium.Tab{Context: ctx}
}

// startBrowser starts the browser.
func startBrowser(t *testing.T) {
	t.Helper()
	path := os.Getenv("TEST_CHROMIUM")
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		t.Skip("needs Chromium or TEST_CHROMIUM")
	}
	profile, err := os.MkdirTemp("", "tollgate-browser-")
	must.Succeed(t, err)
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.DisableGPU, chromedp.UserDataDir(profile))
	if os.Geteuid() == 0 { // Chromium's sandbox does not work for root
		options = append(options, chromedp.NoSandbox)
	}
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	window, _ := chromedp.NewContext(allocator)
	shared.window, shared.stop = window, func() {
		end()
		_ = os.RemoveAll(profile) // the browser's last child processes may still write
	}
	if err := chromedp.Do(window); err != nil {
		shared.stop()
		t.Fatal(err)
	}
}

// person is somebody at a browser who has only a keyboard.
type person struct {
	t      *testing.T
	e      *fixture.Environment
	tab    chromium.Tab
	errors *chromium.Complaints
}

func newPerson(t *testing.T, e *fixture.Environment, s *fixture.Service) *person {
	t.Helper()
	p := newVisitor(t, s.API)
	p.e = e
	return p
}

// newVisitor returns a person at the pages of a server that need no account.
func newVisitor(t *testing.T, base string) *person {
	t.Helper()
	p := &person{t: t, tab: openWindow(t)}
	address := strings.Replace(base, "127.0.0.1", "localhost", 1)
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
	must.Succeed(t, err)
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

// click clicks on a link or a button by its name, and waits for the page that follows.
func (p *person) click(name string) {
	p.t.Helper()
	p.tab.Follow(p.t, name, func() { p.tab.Click(p.t, name) })
}

// enter presses Enter and waits for the page that follows.
func (p *person) enter() {
	p.t.Helper()
	p.tab.Follow(p.t, "Enter", func() { p.tab.Type(p.t, "\r") })
}

// fill focuses a field and types a text in place of what it has.
func (p *person) fill(label, text string) {
	p.t.Helper()
	p.focus(label)
	p.tab.Run(p.t, chromedp.Evaluate[chromedp.Void](`void document.activeElement.select()`))
	p.tab.Type(p.t, text)
}

func (p *person) text() string {
	p.t.Helper()
	return p.tab.Text(p.t)
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

// wantNoText fails the test if the page shows a text.
func (p *person) wantNoText(text string) {
	p.t.Helper()
	if shown := p.text(); strings.Contains(shown, text) {
		p.t.Errorf("the page shows %q:\n%s", text, shown)
	}
}

// waitFor waits until the page shows a text, after scripts of it have sent a form.
func (p *person) waitFor(text string) {
	p.t.Helper()
	await.Until(p.t, text, func() bool {
		shown, err := chromedp.Run(p.tab.Context, chromedp.Evaluate[string](`document.body?.innerText ?? ""`))
		return err == nil && strings.Contains(shown, text)
	})
}

// set gives the field with an id a value: a text, or the value of an option.
func (p *person) set(id, value string) {
	p.t.Helper()
	p.tab.Set(p.t, id, value)
}

// tick ticks the box with a value.
func (p *person) tick(value string) {
	p.t.Helper()
	if !chromium.Evaluate[bool](p.t, p.tab,
		fmt.Sprintf(`(() => { const e = document.querySelector("input[type=checkbox][value=%s]"); e.checked = true; return e.checked; })()`, value)) {
		p.t.Fatalf("the box %s is not ticked", value)
	}
}

// open opens a page.
func (p *person) open(path string) {
	p.t.Helper()
	p.tab.Run(p.t, chromedp.Navigate(chromium.Evaluate[string](p.t, p.tab, "location.origin")+path))
}

// signIn signs in with the page that is open.
func (p *person) signIn(email string) {
	p.t.Helper()
	p.press("Sign in")
	p.fill("E-mail address", email)
	p.fill("Password", fixture.Password)
	p.enter()
	p.waitForPerson(email)
}

// waitForPerson waits until the header has the menu of the person with an e-mail address.
func (p *person) waitForPerson(email string) {
	p.t.Helper()
	await.Until(p.t, email+" is signed in", func() bool {
		shown, err := chromedp.Run(p.tab.Context, chromedp.Evaluate[bool](fmt.Sprintf(`document.querySelector(".me summary")?.title === %q`, email)))
		return err == nil && shown
	})
}

// openMenu opens the menu of the person with an e-mail address.
func (p *person) openMenu(email string) {
	p.t.Helper()
	p.focus(chromium.Evaluate[string](p.t, p.tab, `document.querySelector(".me summary").ariaLabel`))
	p.tab.Type(p.t, "\r")
	p.wantText(email)
}

// signOut signs the person out by the menu.
func (p *person) signOut() {
	p.t.Helper()
	p.openMenu(chromium.Evaluate[string](p.t, p.tab, `document.querySelector(".me summary").title`))
	p.press("Sign out")
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

// wantNoComplaints checks that the browser has not complained.
func (p *person) wantNoComplaints() {
	p.t.Helper()
	for _, complaint := range p.errors.TakeAll() {
		if !strings.Contains(complaint, "status of 4") { // the statuses of forms with mistakes
			p.t.Error(complaint)
		}
	}
}
