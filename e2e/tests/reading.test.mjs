// Readability: the page for wrong addresses, disabled buttons, and the API reference.

import assert from "node:assert/strict";
import { test } from "node:test";
import { PHONE, close, faults, open, setUp, until } from "../browser.mjs";

const [browser, server] = await setUp();

/** Contrast of two colors, as WCAG 2 defines it. */
function contrast(...colors) {
  const luminances = colors.map((color) => {
    const [red, green, blue] = color.match(/[\d.]+/gu).slice(0, 3).map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  });
  return (Math.max(...luminances) + 0.05) / (Math.min(...luminances) + 0.05);
}

test("a wrong address shows a page, and programs get JSON", async () => {
  for (const viewport of [{}, PHONE]) {
    const page = await open(browser, server, { at: "/no/such/page", ...viewport });
    await page.getByRole("heading", { name: "Page not found" }).waitFor();
    assert.deepEqual(await faults(page, "body"), []);
    await page.getByRole("link", { name: "Go to Home" }).click();
    await page.getByRole("heading", { level: 1 }).first().waitFor();
    assert.equal(new URL(page.url()).pathname, "/");
    // The browser reports the status of the first page as an error.
    page.faults = page.faults.filter((text) => !text.includes("404"));
    await close(page);
  }
  const html = { Accept: "text/html" };
  for (const [path, headers, type] of [
    ["/nothing/@ada", html, "text/html; charset=utf-8"],
    ["/nothing/@ada", { Accept: "application/json" }, "application/json"],
    ["/nothing/@ada", {}, "application/json"],
    ["/v1/nothing", html, "application/json"],
    ["/api/v1/nothing", html, "application/json"],
  ]) {
    const answer = await fetch(server.url + path, { headers });
    assert.deepEqual([answer.status, answer.headers.get("content-type")], [404, type], path);
  }
});

test("a button that is disabled under the mouse can be read", async () => {
  const me = await server.register("c_me");
  for (const colorScheme of ["light", "dark"]) {
    const page = await open(browser, server, { me, colorScheme, reducedMotion: "reduce" });
    await page.getByLabel("Write a post").fill(`in ${colorScheme}`);
    const button = page.getByRole("button", { name: "Post", exact: true });
    await button.click();
    await page.locator(".post", { hasText: `in ${colorScheme}` }).waitFor();
    await until(() => button.isDisabled(), "nothing to post");
    assert.ok(await button.evaluate((node) => node.matches(":hover")));
    const [ink, ground] = await button.evaluate((node) => [getComputedStyle(node).color, getComputedStyle(node).backgroundColor]);
    const ratio = contrast(ink, ground);
    assert.ok(ratio >= 4.5, `${ink} on ${ground}: ${ratio}`);
    await close(page);
  }
});

test("the reference of the API can be read, on a phone, too", async () => {
  const page = await open(browser, server, { at: "/docs/", reducedMotion: "reduce", ...PHONE });
  await page.locator(".opblock").first().waitFor();
  for (const kind of ["get", "post", "put", "patch", "delete"]) await page.locator(`.opblock-${kind} .opblock-summary-control`).first().click();
  await page.locator(".opblock-delete .execute").first().waitFor();
  const [wide, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, globalThis.screen.width]);
  assert.ok(wide <= screen, `${wide} of ${screen}`);
  assert.deepEqual((await faults(page, "body")).filter(([rule]) => rule === "color-contrast" || rule === "meta-viewport"), []);
  await close(page);
});
