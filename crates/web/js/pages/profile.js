// Profile of a user: posts, follows, followers and friends, with buttons to follow and befriend, and a menu to mute and
// block.

import { ask, get, paged, user, visible } from "../api.js";
import { confirmFirst } from "../confirm.js";
import { drop, h, setChildren } from "../dom.js";
import { Feed, fault, skeleton } from "../feed.js";
import { icon } from "../icons.js";
import { live } from "../live.js";
import { article } from "../post.js";
import { face, profile, relation as related, relationButton, remember, userItem } from "../people.js";
import { say, withBusy } from "../say.js";
import { forgetRanking } from "./for-you.js";
import { answers } from "./notifications.js";
import { reload } from "../route.js";
import { become, isSession, logOut, whoami } from "../session.js";

const LISTS = { followers: "Followers", following: "Following", friends: "Friends" };
const COUNTS = { followers: "follower_count", following: "following_count", friends: "friend_count" };
/** Private lists of the user. */
const OWN = { favourites: "Favourites", bookmarks: "Bookmarks", requests: "Requests", mutes: "Muted", blocks: "Blocked" };
/** Private lists of users, with the buttons for each. */
const ANSWERS = { requests: answers, mutes: ending("mutes", "Unmute"), blocks: ending("blocks", "Unblock") };
const NOBODY = { mutes: "mutes nobody", blocks: "blocks nobody", requests: "has no follow requests", followers: "has no followers yet", following: "follows nobody yet", friends: "has no friends yet" };

export async function render({ main, signal, handle, list, at }) {
  setChildren(main, h("header.head", null, h("h1", null, `@${handle}`)), skeleton(2));
  const [person, relation] = await Promise.all([found(handle, signal), whoami() ? related(handle, signal) : null]);
  if (!person && relation?.blocking) return setChildren(main, blocked(handle));
  if (!person) return setChildren(main, unknown(handle));
  remember(person);
  document.title = `${person.name || person.handle} · roost`;
  const counts = h("nav.tabs", { "aria-label": "Profile" });
  const own = person.id === whoami()?.id ? Object.keys(OWN).filter((name) => name !== "requests" || person.locked || list === name) : [];
  const lists = Object.keys(LISTS).filter((name) => name !== "friends" || !isSession());
  const tabs = () => setChildren(counts, tab("Posts", "", person.post_count), ...lists.map((name) => tab(LISTS[name], name, person[COUNTS[name]])),
    ...own.map((name) => tab(OWN[name], name)));
  const tab = (title, name, count) => h("a", { href: `${profile(person.handle)}${name && `/${name}`}`, "aria-current": name === list ? "page" : null },
    count === undefined ? null : h("b", null, String(count)), count === undefined ? title : ` ${title}`);
  tabs();
  const buttons = h("div.ties");
  const below = h("div");
  setChildren(main, card(person, buttons), counts, below);
  relationButtons(person, relation, buttons, (kind, change) => {
    if (kind === "following") person.follower_count += change;
    else person.friend_count += change;
    tabs();
  });
  if (lists.includes(list)) return people(person, list, below, signal);
  if (list in ANSWERS && own.includes(list)) return people(person, list, below, signal);
  if (own.includes(list)) return reacted(person, list, below, signal);
  const holds = (post) => post.author.id === person.id;
  const feed = new Feed({ own: false, path: `${user(person.id)}/posts`, label: `Posts by ${person.name || person.handle}`, empty: () => silent(person), signal, holds, at });
  live.addEventListener("post", ({ detail }) => {
    if (holds(detail) && feed.loaded) feed.own(detail);
  }, { signal });
  const pins = h("section.pins", { "aria-label": "Pinned posts" });
  setChildren(below, pins, feed.node);
  await Promise.all([feed.load(), pinned(person, pins, signal).catch(() => null)]);
}

/** Shows the pinned posts above the others. */
async function pinned(person, pins, signal) {
  const { items } = await get(visible(`${user(person.id)}/pins?limit=100`), signal);
  const shown = items.map((post) => {
    const node = article(post, { gone: () => drop(node) });
    node.prepend(h("p.pinned", null, icon("pin"), "Pinned"));
    return node;
  });
  setChildren(pins, ...shown);
}

