// The newest posts with a hashtag.

import { h, put } from "../dom.js";
import { Feed } from "../feed.js";
import { live } from "../live.js";

export async function render({ main, signal, tag, at }) {
  const name = `#${tag.replace(/^#/, "").toLowerCase()}`;
  document.title = `${name} · roost`;
  const empty = () => h("div.blank", null, h("h2", null, `No posts with ${name}`), h("a.pill", { href: "#/home" }, "Go to your timeline"));
  const path = `/v1/tags/${encodeURIComponent(name.slice(1))}/posts`;
  const feed = new Feed({ own: false, path, label: `Posts with ${name}`, empty, signal, holds: () => false, at });
  live.addEventListener("fresh", () => (feed.ids().length && scrollY === 0 ? feed.load() : null), { signal });
  put(main, h("header.head", null, h("h1", { dir: "auto" }, name)), feed.node);
  await feed.load();
}
