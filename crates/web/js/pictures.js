// Pictures of a post.

import { h } from "./dom.js";

/** Creates the pictures with their descriptions; null if the post has none. */
export function pictures({ media }) {
  return media?.length ? h("div.pictures", null, ...media.map(picture)) : null;
}

/** Creates a preview that links to the whole picture. Reserves its height before it is loaded. */
function picture({ url, preview_url, width, height, description }) {
  const alt = description || "Picture without a description";
  return h("figure", null,
    h("a", { href: url, target: "_blank", rel: "noopener" },
      h("img", { loading: "lazy", decoding: "async", width, height, alt, src: preview_url })),
    description ? h("details", null, h("summary", null, "Description"), h("p", { dir: "auto" }, description)) : null);
}
