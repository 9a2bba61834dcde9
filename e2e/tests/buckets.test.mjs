// Buckets: keys are written, read, changed and deleted, and expire in front of the eyes.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { close, launch, open } from "../browser.mjs";
import { Server } from "../server.mjs";

let browser;
let server;
before(async () => {
  [browser, server] = await Promise.all([launch(), Server.start()]);
});
after(async () => {
  await browser.close();
  await server.stop();
});

const value = async (key) => (await fetch(`${server.url}/v1/buckets/notes/keys/${encodeURIComponent(key)}`)).text();

test("a bucket is made, a key is written, changed and deleted", async () => {
  const page = await open(browser, server, { at: "/#/buckets" });
  await page.getByRole("heading", { name: "No buckets yet" }).waitFor();
  await page.getByLabel("New bucket").fill("notes");
  await page.getByRole("button", { name: "Make" }).click();
  await page.getByText("Nothing in here yet.").waitFor();
  await page.getByRole("button", { name: "Key", exact: true }).click();
  const sheet = page.getByRole("dialog");
  await sheet.getByLabel("Key", { exact: true }).fill("a/b: c?");
  await sheet.getByLabel("Value").fill("first\nvalue");
  await sheet.getByRole("button", { name: "Save" }).click();
  await page.getByRole("button", { name: "a/b: c?" }).click();
  assert.equal(await sheet.getByLabel("Value").inputValue(), "first\nvalue");
  // Somebody else is faster: nothing of theirs is lost.
  await server.keep("notes", "a/b: c?", "theirs");
  await sheet.getByLabel("Value").fill("mine");
  page.mayBeLost = true;
  await sheet.getByRole("button", { name: "Save" }).click();
  await sheet.getByText("Somebody changed it meanwhile").waitFor();
  assert.equal(await value("a/b: c?"), "theirs");
  await sheet.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "a/b: c?" }).click();
  await sheet.getByLabel("Value").fill("mine after all");
  await sheet.getByRole("button", { name: "Save" }).click();
  await sheet.waitFor({ state: "detached" });
  assert.equal(await value("a/b: c?"), "mine after all");
  await page.getByRole("button", { name: "a/b: c?" }).click();
  await sheet.getByRole("button", { name: "Delete key" }).click();
  await page.getByText("Nothing in here yet.").waitFor();
  await close(page);
});

test("a key expires in front of the eyes", async () => {
  await server.ask("PUT", "/v1/buckets/brief");
  await server.keep("brief", "stays", "1");
  await server.keep("brief", "goes", "2", 3);
  const page = await open(browser, server, { at: "/#/buckets/brief" });
  await page.getByRole("row", { name: /^goes .* in \d s$/ }).waitFor();
  await page.getByRole("row", { name: "goes" }).waitFor({ state: "detached" });
  await page.getByRole("row", { name: "stays 1 B never" }).waitFor();
  await close(page);
});

test("bytes that are no text are shown as such and cannot be spoiled", async () => {
  await server.ask("PUT", "/v1/buckets/raw");
  await server.keep("raw", "bytes", new Uint8Array([0xff, 0x00, 0x10]));
  const page = await open(browser, server, { at: "/#/buckets/raw" });
  await page.getByRole("button", { name: "bytes" }).click();
  assert.equal(await page.getByLabel(/^Value, 3 bytes/).inputValue(), "ff 00 10");
  assert.ok(await page.getByRole("button", { name: "Save" }).isDisabled());
  await close(page);
});
