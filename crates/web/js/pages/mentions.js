// Mentions: posts that name one, live.

import { user } from "../api.js";
import { h, put } from "../dom.js";
import { Feed } from "../feed.js";
import { icon } from "../icons.js";
import { live } from "../live.js";
import { whoami } from "../session.js";

export async function render({ main, signal }) {
  const feed = new Feed({ path: `${user(whoami().id)}/mentions`, label: "Mentions", empty, signal });
  live.addEventListener("mention", ({ detail }) => feed.own(detail), { signal });
  live.addEventListener("fresh", () => (feed.ids().length ? feed.load() : null), { signal });
  put(main, h("header.head", null, h("h1", null, "Mentions")), feed.node);
  await feed.load();
}

function empty() {
  return h("div.blank", null, icon("mentions"), h("h2", null, "Nobody has mentioned you yet"),
    h("p", null, `When somebody writes @${whoami().handle}, it comes here at once.`));
}
