// Drawing area for mouse, touch, pen and arrow keys. Stores strokes relative to its side, and can draw them at any
// size.

import { h } from "./dom.js";

/** Width of the pen, as a fraction of the paper's side. */
const PEN = 0.062;
/** Step of an arrow key, as a fraction of the paper's side. */
const STEP = 0.04;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Paper {
  #strokes = [];
  #pointer = null;
  /** Position of the keyboard's pen, and whether it is down and visible. */
  #pen = { x: 0.5, y: 0.5, down: false, shown: false };

  /** Calls `changed` at every change and `rested` after each stroke. `signal` aborts when the paper is removed. */
  constructor({ changed, rested, signal }) {
    this.changed = changed;
    this.rested = rested;
    this.canvas = h("canvas.paper", {
      tabindex: 0, role: "application", "aria-label": "Paper. The arrow keys move the pen, space puts it down and lifts it, Backspace undoes.",
      onpointerdown: (event) => this.#down(event), onpointermove: (event) => this.#move(event),
      onpointerup: () => this.#up(), onpointercancel: () => this.#up(),
      onkeydown: (event) => this.#key(event), onblur: () => { this.#pen.shown = false; this.#draw(); },
    });
    this.node = h("div.sheetpaper", null, this.canvas);
    new ResizeObserver(() => this.#draw()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#draw(), { signal });
  }

  get empty() {
    return this.#strokes.length === 0;
  }

  clear() {
    this.#strokes = [];
    this.#pen.down = false;
    this.#done();
  }

  undo() {
    this.#strokes.pop();
    this.#pen.down = false;
    this.#done();
  }

  /** Renders the drawing as a PNG, black on white, `side` pixels high and wide. */
  picture(side) {
    const canvas = h("canvas", { width: side, height: side });
    const brush = canvas.getContext("2d");
    brush.fillStyle = "#fff";
    brush.fillRect(0, 0, side, side);
    this.#trace(brush, side, "#000");
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  }

  #at(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.height };
  }

  #down(event) {
    if (event.button !== 0 || this.#pointer !== null) return;
    this.#pointer = event.pointerId;
    this.canvas.setPointerCapture(event.pointerId);
    this.#pen.shown = false;
    this.#strokes.push([this.#at(event)]);
    this.#done();
  }

  #move(event) {
    if (event.pointerId !== this.#pointer) return;
    const points = event.getCoalescedEvents?.() ?? [];
    this.#strokes.at(-1).push(...(points.length ? points : [event]).map((point) => this.#at(point)));
    this.#draw();
    this.changed();
  }

  #up() {
    if (this.#pointer === null) return;
    this.#pointer = null;
    this.#done();
  }

  #key(event) {
    const pen = this.#pen;
    const arrow = ARROWS[event.key];
    if (arrow) {
      const inside = (value) => Math.max(0.06, Math.min(0.94, value));
      pen.x = inside(pen.x + arrow[0] * STEP);
      pen.y = inside(pen.y + arrow[1] * STEP);
      if (pen.down) this.#strokes.at(-1).push({ x: pen.x, y: pen.y });
    } else if (event.key === " ") {
      pen.down = !pen.down;
      if (pen.down) this.#strokes.push([{ x: pen.x, y: pen.y }]);
    } else if (event.key === "Backspace" || (event.key === "z" && (event.ctrlKey || event.metaKey))) {
      this.undo();
    } else {
      return;
    }
    event.preventDefault();
    pen.shown = true;
    this.#done();
  }

  #done() {
    this.#draw();
    this.changed();
    this.rested();
  }

  #draw() {
    const side = Math.round(this.canvas.clientWidth * devicePixelRatio);
    if (side === 0) return;
    if (this.canvas.width !== side) this.canvas.width = this.canvas.height = side;
    const brush = this.canvas.getContext("2d");
    const style = getComputedStyle(this.canvas);
    brush.clearRect(0, 0, side, side);
    this.#trace(brush, side, style.color);
    if (!this.#pen.shown) return;
    brush.beginPath();
    brush.arc(this.#pen.x * side, this.#pen.y * side, PEN * side * 0.7, 0, 2 * Math.PI);
    brush.strokeStyle = style.getPropertyValue("--accent");
    brush.lineWidth = 2 * devicePixelRatio;
    if (this.#pen.down) {
      brush.fillStyle = brush.strokeStyle;
      brush.fill();
    }
    brush.stroke();
  }

  /** Draws strokes as curves through the midpoints of their points. */
  #trace(brush, side, color) {
    brush.strokeStyle = color;
    brush.lineWidth = PEN * side;
    brush.lineCap = brush.lineJoin = "round";
    for (const stroke of this.#strokes) {
      const [first] = stroke;
      brush.beginPath();
      brush.moveTo(first.x * side, first.y * side);
      for (let at = 1; at < stroke.length - 1; at += 1) {
        const [point, next] = [stroke[at], stroke[at + 1]];
        brush.quadraticCurveTo(point.x * side, point.y * side, (point.x + next.x) / 2 * side, (point.y + next.y) / 2 * side);
      }
      const last = stroke.at(-1);
      brush.lineTo(last.x * side, last.y * side + (stroke.length === 1 ? 0.1 : 0));
      brush.stroke();
    }
  }
}
