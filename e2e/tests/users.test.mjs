// Pages of a user with an account: sign-up, login, and all actions in a feed, with https and a self-signed certificate.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { PHONE, WIDE, close, later, launch, open, openTab, until } from "../browser.mjs";
import { Server } from "../server.mjs";

// The server's certificate is self-signed.
process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
process.removeAllListeners("warning");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PASSWORD = "a long password";
/** Picture of one red pixel. */
const PIXEL = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==", "base64");

let browser;
let server;
/** Passwords by handle. */
const passwords = new Map();
before(async () => {
  browser = await launch();
  server = await Server.start({ key: "a-key-for-the-product", secure: true, settings: ["--registrations", "open"] });
  for (const handle of ["ada", "bob", "cyd", "dan", "eve"]) passwords.set(handle, await server.account("create", handle));
});
after(async () => {
  await browser.close();
  await server.stop();
});

const heading = (page, name) => page.getByRole("heading", { level: 1, name, exact: true });

/** Fills in the login page. */
async function fill(page, handle, password) {
  await page.getByLabel("Handle or e-mail address").fill(handle);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Log in" }).click();
}

/** Opens a window in which a user is logged in, at an address of the pages. */
async function enter(handle, { at = "", ...view } = {}) {
  const page = await open(browser, server, { at: `/${at}`, ...view });
  await page.getByRole("link", { name: "Log in" }).click();
  await fill(page, handle, passwords.get(handle));
  await page.locator("main .head h1, main .profile h1, main .blank h1").first().waitFor();
  return page;
}

const post = (page, text) => page.locator(".post", { hasText: text });

async function write(page, text) {
  await page.getByLabel("Write a post").fill(text);
  await page.getByRole("button", { name: "Post", exact: true }).click();
  await post(page, text).first().waitFor();
}

/** Shows posts that arrived meanwhile. */
const showNew = (page) => page.getByRole("button", { name: /new posts?$/ }).click();

/** Checks that axe finds nothing and that the page is not wider than its screen. */
async function fits(page, what) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const found = violations.flatMap(({ id, nodes }) => nodes.map(({ html, any, all, none }) => `${id}: ${html}: ${[...any, ...all, ...none].map(({ message }) => message).join("; ")}`));
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (wider > 0) found.push(`${wider} px wider than the screen`);
  assert.deepEqual(found, [], what);
}

for (const [name, view] of [["a desk", { viewport: WIDE }], ["a phone", PHONE]]) {
  test(`somebody signs up on ${name} and posts, and a follower sees it live`, async () => {
    const handle = `new_${name.slice(2)}`;
    const page = await open(browser, server, view);
    await page.getByRole("link", { name: "Sign up" }).click();
    await page.getByLabel("Handle", { exact: true }).fill(handle);
    await page.getByLabel("E-mail address").fill(`${handle}@example.org`);
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("checkbox").check();
    await page.getByRole("button", { name: "Sign up" }).click();
    await heading(page, "Home").waitFor();

    const other = await enter("bob", { at: `#/@${handle}` });
    await other.getByRole("button", { name: `Follow @${handle}` }).click();
    await other.getByRole("button", { name: `Unfollow @${handle}` }).waitFor();
    await other.goto(`${server.url}/#/home`);
    await heading(other, "Home").waitFor();
    await write(page, `hello from ${name}`);
    await post(other, `hello from ${name}`).or(other.getByRole("button", { name: "1 new post" })).first().waitFor();
    await page.reload();
    await post(page, `hello from ${name}`).first().waitFor();
    await close(page);
    await close(other);
  });
}

test("a wrong password says so, and the address that was asked for comes after the right one", async () => {
  const page = await open(browser, server, { at: "/#/@bob" });
  await heading(page, "roost").waitFor();
  page.mayBeLost = true;
  await page.getByRole("link", { name: "Log in" }).click();
  await fill(page, "ada", "a wrong password");
  await page.getByText("The name or the password is wrong.").waitFor();
  await fill(page, "ada", passwords.get("ada"));
  await heading(page, "bob").waitFor();
  assert.equal(new URL(page.url()).hash, "#/@bob");
  await close(page);
});

