// Sheet for one key: its expiry, and its value as text, or as hexadecimal if it is not text. Saving fails if the value
// was changed meanwhile. Unedited parts stay the same, to the byte.

import { ask, now, send, thrown } from "./api.js";
import { h } from "./dom.js";
import { respell } from "./lines.js";
import { say, withBusy } from "./say.js";
import { left } from "./time.js";

const KEEP = "keep";
const LIVES = [["", "Never"], [10, "in 10 seconds"], [60, "in 1 minute"], [3600, "in 1 hour"], [86400, "in 1 day"]];
/** Maximum number of bytes shown of a binary value. */
const HEX_MAX = 4096;

/** Opens the sheet for `entry` of the bucket at the path `bucket`, or for a new key. Calls `done` after changes. */
export async function sheet({ bucket, entry, signal, done }) {
  const found = entry && await read(`${bucket}/keys/${entry.key}`, signal);
  const key = h("input", { id: "key-name", required: true, autocomplete: "off", spellcheck: "false", readonly: Boolean(entry), value: entry ? plain(entry.key) : "" });
  const value = h("textarea.mono", { id: "key-value", rows: 6, spellcheck: "false", readonly: found?.text === null }, found ? found.text ?? hex(found.bytes) : "");
  const lives = found?.ends ? [[KEEP, `unchanged, in ${left(found.ends - now())}`], ...LIVES] : LIVES;
  const life = h("select", { id: "key-life" }, ...lives.map(([secs, words]) => h("option", { value: secs }, words)));
  const wrong = h("p.wrong", { role: "alert" });
  const save = h("button.pill.main", { type: "submit", disabled: found?.text === null }, "Save");
  const remove = entry ? h("button.pill.quiet", { type: "button", onclick: () => withBusy(remove, erase) }, "Delete key") : null;
  const dialog = h("dialog.sheet", { "aria-labelledby": "key-title" },
    h("form", { onsubmit: (event) => { event.preventDefault(); withBusy(save, write); } },
      h("h2", { id: "key-title" }, entry ? "Edit key" : "Add key"),
      h("label", { for: "key-name" }, "Key"), key,
      h("label", { for: "key-value" }, found?.text === null ? `Value, ${found.bytes.length} bytes that are not text` : "Value"), value,
      h("label", { for: "key-life" }, "Expires"), life,
      wrong,
      h("div.below", null, remove, h("button.pill.quiet", { type: "button", onclick: () => dialog.close() }, "Cancel"), save)));
  dialog.addEventListener("close", () => dialog.remove());
  signal.addEventListener("abort", () => dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  (entry ? value : key).focus();
  const where = () => `${bucket}/keys/${entry ? entry.key : encodeURIComponent(key.value)}`;

  async function write() {
    const condition = entry ? (found.tag ? { "If-Match": found.tag } : {}) : { "If-None-Match": "*" };
    const query = life.value === KEEP ? "?keep_ttl=true" : life.value ? `?ttl_s=${life.value}` : "";
    const body = found ? respell(found.text, value.value) : value.value;
    const answer = await send(where() + query, { method: "PUT", headers: { ...condition, "Content-Type": "application/octet-stream" }, body });
    if (answer.status === 412) {
      wrong.textContent = entry ? "This key has changed. Close it and open it again." : "This key already exists.";
      return;
    }
    if (!answer.ok) await thrown(answer);
    finish("Key saved.");
  }

  async function erase() {
    await ask("DELETE", where());
    finish("Key deleted.");
  }

  function finish(words) {
    dialog.close();
    say(words);
    done();
  }
}

async function read(path, signal) {
  const answer = await send(path, { signal });
  if (!answer.ok) await thrown(answer);
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const ends = Date.parse(answer.headers.get("x-expires-at")) || null;
  return { bytes, text: text(bytes), ends, tag: answer.headers.get("etag") };
}

/** Decodes bytes as text; null if they are not UTF-8 or contain control characters. */
function text(bytes) {
  try {
    const read = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return /[\u0000-\u0008\u000e-\u001f]/.test(read) ? null : read;
  } catch {
    return null;
  }
}

function hex(bytes) {
  const digits = Array.from(bytes.subarray(0, HEX_MAX), (byte) => byte.toString(16).padStart(2, "0"));
  return digits.join(" ") + (bytes.length > HEX_MAX ? " …" : "");
}

function plain(key) {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}
