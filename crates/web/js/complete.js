// Completion of `@` in a text field: a list of users below it, selected with the arrow keys. Focus stays in the field,
// whose active descendant is the selected option.

import { h, setChildren } from "./dom.js";
import { finder } from "./lookup.js";
import { begins, face, matching } from "./people.js";
import { say } from "./say.js";

const OPTIONS_MAX = 6;
let lists = 0;

/** Completes handles in `field`. Adds the list to `place`, which must be positioned. */
export function completing(field, place) {
  lists += 1;
  const list = h("ul.complete", { role: "listbox", id: `complete-${lists}`, "aria-label": "Users", hidden: true });
  place.append(list);
  field.setAttribute("aria-autocomplete", "list");
  field.setAttribute("aria-controls", list.id);
  const find = finder("search", `&limit=${OPTIONS_MAX}`);
  let found = { start: "", users: [] };
  let shown = [];
  // Index of the selected option; null if no option begins with the typed text.
  let chosen = null;
  let isMoved = false;
  // Number of the last change, to ignore responses to earlier text or after closing.
  let turn = 0;

  const started = () => /(?:^|[^A-Za-z0-9_])@([A-Za-z0-9_]{1,30})$/.exec(field.value.slice(0, field.selectionStart))?.[1].toLowerCase();

  /** Returns the options: the exact match, users of this window, then users found by the server. Empty if the exact match is the only option. */
  function options(start) {
    if (!start) return [];
    const all = [...matching(start, OPTIONS_MAX), ...(found.start === start ? found.users : [])];
    const exact = all.filter((user) => user.handle === start);
    const users = [...new Map([...exact, ...all].map((user) => [user.id, user])).values()].slice(0, OPTIONS_MAX);
    const isDone = exact.length > 0 && users.filter((user) => begins(user, start)).length === 1;
    return isDone ? [] : users;
  }

  function show() {
    const start = started();
    const before = shown.length;
    const last = isMoved ? shown[chosen]?.id : null;
    shown = options(start);
    if (shown.length && shown.length !== before) say(shown.length === 1 ? "1 suggestion" : `${shown.length} suggestions`);
    setChildren(list, ...shown.map((person, place) => h("li", {
      role: "option", id: `${list.id}-${place}`,
      onpointerdown: (event) => { event.preventDefault(); take(place); },
    }, face(person, "s"), h("span.name", null, person.name || person.handle), h("span.handle", null, `@${person.handle}`))));
    list.hidden = shown.length === 0;
    const kept = shown.findIndex((person) => person.id === last);
    const first = shown.length > 0 && begins(shown[0], start) ? 0 : null;
    choose(kept >= 0 ? kept : first);
  }

  function close() {
    turn += 1;
    list.hidden = true;
    choose(null);
  }

  function choose(place) {
    chosen = place;
    Array.from(list.children, (node, at) => node.setAttribute("aria-selected", String(at === place)));
    if (place === null) field.removeAttribute("aria-activedescendant");
    else field.setAttribute("aria-activedescendant", `${list.id}-${place}`);
  }

  function take(place) {
    const end = field.selectionStart;
    const begin = end - started().length;
    field.setRangeText(`${shown[place].handle} `, begin, end, "end");
    close();
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  field.addEventListener("input", async () => {
    turn += 1;
    isMoved = false;
    const asked = turn;
    show();
    const start = started();
    if (!start || start.length < 2) return;
    const users = await find(start);
    if (!users || turn !== asked) return;
    found = { start, users };
    show();
  });
  field.addEventListener("keydown", (event) => {
    if (list.hidden || event.isComposing) return undefined;
    // Ctrl+Enter submits the text without selecting an option.
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) return close();
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      isMoved = true;
      const from = chosen ?? (step > 0 ? -1 : 0);
      choose((from + step + shown.length) % shown.length);
    } else if ((event.key === "Enter" || event.key === "Tab") && chosen !== null) take(chosen);
    else if (event.key === "Escape") close();
    else return undefined;
    event.preventDefault();
    // The field has other listeners for these keys.
    event.stopImmediatePropagation();
    return undefined;
  });
  field.addEventListener("blur", close);
}