test("a reply, a favourite, a boost and a bookmark reach the other user and the own lists", async () => {
  const [ada, bob] = [await enter("ada", { at: "#/@bob" }), await enter("bob")];
  await ada.getByRole("button", { name: "Follow @bob" }).click();
  await ada.getByRole("button", { name: "Unfollow @bob" }).waitFor();
  await write(bob, "what shall we plant?");
  await ada.getByRole("link", { name: "Home" }).first().click();
  const shown = post(ada, "what shall we plant?").first();
  await shown.waitFor();
  for (const label of ["Favourite", "Boost", "Bookmark"]) {
    const button = shown.getByRole("button", { name: label });
    await button.click();
    await until(async () => await button.getAttribute("aria-pressed") === "true", label);
  }
  await shown.getByRole("button", { name: "Reply" }).click();
  const field = ada.getByLabel("Reply to @bob");
  await field.pressSequentially("beans");
  await field.press("Control+Enter");
  await post(ada, "beans").first().waitFor();

  await bob.getByRole("link", { name: /^Notifications/ }).click();
  await bob.locator(".notice[data-kind=favourite]").waitFor();
  await bob.locator(".notice[data-kind=boost]").waitFor();
  await bob.locator(".notice[data-kind=follow]").first().waitFor();
  await post(bob, "beans").waitFor();
  await bob.getByRole("link", { name: "Mentions" }).click();
  await post(bob, "beans").waitFor();

  await ada.goto(`${server.url}/#/@ada/bookmarks`);
  await post(ada, "what shall we plant?").waitFor();
  await ada.goto(`${server.url}/#/@ada/favourites`);
  await post(ada, "what shall we plant?").waitFor();
  // The thread, with the reply below the post.
  await post(ada, "what shall we plant?").locator("a.when").click();
  await heading(ada, "Post").waitFor();
  await post(ada, "beans").waitFor();
  await close(ada);
  await close(bob);
});

test("a user who is blocked vanishes, and comes back when the block ends", async () => {
  const [cyd, dan] = [await enter("cyd", { at: "#/@dan" }), await enter("dan")];
  await write(dan, "a post of dan");
  await cyd.getByRole("button", { name: "Follow @dan" }).click();
  await cyd.getByRole("button", { name: "Unfollow @dan" }).waitFor();
  const home = await openTab(cyd.context(), server);
  await home.goto(server.url);
  await post(home, "a post of dan").waitFor();
  await home.bringToFront();

  await cyd.getByLabel("More", { exact: true }).click();
  await cyd.getByRole("button", { name: "Block", exact: true }).click();
  await cyd.getByRole("group", { name: "Block @dan?" }).getByRole("button", { name: "Block" }).click();
  await heading(cyd, "You block @dan").waitFor();
  await post(home, "a post of dan").waitFor({ state: "detached" });
  // For the other user, this user does not exist.
  await dan.goto(`${server.url}/#/@cyd`);
  dan.mayBeLost = true;
  await heading(dan, "There is no user @cyd").waitFor();

  await cyd.goto(`${server.url}/#/@cyd/blocks`);
  await cyd.getByRole("button", { name: "Unblock @dan" }).click();
  await cyd.getByRole("button", { name: "Unblock @dan" }).waitFor({ state: "detached" });
  await cyd.goto(`${server.url}/#/@dan`);
  await post(cyd, "a post of dan").waitFor();
  cyd.faults.length = 0;
  await close(dan);
  await cyd.context().close();
});

test("posts of a user who is muted leave the home timeline", async () => {
  const [cyd, eve] = [await enter("cyd", { at: "#/@eve" }), await enter("eve")];
  await write(eve, "a post of eve");
  await cyd.getByRole("button", { name: "Follow @eve" }).click();
  await cyd.getByRole("button", { name: "Unfollow @eve" }).waitFor();
  await cyd.getByRole("link", { name: "Home" }).first().click();
  await post(cyd, "a post of eve").waitFor();
  await cyd.goto(`${server.url}/#/@eve`);
  await cyd.getByLabel("More", { exact: true }).click();
  await cyd.getByRole("button", { name: "Mute", exact: true }).click();
  await until(() => cyd.locator(".menu").evaluate((menu) => !menu.open && menu.innerText !== undefined && menu.textContent.includes("Unmute")), "muted");
  await cyd.getByRole("link", { name: "Home" }).first().click();
  await heading(cyd, "Home").waitFor();
  await cyd.locator(".bones").first().waitFor({ state: "detached" });
  assert.equal(await post(cyd, "a post of eve").count(), 0);
  await cyd.goto(`${server.url}/#/@cyd/mutes`);
  await cyd.getByRole("button", { name: "Unmute @eve" }).click();
  await cyd.getByRole("button", { name: "Unmute @eve" }).waitFor({ state: "detached" });
  await close(cyd);
  await close(eve);
});

