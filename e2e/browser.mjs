// Debian's Chromium and its windows. Each window records faults: errors on the console, and requests to other hosts.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after } from "node:test";
import { chromium } from "playwright-core";
import { Server } from "./server.mjs";

/** Paths to search for the browser. */
const PLACES = [process.env.ROOST_CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
export const WIDE = { width: 1600, height: 1000 };
/** Settings of a phone. Its page is as wide as the widest element, so an element that is too wide shrinks everything. */
export const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, deviceScaleFactor: 3 };

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Returns the violations that axe finds in a part of a page: rules, each with its first node. */
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

/** Starts a browser and a server for all tests of a file, and stops them at the end. */
export async function setUp() {
  const [browser, server] = await Promise.all([launch(), Server.start()]);
  after(async () => {
    await browser.close();
    await server.stop();
  });
  return [browser, server];
}

/** Opens a window with its own session, as the user `me` if given. */
export async function open(browser, server, { me = null, at = "/", viewport = WIDE, colorScheme = "light", reducedMotion = "no-preference", deviceScaleFactor = 1, bypassCSP = false, isMobile = false, hasTouch = false, javaScriptEnabled = true } = {}) {
  const context = await browser.newContext({ viewport, colorScheme, reducedMotion, deviceScaleFactor, bypassCSP, isMobile, hasTouch, javaScriptEnabled, ignoreHTTPSErrors: true });
  const page = await openTab(context, server);
  if (me) await page.addInitScript((text) => { if (location.protocol === "http:" && !sessionStorage.getItem("roost.me")) sessionStorage.setItem("roost.me", text); }, JSON.stringify(me));
  await page.goto(server.url + at);
  return page;
}

/** Opens another window of the same browser, without an address. */
export async function openTab(context, server) {
  const page = await context.newPage();
  page.faults = [];
  // A server that is down on purpose causes errors in the browser; a test sets when they are allowed.
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

/** Closes a window. Fails if it has recorded faults. */
export async function close(page) {
  const { faults } = page;
  await page.context().close();
  assert.deepEqual(faults, [], "nothing went wrong in the window");
}

/** Resolves as soon as `asked` returns a truthy value. Fails after a time limit. */
export async function until(asked, what) {
  const end = Date.now() + 20_000;
  for (;;) {
    const found = await asked();
    if (found) return found;
    assert.ok(Date.now() < end, `waited for: ${what}`);
    await new Promise((soon) => setTimeout(soon, 20));
  }
}

/** Creates a promise that is resolved from outside. */
export function later() {
  let resolve;
  const promise = new Promise((done) => { resolve = done; });
  return Object.assign(promise, { resolve });
}

/** Simulates the return of a hidden window, whose stream restarts. */
export function fresh(page) {
  return page.evaluate(async () => (await import("/assets/js/live.js")).live.dispatchEvent(new Event("fresh")));
}

/** Whether the node has the focus. */
export const isFocused = (locator) => locator.evaluate((node) => node === document.activeElement);

/** Draws strokes, each a list of points as fractions of the paper's side. */
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
/** A hash with a frame, which is not similar to any digit. */
export const SCRIBBLE = [
  [[0.1, 0.1], [0.9, 0.1], [0.9, 0.9], [0.1, 0.9], [0.1, 0.1]],
  ...[0.3, 0.5, 0.7].flatMap((at) => [[[at, 0.1], [at, 0.9]], [[0.1, at], [0.9, at]]]),
];
