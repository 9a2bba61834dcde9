// A list of posts, newest first, that loads more in both directions. It holds a window of all posts:
// distant posts are dropped and loaded again. **Invariant:** posts are in the order of their
// ids, each once, without a gap: a response for an earlier window is dropped.

import { get, server, visible } from "./api.js";
import { h, put } from "./dom.js";
import { icon } from "./icons.js";
import { live } from "./live.js";
import { article, rewrite } from "./post.js";
import { restore } from "./route.js";
import { say, toast } from "./say.js";

const PAGE = 30;
/** Maximum number of posts in the window. */
const WINDOW = 240;

/** Whether a post is newer than another. Ids are numbers that may exceed JavaScript's safe integers. */
export const newer = (one, other) => one.length - other.length || (one < other ? -1 : Number(one > other));

/** A cursor that has the post of this id on its page. */
const upTo = (id) => `&before=${BigInt(id) + 1n}`;

export class Feed {
  #shown;

  /**
   * `path` is the path of the list; `empty` builds the content for an empty list; `holds` returns whether a
   * post written here belongs to the list; `at` is the initial position; `own` means that the list is the current
   * user's.
   */
  constructor({ path, label, empty, signal, holds = () => true, at = null, own = true }) {
    this.path = path;
    this.mine = own;
    this.empty = empty;
    this.signal = signal;
    this.holds = holds;
    this.at = at;
    this.nodes = new Map();
    this.older = null;
    /** Whether the first page has been shown; `ready` waits for it. */
    this.loaded = false;
    this.ready = new Promise((done) => { this.#shown = done; });
    /** Whether newer posts were dropped from the window, or never were in it. */
    this.cut = false;
    this.busy = false;
    /** Posts that were edited since the window was last compared. */
    this.edited = new Set();
    /** Aborts requests for an earlier window. */
    this.turn = new AbortController();
    this.top = h("div.edge");
    this.list = h("div.posts");
    this.foot = h("div.edge");
    this.node = h("section.feed", { "aria-label": label }, this.top, this.list, this.foot);
    const watch = new IntersectionObserver((entries) => entries.forEach((entry) => this.#near(entry)), { rootMargin: "900px 0px" });
    watch.observe(this.foot);
    watch.observe(this.top);
    this.watch = watch;
    live.addEventListener("delete", ({ detail }) => this.remove(detail.id), { signal });
    live.addEventListener("edit", ({ detail }) => {
      this.edited.add(detail.id);
      if (detail.text === undefined) this.#check(detail.id);
      else this.#rewrite(detail);
    }, { signal });
    live.addEventListener("fresh", () => this.ready.then(() => this.#compare()), { signal });
    signal.addEventListener("abort", () => {
      watch.disconnect();
      this.turn.abort();
    });
  }

  /** Ids in the window, newest first. */
  ids() {
    return Array.from(this.list.children, (node) => node.dataset.id);
  }

  has(id) {
    return this.nodes.has(id);
  }

  /** Loads the list again from the newest posts; the first time, from the position where the page was left. */
  async load() {
    this.turn.abort();
    this.turn = new AbortController();
    const { signal } = this.turn;
    // Requests for the earlier window are aborted.
    this.older = null;
    this.cut = false;
    if (this.nodes.size === 0) put(this.foot, skeleton());
    const { at } = this;
    try {
      let page = await this.#get("", signal);
      const last = page.items.at(-1)?.id;
      const further = at?.anchor && page.next && newer(last, at.anchor.id) > 0;
      if (further) page = await this.#get(upTo(at.anchor.id), signal);
      if (signal.aborted) return;
      this.at = null;
      this.nodes.clear();
      put(this.list);
      this.cut = Boolean(further);
      this.older = page.next;
      this.add(page.items);
      this.loaded = true;
      this.#shown();
      this.#end();
      if (at) restore(at);
      this.#look(this.foot);
      this.#look(this.top);
    } catch (problem) {
      this.#failed(problem, signal, () => this.load());
    }
  }

  /** The path of a page. */
  #page(cursor) {
    const path = `${this.path}?limit=${PAGE}${cursor}`;
    return this.mine ? path : visible(path);
  }

  #get(cursor, signal) {
    return get(this.#page(cursor), signal);
  }

  /** Inserts posts at their positions; posts that are in the list already stay. */
  add(posts) {
    for (const post of posts) {
      if (this.nodes.has(post.id)) continue;
      const node = article(post, { gone: (id) => this.remove(id), replied: (reply) => this.own(reply) });
      const next = this.#after(post.id);
      this.nodes.set(post.id, node);
      this.list.insertBefore(node, next);
    }
  }

  /** Adds a post that was just written here. */
  own(post) {
    if (!this.holds(post)) return toast("Posted.");
    if (!this.cut) this.add([post]);
    this.#end();
    return this.nodes.get(post.id)?.classList.add("new");
  }

  remove(id) {
    const node = this.nodes.get(id);
    if (!node) return;
    const next = node.nextElementSibling ?? node.previousElementSibling;
    const focused = node.contains(document.activeElement);
    this.nodes.delete(id);
    node.remove();
    if (focused) next?.querySelector("a.named")?.focus();
    this.#end();
  }

  #rewrite(post) {
    const node = this.nodes.get(post.id);
    if (node) rewrite(node, post);
  }

  /** Loads the current state of a post. */
  async #check(id) {
    if (!this.nodes.has(id)) return;
    try {
      this.#rewrite(await get(visible(`/v1/posts/${id}`), this.signal));
    } catch (problem) {
      if (problem.status === 404) this.remove(id);
    }
  }

  /** Compares the newest posts of the window with the server's, after a time without live updates. */
  async #compare() {
    const [first] = this.ids();
    if (!first) return this.load();
    const { signal } = this.turn;
    this.edited.clear();
    const page = await this.#get(upTo(first), signal).catch(() => null);
    if (!page || signal.aborted) return undefined;
    const known = new Map(page.items.map((post) => [post.id, post]));
    const last = page.next && page.items.at(-1).id;
    for (const id of this.ids()) {
      if (newer(id, first) > 0 || (last && newer(last, id) > 0)) continue;
      if (!known.has(id)) this.remove(id);
      else if (!this.edited.has(id)) this.#rewrite(known.get(id));
    }
    return undefined;
  }

  /** The first post that is older than `id`: nearly always the first or none at all. */
  #after(id) {
    const last = this.list.lastElementChild;
    if (!last || newer(id, last.dataset.id) < 0) return null;
    let node = this.list.firstElementChild;
    while (node && newer(node.dataset.id, id) > 0) node = node.nextElementSibling;
    return node;
  }

  #near(entry) {
    if (!entry.isIntersecting || this.busy) return;
    this.busy = true;
    const load = entry.target === this.foot ? this.#loadOlder() : this.#loadNewer();
    load.then((loaded) => {
      this.busy = false;
      if (loaded) this.#look(entry.target);
    });
  }

