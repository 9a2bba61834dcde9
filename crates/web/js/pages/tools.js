// Page with links to the tools outside of the feed. On a phone they share one tab.

import { h, setChildren } from "../dom.js";
import { icon } from "../icons.js";

const TOOLS = [
  ["draw", "#/draw", "Draw", "Recognize drawings by their nearest samples"],
  ["buckets", "#/buckets", "Buckets", "Browse and edit keys and values"],
  ["dashboard", "#/dashboard", "Dashboard", "Requests, latency, memory and disk of the last hour"],
  ["api", "/docs/", "API", "Try every endpoint of the HTTP API"],
];

export function render({ main }) {
  setChildren(main, h("header.head", null, h("h1", null, "Tools")),
    h("ul.toolbox", null, ...TOOLS.map(([name, href, title, words]) => h("li", null,
      h("a", { href }, icon(name), h("span", null, h("b", null, title), h("span", null, words)), icon("right"))))));
}
