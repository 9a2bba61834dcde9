// Display of users: face, name, follow button. Also the users that this window has loaded, for the completion of
// handles.

import { ask, get, user, visible } from "./api.js";
import { h } from "./dom.js";
import { whoami } from "./session.js";
import { say, withBusy } from "./say.js";

const SEEN_MAX = 2000;
const seen = new Map();

/** Stores a loaded user for the completion of handles. */
export function remember(person) {
  seen.delete(person.handle);
  seen.set(person.handle, { id: person.id, handle: person.handle, name: person.name ?? "" });
  if (seen.size > SEEN_MAX) seen.delete(seen.keys().next().value);
}

/** Whether the user's handle or name begins with `start`, which is in lower case. */
export const begins = (person, start) => person.handle.startsWith(start) || person.name.toLowerCase().startsWith(start);

/** Loaded users whose handle or name begins with `start`, in lower case, most recently loaded first. */
export function matching(start, most) {
  return [...seen.values()].reverse().filter((person) => begins(person, start)).slice(0, most);
}

/** Loads the followed users, for the completion of their handles. */
export async function loadFollowees(signal) {
  const me = whoami();
  if (!me) return;
  const page = await get(visible(`${user(me.id)}/following?limit=100`), signal);
  page.items.forEach(remember);
}

/** Creates a user's face: two letters on two colors derived from the id. */
export function face(person, size = "m") {
  const words = (person.name || person.handle).trim().split(/[\s_]+/).filter(Boolean);
  const letters = words.length > 1 ? words.slice(0, 2).map((word) => [...word][0]) : [...(words[0] ?? "?")].slice(0, 2);
  const id = Number(BigInt(person.id) % 5040n);
  return h(`span.face.${size}`, { "--hue": hue(person), "--hue-2": hue(person) + HUES[id % HUES.length], "--turn": `${(id * 5 % 8) * 45}deg`, "aria-hidden": "true" }, letters.join("").toUpperCase());
}

/** Distances of the second color of a face from the first, in degrees. */
const HUES = [-55, -35, 0, 35, 55];

/** First color of a face, in degrees. Consecutive ids get clearly different colors. */
export const hue = (person) => (Number(BigInt(person.id) % 360n) * 137) % 360;

export const profile = (handle) => `#/@${handle}`;

/** Creates a link with name and handle. */
export function named(person) {
  return h("a.named", { href: profile(person.handle) },
    h("span.name", null, person.name || person.handle), " ",
    h("span.handle", null, `@${person.handle}`));
}

/** Whether the current user follows or is friends with a user. Reads one item of the list, at the user's id. */
export async function hasRelation(kind, other, signal) {
  const page = await get(visible(`${user(whoami().id)}/${kind}?limit=1&cursor=${other}`), signal);
  return page.items[0]?.id === other;
}

/** Loads the relation of the current user to another, or null if the other does not exist for the user. */
export function relation(handle, signal) {
  return get(`${user(whoami().id)}/relations/@${handle}`, signal).catch((problem) => {
    if (![404, 422].includes(problem.status)) throw problem;
    return null;
  });
}

const RELATIONS = {
  following: { begin: "Follow", end: "Unfollow", asked: "Cancel request", done: "You follow", undone: "You do not follow", asking: "You asked to follow" },
  friends: { begin: "Add friend", end: "Remove friend", done: "You are friends with", undone: "You are not friends with" },
};

/**
 * Creates a button that follows or befriends a user, ends that if `on`, or withdraws the follow request if `asked`.
 * Calls `changed` after each change.
 */
export function relationButton(kind, other, on, changed, asked = false) {
  const words = RELATIONS[kind];
  const button = h("button.pill", { type: "button", onclick: () => withBusy(button, toggle) });
  const show = () => {
    button.textContent = on ? words.end : asked ? words.asked : words.begin;
    button.setAttribute("aria-label", `${button.textContent} @${other.handle}`);
    button.classList.toggle("on", on || asked);
  };
  async function toggle() {
    const before = on;
    const ends = on || asked;
    await ask(ends ? "DELETE" : "PUT", `${user(whoami().id)}/${kind}/${other.id}`);
    // A locked user gets a follow request instead.
    on = !ends && (kind !== "following" || await hasRelation(kind, other.id));
    asked = !ends && !on;
    show();
    say(`${on ? words.done : asked ? words.asking : words.undone} @${other.handle}.`);
    if (on !== before) changed?.(on);
  }
  button.press = () => (on || asked ? null : withBusy(button, toggle));
  show();
  return button;
}

/** Creates a list item for a user, with buttons. */
export function userItem(person, ...actions) {
  remember(person);
  return h("li.person", null, face(person), h("div.who", null, named(person),
    person.bio ? h("p.bio", null, person.bio) : null), ...actions);
}

/** Loads suggested users: those with the most posts among the first hundred discoverable users, without the current user. */
export async function suggestedUsers(most, signal) {
  const { items } = await get(visible("/v1/users?limit=100"), signal);
  items.forEach(remember);
  const others = items.filter((person) => person.discoverable && person.id !== whoami()?.id);
  return others.sort((one, other) => other.post_count - one.post_count || other.follower_count - one.follower_count).slice(0, most);
}
