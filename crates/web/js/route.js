// Addresses after `#`: navigation, and the positions to which Back returns. A position is the first
// post in view and where it was, or else how far the page was scrolled.

const KEY = "roost.positions";
const POSITIONS_MAX = 50;

history.scrollRestoration = "manual";
const positions = new Map(JSON.parse(sessionStorage.getItem(KEY) ?? "[]"));
let current = entry();

/** The name of the history entry that is shown. */
function entry() {
  if (!history.state?.entry) history.replaceState({ entry: String(performance.timeOrigin + performance.now()) }, "");
  return history.state.entry;
}

/** Shows the page of the address again, from the start. */
export const reload = () => dispatchEvent(new Event("hashchange"));

/** Goes to an address, also to the current one, which would otherwise have no effect. */
export function go(address) {
  if (location.hash !== address) location.hash = address;
  else {
    scrollTo(0, 0);
    reload();
  }
}

/** Stores the position of the current page before it is left. */
function note() {
  const post = Array.from(document.querySelectorAll(".feed .post")).find((node) => node.getBoundingClientRect().bottom > 0);
  const anchor = scrollY > 0 && post ? { id: post.dataset.id, top: post.getBoundingClientRect().top } : null;
  positions.delete(current);
  positions.set(current, { y: scrollY, anchor });
  if (positions.size > POSITIONS_MAX) positions.delete(positions.keys().next().value);
}

/** To be called while the page that is left is still shown; returns the position to begin at, if one is known. */
export function turn() {
  note();
  return arrive();
}

/** The position at which the entry that is shown was left, or null. */
export function arrive() {
  current = entry();
  return positions.get(current) ?? null;
}

/** Scrolls to a position, or to the start. */
export function restore(at) {
  const post = at?.anchor && document.querySelector(`.feed .post[data-id="${CSS.escape(at.anchor.id)}"]`);
  if (post) scrollBy({ top: post.getBoundingClientRect().top - at.anchor.top, behavior: "instant" });
  else scrollTo({ top: at?.y ?? 0, behavior: "instant" });
}

addEventListener("pagehide", () => {
  note();
  sessionStorage.setItem(KEY, JSON.stringify([...positions]));
});
