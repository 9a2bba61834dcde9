// A list of posts, newest first, that loads more in both directions. It holds a window of all posts: distant posts are
// dropped and loaded again. **Invariant:** posts are in the order of their ids, each once, without gaps; responses for
// an earlier window are ignored.

import { get, paged, server, visible } from "./api.js";
import { drop, h, setChildren, single } from "./dom.js";
import { icon } from "./icons.js";
import { live } from "./live.js";
import { article, rewrite } from "./post.js";
import { restore } from "./route.js";
import { say, toast } from "./say.js";

const PAGE = 30;
/** Maximum number of posts on a page of the API. */
const PAGE_MAX = 100;
/** Maximum number of posts in the window. */
const WINDOW = 240;

/** Whether a post is newer than another. Ids are numbers that may exceed JavaScript's safe integers. */
export const newer = (one, other) => one.length - other.length || (one < other ? -1 : Number(one > other));

export class Feed {
  #shown;

  /**
   * `path` is the path of the list; `empty` creates the content for an empty list; `holds` returns whether a post
   * written here belongs to the list; `at` is the initial position; `own` is whether the list is the current user's.
   * `missing` gets posts that a comparison with the server finds, and keeps the list from growing automatically.
   * `refused` creates the content for an error, or returns null.
   */
  constructor({ path, label, empty, signal, holds = () => true, at = null, own = true, missing = null, refused = () => null }) {
    this.path = path;
    this.mine = own;
    this.empty = empty;
    this.signal = signal;
    this.holds = holds;
    this.at = at;
    this.missing = missing;
    this.refused = refused;
    this.nodes = new Map();
    /** Cursors of the pages after and before the window. The id of a post is the cursor of the page that begins with it. */
    this.older = null;
    this.above = null;
    /** Newest post that was not added, because the window does not begin with the newest post or is loading. */
    this.late = null;
    this.loading = false;
    /** Number of times the window was trimmed. */
    this.trims = 0;
    /** Whether the first page has been shown; the promise `ready` waits for it. */
    this.loaded = false;
    this.ready = new Promise((done) => { this.#shown = done; });
    this.busy = false;
    /** Edges that came into view during loading. */
    this.due = new Set();
    /** Posts deleted during a comparison, or null. */
    this.gone = null;
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
    live.addEventListener("delete", ({ detail }) => this.gone?.add(detail.id), { signal });
    const compare = single(async () => {
      await this.ready;
      this.gone = new Set();
      await this.#compare();
      this.gone = null;
    });
    live.addEventListener("fresh", compare, { signal });
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

  /** Whether the window does not begin with the newest posts. */
  get cut() {
    return this.above !== null;
  }

  /** Loads the list from the newest posts; the first time, at the position where the user left the page. */
  async load() {
    this.turn.abort();
    this.turn = new AbortController();
    const { signal } = this.turn;
    // Cursors of the earlier window do not apply any more.
    this.older = null;
    this.above = null;
    this.loading = true;
    if (this.nodes.size === 0) setChildren(this.foot, skeleton());
    const { at } = this;
    try {
      let page = await this.#get(null, signal);
      const last = page.items.at(-1)?.id;
      const further = at?.anchor && page.next && (!last || newer(last, at.anchor.id) > 0);
      if (further) page = await this.#get(at.anchor.id, signal);
      if (signal.aborted) return;
      this.at = null;
      this.loading = false;
      const found = new Set(page.items.map((post) => post.id));
      this.ids().filter((id) => !found.has(id)).forEach((id) => this.#discard(id));
      this.above = further ? page.prev : null;
      this.older = page.next;
      this.add(page.items);
      this.#catchUp();
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

  /** Path of the page at a cursor. */
  #page(cursor, limit = PAGE) {
    const path = paged(`${this.path}?limit=${limit}`, cursor);
    return this.mine ? path : visible(path);
  }

  #get(cursor, signal) {
    return get(this.#page(cursor), signal);
  }

  /** Inserts posts at their positions, and updates posts that are already in the list. */
  add(posts) {
    for (const post of posts) {
      const shown = this.nodes.get(post.id);
      if (shown) {
        rewrite(shown, post);
        continue;
      }
      const node = article(post, { gone: () => this.remove(post.id), replied: (reply) => this.own(reply) });
      const next = this.#after(post.id);
      this.nodes.set(post.id, node);
      this.list.insertBefore(node, next);
    }
    this.#trim();
  }

  /** Adds a post that was just written here or has just arrived. */
  own(post) {
    if (!this.holds(post)) return toast("Posted.");
    if (!this.cut && !this.loading) this.add([post]);
    else if (!this.late || newer(post.id, this.late) > 0) this.late = post.id;
    this.#end();
    return this.nodes.get(post.id)?.classList.add("new");
  }

  remove(id) {
    const node = this.nodes.get(id);
    if (!node) return;
    this.nodes.delete(id);
    drop(node);
    this.#end();
  }

  /** Drops a post from the window, without moving the focus. */
  #discard(id) {
    this.nodes.get(id).remove();
    this.nodes.delete(id);
  }

  /** Drops surplus posts at the end farther from the view. */
  #trim() {
    const ids = this.ids();
    const most = ids.length - WINDOW;
    if (most <= 0) return;
    this.trims += 1;
    const { top, height } = this.list.getBoundingClientRect();
    if (innerHeight / 2 > top + height / 2) {
      ids.slice(0, most).forEach((id) => this.#discard(id));
      this.above = ids[most];
    } else {
      ids.slice(WINDOW).forEach((id) => this.#discard(id));
      this.older = ids[WINDOW - 1];
    }
  }

  /** Compares the window with the server's list after a time without live updates. */
  async #compare() {
    const ids = this.ids();
    if (ids.length === 0) return this.load();
    const [first, last] = [ids[0], ids.at(-1)];
    const { trims, turn: { signal } } = this;
    if (!this.missing) this.#ask({ above: this.above ?? first });
    const found = new Map();
    const size = Math.max(PAGE, Math.min(ids.length, PAGE_MAX));
    let cursor = first;
    while (cursor && [...found.keys()].every((id) => newer(id, last) > 0)) {
      const page = await get(this.#page(cursor, size), signal).catch(() => null);
      if (!page || signal.aborted) return undefined;
      page.items.forEach((post) => found.set(post.id, post));
      cursor = page.next;
    }
    ids.filter((id) => !found.has(id)).forEach((id) => this.remove(id));
    const posts = [...found.values()].filter((post) => !this.gone.has(post.id) && !this.gone.has(post.boost_of?.id));
    this.add(posts.filter((post) => this.nodes.has(post.id)));
    // Posts outside of the window are loaded with other pages.
    const unknown = posts.filter((post) => !this.nodes.has(post.id) && newer(post.id, last) > 0);
    if (trims === this.trims && unknown.length) (this.missing ?? ((some) => this.add(some)))(unknown);
    if (!this.older && (cursor || posts.some((post) => newer(post.id, last) < 0))) this.#ask({ older: last });
    return undefined;
  }

  /** Sets cursors of pages, and loads them when their edge is in view. */
  #ask(cursors) {
    Object.assign(this, cursors);
    this.#end();
    this.#look(this.foot);
    this.#look(this.top);
  }

  /** First post older than `id`: nearly always the first in the list, or none. */
  #after(id) {
    const last = this.list.lastElementChild;
    if (!last || newer(id, last.dataset.id) < 0) return null;
    let node = this.list.firstElementChild;
    while (node && newer(node.dataset.id, id) > 0) node = node.nextElementSibling;
    return node;
  }

  #near({ isIntersecting, target }) {
    if (!isIntersecting) return;
    this.due.add(target);
    if (this.busy) return;
    this.busy = true;
    this.due.delete(target);
    const load = target === this.foot ? this.#loadOlder() : this.#loadNewer();
    load.then((loaded) => {
      this.busy = false;
      if (loaded) this.due.add(target);
      const edges = [...this.due];
      this.due.clear();
      edges.forEach((edge) => this.#look(edge));
    });
  }

  /** Makes the observer report the edge again if it is in view. */
  #look(edge) {
    this.watch.unobserve(edge);
    if (!this.signal.aborted) this.watch.observe(edge);
  }

  /** Loads the page after the window. Returns whether it loaded one, possibly empty. */
  async #loadOlder() {
    if (!this.older) return false;
    const { signal } = this.turn;
    setChildren(this.foot, skeleton(1));
    try {
      const page = await this.#get(this.older, signal);
      if (signal.aborted) return false;
      this.older = page.next;
      this.add(page.items);
      this.#end();
      return true;
    } catch (problem) {
      this.#failed(problem, signal, () => this.#look(this.foot));
      return false;
    }
  }

  /** Loads the page before the window. Returns whether it loaded one, possibly empty. */
  async #loadNewer() {
    if (!this.above) return false;
    const { signal } = this.turn;
    const page = await this.#get(this.above, signal).catch(() => null);
    if (!page || signal.aborted) return false;
    this.above = page.prev;
    this.add(page.items);
    this.#catchUp();
    this.#end();
    return true;
  }

