// Returns the defects of the page as it is shown now, one sentence for each.
(() => {
  const wrong = new Set();
  const outline = (e) => `<${e.tagName.toLowerCase()}> "${e.textContent.trim().slice(0, 40)}"`;

  // Landmarks, title and language.
  for (const [what, selector] of [["main", "main"], ["labelled nav", "nav[aria-label]"], ["h1", "h1"]]) {
    const found = document.querySelectorAll(selector).length;
    if (found !== 1) wrong.add(`the page has ${found} ${what} elements, want 1`);
  }
  if (!document.documentElement.lang) wrong.add("the page has no language");
  if (!document.title) wrong.add("the page has no title");

  // A heading is at most one level below the previous one.
  let level = 0;
  for (const h of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    const next = Number(h.tagName[1]);
    if (next > level + 1) wrong.add(`${outline(h)} follows a heading of level ${level}`);
    level = next;
  }

  // Nothing is wider than the window.
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) wrong.add(`the page is ${document.documentElement.scrollWidth} pixels wide, the window ${width}`);

  // Contrast of text (WCAG 2.2, 1.4.3): 4.5, for large text 3.
  const numbers = (color) => color.match(/[\d.]+/g).map(Number);
  const luminance = (color) => {
    const [r, g, b] = numbers(color).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const transparent = (color) => (numbers(color)[3] ?? 1) === 0;
  const backgroundOf = (e) => {
    for (; e; e = e.parentElement) {
      const color = getComputedStyle(e).backgroundColor;
      if (!transparent(color)) return color;
    }
    return matchMedia("(prefers-color-scheme: dark)").matches ? "rgb(18, 18, 18)" : "rgb(255, 255, 255)";
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let read = 0;
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !e.checkVisibility()) continue;
    const style = getComputedStyle(e);
    const size = parseFloat(style.fontSize);
    const [light, dark] = [luminance(style.color), luminance(backgroundOf(e))].sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05);
    const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
    if (ratio < least) wrong.add(`contrast ${ratio.toFixed(2)} of ${style.color} on ${backgroundOf(e)}: ${outline(e)}`);
    read++;
  }
  if (read < 500) wrong.add(`the page shows only ${read} texts, want at least 500`);
  return [...wrong];
})()
