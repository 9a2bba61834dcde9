// Frame around all pages: navigation, current user, connection state.

import { ApiError, greeting, server } from "./api.js";
import { focusTitle, h, setChildren } from "./dom.js";
import { fault } from "./feed.js";
import { icon } from "./icons.js";
import { live, start } from "./live.js";
import { face } from "./people.js";
import { arrive, go, restore, turn } from "./route.js";
import { become, begin as enter, changes, isSession, isVisitor, key, next, restart, whoami } from "./session.js";
import { say } from "./say.js";

const page = (name, title, options = {}) => ({ name, title, load: () => import(`./pages/${name}.js`), ...options });
const anonymous = true;
const FEED = [page("home", "Home"), page("notifications", "Notifications"), page("stories", "Stories")];
const TOOLS = [page("draw", "Draw", { anonymous }), page("buckets", "Buckets", { anonymous }), page("dashboard", "Dashboard", { anonymous })];
const WHO = page("who", "Welcome", { anonymous });
const LOCK = page("lock", "Log in", { anonymous });
const OTHERS = [page("tools", "Tools", { anonymous }), WHO, LOCK, page("mentions", "Mentions"), page("for-you", "For You")];
/** Pages of logged-in users, in addition to posts, profiles and hashtags. */
const FEED_OF_USERS = ["home", "for-you", "notifications", "mentions"];
/** Pages that are tabs of another page, by their names. */
const TAB_OF = { mentions: "notifications", "for-you": "home" };
const PAGES = [...FEED, ...TOOLS, ...OTHERS];
const POST = page("post", "Post", { anonymous });
const PROFILE = page("profile", "Profile", { anonymous });
const TAGS = page("tags", "Hashtag", { anonymous });
const MISSING = page("missing", "Page not found", { anonymous });

const main = document.getElementById("main");
const aside = document.getElementById("aside");
const badge = h("b.badge");
const tab = (name, title, href = `#/${name}`) => h("a", { href }, icon(name), h("span", null, title), name === "notifications" ? badge : null);
const links = new Map([...FEED, ...TOOLS, OTHERS[0]].map(({ name, title }) => [name, tab(name, title)]));
const own = tab("profile", "Profile", "#/who");
let leave = new AbortController();
/** Whether the user of this window is known. */
let isOpen = false;
/** Timer of the next attempt to find the user of this window. */
let trial = null;
const TRIAL_MS = 2000;
/** Number of mentions that arrived while the top of their page was out of view. */
let unread = 0;

