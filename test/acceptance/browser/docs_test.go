package browser

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/tollgate-dev/tollgate/test/acceptance/internal/chromium"
)

// inspectScript returns a list of defects of the page that is open.
//
//go:embed inspect.js
var inspectScript string

// TestDocs checks /docs in a wide and a narrow window, in light and in dark mode.
func TestDocs(t *testing.T) {
	window, address := chromium.Open(t), startService(t)
	recorded := chromium.RecordComplaints(t, window, address)
	for _, v := range chromium.Viewports(1280, 390) {
		t.Run(v.Name, func(t *testing.T) {
			window.Run(t, chromedp.Navigate("about:blank"))
			window.SetViewport(t, v)
			for _, page := range []string{"/docs", "/docs/schemas", "/docs/registry"} {
				window.Run(t, chromedp.Navigate(address+page))
				chromium.SavePicture(t, window, v.Name+strings.ReplaceAll(page, "/", "-"))
				for _, defect := range chromium.Evaluate[[]string](t, window, inspectScript) {
					t.Errorf("%s: %s", page, defect)
				}
			}
			checkLink(t, window, v, "publishServer")
			for _, complaint := range recorded.TakeAll() {
				t.Error(complaint)
			}
		})
	}
	t.Run("the first Tab reaches the link to the content", func(t *testing.T) { checkSkipLink(t, window, address) })
	t.Run("the content security policy blocks injected code", func(t *testing.T) {
		checkContentPolicy(t, window, address, recorded)
	})
}

// checkLink clicks a link to a section of the page and checks that the section's heading becomes
// visible.
func checkLink(t *testing.T, w chromium.Tab, v chromium.Viewport, id string) {
	t.Helper()
	seen := chromium.Evaluate[bool](t, w, fmt.Sprintf(`(() => {
		const link = [...document.querySelectorAll('a[href$="#%[1]s"]')].find((a) => a.checkVisibility());
		link.click();
		const box = document.querySelector("#%[1]s h3 a").getBoundingClientRect();
		const there = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
		return location.hash === "#%[1]s" && there !== null && there.closest("h3") !== null && there.closest("#%[1]s") !== null;
	})()`, id))
	chromium.SavePicture(t, w, v.Name+"-"+id)
	if !seen {
		t.Errorf("after a click on a link to %s its heading is not visible", id)
	}
}

// checkSkipLink checks that the first Tab shows a link that skips the table of contents, and that
// Enter follows it.
func checkSkipLink(t *testing.T, w chromium.Tab, address string) {
	t.Helper()
	w.Run(t, chromedp.Navigate("about:blank"), chromedp.Navigate(address+"/docs"), chromedp.KeyEvent("\t"))
	if !chromium.Evaluate[bool](t, w,
		`document.activeElement.matches("a.skip") && document.activeElement.getBoundingClientRect().left >= 0`) {
		t.Error("the first Tab does not show the link that skips the table of contents")
	}
	w.Run(t, chromedp.KeyEvent("\r"))
	if got := chromium.Evaluate[string](t, w, "location.hash"); got != "#top" {
		t.Errorf("the link that skips the table of contents leads to %q, want #top", got)
	}
}

// checkContentPolicy checks that the browser blocks a script and a style that were injected into
// the page, and reports that.
func checkContentPolicy(t *testing.T, w chromium.Tab, address string, recorded *chromium.Complaints) {
	t.Helper()
	w.Run(t, chromedp.Navigate(address+"/docs"))
	recorded.TakeAll()
	blocked := chromium.Evaluate[bool](t, w, `(() => {
		const script = document.createElement("script");
		script.textContent = "window.ran = true";
		const style = document.createElement("style");
		style.textContent = "body { display: none }";
		document.head.append(script, style);
		return window.ran === undefined && getComputedStyle(document.body).display !== "none";
	})()`)
	if !blocked {
		t.Error("the browser applied a script or a style that was injected into the page")
	}
	if len(recorded.TakeAll()) == 0 {
		t.Error("no complaint was recorded for the blocked script, so this test would miss other complaints too")
	}
}
