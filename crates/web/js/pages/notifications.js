// Page of the user's notifications.

import { ask, get, paged, user } from "../api.js";
import { confirmFirst } from "../confirm.js";
import { arrange, drop, focusTitle, h, setChildren, single } from "../dom.js";
import { fault, newer, skeleton } from "../feed.js";
import { icon } from "../icons.js";
import { live } from "../live.js";
import { face, named, profile } from "../people.js";
import { article, thread } from "../post.js";
import { say, withBusy } from "../say.js";
import { whoami } from "../session.js";
import { when } from "../time.js";

const PAGE = 40;
const TABS = { notifications: "All", mentions: "Mentions" };

/** Creates the header of the pages of notifications and mentions. */
export function head(current, ...more) {
  const tab = ([name, title]) => h("a", { href: `#/${name}`, "aria-current": name === current ? "page" : null }, title);
  return [h("header.head", null, h("h1", null, "Notifications"), ...more),
    h("nav.tabs", { "aria-label": "Notifications" }, ...Object.entries(TABS).map(tab))];
}

export async function render({ main, signal }) {
  const path = `${user(whoami().id)}/notifications`;
  const list = h("ul.notices");
  const more = h("button.pill", { type: "button", hidden: true, onclick: () => withBusy(more, older) }, "Show more");
  const clear = h("button.action", { type: "button", hidden: true, onclick: () => confirmFirst(clear, "Clear all notifications?", "Clear", cleared) }, "Clear all");
  const below = h("div", null, skeleton(4));
  const nodes = new Map();
  let next = null;
  /** Whether new notifications may exist that are not shown. */
  let stale = false;
  setChildren(main, ...head("notifications", clear), list, below);

  function item(one) {
    if (!nodes.has(one.id)) nodes.set(one.id, notice(one, () => gone(one.id)));
    return nodes.get(one.id);
  }
  function discard(id) {
    drop(nodes.get(id));
    nodes.delete(id);
  }
  function gone(id) {
    if (nodes.has(id)) discard(id);
    if (nodes.size === 0) end();
  }
  function end() {
    more.hidden = !next;
    clear.hidden = nodes.size === 0;
    setChildren(below, nodes.size || next ? more : empty());
  }
  /** Loads the first page. Notifications already shown keep their nodes: the user may be writing a reply there. */
  const load = single(async () => {
    stale = false;
    const page = await get(`${path}?limit=${PAGE}`, signal);
    const found = new Set(page.items.map(({ id }) => id));
    const last = page.items.at(-1)?.id;
    const shown = [...nodes.keys()];
    // Older notifications stay if this page connects to them.
    const reaches = page.next && last && shown.some((id) => newer(id, last) >= 0);
    shown.filter((id) => !found.has(id) && !(reaches && newer(id, last) < 0)).forEach(discard);
    arrange(list, page.items.map(item));
    if (!reaches) next = page.next;
    end();
  });
  async function older() {
    const asked = next;
    const page = await get(paged(`${path}?limit=${PAGE}`, next), signal);
    // The list was loaded again meanwhile.
    if (asked !== next) return;
    list.append(...page.items.filter(({ id }) => !nodes.has(id)).map(item));
    next = page.next;
    end();
  }
  async function first() {
    await load().catch((problem) => {
      if (!signal.aborted) setChildren(below, fault(problem, first));
    });
  }
  async function cleared() {
    await ask("DELETE", path);
    say("Notifications cleared.");
    await load();
    focusTitle();
  }
  /** Loads new notifications if the user is at the top of the page, or else when they return there. */
  function news() {
    stale = true;
    if (scrollY === 0) load().catch(() => { stale = true; });
  }
  live.addEventListener("mention", news, { signal });
  live.addEventListener("fresh", news, { signal });
  addEventListener("scroll", () => (stale ? news() : null), { signal });
  await first();
}

/** Creates the item of a notification: mentions and new posts as posts, others as one line. */
function notice({ id, kind, user: actor, post, created_at }, gone) {
  if (kind === "mention" || kind === "post") return h("li", { "data-id": id }, article(post, { gone }));
  const words = { follow: " follows you", follow_request: " asks to follow you" };
  const did = { boost: " boosted your post", poll: " has a poll that has ended", edit: " edited a post that you boosted" }[kind] ?? " favourited your post";
  const said = words[kind] ?? h("a", { href: thread(post.id) }, did);
  return h("li.notice", { "data-id": id, "data-kind": kind },
    icon({ poll: "check", edit: "draw" }[kind] ?? (kind in words ? "profile" : kind)),
    h("a", { href: profile(actor.handle), tabindex: -1, "aria-hidden": "true" }, face(actor, "s")),
    h("div", null, h("p", null, named(actor), said, " ", when(created_at)),
      post ? h("p.excerpt", { dir: "auto" }, post.warning || post.text) : null,
      kind === "follow_request" ? answers(actor) : null));
}

/** Creates the buttons that accept and reject a follow request. */
export function answers(actor) {
  const path = `${user(whoami().id)}/follow_requests/${actor.id}`;
  const answer = (method, verb, done, style) => {
    const button = h(`button.pill.${style}`, { type: "button", "aria-label": `${verb} @${actor.handle}` }, verb);
    button.addEventListener("click", () => withBusy(button, async () => {
      await ask(method, path);
      say(done);
      setChildren(row, h("span", null, done));
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
