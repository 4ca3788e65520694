// Comfort only: pages work without this script.
(() => {
  const all = (css) => [...document.querySelectorAll(css)];
  // <button data-copy="id of the text" hidden>
  for (const button of all("button[data-copy]")) {
    button.hidden = false;
    const icon = button.firstElementChild;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
        button.textContent = "Press Ctrl+C";
      }
      setTimeout(() => button.replaceChildren(icon), 2000);
    });
  }
  // The menu of a part is one stop of Tab; arrows move in it.
  const side = all(".menu a");
  for (const link of side) link.tabIndex = link.ariaCurrent ? 0 : -1;
  // Keys: "/" for the search, j and k for rows, data-key, also after g. Escape or a click elsewhere closes the menu.
  const menu = document.querySelector(".me");
  let last;
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && menu?.open) {
      menu.open = false;
      menu.firstElementChild.focus();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input:not([type=checkbox]), textarea, select")) return;
    const inside = side.includes(event.target);
    const rows = inside ? side : all("[data-row]");
    const step = (inside ? { ArrowDown: 1, ArrowUp: -1 } : { j: 1, k: -1 })[event.key];
    const key = (event.key === "a" && event.target.closest("tr")?.querySelector("[data-approve]")) ||
      document.querySelector(`[data-key="${CSS.escape((last === "g" ? "g " : "") + event.key)}"]`);
    last = event.key;
    const comment = document.getElementById("comment");
    if (event.key === "/") document.getElementById("find").select();
    else if (key?.type && event.key === "r" && !comment.value.trim()) (comment.value = comment.dataset.reason ?? "") ? key.focus() : comment.focus();
    else if (key) key[key.dataset.key === "a" && !key.className ? "focus" : "click"]();
    else if (step && rows.length) rows.at(Math.max(0, Math.min(rows.length - 1, rows.indexOf(event.target) + step))).focus();
    else return;
    event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    if (menu && !menu.contains(event.target)) menu.open = false;
  });
  for (const button of all("button[data-print]")) {
    button.hidden = false;
    button.addEventListener("click", () => print());
  }
  // Times are those of the reader: in the title, or else the text.
  const localize = (root) => {
    for (const time of root.querySelectorAll("time")) {
      const local = new Date(time.dateTime).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
      if (time.title) time.title = local;
      else time.textContent = local;
    }
  };
  localize(document);
  // On a phone, menus scroll to the current page.
  for (const link of all("nav [aria-current]")) {
    const line = link.closest("ul");
    line.scrollLeft += link.getBoundingClientRect().left - line.getBoundingClientRect().left - 16;
  }
  // The summary of mistakes takes the focus, also with a fragment in the address.
  requestAnimationFrame(() => {
    if (document.activeElement === document.body) document.querySelector(".problems")?.focus();
  });
  // <form data-live> replaces the element "results" while one types.
  for (const form of all("form[data-live]")) {
    let timer, sent = 0;
    const search = async () => {
      const address = `${form.action}?${new URLSearchParams(new FormData(form))}`;
      const number = ++sent;
      try {
        const answer = await fetch(address, { headers: { Accept: "text/html" } });
        if (!answer.ok || number !== sent) return;
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        localize(page);
        document.getElementById("results").replaceWith(page.getElementById("results"));
        history.replaceState(null, "", address);
      } catch {} // without the network the button says so
    };
    form.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(search, 250);
    });
  }
  for (const form of all("form[data-ask]")) {
    form.addEventListener("submit", (event) => {
      if (!confirm(form.dataset.ask)) event.preventDefault();
    });
  }
  // Places in a document.
  for (const link of all("a[data-line]")) {
    link.addEventListener("click", (event) => {
      const field = document.getElementById(link.hash.slice(1));
      const lines = field.value.split("\n");
      const before = lines.slice(0, link.dataset.line - 1).reduce((sum, line) => sum + line.length + 1, 0);
      const at = before + [...lines[link.dataset.line - 1]].slice(0, link.dataset.column - 1).join("").length;
      event.preventDefault();
      field.focus();
      field.setSelectionRange(at, at);
      field.scrollTop = field.scrollHeight * (link.dataset.line - 1) / lines.length - field.clientHeight / 2;
    });
  }
})();
