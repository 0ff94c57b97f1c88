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
    if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
    if (s < 172800) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
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

  // What is typed. A form that was sent is forgotten once the node says what it came to.
  const kept = (form) => `mutirao ${main.dataset.user} ${form.dataset.keep}`;
  const fields = (form) => [...form.elements].filter((e) => e.name && e.type !== "hidden" && e.tagName !== "BUTTON");
  const store = (fn) => { try { return fn(); } catch { return null; } }; // a browser may forbid it
  if (at("note")) store(() => { const k = sessionStorage.getItem("sent"); if (k) { localStorage.removeItem(k); sessionStorage.removeItem("sent"); } });
  for (const form of main.querySelectorAll("form[data-keep]")) {
    const was = store(() => JSON.parse(localStorage.getItem(kept(form))));
    if (was && !at("problem")) {
      for (const e of fields(form)) {
        if (e.type === "radio" || e.type === "checkbox") e.checked = was[e.name] === e.value;
        else if (e.name in was) e.value = was[e.name];
      }
    }
    form.addEventListener("input", () => {
      form.dataset.typed = "";
      const now = {};
      for (const e of fields(form)) if ((e.type !== "radio" && e.type !== "checkbox") || e.checked) now[e.name] = e.value;
      store(() => localStorage.setItem(kept(form), JSON.stringify(now)));
    });
  }
  document.addEventListener("submit", (e) => {
    const form = e.target, pressed = e.submitter;
    if (form.method !== "post") return;
    if (form.dataset.sent) return e.preventDefault(); // pressed twice
    form.dataset.sent = "yes";
    if (pressed) pressed.setAttribute("aria-busy", "true");
    if (form.dataset.keep) store(() => sessionStorage.setItem("sent", kept(form)));
  });
  addEventListener("pageshow", () => { for (const f of document.forms) delete f.dataset.sent; });
  if (at("problem")) at("problem").focus();

  if (!("live" in main.dataset) || !window.EventSource || !window.fetch) return;
  const lost = at("lost"), changed = at("changed");
  const only = main.dataset.instance;
  const pause = 2000; // between two fetches, at least: an instance of others is asked for over the network
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
    const open = new Map([...main.querySelectorAll("details[id]")].map((d) => [d.id, d.open]));
    const focus = document.activeElement && main.contains(document.activeElement) ? path(document.activeElement) : null;
    if (focus && /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) return; // somebody types
    const scrolled = [...main.querySelectorAll(".scroll")].map((s) => s.scrollLeft);
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
    source = new EventSource("/events");
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
