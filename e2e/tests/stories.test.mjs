// Stories appear, are viewed, and expire while they are shown.

import assert from "node:assert/strict";
import { test } from "node:test";
import { close, open, setUp, until } from "../browser.mjs";

const [browser, server] = await setUp();

test("a story is posted and viewed, and its author sees who viewed it", async () => {
  const author = await server.register("author", "Tella");
  const friend = await server.register("friend", "Freda");
  await server.befriend("author", "friend");
  const one = await open(browser, server, { me: author, at: "/#/stories" });
  const other = await open(browser, server, { me: friend });
  await other.getByRole("button", { name: "Add story" }).waitFor();
  await one.getByLabel("Post a story", { exact: true }).and(one.locator("textarea")).fill("back in five minutes");
  await one.getByLabel("Expires after").selectOption("5 minutes");
  await one.getByRole("button", { name: "Post story", exact: true }).click();
  await one.getByText("back in five minutes").waitFor();

  await other.getByRole("button", { name: "Tella 1 story, 1 new" }).click();
  await other.getByRole("dialog").getByText("back in five minutes").waitFor();
  await other.keyboard.press("Escape");
  await other.getByRole("button", { name: /^Tella 1 story, [0-9]/ }).waitFor();
  await one.getByRole("button", { name: "Open: back in five minutes" }).click();
  await one.getByText("Seen by Freda").waitFor();
  await one.getByRole("button", { name: "Delete story" }).click();
  await other.getByRole("button", { name: /^Tella/ }).waitFor({ state: "detached" });
  await close(one);
  await close(other);
});

test("a story that expires leaves the tray, the list and the viewer", async () => {
  await server.register("brief", "Brie");
  const me = await server.register("watcher");
  await server.befriend("brief", "watcher");
  const page = await open(browser, server, { me, at: "/#/stories" });
  await page.getByRole("heading", { name: "No stories right now" }).waitFor();
  const { expires_at } = await server.postStory("brief", "gone in a moment", 4);
  await page.getByRole("button", { name: /^Brie 1 story, 1 new/ }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("gone in a moment").waitFor();
  await dialog.waitFor({ state: "detached" });
  assert.ok(Date.now() >= Date.parse(expires_at), "not before its time");
  await page.getByRole("button", { name: /^Brie/ }).waitFor({ state: "detached" });
  await until(async () => (await page.locator(".storycard").count()) === 0, "no card left");
  await close(page);
});
