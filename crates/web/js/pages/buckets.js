// Page of buckets: named maps of keys and values. Lists, shows, edits and deletes them. Keys and values are bytes,
// shown as text or else as hexadecimal.

import { ask, get, now, paged } from "../api.js";
import { h, setChildren } from "../dom.js";
import { fault, skeleton } from "../feed.js";
import { icon } from "../icons.js";
import { say, toast, withBusy } from "../say.js";
import { left } from "../time.js";
import { sheet } from "../value.js";

const PAGE = 50;
const path = (bucket) => `/v1/buckets/${encodeURIComponent(bucket)}`;
const link = (bucket) => `#/buckets/${encodeURIComponent(bucket)}`;

/** Formats a size with its unit. */
function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  const power = Math.min(3, Math.floor(Math.log10(bytes) / 3));
  return `${+(bytes / 1000 ** power).toPrecision(3)} ${["", "kB", "MB", "GB"][power]}`;
}

/** Decodes a key for display, if it is text. */
function shown(key) {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

export async function render({ main, signal, about }) {
  const list = h("ul.buckets");
  const inside = h("section.inside", { "aria-label": "Keys" });
  setChildren(main, h("header.head", null, h("h1", null, "Buckets")), skeleton(2));
  const page = await get("/v1/buckets?limit=100", signal);
  setChildren(main, h("header.head", null, h("h1", null, "Buckets")),
    h("div.shelf", null, h("nav", { "aria-label": "Buckets" }, list, maker()), inside));
  setChildren(list, ...page.items.map((bucket) => h("li", null,
    h("a", { href: link(bucket.name), "aria-current": bucket.name === about ? "page" : null },
      h("b", null, bucket.name), h("span", null, `${bucket.key_count.toLocaleString("en")} ${bucket.key_count === 1 ? "key" : "keys"}, ${size(bucket.size_bytes)}`)))));
  const open = page.items.find((bucket) => bucket.name === about) ?? null;
  if (open) return keys(open, inside, signal);
  if (about) return setChildren(inside, h("div.blank", null, icon("buckets"), h("h2", null, `There is no bucket ${about}`), h("a.pill.main", { href: "#/buckets" }, "View all buckets")));
  if (page.items.length) return location.replace(link(page.items[0].name));
  return setChildren(inside, h("div.blank", null, icon("buckets"), h("h2", null, "No buckets yet"),
    h("p", null, "A bucket is a named map: keys and values of any bytes, with optional expiry. Create one here, or with any Redis client."),
    h("button.pill.main", { type: "button", onclick: () => document.getElementById("new-bucket").focus() }, "Create a bucket")));
}

function maker() {
  const field = h("input", { id: "new-bucket", autocomplete: "off", spellcheck: "false", placeholder: "settings", maxlength: 64 });
  const make = h("button.pill", { type: "submit" }, "Create");
  return h("form.maker", { onsubmit: (event) => {
    event.preventDefault();
    const name = field.value.trim();
    if (name) withBusy(make, async () => {
      await ask("PUT", path(name));
      say(`Created the bucket ${name}.`);
      location.hash = link(name);
    });
  } }, h("label", { for: "new-bucket" }, "New bucket"), h("div.row", null, field, make));
}

async function keys(bucket, inside, signal) {
  const rows = h("tbody");
  const filter = h("input", { type: "search", "aria-label": "Filter keys by prefix", placeholder: "Filter by prefix…", spellcheck: "false" });
  const more = h("button.pill", { type: "button", hidden: true }, "Show more");
  const none = h("p.end", { hidden: true });
  const add = h("button.pill.main", { type: "button", onclick: () => edit(null) }, icon("plus"), "Add key");
  const remove = h("button.pill.quiet", { type: "button", onclick: () => drop() }, "Delete bucket");
  setChildren(inside,
    h("header", null, h("h2", null, bucket.name), remove),
    h("div.row", null, filter, add),
    h("table.keys", null, h("thead", null, h("tr", null, ...["Key", "Size", "Expires"].map((title) => h("th", { scope: "col" }, title)))), rows),
    none, more);
  let next = null;
  let asked = 0;

  async function load(fresh) {
    asked += 1;
    const turn = asked;
    const first = `${path(bucket.name)}/keys?limit=${PAGE}&prefix=${encodeURIComponent(filter.value)}`;
    let page = await get(paged(first, fresh ? null : next), signal);
    // A page may be empty although more keys follow.
    while (turn === asked && !signal.aborted && page.next && page.items.length === 0) {
      page = await get(paged(first, page.next), signal);
    }
    if (turn !== asked || signal.aborted) return;
    if (fresh) setChildren(rows);
    rows.append(...page.items.map(row));
    // The server lists keys in no order.
    rows.append(...[...rows.children].sort((a, b) => (a.dataset.key < b.dataset.key ? -1 : 1)));
    next = page.next;
    more.hidden = !next;
    none.hidden = rows.children.length > 0;
    none.textContent = filter.value ? "No key has this prefix." : "This bucket is empty.";
  }

  function row(entry) {
    const ends = h("td.ends", { "data-ends": entry.expires_at && Date.parse(entry.expires_at) }, entry.expires_at === null ? "never" : "");
    return h("tr", { "data-key": entry.key }, h("th", { scope: "row" }, h("button", { type: "button", onclick: () => edit(entry) }, shown(entry.key))),
      h("td", null, size(entry.size_bytes)), ends);
  }

  /** Updates the countdown of keys that expire, and removes expired ones. */
  function turn() {
    for (const cell of rows.querySelectorAll("[data-ends]")) {
      const rest = Number(cell.dataset.ends) - now();
      if (rest > 0) cell.textContent = `in ${left(rest)}`;
      else cell.parentNode.remove();
    }
    none.hidden = rows.children.length > 0;
  }

  async function edit(entry) {
    sheet({ bucket: path(bucket.name), entry, signal, done: () => load(true).then(turn) }).catch((problem) => toast(problem.message, "bad"));
  }

  function drop() {
    const sure = h("button.pill.bad", { type: "button", onclick: () => withBusy(sure, async () => {
      await ask("DELETE", path(bucket.name));
      say(`Deleted the bucket ${bucket.name}.`);
      location.hash = "#/buckets";
    }) }, `Delete ${bucket.name} and all its keys`);
    sure.addEventListener("blur", () => sure.replaceWith(remove));
    remove.replaceWith(sure);
    sure.focus();
  }

  filter.addEventListener("input", () => load(true).then(turn).catch((problem) => toast(problem.message, "bad")));
  more.addEventListener("click", () => withBusy(more, () => load(false).then(turn)));
  const timer = setInterval(turn, 250);
  signal.addEventListener("abort", () => clearInterval(timer));
  await load(true).then(turn).catch((problem) => {
    if (!signal.aborted) setChildren(inside, fault(problem, () => keys(bucket, inside, signal)));
  });
}
