// Page of the recognizer: sends the drawing while the user draws, shows the votes and the nearest samples, and adds
// samples.

import { ask, get, insist, send, thrown } from "../api.js";
import { bitmap } from "../bitmap.js";
import { h, setChildren } from "../dom.js";
import { Paper } from "../paper.js";
import { say, withBusy } from "../say.js";

const K = 15;
/** Side of the sent picture, in pixels. */
const SENT = 160;
const DIGITS = "digits";
const OWN = "shapes";
/**
 * Maximum number of different pixels, of 1,024, between the drawing and the nearest sample for a certain result. Digits
 * have many samples, so nearly every digit has a near one; added shapes have few.
 */
const NEAR_MAX = { digits: 140, others: 220 };
/** Minimum share of the votes for a certain result. */
const SURE_MIN = 0.5;
/** Delay before the result is announced to screen readers. */
const SAY_AFTER_MS = 700;

export async function render({ main, signal }) {
  new Board(main, await get("/v1/recognitions", signal), signal);
}

class Board {
  constructor(main, overview, signal) {
    this.signal = signal;
    this.set = DIGITS;
    this.asking = false;
    this.again = false;
    this.bits = null;
    this.samples = new Map();
    this.paper = new Paper({ changed: () => this.look(), rested: () => this.announce(), signal });
    this.label = h("output.guess", { "aria-live": "off" });
    this.share = h("p.share");
    this.votes = h("ol.votes", { "aria-label": "Votes" });
    this.seen = h("div.seenas");
    this.near = h("ol.near", { "aria-label": `The ${K} nearest samples` });
    this.sets = h("div.sets", { role: "radiogroup", "aria-label": "What to compare with" });
    this.facts = h("p.facts");
    const clear = h("button.pill", { type: "button", onclick: () => this.paper.clear() }, "Clear");
    const undo = h("button.pill.quiet", { type: "button", onclick: () => this.paper.undo() }, "Undo");
    setChildren(main,
      h("header.head", null, h("h1", null, "Draw")),
      h("div.board", null,
        h("section.easel", { "aria-label": "Drawing" }, this.paper.node, h("div.tools", null, this.sets, undo, clear)),
        h("section.answer", { "aria-label": "Answer" },
          h("div.verdict", null, this.label, h("div", null, this.share, this.votes)),
          h("h2", null, "Nearest samples"), this.near, this.facts),
        this.teacher()));
    this.overview(overview);
    this.blank();
  }

  /** Shows the sets of samples. The user's own set is created with its first sample. */
  overview(overview) {
    this.known = new Map(overview.sets.map((set) => [set.set, set]));
    const names = [...new Set([DIGITS, OWN, ...this.known.keys()])];
    setChildren(this.sets, ...names.map((name) => h("button.chip", {
      type: "button", role: "radio", "aria-checked": String(name === this.set),
      onclick: () => { this.set = name; this.overview(overview); this.look(); },
    }, name === DIGITS ? "Digits" : name === OWN ? "Shapes" : name)));
    const set = this.known.get(this.set);
    const labels = set ? set.labels.map(({ label, sample_count: samples }) => `${label} (${samples})`).join(", ") : "";
    this.facts.textContent = set
      ? (this.set === DIGITS ? `Compared with all ${set.sample_count.toLocaleString("en")} samples (${overview.instruction_set}).` : `Samples: ${labels}.`)
      : "No samples yet: draw a shape, give it a label, and add it.";
  }

  /** Number of neighbors that vote: few if there are few samples. */
  k() {
    if (this.set === DIGITS) return K;
    const least = Math.min(...(this.known.get(this.set)?.labels ?? []).map(({ sample_count: samples }) => samples));
    return Math.max(1, Math.min(K, 2 * least - 1));
  }

  blank() {
    this.bits = null;
    this.label.textContent = "";
    this.label.dataset.sure = "";
    this.share.textContent = this.set === DIGITS ? "Draw a digit, 0 to 9." : "Draw one of your shapes.";
    setChildren(this.votes);
    setChildren(this.near, ...Array.from({ length: K }, () => h("li.none")));
    this.teach.disabled = true;
  }

