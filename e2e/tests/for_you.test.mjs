// For You: reasons, explanations, paging, rankings that have expired, and the start of a new user.

import assert from "node:assert/strict";
import { test } from "node:test";
import { PHONE, close, faults, open, setUp, until } from "../browser.mjs";
import { Server } from "../server.mjs";

const [browser, server] = await setUp();

const EVIL = "<img src=x onerror=\"document.title='broken'\">";
const texts = (page) => page.locator(".feed .post .text").allTextContents();
const post = (page, text) => page.locator(".feed .post", { hasText: text });
const react = (user, kind, { id }) => server.ask("PUT", `/v1/users/@${user}/${kind}/${id}`);

/** Waits until the feed of a user has a number of posts: the server loads recent posts after the first read. */
const ranked = (handle, count) => until(async () => {
  const { items } = await server.ask("GET", `/v1/users/@${handle}/feeds/for-you?limit=100`);
  return items.length >= count;
}, `${count} posts for ${handle}`);

test("each post has a reason with links, and a button shows all reasons and the numbers", async () => {
  const me = await server.register("reader");
  await server.register("bob", "Bob");
  await server.register("cyd", "Cyd");
  await server.register("stranger", EVIL);
  for (const other of ["bob", "cyd"]) await server.follow("reader", other);
  await server.post("reader", "my first beds #gardening");
  const liked = await server.post("stranger", `liked by two ${EVIL}`);
  const tagged = await server.post("stranger", "compost, turned twice #gardening");
  await server.post("bob", "a post by bob");
  for (const fan of ["bob", "cyd"]) await react(fan, "favourites", liked);
  await react("stranger", "boosts", await server.post("cyd", "a post by cyd"));
  await ranked("reader", 4);

  const page = await open(browser, server, { me });
  await page.getByRole("navigation", { name: "Timelines" }).getByRole("link", { name: "For You" }).press("Enter");
  await post(page, "a post by bob").waitFor();
  assert.equal(await page.title(), "For You · roost");
  const current = page.getByRole("navigation", { name: "Timelines" }).locator("[aria-current=page]");
  assert.deepEqual(await current.allTextContents(), ["For You"]);
  assert.equal(await page.getByRole("navigation", { name: "Feed" }).getByRole("link", { name: "Home" }).getAttribute("aria-current"), "page");

  const reason = (text) => post(page, text).locator(".reason span span");
  const links = (text) => reason(text).locator("a").evaluateAll((all) => all.map((link) => link.getAttribute("href")));
  assert.match(await reason("liked by two").textContent(), /^Favourited or boosted by (Bob and Cyd|Cyd and Bob)$/);
  assert.deepEqual((await links("liked by two")).sort(), ["#/@bob", "#/@cyd"]);
  assert.equal(await reason("compost").textContent(), "Popular in #gardening");
  assert.deepEqual(await links("compost"), ["#/tags/gardening"]);
  assert.equal(await reason("a post by bob").textContent(), "You follow Bob");
  // Markup in names and texts stays text.
  assert.equal(await page.locator("img").count(), 0);

  // Scores and features are loaded only when they are shown.
  const asked = [];
  page.on("request", (request) => asked.push(request));
  const why = post(page, "liked by two").getByRole("button", { name: "Why?" });
  await why.press("Enter");
  assert.equal(await why.getAttribute("aria-expanded"), "true");
  const more = post(page, "liked by two").locator(".why");
  assert.match((await more.locator("li").allTextContents()).join("\n"), /Favourited or boosted by .*\n/u);
  await more.locator("tr").first().waitFor();
  const rows = new Map(await more.locator("tr").evaluateAll((all) => all.map(({ cells }) => [cells[0].textContent, cells[1].textContent])));
  assert.equal(rows.get("Users whom you follow and who favourited or boosted it"), "2");
  assert.equal(rows.get("Favourites"), "2");
  assert.ok(Number(rows.get("Score")) > 0, JSON.stringify([...rows]));
  assert.ok(!rows.has("You follow the author"), "numbers that are 0 are left out");
  assert.deepEqual(await faults(page, "main"), []);
  await why.click();
  assert.equal(await more.isVisible(), false);
  await why.click();
  await why.click();
  assert.equal(asked.filter((request) => request.url().endsWith("/rank")).length, 1, "loaded once");
  await react("reader", "favourites", tagged);

  // Feedback replaces the post by a line that takes it back; the next ranking does without the post.
  const wanted = async () => (await server.ask("GET", "/v1/users/@reader/less")).items.length;
  await why.click();
  await more.getByRole("button", { name: "Less like this" }).press("Enter");
  const undo = page.locator(".unwanted").getByRole("button", { name: "Undo" });
  await undo.waitFor();
  assert.equal(await post(page, "liked by two").count(), 0);
  assert.equal(await wanted(), 1);
  assert.deepEqual(await faults(page, "main"), []);
  await undo.press("Enter");
  await why.click();
  assert.equal(await wanted(), 0);
  await more.getByRole("button", { name: "Not interested in @stranger" }).click();
  await undo.waitFor();
  await page.getByRole("button", { name: "New ranking" }).click();
  await undo.waitFor({ state: "detached" });
  await post(page, "a post by bob").waitFor();
  assert.equal(await post(page, "liked by two").count(), 0);
  const bob = post(page, "a post by bob");
  await bob.getByRole("button", { name: "Why?" }).click();
  assert.equal(await bob.getByRole("button", { name: /Not interested/ }).count(), 0, "followed authors stay");
  await close(page);
});

