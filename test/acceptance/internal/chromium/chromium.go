// Package chromium opens pages in a real browser for tests, and records what the browser complains
// about.
//
// TEST_CHROMIUM is the path of the browser, Chromium or Chrome; without it the tests look for one
// under its usual names. TEST_PICTURES is a folder in which SavePicture saves screenshots.
package chromium

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/tollgate-dev/tollgate/test/await"
)

// browsers are the usual names.
var browserNames = []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"}

// findBrowser returns the path of the browser, or skips the test if there is no browser.
func findBrowser(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("TEST_CHROMIUM"); path != "" {
		return path
	}
	for _, name := range browserNames {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("needs Chromium or TEST_CHROMIUM")
	return ""
}

// Tab is a window of a browser; Context identifies it for chromedp.
type Tab struct{ Context context.Context }

// Open starts a browser, which runs until the test ends, and returns its window.
func Open(t *testing.T) Tab {
	t.Helper()
	// The browser's last child processes may still write while the folder is removed, so errors are
	// ignored.
	profile, err := os.MkdirTemp("", "tollgate-browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(profile) })
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(findBrowser(t)), chromedp.DisableGPU, chromedp.UserDataDir(profile))
	if os.Geteuid() == 0 { // Chromium's sandbox does not work for root
		options = append(options, chromedp.NoSandbox)
	}
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // starts the browser, which ends with this context
		t.Fatal(err)
	}
	return Tab{ctx}
}

// Run runs steps one after the other, and ends the test if one fails or they take longer than a
// test waits for anything.
func (w Tab) Run(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(w.Context, await.Timeout)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// Evaluate returns the value of an expression in the page.
func Evaluate[T any](t *testing.T, w Tab, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(w.Context, await.Timeout)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// Viewport is the size and the color scheme of a window.
type Viewport struct {
	Name   string
	Width  int64
	Scheme string // light or dark
}

// Viewports returns a wide and a narrow window, each in light and in dark mode. The widths are in
// pixels.
func Viewports(wide, narrow int64) []Viewport {
	return []Viewport{
		{"wide-light", wide, "light"}, {"wide-dark", wide, "dark"}, {"narrow-light", narrow, "light"}, {
			"narrow-dark", narrow, "dark",
		},
	}
}

// SetViewport sets the size and the color scheme of the window.
func (w Tab) SetViewport(t *testing.T, v Viewport) {
	t.Helper()
	options := []chromedp.EmulateViewportOption{}
	if v.Width < 800 {
		options = append(options, chromedp.EmulateMobile)
	}
	w.Run(t, chromedp.EmulateViewport(v.Width, 900, options...))
	_, err := chromedp.Call(w.Context, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: v.Scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}, // no color is on its way
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// DisableScripts lets no script of a page run any more.
func (w Tab) DisableScripts(t *testing.T) {
	t.Helper()
	_, err := chromedp.Call(w.Context, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{
		Value: true,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Complaints collects the errors and messages in the browser's console and the page's requests to
// other hosts.
type Complaints struct {
	host string
	mu   sync.Mutex
	all  []string
}

// RecordComplaints starts to collect complaints about the pages of the service at address.
func RecordComplaints(t *testing.T, w Tab, address string) *Complaints {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	c := &Complaints{host: u.Host}
	if err := chromedp.Listen(w.Context, c.handleEvent); err != nil {
		t.Fatal(err)
	}
	return c
}

// handleEvent adds a complaint if the event is one.
func (c *Complaints) handleEvent(event any) {
	switch e := event.(type) {
	case *log.EventEntryAdded:
		c.addComplaint("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
	case *runtime.EventConsoleAPICalled:
		c.addComplaint("console: %s", e.Type)
	case *runtime.EventExceptionThrown:
		c.addComplaint("exception: %s", e.ExceptionDetails.Text)
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err != nil || u.Host != c.host && u.Scheme != "data" {
			c.addComplaint("the page requests %s from another host", e.Request.URL)
		}
	}
}

func (c *Complaints) addComplaint(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, fmt.Sprintf(format, args...))
}

// TakeAll returns the collected complaints and removes them.
func (c *Complaints) TakeAll() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.all
	c.all = nil
	return all
}

// Type types a text, or presses keys like "\t" and "\r".
func (w Tab) Type(t *testing.T, keys string) {
	t.Helper()
	w.Run(t, chromedp.KeyEvent(keys))
}

// SavePicture saves a screenshot if TEST_PICTURES is set.
func SavePicture(t *testing.T, w Tab, name string) {
	t.Helper()
	dir := os.Getenv("TEST_PICTURES")
	if dir == "" {
		return
	}
	content, err := chromedp.Run(w.Context, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Text returns what the page shows.
func (w Tab) Text(t *testing.T) string {
	t.Helper()
	return Evaluate[string](t, w, `document.body.innerText`)
}

// Set gives the field with an id a value: a text, or the value of an option.
func (w Tab) Set(t *testing.T, id, value string) {
	t.Helper()
	const set = `(() => { const e = document.getElementById(%q); if (e) e.value = %q; return e ? e.value : "missing"; })()`
	if got := Evaluate[string](t, w, fmt.Sprintf(set, id, value)); got != value {
		t.Fatalf("the field %s has %q, want %q", id, got, value)
	}
}

// Click clicks on a link or a button by its name. The links of the menu come last.
func (w Tab) Click(t *testing.T, name string) {
	t.Helper()
	const click = `(() => {
		const named = ["main a, main button, .who button", "nav a"].flatMap(where => [...document.querySelectorAll(where)])
			.find(e => (e.getAttribute("aria-label") || e.textContent).trim() === %q);
		named?.click();
		return named !== undefined;
	})()`
	if !Evaluate[bool](t, w, fmt.Sprintf(click, name)) {
		t.Fatalf("there is no %q on\n%s", name, w.Text(t))
	}
}

// Follow does what leads to another page of the console, and waits for that page.
func (w Tab) Follow(t *testing.T, what string, act func()) {
	t.Helper()
	w.Run(t, chromedp.Evaluate[chromedp.Void](`void (window.before = true)`))
	act()
	await.Until(t, "the page after "+what, func() bool {
		loaded, err := chromedp.Run(w.Context, chromedp.Evaluate[bool](
			`window.before === undefined && document.readyState === "complete" && document.querySelector("main") !== null`))
		return err == nil && loaded
	})
}
