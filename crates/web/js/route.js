// Addresses after `#`: navigation, and the positions that Back restores. A position is the first visible post and its
// offset, or the scroll position of the page.

const KEY = "roost.positions";
const POSITIONS_MAX = 50;

history.scrollRestoration = "manual";
const positions = new Map(JSON.parse(sessionStorage.getItem(KEY) ?? "[]"));
let current = entry();

/** Returns the id of the current history entry. */
function entry() {
  if (!history.state?.entry) history.replaceState({ entry: String(performance.timeOrigin + performance.now()) }, "");
  return history.state.entry;
}

/** Shows the current page again, from the top. */
export const reload = () => dispatchEvent(new Event("hashchange"));

/** Goes to an address, or reloads the page if it is the current one. */
export function go(address) {
  if (location.hash !== address) location.hash = address;
  else {
    scrollTo(0, 0);
    reload();
  }
}

/** Stores the position of the page before the user leaves it. */
function note() {
  const post = Array.from(document.querySelectorAll(".feed .post")).find((node) => node.getBoundingClientRect().bottom > 0);
  const anchor = scrollY > 0 && post ? { id: post.dataset.id, top: post.getBoundingClientRect().top } : null;
  positions.delete(current);
  positions.set(current, { y: scrollY, anchor });
  if (positions.size > POSITIONS_MAX) positions.delete(positions.keys().next().value);
}

/** Stores the position of the page being left, which is still displayed, and returns the position to restore, or null. */
export function turn() {
  note();
  return arrive();
}

/** Returns the stored position of the current history entry, or null. */
export function arrive() {
  current = entry();
  return positions.get(current) ?? null;
}

/** Scrolls to a position, or to the top. */
export function restore(at) {
  const post = at?.anchor && document.querySelector(`.feed .post[data-id="${CSS.escape(at.anchor.id)}"]`);
  if (post) scrollBy({ top: post.getBoundingClientRect().top - at.anchor.top, behavior: "instant" });
  else scrollTo({ top: at?.y ?? 0, behavior: "instant" });
}

addEventListener("pagehide", () => {
  note();
  sessionStorage.setItem(KEY, JSON.stringify([...positions]));
});
