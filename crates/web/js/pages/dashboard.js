// Dashboard: what the server measures of itself, as it happens. Big figures for a projector, plots
// of the last two minutes.

import { send, thrown } from "../api.js";
import { h, put } from "../dom.js";
import { fault } from "../feed.js";
import { mean, parse, percentiles, rate, sum } from "../metrics.js";
import { Plot } from "../plot.js";

const EVERY_MS = 1000;
const WINDOW_S = 120;
/** Percentiles and means are over so many readings: a second alone has few requests. */
const SPAN = 5;
/** What the dashboard itself asks does not count. */
const others = ({ route }) => route !== "/metrics" && !route?.startsWith("/assets") && route !== "/";

const ACCENT = "--accent";
const BACK = "--ink-3";
const FAINT = "--plot-3";
const LATENCY = "roost_http_request_duration_seconds";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
function count(value) {
  if (value >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  if (value >= 1e4) return `${+(value / 1e3).toPrecision(3)}k`;
  return value >= 100 || Number.isInteger(value) ? whole.format(value) : String(+value.toPrecision(2));
}
const ms = (value) => (value < 1 ? `${+(value * 1000).toPrecision(2)} µs` : `${value >= 100 ? whole.format(value) : +value.toPrecision(2)} ms`);
const mega = (value) => `${value >= 100 ? whole.format(value) : +value.toPrecision(3)} MB`;
const shares = (before, after, name, list) => percentiles(before, after, name, list, name === LATENCY ? others : undefined).map((s) => (s === null ? null : s * 1000));

/** `read` gets the newest reading, the one before it and the one some readings before. */
const TILES = [
  { title: "Requests", unit: "a second", format: count, lines: [{ name: "all", colour: ACCENT }],
    read: (now, last) => [rate(last, now, "roost_http_requests_total", others)] },
  { title: "Latency", format: ms, log: true, lines: [{ name: "p50", colour: ACCENT }, { name: "p95", colour: BACK }, { name: "p99", colour: FAINT }],
    read: (now, _, back) => shares(back, now, LATENCY, [0.5, 0.95, 0.99]) },
  { title: "Posts", unit: "a second", format: count, lines: [{ name: "posts", colour: ACCENT }],
    read: (now, last) => [rate(last, now, "roost_posts")] },
  { title: "Deliveries", unit: "a second", format: count, lines: [{ name: "deliveries", colour: ACCENT }],
    read: (now, last) => [rate(last, now, "roost_deliveries_total")] },
  { title: "Group size", unit: "commands a write", format: count, lines: [{ name: "mean", colour: ACCENT }],
    read: (now, _, back) => [mean(back, now, "roost_group_commands")] },
  { title: "Fsync", format: ms, log: true, lines: [{ name: "p50", colour: ACCENT }, { name: "p99", colour: BACK }],
    read: (now, _, back) => shares(back, now, "roost_log_fsync_seconds", [0.5, 0.99]) },
  { title: "Active timelines", unit: "in memory", format: count, lines: [{ name: "active", colour: ACCENT }],
    read: (now) => [sum(now, "roost_active_timelines")] },
  { title: "Memory", unit: "resident", format: mega, lines: [{ name: "memory", colour: ACCENT }],
    read: (now) => [sum(now, "process_resident_memory_bytes") / 1e6] },
  { title: "Processor", unit: "cores busy", format: (value) => value.toFixed(value < 10 ? 2 : 1), lines: [{ name: "cores", colour: ACCENT }],
    read: (now, last) => [rate(last, now, "process_cpu_seconds_total")] },
];

export async function render({ main, signal }) {
  const totals = h("p.totals");
  const tiles = TILES.map(tile);
  const routes = h("ol.routes");
  put(main,
    h("header.head.wide", null, h("h1", null, "Dashboard"), totals),
    h("div.tiles", null, ...tiles.map(({ node }) => node)),
    h("section.busy", { "aria-labelledby": "busy" }, h("h2", { id: "busy" }, "Busiest routes"), routes));
  const readings = [];

  async function read() {
    const answer = await send("/metrics", { signal });
    if (!answer.ok) await thrown(answer);
    const now = parse(await answer.text(), performance.now() / 1000);
    const last = readings.at(-1);
    readings.push(now);
    if (readings.length > SPAN + 1) readings.shift();
    put(totals, ...["users", "posts", "follows"].map((name) => h("span", null, h("b", null, count(sum(now, `roost_${name}`) ?? 0)), ` ${name === "users" ? "people" : name}`)));
    if (!last) return;
    for (const one of tiles) one.show(now.at, one.read(now, last, readings[0]));
    busiest(routes, readings[0], now);
  }

  let timer = null;
  async function turn() {
    try {
      await read();
    } catch (problem) {
      if (signal.aborted) return;
      if (problem.status !== 0 && problem.status !== 503) return put(main, fault(problem, () => dispatchEvent(new Event("hashchange"))));
    }
    // The next reading is due a second after this one, if anybody looks.
    if (!signal.aborted) timer = setTimeout(turn, document.hidden ? EVERY_MS * 5 : EVERY_MS);
  }
  signal.addEventListener("abort", () => clearTimeout(timer));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => tiles.forEach(({ plot }) => plot.draw()), { signal });
  await turn();
}

function tile({ title, unit = "", format, lines, log, read }) {
  const plot = new Plot({ lines, window_s: WINDOW_S, format, log });
  plot.canvas.setAttribute("aria-label", `${title}: no figures yet`);
  const many = lines.length > 1;
  const figures = lines.map(({ name, colour }) => ({ node: h("b", null, "–"), name, colour }));
  const node = h("figure.tile", null,
    h("figcaption", null, h("h2", null, title),
      h("p.most", null, figures[0].node, h("small", null, ` ${many ? figures[0].name : unit}`)),
      many ? h("p.more", null, ...figures.slice(1).map((one) => h("span", null, h("i", { "--key": `var(${one.colour})` }, one.name), one.node))) : null),
    plot.canvas);
  function show(at, values) {
    plot.push(at, values);
    values.forEach((value, place) => { figures[place].node.textContent = value === null ? "–" : format(value); });
    const said = figures.map((one) => `${many ? `${one.name} ` : ""}${one.node.textContent}`).join(", ");
    plot.canvas.setAttribute("aria-label", `${title}, last two minutes. Now ${said} ${unit}`);
    plot.canvas.dataset.points = plot.points.filter(([, ...all]) => all.some((value) => value !== null)).length;
  }
  return { node, plot, read, show };
}

/** The routes that were asked most in the last seconds. */
function busiest(list, before, after) {
  const found = new Map();
  for (const { labels } of after.samples.get("roost_http_requests_total") ?? []) {
    if (!others(labels)) continue;
    const name = `${labels.method} ${labels.route}`;
    const same = (other) => other.method === labels.method && other.route === labels.route;
    if (!found.has(name)) found.set(name, { ...labels, rate: rate(before, after, "roost_http_requests_total", same) ?? 0 });
  }
  const top = [...found.values()].filter(({ rate }) => rate > 0).sort((one, other) => other.rate - one.rate).slice(0, 6);
  if (top.length === 0) return put(list, h("li.calm", null, "Nobody asks anything right now."));
  return put(list, ...top.map(({ method, route, rate }) => h("li", null,
    h("code", null, h("b", null, method), ` ${route}`), h("span.bar", { "--share": rate / top[0].rate }), h("span.number", null, `${count(rate)} /s`))));
}
