package browser

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/chromium"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

// axeScript returns what axe finds in the page that is open.
const axeScript = `axe.run().then((r) => r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html).join(" ")))`

// startDocumentation renders the documentation as static pages, serves them until the test ends,
// and returns their base URL.
func startDocumentation(t *testing.T) string {
	t.Helper()
	project, err := filepath.Abs(root)
	must.Succeed(t, err)
	to := filepath.Join(t.TempDir(), "site")
	if out, err := exec.Command("go", "run", "-C", filepath.Join(root, "test", "tools"), "./docsite", "-from", project, "-to", to).
		CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s := httptest.NewServer(http.FileServer(http.Dir(to)))
	t.Cleanup(s.Close)
	return s.URL
}

// TestDocumentation opens some of the rendered pages in a wide and a narrow window, in light and in
// dark mode, and searches.
func TestDocumentation(t *testing.T) {
	window, address := chromium.Open(t), startDocumentation(t)
	axe, err := os.ReadFile(os.Getenv("TEST_AXE")) // a setting of the tests
	if err != nil {
		t.Skip("needs axe-core: run the test by test/servers/with.sh, or set TEST_AXE")
	}
	recorded := chromium.RecordComplaints(t, window, address)
	for _, page := range []string{"/index.html", "/hardening.html", "/metrics.html"} {
		window.Run(t, chromedp.Navigate(address+page), chromedp.Evaluate[chromedp.Void](string(axe)+";undefined"))
		for _, v := range chromium.Viewports(1280, 320)[1:3] { // one of each width and of each scheme
			window.SetViewport(t, v)
			chromium.SavePicture(t, window, v.Name+filepath.Base(page))
			found, err := chromedp.Run(window.Context, chromedp.Evaluate[[]string](axeScript, chromedp.EvalAwaitPromise))
			must.Succeed(t, err)
			if chromium.Evaluate[bool](t, window, "document.documentElement.scrollWidth > innerWidth") {
				found = append(found, "it is wider than the window")
			}
			for _, defect := range found {
				t.Errorf("%s, %s: %s", page, v.Name, defect)
			}
		}
	}
	window.Run(t, chromedp.Navigate(address+"/contract/index.html"), chromedp.Focus("#search"), chromedp.SendKeys("#search", "TRUSTED_proxies reverse"))
	await.Until(t, "a result of the search", func() bool {
		return chromium.Evaluate[bool](t, window, `document.querySelector("#results a")?.checkVisibility() ?? false`)
	})
	chromium.SavePicture(t, window, "search")
	window.Run(t, chromedp.Click("#results a"))
	await.Until(t, "the page that was found", func() bool {
		return chromium.Evaluate[bool](t, window, `location.pathname === "/reverse-proxies.html" && document.querySelector("article")?.checkVisibility() === true`)
	})
	for _, complaint := range recorded.TakeAll() {
		t.Error(complaint)
	}
}
