// Composer of posts: a growing field, a character counter near the limit, completion of handles. A post is created once
// even if the connection is lost: the request is retried until the server responds, also after the user has left the
// page, and a new composer in the same place shows it. Unsent text is kept as a draft.

import { insist, newKey, user } from "./api.js";
import { completing } from "./complete.js";
import { h, svg } from "./dom.js";
import { draft, keepDraft, sentDraft } from "./drafts.js";
import { face, loadFollowees } from "./people.js";
import { say, toast } from "./say.js";
import { whoami } from "./session.js";
import { CHARS_MAX, room } from "./text.js";

/** Number of remaining characters from which the counter shows a number. */
const NUMBER_FROM = 60;
const ROUND = 2 * Math.PI * 9;

let composers = 0;
/** Requests without a final response, by user and place. */
const pending = new Map();

/** Sends a text. The promise `done` resolves to the result, or to null after an error or a stop. */
function send(me, place, { method, path, text, fields, extra, key, said }) {
  const stop = new AbortController();
  const one = { text, fields, key, late: false, shows: [], stop: () => stop.abort() };
  const waiting = () => {
    one.late = true;
    one.shows.forEach((show) => show());
  };
  one.done = insist(method, path, { json: { text, ...fields, ...extra }, key, waiting, signal: stop.signal }).then((made) => {
    sentDraft(me.id, place, key);
    say(said);
    return made;
  }).catch((problem) => {
    if (!stop.signal.aborted) toast(problem.message, "bad");
    return null;
  }).finally(() => pending.delete(`${me.id} ${place}`));
  pending.set(`${me.id} ${place}`, one);
  return one;
}

/**
 * Creates a form for a text. Calls `sent` with the result, and `closed` on Escape if the form can be closed. `place`
 * names its draft; `options` are controls of further fields (see `audience` and `withPictures`); `extra` adds fields to
 * the request; `said` is announced after sending. With `edits`, the initial text and fields are those of an existing
 * post.
 */
export function composer({
  label, hint = "", begin = "", verb = "Post", small = false, method = "POST", path = `${user(whoami().id)}/posts`,
  place = "posts", options, extra = {}, said = "Posted.", edits = false, sent, closed,
}) {
  const me = whoami();
  const kept = pending.get(`${me.id} ${place}`) ?? draft(me.id, place);
  const original = JSON.stringify(options.fields());
  let sending = null;
  let key = kept?.key ?? newKey();
  composers += 1;
  const id = `composer-${composers}`;
  const field = h("textarea", { id, rows: small ? 1 : 2, placeholder: hint, "aria-describedby": `${id}-count`, dir: "auto", spellcheck: "true" });
  const arc = svg("circle", { cx: 12, cy: 12, r: 9, class: "arc" });
  const number = h("span.number", { "aria-hidden": "true" });
  const count = h("span.unseen", { id: `${id}-count` });
  const button = h("button.pill.main", { type: "submit", disabled: true }, verb);
  const wait = h("span.wait", { role: "status" });
  const box = h("div.field", null, h("label.unseen", { for: id }, label), options.above, field);
  const form = h(`form.composer${small ? ".small" : ""}`, { onsubmit: submit },
    face(me, small ? "s" : "m"),
    h("div.writing", null, box, options.under,
      h("div.below", null, options.more, wait,
        h("span.count", null, svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("circle", { cx: 12, cy: 12, r: 9 }), arc), number, count),
        closed ? h("button.pill.quiet", { type: "button", onclick: close }, "Cancel") : null,
        button)));
  completing(field, box);

  /** Whether the form has nothing to send or to keep. */
  const isBegin = () => !options.isFilled?.() && field.value.trim() === begin.trim() && (!edits || JSON.stringify(options.fields()) === original);

  function measure() {
    const rest = room(field.value);
    const empty = (field.value.trim() === "" && !options.isFilled?.()) || isBegin();
    form.classList.toggle("written", field.value !== "");
    form.classList.toggle("over", rest < 0);
    arc.style.strokeDasharray = `${Math.min(1, 1 - rest / CHARS_MAX) * ROUND} ${ROUND}`;
    number.textContent = rest <= NUMBER_FROM ? String(rest) : "";
    count.textContent = rest < 0 ? `${-rest} characters too many` : `${rest} characters left`;
    button.disabled = empty || rest < 0 || options.isBusy?.() === true;
    if (CSS.supports("field-sizing", "content")) return;
    field.style.height = "auto";
    field.style.height = `${field.scrollHeight}px`;
  }

  async function submit(event) {
    event.preventDefault();
    if (button.disabled || sending) return;
    button.disabled = true;
    await options.ready?.();
    follow(send(me, place, { method, path, text: field.value, fields: options.fields(), extra, key, said }));
  }

  /** Shows a request until its final response. */
  async function follow(one) {
    sending = one;
    const show = () => { wait.textContent = one.late ? "Waiting for the server. This will be sent." : ""; };
    one.shows.push(show);
    show();
    busy(true);
    const made = await one.done;
    sending = null;
    wait.textContent = "";
    busy(false);
    if (made) {
      key = newKey();
      field.value = begin;
      options.set(null);
    }
    measure();
    if (made && form.isConnected) sent?.(made);
  }

  function busy(is) {
    if (is) form.setAttribute("aria-busy", "true");
    else form.removeAttribute("aria-busy");
    field.readOnly = is;
    options.disable(is);
  }

  /** Closes the form and stops its request. */
  function close() {
    sending?.stop();
    closed();
  }

  // Edited text is a new request, with a new key.
  form.addEventListener("input", () => {
    key = newKey();
    keepDraft(me.id, place, isBegin() ? null : { text: field.value, fields: options.fields(), key });
    measure();
  });
  field.addEventListener("focus", () => loadFollowees().catch(() => null), { once: true });
  field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    if (event.key === "Escape" && closed) close();
  });
  field.value = kept?.text ?? begin;
  if (kept?.fields) options.set(kept.fields);
  measure();
  if (kept?.done) follow(kept);
  form.begin = () => {
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
    form.scrollIntoView({ block: "nearest" });
  };
  return form;
}
