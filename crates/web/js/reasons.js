// Reasons why a post is in a ranked feed: one in a line above the post, all of them after a click on a button, which also loads
// the score and the features.

import { h, setChildren } from "./dom.js";
import { icon } from "./icons.js";
import { profile } from "./people.js";
import { left } from "./time.js";

const languages = new Intl.DisplayNames("en", { type: "language", fallback: "code" });
const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** Icon and words of each kind of reason. */
const KINDS = {
  followed: ["profile", (reason, { author }) => ["You follow ", name(author)]],
  at_home: ["boost", () => ["In your timeline, by a boost or a hashtag that you follow"]],
  liked_by_followed: ["favourite", (reason) => ["Favourited or boosted by ", ...users(reason)]],
  hashtag: ["search", ({ tag }) => ["Popular in ", h("a", { href: `#/tags/${encodeURIComponent(tag)}` }, `#${tag}`)]],
  group: ["people", () => ["Popular among users with your interests"]],
  popular_in_language: ["favourite", ({ language }) => [`Popular in ${spoken(language)}`]],
  popular: ["favourite", () => ["Popular on this server"]],
  new_author: ["plus", (reason, { author }) => [name(author), " has few posts so far"]],
};

/** Labels of features, and the format of those that are not plain numbers. */
const FEATURES = {
  age: ["Age", (seconds) => left(seconds * 1000)],
  likes: ["Favourites"],
  boosts: ["Boosts"],
  replies: ["Users who replied"],
  followed: ["You follow the author", yes],
  affinity: ["Share of the author in your last reactions", percent],
  liked_by_followed: ["Users whom you follow and who favourited or boosted it"],
  tags: ["Hashtags that you follow or use"],
  group: ["Popular among users with your interests", yes],
  language: ["In a language that you use", yes],
  new_author: ["The author has few posts so far", yes],
  less: ["Hashtags or author of posts of which you want less"],
  seen: ["Times you have seen it"],
  random: ["Random number"],
};

function yes(value) {
  return value ? "yes" : "no";
}

function percent(value) {
  return `${Math.round(value * 100)} %`;
}

const name = (person) => h("a", { href: profile(person.handle) }, h("bdi", null, person.name || person.handle));

/** Joins the names of users and the number of others: "Ada, Bob and 2 others whom you follow". */
function users({ users: named = [], others = 0 }) {
  const parts = named.map(name);
  const noun = named.length ? "other" : "user";
  if (others) parts.push(`${others} ${others === 1 ? noun : `${noun}s`} whom you follow`);
  return parts.flatMap((part, at) => (at === 0 ? [part] : [at === parts.length - 1 ? " and " : ", ", part]));
}

function spoken(language) {
  try {
    return languages.of(language);
  } catch {
    return language;
  }
}

/** Words of a reason. A server may have kinds that this page does not know. */
const words = (reason, post) => KINDS[reason.kind]?.[1](reason, post) ?? ["Chosen for you"];

/** Number of explanations so far, for unique ids. */
let shown = 0;

/**
 * Adds the first reason to the article of a ranked post, and a button that shows or hides the explanation, which ends
 * with these controls. `explain` loads the score and the features.
 */
export function reasoned(node, { post, reasons }, controls, explain) {
  const [first] = reasons;
  const numbers = h("div");
  let isLoaded = false;
  const id = `why-${shown += 1}`;
  const more = h("div.why", { id, hidden: true });
  const button = h("button", { type: "button", "aria-expanded": "false", "aria-controls": id, onclick: toggle }, "Why?");
  function toggle() {
    if (!more.firstChild) more.append(h("ul", null, ...reasons.map((reason) => h("li", null, ...words(reason, post)))), numbers, h("p", null, ...controls));
    more.hidden = !more.hidden;
    button.setAttribute("aria-expanded", String(!more.hidden));
    if (!more.hidden && !isLoaded) load();
  }
  async function load() {
    isLoaded = true;
    try {
      setChildren(numbers, table(await explain()));
    } catch (problem) {
      // The next click tries again.
      isLoaded = false;
      setChildren(numbers, h("p", null, problem.message));
    }
  }
  node.querySelector(".body").prepend(
    h("p.reason", null, icon(KINDS[first?.kind]?.[0] ?? "favourite"), h("span", null, h("span", null, ...words(first ?? {}, post)), " ", button)), more);
  return node;
}

/** Creates the table of the score and the features. */
function table({ score, features }) {
  const known = Object.keys(FEATURES).filter((feature) => feature in features);
  const others = Object.keys(features).filter((feature) => !(feature in FEATURES));
  const row = (title, value) => h("tr", null, h("th", { scope: "row" }, title), h("td", null, value));
  const rows = [...known, ...others].filter((feature) => features[feature] !== 0).map((feature) => {
    const [title = feature, format = (value) => number.format(value)] = FEATURES[feature] ?? [];
    return row(title, format(features[feature]));
  });
  return h("table", null, h("caption", null, "Numbers as of now; all others are 0"), h("tbody", null, row("Score", number.format(score)), ...rows));
}