function plain(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Returns the page of the address, and its parameter. */
function route() {
  const [first, second = ""] = location.hash.replace(/^#\/?/, "").split("/").map(plain);
  if (isVisitor()) return [LOCK, { about: first === "lock" ? second : location.hash.slice(2) }];
  if (first.startsWith("@")) return [PROFILE, { handle: first.slice(1).toLowerCase(), list: second }];
  if (first === "post") return [POST, { id: second }];
  if (first === "tags") return [TAGS, { tag: second }];
  const found = first === "" ? PAGES[0] : PAGES.find(({ name }) => name === first) ?? MISSING;
  // Logged-in users see only the feed; the other pages are for developers.
  if (isSession() && !FEED_OF_USERS.includes(found.name)) return [found === LOCK || found === WHO ? PAGES[0] : MISSING, {}];
  return [!found.anonymous && !whoami() ? WHO : found, { about: second }];
}

/** Shows the page of the address, at the position `at` if given. Focuses its title if the user came from another page. */
async function show(at, arrived = false) {
  leave.abort();
  leave = new AbortController();
  const { signal } = leave;
  const [shown, asked] = route();
  document.title = `${shown.title} · roost`;
  document.body.dataset.page = shown.name;
  aside.hidden = true;
  setChildren(aside);
  if (isNoticed(shown.name)) unread = 0;
  mark(shown.name, asked.handle);
  try {
    const { render } = await shown.load().catch(() => {
      throw new ApiError(0, "unreachable", "The server cannot be reached.");
    });
    if (signal.aborted) return;
    setChildren(main);
    scrollTo(0, 0);
    if (arrived) begin(signal);
    await render({ main, aside, signal, at, ...asked });
    // Lists of posts restore their position themselves.
    if (at && !at.anchor && !signal.aborted) restore(at);
  } catch (problem) {
    if (signal.aborted || problem.name === "AbortError") return;
    setChildren(main, fault(problem, () => show(at)));
    if (arrived && !main.contains(document.activeElement)) main.focus();
    if (problem.status === 0) server.addEventListener("reached", () => show(at), { once: true, signal });
    if (!(problem instanceof ApiError)) throw problem;
  }
}

/** Focuses the title of a page as soon as it exists, and again if it is replaced. Never takes the focus from the user. */
function begin(signal) {
  let title = null;
  const watch = new MutationObserver(() => {
    if (title?.isConnected) return;
    const { activeElement } = document;
    const isLost = title ? activeElement === document.body : !main.contains(activeElement) || activeElement === main;
    if (isLost) title = focusTitle() ?? title;
    else watch.disconnect();
  });
  watch.observe(main, { childList: true, subtree: true });
  signal.addEventListener("abort", () => watch.disconnect());
}

/** Whether the page shows mentions. */
const isNoticed = (name) => name === "notifications" || name === "mentions";
/** Whether new mentions are in view. */
const isInView = (name) => isNoticed(name) && scrollY === 0;

function here(link, is) {
  if (is) link.setAttribute("aria-current", "page");
  else link.removeAttribute("aria-current");
}

/** Marks the current page in the navigation, and shows the number of unread mentions. */
function mark(name, handle) {
  const tool = TOOLS.some((page) => page.name === name);
  for (const [page, link] of links) here(link, page === name || (page === "tools" && tool) || page === TAB_OF[name]);
  badge.hidden = unread === 0;
  setChildren(badge, unread > 99 ? "99+" : String(unread), h("span.unseen", null, " new"));
  const me = whoami();
  const link = document.getElementById("me");
  link.hidden = !me;
  // Without a user, the feed has only the welcome page.
  for (const { name } of FEED) links.get(name).parentElement.hidden = !me || (isSession() && !FEED_OF_USERS.includes(name));
  const isProduct = !isSession() && !isVisitor();
  links.get("tools").parentElement.hidden = !isProduct;
  document.querySelector(".toolnav").hidden = !isProduct;
  document.querySelector(".feednav").hidden = isVisitor();
  own.href = me ? `#/@${me.handle}` : "#/who";
  setChildren(own.querySelector("span"), me ? "Profile" : "Join");
  here(own, me ? handle === me.handle : name === "who");
  if (!me) return;
  link.href = own.href;
  here(link, handle === me.handle);
  setChildren(link, face(me), h("span", null, h("span.unseen", null, "Your profile: "), h("b", null, me.name || me.handle), h("i", null, `@${me.handle}`)));
}

/** Shows when the server becomes unreachable and reachable again. */
function connection() {
  const bar = document.getElementById("state");
  const lost = () => {
    if (bar.dataset.state === "lost") return;
    bar.dataset.state = "lost";
    setChildren(bar, h("span", null, "The server cannot be reached. Trying again…"));
  };
  const reached = () => {
    if (bar.dataset.state !== "lost") return;
    delete bar.dataset.state;
    setChildren(bar);
    say("The server can be reached again.");
  };
  server.addEventListener("lost", lost);
  server.addEventListener("reached", reached);
}

// The session has ended, or another user has logged in.
server.addEventListener("ended", restart);
server.addEventListener("locked", () => {
  key.forget();
  if (!location.hash.startsWith("#/lock")) location.replace(`#/lock/${encodeURIComponent(location.hash.slice(2))}`);
});
changes.addEventListener("change", () => { unread = 0; });
live.addEventListener("mention", () => {
  const [shown, { handle }] = route();
  if (isInView(shown.name)) return;
  unread += 1;
  mark(shown.name, handle);
});
addEventListener("scroll", () => {
  if (!unread) return;
  const [shown, { handle }] = route();
  if (!isInView(shown.name)) return;
  unread = 0;
  mark(shown.name, handle);
});
// The current user does not exist: another server ran at this address before.
live.addEventListener("unknown", () => {
  become(null);
  go("#/who");
});
addEventListener("hashchange", () => (isOpen ? show(turn(), true) : null));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
// A click on the link of the current page scrolls to the top.
document.querySelector(".rail").addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (link?.getAttribute("href") !== location.hash || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go(location.hash);
});
const item = (link, kind = null) => h("li", { class: kind }, link);
setChildren(document.getElementById("nav"), ...FEED.map(({ name }) => item(links.get(name))), item(own), item(links.get("tools"), "phone"));
setChildren(document.getElementById("tools"), ...TOOLS.map(({ name }) => item(links.get(name))), item(tab("api", "API", "/docs/")));
connection();

/** Loads the session of this window, then shows the page of the address. */
async function open() {
  clearTimeout(trial);
  try {
    // With a key, no login is needed.
    if (!key.read()) enter(await greeting());
  } catch (problem) {
    setChildren(main, fault(problem, open));
    trial = setTimeout(open, TRIAL_MS);
    return;
  }
  const address = isSession() && next.take();
  if (address && !location.hash) history.replaceState(null, "", address);
  if (isVisitor() && !location.hash.startsWith("#/lock")) {
    history.replaceState(history.state, "", `#/lock/${encodeURIComponent(location.hash.slice(2))}`);
  }
  isOpen = true;
  start();
  show(arrive());
}
open();
