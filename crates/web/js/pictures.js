// The pictures of a post.

import { h } from "./dom.js";

/** The pictures, each with what it shows in words; null if the post has none. */
export function pictures({ media }) {
  return media?.length ? h("div.pictures", null, ...media.map(picture)) : null;
}

/** A small picture that leads to the whole one. It is as high before it has arrived. */
function picture({ url, preview_url, width, height, description }) {
  const alt = description || "Picture without a description";
  return h("figure", null,
    h("a", { href: url, target: "_blank", rel: "noopener" },
      h("img", { loading: "lazy", decoding: "async", width, height, alt, src: preview_url })),
    description ? h("details", null, h("summary", null, "Description"), h("p", { dir: "auto" }, description)) : null);
}
