// Completing `@` in a text field: a list of people under it, moved through with the arrows. Focus
// stays in the field, as the pattern of a combobox with a list asks for.

import { get } from "./api.js";
import { h, put } from "./dom.js";
import { face, matching, meet } from "./people.js";

const MOST = 6;
let lists = 0;

/** Lets handles be completed in `field`. The list goes into `place`, which is positioned. */
export function completing(field, place) {
  lists += 1;
  const list = h("ul.complete", { role: "listbox", id: `complete-${lists}`, "aria-label": "People", hidden: true });
  place.append(list);
  for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-controls", list.id], ["aria-expanded", "false"]]) {
    field.setAttribute(name, value);
  }
  let chosen = 0;
  let shown = [];

  const started = () => /(?:^|[^A-Za-z0-9_])@([A-Za-z0-9_]{1,30})$/.exec(field.value.slice(0, field.selectionStart))?.[1];

  function show() {
    const start = started();
    shown = start ? matching(start, MOST) : [];
    const exact = shown.length === 1 && shown[0].handle === start?.toLowerCase();
    if (exact) shown = [];
    list.hidden = shown.length === 0;
    field.setAttribute("aria-expanded", String(!list.hidden));
    put(list, ...shown.map((person, place) => h("li", {
      role: "option", id: `${list.id}-${place}`,
      onpointerdown: (event) => { event.preventDefault(); take(place); },
    }, face(person, "s"), h("span.name", null, person.name || person.handle), h("span.handle", null, `@${person.handle}`))));
    choose(0);
  }

  function choose(place) {
    chosen = place;
    Array.from(list.children, (node, at) => node.setAttribute("aria-selected", String(at === place)));
    if (list.hidden) field.removeAttribute("aria-activedescendant");
    else field.setAttribute("aria-activedescendant", `${list.id}-${place}`);
  }

  function take(place) {
    const end = field.selectionStart;
    const begin = end - started().length;
    field.setRangeText(`${shown[place].handle} `, begin, end, "end");
    list.hidden = true;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  let asking = 0;
  field.addEventListener("input", async () => {
    show();
    // Somebody not met yet is found by the whole handle.
    const start = started()?.toLowerCase();
    const asked = asking += 1;
    if (!start || start.length < 2) return;
    const page = await get(`/v1/users?handle=${start}`).catch(() => null);
    if (page?.items.length && asked === asking) {
      meet(page.items[0]);
      show();
    }
  });
  field.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) choose((chosen + step + shown.length) % shown.length);
    else if (event.key === "Enter" || event.key === "Tab") take(chosen);
    else if (event.key === "Escape") list.hidden = true;
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  field.addEventListener("blur", () => { list.hidden = true; });
}
