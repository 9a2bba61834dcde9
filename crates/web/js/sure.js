// Confirmation before an action that cannot be undone.

import { h } from "./dom.js";
import { carry } from "./say.js";

/** Replaces the button by a question until it is answered. `verb` is the label of the confirming answer. */
export function sure(button, question, verb, doing) {
  const yes = h("button.action.bad", { type: "button", onclick: () => carry(yes, done) }, verb);
  const no = h("button.action", { type: "button", onclick: back }, "Cancel");
  const group = h("span.sure", { role: "group", "aria-label": question }, h("span", null, question), yes, no);
  button.replaceWith(group);
  yes.focus();
  async function done() {
    await doing();
    if (group.isConnected) back();
  }
  function back() {
    group.replaceWith(button);
    button.focus();
  }
}
