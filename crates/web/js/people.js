// People as they are shown: a face, a name, a button to follow. Also everybody this window has
// come across, for completing handles.

import { ask, get, user } from "./api.js";
import { h } from "./dom.js";
import { whoami } from "./session.js";
import { carry, say } from "./say.js";

const SEEN_MAX = 2000;
const seen = new Map();

/** Remembers somebody who came along. */
export function meet(person) {
  seen.delete(person.handle);
  seen.set(person.handle, { id: person.id, handle: person.handle, name: person.name ?? "" });
  if (seen.size > SEEN_MAX) seen.delete(seen.keys().next().value);
}

/** Those whose handle or name begins like that, the last met first. */
export function matching(start, most) {
  const low = start.toLowerCase();
  const fits = (person) => person.handle.startsWith(low) || person.name.toLowerCase().startsWith(low);
  return [...seen.values()].reverse().filter(fits).slice(0, most);
}

/** Asks for those whom one follows, once, so that their handles can be completed. */
export async function meetFollowees(signal) {
  const me = whoami();
  if (!me) return;
  const page = await get(`${user(me.id)}/following?limit=100`, signal);
  page.items.forEach(meet);
}

/** Somebody's face: their initials on a tint of their own. */
export function face(person, size = "m") {
  const words = (person.name || person.handle).trim().split(/[\s_]+/).filter(Boolean);
  const initials = words.slice(0, 2).map((word) => [...word][0]).join("");
  return h(`span.face.${size}`, { "--hue": hue(person), "aria-hidden": "true" }, initials.toUpperCase());
}

/** The tint of somebody: people who came one after the other are told apart well. */
export const hue = (person) => (Number(BigInt(person.id) % 360n) * 137) % 360;

export const profile = (handle) => `#/@${handle}`;

/** Name and handle, as a link. */
export function named(person) {
  return h("a.named", { href: profile(person.handle) },
    h("span.name", null, person.name || person.handle), " ",
    h("span.handle", null, `@${person.handle}`));
}

/** Whether one has such a tie with somebody: the page of ties that begins with them tells. */
export async function tied(kind, other, signal) {
  const after = BigInt(other) > 0n ? `&after=${BigInt(other) - 1n}` : "";
  const page = await get(`${user(whoami().id)}/${kind}?limit=1${after}`, signal);
  return page.items[0]?.id === other;
}

const TIES = {
  following: { tie: "Follow", tied: "Following", done: "You follow", undone: "You do not follow" },
  friends: { tie: "Befriend", tied: "Friends", done: "You are friends with", undone: "You are not friends with" },
};

/** A button that ties one to somebody and unties. `on` says how it stands; `changed` hears. */
export function tieButton(kind, other, on, changed) {
  const words = TIES[kind];
  const button = h("button.pill", { type: "button", onclick: () => carry(button, toggle) });
  const show = () => {
    button.textContent = on ? words.tied : words.tie;
    button.setAttribute("aria-label", `${button.textContent} @${other.handle}`);
    button.classList.toggle("on", on);
  };
  async function toggle() {
    await ask(on ? "DELETE" : "PUT", `${user(whoami().id)}/${kind}/${other.id}`);
    on = !on;
    show();
    say(`${on ? words.done : words.undone} @${other.handle}.`);
    changed?.(on);
  }
  button.press = () => (on ? null : carry(button, toggle));
  show();
  return button;
}

/** A line about somebody, with what one can do. */
export function line(person, ...actions) {
  meet(person);
  return h("li.person", null, face(person), h("div.who", null, named(person),
    person.bio ? h("p.bio", null, person.bio) : null), ...actions);
}

/** People worth knowing: those who write most among the first hundred, without oneself. */
export async function lively(most, signal) {
  const { items } = await get("/v1/users?limit=100", signal);
  items.forEach(meet);
  const others = items.filter((person) => person.id !== whoami()?.id);
  return others.sort((one, other) => other.post_count - one.post_count || other.follower_count - one.follower_count).slice(0, most);
}