test("all pages of a ranking are read by scrolling, and Back and reload return to the tab", async () => {
  const me = await server.register("long");
  const lines = [];
  for (let at = 0; at < 35; at += 1) {
    await server.register(`long_${at}`);
    await server.follow("long", `long_${at}`);
    for (const part of ["one", "two"]) lines.push({ op: "post", user: `@long_${at}`, text: `${part} by ${at}.` });
  }
  const answer = await fetch(`${server.url}/v1/batch`, { method: "POST", body: lines.map((line) => JSON.stringify(line)).join("\n"), headers: { "Content-Type": "application/x-ndjson" } });
  await answer.text();
  await ranked("long", 60);
  const page = await open(browser, server, { me, at: "/#/for-you", ...PHONE });
  await page.locator(".feed .post").nth(19).waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
  await until(async () => {
    await page.mouse.wheel(0, 4000);
    return page.getByText("No more posts.").isVisible();
  }, "the end");
  const all = await texts(page);
  assert.ok(all.length >= 60, `${all.length} posts`);
  assert.equal(new Set(all).size, all.length, "no post twice");

  // A thread and back: the same ranking at the same place.
  const one = page.locator(".feed .post").nth(45);
  const id = await one.getAttribute("data-id");
  await one.evaluate((node) => scrollBy({ top: node.getBoundingClientRect().top - 200, behavior: "instant" }));
  await one.locator("a.when").click();
  await page.locator(".thread .post").first().waitFor();
  await page.goBack();
  const same = page.locator(`.feed .post[data-id="${id}"]`);
  await until(async () => await same.count() && Math.abs(await same.evaluate((node) => node.getBoundingClientRect().top) - 200) < 3, "the same place");
  assert.deepEqual(await texts(page), all);
  await page.reload();
  await page.locator(".feed .post").nth(19).waitFor();
  assert.equal(await page.locator("[aria-label=Timelines] [aria-current]").textContent(), "For You");
  await close(page);
});

