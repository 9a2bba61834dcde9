// Pictures of posts: descriptions, sensitive pictures, and a page that does not move when they load.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { PHONE, close, faults, launch, open, until } from "../browser.mjs";
import { Server } from "../server.mjs";

let browser;
let server;
/** Token of the user who posts pictures. */
let token;
/** User who views the pictures. */
let eve;

async function send(method, path, body, key = token) {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const answer = await fetch(server.url + path, { method, headers, body });
  const text = await answer.text();
  assert.equal(answer.status, 200, `${method} ${path}: ${text}`);
  return JSON.parse(text);
}

before(async () => {
  browser = await launch();
  server = await Server.start({ settings: ["--registrations", "open"] });
  const form = (fields) => new URLSearchParams(fields);
  const app = { client_name: "Pictures", redirect_uris: "urn:ietf:wg:oauth:2.0:oob", scopes: "read write" };
  const { client_id, client_secret } = await send("POST", "/api/v1/apps", form(app), null);
  const grant = { grant_type: "client_credentials", client_id, client_secret, scope: "read write" };
  const own = await send("POST", "/oauth/token", form(grant), null);
  const user = { username: "p_ada", email: "ada@example.org", password: "a long password", agreement: "true" };
  token = (await send("POST", "/api/v1/accounts", form(user), own.access_token)).access_token;
  eve = await server.register("p_eve");
  await server.follow("p_eve", "p_ada");
});
after(async () => {
  await browser.close();
  await server.stop();
});

/** Creates a PNG in the browser. */
async function drawn(width, height, color) {
  const page = await browser.newPage();
  const url = await page.evaluate(([wide, high, style]) => {
    const canvas = Object.assign(document.createElement("canvas"), { width: wide, height: high });
    const paper = canvas.getContext("2d");
    paper.fillStyle = style;
    paper.fillRect(0, 0, wide, high);
    paper.fillStyle = "white";
    paper.arc(wide / 2, high / 2, high / 4, 0, 7);
    paper.fill();
    return canvas.toDataURL("image/png");
  }, [width, height, color]);
  await page.close();
  return new Blob([Buffer.from(url.split(",")[1], "base64")], { type: "image/png" });
}

async function upload(width, height, color, description) {
  const form = new FormData();
  form.append("file", await drawn(width, height, color), "picture.png");
  form.append("description", description);
  return (await send("POST", "/api/v2/media", form)).id;
}

async function publish(status, pictures, fields = {}) {
  const form = new URLSearchParams({ status, ...fields });
  for (const id of pictures) form.append("media_ids[]", id);
  return send("POST", "/api/v1/statuses", form);
}

const width = (page) => page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);

test("a post shows its pictures with their descriptions, and nothing moves when they arrive", async () => {
  const first = await upload(900, 600, "teal", "A white moon\nover <water>");
  const second = await upload(300, 500, "brown", "");
  await publish("the moon", [first, second]);
  await publish("", [await upload(1_200, 300, "navy", "A wide sky")]);
  for (const view of [PHONE, {}]) {
    const page = await open(browser, server, { me: eve, ...view });
    const post = page.locator(".feed .post", { hasText: "the moon" });
    const images = post.locator(".pictures img");
    await images.first().waitFor();
    assert.deepEqual(await images.evaluateAll((all) => all.map((one) => [one.alt, one.loading])),
      [["A white moon\nover <water>", "lazy"], ["Picture without a description", "lazy"]]);
    const before = await images.evaluateAll((all) => all.map((one) => Math.round(one.getBoundingClientRect().height)));
    await until(() => images.evaluateAll((all) => all.every((one) => one.complete && one.naturalWidth > 1)), "the pictures");
    const heights = await images.evaluateAll((all) => all.map((one) => Math.round(one.getBoundingClientRect().height)));
    assert.deepEqual(heights, before, "they had their height before");
    assert.ok(heights.every((height) => height > 60), `${heights}`);
    await post.getByText("Description").click();
    assert.equal(await post.locator("details p").innerText(), "A white moon\nover <water>");
    const link = await post.locator(".pictures a").first().getAttribute("href");
    assert.match(link, /^\/media\/\d+-[0-9a-f]{32}\/original\.png$/u);
    const wordless = page.locator(".feed .post", { has: page.getByAltText("A wide sky") });
    assert.equal(await wordless.locator(".text").count(), 0);
    const [wide, screen] = await width(page);
    assert.ok(wide <= screen, `${wide} of ${screen}`);
    assert.deepEqual(await faults(page, ".feed"), []);
    await close(page);
  }
});

test("sensitive pictures, and those below a warning, are hidden until they are opened", async () => {
  await publish("careful", [await upload(200, 100, "red", "something red")], { sensitive: "true" });
  await publish("below", [await upload(200, 100, "green", "something green")], { spoiler_text: "spoilers" });
  const page = await open(browser, server, { me: eve, ...PHONE });
  for (const [text, alt, isTextShown] of [["careful", "something red", true], ["below", "something green", false]]) {
    const image = page.getByAltText(alt);
    const post = page.locator(".feed .post", { has: image });
    await post.locator(".warned").waitFor();
    assert.ok(await image.isHidden(), text);
    assert.equal(await post.locator(".text").isVisible(), isTextShown, text);
    const button = post.getByRole("button", { name: "Show more" });
    assert.equal(await button.getAttribute("aria-expanded"), "false");
    await button.click();
    await image.waitFor();
    assert.ok(await post.locator(".text").isVisible(), text);
    await post.getByRole("button", { name: "Show less" }).click();
    assert.ok(await image.isHidden(), text);
  }
  await close(page);
});
