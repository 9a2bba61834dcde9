// Debian's Chromium and its windows. Each window records faults: an error on the console, or a request to
// another host.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after } from "node:test";
import { chromium } from "playwright-core";
import { Server } from "./server.mjs";

/** Paths where the browser is searched. */
const PLACES = [process.env.ROOST_CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
export const WIDE = { width: 1600, height: 1000 };
/** A phone: its page is as wide as its widest part, so what is too wide makes everything small. */
export const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, deviceScaleFactor: 3 };

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe finds wrong in a part of a page: rules, and the first node of each. */
export async function faults(page, part) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate((selector) => globalThis.axe.run(document.querySelector(selector)), part);
  return violations.map(({ id, nodes }) => [id, nodes[0].html]);
}

export function launch() {
  const executablePath = PLACES.find((path) => path && existsSync(path));
  assert.ok(executablePath, "no Chromium: install the package chromium or set ROOST_CHROMIUM");
  return chromium.launch({ executablePath, args: ["--no-sandbox"] });
}

/** A browser and a server for all tests of a file, which end with them. */
export async function setUp() {
  const [browser, server] = await Promise.all([launch(), Server.start()]);
  after(async () => {
    await browser.close();
    await server.stop();
  });
  return [browser, server];
}

/** A window with its own session, as the user `me` if it is given. */
export async function open(browser, server, { me = null, at = "/", viewport = WIDE, colorScheme = "light", reducedMotion = "no-preference", deviceScaleFactor = 1, bypassCSP = false, isMobile = false, hasTouch = false, javaScriptEnabled = true } = {}) {
  const context = await browser.newContext({ viewport, colorScheme, reducedMotion, deviceScaleFactor, bypassCSP, isMobile, hasTouch, javaScriptEnabled, ignoreHTTPSErrors: true });
  const page = await openTab(context, server);
  if (me) await page.addInitScript((text) => { if (location.protocol === "http:" && !sessionStorage.getItem("roost.me")) sessionStorage.setItem("roost.me", text); }, JSON.stringify(me));
  await page.goto(server.url + at);
  return page;
}

/** Another window of the same browser, without an address. */
export async function openTab(context, server) {
  const page = await context.newPage();
  page.faults = [];
  // A server that is down on purpose makes the browser itself complain; a test sets when this is allowed.
  page.mayBeLost = false;
  page.on("console", (message) => {
    const lost = page.mayBeLost && /Failed to load resource|net::ERR/.test(message.text());
    if (message.type() === "error" && !lost) page.faults.push(message.text());
  });
  page.on("pageerror", (error) => page.faults.push(error.stack));
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (!["data:", "blob:"].includes(url.protocol) && url.origin !== server.url) page.faults.push(`asked ${request.url()}`);
  });
  return page;
}

/** Closes a window; fails if anything went wrong in it. */
export async function close(page) {
  const { faults } = page;
  await page.context().close();
  assert.deepEqual(faults, [], "nothing went wrong in the window");
}

/** Resolves as soon as `asked` returns something true; fails after a time limit. */
export async function until(asked, what) {
  const end = Date.now() + 20_000;
  for (;;) {
    const found = await asked();
    if (found) return found;
    assert.ok(Date.now() < end, `waited for: ${what}`);
    await new Promise((soon) => setTimeout(soon, 20));
  }
}

/** A promise that is resolved from outside. */
export function later() {
  let resolve;
  const promise = new Promise((done) => { resolve = done; });
  return Object.assign(promise, { resolve });
}

/** As after the window was hidden: its stream begins again. */
export function fresh(page) {
  return page.evaluate(async () => (await import("/assets/js/live.js")).live.dispatchEvent(new Event("fresh")));
}

/** Whether a node has the focus. */
export const isFocused = (locator) => locator.evaluate((node) => node === document.activeElement);

/** Draws strokes, each a list of points in parts of the paper's side. */
export async function draw(page, ...strokes) {
  const box = await page.locator("canvas.paper").boundingBox();
  const to = ([x, y]) => page.mouse.move(box.x + x * box.width, box.y + y * box.height, { steps: 6 });
  for (const [first, ...rest] of strokes) {
    await to(first);
    await page.mouse.down();
    for (const point of rest) await to(point);
    await page.mouse.up();
  }
}

export const SEVEN = [[0.28, 0.25], [0.72, 0.25], [0.45, 0.82]];
export const ARROW = [[[0.2, 0.5], [0.8, 0.5]], [[0.6, 0.25], [0.8, 0.5], [0.6, 0.75]]];
/** A hash with a frame: not similar to any digit. */
export const SCRIBBLE = [
  [[0.1, 0.1], [0.9, 0.1], [0.9, 0.9], [0.1, 0.9], [0.1, 0.1]],
  ...[0.3, 0.5, 0.7].flatMap((at) => [[[at, 0.1], [at, 0.9]], [[0.1, at], [0.9, at]]]),
];
