package consolebrowser

import (
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/styletest"
	"github.com/tollgate-dev/tollgate/test/acceptance/internal/chromium"
)

// styleScript checks the parts of the page of the style: a badge is on the line of the text next to
// it, the inputs of a row line up, a long text pushes nothing out, and what has the focus has a ring.
const styleScript = `(() => {
	const wrong = [];
	const probe = (parent, before) => {
		const mark = document.createElement("span");
		mark.style.cssText = "display: inline-block; width: 0; height: 0";
		parent.insertBefore(mark, before);
		const line = mark.getBoundingClientRect().bottom;
		mark.remove();
		return line;
	};
	for (const badge of document.querySelectorAll("p .badge, td .badge, dd .badge, h3 .badge")) {
		const inside = probe(badge, badge.firstChild);
		const below = [badge, badge.nextSibling].map((next) => inside - probe(badge.parentElement, next)); // one may be on another line
		if (!below.some((pixels) => Math.abs(pixels) < 0.6)) wrong.push(badge.textContent + " is below its line: " + below);
	}
	const rows = new Map();
	for (const field of document.querySelectorAll(".pair > div.field")) {
		const top = Math.round(field.getBoundingClientRect().top);
		const input = field.querySelector("input, select, textarea").getBoundingClientRect().top;
		rows.set(top, (rows.get(top) ?? []).concat(input));
	}
	for (const tops of rows.values()) {
		if (Math.max(...tops) - Math.min(...tops) > 0.6) wrong.push("the inputs of a row are at " + tops);
	}
	for (const e of document.querySelectorAll("a[href], button, input, select, textarea, summary, pre[tabindex]")) {
		if (!e.checkVisibility() || e.type === "hidden") continue;
		e.focus({focusVisible: true});
		const style = getComputedStyle(e);
		if (style.outlineStyle !== "solid" || parseFloat(style.outlineWidth) < 2) wrong.push("no ring: " + e.outerHTML.slice(0, 80));
		if (e.closest("main")) {
			const box = e.getBoundingClientRect();
			if (box.right > innerWidth || box.left < 0) wrong.push("outside: " + e.outerHTML.slice(0, 80));
		}
	}
	document.activeElement.blur();
	for (const e of document.querySelectorAll("body *")) {
		const size = getComputedStyle(e).fontSize;
		if (e.checkVisibility() && e.innerText?.trim() && ![12, 13, 14, 16, 20, 28].includes(parseFloat(size))) wrong.push(size + ": " + e.outerHTML.slice(0, 80));
	}
	const shown = document.body.innerText;
	if (/[\u200b\u202a-\u202e\u2066-\u2069]/.test(shown)) wrong.push("a character that is not seen is not escaped");
	return wrong;
})()`

// TestStyle checks the page that has each part of the pages in each state.
func TestStyle(t *testing.T) {
	t.Parallel()
	s := &site{t: t, axe: readAxe(t), titles: map[string]string{}}
	visitor := newVisitor(t, styletest.Serve(t))
	s.check(visitor, "style", styletest.Path)
	for _, v := range chromium.Viewports(1400, 320) {
		visitor.tab.SetViewport(t, v)
		for _, defect := range chromium.Evaluate[[]string](t, visitor.tab, styleScript) {
			t.Errorf("style, %s: %s", v.Name, defect)
		}
	}
}
