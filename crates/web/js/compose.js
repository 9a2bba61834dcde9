// The composer: a field that grows, a character counter near the limit, completion of handles. A post is made
// once even if the connection is lost: the request is retried until the server responds. Unsent text is kept
// as a draft.

import { insist, newKey, user } from "./api.js";
import { completing } from "./complete.js";
import { h, svg } from "./dom.js";
import { draft, keepDraft } from "./drafts.js";
import { face, loadFollowees } from "./people.js";
import { say, toast } from "./say.js";
import { whoami } from "./session.js";
import { CHARS_MAX, room } from "./text.js";

/** The counter shows a number from this many remaining characters on. */
const NUMBER_FROM = 60;
const ROUND = 2 * Math.PI * 9;

let composers = 0;

/**
 * A form for a text. `sent` is called with the result, `closed` on Escape if the form can be closed. `to` is
 * the target, `place` the name of its draft; `options` are controls of further fields (see `audience`), `extra` adds
 * fields to the request.
 */
export function composer({ label, hint = "", begin = "", verb = "Post", small = false, to = "posts", place = to, options, extra = {}, sent, closed }) {
  const me = whoami();
  const kept = draft(place);
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
    h("div.writing", null, box,
      h("div.below", null, options.more, wait,
        h("span.count", null, svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("circle", { cx: 12, cy: 12, r: 9 }), arc), number, count),
        closed ? h("button.pill.quiet", { type: "button", onclick: closed }, "Cancel") : null,
        button)));
  completing(field, box);

  function measure() {
    const rest = room(field.value);
    const empty = field.value.trim() === "" || field.value === begin;
    form.classList.toggle("written", field.value !== "");
    form.classList.toggle("over", rest < 0);
    arc.style.strokeDasharray = `${Math.min(1, 1 - rest / CHARS_MAX) * ROUND} ${ROUND}`;
    number.textContent = rest <= NUMBER_FROM ? String(rest) : "";
    count.textContent = rest < 0 ? `${-rest} characters too many` : `${rest} characters left`;
    button.disabled = empty || rest < 0;
    if (CSS.supports("field-sizing", "content")) return;
    field.style.height = "auto";
    field.style.height = `${field.scrollHeight}px`;
  }

  async function submit(event) {
    event.preventDefault();
    if (button.disabled || form.getAttribute("aria-busy") === "true") return;
    const [text, fields] = [field.value, options.fields()];
    form.setAttribute("aria-busy", "true");
    field.readOnly = true;
    options.disable(true);
    try {
      const made = await insist("POST", `${user(me.id)}/${to}`, {
        json: { text, ...fields, ...extra },
        key,
        waiting: () => { wait.textContent = "Waiting for the server. This will be sent."; },
      });
      keepDraft(place);
      key = newKey();
      field.value = begin;
      options.set(null);
      say(to === "stories" ? "Story posted." : "Posted.");
      sent?.(made);
    } catch (problem) {
      toast(problem.message, "bad");
    } finally {
      wait.textContent = "";
      field.readOnly = false;
      options.disable(false);
      form.removeAttribute("aria-busy");
      measure();
    }
  }

  field.addEventListener("input", measure);
  // An edited text is a new request, with a new key.
  form.addEventListener("input", () => {
    key = newKey();
    const unsent = { text: field.value, fields: options.fields(), key };
    keepDraft(place, field.value.trim() === begin.trim() ? null : unsent);
  });
  field.addEventListener("focus", () => loadFollowees().catch(() => null), { once: true });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    if (event.key === "Escape") closed?.();
  });
  field.value = kept?.text ?? begin;
  if (kept?.fields) options.set(kept.fields);
  measure();
  form.begin = () => {
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
    form.scrollIntoView({ block: "nearest" });
  };
  return form;
}
