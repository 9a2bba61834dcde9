// Welcome: what this is, seen in a home timeline that moves, and becoming somebody: a new person or
// one who is here.

import { ask, get, insist, user } from "../api.js";
import { calm, h, put } from "../dom.js";
import { article } from "../post.js";
import { face, lively } from "../people.js";
import { carry } from "../say.js";
import { become, whoami } from "../session.js";
import { listen } from "../sse.js";
import { Told } from "../told.js";
import { rings } from "../tray.js";

/** Posts in the window onto somebody's home. */
const SHOWN = 7;
const HANDLE = /^[a-z0-9_]{1,30}$/;

export async function render({ main, signal }) {
  const people = await lively(60, signal);
  const looked = [...people].sort((one, other) => other.following_count - one.following_count)[0];
  put(main, h("div.welcome", null,
    h("div.pitch", null,
      h("h1", null, whoami() ? "Be somebody else" : "Feeds that move as people write."),
      h("p.lead", null, whoami()
        ? "Pick a handle, or one of the people who are here."
        : "roost keeps home timelines, mentions and stories of everybody up to date, live. Pick a handle and take part."),
      door(),
      people.length ? crowd(people.slice(0, 8)) : null),
    looked ? glimpse(looked, signal) : nobody()));
}

/** One field for both: whose handle is known comes back, whose is not is made. */
function door() {
  const field = h("input", { id: "handle", autocomplete: "off", autocapitalize: "none", spellcheck: "false", maxlength: 31, placeholder: "your_handle", "aria-describedby": "handle-help" });
  const help = h("p.help", { id: "handle-help", "aria-live": "polite" }, "1 to 30 letters, digits or underscores.");
  const enter = h("button.pill.main", { type: "submit", disabled: true }, "Join");
  let known = null;
  let looking = 0;
  const asked = () => field.value.trim().replace(/^@/, "").toLowerCase();

  field.addEventListener("input", async () => {
    const handle = asked();
    looking += 1;
    const look = looking;
    known = null;
    enter.disabled = !HANDLE.test(handle);
    enter.textContent = "Join";
    help.classList.toggle("bad", handle !== "" && enter.disabled);
    help.textContent = "1 to 30 letters, digits or underscores.";
    if (enter.disabled) return;
    const page = await get(`/v1/users?handle=${handle}`).catch(() => ({ items: [] }));
    if (look !== looking) return;
    known = page.items[0] ?? null;
    enter.textContent = known ? "Continue" : "Join";
    help.textContent = known ? `@${handle} is here already: continue as ${known.name || handle}.` : `@${handle} is free.`;
  });

  const form = h("form.door", { onsubmit: (event) => { event.preventDefault(); if (!enter.disabled) carry(enter, go); } },
    h("label", { for: "handle" }, "Your handle"),
    h("div.row", null, h("div.at", null, h("span", { "aria-hidden": "true" }, "@"), field), enter), help);

  async function go() {
    const handle = asked();
    const page = await get(`/v1/users?handle=${handle}`);
    const person = page.items[0] ?? await insist("POST", "/v1/users", { json: { handle } });
    enterAs(person);
  }
  return form;
}

function enterAs(person) {
  become(person);
  location.hash = "#/home";
}

function crowd(people) {
  return h("section.crowd", { "aria-labelledby": "crowd" },
    h("h2", { id: "crowd" }, "Or look around as"),
    h("ul", null, ...people.map((person) => h("li", null,
      h("button.chip", { type: "button", onclick: () => enterAs(person) }, face(person, "s"), h("span", null, person.name || person.handle))))));
}

/** A window onto somebody's home, which moves as the people they follow write. */
function glimpse(person, signal) {
  const list = h("div.posts");
  const top = h("div.tray");
  const node = h("section.glimpse", { "aria-label": `The home of ${person.name || person.handle}, live`, inert: true },
    h("header", null, h("span.pulse"), h("span", null, "Live: the home of "), h("b", null, `@${person.handle}`)),
    top, list);
  const shown = (post) => {
    const one = article(post);
    one.querySelector(".actions").remove();
    return one;
  };
  const add = (post) => {
    if (list.querySelector(`[data-id="${post.id}"]`)) return;
    const one = shown(post);
    list.prepend(one);
    if (!calm.matches) {
      one.animate([{ opacity: 0, height: 0 }, { opacity: 1, height: `${one.offsetHeight}px` }], { duration: 420, easing: "cubic-bezier(.2,.8,.2,1)" });
    }
    while (list.children.length > SHOWN) list.lastElementChild.remove();
  };
  // Somebody busy is shown at a pace that can be read.
  const queue = [];
  const turn = setInterval(() => { if (queue.length) add(queue.shift()); }, 900);
  signal.addEventListener("abort", () => clearInterval(turn));
  ask("GET", `${user(person.id)}/timeline?limit=${SHOWN}`, { signal }).then((page) => {
    put(list, ...page.items.map(shown));
  }).catch(() => null);
  const told = new Told(person.id, signal);
  top.append(rings(told, { signal }));
  listen(`${user(person.id)}/events`, {
    signal,
    state: () => null,
    heard: ({ event, data }) => {
      if (event.startsWith("story")) return told.hear(event, JSON.parse(data));
      if (event !== "post") return;
      queue.push(JSON.parse(data));
      if (queue.length > 3) queue.shift();
    },
  }).catch(() => null);
  return node;
}

function nobody() {
  return h("section.glimpse.quiet", null, h("p", null, "Nobody is here yet. You will be the first."));
}
