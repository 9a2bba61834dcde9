// Home: the live timeline of followed users. New posts appear only when the user clicks a button in the header, so that
// the page does not move during reading. The other tab is the page For You.

import { get, paged, user } from "../api.js";
import { audience } from "../audience.js";
import { composer } from "../compose.js";
import { h, setChildren, single } from "../dom.js";
import { Feed, newer } from "../feed.js";
import { icon } from "../icons.js";
import { live } from "../live.js";
import { hasRelation, relationButton, suggestedUsers, userItem } from "../people.js";
import { announceLater, withBusy } from "../say.js";
import { isSession, whoami } from "../session.js";
import { tray } from "../tray.js";
import { withPictures } from "../uploads.js";

/** Maximum number of pending posts. With more, the newest page is loaded instead. */
const WAITING_MAX = 60;
const TABS = { home: "Following", "for-you": "For You" };

/** Creates the header of the home page and of For You. */
export function head(current, ...more) {
  const tab = ([name, title]) => h("a", { href: `#/${name}`, "aria-current": name === current ? "page" : null }, title);
  return [h("header.head", null, h("h1", null, "Home"), ...more),
    h("nav.tabs", { "aria-label": "Timelines" }, ...Object.entries(TABS).map(tab))];
}

export async function render({ main, aside, signal, at }) {
  const me = whoami();
  const feed = new Feed({ path: `${user(me.id)}/timeline`, label: "Timeline", empty, signal, at, missing: (posts) => fresh.take(posts) });
  const fresh = waiting(feed, signal);
  // Loaded first: the posts are the main content.
  const loaded = feed.load();
  const start = h("div");
  setChildren(main,
    ...head("home", fresh.button),
    isSession() ? null : tray({ signal }),
    composer({ label: "Write a post", hint: "What is happening?", options: withPictures(audience()), sent: (post) => feed.own(post) }),
    start, feed.node);
  await loaded;
  if (signal.aborted || !feed.loaded) return;
  const title = "Follow users to fill your timeline";
  const load = () => feed.load();
  if (feed.ids().length === 0 && !feed.older) return welcome(start, { title, changed: load, all: load, signal }).catch(() => null);
  const card = await suggestions(signal).catch(() => null);
  if (!card || signal.aborted) return;
  aside.hidden = false;
  setChildren(aside, card);
}

