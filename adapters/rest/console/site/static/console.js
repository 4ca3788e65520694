// Comfort only: every page works without this script.
(() => {
  // Copy buttons: <button data-copy="id of the text" hidden>.
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const label = button.textContent;
      try {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
        button.textContent = "Press Ctrl+C";
      }
      setTimeout(() => { button.textContent = label; }, 2000);
    });
  }
  // Filters that act when they are changed: <form data-live>.
  for (const form of document.querySelectorAll("form[data-live]")) {
    for (const field of form.querySelectorAll("select")) {
      field.addEventListener("change", () => form.requestSubmit());
    }
  }
  // Questions before an act: <form data-ask="...">.
  for (const form of document.querySelectorAll("form[data-ask]")) {
    form.addEventListener("submit", (event) => {
      if (!confirm(form.dataset.ask)) event.preventDefault();
    });
  }
  // The problems of a form take the focus, also in browsers that do not do it by themselves.
  document.querySelector(".problems")?.focus();
})();
