// A list of posts, newest first, that is read on in both directions. It holds a window of what
// there is: what is far away is dropped and asked for again. **Invariant:** posts stand in the order
// of their ids, each once.

import { get, server } from "./api.js";
import { h, put } from "./dom.js";
import { icon } from "./icons.js";
import { article } from "./post.js";
import { say } from "./say.js";

const PAGE = 30;
/** Most posts in the window. */
const WINDOW = 240;

/** Whether a post is newer than another. Ids are numbers, longer than those of JavaScript. */
export const newer = (one, other) => one.length - other.length || (one < other ? -1 : Number(one > other));

export class Feed {
  /** `path` is where pages come from; `empty` makes what is shown if there are no posts. */
  constructor({ path, label, empty, signal }) {
    this.path = path;
    this.empty = empty;
    this.signal = signal;
    this.nodes = new Map();
    this.older = null;
    /** Whether newer posts were dropped from the window, or never were in it. */
    this.cut = false;
    this.busy = false;
    this.top = h("div.edge");
    this.list = h("div.posts");
    this.foot = h("div.edge");
    this.node = h("section.feed", { "aria-label": label }, this.top, this.list, this.foot);
    const watch = new IntersectionObserver((entries) => entries.forEach((entry) => this.#near(entry)), { rootMargin: "900px 0px" });
    watch.observe(this.foot);
    watch.observe(this.top);
    this.watch = watch;
    signal.addEventListener("abort", () => watch.disconnect());
  }

  /** Ids in the window, newest first. */
  ids() {
    return Array.from(this.list.children, (node) => node.dataset.id);
  }

  has(id) {
    return this.nodes.has(id);
  }

  /** Starts anew with the newest posts. */
  async load() {
    put(this.foot, skeleton());
    try {
      const page = await get(`${this.path}?limit=${PAGE}`, this.signal);
      this.nodes.clear();
      put(this.list);
      this.cut = false;
      this.older = page.next;
      this.add(page.items);
      this.#end();
      this.#look(this.foot);
    } catch (problem) {
      this.#failed(problem, () => this.load());
    }
  }

  /** Puts posts where they belong; those that are there already stay. */
  add(posts) {
    for (const post of posts) {
      if (this.nodes.has(post.id)) continue;
      const node = article(post, { gone: (id) => this.remove(id), replied: (reply) => this.own(reply) });
      const after = this.#behind(post.id);
      this.nodes.set(post.id, node);
      this.list.insertBefore(node, after);
    }
  }

  /** A post that was just written here. */
  own(post) {
    if (!this.cut) this.add([post]);
    this.#end();
    this.nodes.get(post.id)?.classList.add("new");
  }

  remove(id) {
    const node = this.nodes.get(id);
    if (!node) return;
    const next = node.nextElementSibling ?? node.previousElementSibling;
    this.nodes.delete(id);
    node.remove();
    next?.querySelector("a.named")?.focus();
    this.#end();
  }

  /** The first post that is older than `id`: nearly always the first or none at all. */
  #behind(id) {
    const last = this.list.lastElementChild;
    if (!last || newer(id, last.dataset.id) < 0) return null;
    let node = this.list.firstElementChild;
    while (node && newer(node.dataset.id, id) > 0) node = node.nextElementSibling;
    return node;
  }

  #near(entry) {
    if (!entry.isIntersecting || this.busy) return;
    const load = entry.target === this.foot ? this.#loadOlder() : this.#loadNewer();
    this.busy = true;
    load.then((loaded) => {
      this.busy = false;
      if (loaded) this.#look(entry.target);
    });
  }

  /** Looks whether an edge is in sight even if it crosses no line now. */
  #look(edge) {
    this.watch.unobserve(edge);
    if (!this.signal.aborted) this.watch.observe(edge);
  }

  /** Tells whether it did. */
  async #loadOlder() {
    if (!this.older) return false;
    put(this.foot, skeleton(1));
    try {
      const page = await get(this.older, this.signal);
      this.older = page.next;
      this.add(page.items);
      while (this.list.children.length > WINDOW) {
        this.nodes.delete(this.list.firstElementChild.dataset.id);
        this.list.firstElementChild.remove();
        this.cut = true;
      }
      this.#end();
      return true;
    } catch (problem) {
      this.#failed(problem, () => this.#look(this.foot));
      return false;
    }
  }

  async #loadNewer() {
    const first = this.list.firstElementChild?.dataset.id;
    if (!this.cut || !first) return false;
    const page = await get(`${this.path}?limit=${PAGE}&after=${first}`, this.signal).catch(() => null);
    if (!page) return false;
    this.cut = page.prev !== null;
    this.add(page.items);
    while (this.list.children.length > WINDOW) {
      this.nodes.delete(this.list.lastElementChild.dataset.id);
      this.list.lastElementChild.remove();
      this.older = `${this.path}?limit=${PAGE}&before=${this.list.lastElementChild.dataset.id}`;
    }
    return true;
  }

  #end() {
    if (this.nodes.size === 0) put(this.foot, this.empty());
    else if (this.older) put(this.foot, skeleton(1));
    else put(this.foot, h("p.end", null, "That is all there is."));
  }

  #failed(problem, again) {
    if (this.signal.aborted) return;
    say(problem.message);
    put(this.foot, fault(problem, again));
    // Whatever else reaches the server first tells that it is back.
    if (problem.status === 0) server.addEventListener("reached", again, { once: true, signal: this.signal });
  }
}

/** What stands where something is about to be. */
export function skeleton(count = 4) {
  const one = () => h("div.bone", null, h("i"), h("div", null, h("b"), h("b"), h("b")));
  return h("div.bones", { role: "status", "aria-label": "Loading" }, ...Array.from({ length: count }, one));
}

/** What stands where something could not be shown. */
export function fault(problem, again) {
  const lost = problem.status === 0;
  return h("div.blank", null, icon("cloud"),
    h("h2", null, lost ? "The server cannot be reached" : "That did not work"),
    h("p", null, lost ? "Nothing is lost. It is tried again as soon as the server answers." : problem.message),
    h("button.pill", { type: "button", onclick: again }, "Try again"));
}