/** Creates the button that shows pending new posts. */
function waiting(feed, signal) {
  const posts = new Map();
  const button = h("button.fresh", { type: "button", hidden: true, onclick: open });
  let more = false;

  /** Returns a test for the post with this id and its boosts. */
  const isOf = (id) => (post) => post.id === id || post.boost_of?.id === id;

  function show() {
    const count = more ? `${WAITING_MAX}+` : String(posts.size);
    const words = `${count} new ${posts.size === 1 ? "post" : "posts"}`;
    button.hidden = posts.size === 0;
    setChildren(button, icon("up"), h("span", null, words));
    if (posts.size) announceLater(() => (posts.size ? `${words}.` : ""));
  }

  function take(post) {
    if (feed.has(post.id)) return;
    if (post.author.id === whoami().id && !feed.cut) return feed.own(post);
    posts.set(post.id, post);
    if (posts.size > WAITING_MAX) {
      posts.delete(posts.keys().next().value);
      more = true;
    }
    show();
  }

  async function open() {
    const fresh = [...posts.values()].filter((post) => !feed.has(post.id));
    const anew = more || feed.cut;
    posts.clear();
    more = false;
    show();
    if (anew) await feed.load();
    else feed.add(fresh);
    scrollTo({ top: 0 });
    const ids = new Set(fresh.map((post) => post.id));
    for (const node of feed.list.children) if (ids.has(node.dataset.id)) node.classList.add("new");
    feed.list.querySelector("a.named")?.focus({ preventScroll: true });
  }

  /** Loads posts between the last load and the start of the stream, and pending ones again, because some may be deleted. */
  async function catchUp() {
    await feed.ready;
    const [top] = feed.ids();
    if (!top || feed.cut) return;
    const before = [...posts.keys()];
    const oldest = before.reduce((one, other) => (newer(one, other) < 0 ? one : other), top);
    let page = await get(paged(`${feed.path}?limit=1`, oldest), signal).catch(() => null);
    const known = new Set(page?.items.map(({ id }) => id));
    do {
      page = page && await get(paged(`${feed.path}?limit=${WAITING_MAX}`, page.prev), signal).catch(() => null);
      if (!page || signal.aborted) return;
    } while (page.prev && page.items.length === 0);
    page.items.forEach(({ id }) => known.add(id));
    const newest = page.items[0]?.id;
    const isRead = (id) => !page.prev || newer(id, newest) <= 0;
    before.filter((id) => isRead(id) && !known.has(id)).forEach((id) => posts.delete(id));
    page.items.reverse().filter(({ id }) => !feed.has(id)).forEach(take);
    more ||= page.prev !== null;
    show();
  }

  live.addEventListener("post", ({ detail }) => {
    // An empty timeline may now have older posts, too.
    if (feed.ids().length === 0) feed.load();
    else take(detail);
  }, { signal });
  live.addEventListener("delete", ({ detail }) => {
    const gone = [...posts.values()].filter(isOf(detail.id));
    gone.forEach(({ id }) => posts.delete(id));
    if (gone.length) show();
  }, { signal });
  live.addEventListener("edit", ({ detail }) => {
    for (const post of posts.values()) {
      if (post.id === detail.id) posts.set(post.id, detail);
      else if (post.boost_of?.id === detail.id) posts.set(post.id, { ...post, boost_of: detail });
    }
  }, { signal });
  live.addEventListener("fresh", single(catchUp), { signal });
  return { button, take: (some) => some.forEach(take) };
}

/** Loads users to follow, each with a button. Calls `changed` when one is followed or unfollowed. */
async function candidates(most, signal, changed) {
  const people = await suggestedUsers(30, signal);
  const found = [];
  for (const person of people) {
    if (found.length === most) break;
    if (!(await hasRelation("following", person.id, signal))) found.push(person);
  }
  return found.map((person) => {
    const button = relationButton("following", person, false, changed);
    return { node: userItem(person, button), button };
  });
}

async function suggestions(signal) {
  const found = await candidates(4, signal);
  if (found.length === 0) return null;
  return h("section.card", null, h("h2", null, "Who to follow"), h("ul.people", null, ...found.map(({ node }) => node)));
}

/**
 * Shows users to follow above a list, until the user closes the card. Calls `changed` when one is followed or
 * unfollowed, `all` after all were followed at once, and `done` when the card is closed.
 */
export async function welcome(start, { title, changed, all, done, signal }) {
  let quiet = false;
  const found = await candidates(8, signal, () => (quiet ? null : changed?.()));
  if (found.length === 0 || signal.aborted) return;
  const every = h("button.pill.main", { type: "button", onclick: () => withBusy(every, follow) }, "Follow all");
  const close = h("button.pill", { type: "button", onclick: () => withBusy(close, finish) }, "Done");
  setChildren(start, h("section.card.start", { "aria-labelledby": "start" },
    h("h2", { id: "start" }, title),
    h("ul.people", null, ...found.map(({ node }) => node)),
    h("div.below", null, every, close)));

  function finish() {
    setChildren(start);
    return done?.();
  }

  /** Follows the remaining users, then loads their posts once. */
  async function follow() {
    quiet = true;
    for (const { button } of found) await button.press();
    setChildren(start);
    await (all ?? done)?.();
  }
}

function empty() {
  return h("div.blank", null, icon("home"), h("h2", null, "Your timeline is empty"),
    h("p", null, "Posts of the users you follow appear here as they are written. Follow users, or write the first post."),
    h("button.pill.main", { type: "button", onclick: () => document.querySelector(".composer textarea")?.focus() }, "Write a post"));
}
