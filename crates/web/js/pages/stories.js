// Page of stories: those of friends and the user's own, until they expire.

import { user } from "../api.js";
import { composer } from "../compose.js";
import { arrange, h, setChildren } from "../dom.js";
import { fault } from "../feed.js";
import { icon } from "../icons.js";
import { live } from "../live.js";
import { face, hasRelation, named, relationButton, suggestedUsers, userItem } from "../people.js";
import { whoami } from "../session.js";
import { StoryList } from "../story_list.js";
import { life, tray } from "../tray.js";

const LIVES = [[30, "30 seconds"], [300, "5 minutes"], [3600, "1 hour"], [86400, "24 hours"], [604800, "7 days"]];
const LIFE_DEFAULT = 86400;

export async function render({ main, aside, signal }) {
  const storyList = new StoryList(whoami().id, signal, live);
  const below = h("div");
  setChildren(main,
    h("header.head", null, h("h1", null, "Stories")),
    tray({ signal, storyList, large: true }), storyComposer(storyList), below);
  const cards = new Map();
  storyList.addEventListener("change", () => update(storyList, cards, below, signal), { signal });
  update(storyList, cards, below, signal);
  const found = await befriendable(4).catch(() => []);
  if (found.length === 0 || signal.aborted) return;
  aside.hidden = false;
  setChildren(aside, h("section.card", null, h("h2", null, "Add friends"), h("ul.people", null, ...found)));
}

function storyComposer(storyList) {
  const choices = LIVES.map(([secs, words]) => h("option", { value: secs, selected: secs === LIFE_DEFAULT }, words));
  const select = h("select", { id: "life", name: "life" }, ...choices);
  return composer({
    label: "Post a story", hint: "Share something with your friends for a while…", verb: "Post story", place: "stories",
    path: `${user(whoami().id)}/stories`, said: "Story posted.",
    options: {
      more: h("span.choice", null, h("label", { for: "life" }, "Expires after"), select),
      fields: () => ({ ttl_s: Number(select.value) }),
      set: (fields) => { select.value = String(fields?.ttl_s ?? select.value); },
      disable: (on) => { select.disabled = on; },
    },
    sent: (story) => storyList.add(story),
  });
}

/** Shows the stories as cards, unseen ones first. Removes expired ones immediately. */
function update(storyList, cards, below, signal) {
  if (!storyList.loaded) return;
  if (storyList.problem) return setChildren(below, fault(storyList.problem, () => storyList.load()));
  const { own, others } = storyList.authors();
  const entries = [...(own ? [own] : []), ...others];
  if (entries.length === 0) {
    cards.clear();
    if (!below.querySelector(".blank")) setChildren(below, empty());
    return;
  }
  let list = below.querySelector(".cards");
  if (!list) setChildren(below, list = h("ul.cards", { "aria-label": "Live stories" }));
  const stories = entries.flatMap((entry) => [...entry.stories].reverse());
  stories.sort((one, other) => Number(Boolean(one.seen)) - Number(Boolean(other.seen)));
  for (const [id, one] of cards) {
    if (storyList.has(id)) continue;
    one.end.abort();
    one.node.remove();
    cards.delete(id);
  }
  for (const story of stories) {
    const one = cards.get(story.id) ?? card(storyList, story, signal);
    cards.set(story.id, one);
    one.node.classList.toggle("seen", Boolean(story.seen));
  }
  arrange(list, stories.map((story) => cards.get(story.id).node));
}

function card(storyList, story, signal) {
  const end = new AbortController();
  signal.addEventListener("abort", () => end.abort(), { signal: end.signal });
  const mine = story.author.id === whoami().id;
  const open = async () => (await import("../viewer.js")).view(storyList, story.author.id);
  const node = h("li.storycard", { "data-id": story.id },
    h("header", null, face(story.author, "s"), named(story.author)),
    h("button.peek", { type: "button", onclick: open },
      mine || story.seen ? opened(story) : h("span.veil", null, icon("eye"), "View story")),
    life(story, end.signal));
  if (!mine && !story.seen) {
    storyList.addEventListener("change", () => {
      if (!story.seen) return;
      setChildren(node.querySelector(".peek"), opened(story));
    }, { signal: end.signal });
  }
  return { node, end };
}

const opened = (story) => h("span.text", { dir: "auto" }, h("span.unseen", null, "Open: "), story.text);

/** Creates the content without stories: an invitation to post one, and users to befriend. */
function empty() {
  const list = h("ul.people.narrow");
  befriendable(5).then((found) => setChildren(list, ...found)).catch(() => null);
  return h("div.blank", null, icon("stories"), h("h2", null, "No stories right now"),
    h("p", null, "Friends see each other's stories until they expire. Post one, or add friends."), list);
}

async function befriendable(most) {
  const found = [];
  for (const person of await suggestedUsers(30)) {
    if (found.length === most) break;
    if (await hasRelation("friends", person.id)) continue;
    found.push(userItem(person, relationButton("friends", person, false, () => live.dispatchEvent(new Event("fresh")))));
  }
  return found;
}