/** Shows the posts that the user favourited or bookmarked, most recent first. */
async function reacted(person, list, below, signal) {
  const posts = h("div.posts");
  const more = h("button.pill", { type: "button", hidden: true }, "Show more");
  setChildren(below, skeleton(3));
  const path = `${user(person.id)}/${list}?limit=30`;
  let next = null;
  async function load() {
    const page = await get(paged(path, next), signal);
    next = page.next;
    posts.append(...page.items.map((post) => {
      const node = article(post, { gone: () => drop(node) });
      return node;
    }));
    more.hidden = !next;
    if (posts.children.length || next) return setChildren(below, h("section.feed", { "aria-label": OWN[list] }, posts), more);
    const what = list === "favourites" ? "favourited" : "bookmarked";
    return setChildren(below, h("div.blank", null, icon(list.slice(0, -1)), h("h2", null, `You have not ${what} any posts`),
      h("a.pill", { href: "#/home" }, "Go to your timeline")));
  }
  more.addEventListener("click", () => withBusy(more, load));
  await load().catch((problem) => {
    if (!signal.aborted) setChildren(below, fault(problem, () => reacted(person, list, below, signal)));
  });
}

function card(person, buttons) {
  const since = new Intl.DateTimeFormat("en", { dateStyle: "long" }).format(new Date(person.created_at));
  return h("header.profile", null,
    h("div.top", null, face(person, "l"), buttons),
    h("h1", null, person.name || person.handle),
    h("p.handle", null, `@${person.handle}`, person.locked ? h("span.private", null, icon("lock"), "Approves followers") : null),
    person.bio ? h("p.about", { dir: "auto" }, person.bio) : null,
    h("p.since", null, `Joined ${since}`));
}

function relationButtons(person, relation, buttons, changed) {
  const me = whoami();
  if (!me) return;
  if (me.id === person.id) {
    const out = h("button.pill.quiet", { type: "button", onclick: () => withBusy(out, logOut) }, "Log out");
    setChildren(buttons, h("button.pill", { type: "button", onclick: () => edit(person) }, "Edit profile"),
      ...(isSession() ? [h("a.pill", { href: "/settings" }, "Account"), out] : [h("a.pill.quiet", { href: "#/who" }, "Switch user")]));
    return;
  }
  if (!relation) return;
  const button = (kind, on) => relationButton(kind, person, on, (is) => changed(kind, is ? 1 : -1), kind === "following" && relation.requested);
  setChildren(buttons, button("following", relation.following), isSession() ? null : button("friends", relation.friends), limits(person, relation));
}

/** Creates the menu to mute and block a user. */
function limits(person, { muting }) {
  const item = (words, doing) => {
    const button = h("button", { type: "button", onclick: () => withBusy(button, doing) }, words);
    return button;
  };
  const path = (list) => `${user(whoami().id)}/${list}/${person.id}`;
  async function mute() {
    if (muting) await ask("DELETE", path("mutes"));
    else await ask("PUT", path("mutes"), { json: {} });
    say(muting ? `@${person.handle} is not muted.` : `@${person.handle} is muted.`);
    forgetRanking();
    reload();
  }
  async function block() {
    await ask("PUT", path("blocks"));
    say(`@${person.handle} is blocked.`);
    forgetRanking();
    reload();
  }
  const question = h("div");
  const blocking = h("button.bad", { type: "button", onclick: () => confirmFirst(blocking, `Block @${person.handle}?`, "Block", block) }, "Block");
  setChildren(question, blocking);
  const menu = h("details.menu", { onkeydown: ({ key }) => { if (key === "Escape") close(); } },
    h("summary.pill", { "aria-label": "More", title: "More" }, icon("more")),
    h("div", null, item(muting ? "Unmute" : "Mute", mute), question));
  function close() {
    menu.open = false;
    menu.firstElementChild.focus();
  }
  menu.addEventListener("focusout", ({ relatedTarget }) => { if (relatedTarget && !menu.contains(relatedTarget)) menu.open = false; });
  return menu;
}

