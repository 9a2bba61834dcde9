// Edit history of a post.

import { get, visible } from "./api.js";
import { h } from "./dom.js";
import { rich } from "./text.js";
import { when } from "./time.js";

/** Opens a sheet with the versions of a post, newest first. */
export async function versions(post) {
  const { items } = await get(visible(`/v1/posts/${post.id}/history`));
  const close = h("button.pill", { type: "button", onclick: () => dialog.close() }, "Close");
  const dialog = h("dialog.sheet", { "aria-labelledby": "history-title" },
    h("h2", { id: "history-title" }, "Edit history"),
    h("ol.versions", { reversed: true }, ...items.map((version, at) => shown(version, post, at)).reverse()),
    h("div.below", null, close));
  const leave = new AbortController();
  addEventListener("hashchange", () => dialog.close(), { signal: leave.signal });
  dialog.addEventListener("close", () => {
    leave.abort();
    dialog.remove();
  });
  document.body.append(dialog);
  dialog.showModal();
  close.focus();
}

const shown = ({ text, warning, media_ids: media, created_at: at }, { mentions }, place) => h("li", null,
  h("p.since", null, place === 0 ? "Written " : "Edited ", when(at)),
  warning ? h("p.warning", { dir: "auto" }, h("span", null, "Content warning: "), warning) : null,
  text ? h("p.text", { dir: "auto" }, ...rich(text, mentions, true)) : null,
  media.length ? h("p.since", null, media.length === 1 ? "1 picture" : `${media.length} pictures`) : null);