  /** Loads posts that arrived after the newest page was read. */
  #catchUp() {
    const [first] = this.ids();
    if (!this.above && this.late && first && newer(this.late, first) > 0) this.above = first;
    if (!this.above) this.late = null;
  }

  #end() {
    if (this.older) setChildren(this.foot, skeleton(1));
    else if (this.nodes.size) setChildren(this.foot, h("p.end", null, "No more posts."));
    else setChildren(this.foot, this.above ? skeleton(1) : this.empty());
  }

  #failed(problem, signal, again) {
    if (signal.aborted) return;
    const refused = this.refused(problem);
    if (refused) return setChildren(this.foot, refused);
    say(problem.message);
    setChildren(this.foot, fault(problem, again));
    // Any other successful request shows that the server is reachable again.
    if (problem.status === 0) server.addEventListener("reached", again, { once: true, signal });
    return undefined;
  }
}

/** Creates the placeholder shown during loading. */
export function skeleton(count = 4) {
  const one = () => h("div.bone", null, h("i"), h("div", null, h("b"), h("b"), h("b")));
  return h("div.bones", { role: "status", "aria-label": "Loading" }, ...Array.from({ length: count }, one));
}

/** Creates the message for a failed load, with a button to try again. */
export function fault(problem, again) {
  const lost = problem.status === 0;
  return h("div.blank", null, icon("cloud"),
    h("h2", null, lost ? "The server cannot be reached" : "Something went wrong"),
    h("p", null, lost ? "This page loads when the server can be reached again. Your text is kept." : problem.message),
    h("button.pill", { type: "button", onclick: again }, "Try again"));
}
