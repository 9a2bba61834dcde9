// Confirmation before an action that cannot be undone.

import { h } from "./dom.js";
import { withBusy } from "./say.js";

/** Replaces the button by a question until it is answered. `verb` is the label of the confirming answer. */
export function confirmFirst(button, question, verb, action) {
  const yes = h("button.action.bad", { type: "button", onclick: () => withBusy(yes, done) }, verb);
  const no = h("button.action", { type: "button", onclick: back }, "Cancel");
  const group = h("span.sure", { role: "group", "aria-label": question }, h("span", null, question), yes, no);
  button.replaceWith(group);
  yes.focus();
  async function done() {
    await action();
    if (group.isConnected) back();
  }
  function back() {
    group.replaceWith(button);
    button.focus();
  }
}
