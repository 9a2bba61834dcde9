// Relative times. One timer updates all displayed times.

import { now } from "./api.js";
import { h } from "./dom.js";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const whole = new Intl.DateTimeFormat("en", { dateStyle: "long", timeStyle: "short" });
const day = new Intl.DateTimeFormat("en", { day: "numeric", month: "short" });
const dayAndYear = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", year: "numeric" });

function ago(at) {
  const age = Math.max(0, now() - at);
  if (age < 5 * SECOND) return "now";
  if (age < MINUTE) return `${Math.floor(age / SECOND)}s`;
  if (age < HOUR) return `${Math.floor(age / MINUTE)}m`;
  if (age < DAY) return `${Math.floor(age / HOUR)}h`;
  const date = new Date(at);
  return (date.getFullYear() === new Date(now()).getFullYear() ? day : dayAndYear).format(date);
}

/** Creates a relative time that stays up to date. */
export function when(text) {
  const at = Date.parse(text);
  return h("time", { datetime: text, title: whole.format(at), "data-at": at }, ago(at));
}

setInterval(() => {
  for (const node of document.querySelectorAll("time[data-at]")) {
    const text = ago(Number(node.dataset.at));
    if (node.textContent !== text) node.textContent = text;
  }
}, 5 * SECOND);

/** Formats a remaining time: "12 s", "4 min", "3 h", "2 days". */
export function left(ms) {
  if (ms < 100 * SECOND) return `${Math.max(0, Math.ceil(ms / SECOND))} s`;
  if (ms < HOUR) return `${Math.round(ms / MINUTE)} min`;
  if (ms < 2 * DAY) return `${Math.round(ms / HOUR)} h`;
  return `${Math.round(ms / DAY)} days`;
}
