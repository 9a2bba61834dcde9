// Reports posts that were on the screen, so that the next ranking shows other posts first. A lost report does no harm:
// the server also counts the pages that a user has read.

import { ask, user } from "./api.js";

/** Time between reports, in milliseconds. */
const EVERY_MS = 10_000;
/** Time for which a post must be on the screen, in milliseconds. Posts that fly past do not count. */
const LOOKED_MS = 1_000;
/** Maximum number of posts in a report. */
const POSTS_MAX = 100;

/**
 * Watches articles until the signal aborts. Returns a function that adds the article of an item; each item is reported
 * once, which its `seen` remembers.
 */
export function seenReporter(me, signal) {
  /** Items of watched articles, and the times since which articles are on the screen. */
  const items = new Map();
  const since = new Map();
  const watch = new IntersectionObserver((entries) => {
    for (const { target, intersectionRatio, intersectionRect } of entries) {
      // Half of the article, or an article that fills half of the screen.
      const isShown = intersectionRatio >= 0.5 || intersectionRect.height >= innerHeight / 2;
      if (!isShown) left(target);
      else if (!since.has(target)) since.set(target, Date.now());
    }
  }, { threshold: [0, 0.1, 0.25, 0.5] });
  let posts = [];

  /** Notes the article as seen if it was on the screen for long enough. */
  function left(node) {
    const item = items.get(node);
    if (!item || !since.has(node)) return;
    const isSeen = Date.now() - since.get(node) >= LOOKED_MS;
    since.delete(node);
    if (!isSeen || item.seen) return;
    item.seen = true;
    posts.push(item.post.id);
    items.delete(node);
    watch.unobserve(node);
  }

  function report() {
    for (const node of [...items.keys()]) {
      const start = since.get(node);
      left(node);
      // The time of an article that stays on the screen continues. One that was removed is forgotten.
      if (!node.isConnected) {
        items.delete(node);
        watch.unobserve(node);
      } else if (start !== undefined && items.has(node)) since.set(node, start);
    }
    while (posts.length) {
      // Requests outlive the page.
      const json = { posts: posts.splice(0, POSTS_MAX) };
      ask("POST", `${user(me.id)}/seen`, { json, keepalive: true }).catch(() => null);
    }
  }

  const isHidden = () => document.visibilityState === "hidden";
  const timer = setInterval(() => { if (!isHidden()) report(); }, EVERY_MS);
  document.addEventListener("visibilitychange", () => {
    if (isHidden()) report();
    // The time in which the page was hidden does not count.
    else for (const node of since.keys()) since.set(node, Date.now());
  }, { signal });
  signal.addEventListener("abort", () => {
    report();
    clearInterval(timer);
    watch.disconnect();
  });
  return (node, item) => {
    if (item.seen) return;
    items.set(node, item);
    watch.observe(node);
  };
}
