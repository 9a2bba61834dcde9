// Buckets: writing, reading, changing and deleting keys, and expiry while they are shown.

import assert from "node:assert/strict";
import { test } from "node:test";
import { close, open, setUp } from "../browser.mjs";

const [browser, server] = await setUp();

const value = async (key) => (await fetch(`${server.url}/v1/buckets/notes/keys/${encodeURIComponent(key)}`)).text();

test("a bucket is created, a key is written, changed and deleted", async () => {
  const page = await open(browser, server, { at: "/#/buckets" });
  await page.getByRole("heading", { name: "No buckets yet" }).waitFor();
  await page.getByLabel("New bucket").fill("notes");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText("This bucket is empty.").waitFor();
  await page.getByRole("button", { name: "Add key", exact: true }).click();
  const sheet = page.getByRole("dialog");
  await sheet.getByLabel("Key", { exact: true }).fill("a/b: c?");
  await sheet.getByLabel("Value").fill("first\nvalue");
  await sheet.getByRole("button", { name: "Save" }).click();
  await page.getByRole("button", { name: "a/b: c?" }).click();
  assert.equal(await sheet.getByLabel("Value").inputValue(), "first\nvalue");
  // Another client writes first; its value must not be lost.
  await server.keep("notes", "a/b: c?", "theirs");
  await sheet.getByLabel("Value").fill("mine");
  page.mayBeLost = true;
  await sheet.getByRole("button", { name: "Save" }).click();
  await sheet.getByText("This key has changed").waitFor();
  assert.equal(await value("a/b: c?"), "theirs");
  await sheet.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "a/b: c?" }).click();
  await sheet.getByLabel("Value").fill("mine after all");
  await sheet.getByRole("button", { name: "Save" }).click();
  await sheet.waitFor({ state: "detached" });
  assert.equal(await value("a/b: c?"), "mine after all");
  await page.getByRole("button", { name: "a/b: c?" }).click();
  await sheet.getByRole("button", { name: "Delete key" }).click();
  await page.getByText("This bucket is empty.").waitFor();
  await close(page);
});

test("a key that expires is removed from the list", async () => {
  await server.ask("PUT", "/v1/buckets/brief");
  await server.keep("brief", "stays", "1");
  await server.keep("brief", "goes", "2", 3);
  const page = await open(browser, server, { at: "/#/buckets/brief" });
  await page.getByRole("row", { name: /^goes .* in \d s$/ }).waitFor();
  await page.getByRole("row", { name: "goes" }).waitFor({ state: "detached" });
  await page.getByRole("row", { name: "stays 1 B never" }).waitFor();
  await close(page);
});

test("bytes that are not text are shown as hexadecimal and cannot be edited", async () => {
  await server.ask("PUT", "/v1/buckets/raw");
  await server.keep("raw", "bytes", new Uint8Array([0xff, 0x00, 0x10]));
  const page = await open(browser, server, { at: "/#/buckets/raw" });
  await page.getByRole("button", { name: "bytes" }).click();
  assert.equal(await page.getByLabel(/^Value, 3 bytes/).inputValue(), "ff 00 10");
  assert.ok(await page.getByRole("button", { name: "Save" }).isDisabled());
  await close(page);
});

test("editing a value keeps its expiry and its line ends by default", async () => {
  await server.ask("PUT", "/v1/buckets/edited");
  const path = `${server.url}/v1/buckets/edited/keys/crlf`;
  await server.keep("edited", "crlf", "one\r\ntwo\r\nthree\r\n", 3600);
  const ends = async () => (await fetch(path)).headers.get("x-expires-at-ms");
  const before = await ends();
  const page = await open(browser, server, { at: "/#/buckets/edited" });
  const sheet = page.getByRole("dialog");
  const edit = async (text, life) => {
    await page.getByRole("button", { name: "crlf" }).click();
    await sheet.getByLabel("Value").fill(text);
    if (life) await sheet.getByLabel("Expires").selectOption(life);
    await sheet.getByRole("button", { name: "Save" }).click();
    await sheet.waitFor({ state: "detached" });
    return (await fetch(path)).text();
  };
  assert.equal(await edit("one\n2\nnew\nthree\n"), "one\r\n2\r\nnew\r\nthree\r\n");
  assert.equal(await ends(), before);
  await edit("x", "Never");
  assert.equal(await ends(), null);
  await close(page);
});

test("mixed line ends are not changed", async () => {
  const page = await open(browser, server, { at: "/#/buckets" });
  const cases = [
    ["a\r\nb\nc\r", "a\nb\nc\n", "a\r\nb\nc\r"],
    ["a\r\nb\nc\r", "a\nB\nc\n", "a\r\nB\nc\r"],
    ["a\r\nb\nc\r", "a\nx\ny\nc\n", "a\r\nx\r\ny\nc\r"],
    ["a\r\nb", "b", "b"],
    ["a\nb\n", "a\nc\nb\n", "a\nc\nb\n"],
    ["\r\n\r\n\r\n", "\n", "\r\n"],
    ["", "a\nb", "a\nb"],
  ];
  for (const [original, edited, expect] of cases) {
    const found = await page.evaluate(async ([one, other]) => (await import("/assets/js/lines.js")).respell(one, other), [original, edited]);
    assert.equal(found, expect, JSON.stringify([original, edited]));
  }
  await close(page);
});
