// Buttons to boost, favourite, bookmark and pin a post. Loads their states for many posts at once.

import { ask, get, user } from "./api.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { say, withBusy } from "./say.js";
import { whoami } from "./session.js";

/** Maximum number of posts per request. */
const POSTS_MAX = 100;
const KINDS = {
  boosts: { icon: "boost", label: "Boost", state: "boosted", count: "boost_count", on: "Boosted.", off: "Boost removed." },
  favourites: { icon: "favourite", label: "Favourite", state: "favourited", count: "favourite_count", on: "Favourited.", off: "Favourite removed." },
  bookmarks: { icon: "bookmark", label: "Bookmark", state: "bookmarked", on: "Bookmarked.", off: "Bookmark removed." },
  pins: { icon: "pin", label: "Pin to profile", state: "pinned", on: "Pinned to your profile.", off: "Unpinned." },
};

/** Functions that show a state on a button. */
const shows = new WeakMap();
/** Buttons whose state is not loaded yet by the id of their post, and the promise of the next load. */
let waiting = new Map();
let loaded = null;

/** Creates the buttons of a post. */
export function reactionButtons(post) {
  const can = {
    boosts: ["public", "unlisted"].includes(post.visibility),
    pins: post.author.id === whoami().id && post.visibility !== "direct",
  };
  const kinds = Object.entries(KINDS).filter(([kind]) => can[kind] ?? true);
  const buttons = kinds.map(([kind, words]) => button(post, kind, words));
  if (waiting.size === 0) loaded = Promise.resolve().then(load);
  for (const one of buttons) one.loaded = loaded;
  waiting.set(post.id, [...(waiting.get(post.id) ?? []), ...buttons]);
  return buttons.map(({ node }) => node);
}

function button(post, kind, words) {
  const number = h("span.number", { "aria-hidden": "true" });
  const node = h("button.action", { type: "button", "data-kind": kind, "aria-pressed": "false", onclick: () => withBusy(node, toggle) }, icon(words.icon), number);
  let [on, count] = [false, 0];
  function show(state) {
    on = state[words.state];
    count = (words.count && state[words.count]) || 0;
    node.setAttribute("aria-pressed", String(on));
    node.setAttribute("aria-label", count ? `${words.label}, ${count}` : words.label);
    node.title = words.label;
    number.textContent = count ? String(count) : "";
  }
  shows.set(node, show);
  const it = { node, show };
  async function toggle() {
    // A state that arrives later would undo the click.
    await it.loaded;
    await ask(on ? "DELETE" : "PUT", `${user(whoami().id)}/${kind}/${post.id}`);
    const state = { [words.state]: !on, ...(words.count && { [words.count]: Math.max(0, count + (on ? -1 : 1)) }) };
    // The post may be displayed more than once, as a boost.
    const others = document.querySelectorAll(`.post[data-post="${post.id}"] button[data-kind=${kind}]`);
    new Set([node, ...others]).forEach((other) => shows.get(other)?.(state));
    say(on ? words.on : words.off);
  }
  show({ [words.state]: false });
  return it;
}

/** Loads the states of the buttons created since the last call. */
async function load() {
  const buttons = waiting;
  waiting = new Map();
  const ids = [...buttons.keys()];
  for (let at = 0; at < ids.length; at += POSTS_MAX) {
    const path = `${user(whoami().id)}/reactions?posts=${ids.slice(at, at + POSTS_MAX).join(",")}`;
    // The buttons work without the states.
    const { items } = await get(path).catch(() => ({ items: [] }));
    for (const state of items) buttons.get(state.id)?.forEach(({ show }) => show(state));
  }
}
