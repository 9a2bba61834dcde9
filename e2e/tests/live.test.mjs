// Events elsewhere while a window is open, hidden or offline.

import assert from "node:assert/strict";
import { test } from "node:test";
import { PHONE, close, fresh, isFocused, later, open, setUp, until } from "../browser.mjs";
import { Server } from "../server.mjs";

const [browser, server] = await setUp();

const texts = (page, within = ".feed") => page.locator(`${within} .post .text`).allTextContents();
const numbered = (handle, from, to) => {
  const lines = Array.from({ length: to - from }, (_, at) => JSON.stringify({ op: "post", user: `@${handle}`, text: `number ${from + at}` }));
  return fetch(`${server.url}/v1/batch`, { method: "POST", body: lines.join("\n"), headers: { "Content-Type": "application/x-ndjson" } }).then((answer) => answer.text());
};
const remove = (post) => server.remove(post);
const edit = (post, text) => server.edit(post, text);
/** Closes the stream of a window until the window is reloaded. */
async function disconnect(page) {
  page.mayBeLost = true;
  await page.route("**/events", (route) => route.abort());
  await page.evaluate(async () => (await import("/assets/js/session.js")).changes.dispatchEvent(new Event("change")));
}
/** Waits until an event arrives, so that the stream of a window is open. */
async function streaming(page, me) {
  await server.post(me.handle, "the stream is open");
  await page.locator(".post", { hasText: "the stream is open" }).first().waitFor();
}

test("what changed while the connection was lost is shown when it is back", async () => {
  const me = await server.register("l_me");
  const posts = [];
  for (const text of ["will go", "will change", "stays"]) posts.push(await server.post("l_me", text));
  const page = await open(browser, server, { me });
  page.mayBeLost = true;
  await page.getByText("will change").waitFor();
  await streaming(page, me);
  await page.route("**/events", (route) => route.abort());
  await server.kill();
  await server.up();
  await remove(posts[0]);
  await edit(posts[1], "has changed");
  await page.unroute("**/events");
  await page.getByText("has changed").waitFor();
  assert.deepEqual(await texts(page), ["the stream is open", "stays", "has changed"]);
  await close(page);
});

test("pending posts that were deleted meanwhile are neither counted nor shown", async () => {
  const me = await server.register("p_me");
  await server.register("p_other");
  await server.follow("p_me", "p_other");
  await server.post("p_other", "first");
  const page = await open(browser, server, { me });
  await page.getByText("first").waitFor();
  await streaming(page, me);
  const gone = await server.post("p_other", "will go");
  const kept = await server.post("p_other", "stays");
  await page.getByRole("button", { name: "2 new posts" }).waitFor();
  await disconnect(page);
  await remove(gone);
  await edit(kept, "was changed");
  await fresh(page);
  await page.getByRole("button", { name: "1 new post", exact: true }).click();
  await page.getByText("was changed").waitFor();
  assert.deepEqual(await texts(page), ["was changed", "the stream is open", "first"]);
  await close(page);
});

test("a comparison with the server keeps the nodes of a list, its focus and its selection", async () => {
  const me = await server.register("s_me");
  const other = await server.post("s_me", "will change");
  await server.post("s_me", "selected");
  const page = await open(browser, server, { me, at: "/#/@s_me" });
  const text = page.locator(".post .text", { hasText: "selected" });
  await text.waitFor();
  await text.evaluate((node) => getSelection().selectAllChildren(node));
  await page.locator(".post", { hasText: "selected" }).getByRole("button", { name: "Favourite" }).focus();
  await disconnect(page);
  await edit(other, "was changed");
  await server.post("s_me", "is new");
  await fresh(page);
  await page.getByText("was changed").waitFor();
  await page.getByText("is new").waitFor();
  assert.equal(await page.evaluate(() => getSelection().toString()), "selected");
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Favourite");
  await close(page);
});

