// The frame around all pages: which one is shown, who one is, whether the server is there.

import { Problem, server } from "./api.js";
import { h, put } from "./dom.js";
import { fault } from "./feed.js";
import { icon } from "./icons.js";
import { live, start } from "./live.js";
import { face } from "./people.js";
import { become, changes, key, whoami } from "./session.js";
import { say } from "./say.js";

const PAGES = [
  { name: "home", title: "Home", load: () => import("./pages/home.js") },
  { name: "mentions", title: "Mentions", load: () => import("./pages/mentions.js") },
  { name: "stories", title: "Stories", load: () => import("./pages/stories.js") },
  { name: "draw", title: "Draw", anybody: true, load: () => import("./pages/draw.js") },
  { name: "buckets", title: "Buckets", anybody: true, load: () => import("./pages/buckets.js") },
  { name: "dashboard", title: "Dashboard", anybody: true, load: () => import("./pages/dashboard.js") },
];
const WHO = { name: "who", title: "Welcome", anybody: true, load: () => import("./pages/who.js") };
const LOCK = { name: "lock", title: "Key", anybody: true, load: () => import("./pages/lock.js") };
const PROFILE = { name: "profile", title: "Profile", anybody: true, load: () => import("./pages/profile.js") };

const main = document.getElementById("main");
const aside = document.getElementById("aside");
const badge = h("b.badge");
const links = new Map(PAGES.map(({ name, title }) => [name,
  h("a", { href: `#/${name}` }, icon(name), h("span", null, title), name === "mentions" ? badge : null)]));
let leave = new AbortController();
/** Mentions that came while another page was shown. */
let unread = 0;

function plain(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Which page an address means, and what it is about. */
function route() {
  const [first, second = ""] = location.hash.replace(/^#\/?/, "").split("/").map(plain);
  if (first.startsWith("@")) return [PROFILE, { handle: first.slice(1).toLowerCase(), list: second }];
  const page = [...PAGES, WHO, LOCK].find(({ name }) => name === first) ?? PAGES[0];
  return [!page.anybody && !whoami() ? WHO : page, { about: second }];
}

async function show() {
  leave.abort();
  leave = new AbortController();
  const { signal } = leave;
  const [page, asked] = route();
  document.title = `${page.title} · roost`;
  document.body.dataset.page = page.name;
  aside.hidden = true;
  put(aside);
  if (page.name === "mentions") unread = 0;
  mark(page.name, asked.handle);
  try {
    const { render } = await page.load().catch(() => {
      throw new Problem(0, "unreachable", "The server cannot be reached.");
    });
    if (signal.aborted) return;
    put(main);
    scrollTo(0, 0);
    await render({ main, aside, signal, ...asked });
  } catch (problem) {
    if (signal.aborted || problem.name === "AbortError") return;
    put(main, fault(problem, show));
    if (problem.status === 0) server.addEventListener("reached", show, { once: true, signal });
    if (!(problem instanceof Problem)) throw problem;
  }
}

function here(link, is) {
  if (is) link.setAttribute("aria-current", "page");
  else link.removeAttribute("aria-current");
}

/** Marks where one is, and what waits elsewhere. */
function mark(name, handle) {
  for (const [page, link] of links) here(link, page === name);
  badge.hidden = unread === 0;
  put(badge, unread > 99 ? "99+" : String(unread), h("span.unseen", null, " new"));
  const me = whoami();
  const link = document.getElementById("me");
  link.hidden = !me;
  if (!me) return;
  link.href = `#/@${me.handle}`;
  here(link, handle === me.handle);
  put(link, face(me), h("span", null, h("span.unseen", null, "Your profile: "), h("b", null, me.name || me.handle), h("i", null, `@${me.handle}`)));
}

/** Says when the server is gone, and when it is back. */
function connection() {
  const bar = document.getElementById("state");
  const lost = () => {
    if (bar.dataset.state === "lost") return;
    bar.dataset.state = "lost";
    put(bar, h("span", null, "The server cannot be reached. Trying again…"));
  };
  const reached = () => {
    if (bar.dataset.state !== "lost") return;
    delete bar.dataset.state;
    put(bar);
    say("The server is back.");
  };
  server.addEventListener("lost", lost);
  server.addEventListener("reached", reached);
}

server.addEventListener("locked", () => {
  key.forget();
  if (!location.hash.startsWith("#/lock")) location.replace(`#/lock/${encodeURIComponent(location.hash.slice(2))}`);
});
changes.addEventListener("change", () => { unread = 0; });
live.addEventListener("mention", () => {
  const [page, { handle }] = route();
  if (page.name === "mentions") return;
  unread += 1;
  mark(page.name, handle);
});
// Somebody whom this server does not know: another one ran here before.
live.addEventListener("nobody", () => {
  become(null);
  location.hash = "#/who";
});
addEventListener("hashchange", async () => {
  await show();
  const title = main.querySelector("h1") ?? main;
  title.setAttribute("tabindex", "-1");
  title.focus({ preventScroll: true });
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
put(document.getElementById("nav"), ...Array.from(links.values(), (link) => h("li", null, link)));
connection();
start();
show();
