package browser

import (
	_ "embed"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

//go:embed look.js
var look string

// TestDocs checks /docs in a wide and a narrow window, in light and dark colours.
func TestDocs(t *testing.T) {
	window, address := openBrowser(t), startService(t)
	heard := collectComplaints(t, window, address)
	for _, v := range []view{
		{"wide-light", 1280, "light"}, {"wide-dark", 1280, "dark"}, {"narrow-light", 390, "light"}, {"narrow-dark", 390, "dark"},
	} {
		t.Run(v.name, func(t *testing.T) {
			window.runSteps(t, chromedp.Navigate("about:blank"))
			window.setView(t, v)
			window.runSteps(t, chromedp.Navigate(address+"/docs"))
			saveScreenshot(t, window, v.name)
			for _, wrong := range evaluate[[]string](t, window, look) {
				t.Error(wrong)
			}
			checkLink(t, window, v, "publishServer")
			checkLink(t, window, v, "schema-ServerDetail")
			for _, complaint := range heard.takeAll() {
				t.Error(complaint)
			}
		})
	}
	t.Run("keyboard", func(t *testing.T) { checkSkipLink(t, window, address) })
	t.Run("policy", func(t *testing.T) { checkInjection(t, window, address, heard) })
}

// checkLink follows a link of the page to a section, and checks that its heading is visible.
func checkLink(t *testing.T, w tab, v view, id string) {
	t.Helper()
	seen := evaluate[bool](t, w, fmt.Sprintf(`(() => {
		const link = [...document.querySelectorAll('a[href="#%[1]s"]')].find((a) => a.checkVisibility());
		link.click();
		const box = document.querySelector("#%[1]s h3 a").getBoundingClientRect();
		const there = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
		return location.hash === "#%[1]s" && there !== null && there.closest("h3") !== null && there.closest("#%[1]s") !== null;
	})()`, id))
	saveScreenshot(t, w, v.name+"-"+id)
	if !seen {
		t.Errorf("a link to %s does not bring its heading into view", id)
	}
}

// checkSkipLink checks that the first key press leads past the contents.
func checkSkipLink(t *testing.T, w tab, address string) {
	t.Helper()
	w.runSteps(t, chromedp.Navigate("about:blank"), chromedp.Navigate(address+"/docs"), chromedp.KeyEvent("\t"))
	if !evaluate[bool](t, w, `document.activeElement.matches("a.skip") && document.activeElement.getBoundingClientRect().left >= 0`) {
		t.Error("the first key does not bring the link past the contents into view")
	}
	w.runSteps(t, chromedp.KeyEvent("\r"))
	if got := evaluate[string](t, w, "location.hash"); got != "#top" {
		t.Errorf("the link past the contents leads to %q", got)
	}
}

// checkInjection checks that the browser blocks a script and a style that were injected into the page, and
// reports it.
func checkInjection(t *testing.T, w tab, address string, heard *complaints) {
	t.Helper()
	w.runSteps(t, chromedp.Navigate(address+"/docs"))
	heard.takeAll()
	refused := evaluate[bool](t, w, `(() => {
		const script = document.createElement("script");
		script.textContent = "window.ran = true";
		const style = document.createElement("style");
		style.textContent = "body { display: none }";
		document.head.append(script, style);
		return window.ran === undefined && getComputedStyle(document.body).display !== "none";
	})()`)
	if !refused {
		t.Error("a script or a style that was put into the page counts")
	}
	if len(heard.takeAll()) == 0 {
		t.Error("the browser does not complain, so its complaints are not heard")
	}
}
