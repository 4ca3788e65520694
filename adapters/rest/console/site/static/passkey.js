// Forms with data-passkey call an authenticator, and send what it answers. The address in
// data-passkey answers with the options. Without JavaScript, or in a browser that knows no passkeys,
// these forms stay hidden.
"use strict";
(() => {
  const P = window.PublicKeyCredential;
  if (!P || !P.parseRequestOptionsFromJSON || !P.parseCreationOptionsFromJSON) return;
  let waiting = null; // what ends the offer in the list of an e-mail field

  const begin = async (form) => {
    const r = await fetch(form.dataset.passkey, { method: "POST", body: new URLSearchParams() });
    return r.ok ? r.json() : null;
  };

  const call = async (form, options, more) => {
    const credential = form.dataset.create === undefined
      ? await navigator.credentials.get({ publicKey: P.parseRequestOptionsFromJSON(options.publicKey), ...more })
      : await navigator.credentials.create({ publicKey: P.parseCreationOptionsFromJSON(options.publicKey) });
    form.querySelector("[data-ceremony]").value = options.id;
    form.querySelector("[data-credential]").value = JSON.stringify(credential);
    form.submit();
  };

  const say = (form, text) => {
    const status = form.querySelector("[role=status]");
    status.textContent = text;
    status.hidden = !text;
  };

  // An offer ends with its ceremony, after less than 5 minutes, and begins again.
  const offer = async (form) => {
    const options = await begin(form);
    if (!options) return;
    const abort = waiting = new AbortController();
    const timer = setTimeout(() => { abort.abort(); offer(form); }, 280000);
    try {
      await call(form, options, { mediation: "conditional", signal: abort.signal });
    } catch {
      clearTimeout(timer);
    }
  };

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    form.hidden = false;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (waiting) waiting.abort();
      say(form, "");
      try {
        const options = await begin(form);
        if (options) await call(form, options);
        else form.submit(); // the page says why
      } catch {
        say(form, "The browser gave no passkey. You can try again.");
      }
    });
    if (form.dataset.offer !== undefined && P.isConditionalMediationAvailable) {
      P.isConditionalMediationAvailable().then((can) => { if (can) offer(form); });
    }
  }
})();
