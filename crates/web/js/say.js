// Messages outside of the page: visible toasts, and announcements for screen readers.

import { h } from "./dom.js";

const TOAST_MS = 6000;
/** Minimum time between two announcements that are not responses to an action of the user. */
const CHATTER_MS = 12_000;

let saidAt = 0;
let due = null;

/** Announces a text immediately, as the response to an action of the user. */
export function say(text) {
  clearTimeout(due);
  document.getElementById("said").textContent = text;
}

/** Announces the result of `words` after a minimum time. A later call replaces an earlier one. */
export function announceLater(words) {
  clearTimeout(due);
  due = setTimeout(() => {
    saidAt = Date.now();
    say(words());
  }, Math.max(0, saidAt + CHATTER_MS - Date.now()));
}

/** Shows a message for a few seconds. */
export function toast(text, kind = "plain") {
  const node = h("p.toast", { "data-kind": kind }, text);
  const toasts = document.getElementById("toasts");
  toasts.append(node);
  if (toasts.children.length > 3) toasts.firstChild.remove();
  setTimeout(() => node.remove(), TOAST_MS);
}

/** Runs the action of a control, which is busy meanwhile. Shows an error as a toast. */
export async function withBusy(control, action) {
  if (control.getAttribute("aria-busy") === "true") return undefined;
  control.setAttribute("aria-busy", "true");
  try {
    return await action();
  } catch (problem) {
    if (problem.name !== "AbortError") toast(problem.message, "bad");
    return undefined;
  } finally {
    control.removeAttribute("aria-busy");
  }
}
