// Search: shows the sections that have every word of the query, those with the words in headings first.
"use strict";
(() => {
  const root = document.documentElement.dataset.root;
  const form = document.querySelector("form[role=search]");
  const field = document.getElementById("search");
  const results = document.getElementById("results");
  const article = document.querySelector("article");
  let loading;
  const load = () => loading ??= new Promise((done) => {
    const script = document.createElement("script");
    script.src = root + "search-index.js";
    script.onload = () => done(window.searchIndex.map((entry) => ({
      ...entry, page_: entry.page.toLowerCase(), heading_: entry.heading.toLowerCase(), text_: entry.text.toLowerCase(),
    })));
    script.onerror = () => done([]);
    document.head.append(script);
  });
  const score = (entry, words) => {
    let sum = 0;
    for (const word of words) {
      const here = (entry.heading_.includes(word) ? 10 : 0) + (entry.page_.includes(word) ? 5 : 0) +
        Math.min(entry.text_.split(word).length - 1, 4);
      if (here === 0) return 0;
      sum += here;
    }
    return sum;
  };
  const excerpt = (entry, word) => {
    const at = Math.max(entry.text_.indexOf(word) - 60, 0);
    return (at > 0 ? "… " : "") + entry.text.slice(at, at + 160) + (entry.text.length > at + 160 ? " …" : "");
  };
  const showResults = (shown) => {
    results.hidden = !shown;
    article.hidden = shown;
    document.body.classList.toggle("searching", shown);
  };
  const show = async () => {
    const query = field.value.trim().toLowerCase();
    const words = query.split(/\s+/).filter((word) => word.length > 1);
    const index = words.length > 0 ? await load() : [];
    if (query !== field.value.trim().toLowerCase()) return;
    const list = index.map((entry) => ({ entry, score: score(entry, words) })).filter((hit) => hit.score > 0)
      .sort((a, b) => b.score - a.score).slice(0, 20);
    results.querySelector("ol").replaceChildren(...list.map(({ entry }) => {
      const item = document.createElement("li"), link = document.createElement("a"), text = document.createElement("p");
      link.href = root + entry.address;
      link.textContent = entry.heading === entry.page ? entry.page : entry.page + ": " + entry.heading;
      link.addEventListener("click", () => { showResults(false); field.value = ""; });
      text.textContent = excerpt(entry, words[0]);
      item.append(link, text);
      return item;
    }));
    results.querySelector("[role=status]").textContent =
      list.length === 0 ? "Nothing was found." : list.length === 1 ? "One section" : list.length + " sections";
    showResults(words.length > 0);
  };
  form.hidden = false;
  field.addEventListener("focus", load, { once: true });
  field.addEventListener("input", show);
  form.addEventListener("submit", (event) => { event.preventDefault(); show(); });
})();