test("a picture is posted with a description, and others see both", async () => {
  const page = await enter("eve");
  await page.locator("input[type=file]").first().setInputFiles({ name: "red.png", mimeType: "image/png", buffer: PIXEL });
  const description = page.getByLabel("Description of the picture");
  await description.fill("A red pixel");
  // A post without text.
  await page.getByRole("button", { name: "Post", exact: true }).click();
  await page.locator(".post img[alt='A red pixel']").waitFor();
  assert.equal(await description.count(), 0);
  const other = await enter("ada", { at: "#/@eve" });
  const image = other.locator(".post img[alt='A red pixel']");
  await image.waitFor();
  await until(() => image.evaluate((node) => node.complete && node.naturalWidth > 0), "the picture");
  await close(page);
  await close(other);
});

test("a post waits for the pictures that are being uploaded", async () => {
  const page = await enter("eve");
  const button = page.getByRole("button", { name: "Post", exact: true });
  const field = page.getByLabel("Write a post");
  await field.fill("with a late picture");
  await until(() => button.isEnabled(), "a text can be posted");
  for (const ends of ["arrives", "fails"]) {
    const held = later();
    await page.route("**/api/v2/media", async (route) => {
      await held;
      await (ends === "arrives" ? route.continue() : route.fulfill({ status: 422, json: { error: "no picture" } }));
    });
    await page.locator("input[type=file]").first().setInputFiles({ name: "red.png", mimeType: "image/png", buffer: PIXEL });
    await until(() => button.isDisabled(), "it waits");
    await field.press("Control+Enter");
    page.mayBeLost = true;
    held.resolve();
    await until(() => button.isEnabled(), "it can be posted");
    await page.unroute("**/api/v2/media");
  }
  await page.getByText("no picture").waitFor();
  assert.equal(await page.getByLabel("Description of the picture").count(), 1);
  await button.click();
  await page.locator(".post", { hasText: "with a late picture" }).locator("img[alt='Picture without a description']").waitFor();
  assert.equal(await post(page, "with a late picture").count(), 1);
  await close(page);
});

test("after a log-out nothing private is shown, with Back neither, and in no other window", async () => {
  const page = await enter("bob");
  await write(page, "only for my followers");
  await page.goto(`${server.url}/#/notifications`);
  await heading(page, "Notifications").waitFor();
  const other = await openTab(page.context(), server);
  await other.goto(server.url);
  await post(other, "only for my followers").waitFor();
  await page.getByRole("link", { name: "Profile", exact: true }).first().click();
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByRole("link", { name: "Log in" }).waitFor();
  await other.getByRole("link", { name: "Log in" }).waitFor();
  for (const window of [page, other]) {
    for (let times = 0; times < 4; times += 1) {
      await window.goBack().catch(() => null);
      await window.waitForLoadState();
      const shown = await window.locator("body").innerText();
      assert.ok(!shown.includes("only for my followers") && !shown.includes("bob"), shown);
    }
  }
  const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
  assert.ok(!stored.includes("bob"), stored);
  const cookies = await page.context().cookies();
  assert.equal(cookies.some(({ name }) => name.includes("session")), false);
  await page.context().close();
});

test("a log-out on the page of the account ends the pages that Back leads to", async () => {
  const page = await enter("bob", { at: "#/@bob" });
  await page.getByRole("link", { name: "Account", exact: true }).click();
  await heading(page, "Account settings").waitFor();
  await page.getByRole("button", { name: "Log out" }).click();
  await heading(page, "Log in").waitFor();
  for (let times = 0; times < 3; times += 1) await page.goBack().catch(() => null);
  // Every page that Back leads to may still be loading, and then interrupts this navigation.
  const again = () => page.goto(`${server.url}/#/@bob`);
  await again().catch(again).catch(again).catch(again);
  await page.getByRole("link", { name: "Log in" }).waitFor();
  assert.ok(!(await page.locator("body").innerText()).includes("Edit profile"));
  await page.context().close();
});

test("no script can read the session, and another user who logs in takes over the windows", async () => {
  const page = await enter("ada");
  assert.equal(await page.evaluate(() => document.cookie), "");
  const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
  const session = (await page.context().cookies()).find(({ name }) => name.includes("session"));
  assert.ok(session.httpOnly && session.secure && session.sameSite === "Lax" && session.name.startsWith("__Host-"));
  assert.ok(!stored.includes(session.value));
  const other = await openTab(page.context(), server);
  await other.goto(`${server.url}/auth/log-in?pages=1`);
  await fill(other, "bob", passwords.get("bob"));
  await heading(other, "Home").waitFor();
  page.mayBeLost = true;
  await page.bringToFront();
  await page.getByRole("link", { name: /^Notifications/ }).click();
  await page.locator("#me", { hasText: "@bob" }).waitFor();
  await page.context().close();
});

