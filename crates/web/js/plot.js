// A plot of the last minutes: lines over time on a canvas, with a scale that fits. Small enough to
// need no library.

import { h } from "./dom.js";

const PAD_TOP = 10;
const PAD_BOTTOM = 4;
const LABEL_PX = 12;
const WINDOW_S_MIN = 30;

export class Plot {
  /** `window_s` seconds wide; `format` writes values; `log` for values over many magnitudes. */
  constructor({ lines, window_s, format, log = false }) {
    this.lines = lines;
    this.window_s = window_s;
    this.format = format;
    this.log = log;
    /** Points `[at, ...values]`, at in seconds, values null where there are none. */
    this.points = [];
    this.canvas = h("canvas.plot", { role: "img" });
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.canvas);
  }

  push(at, values) {
    this.points.push([at, ...values]);
    while (this.points.length && this.points[0][0] < at - this.window_s - 2) this.points.shift();
    this.draw();
  }

  #scale() {
    const values = this.points.flatMap(([, ...values]) => values).filter((value) => value !== null);
    const high = Math.max(...values, 0);
    if (!this.log) {
      const top = nice(high);
      return { ticks: [top / 2, top], part: (value) => value / top };
    }
    const low = Math.floor(Math.log10(Math.max(1e-9, Math.min(...values.filter((value) => value > 0)))));
    const top = Math.max(low + 1, Math.ceil(Math.log10(Math.max(high, 1e-9))));
    const ticks = [];
    for (let power = low + 1; power <= top; power += Math.ceil((top - low) / 3)) ticks.push(10 ** power);
    return { ticks, part: (value) => Math.max(0, (Math.log10(Math.max(value, 1e-9)) - low) / (top - low)) };
  }

  draw() {
    const { canvas } = this;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!width) return;
    const ratio = devicePixelRatio;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const brush = canvas.getContext("2d");
    brush.scale(ratio, ratio);
    const style = getComputedStyle(canvas);
    const colour = (name) => style.getPropertyValue(name).trim();
    if (!this.points.some(([, ...values]) => values.some((value) => value !== null))) return;
    const { ticks, part } = this.#scale();
    const inner = height - PAD_TOP - PAD_BOTTOM;
    const y = (value) => PAD_TOP + inner * (1 - Math.min(1, part(value)));
    const end = this.points.at(-1)[0];
    // The first half minute fills the plot; from then on it widens until it shows the whole window.
    const shown_s = Math.min(this.window_s, Math.max(WINDOW_S_MIN, end - this.points[0][0]));
    brush.font = `500 ${LABEL_PX}px ${style.fontFamily}`;
    const left = Math.max(...ticks.map((tick) => brush.measureText(this.format(tick)).width)) + 10;
    const x = (at) => left + (width - left) * (1 - (end - at) / shown_s);
    brush.lineWidth = 1;
    for (const tick of ticks) {
      brush.strokeStyle = colour("--line");
      brush.beginPath();
      brush.moveTo(left, Math.round(y(tick)) + 0.5);
      brush.lineTo(width, Math.round(y(tick)) + 0.5);
      brush.stroke();
    }
    brush.textBaseline = "middle";
    brush.fillStyle = colour("--ink-3");
    for (const tick of ticks) brush.fillText(this.format(tick), 0, y(tick) + 0.5);
    for (let line = this.lines.length; line >= 1; line -= 1) this.#line(brush, line, x, y, height, colour);
  }

  #line(brush, line, x, y, height, colour) {
    const main = line === 1;
    brush.strokeStyle = colour(this.lines[line - 1].colour);
    brush.lineWidth = main ? 2.25 : 1.75;
    brush.lineJoin = "round";
    let run = [];
    const finish = () => {
      if (run.length === 0) return;
      brush.beginPath();
      run.forEach(([px, py], place) => (place ? brush.lineTo(px, py) : brush.moveTo(px, py)));
      if (run.length === 1) brush.lineTo(run[0][0] + 1, run[0][1]);
      brush.stroke();
      if (main && this.lines.length === 1) {
        brush.lineTo(run.at(-1)[0], height);
        brush.lineTo(run[0][0], height);
        brush.globalAlpha = 0.1;
        brush.fillStyle = brush.strokeStyle;
        brush.fill();
        brush.globalAlpha = 1;
      }
      run = [];
    };
    for (const point of this.points) {
      const value = point[line];
      if (value === null) finish();
      else run.push([x(point[0]), y(value)]);
    }
    finish();
  }
}

/** The next round number above whose half is round too. */
function nice(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 3, 4, 6, 8, 10].map((step) => step * power).find((step) => step >= value * 1.04) ?? 20 * power;
}
