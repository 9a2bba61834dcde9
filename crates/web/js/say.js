// Messages beside the page: toasts to be seen, and one line for screen readers.

import { h } from "./dom.js";

const TOAST_MS = 6000;
/** Least time between two things said aloud that nobody asked for. */
const CHATTER_MS = 12_000;

let saidAt = 0;
let due = null;

/** Says something aloud at once: the answer to what somebody did. */
export function say(text) {
  clearTimeout(due);
  document.getElementById("said").textContent = text;
}

/** Says what `words` gives, but not too often; only the last one counts. */
export function murmur(words) {
  clearTimeout(due);
  due = setTimeout(() => {
    saidAt = Date.now();
    say(words());
  }, Math.max(0, saidAt + CHATTER_MS - Date.now()));
}

/** Shows a line for a while. */
export function toast(text, kind = "plain") {
  const node = h("p.toast", { "data-kind": kind }, text);
  const toasts = document.getElementById("toasts");
  toasts.append(node);
  if (toasts.children.length > 3) toasts.firstChild.remove();
  setTimeout(() => node.remove(), TOAST_MS);
}

/** Runs what a control does: it is busy meanwhile, and a failure is shown. */
export async function carry(control, doing) {
  if (control.getAttribute("aria-busy") === "true") return undefined;
  control.setAttribute("aria-busy", "true");
  try {
    return await doing();
  } catch (problem) {
    if (problem.name !== "AbortError") toast(problem.message, "bad");
    return undefined;
  } finally {
    control.removeAttribute("aria-busy");
  }
}
