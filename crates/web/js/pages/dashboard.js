// Dashboard: metrics of the last hour, which the server stores, with live updates. Large numbers are readable from a
// distance; each plot has both axes.

import { get, send, thrown } from "../api.js";
import { h, setChildren } from "../dom.js";
import { fault } from "../feed.js";
import { parse, rate, sum } from "../metrics.js";
import { Plot } from "../plot.js";
import { reload } from "../route.js";
import { left } from "../time.js";

const EVERY_MS = 2000;
/** Choices of the time shown, with seconds. */
const WINDOWS = [["5 min", 300], ["1 hour", 3600]];
/** Number of readings over which the busiest routes are computed. */
const ROUTES_TURNS = 5;
const ROUTES_MAX = 6;
/** Whether a request is not by the dashboard itself. */
const others = ({ route }) => !route?.startsWith("/metrics") && !route?.startsWith("/assets") && route !== "/";

const ACCENT = "--accent";
const SECOND = "--plot-2";
const THIRD = "--plot-3";
const BAD = "--bad";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
function count(value) {
  if (value >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  if (value >= 1e4) return `${+(value / 1e3).toPrecision(3)}k`;
  return value >= 100 || Number.isInteger(value) ? whole.format(value) : String(+value.toPrecision(2));
}
function time(seconds) {
  if (seconds < 1e-3) return `${+(seconds * 1e6).toPrecision(2)} µs`;
  return seconds < 1 ? `${+(seconds * 1e3).toPrecision(seconds < 0.1 ? 2 : 3)} ms` : `${+seconds.toPrecision(2)} s`;
}
function size(bytes) {
  const power = bytes < 1e3 ? 0 : bytes < 1e6 ? 1 : bytes < 1e9 ? 2 : 3;
  return `${+(bytes / 1000 ** power).toPrecision(3)} ${["B", "kB", "MB", "GB"][power]}`;
}
const cores = (value) => value.toFixed(value < 10 ? 2 : 1);

/** Tiles: title, unit, format of values, and lines with name, color, and column of the history. */
const TILES = [
  { title: "Requests", unit: "per second", format: count, lines: [["all", ACCENT, "requests_per_s"]] },
  { title: "Errors", unit: "per second", format: count, lines: [["5xx", BAD, "server_errors_per_s"], ["4xx", SECOND, "client_errors_per_s"]] },
  { title: "Latency", format: time, log: true, lines: [["p50", ACCENT, "latency_p50_s"], ["p95", SECOND, "latency_p95_s"], ["p99", THIRD, "latency_p99_s"]] },
  { title: "Posts", unit: "per second", format: count, lines: [["posts", ACCENT, "posts_per_s"]] },
  { title: "Redis commands", unit: "per second", format: count, lines: [["commands", ACCENT, "redis_commands_per_s"]] },
  { title: "Commands per group", unit: "mean", format: count, lines: [["mean", ACCENT, "commands_per_group"]] },
  { title: "Fsync", format: time, log: true, lines: [["p50", ACCENT, "fsync_p50_s"], ["p99", SECOND, "fsync_p99_s"]] },
  { title: "Active timelines", unit: "in memory", format: count, lines: [["active", ACCENT, "active_timelines"]] },
  { title: "Memory", unit: "resident", format: size, lines: [["memory", ACCENT, "memory_bytes"]] },
  { title: "CPU", unit: "cores busy", format: cores, lines: [["cores", ACCENT, "cpu_cores"]] },
  { title: "Disk", unit: "log and store", format: size, lines: [["disk", ACCENT, "disk_bytes"]] },
];

export async function render({ main, signal }) {
  const facts = h("p.totals");
  const tiles = TILES.map(tile);
  const routes = h("ol.routes");
  const choice = h("div.choices", { role: "group", "aria-label": "Time shown" });
  const choose = (seconds) => {
    setChildren(choice, ...WINDOWS.map(([words, one]) => h("button.chip", { type: "button", "aria-pressed": String(one === seconds), onclick: () => choose(one) }, words)));
    for (const { plot } of tiles) plot.show(seconds);
  };
  choose(WINDOWS[0][1]);
  setChildren(main,
    h("header.head.wide", null, h("h1", null, "Dashboard"), choice),
    facts,
    h("div.tiles", null, ...tiles.map(({ node }) => node)),
    h("section.busy", { "aria-labelledby": "busy" }, h("h2", { id: "busy" }, "Busiest routes"), routes));
  let last = 0;
  let turns = 0;
  let before = null;

  async function read() {
    const history = await get(`/metrics/history?after=${last}`, signal);
    for (const { at_ms, values } of history.samples) {
      last = at_ms;
      for (const one of tiles) one.push(at_ms / 1000, one.columns.map((column) => values[history.columns.indexOf(column)] ?? null));
    }
    for (const one of tiles) one.show();
    turns += 1;
    if (turns % ROUTES_TURNS !== 1) return;
    const answer = await send("/metrics", { signal });
    if (!answer.ok) await thrown(answer);
    const now = parse(await answer.text(), performance.now() / 1000);
    const total = (name) => h("span", null, h("b", null, count(sum(now, `roost_${name}`) ?? 0)), ` ${name}`);
    setChildren(facts, ...["users", "posts", "follows"].map(total),
      h("span", null, "up ", h("b", null, left(history.uptime_s * 1000))), h("span", null, "version ", h("b", null, history.version)));
    if (before) busiest(routes, before, now);
    else setChildren(routes, h("li.calm", null, "Measuring…"));
    before = now;
  }

  let timer = null;
  async function turn() {
    try {
      await read();
    } catch (problem) {
      if (signal.aborted) return;
      if (problem.status !== 0 && problem.status !== 503) return setChildren(main, fault(problem, reload));
    }
    // The next reading is due after this one; less often while the window is hidden.
    if (!signal.aborted) timer = setTimeout(turn, document.hidden ? EVERY_MS * 5 : EVERY_MS);
  }
  signal.addEventListener("abort", () => clearTimeout(timer));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => tiles.forEach(({ plot }) => plot.draw()), { signal });
  await turn();
}

