// Stories: what friends tell and what one tells oneself, as long as it lives.

import { composer } from "../compose.js";
import { arrange, h, put } from "../dom.js";
import { fault } from "../feed.js";
import { icon } from "../icons.js";
import { live } from "../live.js";
import { face, line, lively, named, tieButton, tied } from "../people.js";
import { whoami } from "../session.js";
import { Told } from "../told.js";
import { life, tray } from "../tray.js";

const LIVES = [[30, "30 seconds"], [300, "5 minutes"], [3600, "1 hour"], [86400, "24 hours"], [604800, "7 days"]];
const LIFE_DEFAULT = 86400;

export async function render({ main, aside, signal }) {
  const told = new Told(whoami().id, signal, live);
  const below = h("div");
  put(main,
    h("header.head", null, h("h1", null, "Stories")),
    tray({ signal, told, large: true }), teller(told), below);
  const cards = new Map();
  told.addEventListener("change", () => update(told, cards, below, signal), { signal });
  update(told, cards, below, signal);
  const found = await befriendable(4).catch(() => []);
  if (found.length === 0 || signal.aborted) return;
  aside.hidden = false;
  put(aside, h("section.card", null, h("h2", null, "People to befriend"), h("ul.people", null, ...found)));
}

function teller(told) {
  const choices = LIVES.map(([secs, words]) => h("option", { value: secs, selected: secs === LIFE_DEFAULT }, words));
  const select = h("select", { id: "life", name: "life" }, ...choices);
  return composer({
    label: "Tell a story", hint: "Tell your friends something that vanishes…", verb: "Tell", to: "stories",
    more: h("span.choice", null, h("label", { for: "life" }, "Lives for"), select),
    extra: () => ({ ttl_s: Number(select.value) }),
    sent: (story) => told.add(story),
  });
}

/** The stories as cards, those that are not seen first. What is over goes at once. */
function update(told, cards, below, signal) {
  if (!told.loaded) return;
  if (told.problem) return put(below, fault(told.problem, () => told.load()));
  const { own, others } = told.authors();
  const entries = [...(own ? [own] : []), ...others];
  if (entries.length === 0) {
    cards.clear();
    if (!below.querySelector(".blank")) put(below, empty());
    return;
  }
  let list = below.querySelector(".cards");
  if (!list) put(below, list = h("ul.cards", { "aria-label": "Live stories" }));
  const stories = entries.flatMap((entry) => [...entry.stories].reverse());
  stories.sort((one, other) => Number(Boolean(one.seen)) - Number(Boolean(other.seen)));
  for (const [id, one] of cards) {
    if (told.has(id)) continue;
    one.end.abort();
    one.node.remove();
    cards.delete(id);
  }
  for (const story of stories) {
    const one = cards.get(story.id) ?? card(told, story, signal);
    cards.set(story.id, one);
    one.node.classList.toggle("seen", Boolean(story.seen));
  }
  arrange(list, stories.map((story) => cards.get(story.id).node));
}

function card(told, story, signal) {
  const end = new AbortController();
  signal.addEventListener("abort", () => end.abort(), { signal: end.signal });
  const mine = story.author.id === whoami().id;
  const open = async () => (await import("../viewer.js")).view(told, story.author.id);
  const node = h("li.storycard", { "data-id": story.id },
    h("header", null, face(story.author, "s"), named(story.author)),
    h("button.peek", { type: "button", onclick: open },
      mine || story.seen ? opened(story) : h("span.veil", null, icon("eye"), "Look")),
    life(story, end.signal));
  if (!mine && !story.seen) {
    told.addEventListener("change", () => {
      if (!story.seen) return;
      put(node.querySelector(".peek"), opened(story));
    }, { signal: end.signal });
  }
  return { node, end };
}

const opened = (story) => h("span.text", { dir: "auto" }, h("span.unseen", null, "Open: "), story.text);

/** Without stories: tell one, or make friends who do. */
function empty() {
  const list = h("ul.people.narrow");
  befriendable(5).then((found) => put(list, ...found)).catch(() => null);
  return h("div.blank", null, icon("stories"), h("h2", null, "Nothing is being told right now"),
    h("p", null, "Friends see each other's stories, until their time is up."), list);
}

async function befriendable(most) {
  const found = [];
  for (const person of await lively(30)) {
    if (found.length === most) break;
    if (await tied("friends", person.id)) continue;
    found.push(line(person, tieButton("friends", person, false, () => live.dispatchEvent(new Event("fresh")))));
  }
  return found;
}
