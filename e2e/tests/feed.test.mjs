// Users, posts, replies and mentions in open windows.

import assert from "node:assert/strict";
import { test } from "node:test";
import { close, open, setUp, until } from "../browser.mjs";

const [browser, server] = await setUp();

const texts = (page) => page.locator(".feed .post .text").allTextContents();
const write = async (page, text) => {
  await page.getByLabel("Write a post").fill(text);
  await page.getByRole("button", { name: "Post", exact: true }).click();
};

test("a new user registers, follows, posts in one window and sees the post in another", async () => {
  await server.register("wren", "Wren");
  await server.post("wren", "I was here first");
  const ada = await open(browser, server);
  await ada.getByLabel("Your handle").fill("ada");
  await ada.getByRole("button", { name: "Join" }).click();
  // An empty timeline suggests users to follow.
  await ada.getByRole("button", { name: "Follow all", exact: true }).click();
  await ada.getByText("I was here first").waitFor();

  const wren = await open(browser, server, { me: await server.ask("GET", "/v1/users/@wren") });
  await write(wren, "hello to all");
  await wren.locator(".feed .post", { hasText: "hello to all" }).waitFor();
  // A button announces it, and the page does not move.
  const bar = ada.getByRole("button", { name: "1 new post" });
  await bar.waitFor();
  assert.deepEqual(await texts(ada), ["I was here first"]);
  await bar.click();
  await until(async () => (await texts(ada)).length === 2, "both posts");
  assert.deepEqual(await texts(ada), ["hello to all", "I was here first"]);
  await close(ada);
  await close(wren);
});

test("a reply reaches those who follow both, and whom it mentions", async () => {
  const users = {};
  for (const handle of ["r_author", "r_asked", "r_both", "r_one"]) users[handle] = await server.register(handle);
  for (const reader of ["r_both", "r_one"]) await server.follow(reader, "r_author");
  await server.follow("r_both", "r_asked");
  const first = await server.post("r_asked", "shall we?");
  await server.follow("r_author", "r_asked");
  await server.post("r_author", "to begin with");
  const [author, asked, both, one] = await Promise.all(Object.values(users).map((me) => open(browser, server, { me, at: me.handle === "r_asked" ? "/#/mentions" : "/" })));
  await both.getByText("to begin with").waitFor();
  await one.getByText("to begin with").waitFor();

  const post = author.locator(`.post[data-id="${first.id}"]`);
  await post.getByRole("button", { name: "Reply" }).click();
  const field = post.getByLabel("Reply to @r_asked");
  assert.equal(await field.inputValue(), "@r_asked ");
  await field.pressSequentially("gladly");
  await field.press("Control+Enter");
  await author.locator(".feed .post", { hasText: "gladly" }).waitFor();
  await asked.locator(".feed .post", { hasText: "gladly" }).waitFor();
  await both.getByRole("button", { name: "1 new post" }).waitFor();
  // A later post has arrived at the user who must not see the reply, so the reply is not just delayed.
  await server.post("r_author", "to all");
  await one.getByRole("button", { name: "1 new post" }).click();
  await one.getByText("to all").waitFor();
  assert.deepEqual(await texts(one), ["to all", "to begin with"]);
  for (const page of [author, asked, both, one]) await close(page);
});

test("a mention is a link, marks the page of mentions, and is completed while writing", async () => {
  const me = await server.register("m_writer");
  const other = await server.register("m_reader", "Reader");
  await server.follow("m_writer", "m_reader");
  const writer = await open(browser, server, { me });
  const reader = await open(browser, server, { me: other });
  await reader.getByRole("heading", { name: "Your timeline is empty" }).waitFor();
  const field = writer.getByLabel("Write a post");
  await field.pressSequentially("good morning @m_re");
  await writer.getByRole("option", { name: "Reader" }).waitFor();
  await field.press("Enter");
  assert.equal(await field.inputValue(), "good morning @m_reader ");
  await field.press("Control+Enter");
  await writer.locator(".feed .post .text a", { hasText: "@m_reader" }).click();
  await writer.getByRole("heading", { level: 1, name: "Reader" }).waitFor();
  await reader.getByRole("link", { name: "Notifications 1 new" }).waitFor();
  await reader.getByRole("link", { name: "Notifications" }).click();
  await reader.locator(".notices .post", { hasText: "good morning" }).waitFor();
  assert.equal(await reader.getByRole("link", { name: "Notifications 1 new" }).count(), 0);
  await close(writer);
  await close(reader);
});

test("only own posts can be deleted", async () => {
  const me = await server.register("d_one");
  await server.register("d_two");
  await server.follow("d_one", "d_two");
  await server.post("d_two", "not yours");
  await server.post("d_one", "a slip");
  const page = await open(browser, server, { me });
  await page.getByText("a slip").waitFor();
  assert.equal(await page.getByRole("button", { name: "Delete post" }).count(), 1);
  await page.getByRole("button", { name: "Delete post" }).click();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await until(async () => (await texts(page)).length === 1, "one post left");
  assert.deepEqual(await texts(page), ["not yours"]);
  await close(page);
});

test("a timeline is read to its end and back, with a bounded number of posts in the page", async () => {
  const me = await server.register("long");
  const lines = Array.from({ length: 600 }, (_, at) => JSON.stringify({ op: "post", user: "@long", text: `number ${at}` }));
  await fetch(`${server.url}/v1/batch`, { method: "POST", body: lines.join("\n"), headers: { "Content-Type": "application/x-ndjson" } }).then((answer) => answer.text());
  const page = await open(browser, server, { me });
  await page.getByText("number 599", { exact: true }).waitFor();
  let most = 0;
  await until(async () => {
    await page.mouse.wheel(0, 4000);
    const shown = await texts(page);
    most = Math.max(most, shown.length);
    const numbers = shown.map((text) => Number(text.slice(7)));
    numbers.forEach((number, at) => assert.ok(at === 0 || numbers[at - 1] === number + 1, "no gap and no duplicate"));
    return shown.at(-1) === "number 0";
  }, "the oldest post");
  assert.ok(most < 300, `${most} posts in the page`);
  await until(async () => {
    await page.mouse.wheel(0, -4000);
    return (await texts(page))[0] === "number 599";
  }, "the newest post again");
  await close(page);
});

test("the profile has a follow button and the lists of follows", async () => {
  const me = await server.register("p_me");
  await server.register("p_other", "Other", "writes nothing");
  const page = await open(browser, server, { me, at: "/#/@p_other" });
  await page.getByRole("button", { name: "Follow @p_other" }).click();
  await page.getByRole("button", { name: "Unfollow @p_other" }).waitFor();
  await page.getByRole("link", { name: "1 Followers" }).click();
  await page.getByLabel("Followers").getByText("@p_me").waitFor();
  await page.reload();
  await page.getByLabel("Followers").getByText("@p_me").waitFor();
  await page.getByRole("button", { name: "Unfollow @p_other" }).click();
  await page.getByRole("button", { name: "Follow @p_other" }).waitFor();
  await page.goto(`${server.url}/#/@nobody_at_all`);
  await page.getByRole("heading", { name: "There is no user @nobody_at_all" }).waitFor();
  page.faults.splice(0, page.faults.length, ...page.faults.filter((fault) => !/404/.test(fault)));
  await close(page);
});