function tile({ title, unit = "", format, lines, log }) {
  const plot = new Plot({ colors: lines.map(([, color]) => color), format, log });
  plot.canvas.setAttribute("aria-label", `${title}: no samples yet`);
  const many = lines.length > 1;
  const figures = lines.map(([name, color]) => ({ node: h("b", null, "–"), name, color }));
  const [first, ...rest] = figures;
  const node = h("figure.tile", null,
    h("figcaption", null, h("h2", null, title),
      h("p.most", null, first.node, h("small", null, ` ${many ? `${first.name} ${unit}` : unit}`)),
      many ? h("p.more", null, ...rest.map((one) => h("span", null, h("i", { "--key": `var(${one.color})` }, one.name), one.node))) : null),
    plot.canvas);
  function show() {
    const [, ...values] = plot.points.at(-1) ?? [0, ...lines.map(() => null)];
    values.forEach((value, place) => { figures[place].node.textContent = value === null ? "–" : format(value); });
    const said = figures.map((one) => `${many ? `${one.name} ` : ""}${one.node.textContent}`).join(", ");
    plot.canvas.setAttribute("aria-label", `${title}, last hour. Now ${said} ${unit}`);
    plot.canvas.dataset.points = plot.points.filter(([, ...all]) => all.some((value) => value !== null)).length;
    plot.draw();
  }
  return { node, plot, show, columns: lines.map(([, , column]) => column), push: (at, values) => plot.push(at, values) };
}

/** Shows the routes with the most requests between two readings. */
function busiest(list, before, after) {
  const found = new Map();
  for (const { labels } of after.samples.get("roost_http_requests_total") ?? []) {
    if (!others(labels)) continue;
    const name = `${labels.method} ${labels.route}`;
    const same = (other) => other.method === labels.method && other.route === labels.route;
    if (!found.has(name)) found.set(name, { ...labels, rate: rate(before, after, "roost_http_requests_total", same) ?? 0 });
  }
  const top = [...found.values()].filter(({ rate }) => rate > 0).sort((one, other) => other.rate - one.rate).slice(0, ROUTES_MAX);
  if (top.length === 0) return setChildren(list, h("li.calm", null, "No requests in the last seconds."));
  return setChildren(list, ...top.map(({ method, route, rate }) => h("li", null,
    h("code", null, h("b", null, method), ` ${route}`), h("span.bar", { "--share": rate / top[0].rate }), h("span.number", null, `${count(rate)} per second`))));
}
