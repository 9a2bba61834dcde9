// Writing while the server is down, while users are suggested, and while lists change.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { PHONE, close, faults, fresh, isFocused, later, open, setUp, until } from "../browser.mjs";

const [browser, server] = await setUp();

test("a reply that is canceled while the server is down is not posted", async () => {
  const me = await server.register("x_me");
  await server.post("x_me", "to reply to");
  const page = await open(browser, server, { me });
  page.mayBeLost = true;
  await page.getByText("to reply to").waitFor();
  await page.clock.install();
  for (const how of ["Cancel", "Escape"]) {
    await page.getByRole("button", { name: "Reply" }).click();
    const field = page.getByLabel("Reply to @x_me");
    await server.kill();
    await field.fill(`@x_me not wanted: ${how}`);
    await field.press("Control+Enter");
    await page.getByText("Waiting for the server").waitFor();
    if (how === "Cancel") await page.getByRole("button", { name: "Cancel" }).click();
    else await field.press("Escape");
    await field.waitFor({ state: "detached" });
    await server.up();
    await page.clock.runFor(20_000);
  }
  await page.getByLabel("Write a post").fill("wanted");
  await page.getByRole("button", { name: "Post", exact: true }).click();
  await page.locator(".feed .post", { hasText: /^(?!.*to reply).*wanted/s }).first().waitFor();
  const { items } = await server.ask("GET", "/v1/users/@x_me/posts");
  assert.deepEqual(items.map(({ text }) => text), ["wanted", "to reply to"]);
  await close(page);
});

test("a post that waits for the server is shown as such after return to its page, and posted once", async () => {
  const me = await server.register("w_me");
  await server.post("w_me", "first");
  const page = await open(browser, server, { me, at: "/#/draw" });
  await page.getByRole("heading", { name: "Draw", exact: true }).waitFor();
  await page.getByRole("link", { name: "Home", exact: true }).click();
  await page.getByText("first").waitFor();
  page.mayBeLost = true;
  await server.kill();
  const field = page.getByLabel("Write a post");
  await field.fill("pending");
  await page.getByRole("button", { name: "Post", exact: true }).click();
  await page.getByText("Waiting for the server").waitFor();
  await page.getByRole("link", { name: "Draw", exact: true }).click();
  await page.getByRole("heading", { name: "The server cannot be reached" }).waitFor();
  await page.getByRole("link", { name: "Home", exact: true }).click();
  await page.getByText("Waiting for the server").waitFor();
  assert.equal(await field.inputValue(), "pending");
  assert.equal(await field.isEditable(), false);
  await server.up();
  await until(async () => (await field.inputValue()) === "" && field.isEditable(), "an empty field");
  await page.locator(".feed .post", { hasText: "pending" }).waitFor();
  const { items } = await server.ask("GET", "/v1/users/@w_me/posts");
  assert.deepEqual(items.map(({ text }) => text), ["pending", "first"]);
  await close(page);
});

test("a post that arrives late deletes no draft of another user", async () => {
  const [one, two] = [await server.register("dr_one"), await server.register("dr_two")];
  const page = await open(browser, server, { me: one });
  const held = later();
  await page.route("**/posts", async (route) => {
    await held;
    await route.continue();
  });
  const field = page.getByLabel("Write a post");
  await field.fill("by one");
  await page.getByRole("button", { name: "Post", exact: true }).click();
  await page.evaluate(async (user) => {
    (await import("/assets/js/session.js")).become(user);
    location.hash = "#/home?";
    location.hash = "#/home";
  }, two);
  await until(async () => (await field.inputValue()) === "", "the field of the other user");
  await field.fill("a draft by two");
  const answer = page.waitForResponse((response) => response.url().endsWith("/posts"));
  held.resolve();
  assert.equal((await answer).status(), 201);
  await page.getByText("Posted.").waitFor({ state: "attached" });
  await page.reload();
  assert.equal(await field.inputValue(), "a draft by two");
  await close(page);
});

test("Ctrl+Enter posts what is written while users are suggested, and Escape closes only the list", async () => {
  const me = await server.register("k_me");
  await server.register("k_found", "Found");
  await server.follow("k_me", "k_found");
  const post = await server.post("k_me", "to reply to");
  const page = await open(browser, server, { me });
  await page.getByRole("button", { name: "Reply" }).click();
  const field = page.getByLabel("Reply to @k_me");
  await field.pressSequentially("ask @k_fo");
  const option = page.getByRole("option", { name: "Found" });
  await option.waitFor();
  await field.press("Escape");
  await option.waitFor({ state: "hidden" });
  assert.equal(await field.inputValue(), "@k_me ask @k_fo");
  await field.press("u");
  await option.waitFor();
  await field.press("Control+Enter");
  await until(async () => (await server.ask("GET", `/v1/posts/${post.id}/context`)).items.length === 1, "the reply");
  const { items: replies } = await server.ask("GET", `/v1/posts/${post.id}/context`);
  assert.equal(replies[0].text, "@k_me ask @k_fou");
  await close(page);
});

