// Drawing: digits are recognized during drawing; shapes are added and recognized.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ARROW, SCRIBBLE, SEVEN, close, draw, open, setUp } from "../browser.mjs";

const [browser, server] = await setUp();

const answer = (page, label) => page.locator("output.guess", { hasText: new RegExp(`^${label}$`) }).waitFor();

test("a seven is recognized, with its votes and the 15 nearest samples", async () => {
  const page = await open(browser, server, { at: "/#/draw" });
  await draw(page, SEVEN);
  await answer(page, "7");
  const pictures = page.getByRole("list", { name: "The 15 nearest samples" }).getByRole("img", { name: /^7, / });
  await pictures.nth(7).waitFor();
  assert.match(await page.getByRole("list", { name: "Votes" }).textContent(), /^7/);
  await page.getByRole("button", { name: "Clear" }).click();
  await answer(page, "");
  await close(page);
});

test("a seven is drawn with the keys alone", async () => {
  const page = await open(browser, server, { at: "/#/draw" });
  await page.getByRole("application").focus();
  const times = async (count, ...keys) => {
    for (let at = 0; at < count; at += 1) for (const key of keys) await page.keyboard.press(key);
  };
  await times(6, "ArrowLeft", "ArrowUp");
  await page.keyboard.press("Space");
  await times(12, "ArrowRight");
  await times(7, "ArrowLeft", "ArrowDown", "ArrowDown");
  await page.keyboard.press("Space");
  await answer(page, "7");
  await close(page);
});

test("an added shape is recognized", async () => {
  const page = await open(browser, server, { at: "/#/draw" });
  await draw(page, ...ARROW);
  await page.getByLabel("Add it with its label").fill("arrow");
  await page.getByRole("button", { name: "Add sample" }).click();
  await answer(page, "arrow");
  await page.reload();
  await page.getByRole("radio", { name: "Shapes" }).click();
  await draw(page, ...ARROW.map((stroke) => stroke.map(([x, y]) => [0.08 + x * 0.9, y * 0.85])));
  await answer(page, "arrow");
  await close(page);
});

test("a drawing unlike any digit has no certain result", async () => {
  const page = await open(browser, server, { at: "/#/draw" });
  await draw(page, ...SCRIBBLE);
  await answer(page, "Not sure");
  await page.locator(".share", { hasText: /the nearest sample differs in \d+ of 1,024 pixels/ }).waitFor();
  await close(page);
});
