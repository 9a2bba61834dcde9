// Page of the newest posts with a hashtag.

import { h, setChildren } from "../dom.js";
import { Feed } from "../feed.js";
import { icon } from "../icons.js";

export async function render({ main, signal, tag, at }) {
  const name = `#${tag.replace(/^#/, "").toLowerCase()}`;
  document.title = `${name} · roost`;
  const home = () => h("a.pill", { href: "#/home" }, "Go to your timeline");
  const empty = () => h("div.blank", null, h("h2", null, `No posts with ${name}`), home());
  const refused = ({ status }) => ([404, 422].includes(status) ? h("div.blank", null, icon("search"), h("h2", null, "This is not a hashtag"),
    h("p", null, "A hashtag has letters, digits and underscores, and at least one letter."), home()) : null);
  const path = `/v1/tags/${encodeURIComponent(name.slice(1))}/posts`;
  const feed = new Feed({ own: false, path, label: `Posts with ${name}`, empty, refused, signal, holds: () => false, at });
  setChildren(main, h("header.head", null, h("h1", { dir: "auto" }, name)), feed.node);
  await feed.load();
}
