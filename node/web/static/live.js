// Keeps a page as it is now: whenever the node tells of a change, the page is
// fetched again and its middle replaced. Without JavaScript, reloading does that.
"use strict";
(() => {
  const main = document.querySelector("main[data-live]");
  if (!main || !window.EventSource || !window.fetch) return;
  const lost = document.getElementById("lost");
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
    if (!getSelection().isCollapsed) return soon(); // somebody copies something
    let reply, text;
    try {
      reply = await fetch(location.href, { cache: "no-store", credentials: "same-origin" });
      text = await reply.text();
    } catch {
      lost.hidden = false;
      return;
    }
    took = Date.now() - last;
    if (reply.status === 401) return location.reload(); // the session has ended: show the door
    const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("main");
    lost.hidden = reply.ok;
    if (!reply.ok || !fresh) return;
    const open = [...main.querySelectorAll("details[open][id]")].map((d) => d.id);
    const focus = document.activeElement && main.contains(document.activeElement) ? path(document.activeElement) : null;
    const scrolled = [...main.querySelectorAll(".scroll")].map((s) => s.scrollLeft);
    for (const d of fresh.querySelectorAll("details[id]")) d.open = open.includes(d.id);
    if (fresh.innerHTML === main.innerHTML) return;
    main.replaceChildren(...fresh.childNodes);
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