test("pages without posts, as after very many hidden ones, are passed in both directions", async () => {
  const me = await server.register("up_me");
  await numbered("up_me", 0, 300);
  const page = await open(browser, server, { me, at: "/#/draw" });
  let asked = 0;
  const passed = new Set();
  // The first page in each direction is empty, and has a cursor for the next one.
  await page.route(/\/timeline\?/, async (route) => {
    const url = new URL(route.request().url());
    asked += 1;
    if (asked > 60) return route.abort();
    const cursor = url.searchParams.get("cursor") ?? `${2n ** 62n}`;
    if (passed.has(cursor)) return route.continue();
    passed.add(cursor);
    const back = cursor.startsWith("-");
    return route.fulfill({ json: { items: [], next: back ? null : cursor, prev: back ? cursor : null } });
  });
  await page.getByRole("link", { name: "Home", exact: true }).click();
  const to = (text, step) => until(async () => {
    if ((await texts(page)).includes(text)) return true;
    await page.mouse.wheel(0, step);
    return false;
  }, text);
  await to("number 299", 0);
  await to("number 0", 4000);
  assert.ok(!(await texts(page)).includes("number 299"), "the newest posts were dropped");
  await to("number 299", -4000);
  const numbers = (await texts(page)).map((text) => Number(text.slice(7)));
  numbers.forEach((number, at) => assert.ok(at === 0 || numbers[at - 1] === number + 1, "no gap and no duplicate"));
  await close(page);
});

test("the title of a page gets the focus at once, and takes none from the user", async () => {
  const me = await server.register("fo_me");
  const other = await server.register("fo_other");
  await server.post("fo_me", "a post");
  const page = await open(browser, server, { me, at: "/#/draw" });
  const held = later();
  await page.route("**/timeline?*", async (route) => {
    await held;
    await route.continue();
  });
  await page.getByRole("heading", { name: "Draw", exact: true }).waitFor();
  await page.getByRole("link", { name: "Home", exact: true }).click();
  const title = page.getByRole("heading", { name: "Home", exact: true });
  await title.waitFor();
  assert.ok(await isFocused(title));
  const field = page.getByLabel("Write a post");
  await field.click();
  held.resolve();
  await page.locator("#aside .card").waitFor();
  assert.ok(await isFocused(field));
  // The title of a profile is replaced once the profile is loaded.
  await page.evaluate((handle) => { location.hash = `#/@${handle}`; }, other.handle);
  await page.getByRole("button", { name: "Follow @fo_other" }).waitFor();
  assert.ok(await isFocused(page.getByRole("heading", { level: 1, name: "fo_other" })));
  await close(page);
});

test("a post that is edited or deleted changes and goes also where it is shown as a boost", async () => {
  const reader = await server.register("b_reader");
  await server.register("b_author");
  await server.register("b_other");
  await server.follow("b_reader", "b_author");
  const post = await server.post("b_author", "worth a boost");
  await server.ask("PUT", `/v1/users/@b_other/boosts/${post.id}`);
  const page = await open(browser, server, { me: reader, at: "/#/@b_other" });
  await page.getByText("worth a boost").waitFor();
  await page.waitForFunction(async () => (await import("/assets/js/live.js")).state === "open");
  await edit(post, "worth an edit");
  await page.getByText("worth an edit").waitFor();
  await remove(post);
  await page.getByText("worth an edit").waitFor({ state: "detached" });
  await close(page);
});

test("the timeline on the welcome page loses deleted posts and shows edits", async () => {
  const other = await Server.start();
  await other.register("lively");
  const [gone, changed] = [await other.post("lively", "will go"), await other.post("lively", "will change")];
  const page = await open(browser, other);
  await page.locator(".glimpse").getByText("will go").waitFor();
  await other.post("lively", "the stream is open");
  await page.locator(".glimpse").getByText("the stream is open").waitFor();
  await other.remove(gone);
  await other.edit(changed, "has changed");
  await until(async () => (await texts(page, ".glimpse")).length === 2, "two posts");
  await page.locator(".glimpse").getByText("has changed").waitFor();
  await close(page);
  await other.stop();
});

test("the same post shown twice has one state", async () => {
  const me = await server.register("tw_me");
  const post = await server.post("tw_me", "pinned");
  await server.ask("PUT", `/v1/users/@tw_me/pins/${post.id}`);
  const page = await open(browser, server, { me, at: "/#/@tw_me" });
  const [above, below] = [".pins", ".feed"].map((place) => page.locator(`${place} .post`));
  await above.waitFor();
  await below.getByRole("button", { name: "Favourite" }).click();
  await above.getByRole("button", { name: "Favourite, 1" }).click();
  await below.locator("[aria-label=Favourite][aria-pressed=false]").waitFor();
  const reaction = await server.ask("GET", `/v1/users/@tw_me/reactions?posts=${post.id}`);
  assert.equal(reaction.items[0].favourited, false);
  await page.close();
});

