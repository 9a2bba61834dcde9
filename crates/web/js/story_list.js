// Live stories that a user can see: those of friends and their own. **Invariant:** the list contains no expired story,
// even if its expiry event was missed.

import { get, now, user } from "./api.js";

const MOST = 100;

/** Expiry of a story in milliseconds since 1970, and the remaining share of its lifetime, from 1 to 0. */
export const ends = (story) => Date.parse(story.expires_at);
export const share = (story) => Math.max(0, Math.min(1, (ends(story) - now()) / (ends(story) - Date.parse(story.created_at))));

/** Dispatches `change` when stories are posted, end or are seen, and `over` with the id of an ended story. */
export class StoryList extends EventTarget {
  #stories = new Map();
  #timer = null;

  /** Loads the stories that the user `id` can see. With `live`, follows the stream of this window. */
  constructor(id, signal, live = null) {
    super();
    this.id = id;
    this.signal = signal;
    this.loaded = false;
    for (const event of live ? ["story", "story_expired"] : []) {
      live.addEventListener(event, ({ detail }) => this.apply(event, detail), { signal });
    }
    live?.addEventListener("fresh", () => this.load(), { signal });
    signal.addEventListener("abort", () => clearTimeout(this.#timer));
    this.load();
  }

  async load() {
    const pages = await Promise.all([
      get(`${user(this.id)}/timeline/stories?limit=${MOST}`, this.signal),
      get(`${user(this.id)}/stories?limit=${MOST}`, this.signal),
    ]).catch((problem) => {
      this.problem = problem;
      return null;
    });
    if (this.signal.aborted) return;
    if (pages) {
      this.problem = null;
      this.#stories = new Map(pages.flatMap((page) => page.items).map((story) => [story.id, story]));
    }
    this.loaded = true;
    this.#changed();
  }

  /** Applies an event of a stream. */
  apply(event, detail) {
    if (event === "story_expired") this.drop(detail.id);
    else this.add(detail);
  }

  add(story) {
    if (!this.#stories.has(story.id)) this.#stories.set(story.id, story);
    this.#changed();
  }

  drop(id) {
    if (!this.#stories.delete(id)) return;
    this.dispatchEvent(new CustomEvent("over", { detail: id }));
    this.#changed();
  }

  saw(id) {
    const story = this.#stories.get(id);
    if (!story || story.seen) return;
    story.seen = true;
    this.#changed();
  }

  has(id) {
    return this.#stories.has(id);
  }

  /** Stories by author, oldest first. Authors with unseen stories come first; the user's own stories are separate. */
  authors() {
    const found = new Map();
    for (const story of [...this.#stories.values()].sort((one, other) => Date.parse(one.created_at) - Date.parse(other.created_at))) {
      const entry = found.get(story.author.id) ?? { author: story.author, stories: [] };
      entry.stories.push(story);
      found.set(story.author.id, entry);
    }
    const others = [...found.values()].filter(({ author }) => author.id !== this.id);
    for (const entry of others) entry.fresh = entry.stories.some((story) => !story.seen);
    others.sort((one, other) => Number(other.fresh) - Number(one.fresh));
    return { own: found.get(this.id) ?? null, others };
  }

  #changed() {
    clearTimeout(this.#timer);
    const all = [...this.#stories.values()];
    for (const story of all.filter((story) => ends(story) <= now())) {
      this.#stories.delete(story.id);
      this.dispatchEvent(new CustomEvent("over", { detail: story.id }));
    }
    const next = Math.min(...[...this.#stories.values()].map(ends));
    // Long timers overflow, so the timer is set again after an hour.
    if (Number.isFinite(next)) this.#timer = setTimeout(() => this.#changed(), Math.min(next - now() + 1, 3_600_000));
    this.dispatchEvent(new Event("change"));
  }
}
