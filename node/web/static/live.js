// Keeps a page as it is now: whenever the node tells of a change, the page is
// fetched again and its middle replaced; of a page with a form that somebody fills in,
// only what stands beside the form. Time that is left counts down, and what is typed is
// kept on the device until it is sent. Without JavaScript, reloading does the first.
"use strict";
(() => {
  const main = document.querySelector("main");
  if (!main) return;
  const at = (id) => document.getElementById(id);

  // Time that is left. The node says how much, so that a wrong clock of this device does not matter.
  const shown = Date.now();
  function tell(s) {
    if (s < 60) return `${s} s`;
    const two = (n, unit, rest, small) => rest ? `${n} ${unit} ${rest} ${small}` : `${n} ${unit}`;
    if (s < 3600) return two(Math.floor(s / 60), "min", s % 60, "s");
    if (s < 172800) return two(Math.floor(s / 3600), "h", Math.floor((s % 3600) / 60), "min");
    return `${Math.floor(s / 86400)} d`;
  }
  const begun = new WeakMap(); // from when a time that is left counts
  function count() {
    for (const t of main.querySelectorAll("time[data-left]")) {
      if (!begun.has(t)) begun.set(t, document.readyState === "complete" ? Date.now() : shown);
      const text = tell(Math.max(0, Math.round(t.dataset.left - (Date.now() - begun.get(t)) / 1000)));
      if (t.textContent !== text) t.textContent = text;
    }
  }
  count();
  setInterval(() => { if (!document.hidden) count(); }, 1000);

  // What needs room is open where there is some.
  const roomy = (root) => { if (matchMedia("(min-width: 56rem)").matches) for (const d of root.querySelectorAll("details[data-wide]")) d.open = true; };
  roomy(main);

  // What is typed, and which files the node keeps for a form. A form that was sent is forgotten once the node says what it
  // came to.
  // It is of one user: another who signs in, or whoever signs out, leaves nothing here of anybody else.
  const own = `mutirao ${encodeURIComponent(main.dataset.user)} `;
  const kept = (form) => own + form.dataset.keep;
  const fields = (form) => [...form.elements].filter((e) => e.name && e.type !== "hidden" && e.type !== "file" && e.tagName !== "BUTTON");
  const store = (fn) => { try { return fn(); } catch { return null; } }; // a browser may forbid it
  store(() => { const k = sessionStorage.getItem("sent"); sessionStorage.removeItem("sent"); if (k && at("note")) localStorage.removeItem(k); });
  const forget = (but) => store(() => { for (const k of Object.keys(localStorage)) if (k.startsWith("mutirao ") && !(but && k.startsWith(but))) localStorage.removeItem(k); });
  if (main.dataset.user) forget(own);
  function keep(form) {
    const now = { "form-name": form.elements["form-name"].value }; // sent again from another page, it is the same form still
    for (const e of fields(form)) if ((e.type !== "radio" && e.type !== "checkbox") || e.checked) now[e.name] = e.value;
    for (const e of form.elements) {
      const file = e.type === "file" && form.querySelector(`input[type="hidden"][name="${CSS.escape(e.name.replace("file.", "data."))}"]`);
      if (e.type === "file" && e.files.length) now[e.name] = { chosen: e.files[0].name };
      else if (file) now[e.name] = { value: file.value, says: at(e.id + "-has").textContent };
      else if (e.type === "file" && e.dataset.chosen) now[e.name] = { chosen: e.dataset.chosen };
    }
    store(() => localStorage.setItem(kept(form), JSON.stringify(now)));
  }
  function again(e, name) { // a file that was chosen and did not come: the browser alone chooses files
    const says = document.createElement("p");
    Object.assign(says, { id: e.id + "-error", className: "error", textContent: e.dataset.again.replace("{}", name) });
    e.before(says);
    e.dataset.chosen = name;
    e.setAttribute("aria-describedby", says.id);
    e.addEventListener("change", () => says.remove(), { once: true });
  }
  function bring(e, { value, says }) { // a file that the node keeps
    const file = document.createElement("input"), has = at(e.id + "-has") || document.createElement("p");
    Object.assign(file, { type: "hidden", name: e.name.replace("file.", "data."), value });
    Object.assign(has, { id: e.id + "-has", textContent: says });
    e.before(file, has);
    if (e.dataset.without) { // it may be taken away again
      const label = document.createElement("label"), box = document.createElement("input");
      Object.assign(box, { type: "checkbox", name: e.name.replace("file.", "without."), value });
      label.className = "choice";
      label.append(box, ` ${e.dataset.without}`);
      e.before(label);
    }
    e.setAttribute("aria-describedby", has.id);
  }
  for (const form of main.querySelectorAll("form[data-keep]")) {
    const was = store(() => JSON.parse(localStorage.getItem(kept(form))));
    if (was && !("came" in form.dataset)) {
      if (was["form-name"]) form.elements["form-name"].value = was["form-name"];
      for (const e of fields(form)) {
        if (e.type === "radio" || e.type === "checkbox") e.checked = (was[e.name] ?? "") === e.value;
        else if (e.name in was) e.value = was[e.name];
      }
      for (const e of [...form.elements]) if (e.type === "file" && was[e.name]) was[e.name].chosen ? again(e, was[e.name].chosen) : bring(e, was[e.name]);
    } else if ("came" in form.dataset || form.querySelector('input[type="hidden"][name^="data."]')) keep(form);
    form.addEventListener("input", () => {
      form.dataset.typed = "";
      keep(form);
    });
  }
  main.addEventListener("input", (e) => { if (e.target.form && e.target.form.method === "post") e.target.form.dataset.touched = ""; });
  document.addEventListener("submit", (e) => {
    const form = e.target, pressed = e.submitter;
    if (form.method !== "post") return;
    if (form.getAttribute("action") === "/sign-out") forget();
    if (form.dataset.sent) return e.preventDefault(); // pressed twice
    form.dataset.sent = "yes";
    if (pressed) pressed.setAttribute("aria-busy", "true");
    if (form.dataset.keep) {
      keep(form); // also where nothing was typed: its name, if the answer does not come
      store(() => sessionStorage.setItem("sent", kept(form)));
    }
    if ([...form.elements].some((f) => f.type === "file" && f.files.length)) {
      e.preventDefault();
      send(form, pressed);
    }
  });
  // A form's files are sent first, in pieces, with how far that is: a link that breaks costs what was on its way.
  // Then the form names them.
  const sleep = (ms) => new Promise((on) => { const t = setTimeout(on, ms); addEventListener("online", () => { clearTimeout(t); on(); }, { once: true }); });
  function put(url, part, token, told) { // null: the node did not answer
    return new Promise((on) => {
      const to = new XMLHttpRequest();
      to.open("POST", url);
      to.setRequestHeader("Content-Type", "application/octet-stream");
      to.setRequestHeader("Form-Token", token);
      to.timeout = 120000;
      to.upload.onprogress = (e) => told(e.loaded);
      to.onerror = to.onabort = to.ontimeout = () => on(null);
      to.onload = () => { let said = {}; try { said = JSON.parse(to.responseText); } catch {} on({ status: to.status, said }); };
      to.send(part);
    });
  }
  async function give(file, token, told, waits) {
    const id = [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
    const piece = 1 << 20;
    for (let at = 0, wait = 1000; ;) {
      const url = `/uploads/${id}?name=${encodeURIComponent(file.name)}&size=${file.size}&at=${at}`;
      const got = await put(url, file.slice(at, at + piece), token, (n) => told(at + n));
      if (!got || (got.status === 400 && /broke off/.test(got.said.message))) {
        try { await file.slice(0, 1).arrayBuffer(); } catch { return {}; } // the file itself is gone
        waits.hidden = false;
        await sleep(wait);
        wait = Math.min(2 * wait, 15000);
        continue;
      }
      waits.hidden = true;
      wait = 1000;
      if (got.said.file) return { value: got.said.file.value };
      if (got.status === 401) return {};
      if (got.status === 404) at = 0;
      else if (typeof got.said.at === "number") at = got.said.at;
      else return { lost: got.said.message || String(got.status) };
      told(at);
    }
  }
  async function send(form, pressed) {
    const bar = document.createElement("progress"), waits = document.createElement("p");
    const add = (name, value) => {
      for (const e of [...form.elements]) if (e.type === "hidden" && e.name === name) e.remove();
      const e = document.createElement("input");
      Object.assign(e, { type: "hidden", name, value });
      form.append(e);
    };
    bar.max = 1;
    bar.value = 0;
    bar.className = "sending";
    bar.setAttribute("aria-label", main.dataset.sending);
    Object.assign(waits, { className: "stale", textContent: main.dataset.waits, hidden: true });
    waits.setAttribute("role", "status");
    (pressed || form.lastElementChild).after(bar, waits);
    const fields = [...form.elements].filter((f) => f.type === "file" && f.files.length);
    const all = fields.reduce((n, f) => n + f.files[0].size, 0) || 1;
    let before = 0, whole = true;
    for (const f of fields) {
      const got = await give(f.files[0], form.elements["form-token"].value, (n) => { bar.value = (before + n) / all; }, waits);
      before += f.files[0].size;
      if (!got.value && !got.lost) whole = false; // the form brings it along itself, and the node says what is wrong
      else {
        add((got.value ? "data." : "lost.") + f.name.slice("file.".length), got.value || got.lost);
        f.removeAttribute("name");
      }
    }
    if (pressed && pressed.name) add(pressed.name, pressed.value);
    if (whole) form.enctype = "application/x-www-form-urlencoded";
    form.submit();
  }
  addEventListener("pageshow", () => { for (const f of document.forms) delete f.dataset.sent; });
  if (at("problem")) at("problem").focus();

  if (!("live" in main.dataset) || !window.EventSource || !window.fetch) return;
  const lost = at("lost"), changed = at("changed");
  const only = main.dataset.instance;
  const pause = 1000; // between two fetches, at least: an instance of others is asked for over the network
  const rest = 30000; // what is shown as so-and-so long ago grows older by itself
  let source = null, timer = 0, last = 0, took = 0;

  const concerns = (e) => !(e.kind === "instance" && only && e.instance && !e.instance.startsWith(only));

  function soon() {
    if (!timer) timer = setTimeout(renew, Math.max(200, last + Math.max(pause, 5 * took) - Date.now()));
  }

  async function renew() {
    timer = 0;
    last = Date.now();
    if (!getSelection().isCollapsed || at("problem")) return; // somebody copies something, or reads what went wrong
    let reply, text;
    try {
      reply = await fetch(location.href, { cache: "no-store", credentials: "same-origin" });
      text = await reply.text();
    } catch {
      lost.hidden = false;
      return;
    }
    took = Date.now() - last;
    const form = main.querySelector("form[data-keep]");
    if (reply.status === 401 && !form) return location.reload(); // the session has ended: show the door
    lost.hidden = reply.ok || (form && reply.status !== 401);
    const page = new DOMParser().parseFromString(text, "text/html"), fresh = page.querySelector("main");
    const unread = page.getElementById("unread");
    if (reply.ok && unread && at("unread") && at("unread").innerHTML !== unread.innerHTML) at("unread").replaceChildren(...unread.childNodes);
    if (form) { // nobody's typing is replaced
      const still = fresh && [...fresh.querySelectorAll("form[data-keep]")].some((f) => f.dataset.keep === form.dataset.keep);
      changed.hidden = still || reply.status === 401;
      if (!still) return;
      for (const part of main.querySelectorAll("[data-fresh][id]")) {
        const now = fresh.querySelector("#" + CSS.escape(part.id));
        if (now && now.innerHTML !== part.innerHTML) part.replaceChildren(...now.childNodes);
      }
      return count();
    }
    if (!reply.ok || !fresh) return;
    if (main.querySelector("form[data-touched]")) return; // nor what is chosen in a small one
    const open = new Map([...main.querySelectorAll("details[id]")].map((d) => [d.id, d.open]));
    const focus = document.activeElement && main.contains(document.activeElement) ? path(document.activeElement) : null;
    if (focus && /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) return; // somebody types
    const scrolled = [...main.querySelectorAll(".scroll")].map((s) => s.scrollLeft);
    roomy(fresh);
    for (const d of fresh.querySelectorAll("details[id]")) if (open.has(d.id)) d.open = open.get(d.id);
    if (fresh.innerHTML === main.innerHTML) return;
    main.replaceChildren(...fresh.childNodes);
    count();
    main.querySelectorAll(".scroll").forEach((s, i) => { s.scrollLeft = scrolled[i] || 0; });
    const again = focus && find(focus);
    if (again) again.focus({ preventScroll: true });
  }

  // Where an element stands below main, as the number of each child on the way.
  function path(e) {
    const steps = [];
    for (; e !== main; e = e.parentElement) steps.unshift([...e.parentElement.children].indexOf(e));
    return steps;
  }
  const find = (steps) => steps.reduce((e, i) => e && e.children[i], main);

  function listen() {
    if (source || document.hidden) return;
    source = new EventSource(`/events?happened=${main.dataset.happened}`); // what happened since the page was made is told at once
    let was = true; // whether it was heard without a break
    source.onopen = () => { lost.hidden = true; if (!was) soon(); was = true; };
    source.onerror = () => {
      was = false;
      lost.hidden = false;
      if (source.readyState !== EventSource.CLOSED) return; // it tries again by itself
      hush();
      setTimeout(() => { listen(); soon(); }, 5000);
    };
    source.onmessage = (m) => { if (concerns(JSON.parse(m.data))) soon(); };
  }

  function hush() {
    if (source) source.close();
    source = null;
  }

  // A browser keeps few connections to one address: a page that nobody sees
  // gives its own back.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return hush();
    listen();
    soon();
  });
  addEventListener("pagehide", hush);
  addEventListener("pageshow", listen);
  setInterval(() => { if (!document.hidden) soon(); }, rest);
  listen();
})();