  /** Checks whether an edge is in view even if there is no intersection event. */
  #look(edge) {
    this.watch.unobserve(edge);
    if (!this.signal.aborted) this.watch.observe(edge);
  }

  /** Returns whether it loaded posts. */
  async #loadOlder() {
    if (!this.older) return false;
    const { signal } = this.turn;
    put(this.foot, skeleton(1));
    try {
      const page = await get(this.older, signal);
      if (signal.aborted) return false;
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
      this.#failed(problem, signal, () => this.#look(this.foot));
      return false;
    }
  }

  /** Returns whether it loaded posts. */
  async #loadNewer() {
    const first = this.list.firstElementChild?.dataset.id;
    if (!this.cut || !first) return false;
    const { signal } = this.turn;
    const page = await this.#get(`&after=${first}`, signal).catch(() => null);
    if (!page || signal.aborted) return false;
    this.cut = page.prev !== null;
    this.add(page.items);
    while (this.list.children.length > WINDOW) {
      this.nodes.delete(this.list.lastElementChild.dataset.id);
      this.list.lastElementChild.remove();
      this.older = this.#page(`&before=${this.list.lastElementChild.dataset.id}`);
    }
    return true;
  }

  #end() {
    if (this.nodes.size === 0) put(this.foot, this.empty());
    else if (this.older) put(this.foot, skeleton(1));
    else put(this.foot, h("p.end", null, "No more posts."));
  }

  #failed(problem, signal, again) {
    if (signal.aborted) return;
    say(problem.message);
    put(this.foot, fault(problem, again));
    // Any other successful request shows that the server is reachable again.
    if (problem.status === 0) server.addEventListener("reached", again, { once: true, signal });
  }
}

/** The placeholder during loading. */
export function skeleton(count = 4) {
  const one = () => h("div.bone", null, h("i"), h("div", null, h("b"), h("b"), h("b")));
  return h("div.bones", { role: "status", "aria-label": "Loading" }, ...Array.from({ length: count }, one));
}

/** The message when loading failed. */
export function fault(problem, again) {
  const lost = problem.status === 0;
  return h("div.blank", null, icon("cloud"),
    h("h2", null, lost ? "The server cannot be reached" : "Something went wrong"),
    h("p", null, lost ? "This page loads when the server can be reached again. Your text is kept." : problem.message),
    h("button.pill", { type: "button", onclick: again }, "Try again"));
}
