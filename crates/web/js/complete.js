// Completion of `@` in a text field: a list of users under it, with selection by the arrow keys. Focus stays
// in the field, which stays a text box: the selected option is its active descendant.

import { h, put } from "./dom.js";
import { finder } from "./lookup.js";
import { face, matching, remember } from "./people.js";
import { say } from "./say.js";

const OPTIONS_MAX = 6;
let lists = 0;

/** Completes handles in `field`. The list is added to `place`, which is positioned. */
export function completing(field, place) {
  lists += 1;
  const list = h("ul.complete", { role: "listbox", id: `complete-${lists}`, "aria-label": "Users", hidden: true });
  place.append(list);
  field.setAttribute("aria-autocomplete", "list");
  field.setAttribute("aria-controls", list.id);
  const find = finder("search", `&limit=${OPTIONS_MAX}`);
  let found = { start: "", users: [] };
  let chosen = 0;
  let shown = [];

  const started = () => /(?:^|[^A-Za-z0-9_])@([A-Za-z0-9_]{1,30})$/.exec(field.value.slice(0, field.selectionStart))?.[1];

  function show() {
    const start = started();
    const before = shown.length;
    shown = start ? matching(start, OPTIONS_MAX) : [];
    // The server also finds handles that are almost as typed.
    const similar = start?.toLowerCase() === found.start ? found.users : [];
    shown.push(...similar.filter((user) => !shown.some((one) => one.id === user.id)));
    shown.length = Math.min(shown.length, OPTIONS_MAX);
    const exact = shown.length === 1 && shown[0].handle === start?.toLowerCase();
    if (exact) shown = [];
    if (shown.length && shown.length !== before) say(shown.length === 1 ? "1 suggestion" : `${shown.length} suggestions`);
    put(list, ...shown.map((person, place) => h("li", {
      role: "option", id: `${list.id}-${place}`,
      onpointerdown: (event) => { event.preventDefault(); take(place); },
    }, face(person, "s"), h("span.name", null, person.name || person.handle), h("span.handle", null, `@${person.handle}`))));
    open(shown.length > 0);
  }

  function open(is) {
    list.hidden = !is;
    if (is) choose(0);
    else field.removeAttribute("aria-activedescendant");
  }

  function choose(place) {
    chosen = place;
    Array.from(list.children, (node, at) => node.setAttribute("aria-selected", String(at === place)));
    field.setAttribute("aria-activedescendant", `${list.id}-${place}`);
  }

  function take(place) {
    const end = field.selectionStart;
    const begin = end - started().length;
    field.setRangeText(`${shown[place].handle} `, begin, end, "end");
    open(false);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  field.addEventListener("input", async () => {
    show();
    // Users that are not loaded yet.
    const start = started()?.toLowerCase();
    if (!start || start.length < 2) return;
    const users = await find(start);
    if (!users || started()?.toLowerCase() !== start) return;
    users.filter((user) => user.handle.startsWith(start)).forEach(remember);
    found = { start, users };
    show();
  });
  field.addEventListener("keydown", (event) => {
    if (list.hidden || event.isComposing) return undefined;
    // Ctrl+Enter posts what is written, and takes nothing.
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) return open(false);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) choose((chosen + step + shown.length) % shown.length);
    else if (event.key === "Enter" || event.key === "Tab") take(chosen);
    else if (event.key === "Escape") open(false);
    else return undefined;
    event.preventDefault();
    // The field has other listeners for these keys.
    event.stopImmediatePropagation();
    return undefined;
  });
  field.addEventListener("blur", () => open(false));
}
