// Page of posts that mention the user, live.

import { user } from "../api.js";
import { h, setChildren } from "../dom.js";
import { Feed } from "../feed.js";
import { icon } from "../icons.js";
import { live } from "../live.js";
import { profile } from "../people.js";
import { whoami } from "../session.js";
import { head } from "./notifications.js";

export async function render({ main, signal, at }) {
  const me = whoami();
  // The user's own posts belong here only if they mention the user.
  const holds = (post) => post.mentions.some(({ id }) => id === me.id);
  const feed = new Feed({ path: `${user(me.id)}/mentions`, label: "Mentions", empty, signal, holds, at });
  live.addEventListener("mention", ({ detail }) => feed.own(detail), { signal });
  setChildren(main, ...head("mentions"), feed.node);
  await feed.load();
}

function empty() {
  const { handle } = whoami();
  return h("div.blank", null, icon("mentions"), h("h2", null, "No mentions yet"),
    h("p", null, `Posts that contain @${handle} appear here. Reply to a post to show its author your handle.`),
    h("div.row", null, h("a.pill.main", { href: "#/home" }, "Go to your timeline"), h("a.pill", { href: profile(handle) }, "View your profile")));
}
