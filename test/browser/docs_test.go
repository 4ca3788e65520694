package browser

import (
	_ "embed"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// inspectScript returns a list of defects of the page that is open.
//
//go:embed inspect.js
var inspectScript string

// TestDocs checks /docs in a wide and a narrow window, in light and in dark mode.
func TestDocs(t *testing.T) {
	window, address := openTab(t), startService(t)
	recorded := recordComplaints(t, window, address)
	for _, v := range []viewport{
		{"wide-light", 1280, "light"}, {"wide-dark", 1280, "dark"}, {"narrow-light", 390, "light"}, {"narrow-dark", 390, "dark"},
	} {
		t.Run(v.name, func(t *testing.T) {
			window.run(t, chromedp.Navigate("about:blank"))
			window.setViewport(t, v)
			window.run(t, chromedp.Navigate(address+"/docs"))
			savePicture(t, window, v.name)
			for _, defect := range evaluate[[]string](t, window, inspectScript) {
				t.Error(defect)
			}
			checkLink(t, window, v, "publishServer")
			checkLink(t, window, v, "schema-ServerDetail")
			for _, complaint := range recorded.takeAll() {
				t.Error(complaint)
			}
		})
	}
	t.Run("the first Tab reaches the link to the content", func(t *testing.T) { checkSkipLink(t, window, address) })
	t.Run("the content security policy blocks injected code", func(t *testing.T) { checkContentPolicy(t, window, address, recorded) })
}

// checkLink clicks a link to a section of the page and checks that the section's heading becomes
// visible.
func checkLink(t *testing.T, w tab, v viewport, id string) {
	t.Helper()
	seen := evaluate[bool](t, w, fmt.Sprintf(`(() => {
		const link = [...document.querySelectorAll('a[href="#%[1]s"]')].find((a) => a.checkVisibility());
		link.click();
		const box = document.querySelector("#%[1]s h3 a").getBoundingClientRect();
		const there = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
		return location.hash === "#%[1]s" && there !== null && there.closest("h3") !== null && there.closest("#%[1]s") !== null;
	})()`, id))
	savePicture(t, w, v.name+"-"+id)
	if !seen {
		t.Errorf("after a click on a link to %s its heading is not visible", id)
	}
}

// checkSkipLink checks that the first Tab shows a link that skips the table of contents, and that
// Enter follows it.
func checkSkipLink(t *testing.T, w tab, address string) {
	t.Helper()
	w.run(t, chromedp.Navigate("about:blank"), chromedp.Navigate(address+"/docs"), chromedp.KeyEvent("\t"))
	if !evaluate[bool](t, w, `document.activeElement.matches("a.skip") && document.activeElement.getBoundingClientRect().left >= 0`) {
		t.Error("the first Tab does not show the link that skips the table of contents")
	}
	w.run(t, chromedp.KeyEvent("\r"))
	if got := evaluate[string](t, w, "location.hash"); got != "#top" {
		t.Errorf("the link that skips the table of contents leads to %q, want #top", got)
	}
}

// checkContentPolicy checks that the browser blocks a script and a style that were injected into
// the page, and reports that.
func checkContentPolicy(t *testing.T, w tab, address string, recorded *complaints) {
	t.Helper()
	w.run(t, chromedp.Navigate(address+"/docs"))
	recorded.takeAll()
	blocked := evaluate[bool](t, w, `(() => {
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
	if len(recorded.takeAll()) == 0 {
		t.Error("no complaint was recorded for the blocked script, so this test would miss other complaints too")
	}
}