test("a thread shows what changed while its window was hidden", async () => {
  const me = await server.register("th_me");
  await server.register("th_author");
  const publish = (text, in_reply_to_id) => server.ask("POST", "/v1/users/@th_author/posts", { text, in_reply_to_id });
  const root = await publish("root");
  const one = await publish("one", root.id);
  const two = await publish("two", root.id);
  const page = await open(browser, server, { me, at: `/#/post/${root.id}` });
  await page.getByText("two", { exact: true }).waitFor();
  await page.locator(`.post[data-id="${two.id}"]`).getByRole("button", { name: "Reply" }).click();
  await page.getByLabel("Reply to @th_author").fill("@th_author half a reply");
  // The reader does not follow the author, so the stream reports none of this.
  await remove(one);
  await edit(two, "two, edited");
  const below = await publish("below two", two.id);
  await publish("three", root.id);
  await fresh(page);
  await page.getByText("three").waitFor();
  assert.deepEqual(await texts(page, ".thread"), ["root", "two, edited", "below two", "three"]);
  assert.equal(await page.locator(`.post[data-id="${below.id}"]`).evaluate((node) => node.style.getPropertyValue("--level")), "2");
  assert.equal(await page.getByLabel("Reply to @th_author").inputValue(), "@th_author half a reply");
  await remove(root);
  await fresh(page);
  await page.getByRole("heading", { name: "This post does not exist" }).waitFor();
  page.faults = page.faults.filter((fault) => !fault.includes("404"));
  await close(page);
});

test("a page that posts arrive on has a bounded number of them", async () => {
  const me = await server.register("big");
  const page = await open(browser, server, { me, at: "/#/@big" });
  await page.getByRole("heading", { name: "You have not posted yet" }).waitFor();
  await streaming(page, me);
  await numbered("big", 0, 300);
  await page.getByText("number 299", { exact: true }).waitFor();
  await until(async () => (await texts(page)).length <= 240, "at most 240 posts");
  const numbers = (await texts(page)).map((text) => Number(text.slice(7)));
  numbers.forEach((number, at) => assert.ok(at === 0 || numbers[at - 1] === number + 1, "no gap and no duplicate"));
  await close(page);
});

test("on a phone a question and a long hashtag fit, and a number is no hashtag", async () => {
  const me = await server.register("ph_me");
  await server.post("ph_me", "to delete");
  const page = await open(browser, server, { me, ...PHONE });
  const fits = async (what) => assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= screen.width), what);
  await page.getByRole("button", { name: "Delete post" }).click();
  await page.getByRole("group", { name: "Delete this post?" }).waitFor();
  await fits("the question");
  await page.goto(`${server.url}/#/tags/${"longest".repeat(12)}`);
  await page.getByRole("heading", { name: /^#longest/ }).waitFor();
  await fits("the hashtag");
  await page.goto(`${server.url}/#/tags/2024`);
  await page.getByRole("heading", { name: "This is not a hashtag" }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Try again" }).count(), 0);
  page.faults = page.faults.filter((fault) => !fault.includes("422"));
  await close(page);
});

test("after a deletion the focus is near what was deleted", async () => {
  const me = await server.register("af_me");
  await server.register("af_other", "Other");
  const root = await server.post("af_other", "root");
  const reply = await server.ask("POST", "/v1/users/@af_me/posts", { text: "reply", in_reply_to_id: root.id });
  const page = await open(browser, server, { me, at: `/#/post/${root.id}` });
  await page.locator(`.post[data-id="${reply.id}"]`).getByRole("button", { name: "Delete post" }).click();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.locator(`.post[data-id="${reply.id}"]`).waitFor({ state: "detached" });
  assert.ok(await isFocused(page.locator(`.post[data-id="${root.id}"] a.named`)));
  await server.follow("af_other", "af_me");
  await page.goto(`${server.url}/#/notifications`);
  await page.getByRole("button", { name: "Clear all" }).click();
  await page.getByRole("button", { name: "Clear", exact: true }).click();
  await page.getByRole("heading", { name: "No notifications" }).waitFor();
  await until(() => isFocused(page.getByRole("heading", { level: 1, name: "Notifications" })), "the focus on the title");
  await close(page);
});
