// For You: posts in the order of a ranking, each with a reason. The list changes only when the user asks for a new
// ranking. Back returns to the same ranking, which this module keeps for a while.

import { ask, get, paged, server, user, visible } from "../api.js";
import { drop, focusTitle, h, setChildren } from "../dom.js";
import { fault, skeleton } from "../feed.js";
import { icon } from "../icons.js";
import { live } from "../live.js";
import { article } from "../post.js";
import { reasoned } from "../reasons.js";
import { restore } from "../route.js";
import { say, toast, withBusy } from "../say.js";
import { seenReporter } from "../seen.js";
import { whoami } from "../session.js";
import { head, welcome } from "./home.js";

const PAGE = 20;
/** Time for which a ranking is kept for Back, in milliseconds; the server keeps one for as long. */
const KEPT_MS = 600_000;
/** Number of followed users from which the page belongs to its reader. */
const FOLLOWS_ENOUGH = 3;

/** Last ranking: its user, its time, the loaded items, and the cursor of the next page. */
let kept = null;

/** Makes Back show a new ranking: the last one may have posts that the user must not or does not want to see. */
export function forgetRanking() {
  kept = null;
}

live.addEventListener("edit", ({ detail }) => {
  for (const item of kept?.items ?? []) if (item.post.id === detail.id) item.post = detail;
});
live.addEventListener("delete", ({ detail }) => {
  if (kept) kept.items = kept.items.filter(({ post }) => post.id !== detail.id);
});

export async function render({ main, signal, at }) {
  const me = whoami();
  const path = `${user(me.id)}/feeds/for-you?limit=${PAGE}`;
  const seen = seenReporter(me, signal);
  const [start, list, foot] = [h("div"), h("div.posts"), h("div.edge")];
  const renew = h("button.pill", { type: "button", onclick: () => withBusy(renew, begin) }, "New ranking");
  let ranking = null;
  let busy = false;
  const watch = new IntersectionObserver((entries) => (entries.at(-1).isIntersecting ? further() : null), { rootMargin: "900px 0px" });
  signal.addEventListener("abort", () => watch.disconnect());
  setChildren(main, ...head("for-you", renew), start, h("section.feed", { "aria-label": "For You" }, list, foot));

  function add(items) {
    list.append(...items.map(draw));
    end();
  }

  /** Creates the article of a post, or the line in its place after the user has said that they do not want it. */
  function draw(item) {
    const { post, reasons, unwanted } = item;
    const gone = () => {
      ranking.items = ranking.items.filter((other) => other !== item);
      drop(node);
      end();
    };
    const control = (label, method, { path, said }) => {
      const button = h("button.pill", { type: "button", onclick: () => withBusy(button, change) }, label);
      async function change() {
        await ask(method, `${user(me.id)}/${path}`);
        item.unwanted = method === "PUT" ? { path, said } : null;
        const other = draw(item);
        node.replaceWith(other);
        other.querySelector("button").focus();
        say(method === "PUT" ? said : "Taken back.");
      }
      return button;
    };
    const { id, handle } = post.author;
    const isSuggested = !reasons.some(({ kind }) => kind === "followed" || kind === "at_home");
    const node = unwanted
      ? h("p.unwanted", null, unwanted.said, " ", control("Undo", "DELETE", unwanted))
      : reasoned(article(post, { gone, replied: () => toast("Posted.") }), item, [
        control("Less like this", "PUT", { path: `less/${post.id}`, said: "You will see less like this post." }),
        isSuggested && control(`Not interested in @${handle}`, "PUT", { path: `not_interested/${id}`, said: `@${handle} is suggested no more.` }),
      ], () => explained(post));
    if (!unwanted) seen(node, item);
    return node;
  }

  /** Loads the score and the features of a post. */
  async function explained({ id }) {
    const { items: [found] } = await ask("POST", `${user(me.id)}/rank`, { json: { feed: "for-you", posts: [id] }, signal });
    if (!found) throw new Error("There are no numbers for this post.");
    return found;
  }

  /** Shows what follows the loaded posts. The observer reports the foot again if it is in view. */
  function end() {
    if (ranking.next) setChildren(foot, skeleton(1));
    else setChildren(foot, ranking.items.length ? h("p.end", null, "No more posts.") : empty());
    watch.unobserve(foot);
    if (!signal.aborted) watch.observe(foot);
  }

  /** Shows a new ranking from its start. */
  async function begin() {
    const page = await get(path, signal);
    const isFirst = ranking === null;
    kept = ranking = { user: me.id, at: Date.now(), items: page.items, next: page.next };
    setChildren(list);
    add(page.items);
    if (isFirst) return;
    scrollTo({ top: 0 });
    focusTitle();
    say("New ranking.");
  }

  /** Shows the next page. */
  async function further() {
    const asked = ranking;
    if (busy || !asked?.next) return;
    busy = true;
    try {
      const page = await get(paged(path, asked.next), signal);
      if (asked !== ranking) return;
      ranking.items.push(...page.items);
      ranking.next = page.next;
      add(page.items);
    } catch (problem) {
      if (signal.aborted || asked !== ranking) return;
      watch.unobserve(foot);
      if (problem.status === 410) setChildren(foot, expired());
      else failed(problem, end);
    } finally {
      busy = false;
    }
  }

  function expired() {
    const again = h("button.pill.main", { type: "button", onclick: () => withBusy(again, begin) }, "Show a new ranking");
    say("This ranking has expired.");
    return h("div.blank", null, icon("stories"), h("h2", null, "This ranking has expired"),
      h("p", null, "The server keeps a ranking for at most ten minutes. A new one starts with posts that you have not seen here."), again);
  }

  function failed(problem, again) {
    if (signal.aborted) return;
    say(problem.message);
    setChildren(foot, fault(problem, again));
    // Any other successful request shows that the server is reachable again.
    if (problem.status === 0) server.addEventListener("reached", again, { once: true, signal });
  }

  async function first() {
    setChildren(foot, skeleton());
    await begin().catch((problem) => failed(problem, first));
  }

  if (at && kept?.user === me.id && Date.now() - kept.at < KEPT_MS) {
    ranking = kept;
    add(ranking.items);
    restore(at);
    return;
  }
  await first();
  const follows = await get(visible(`${user(me.id)}/following?limit=${FOLLOWS_ENOUGH}`), signal).catch(() => null);
  if (!follows || follows.items.length >= FOLLOWS_ENOUGH || signal.aborted) return;
  await welcome(start, { title: "Follow three users to make this page yours", done: begin, signal }).catch(() => null);
}

function empty() {
  return h("div.blank", null, icon("people"), h("h2", null, "Nothing for you yet"),
    h("p", null, "Follow at least three users: their posts appear here, and the posts that they and similar users like."),
    h("a.pill.main", { href: "#/home" }, "Go to Following"));
}
