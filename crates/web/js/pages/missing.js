// Page for unknown addresses.

import { h, setChildren } from "../dom.js";
import { icon } from "../icons.js";

export function render({ main }) {
  setChildren(main, h("div.blank", null, icon("search"), h("h1", null, "Page not found"),
    h("p", null, "There is no page at this address. It may be misspelled."),
    h("code", null, location.hash),
    h("a.pill.main", { href: "#/home" }, "Go to Home")));
}
