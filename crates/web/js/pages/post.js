// A post with its thread: the posts above it, and the replies below it, live.

import { get, visible } from "../api.js";
import { h, put } from "../dom.js";
import { fault, skeleton } from "../feed.js";
import { icon } from "../icons.js";
import { live } from "../live.js";
import { article, rewrite, thread } from "../post.js";
import { carry } from "../say.js";

const PAGE = 100;
/** Replies are indented up to this level. */
const LEVELS_MAX = 4;

export async function render({ main, signal, id, at }) {
  if (!/^\d+$/.test(id)) return put(main, unknown());
  const path = `/v1/posts/${id}`;
  put(main, head(), skeleton(3));
  let post;
  let context;
  try {
    [post, context] = await Promise.all([path, `${path}/context?limit=${PAGE}`].map((one) => get(visible(one), signal)));
  } catch (problem) {
    if (![400, 404, 422].includes(problem.status)) throw problem;
    return put(main, unknown());
  }
  if (post.boost_of) return location.replace(thread(post.boost_of.id));
  document.title = `Post by ${post.author.name || post.author.handle} · roost`;
  const shown = new Thread(post, context, signal);
  put(main, head(), shown.node);
  if (!at && context.ancestors.length) shown.focus();
  return undefined;
}

const head = () => h("header.head", null, h("h1", null, "Post"));

/** The posts in thread order: a reply is below its post, after all earlier replies to it. */
class Thread {
  constructor(post, { ancestors, descendants, next }, signal) {
    this.id = post.id;
    /** Nodes and levels of all posts, by id. */
    this.posts = new Map();
    this.list = h("div.posts");
    this.more = h("button.pill", { type: "button", onclick: () => carry(this.more, () => this.#load(signal)) }, "Show more replies");
    this.node = h("section.feed.thread", { "aria-label": "Thread" }, this.list, this.more);
    this.next = next;
    for (const above of ancestors) this.#append(above, 0);
    this.#append(post, 0);
    this.posts.get(post.id).node.classList.add("chosen");
    this.#extend(descendants, next);
    for (const event of ["post", "mention"]) live.addEventListener(event, ({ detail }) => this.#insert(detail), { signal });
    live.addEventListener("edit", ({ detail }) => this.#edited(detail, signal), { signal });
    live.addEventListener("delete", ({ detail }) => this.#remove(detail.id), { signal });
  }

  /** Scrolls to the post below those above it. */
  focus() {
    const { node } = this.posts.get(this.id);
    node.scrollIntoView({ block: "start", behavior: "instant" });
  }

  #node(post, level) {
    const node = article(post, { gone: (id) => this.#remove(id), replied: (reply) => this.#insert(reply)?.classList.add("new") });
    node.style.setProperty("--level", Math.min(level, LEVELS_MAX));
    this.posts.set(post.id, { node, level });
    return node;
  }

  #append(post, level) {
    if (!this.posts.has(post.id)) this.list.append(this.#node(post, level));
  }

  #extend(descendants, next) {
    for (const reply of descendants) this.#append(reply, this.#level(reply));
    this.next = next;
    this.more.hidden = !next;
  }

  #level(reply) {
    const above = this.posts.get(reply.in_reply_to_id);
    return reply.in_reply_to_id === this.id || !above ? 1 : above.level + 1;
  }

  /** Adds a reply that was just written; it is shown later if pages before it are not loaded. */
  #insert(reply) {
    const above = this.posts.get(reply.in_reply_to_id);
    const isToPost = reply.in_reply_to_id === this.id;
    if (!above || this.posts.has(reply.id) || !(isToPost || above.level > 0) || (isToPost && this.next)) return null;
    const level = this.#level(reply);
    let after = above.node;
    const levels = new Map([...this.posts.values()].map(({ node, level: of }) => [node, of]));
    while (after.nextElementSibling && levels.get(after.nextElementSibling) >= level) after = after.nextElementSibling;
    const node = this.#node(reply, level);
    after.after(node);
    return node;
  }

  async #edited(post, signal) {
    const shown = this.posts.get(post.id);
    if (!shown) return;
    try {
      rewrite(shown.node, post.text === undefined ? await get(visible(`/v1/posts/${post.id}`), signal) : post);
    } catch (problem) {
      if (problem.status === 404) this.#remove(post.id);
    }
  }

  #remove(id) {
    const shown = this.posts.get(id);
    if (!shown) return;
    if (id === this.id) return put(this.node.parentElement ?? this.node, unknown());
    this.posts.delete(id);
    shown.node.remove();
  }

  async #load(signal) {
    const { descendants, next } = await get(this.next, signal);
    this.#extend(descendants, next);
  }
}

function unknown() {
  return h("div.blank", null, icon("thread"), h("h1", null, "This post does not exist"),
    h("p", null, "It was deleted, or you may not see it."), h("a.pill.main", { href: "#/home" }, "Go to Home"));
}