test("posts that were on the screen for a second are reported once, in batches", async () => {
  const me = await server.ask("GET", "/v1/users/@long");
  const page = await open(browser, server, { me, at: "/#/mentions" });
  await page.clock.install();
  const reports = [];
  page.on("request", (request) => {
    if (!request.url().endsWith("/seen")) return;
    assert.equal(new URL(request.url()).pathname, `/v1/users/${me.id}/seen`);
    reports.push(request.postDataJSON().posts);
  });
  const onScreen = () => page.locator(".feed .post").evaluateAll((all) => all.filter((node) => {
    const { top, bottom, height } = node.getBoundingClientRect();
    return Math.min(bottom, innerHeight) - Math.max(top, 0) >= height / 2;
  }).map((node) => node.dataset.id));
  await page.goto(`${server.url}/#/for-you`);
  await page.locator(".feed .post").nth(19).waitFor();
  const first = await onScreen();
  assert.ok(first.length >= 3 && first.length < 20, `${first.length} posts`);
  await page.clock.runFor(10_000);
  await until(() => reports.length === 1, "a report");
  assert.deepEqual(reports[0].toSorted(), first.toSorted());

  // Posts that are passed over do not count; the others are reported when the window is hidden.
  const to = (at) => page.locator(".feed .post").nth(at).evaluate((node) => node.scrollIntoView({ block: "start", behavior: "instant" }));
  const frames = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await to(10);
  await page.clock.runFor(100);
  await frames();
  await page.clock.runFor(100);
  await to(19);
  await page.clock.runFor(100);
  await frames();
  const second = (await onScreen()).filter((id) => !first.includes(id));
  await page.clock.runFor(1_100);
  assert.equal(reports.length, 1);
  await page.evaluate(() => {
    Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await until(() => reports.length === 2, "a report of a hidden window");
  assert.deepEqual(reports[1].toSorted(), second.toSorted());
  await page.clock.runFor(30_000);
  assert.equal(reports.length, 2, "nothing new");

  // The server has the reports: a post that was on the screen counts as seen by any client.
  const { items: [{ features }] } = await server.ask("POST", "/v1/users/@long/rank", { feed: "for-you", posts: [first[0]] });
  assert.ok(features.seen >= 1, JSON.stringify(features));

  // Leaving the page reports all that is left, at most 100 at a time.
  const numbers = (from, to) => Array.from({ length: to - from + 1 }, (_, at) => String(from + at));
  await page.evaluate(async (userId) => {
    const { seenReporter } = await import("/assets/js/seen.js");
    const left = new AbortController();
    const report = seenReporter({ id: userId }, left.signal);
    const list = document.body.appendChild(document.createElement("div"));
    list.style.cssText = "position: fixed; inset: 0;";
    for (let id = 1; id <= 120; id += 1) {
      const node = list.appendChild(document.createElement("div"));
      node.style.height = "2px";
      report(node, { post: { id: String(id) } });
    }
    globalThis.leave = () => left.abort();
  }, me.id);
  await frames();
  await page.clock.runFor(1_100);
  await page.evaluate(() => globalThis.leave());
  await until(() => reports.length === 4, "two reports");
  assert.deepEqual(reports.slice(2), [numbers(1, 100), numbers(101, 120)]);
  await close(page);
});

test("a ranking that has expired says so and offers a new one", async () => {
  const me = await server.ask("GET", "/v1/users/@long");
  const page = await open(browser, server, { me, at: "/#/for-you" });
  page.mayBeLost = true;
  await page.locator(".feed .post").nth(19).waitFor();
  // The server keeps the last two rankings of a user.
  for (let at = 0; at < 2; at += 1) await server.ask("GET", "/v1/users/@long/feeds/for-you?limit=1");
  await until(async () => {
    await page.mouse.wheel(0, 4000);
    return page.getByRole("heading", { name: "This ranking has expired" }).isVisible();
  }, "the end of the ranking");
  const before = await page.locator(".feed .post").count();
  await page.getByRole("button", { name: "Show a new ranking" }).click();
  await until(async () => await page.locator(".feed .post").count() < before || page.evaluate(() => scrollY === 0), "a new ranking");
  await page.getByRole("heading", { name: "This ranking has expired" }).waitFor({ state: "detached" });
  await until(async () => {
    await page.mouse.wheel(0, 4000);
    return page.getByText("No more posts.").isVisible();
  }, "the end of the new ranking");
  await close(page);
});

test("deleted posts, replies and muted users are not in a ranking", async () => {
  const me = await server.register("quiet");
  await server.register("quiet_other");
  await server.follow("quiet", "quiet_other");
  const [gone] = [await server.post("quiet_other", "will be deleted"), await server.post("quiet_other", "will be answered")];
  await ranked("quiet", 2);
  const page = await open(browser, server, { me, at: "/#/for-you" });
  await post(page, "will be deleted").waitFor();
  const answered = post(page, "will be answered");
  await answered.getByRole("button", { name: "Reply" }).click();
  await page.keyboard.type("an answer");
  await page.keyboard.press("Control+Enter");
  await page.getByText("Posted.").first().waitFor();
  await server.remove(gone);
  await post(page, "will be deleted").waitFor({ state: "detached" });
  assert.equal(await post(page, "an answer").count(), 0);
  // After a mute, Back makes a new ranking.
  await answered.locator("a.named").click();
  await page.getByLabel("More", { exact: true }).click();
  await page.getByRole("button", { name: "Mute" }).click();
  await page.getByText("@quiet_other is muted.").waitFor({ state: "attached" });
  await page.goBack();
  await page.locator("[aria-label='For You'] :is(.post, .blank)").first().waitFor();
  assert.equal(await answered.count(), 0);
  await close(page);
});

test("a new user is told what to do, and gets a ranking after three follows", async () => {
  const empty = await Server.start();
  for (const handle of ["one", "two", "three"]) await empty.register(handle, `User ${handle}`);
  const me = await empty.register("newcomer");
  const page = await open(browser, empty, { me, at: "/#/for-you" });
  await page.getByRole("heading", { name: "Nothing for you yet" }).waitFor();
  await page.getByRole("heading", { name: "Follow three users to make this page yours" }).waitFor();
  for (const handle of ["one", "two", "three"]) {
    await page.getByRole("button", { name: `Follow @${handle}` }).click();
    await page.getByRole("button", { name: `Unfollow @${handle}` }).waitFor();
    await empty.post(handle, `hello from ${handle}`);
  }
  await page.getByRole("button", { name: "Done" }).click();
  await until(async () => (await texts(page)).length === 3, "a post of each");
  assert.deepEqual((await page.locator(".reason span span").allTextContents()).sort(), ["You follow User one", "You follow User three", "You follow User two"]);
  // A user who follows three is not asked again.
  await page.reload();
  await page.locator(".feed .post").nth(2).waitFor();
  assert.equal(await page.getByRole("button", { name: "Done" }).count(), 0);
  await close(page);
  await empty.stop();
});
