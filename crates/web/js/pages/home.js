// Home: the timeline of the people one follows, live. What comes while one reads waits behind a bar,
// so that nothing moves under the eyes.

import { get, user } from "../api.js";
import { composer } from "../compose.js";
import { h, put } from "../dom.js";
import { Feed } from "../feed.js";
import { icon } from "../icons.js";
import { live } from "../live.js";
import { line, lively, tieButton, tied } from "../people.js";
import { murmur } from "../say.js";
import { whoami } from "../session.js";
import { tray } from "../tray.js";

/** Of so many posts the bar keeps hold; if more came, the newest page is loaded instead. */
const WAITING_MAX = 60;

export async function render({ main, aside, signal }) {
  const me = whoami();
  const path = `${user(me.id)}/timeline`;
  const feed = new Feed({ path, label: "Timeline", empty: () => empty(() => feed.load()), signal });
  const bar = waiting(feed, signal);
  // Asked for first: the posts are what one came for.
  const loaded = feed.load();
  put(main,
    h("header.head", null, h("h1", null, "Home")),
    tray({ signal }),
    composer({ label: "Write a post", hint: "What is happening?", sent: (post) => feed.own(post) }),
    bar, feed.node);
  await loaded;
  // A home without posts makes suggestions itself.
  const page = feed.ids().length ? await suggestions(signal).catch(() => null) : null;
  if (page && !signal.aborted) {
    aside.hidden = false;
    put(aside, page);
  }
}

/** The bar behind which new posts wait. */
function waiting(feed, signal) {
  const posts = new Map();
  const button = h("button.fresh", { type: "button", onclick: open }, "");
  const bar = h("div.freshbar", { hidden: true }, button);
  let more = false;

  function show() {
    const count = more ? `${WAITING_MAX}+` : String(posts.size);
    const words = `${count} new ${posts.size === 1 ? "post" : "posts"}`;
    bar.hidden = posts.size === 0;
    put(button, icon("up"), h("span", null, words));
    if (posts.size) murmur(() => (posts.size ? `${words}.` : ""));
  }

  function take(post) {
    if (feed.has(post.id)) return;
    if (post.author.id === whoami().id && !feed.cut) return feed.add([post]);
    posts.set(post.id, post);
    if (posts.size > WAITING_MAX) {
      posts.delete(posts.keys().next().value);
      more = true;
    }
    show();
  }

  async function open() {
    const fresh = [...posts.values()].filter((post) => !feed.has(post.id));
    const anew = more || feed.cut;
    posts.clear();
    more = false;
    show();
    if (anew) await feed.load();
    else feed.add(fresh);
    scrollTo({ top: 0 });
    const ids = new Set(fresh.map((post) => post.id));
    for (const node of feed.list.children) if (ids.has(node.dataset.id)) node.classList.add("new");
    feed.list.querySelector("a.named")?.focus({ preventScroll: true });
  }

  /** Closes the gap between what was loaded and where the stream begins. */
  async function catchUp() {
    const top = feed.ids()[0];
    if (!top || feed.cut) return;
    const page = await get(`${feed.path}?limit=${WAITING_MAX}&after=${top}`, signal).catch(() => null);
    if (!page || signal.aborted) return;
    page.items.reverse().forEach(take);
    more ||= page.prev !== null;
    show();
  }

  live.addEventListener("post", ({ detail }) => {
    // The first post of a home that was empty has nothing to push away.
    if (feed.ids().length === 0) feed.own(detail);
    else take(detail);
  }, { signal });
  live.addEventListener("fresh", catchUp, { signal });
  return bar;
}

/** People to follow, each with a button; `changed` hears when one is followed. */
async function candidates(most, signal, changed) {
  const people = await lively(30, signal);
  const found = [];
  for (const person of people) {
    if (found.length === most) break;
    if (!(await tied("following", person.id, signal))) found.push(person);
  }
  return found.map((person) => {
    const button = tieButton("following", person, false, changed);
    return { node: line(person, button), button };
  });
}

async function suggestions(signal) {
  const found = await candidates(4, signal);
  if (found.length === 0) return null;
  return h("section.card", null, h("h2", null, "People to follow"), h("ul.people", null, ...found.map(({ node }) => node)));
}

/** What a home without posts shows: whom to follow, so that it fills. */
function empty(reload) {
  const list = h("ul.people");
  const all = h("button.pill.main", { type: "button", hidden: true }, "Follow all of them");
  const words = h("p", null, "Posts of the people you follow come here, the moment they are written.");
  const node = h("div.blank", null, icon("people"), h("h2", null, "Your home is still quiet"), words, all, list);
  candidates(8).then((found) => {
    if (found.length === 0) {
      words.textContent = "Nobody else is here yet. Write something: whoever follows you will see it at once.";
      return;
    }
    put(list, ...found.map((one) => one.node));
    all.hidden = false;
    all.addEventListener("click", async () => {
      for (const { button } of found) await button.press();
      await reload();
    });
  }).catch(() => null);
  return node;
}
