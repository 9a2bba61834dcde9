// Welcome page: a live preview of a home timeline, and the choice of a new or existing user.

import { ask, get, insist, user } from "../api.js";
import { calm, h, setChildren } from "../dom.js";
import { finder } from "../lookup.js";
import { article, deleted, edited } from "../post.js";
import { face, suggestedUsers } from "../people.js";
import { go as visit } from "../route.js";
import { withBusy } from "../say.js";
import { become, whoami } from "../session.js";
import { listen } from "../sse.js";
import { StoryList } from "../story_list.js";
import { rings } from "../tray.js";

/** Number of posts in the preview. */
const SHOWN = 7;
const HANDLE = /^[a-z0-9_]{1,30}$/;

export async function render({ main, signal }) {
  const people = await suggestedUsers(60, signal);
  const looked = [...people].sort((one, other) => other.following_count - one.following_count)[0];
  setChildren(main, h("div.welcome", null,
    h("div.pitch", null,
      h("h1", null, whoami() ? "Switch user" : "Social feeds that update live."),
      h("p.lead", null, whoami()
        ? "Enter a handle, or pick one of the users of this server."
        : "Home timelines, mentions and stories, updated as soon as users post. Choose a handle to join."),
      door(),
      people.length ? crowd(people.slice(0, 8)) : null),
    looked ? glimpse(looked, signal) : noUsers()));
}

/** Creates the form for a handle: an existing handle continues as its user, a new one is registered. */
function door() {
  const field = h("input", { id: "handle", autocomplete: "off", autocapitalize: "none", spellcheck: "false", maxlength: 31, placeholder: "your_handle", "aria-describedby": "handle-help" });
  const help = h("p.help", { id: "handle-help", "aria-live": "polite" }, "1 to 30 letters, digits or underscores.");
  const enter = h("button.pill.main", { type: "submit", disabled: true }, "Join");
  const find = finder("handle");
  const asked = () => field.value.trim().replace(/^@/, "").toLowerCase();

  field.addEventListener("input", async () => {
    const handle = asked();
    enter.disabled = !HANDLE.test(handle);
    enter.textContent = "Join";
    help.classList.toggle("bad", handle !== "" && enter.disabled);
    help.textContent = "1 to 30 letters, digits or underscores.";
    if (enter.disabled) return;
    const found = await find(handle);
    if (!found || handle !== asked()) return;
    const known = found[0];
    enter.textContent = known ? "Continue" : "Join";
    help.textContent = known ? `@${handle} exists: continue as ${known.name || handle}.` : `@${handle} is available.`;
  });

  const form = h("form.door", { onsubmit: (event) => { event.preventDefault(); if (!enter.disabled) withBusy(enter, go); } },
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
  visit("#/home");
}

function crowd(people) {
  return h("section.crowd", { "aria-labelledby": "crowd" },
    h("h2", { id: "crowd" }, "Or continue as"),
    h("ul", null, ...people.map((person) => h("li", null,
      h("button.chip", { type: "button", onclick: () => enterAs(person) }, face(person, "s"), h("span", null, person.name || person.handle))))));
}

/** Creates a live preview of a user's home timeline. */
function glimpse(person, signal) {
  const list = h("div.posts");
  const top = h("div.tray");
  const node = h("section.glimpse", { "aria-label": `The home timeline of ${person.name || person.handle}, live`, inert: true },
    h("header", null, h("span.pulse"), h("span", null, "Live: home timeline of "), h("b", null, `@${person.handle}`)),
    top, list);
  const shown = (post) => {
    const one = article(post, { gone: () => one.remove() });
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
  // Posts of a busy timeline are shown slowly enough to read.
  let queue = [];
  const turn = setInterval(() => { if (queue.length) add(queue.shift()); }, 900);
  signal.addEventListener("abort", () => clearInterval(turn));
  ask("GET", `${user(person.id)}/timeline?limit=${SHOWN}`, { signal }).then((page) => {
    setChildren(list, ...page.items.map(shown));
  }).catch(() => null);
  const storyList = new StoryList(person.id, signal);
  top.append(rings(storyList, { signal }));
  listen(`${user(person.id)}/events`, {
    signal,
    state: () => null,
    received: ({ event, data }) => {
      if (event.startsWith("story")) return storyList.apply(event, JSON.parse(data));
      const detail = JSON.parse(data);
      if (event === "edit") edited(detail);
      if (event === "delete") {
        deleted(detail.id);
        queue = queue.filter((post) => post.id !== detail.id && post.boost_of?.id !== detail.id);
      }
      if (event !== "post") return;
      queue.push(detail);
      if (queue.length > 3) queue.shift();
    },
  }).catch(() => null);
  return node;
}

function noUsers() {
  return h("section.glimpse.quiet", null, h("p", null, "There are no users yet. You will be the first."));
}
