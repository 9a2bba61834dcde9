// Line plot of the last minutes on a canvas, with two scaled axes. Small enough to need no library.

import { h } from "./dom.js";

const KEPT_S = 3600;
const PAD_TOP = 8;
const PAD_BOTTOM = 20;
const LABEL_PX = 11;
/** Minimum time shown, in seconds. The plot widens from it until it shows the whole window. */
const WINDOW_S_MIN = 60;
/** Possible distances between ticks of the time axis, in seconds. */
const STEPS_S = [15, 30, 60, 120, 300, 600, 900, 1800];
const TICKS_MAX = 4;
/** Distance between samples, in seconds, from which a line is interrupted. */
const GAP_S = 15;

const ago = (seconds) => (seconds === 0 ? "now" : seconds < 60 ? `−${seconds} s` : `−${+(seconds / 60).toFixed(1)} min`);

export class Plot {
  /** `colors` has the CSS variable of each line, most important first. `log` selects a logarithmic axis. */
  constructor({ colors, format, log = false }) {
    this.colors = colors;
    this.window_s = KEPT_S;
    this.format = format;
    this.log = log;
    /** Points `[at, ...values]`: time in seconds, values or null. */
    this.points = [];
    this.canvas = h("canvas.plot", { role: "img" });
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.canvas);
  }

  push(at, values) {
    this.points.push([at, ...values]);
    while (this.points[0][0] < at - KEPT_S) this.points.shift();
  }

  /** Sets the time shown, in seconds. */
  show(seconds) {
    this.window_s = seconds;
    this.draw();
  }

  draw() {
    const { canvas } = this;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!width) return;
    const ratio = devicePixelRatio;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const end = this.points.at(-1)?.[0] ?? 0;
    const points = this.points.filter(([at]) => at >= end - this.window_s);
    const values = points.flatMap(([, ...values]) => values).filter((value) => value !== null);
    if (values.length === 0) return;
    const brush = canvas.getContext("2d");
    brush.scale(ratio, ratio);
    const style = getComputedStyle(canvas);
    const color = (name) => style.getPropertyValue(name).trim();
    brush.font = `500 ${LABEL_PX}px ${style.fontFamily}`;
    const { ticks, part } = scale(values, this.log);
    const labels = ticks.map(this.format);
    const left = Math.max(...labels.map((label) => brush.measureText(label).width)) + 8;
    const floor = height - PAD_BOTTOM;
    const shown_s = Math.min(this.window_s, Math.max(WINDOW_S_MIN, end - points[0][0]));
    const x = (at) => left + (width - left) * (1 - (end - at) / shown_s);
    const y = (value) => PAD_TOP + (floor - PAD_TOP) * (1 - Math.min(1, part(value)));
    brush.fillStyle = color("--ink-3");
    brush.textBaseline = "middle";
    ticks.forEach((tick, place) => {
      rule(brush, color(tick === ticks[0] ? "--line-2" : "--line"), left, width, y(tick));
      brush.fillText(labels[place], 0, y(tick) + 0.5);
    });
    times(brush, shown_s, (seconds) => x(end - seconds), height, color("--line-2"), floor);
    for (let line = this.colors.length; line >= 1; line -= 1) {
      const alone = line === 1 && this.colors.length === 1;
      trace(brush, runs(points, line, x, y), color(this.colors[line - 1]), line === 1 ? 2 : 1.5, alone ? floor : null);
    }
  }
}

function rule(brush, color, left, right, y) {
  brush.strokeStyle = color;
  brush.lineWidth = 1;
  brush.beginPath();
  brush.moveTo(left, Math.round(y) + 0.5);
  brush.lineTo(right, Math.round(y) + 0.5);
  brush.stroke();
}

/** Draws the time axis: ticks and labels, from now backwards. */
function times(brush, shown_s, x, height, color, floor) {
  const step = STEPS_S.find((step) => shown_s / step <= TICKS_MAX) ?? STEPS_S.at(-1);
  brush.strokeStyle = color;
  for (let seconds = 0; seconds <= shown_s; seconds += step) {
    brush.textAlign = seconds === 0 ? "right" : shown_s - seconds < step / 4 ? "left" : "center";
    brush.fillText(ago(seconds), x(seconds), height - LABEL_PX / 2);
    brush.beginPath();
    brush.moveTo(Math.round(x(seconds)) - 0.5, floor);
    brush.lineTo(Math.round(x(seconds)) - 0.5, floor + 4);
    brush.stroke();
  }
  brush.textAlign = "left";
}

/** Returns the ticks of the value axis, and a function from a value to its share of the height. */
function scale(values, log) {
  const high = Math.max(...values, 0);
  if (!log) {
    const top = nice(high);
    return { ticks: [0, top / 2, top], part: (value) => value / top };
  }
  const low = Math.floor(Math.log10(Math.max(1e-9, Math.min(...values.filter((value) => value > 0)))));
  const top = Math.max(low + 1, Math.ceil(Math.log10(Math.max(high, 1e-9))));
  const ticks = [];
  for (let power = low; power <= top; power += Math.ceil((top - low) / 3)) ticks.push(10 ** power);
  return { ticks, part: (value) => Math.max(0, (Math.log10(Math.max(value, 1e-9)) - low) / (top - low)) };
}

/** Converts the points of a line to pixels, in runs of consecutive values. */
function runs(points, line, x, y) {
  const found = [];
  let last = null;
  for (const point of points) {
    const value = point[line];
    if (value === null) {
      last = null;
      continue;
    }
    if (last === null || point[0] - last > GAP_S) found.push([]);
    found.at(-1).push([x(point[0]), y(value)]);
    [last] = point;
  }
  return found;
}

/** Draws the runs of a line, filled down to `floor` if given. */
function trace(brush, pieces, color, width, floor) {
  brush.strokeStyle = brush.fillStyle = color;
  brush.lineWidth = width;
  brush.lineJoin = "round";
  for (const piece of pieces) {
    brush.beginPath();
    piece.forEach(([px, py], place) => (place ? brush.lineTo(px, py) : brush.moveTo(px, py)));
    if (piece.length === 1) brush.lineTo(piece[0][0] + 1, piece[0][1]);
    brush.stroke();
    if (floor === null) continue;
    brush.lineTo(piece.at(-1)[0], floor);
    brush.lineTo(piece[0][0], floor);
    brush.globalAlpha = 0.1;
    brush.fill();
    brush.globalAlpha = 1;
  }
}

/** Returns the next greater round number whose half is round, too. */
function nice(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 3, 4, 6, 8, 10].map((step) => step * power).find((step) => step >= value * 1.04) ?? 20 * power;
}
