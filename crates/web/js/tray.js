// Rings around the faces of users with live stories. A ring shows the remaining lifetime: it shrinks over time, and is
// removed at the end.

import { now } from "./api.js";
import { calm, h, setChildren, svg } from "./dom.js";
import { icon } from "./icons.js";
import { live } from "./live.js";
import { face } from "./people.js";
import { whoami } from "./session.js";
import { left } from "./time.js";
import { StoryList, ends, share } from "./story_list.js";

const RADIUS = 30;
const ROUND = 2 * Math.PI * RADIUS;

/** Creates the tray of this window: the user's own ring, then those of friends. */
export function tray({ signal, storyList = new StoryList(whoami().id, signal, live), large = false }) {
  const list = rings(storyList, { signal, own: true, look: (author) => open(storyList, author) });
  return h(`section.tray${large ? ".large" : ""}`, { "aria-label": "Stories" }, list);
}

async function open(storyList, author) {
  const { view } = await import("./viewer.js");
  view(storyList, author);
}

/** Creates a list of rings that stays up to date. `look` opens an author's stories; without it the rings are not clickable. */
export function rings(storyList, { signal, own = false, look = null }) {
  const list = h("ul.rings");
  const items = new Map();

  function update() {
    const { own: mine, others } = storyList.authors();
    const shown = [];
    if (own) shown.push(place("own", mine ?? { author: whoami(), stories: [] }));
    for (const entry of others) shown.push(place(entry.author.id, entry));
    for (const [id, item] of items) {
      if (!shown.includes(item)) {
        items.delete(id);
        vanish(item.node);
      }
    }
    let before = list.firstElementChild;
    for (const { node } of shown) {
      while (before?.classList.contains("gone")) before = before.nextElementSibling;
      if (before === node) before = before.nextElementSibling;
      else list.insertBefore(node, before);
    }
  }

  function place(id, entry) {
    const item = items.get(id) ?? ring(id === "own", look);
    items.set(id, item);
    item.show(entry);
    return item;
  }

  storyList.addEventListener("change", update);
  const turn = setInterval(() => { for (const item of items.values()) item.turn(); }, 1000);
  signal.addEventListener("abort", () => {
    clearInterval(turn);
    storyList.removeEventListener("change", update);
  });
  if (own) update();
  return list;
}

function ring(own, look) {
  const arc = svg("circle", { cx: 34, cy: 34, r: RADIUS, class: "arc", transform: "rotate(-90 34 34)" });
  const picture = h("span.ring", null, svg("svg", { viewBox: "0 0 68 68", "aria-hidden": "true" }, svg("circle", { cx: 34, cy: 34, r: RADIUS }), arc));
  const label = h("span.label");
  const more = h("span.unseen");
  const button = look ? h("button", { type: "button" }, picture, h("span.name", null, label, more)) : h("span.still", null, picture, label);
  const node = h("li", null, button);
  let entry = null;
  let drawn = null;
  const last = () => Math.max(...entry.stories.map(ends));

  function show(next) {
    entry = next;
    const { author, stories } = entry;
    if (drawn !== author.id) {
      drawn = author.id;
      picture.querySelector(".face")?.remove();
      picture.append(face(author, "r"));
    }
    const empty = stories.length === 0;
    node.classList.toggle("none", empty);
    node.classList.toggle("seen", !own && stories.every((story) => story.seen));
    picture.querySelector(".plus")?.remove();
    if (own && empty) picture.append(h("span.plus", null, icon("plus")));
    label.textContent = own ? (empty ? "Add story" : "You") : author.name.split(" ")[0] || author.handle;
    turn();
  }

  function turn() {
    const { stories } = entry;
    const rest = stories.length ? Math.max(...stories.map(share)) : 0;
    arc.style.strokeDasharray = `${rest * ROUND} ${ROUND}`;
    if (!look) return;
    const fresh = stories.filter((story) => !story.seen).length;
    const count = `${stories.length} ${stories.length === 1 ? "story" : "stories"}`;
    more.textContent = stories.length ? `${count}${!own && fresh ? `, ${fresh} new` : ""}, ${left(last() - now())} left` : "";
  }

  if (look) {
    button.addEventListener("click", () => {
      if (entry.stories.length) look(entry.author.id);
      else if (location.hash === "#/stories") document.querySelector(".composer textarea")?.focus();
      else location.hash = "#/stories";
    });
  }
  return { node, show, turn };
}

/** Removes a ring with an animation. */
function vanish(node) {
  node.classList.add("gone");
  node.querySelector("button")?.setAttribute("disabled", "");
  if (calm.matches || !node.isConnected) return node.remove();
  const width = `${node.offsetWidth}px`;
  node.animate([
    { opacity: 1, transform: "none", width },
    { opacity: 0, transform: "scale(.6)", width, offset: 0.6 },
    { opacity: 0, transform: "scale(.6)", width: 0 },
  ], { duration: 700, easing: "ease-in-out" }).finished.then(() => node.remove(), () => node.remove());
}

/** Creates a bar with the remaining lifetime of a story, which stays up to date until `signal` aborts. */
export function life(story, signal) {
  const bar = h("span.life", { "aria-hidden": "true" });
  const words = h("span.left");
  const node = h("span.lifeline", null, bar, words);
  const turn = () => {
    bar.style.setProperty("--share", share(story));
    words.textContent = `${left(ends(story) - now())} left`;
  };
  const timer = setInterval(turn, 1000);
  signal.addEventListener("abort", () => clearInterval(timer));
  turn();
  setChildren(node, bar, words);
  return node;
}
