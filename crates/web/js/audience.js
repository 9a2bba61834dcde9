// Controls for the visibility and the content warning of a post.

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { usualVisibility } from "./session.js";

const NAMES = { public: "Public", unlisted: "Unlisted", followers: "Followers", direct: "Mentioned users" };
/** Maximum length of a content warning, in characters. */
const WARNING_MAX = 500;

/** Label of a post's visibility, or null if the post is public. */
export const seenBy = ({ visibility }) => (visibility === "public" ? null : h("span.private", null, icon("lock"), NAMES[visibility]));

/**
 * Creates controls for a composer: `more` is next to its button, `above` is above its text. `fields` returns the fields
 * of the request, `set` restores them, `disable` makes them read-only while they are sent. A reply begins with the
 * visibility and the warning of its parent. An edit (`isEdit`) cannot change the visibility.
 */
export function audience(begin = {}, isEdit = false) {
  const choices = Object.entries(NAMES).map(([value, name]) => h("option", { value }, name));
  const select = h("select", { "aria-label": "Who sees it" }, ...choices);
  const field = h("input.warning", { type: "text", maxlength: WARNING_MAX, placeholder: "Content warning", "aria-label": "Content warning", autocomplete: "off", dir: "auto" });
  const button = h("button.action", { type: "button", "aria-pressed": "false", "aria-label": "Content warning", title: "Content warning", onclick: turn }, icon("warning"));

  function show(on) {
    field.hidden = !on;
    button.setAttribute("aria-pressed", String(on));
  }
  function turn() {
    show(field.hidden);
    if (field.hidden && field.value) {
      field.value = "";
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }
    if (!field.hidden) field.focus();
  }
  function set({ visibility = usualVisibility(), warning = "" } = {}) {
    select.value = visibility;
    field.value = warning;
    show(warning !== "");
  }
  set(begin);
  return {
    more: h("span.audience", null, button, isEdit ? null : select),
    above: field,
    fields: () => ({ ...(isEdit ? {} : { visibility: select.value }), warning: field.value.trim() }),
    set: (fields) => set(fields ?? begin),
    disable: (on) => [select, field, button].forEach((control) => { control.disabled = on; }),
  };
}