test("an account that is disabled is shown nothing any more", async () => {
  passwords.set("fay", await server.account("create", "fay"));
  const page = await enter("fay");
  page.mayBeLost = true;
  await write(page, "still here");
  await server.account("disable", "fay");
  await page.getByRole("link", { name: /^Notifications/ }).click();
  await page.getByRole("link", { name: "Log in" }).waitFor();
  assert.ok(!(await page.locator("body").innerText()).includes("still here"));
  await page.getByRole("link", { name: "Log in" }).click();
  await fill(page, "fay", passwords.get("fay"));
  await page.getByRole("alert").waitFor();
  await page.context().close();
});

test("a page of another site can do nothing with the session of the browser", async () => {
  const page = await enter("ada");
  const token = await page.evaluate(async () => (await (await fetch("/auth/session")).json()).form_token);
  const me = await page.evaluate(async () => (await (await fetch("/auth/session")).json()).user.id);
  const evil = createServer((_, answer) => answer.setHeader("Content-Type", "text/html").end("<h1>Evil</h1>"));
  await new Promise((listens) => evil.listen(0, "127.0.0.1", listens));
  const other = await page.context().newPage();
  // The same host with another port: the closest that another site can be.
  await other.goto(`http://127.0.0.1:${evil.address().port}/`);
  const tried = await other.evaluate(async ([url, id, known]) => {
    const say = (asked) => asked.then((answer) => `${answer.type} ${answer.status}`, () => "failed");
    const attempts = [];
    for (const [path, method] of [["/auth/session", "GET"], [`/v1/users/${id}/timeline`, "GET"], [`/v1/users/${id}/posts`, "POST"]]) {
      for (const headers of [{}, { "Roost-Session": known }]) {
        const body = method === "POST" ? JSON.stringify({ text: "evil" }) : undefined;
        attempts.push(await say(fetch(url + path, { method, body, headers, credentials: "include" })));
        if (!("Roost-Session" in headers)) await say(fetch(url + path, { method, body, mode: "no-cors", credentials: "include" }));
      }
    }
    const form = document.createElement("form");
    form.method = "post";
    form.action = `${url}/auth/log-out`;
    form.innerHTML = "<input name=form_token value=guessed>";
    document.body.append(form);
    form.submit();
    return attempts;
  }, [server.url, me, token]);
  assert.deepEqual(tried, tried.map(() => "failed"));
  await other.waitForURL(/auth/);
  await page.reload();
  await heading(page, "Home").waitFor();
  assert.equal(await post(page, "evil").count(), 0);
  await new Promise((ended) => evil.close(ended));
  await page.context().close();
});

for (const colorScheme of ["light", "dark"]) {
  for (const [name, device] of [["a wide window", { viewport: WIDE }], ["a phone", PHONE]]) {
    test(`axe finds no fault on pages of users, ${colorScheme}, ${name}`, async () => {
      const view = { colorScheme, ...device, reducedMotion: "reduce" };
      const visitor = await open(browser, server, view);
      await visitor.getByRole("link", { name: "Log in" }).waitFor();
      await fits(visitor, "a visitor");
      await visitor.getByText("Use an application key").click();
      await visitor.getByLabel("Application key").waitFor();
      await fits(visitor, "a key");
      await close(visitor);
      const page = await enter("ada", view);
      await page.locator(".bones").first().waitFor({ state: "detached" }).catch(() => null);
      await fits(page, "home");
      await page.locator("input[type=file]").first().setInputFiles({ name: "red.png", mimeType: "image/png", buffer: PIXEL });
      await page.getByLabel("Description of the picture").waitFor();
      await fits(page, "a picture to be posted");
      for (const at of ["for-you", "@ada", "@ada/blocks", "@ada/mutes", "notifications", "nowhere", "buckets"]) {
        await page.goto(`${server.url}/#/${at}`);
        await page.locator("main h1").first().waitFor();
        await fits(page, at);
      }
      await page.goto(`${server.url}/#/@bob`);
      await page.getByLabel("More", { exact: true }).click();
      await fits(page, "the menu of a profile");
      await page.getByRole("button", { name: "Block", exact: true }).click();
      await fits(page, "the question before a block");
      await close(page);
    });
  }
}
