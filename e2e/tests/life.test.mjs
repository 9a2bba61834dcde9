// Open pages under load and after a crash, and the size of a first visit.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { close, launch, open, until } from "../browser.mjs";
import { Server, run } from "../server.mjs";

/** Maximum size of all pages, and of home alone, in bytes without the font. */
const BYTES_MAX = 100_000;
const FONT_BYTES_MAX = 60_000;

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

test("the dashboard's plots have data while the simulator drives the server", async () => {
  const server = await Server.start({ durability: "always" });
  const sim = run(["simulate", "--server", server.url, "--users", "60", "--load", "heavy", "--duration", "60s"]);
  const page = await open(browser, server, { at: "/#/dashboard" });
  for (const title of ["Requests", "Errors", "Latency", "Posts", "Redis commands", "Commands per group", "Fsync", "Active timelines", "Memory", "CPU", "Disk"]) {
    const plot = page.getByRole("img", { name: new RegExp(`^${title}, last hour`) });
    await until(async () => Number(await plot.getAttribute("data-points", { timeout: 20_000 })) >= 3, `points of ${title}`);
    const drawn = await plot.evaluate((canvas) => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value > 0));
    assert.ok(drawn, title);
  }
  await page.getByText("/v1/users/{user}/posts").or(page.getByText("/v1/users/{user}/timeline")).first().waitFor();
  sim.kill();
  await close(page);
  await server.stop();
});

test("after a crash and restart of the server an open page has lost and duplicated no post", async () => {
  const server = await Server.start();
  const me = await server.register("reader");
  await server.register("writer");
  await server.follow("reader", "writer");
  await server.post("writer", "before");
  const page = await open(browser, server, { me });
  page.mayBeLost = true;
  await page.getByText("before").waitFor();
  await server.post("writer", "arrived");
  await page.getByRole("button", { name: "1 new post" }).waitFor();
  await server.kill();
  await page.getByText("The server cannot be reached").waitFor();
  // A post written while the server is down is sent once after the restart.
  await page.getByLabel("Write a post").fill("written meanwhile");
  await page.getByRole("button", { name: "Post", exact: true }).click();
  await page.getByText("Waiting for the server").waitFor();
  await server.up();
  await server.post("writer", "after");
  await page.locator(".feed .post", { hasText: "written meanwhile" }).waitFor();
  await page.getByRole("button", { name: "2 new posts" }).click();
  await until(async () => (await page.locator(".feed .post").count()) === 4, "four posts");
  const shown = await page.locator(".feed .post .text").allTextContents();
  assert.deepEqual([...shown].sort(), ["after", "arrived", "before", "written meanwhile"]);
  const { items } = await server.ask("GET", "/v1/users/@reader/timeline");
  assert.deepEqual(shown, items.map(({ text }) => text));
  assert.equal(await page.getByText("The server cannot be reached").count(), 0);
  await close(page);
  await server.stop();
});

test("a page opened while the server is down loads when the server is up", async () => {
  const server = await Server.start();
  const me = await server.register("early");
  await server.post("early", "still here");
  const page = await open(browser, server, { me, at: "/#/draw" });
  await page.getByRole("heading", { name: "Draw", exact: true }).waitFor();
  page.mayBeLost = true;
  await page.evaluate(() => import("/assets/js/pages/home.js"));
  await server.kill();
  await page.getByRole("link", { name: "Home", exact: true }).click();
  await page.getByRole("heading", { name: "The server cannot be reached" }).waitFor();
  await server.up();
  await page.getByText("still here").waitFor();
  await close(page);
  await server.stop();
});

test("a first visit takes less than 100 kB and a font", async (context) => {
  const server = await Server.start();
  const me = await server.register("visitor");
  for (let at = 0; at < 30; at += 1) await server.post("visitor", `post number ${at}`);
  const page = await open(browser, server, { me, at: "/#/draw" });
  await page.goto("about:blank");
  await page.addInitScript(() => {
    new MutationObserver((_, observer) => {
      if (!document.querySelector(".feed .post")) return;
      globalThis.usable = Math.round(performance.now());
      observer.disconnect();
    }).observe(document, { childList: true, subtree: true });
  });
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  await session.send("Network.setCacheDisabled", { cacheDisabled: true });
  // Responses of the API do not count.
  let bytes = 0;
  let font = 0;
  const files = new Set();
  const fonts = new Set();
  session.on("Network.requestWillBeSent", ({ requestId, request }) => {
    const { pathname } = new URL(request.url);
    if (pathname.endsWith(".woff2")) fonts.add(requestId);
    else if (pathname === "/" || pathname.startsWith("/assets/")) files.add(requestId);
  });
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    if (files.has(requestId)) bytes += encodedDataLength;
    if (fonts.has(requestId)) font += encodedDataLength;
  });
  await page.goto(`${server.url}/#/home`);
  await page.getByText("post number 29").waitFor();
  const usable = await page.evaluate(() => globalThis.usable);
  const home = bytes;
  for (const title of ["Notifications", "Stories", "Draw", "Buckets", "Dashboard"]) {
    await page.getByRole("link", { name: title, exact: true }).click();
    await page.getByRole("heading", { level: 1, name: title }).waitFor();
  }
  context.diagnostic(`from navigation to a usable home: ${usable} ms, ${home} bytes; all pages together: ${bytes} bytes; the font: ${font} bytes`);
  assert.ok(bytes > 0 && bytes < BYTES_MAX, `${bytes} bytes`);
  assert.ok(font > 0 && font < FONT_BYTES_MAX, `${font} bytes, once`);
  await close(page);
  await server.stop();
});
