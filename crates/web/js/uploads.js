// Pictures of a post being written: uploaded as soon as they are chosen, each with a description.

import { send } from "./api.js";
import { h, setChildren } from "./dom.js";
import { icon } from "./icons.js";
import { say, toast, withBusy } from "./say.js";
import { described, isSession } from "./session.js";

/** Maximum number of pictures of a post. */
const PICTURES_MAX = 4;
const DESCRIPTION_MAX = 1500;
const TYPES = "image/jpeg,image/png,image/webp,image/gif";

/** Sends a form to the API for apps, whose errors are texts. */
async function sendForm(method, path, fields) {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields)) body.append(name, value);
  const answer = await send(path, { method, body });
  const result = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(result.error ?? `The server answered ${answer.status}.`);
  return result;
}

/** Adds pictures to the controls of a composer, if this user can upload some. */
export function withPictures(options) {
  if (!isSession() || !described().pictures) return options;
  const chosen = new Map();
  /** Descriptions being saved. */
  const saving = new Set();
  /** Number of uploads in progress. */
  let arriving = 0;
  const list = h("ul.chosen");
  const input = h("input", { type: "file", accept: TYPES, multiple: true, hidden: true, "aria-hidden": "true", tabindex: -1, onchange: add });
  const button = h("button.action", { type: "button", "aria-label": "Add pictures", title: "Add pictures", onclick: () => input.click() }, icon("picture"));

  function changed() {
    button.disabled = chosen.size >= PICTURES_MAX;
    list.dispatchEvent(new Event("input", { bubbles: true }));
  }

  async function add() {
    const files = [...input.files].slice(0, PICTURES_MAX - chosen.size);
    if (files.length < input.files.length) toast(`A post has at most ${PICTURES_MAX} pictures.`, "bad");
    input.value = "";
    await withBusy(button, async () => {
      arriving += 1;
      changed();
      try {
        for (const file of files) {
          show(await sendForm("POST", "/api/v2/media", { file }));
          say("Picture added.");
        }
      } finally {
        arriving -= 1;
        changed();
      }
    });
  }

  function show({ id, preview_url }) {
    const text = h("textarea", { rows: 2, maxlength: DESCRIPTION_MAX, placeholder: "What does the picture show?", "aria-label": "Description of the picture", dir: "auto", onchange: () => save(id, text.value) });
    // The path only: the page may be open under another name of the server.
    const small = h("img", { src: new URL(preview_url, location).pathname, alt: "" });
    const node = h("li", null, small, text, h("button.action", { type: "button", "aria-label": "Remove picture", title: "Remove picture", onclick: () => remove(id) }, icon("close")));
    chosen.set(id, node);
    list.append(node);
    changed();
    text.focus();
  }

  function save(id, description) {
    const one = sendForm("PUT", `/api/v1/media/${id}`, { description }).catch((problem) => toast(problem.message, "bad"));
    saving.add(one);
    one.finally(() => saving.delete(one));
  }

  function remove(id) {
    chosen.get(id).remove();
    chosen.delete(id);
    changed();
    button.focus();
    sendForm("DELETE", `/api/v1/media/${id}`, {}).catch(() => null);
  }

  return {
    ...options,
    more: h("span.choices", null, button, input, options.more),
    under: list,
    fields: () => ({ ...options.fields(), ...(chosen.size ? { media_ids: [...chosen.keys()] } : {}) }),
    set: (fields) => {
      options.set(fields);
      if (fields) return;
      chosen.clear();
      setChildren(list);
      button.disabled = false;
    },
    disable: (on) => {
      options.disable(on);
      button.disabled = on || chosen.size >= PICTURES_MAX;
      list.inert = on;
    },
    isFilled: () => chosen.size > 0,
    isBusy: () => arriving > 0,
    ready: () => Promise.all(saving),
  };
}
