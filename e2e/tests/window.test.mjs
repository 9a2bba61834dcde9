// State of an open window: positions, drafts, a list without gaps, and a page that fits the width of a phone.

import assert from "node:assert/strict";
import { test } from "node:test";
import { PHONE, close, fresh, later, open, setUp, until } from "../browser.mjs";

const [browser, server] = await setUp();

const texts = (page) => page.locator(".feed .post .text").allTextContents();
const numbered = (handle, from, to) => {
  const lines = Array.from({ length: to - from }, (_, at) => JSON.stringify({ op: "post", user: `@${handle}`, text: `number ${from + at}` }));
  return fetch(`${server.url}/v1/batch`, { method: "POST", body: lines.join("\n"), headers: { "Content-Type": "application/x-ndjson" } }).then((answer) => answer.text());
};

test("with many stories a page is as wide as a phone, and all of it can be reached", async () => {
  const me = await server.register("ph_me");
  for (let at = 0; at < 7; at += 1) {
    await server.register(`ph_${at}`, `A Rather Long Name ${at}`);
    await server.befriend("ph_me", `ph_${at}`);
    await server.postStory(`ph_${at}`, "a story", 600);
  }
  await server.post("ph_me", "a post");
  for (const at of ["home", "stories"]) {
    const page = await open(browser, server, { me, at: `/#/${at}`, ...PHONE });
    await page.locator(".rings li").nth(7).waitFor();
    assert.equal(await page.evaluate(() => innerWidth), 390, `${at} is laid out as wide as the screen`);
    const inside = async (locator) => {
      const { x, y, width, height } = await locator.boundingBox();
      assert.ok(x >= 0 && y >= 0 && x + width <= 390 && y + height <= 844, `${at}: ${await locator.textContent()} ${JSON.stringify([x, y, width, height])}`);
    };
    const tabs = page.getByRole("navigation", { name: "Feed" }).getByRole("link");
    assert.deepEqual(await tabs.allTextContents(), ["Home", "Notifications", "Stories", "Profile", "Tools"].map((title) => (title === "Notifications" ? "Notifications0 new" : title)));
    for (let tab = 0; tab < 5; tab += 1) await inside(tabs.nth(tab));
    await page.locator(".rings li button").nth(1).click();
    for (const name of ["Close", "Next story"]) await inside(page.getByRole("dialog").getByRole("button", { name }));
    await close(page);
  }
});

test("suggestions stay after the first follow, and the timeline is loaded completely", async () => {
  await server.register("s_one", "Sone");
  await server.register("s_two", "Stwo");
  await server.post("s_two", "s_two first");
  for (const text of ["first", "second", "third"]) await server.post("s_one", `s_one ${text}`);
  const me = await server.register("s_new");
  const page = await open(browser, server, { me });
  await page.getByRole("button", { name: "Follow @s_one" }).click();
  await page.getByText("s_one first").waitFor();
  await server.post("s_one", "s_one live");
  await page.getByRole("button", { name: "1 new post" }).click();
  await until(async () => (await texts(page)).length === 4, "all posts");
  assert.deepEqual(await texts(page), ["s_one live", "s_one third", "s_one second", "s_one first"]);
  await page.getByRole("button", { name: "Follow @s_two" }).click();
  await page.getByRole("button", { name: "Unfollow @s_two" }).waitFor();
  await page.getByRole("button", { name: "Done" }).click();
  assert.equal(await page.getByRole("button", { name: "Unfollow @s_two" }).count(), 0);
  await close(page);
});

test("posts that are deleted or edited elsewhere change in an open window", async () => {
  const me = await server.register("e_me");
  const posts = [];
  for (const text of ["will go", "will change", "stays"]) posts.push(await server.post("e_me", text));
  const page = await open(browser, server, { me });
  await server.post("e_me", "the stream is open");
  await page.getByText("the stream is open").waitFor();
  await server.remove(posts[0]);
  await server.edit(posts[1], "has changed");
  await page.getByText("has changed").waitFor();
  await until(async () => (await texts(page)).length === 3, "one post less");
  assert.deepEqual(await texts(page), ["the stream is open", "stays", "has changed"]);
  assert.equal(await page.locator(".post .edited", { hasText: "edited" }).count(), 1);
  await close(page);
});

test("deleting a post that is already deleted removes it from the list", async () => {
  const me = await server.register("g_me");
  const gone = await server.post("g_me", "deleted elsewhere");
  const page = await open(browser, server, { me });
  page.mayBeLost = true;
  await server.post("g_me", "kept");
  await page.getByText("kept").waitFor();
  // A window without a stream gets no events.
  await page.route("**/events", (route) => route.abort());
  await page.reload();
  await page.getByText("deleted elsewhere").waitFor();
  await page.route("**/timeline*", (route) => route.abort());
  await server.remove(gone);
  const post = page.locator(`.post[data-id="${gone.id}"]`);
  await post.getByRole("button", { name: "Delete post" }).click();
  await post.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("This post was already deleted.").waitFor();
  await until(async () => (await texts(page)).length === 1, "one post left");
  await close(page);
});