  /** Sends the drawing to the recognizer. During a request, only the latest drawing is queued. */
  async look() {
    if (this.asking) {
      this.again = true;
      return;
    }
    this.asking = true;
    try {
      do {
        this.again = false;
        if (this.paper.empty) this.blank();
        else await this.recognize();
      } while (this.again && !this.signal.aborted);
    } catch (problem) {
      if (!this.signal.aborted) this.share.textContent = problem.message;
    } finally {
      this.asking = false;
    }
  }

  async recognize() {
    const body = await this.paper.picture(SENT);
    const known = this.known.has(this.set);
    // The user's own set does not exist yet: the request only converts the drawing to bits.
    const query = known ? `set=${encodeURIComponent(this.set)}&k=${this.k()}` : "k=1";
    const answer = await send(`/v1/recognitions?${query}`, { method: "POST", headers: { "Content-Type": "image/png" }, body, signal: this.signal });
    if (!answer.ok) await thrown(answer);
    const found = await answer.json();
    if (this.paper.empty) return;
    this.bits = found.sample ?? null;
    this.teach.disabled = !this.bits;
    if (!known) {
      this.share.textContent = "A new shape. Give it a label to add it.";
      return;
    }
    await this.show(found);
  }

  async show(found) {
    const total = found.neighbors.length;
    const [first] = found.votes;
    const nearest = found.neighbors[0].distance;
    const far = nearest > (this.set === DIGITS ? NEAR_MAX.digits : NEAR_MAX.others);
    const sure = !far && found.confidence >= SURE_MIN;
    this.label.textContent = sure ? found.label : "Not sure";
    this.label.dataset.sure = sure && found.confidence >= 0.8 ? "yes" : "";
    this.label.classList.toggle("word", this.label.textContent.length > 2);
    setChildren(this.share, ...(far
      ? ["No similar sample: the nearest sample differs in ", h("b", null, `${nearest} of 1,024`), " pixels"]
      : [h("b", null, `${first.vote_count} of ${total}`), ` nearest ${total === 1 ? "sample is" : "samples are"} labeled ${found.label}`]));
    setChildren(this.votes, ...found.votes.map(({ label, vote_count: votes }, place) => h("li", { class: sure && place === 0 ? "first" : null },
      h("span.of", null, label), h("span.bar", { "--share": votes / total }), h("span.number", null, String(votes)))));
    const pictures = await Promise.all(found.neighbors.map(({ id }) => this.sample(id)));
    if (this.paper.empty) return;
    setChildren(this.near, ...found.neighbors.map(({ label, distance }, place) => h("li", { class: label === found.label ? "same" : null },
      bitmap(pictures[place], `${label}, ${distance} of 1,024 pixels apart`), h("span", { "aria-hidden": "true" }, label), h("i", { "aria-hidden": "true" }, String(distance)))));
  }

  /** Loads the pixels of a sample, once. */
  async sample(id) {
    if (!this.samples.has(id)) this.samples.set(id, get(`/v1/samples/${id}`, this.signal).then(({ sample }) => sample, () => null));
    return this.samples.get(id);
  }

  announce() {
    clearTimeout(this.saying);
    this.saying = setTimeout(() => {
      if (this.label.textContent) say(`${this.label.textContent}. ${this.share.textContent}.`);
    }, SAY_AFTER_MS);
  }

  teacher() {
    const field = h("input", { id: "teach", maxlength: 32, autocomplete: "off", placeholder: "7, star, cat…" });
    this.teach = h("button.pill.main", { type: "submit", disabled: true }, "Add sample");
    return h("form.teach", { onsubmit: (event) => { event.preventDefault(); withBusy(this.teach, () => this.learn(field)); } },
      h("label", { for: "teach" }, "Wrong, or new? Add it with its label"), h("div.row", null, field, this.teach));
  }

  async learn(field) {
    const label = field.value.trim();
    if (!label || !this.bits) return field.focus();
    // The set of digits has only digits: other labels go to another set.
    if (this.set === DIGITS && !/^[0-9]$/.test(label)) this.set = OWN;
    await insist("POST", "/v1/samples", { json: { label, sample: this.bits, set: this.set } });
    say(`Added a sample of ${label}.`);
    field.value = "";
    this.overview(await ask("GET", "/v1/recognitions"));
    await this.look();
  }
}
