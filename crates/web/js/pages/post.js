// Page of a post with its thread: ancestors above it, replies below it, live.

import { get, paged, visible } from "../api.js";
import { arrange, drop, focusTitle, h, setChildren, single } from "../dom.js";
import { skeleton } from "../feed.js";
import { icon } from "../icons.js";
import { live } from "../live.js";
import { article, rewrite, thread } from "../post.js";
import { reload } from "../route.js";
import { withBusy } from "../say.js";

const PAGE = 100;
/** Number of posts from which arriving replies are no longer added. */
const POSTS_MAX = 500;
/** Deepest level that is indented. */
const LEVELS_MAX = 4;

export async function render({ main, signal, id, at }) {
  if (!/^\d+$/.test(id)) return setChildren(main, unknown());
  setChildren(main, head(), skeleton(3));
  let post;
  let context;
  try {
    [post, context] = await load(id, signal);
  } catch (problem) {
    if (![400, 404, 422].includes(problem.status)) throw problem;
    return setChildren(main, unknown());
  }
  if (post.boost_of) return location.replace(thread(post.boost_of.id));
  document.title = `Post by ${post.author.name || post.author.handle} · roost`;
  const shown = new Thread(post, context, signal);
  setChildren(main, head(), shown.node);
  if (!at && context.ancestors.length) shown.focus();
  return undefined;
}

/** Path of the first page of a thread. */
const replies = (id) => visible(`/v1/posts/${id}/context?limit=${PAGE}`);

/** Loads a post and the first page of its thread. */
function load(id, signal) {
  return Promise.all([visible(`/v1/posts/${id}`), replies(id)].map((path) => get(path, signal)));
}

const head = () => h("header.head", null, h("h1", null, "Post"));

/** Posts in thread order: a reply is below its parent, after all earlier replies to it. */
class Thread {
  constructor(post, { ancestors, items, next }, signal) {
    this.id = post.id;
    /** Posts with their nodes and levels, by id. */
    this.posts = new Map();
    this.list = h("div.posts");
    this.more = h("button.pill", { type: "button", onclick: () => withBusy(this.more, () => this.#load(signal)) }, "Show more replies");
    this.again = h("button.pill", { type: "button", hidden: true, onclick: reload }, "Show new replies");
    this.node = h("section.feed.thread", { "aria-label": "Thread" }, this.list, this.more, this.again);
    this.#show([...ancestors, post, ...items], next);
    this.posts.get(post.id).node.classList.add("chosen");
    for (const event of ["post", "mention"]) live.addEventListener(event, ({ detail }) => this.#arrived(detail), { signal });
    live.addEventListener("fresh", single(() => this.#compare(signal)), { signal });
  }

  /** Scrolls to the post of the page. */
  focus() {
    const { node } = this.posts.get(this.id);
    node.scrollIntoView({ block: "start", behavior: "instant" });
  }

  /** Shows exactly these posts. Posts already shown keep their nodes. */
  #show(posts, next) {
    const before = this.posts;
    this.posts = new Map();
    const nodes = posts.map((post) => this.#node(post, before.get(post.id)?.node));
    for (const [id, { node }] of before) if (!this.posts.has(id)) drop(node);
    arrange(this.list, nodes);
    this.#continue(next);
  }

  #node(post, shown) {
    const node = shown ?? article(post, { gone: () => this.#remove(post.id), replied: (reply) => this.#insert(reply)?.classList.add("new") });
    const level = this.#level(post);
    rewrite(node, post);
    node.style.setProperty("--level", Math.min(level, LEVELS_MAX));
    this.posts.set(post.id, { post, node, level });
    return node;
  }

  #continue(next) {
    this.next = next;
    this.more.hidden = !next;
  }

  /** Returns the level of a post whose ancestors are known: 0 for the post of the page and its ancestors. */
  #level(post) {
    if (post.id === this.id || !this.posts.has(this.id)) return 0;
    const above = this.posts.get(post.in_reply_to_id);
    return post.in_reply_to_id === this.id || !above ? 1 : above.level + 1;
  }

  /** Adds a reply by another user. In a very long thread, shows a button to reload instead. */
  #arrived(reply) {
    if (this.posts.size < POSTS_MAX) this.#insert(reply);
    else if (this.posts.has(reply.in_reply_to_id) && !this.posts.has(reply.id)) this.again.hidden = false;
  }

  /** Adds a reply that was just written, unless pages before its place are not loaded yet. */
  #insert(reply) {
    const above = this.posts.get(reply.in_reply_to_id);
    const isToPost = reply.in_reply_to_id === this.id;
    if (!above || this.posts.has(reply.id) || !(isToPost || above.level > 0) || (isToPost && this.next)) return null;
    let after = above.node;
    const levels = new Map([...this.posts.values()].map(({ node, level }) => [node, level]));
    while (after.nextElementSibling && levels.get(after.nextElementSibling) > above.level) after = after.nextElementSibling;
    const node = this.#node(reply);
    after.after(node);
    return node;
  }

  #remove(id) {
    const shown = this.posts.get(id);
    if (!shown) return;
    if (id === this.id) return this.#end();
    this.posts.delete(id);
    drop(shown.node);
  }

  /** Replaces the page after the post was deleted. */
  #end() {
    const page = this.node.parentElement;
    const focused = page?.contains(document.activeElement);
    setChildren(page ?? this.node, unknown());
    if (focused) focusTitle();
  }

  /** Loads the displayed part of the thread again after a time without live updates. */
  async #compare(signal) {
    const before = new Set(this.posts.keys());
    const found = [];
    let next;
    try {
      const [post, first] = await load(this.id, signal);
      found.push(...first.ancestors, post, ...first.items);
      next = first.next;
      while (next && found.length < before.size) {
        const page = await get(paged(replies(this.id), next), signal);
        found.push(...page.items);
        next = page.next;
      }
    } catch (problem) {
      if (problem.status === 404) this.#end();
      return;
    }
    if (signal.aborted) return;
    // Replies that arrived during the load.
    const arrived = [...this.posts.values()].filter(({ post }) => !before.has(post.id));
    this.#show(found.filter(({ id }) => !before.has(id) || this.posts.has(id)), next);
    arrived.forEach(({ post }) => this.#insert(post));
  }

  async #load(signal) {
    const { items, next } = await get(paged(replies(this.id), this.next), signal);
    this.list.append(...items.filter(({ id }) => !this.posts.has(id)).map((post) => this.#node(post)));
    this.#continue(next);
  }
}

function unknown() {
  return h("div.blank", null, icon("thread"), h("h1", null, "This post does not exist"),
    h("p", null, "It was deleted, or you may not see it."), h("a.pill.main", { href: "#/home" }, "Go to Home"));
}