async function people(person, list, below, signal) {
  const items = h("ul.people");
  const more = h("button.pill", { type: "button" }, "Show more");
  setChildren(below, skeleton(3));
  const path = `${user(person.id)}/${list === "requests" ? "follow_requests" : list}?limit=50`;
  const first = list in ANSWERS ? path : visible(path);
  let next = null;
  async function load() {
    const page = await get(paged(first, next), signal);
    next = page.next;
    if (!items.isConnected) setChildren(below, h("section", { "aria-label": LISTS[list] ?? OWN[list] }, items), more);
    items.append(...page.items.map((one) => userItem(one, ANSWERS[list]?.(one))));
    more.hidden = !next;
    if (items.children.length === 0) {
      setChildren(below, h("div.blank", null, icon("people"), h("h2", null, `@${person.handle} ${NOBODY[list]}`),
        h("a.pill", { href: profile(person.handle) }, "View posts")));
    }
  }
  more.addEventListener("click", () => withBusy(more, load));
  await load().catch((problem) => {
    if (!signal.aborted) setChildren(below, fault(problem, () => people(person, list, below, signal)));
  });
}

function edit(person) {
  const name = h("input", { id: "name", maxlength: 50, value: person.name, autocomplete: "off" });
  const bio = h("textarea", { id: "bio", rows: 4, maxlength: 500 }, person.bio);
  const locked = h("input", { id: "locked", type: "checkbox", checked: person.locked });
  const save = h("button.pill.main", { type: "submit" }, "Save");
  const dialog = h("dialog.sheet", { "aria-labelledby": "edit-title" },
    h("form", { onsubmit: (event) => { event.preventDefault(); withBusy(save, send); } },
      h("h2", { id: "edit-title" }, "Edit profile"),
      h("label", { for: "name" }, "Name"), name,
      h("label", { for: "bio" }, "Bio"), bio,
      h("label.check", { for: "locked" }, locked, "Approve new followers"),
      h("div.below", null, h("button.pill.quiet", { type: "button", onclick: () => dialog.close() }, "Cancel"), save)));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  async function send() {
    const changed = await ask("PATCH", user(person.id), { json: { name: name.value, bio: bio.value, locked: locked.checked } });
    dialog.close();
    become(changed);
    say("Profile saved.");
    reload();
  }
}

function silent(person) {
  const mine = person.id === whoami()?.id;
  return h("div.blank", null, icon("profile"), h("h2", null, mine ? "You have not posted yet" : `@${person.handle} has not posted yet`),
    mine ? h("a.pill.main", { href: "#/home" }, "Write a post") : h("a.pill", { href: "#/home" }, "Go to your timeline"));
}

/** Loads a profile, or null if it does not exist for the current user. */
function found(handle, signal) {
  return get(visible(user(`@${handle}`)), signal).catch((problem) => {
    if (problem.status !== 404 && problem.status !== 422) throw problem;
    return null;
  });
}

/** Returns a function that creates the button to end a block or mute in a list. */
function ending(list, verb) {
  return (person) => {
    const button = h("button.pill", { type: "button", "aria-label": `${verb} @${person.handle}` }, verb);
    button.addEventListener("click", () => withBusy(button, async () => {
      await ask("DELETE", `${user(whoami().id)}/${list}/${person.id}`);
      say(list === "blocks" ? `@${person.handle} is not blocked.` : `@${person.handle} is not muted.`);
      drop(button.closest("li"));
    }));
    return button;
  };
}

/** Creates the page of a user whom the current user blocks. */
function blocked(handle) {
  const button = h("button.pill", { type: "button", onclick: () => withBusy(button, unblock) }, "Unblock");
  async function unblock() {
    await ask("DELETE", `${user(whoami().id)}/blocks/@${handle}`);
    say(`@${handle} is not blocked.`);
    reload();
  }
  return h("div.blank", null, icon("profile"), h("h1", null, `You block @${handle}`),
    h("p", null, "You cannot see each other, or each other's posts."), button);
}

function unknown(handle) {
  return h("div.blank", null, icon("profile"), h("h1", null, `There is no user @${handle}`),
    h("p", null, "The handle may be misspelled."), h("a.pill.main", { href: "#/home" }, "Go to Home"));
}