test("a reply that is written among notifications or mentions stays while others arrive, which are counted", async () => {
  const me = await server.register("n_me");
  await server.register("n_other");
  for (let at = 0; at < 30; at += 1) await server.post("n_other", `@n_me number ${at}`);
  for (const at of ["notifications", "mentions"]) {
    const page = await open(browser, server, { me, at: `/#/${at}` });
    const post = page.locator(".post", { hasText: "number 29" });
    await post.getByRole("button", { name: "Reply" }).click();
    const field = post.getByLabel("Reply to @n_other");
    await field.fill(`@n_other from ${at}`);
    await page.evaluate(() => scrollTo(0, 0));
    await server.post("n_other", `@n_me while you write in ${at}`);
    await page.locator(".post", { hasText: `while you write in ${at}` }).waitFor();
    await fresh(page);
    assert.equal(await field.inputValue(), `@n_other from ${at}`);
    assert.ok(await isFocused(field));
    await page.evaluate(() => scrollTo(0, 1500));
    await server.post("n_other", `@n_me further up in ${at}`);
    await page.getByRole("link", { name: "Notifications 1 new" }).waitFor();
    await page.evaluate(() => scrollTo(0, 0));
    await page.locator(".post", { hasText: `further up in ${at}` }).waitFor();
    await page.getByRole("link", { name: "Notifications 1 new" }).waitFor({ state: "detached" });
    await close(page);
  }
});

test("an own post is edited in its place, with its warning, and shown so in other windows", async () => {
  const me = await server.register("ed_me");
  const post = await server.post("ed_me", "a slip of the pan");
  await server.post("ed_me", "another");
  const page = await open(browser, server, { me, ...PHONE });
  const other = await open(browser, server, { me, at: `/#/post/${post.id}` });
  await other.getByText("a slip").waitFor();
  const shown = page.locator(`.post[data-id="${post.id}"]`);
  const edit = shown.getByRole("button", { name: "Edit post" });
  const field = shown.getByLabel("Edit your post");
  const save = shown.getByRole("button", { name: "Save" });
  await edit.click();
  assert.equal(await field.inputValue(), "a slip of the pan");
  assert.ok(await save.isDisabled());
  assert.equal(await shown.getByLabel("Who sees it").count(), 0);
  await field.press("Escape");
  assert.ok(await isFocused(edit));
  await shown.getByText("a slip of the pan").waitFor();

  await edit.click();
  await field.fill("a slip of the pen, @ed_me");
  await shown.getByRole("button", { name: "Content warning" }).click();
  await shown.getByRole("textbox", { name: "Content warning" }).fill("pens");
  await save.click();
  // A reader who has opened the text still sees it.
  await shown.getByRole("button", { name: "Show less" }).waitFor();
  assert.ok(await isFocused(edit));
  assert.equal(await shown.locator(".text a").textContent(), "@ed_me");
  await shown.getByRole("button", { name: "edited" }).click();
  const sheet = page.getByRole("dialog", { name: "Edit history" });
  const versions = sheet.getByRole("listitem");
  await versions.nth(1).waitFor();
  assert.deepEqual(await sheet.locator(".text").allTextContents(), ["a slip of the pen, @ed_me", "a slip of the pan"]);
  assert.deepEqual(await sheet.locator(".warning").allTextContents(), ["Content warning: pens"]);
  assert.deepEqual(await faults(page, "dialog"), []);
  await sheet.getByRole("button", { name: "Close" }).click();
  await sheet.waitFor({ state: "detached" });
  await other.locator(".thread .chosen", { hasText: "pens" }).waitFor();
  const { text, warning, visibility } = await server.ask("GET", `/v1/posts/${post.id}`);
  assert.deepEqual([text, warning, visibility], ["a slip of the pen, @ed_me", "pens", "public"]);

  await edit.click();
  await shown.getByRole("button", { name: "Content warning" }).click();
  await save.click();
  await until(async () => (await shown.locator(".warned").count()) === 0, "no warning");
  assert.equal(await shown.locator(".text").textContent(), "a slip of the pen, @ed_me");
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= screen.width));
  await close(page);
  await close(other);
});

test("the pages find the same URLs, mentions and hashtags in texts as the server, and count as many characters", async () => {
  const page = await open(browser, server);
  const cases = JSON.parse(await readFile(new URL("../../crates/feed/tests/tokens.json", import.meta.url), "utf8"));
  const found = await page.evaluate(async (texts) => {
    const { length, tokens } = await import("/assets/js/text.js");
    const shown = (text, { kind, start, end, name, domain }) => {
      if (kind === "url") return [kind, text.slice(start, end)];
      return [kind, name.toLowerCase() + (domain ? `@${domain}` : "")];
    };
    return texts.map((text) => ({ tokens: tokens(text).map((token) => shown(text, token)), length: length(text) }));
  }, cases.map(({ text }) => text));
  for (const [index, { text, ...expected }] of cases.entries()) {
    assert.deepEqual({ ...found[index], ...expected }, found[index], text);
  }
  await close(page);
});
