// Notifications: mentions, favourites of own posts, follows, and requests to follow.

import { ask, get, user } from "../api.js";
import { h, put } from "../dom.js";
import { fault, skeleton } from "../feed.js";
import { icon } from "../icons.js";
import { live } from "../live.js";
import { face, named, profile } from "../people.js";
import { article, thread } from "../post.js";
import { carry, say } from "../say.js";
import { whoami } from "../session.js";
import { sure } from "../sure.js";
import { when } from "../time.js";

const PAGE = 40;
const TABS = { notifications: "All", mentions: "Mentions" };

/** The header of this page and of that of mentions. */
export function head(current, ...more) {
  const tab = ([name, title]) => h("a", { href: `#/${name}`, "aria-current": name === current ? "page" : null }, title);
  return [h("header.head", null, h("h1", null, "Notifications"), ...more),
    h("nav.tabs", { "aria-label": "Notifications" }, ...Object.entries(TABS).map(tab))];
}

export async function render({ main, signal }) {
  const path = `${user(whoami().id)}/notifications`;
  const list = h("ul.notices");
  const more = h("button.pill", { type: "button", hidden: true, onclick: () => carry(more, older) }, "Show more");
  const clear = h("button.action", { type: "button", hidden: true, onclick: () => sure(clear, "Clear all notifications?", "Clear", cleared) }, "Clear all");
  const below = h("div", null, skeleton(4));
  let next = null;
  let turn = 0;
  put(main, ...head("notifications", clear), list, below);

  function show(page) {
    list.append(...page.items.map(notice));
    next = page.next;
    more.hidden = !next;
    clear.hidden = list.children.length === 0;
    put(below, list.children.length || next ? more : empty());
  }
  async function load() {
    const mine = turn += 1;
    const page = await get(`${path}?limit=${PAGE}`, signal);
    if (mine !== turn) return;
    put(list);
    show(page);
  }
  async function older() {
    const mine = turn;
    const page = await get(next, signal);
    // Otherwise the list was loaded again meanwhile.
    if (mine === turn) show(page);
  }
  async function first() {
    await load().catch((problem) => {
      if (!signal.aborted) put(below, fault(problem, first));
    });
  }
  async function cleared() {
    await ask("DELETE", path);
    say("Notifications cleared.");
    put(main, ...head("notifications", clear), list, below);
    await first();
  }
  const news = () => (scrollY === 0 ? load().catch(() => null) : null);
  live.addEventListener("mention", news, { signal });
  live.addEventListener("fresh", news, { signal });
  await first();
}

/** A mention is shown as its post, anything else as a line. */
function notice({ id, kind, user: actor, post, created_at }) {
  if (kind === "mention") return h("li", { "data-id": id }, article(post));
  const words = { follow: " follows you", follow_request: " asks to follow you" };
  const did = kind === "boost" ? " boosted your post" : " favourited your post";
  const said = words[kind] ?? h("a", { href: thread(post.id) }, did);
  return h("li.notice", { "data-id": id, "data-kind": kind },
    icon(kind in words ? "profile" : kind),
    h("a", { href: profile(actor.handle), tabindex: -1, "aria-hidden": "true" }, face(actor, "s")),
    h("div", null, h("p", null, named(actor), said, " ", when(created_at)),
      post ? h("p.excerpt", { dir: "auto" }, post.warning || post.text) : null,
      kind === "follow_request" ? answers(actor) : null));
}

/** The buttons that accept and reject a request to follow. */
export function answers(actor) {
  const path = `${user(whoami().id)}/follow_requests/${actor.id}`;
  const answer = (method, verb, done, style) => {
    const button = h(`button.pill.${style}`, { type: "button", "aria-label": `${verb} @${actor.handle}` }, verb);
    button.addEventListener("click", () => carry(button, async () => {
      await ask(method, path);
      say(done);
      put(row, h("span", null, done));
    }));
    return button;
  };
  const row = h("p.answers", null, answer("PUT", "Accept", `@${actor.handle} follows you now.`, "main"), answer("DELETE", "Reject", "Request rejected.", "quiet"));
  return row;
}

function empty() {
  const { handle } = whoami();
  return h("div.blank", null, icon("notifications"), h("h2", null, "No notifications"),
    h("p", null, "Mentions, favourites and boosts of your posts and new followers appear here."),
    h("div.row", null, h("a.pill.main", { href: "#/home" }, "Go to your timeline"), h("a.pill", { href: profile(handle) }, "View your profile")));
}