test("posts that were deleted while a window did not listen are gone when it listens again", async () => {
  const me = await server.register("f_me");
  const gone = await server.post("f_me", "deleted meanwhile");
  await server.post("f_me", "kept");
  const page = await open(browser, server, { me });
  await page.getByText("deleted meanwhile").waitFor();
  await server.remove(gone);
  await fresh(page);
  await page.getByText("deleted meanwhile").waitFor({ state: "detached" });
  assert.deepEqual(await texts(page), ["kept"]);
  await close(page);
});

test("back and reload restore the position, near and far from the start", async () => {
  const me = await server.register("back");
  await numbered("back", 0, 120);
  const page = await open(browser, server, { me });
  for (const number of [110, 45]) {
    const post = page.getByText(`number ${number}`, { exact: true });
    await page.getByText("number 119", { exact: true }).waitFor();
    await until(async () => {
      if (await post.count()) return true;
      await page.mouse.wheel(0, 3000);
      return false;
    }, `number ${number}`);
    await post.evaluate((node) => scrollBy(0, node.getBoundingClientRect().top - 200));
    const top = () => post.evaluate((node) => Math.round(node.getBoundingClientRect().top));
    const there = await top();
    const returned = (how) => until(async () => (await post.count()) > 0 && Math.abs((await top()) - there) <= 2, `${number} where it was, ${how}`);
    await page.getByRole("link", { name: "Stories", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "Stories" }).waitFor();
    assert.equal(await page.evaluate(() => scrollY), 0, "navigation begins at the start of a page");
    await page.goBack();
    await returned("back");
    await page.reload();
    await returned("reloaded");
    // A click on the link of the current page scrolls to the top.
    await page.getByRole("link", { name: "Home", exact: true }).click();
    await until(() => page.evaluate(() => scrollY === 0), "the start");
  }
  await close(page);
});

test("unsent text is kept, only for its user", async () => {
  const me = await server.register("draft_one");
  const other = await server.register("draft_two");
  const { id } = await server.post("draft_one", "a post to reply to");
  const page = await open(browser, server, { me });
  const field = page.getByLabel("Write a post");
  await field.fill("half a thought");
  const post = page.locator(`.post[data-id="${id}"]`);
  await post.getByRole("button", { name: "Reply" }).click();
  await post.getByLabel("Reply to @draft_one").fill("@draft_one half a reply");
  await page.getByRole("link", { name: "Stories", exact: true }).click();
  await page.getByLabel("Post a story", { exact: true }).and(page.locator("textarea")).waitFor();
  await page.goBack();
  assert.equal(await field.inputValue(), "half a thought");
  await page.reload();
  assert.equal(await field.inputValue(), "half a thought");
  await post.getByRole("button", { name: "Reply" }).click();
  assert.equal(await post.getByLabel("Reply to @draft_one").inputValue(), "@draft_one half a reply");
  await page.evaluate((text) => sessionStorage.setItem("roost.me", text), JSON.stringify(other));
  await page.reload();
  assert.equal(await field.inputValue(), "");
  await page.evaluate((text) => sessionStorage.setItem("roost.me", text), JSON.stringify(me));
  await page.reload();
  await page.getByRole("button", { name: "Post", exact: true }).click();
  await page.locator(".feed .post", { hasText: "half a thought" }).waitFor();
  await page.reload();
  await page.getByText("half a thought").waitFor();
  assert.equal(await field.inputValue(), "");
  await close(page);
});

test("a draft whose response was lost is not posted twice", async () => {
  const me = await server.register("draft_lost");
  const page = await open(browser, server, { me });
  page.mayBeLost = true;
  // The post is created, but its response and the page are lost.
  const sent = later();
  await page.route("**/posts", async (route) => {
    await route.fetch();
    sent.resolve();
    await route.abort();
  });
  await page.getByLabel("Write a post").fill("once");
  await page.getByRole("button", { name: "Post", exact: true }).click();
  await sent;
  await page.unroute("**/posts");
  await page.reload();
  const button = page.getByRole("button", { name: "Post", exact: true });
  if (await page.getByLabel("Write a post").inputValue()) await button.click();
  await page.locator(".feed .post", { hasText: "once" }).waitFor();
  const { items } = await server.ask("GET", "/v1/users/@draft_lost/posts");
  assert.equal(items.length, 1);
  await close(page);
});

test("an own reply is only in the lists it belongs to", async () => {
  const me = await server.register("o_me");
  await server.register("o_other");
  await server.post("o_other", "hello @o_me");
  for (const at of ["mentions", "@o_other"]) {
    const page = await open(browser, server, { me, at: `/#/${at}` });
    await page.locator(".feed .post").getByRole("button", { name: "Reply" }).click();
    await page.getByLabel("Reply to @o_other").fill(`@o_other hello from ${at}`);
    await page.keyboard.press("Control+Enter");
    await page.getByText("Posted.").first().waitFor();
    assert.deepEqual(await texts(page), ["hello @o_me"], at);
    await close(page);
  }
});

