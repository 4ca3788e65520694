package browser

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
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/tollgate-dev/tollgate/test/instance"
)

const (
	root        = "../.."
	testTimeout = 2 * time.Minute // for a whole test
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

// tab is a window of a browser; ctx identifies it for chromedp.
type tab struct{ ctx context.Context }

// openTab starts a browser, which runs until the test ends, and returns its window.
func openTab(t *testing.T) tab {
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
	within, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	allocator, cancel := chromedp.NewExecAllocator(within, options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	window := tab{ctx}
	window.run(t)
	return window
}

// run runs steps one after the other, and ends the test if one fails.
func (w tab) run(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(w.ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// evaluate returns the value of an expression in the page.
func evaluate[T any](t *testing.T, w tab, expression string) T {
	t.Helper()
	value, err := chromedp.Run(w.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// startService starts the service, which runs until the test ends, and returns the base URL of its
// API.
func startService(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := instance.Build(root, dir, false, "cmd/tollgate"); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "runtime", "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := instance.Start(filepath.Join(dir, "tollgate"), instance.Loopback(dir), "serve")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return "http://" + s.API
}

// viewport is the size and the color scheme of a window.
type viewport struct {
	name   string
	width  int64
	scheme string // light or dark
}

// setViewport sets the size and the color scheme of the window.
func (w tab) setViewport(t *testing.T, v viewport) {
	t.Helper()
	options := []chromedp.EmulateViewportOption{}
	if v.width < 800 {
		options = append(options, chromedp.EmulateMobile)
	}
	w.run(t, chromedp.EmulateViewport(v.width, 900, options...))
	_, err := chromedp.Call(w.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: v.scheme}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// complaints collects the errors and messages in the browser's console and the page's requests to
// other hosts.
type complaints struct {
	host string
	mu   sync.Mutex
	all  []string
}

// recordComplaints starts to collect complaints about the pages of the service at address.
func recordComplaints(t *testing.T, w tab, address string) *complaints {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	c := &complaints{host: u.Host}
	if err := chromedp.Listen(w.ctx, c.handleEvent); err != nil {
		t.Fatal(err)
	}
	return c
}

// handleEvent adds a complaint if the event is one.
func (c *complaints) handleEvent(event any) {
	switch e := event.(type) {
	case *log.EventEntryAdded:
		c.addComplaint("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
	case *runtime.EventConsoleAPICalled:
		c.addComplaint("console: %s", e.Type)
	case *runtime.EventExceptionThrown:
		c.addComplaint("exception: %s", e.ExceptionDetails.Text)
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err != nil || u.Host != c.host {
			c.addComplaint("the page requests %s from another host", e.Request.URL)
		}
	}
}

func (c *complaints) addComplaint(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, fmt.Sprintf(format, args...))
}

// takeAll returns the collected complaints and removes them.
func (c *complaints) takeAll() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.all
	c.all = nil
	return all
}

// savePicture saves a screenshot if TEST_PICTURES is set.
func savePicture(t *testing.T, w tab, name string) {
	t.Helper()
	dir := os.Getenv("TEST_PICTURES")
	if dir == "" {
		return
	}
	content, err := chromedp.Run(w.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), content, 0o600); err != nil {
		t.Fatal(err)
	}
}
