// Safety: no text as markup, no request to other hosts, no access without the key, and no accessibility violation.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { before, test } from "node:test";
import { PHONE, WIDE, close, open, setUp } from "../browser.mjs";
import { Server } from "../server.mjs";

const EVIL = "<img src=x onerror=\"document.title='broken'\">";
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const [browser, server] = await setUp();
let me;
before(async () => {
  me = await server.register("evil", EVIL, EVIL);
  await server.register("other", "Other");
  for (const [one, two] of [["evil", "other"], ["other", "evil"]]) await server.follow(one, two);
  await server.befriend("evil", "other");
  for (const author of ["evil", "other"]) {
    await server.post(author, `${EVIL} @evil javascript:alert(1) https://example.org/"onmouseover="x`);
    await server.postStory(author, EVIL, 600);
  }
  await server.ask("PUT", "/v1/buckets/evil");
  await server.keep("evil", EVIL, EVIL);
});

const PAGES = ["home", "for-you", "notifications", "mentions", "stories", "draw", "buckets/evil", "dashboard", "tools", "who", "@evil", "@other", "@other/followers", "tags/evil", "nowhere"];

/** Waits until a page shows its content. */
async function settled(page) {
  await page.locator("main h1").first().waitFor();
  await page.locator(".bones").first().waitFor({ state: "detached" }).catch(() => null);
  await page.waitForLoadState("load");
}

test("markup in texts stays text on every page", async () => {
  for (const at of PAGES) {
    const page = await open(browser, server, { me, at: `/#/${at}` });
    await settled(page);
    assert.equal(await page.locator("img").count(), 0, at);
    assert.equal(await page.locator("a[href^='javascript']").count(), 0, at);
    assert.equal(await page.locator("[onmouseover], [onerror]").count(), 0, at);
    assert.match(await page.title(), /roost$/, at);
    await close(page);
  }
  const page = await open(browser, server, { me });
  await page.locator(".post .text", { hasText: EVIL }).first().waitFor();
  await page.getByRole("button", { name: /^Other 1 story/ }).click();
  await page.getByRole("dialog").getByText(EVIL).waitFor();
  await close(page);
});

/** Returns the violations of any severity that axe finds in a page. */
async function faults(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html, any, all, none }) => `${id}: ${html}: ${[...any, ...all, ...none].map(({ message }) => message).join("; ")}`));
}

for (const colorScheme of ["light", "dark"]) {
  for (const [name, device] of [["a wide window", { viewport: WIDE }], ["a phone", PHONE]]) {
    test(`axe finds no fault on any page, ${colorScheme}, ${name}`, async () => {
      const found = [];
      for (const at of PAGES) {
        const page = await open(browser, server, { me, at: `/#/${at}`, colorScheme, ...device, reducedMotion: "reduce" });
        await settled(page);
        found.push(...(await faults(page)).map((fault) => `${at}: ${fault}`));
        const wider = await page.evaluate(() => document.documentElement.scrollWidth - screen.width);
        if (device.isMobile && wider > 0) found.push(`${at} is ${wider} px wider than the screen`);
        await close(page);
      }
      assert.deepEqual(found, []);
    });
  }
}

test("axe finds no fault in what opens on a page", async () => {
  const found = [];
  const check = async (page, what) => found.push(...(await faults(page)).map((fault) => `${what}: ${fault}`));
  const home = await open(browser, server, { me, reducedMotion: "reduce" });
  await home.locator(".feed .post").nth(1).waitFor();
  await home.locator(".feed .post").first().getByRole("button", { name: "Reply" }).click();
  await home.getByLabel("Write a post").pressSequentially("hello @oth");
  await home.getByRole("option").first().waitFor();
  await check(home, "completing");
  await home.keyboard.press("Escape");
  await home.getByRole("button", { name: /^Other 1 story/ }).click();
  await home.getByRole("dialog").getByText(EVIL).waitFor();
  await check(home, "a story");
  await close(home);
  const buckets = await open(browser, server, { me, at: "/#/buckets/evil", reducedMotion: "reduce" });
  await buckets.getByRole("button", { name: EVIL }).click();
  await buckets.getByRole("dialog").waitFor();
  await check(buckets, "a key");
  await close(buckets);
  assert.deepEqual(found, []);
});

test("a user who joins on a server with a key gets to the timeline", async () => {
  const locked = await Server.start({ key: "a-key-for-the-pages" });
  const page = await open(browser, locked);
  page.mayBeLost = true;
  await page.getByLabel("Application key").fill("a-key-for-the-pages");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByLabel("Your handle").fill("first");
  await page.getByRole("button", { name: "Join" }).click();
  await page.getByRole("heading", { level: 1, name: "Home" }).waitFor();
  await close(page);
  await locked.stop();
});

test("with a key the pages request it once and store it in the tab", async () => {
  const locked = await Server.start({ key: "a-key-for-the-pages" });
  await locked.register("keyed");
  const page = await open(browser, locked, { at: "/#/dashboard" });
  page.mayBeLost = true;
  await page.getByLabel("Application key").fill("wrong");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByText("This key is not valid on this server").waitFor();
  await page.getByLabel("Application key").fill("a-key-for-the-pages");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("heading", { name: "Dashboard" }).waitFor();
  await page.goto(`${locked.url}/#/who`);
  await page.getByLabel("Your handle").fill("keyed");
  await page.getByRole("button", { name: "Continue" }).click();
  await locked.post("keyed", "with the key");
  // The stream sends the key, too.
  await page.getByText("with the key").waitFor();
  await page.reload();
  await page.getByText("with the key").waitFor();
  assert.equal(await page.evaluate(() => JSON.stringify(localStorage).includes("a-key-for")), false);
  await close(page);
  await locked.stop();
});

test("the policy blocks foreign content and framing of the pages", async () => {
  const answer = await fetch(server.url);
  const policy = answer.headers.get("content-security-policy");
  for (const part of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"]) assert.ok(policy.includes(part), part);
  assert.ok(!policy.includes("unsafe"));
  assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
  const again = await fetch(server.url, { headers: { "If-None-Match": answer.headers.get("etag") } });
  assert.equal(again.status, 304);
});
