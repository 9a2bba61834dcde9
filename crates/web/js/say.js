// Messages outside the page: visible toasts, and one line for screen readers.

import { h } from "./dom.js";

const TOAST_MS = 6000;
/** Minimum time between two announcements that are not responses to an action of the user. */
const CHATTER_MS = 12_000;

let saidAt = 0;
let due = null;

/** Announces something immediately: the response to an action of the user. */
export function say(text) {
  clearTimeout(due);
  document.getElementById("said").textContent = text;
}

/** Announces the result of `words`, but not too often; only the last one is used. */
export function murmur(words) {
  clearTimeout(due);
  due = setTimeout(() => {
    saidAt = Date.now();
    say(words());
  }, Math.max(0, saidAt + CHATTER_MS - Date.now()));
}

/** Shows a line for a few seconds. */
export function toast(text, kind = "plain") {
  const node = h("p.toast", { "data-kind": kind }, text);
  const toasts = document.getElementById("toasts");
  toasts.append(node);
  if (toasts.children.length > 3) toasts.firstChild.remove();
  setTimeout(() => node.remove(), TOAST_MS);
}

/** Runs the action of a control: the control is busy meanwhile, and an error is shown. */
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