test("an unknown address shows an error page", async () => {
  const me = await server.register("lost");
  const page = await open(browser, server, { me, at: "/#/no/such" });
  await page.getByRole("heading", { level: 1, name: "Page not found" }).waitFor();
  assert.equal(await page.title(), "Page not found · roost");
  await page.getByRole("link", { name: "Go to Home" }).click();
  await page.getByRole("heading", { level: 1, name: "Home" }).waitFor();
  await close(page);
});

test("completion sends one request after a pause, and none for what it has asked", async () => {
  const me = await server.register("c_me");
  await server.register("c_found", "Found");
  const page = await open(browser, server, { me });
  await page.getByRole("heading", { level: 1, name: "Home" }).waitFor();
  await page.clock.install();
  const asked = [];
  page.on("request", (request) => { if (request.url().includes("search=")) asked.push(new URL(request.url()).searchParams.get("search")); });
  const field = page.getByLabel("Write a post");
  assert.equal(await field.getAttribute("role"), null);
  assert.equal(await field.getAttribute("aria-expanded"), null);
  await field.pressSequentially("hi @c_found");
  assert.deepEqual(asked, []);
  const answered = page.waitForResponse((answer) => answer.url().includes("search=c_found"));
  await page.clock.runFor(1000);
  await answered;
  assert.deepEqual(asked, ["c_found"]);
  await field.fill("");
  await field.pressSequentially("@c_foun");
  await page.clock.runFor(1000);
  const option = page.getByRole("option", { name: "Found" });
  await option.waitFor();
  assert.equal(await field.getAttribute("aria-activedescendant"), await option.getAttribute("id"));
  await field.press("d");
  await page.clock.runFor(1000);
  await option.waitFor({ state: "hidden" });
  assert.deepEqual(asked, ["c_found", "c_foun"]);
  await close(page);
});

test("handles are completed that begin as typed, or almost, of users whom the page has not seen", async () => {
  const me = await server.register("s_me");
  const [blocked] = [await server.register("searched_blocked", "Blocked"), await server.register("searched_one", "One"), await server.register("searched_two", "Two")];
  await fetch(`${server.url}/v1/users/${me.id}/blocks/${blocked.id}`, { method: "PUT" });
  const page = await open(browser, server, { me });
  const field = page.getByLabel("Write a post");
  await field.pressSequentially("hi @searched_");
  await page.getByRole("option", { name: "Two" }).waitFor();
  assert.deepEqual((await page.locator(".complete .handle").allTextContents()).sort(), ["@searched_one", "@searched_two"]);
  await field.fill("");
  await field.pressSequentially("hi @serched_t");
  const two = page.getByRole("option", { name: "Two" });
  await two.waitFor();
  assert.equal(await field.getAttribute("aria-activedescendant"), null, "Enter does not take what was not typed");
  await field.press("Escape");
  await two.waitFor({ state: "hidden" });
  await field.press("x");
  await field.press("Backspace");
  await two.waitFor();
  await field.press("ArrowDown");
  await field.press("Enter");
  assert.equal(await field.inputValue(), "hi @searched_two ");
  await server.register("searched");
  await field.fill("");
  await field.pressSequentially("hi @searched");
  await page.getByRole("option", { name: "searched @searched", exact: true }).waitFor();
  await field.press("Tab");
  assert.equal(await field.inputValue(), "hi @searched ", "the exact one comes first");
  await close(page);
});

test("a list that is reloaded while older posts load has no gap", async () => {
  const me = await server.register("gap");
  await server.register("gap_writer");
  await server.follow("gap", "gap_writer");
  await numbered("gap_writer", 0, 100);
  const page = await open(browser, server, { me });
  const [asked, released] = [later(), later()];
  await page.route(/timeline\?.*cursor=\d/, async (route) => {
    asked.resolve();
    await released;
    await route.continue().catch(() => null);
  });
  await page.getByText("number 99", { exact: true }).waitFor();
  await page.mouse.wheel(0, 4000);
  await asked;
  await numbered("gap_writer", 100, 200);
  await page.getByRole("button", { name: "60+ new posts" }).click();
  await page.getByText("number 199", { exact: true }).waitFor();
  released.resolve();
  await until(async () => {
    await page.mouse.wheel(0, 4000);
    const numbers = (await texts(page)).map((text) => Number(text.slice(7)));
    numbers.forEach((number, at) => assert.ok(at === 0 || numbers[at - 1] === number + 1, `no gap: ${numbers[at - 1]}, ${number}`));
    return numbers.at(-1) === 0;
  }, "the oldest post");
  await close(page);
});
