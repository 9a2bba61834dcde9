// Threads, content warnings, visibility, reactions and notifications, and who sees them on the pages.

import assert from "node:assert/strict";
import { test } from "node:test";
import { PHONE, close, open, setUp, until } from "../browser.mjs";

const [browser, server] = await setUp();

const texts = (page) => page.locator(".thread .post .text").allTextContents();
const publish = (handle, fields) => server.ask("POST", `/v1/users/@${handle}/posts`, fields);

test("a thread shows the posts above and below, and replies as they are written", async () => {
  const ada = await server.register("t_ada");
  await server.register("t_bob");
  const root = await publish("t_ada", { text: "root" });
  const reply = await publish("t_bob", { text: "reply", in_reply_to_id: root.id });
  const below = await publish("t_ada", { text: "below", in_reply_to_id: reply.id });
  await publish("t_bob", { text: "beside", in_reply_to_id: root.id });
  const page = await open(browser, server, { me: ada, at: `/#/@t_bob` });
  await page.locator(`.post[data-id="${reply.id}"] a.when`).click();
  await page.locator(".thread .chosen", { hasText: "reply" }).waitFor();
  assert.deepEqual(await texts(page), ["root", "reply", "below"]);
  assert.equal(await page.title(), "Post by t_bob · roost");

  // One reply by the reader, and one that arrives and mentions the reader.
  const post = page.locator(`.post[data-id="${below.id}"]`);
  await post.getByRole("button", { name: "Reply" }).click();
  await post.getByLabel("Reply to @t_ada").fill("@t_ada by myself");
  await page.keyboard.press("Control+Enter");
  await until(async () => (await texts(page)).includes("@t_ada by myself"), "the own reply");
  const late = await publish("t_bob", { text: "arrived", in_reply_to_id: below.id });
  await until(async () => (await texts(page)).includes("arrived"), "the reply of another");
  assert.deepEqual(await texts(page), ["root", "reply", "below", "@t_ada by myself", "arrived"]);
  const { items: replies } = await server.ask("GET", `/v1/posts/${root.id}/context`);
  assert.deepEqual(replies.map(({ text }) => text), ["reply", "below", "@t_ada by myself", "arrived", "beside"]);

  await server.remove(late);
  await until(async () => !(await texts(page)).includes("arrived"), "the deletion");
  await server.remove(reply);
  await page.getByRole("heading", { name: "This post does not exist" }).waitFor();
  await close(page);
});

test("a boost shows the post with the name of who boosted it, and goes with it", async () => {
  const [ada, bob, cyd] = [await server.register("b_ada"), await server.register("b_bob"), await server.register("b_cyd")];
  await server.follow("b_cyd", "b_bob");
  const post = await publish("b_ada", { text: "worth a boost" });
  const page = await open(browser, server, { me: bob, at: "/#/@b_ada", ...PHONE });
  const button = page.getByRole("button", { name: /^Boost/ });
  await button.click();
  await until(async () => (await button.getAttribute("aria-pressed")) === "true", "the boost");
  assert.equal(await button.getAttribute("aria-label"), "Boost, 1");

  const home = await open(browser, server, { me: cyd, ...PHONE });
  const shown = home.locator(".feed .post", { hasText: "worth a boost" });
  await shown.waitFor();
  assert.match(await shown.locator(".boosted").innerText(), /b_bob\s+@b_bob\s+boosted/u);
  assert.equal(await shown.getAttribute("aria-label"), "Post by b_ada, boosted by b_bob");
  const [wide, screen] = await home.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= screen, `${wide} of ${screen}`);
  // The address of a boost redirects to the boosted post.
  const boost = await shown.getAttribute("data-id");
  assert.notEqual(boost, post.id);
  await home.goto(`${server.url}/#/post/${boost}`);
  await home.locator(".thread .chosen", { hasText: "worth a boost" }).waitFor();
  await until(() => home.url().endsWith(post.id), "the address of the post");
  await home.goto(`${server.url}/#/home`);
  await shown.waitFor();

  const notices = await open(browser, server, { me: ada, at: "/#/notifications" });
  await notices.locator('.notice[data-kind="boost"]', { hasText: "boosted your post" }).waitFor();
  // Boosters are notified of an edit.
  await server.edit(post, "worth a boost, still");
  const kinds = async () => (await server.ask("GET", "/v1/users/@b_bob/notifications")).items.map(({ kind }) => kind);
  await until(async () => (await kinds()).includes("edit"), "the notification of the edit");
  const edits = await open(browser, server, { me: bob, at: "/#/notifications", ...PHONE });
  const edit = edits.locator('.notice[data-kind="edit"]', { hasText: "edited a post that you boosted" });
  await edit.waitFor();
  assert.match(await edit.locator(".excerpt").innerText(), /still/u);
  await button.click();
  await until(async () => (await home.locator(".feed .post").count()) === 0, "the boost is taken back");
  for (const one of [page, home, notices, edits]) await close(one);
});

test("a post with a content warning is hidden until it is asked for", async () => {
  const me = await server.register("w_me");
  const page = await open(browser, server, { me, ...PHONE });
  await page.getByRole("button", { name: "Content warning" }).click();
  await page.getByLabel("Content warning").and(page.locator("input")).fill("the end of the film");
  await page.getByLabel("Write a post").fill("they all live");
  await page.getByRole("button", { name: "Post", exact: true }).click();
  const post = page.locator(".feed .post", { hasText: "the end of the film" });
  const text = post.locator(".text");
  await post.waitFor();
  assert.equal(await text.isVisible(), false);
  await post.getByRole("button", { name: "Show more" }).click();
  assert.equal(await text.textContent(), "they all live");
  assert.ok(await text.isVisible());
  // An edit keeps the reader's choices.
  const { items } = await server.ask("GET", "/v1/users/@w_me/posts");
  assert.equal(items[0].warning, "the end of the film");
  await server.edit(items[0], "nearly all");
  await until(async () => (await text.textContent()) === "nearly all", "the edit");
  assert.ok(await text.isVisible());
  await post.getByRole("button", { name: "Show less" }).click();
  assert.equal(await text.isVisible(), false);
  // The next post has no warning.
  await page.getByLabel("Write a post").fill("something else");
  await page.getByRole("button", { name: "Post", exact: true }).click();
  await page.locator(".feed .post", { hasText: "something else" }).waitFor();
  assert.equal((await server.ask("GET", "/v1/users/@w_me/posts")).items[0].warning, "");
  const [wide, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= screen, `${wide} of ${screen}`);
  await close(page);
});

test("who may see a post is chosen, shown, kept by replies, and true on profiles and in threads", async () => {
  const [ada, bob, eve] = [await server.register("v_ada"), await server.register("v_bob"), await server.register("v_eve")];
  await server.follow("v_bob", "v_ada");
  const page = await open(browser, server, { me: ada });
  for (const [seen, text] of [["Followers", "to followers"], ["Mentioned users", "@v_bob to you"]]) {
    await page.getByLabel("Who sees it").selectOption({ label: seen });
    await page.getByLabel("Write a post").fill(text);
    await page.getByRole("button", { name: "Post", exact: true }).click();
    await page.locator(".feed .post", { hasText: text }).filter({ hasText: seen }).waitFor();
  }
  await close(page);
  const { items } = await server.ask("GET", "/v1/users/@v_ada/posts");
  assert.deepEqual(items.map(({ visibility }) => visibility), ["direct", "followers"]);
  const listed = async (me) => {
    const page = await open(browser, server, { me, at: "/#/@v_ada" });
    await page.locator(".feed .end, .blank").first().waitFor();
    const found = await page.locator(".feed .post .text").allTextContents();
    return [page, found];
  };
  const [stranger, none] = await listed(eve);
  assert.deepEqual(none, []);
  await stranger.goto(`${server.url}/#/post/${items[0].id}`);
  await stranger.getByRole("heading", { name: "This post does not exist" }).waitFor();
  stranger.faults = stranger.faults.filter((fault) => !fault.includes("404"));
  await close(stranger);

  const [reader, both] = await listed(bob);
  assert.deepEqual(both, ["@v_bob to you", "to followers"]);
  const post = reader.locator(`.post[data-id="${items[0].id}"]`);
  await post.getByRole("button", { name: "Reply" }).click();
  assert.equal(await post.getByLabel("Who sees it").inputValue(), "direct");
  await post.getByLabel("Reply to @v_ada").fill("@v_ada thank you");
  await reader.keyboard.press("Control+Enter");
  await reader.getByText("Posted.").first().waitFor();
  const { items: replies } = await server.ask("GET", `/v1/posts/${items[0].id}/context`);
  assert.deepEqual(replies.map(({ text, visibility }) => [text, visibility]), [["@v_ada thank you", "direct"]]);
  await close(reader);
});

test("posts are favourited, bookmarked and pinned, listed, and their author is notified", async () => {
  const [ada, bob] = [await server.register("n_ada"), await server.register("n_bob", "Bob")];
  const post = await server.post("n_ada", "the kettle works");
  await server.post("n_ada", "the rest can wait");
  const page = await open(browser, server, { me: bob, at: "/#/@n_ada" });
  const shown = page.locator(`.post[data-id="${post.id}"]`);
  await shown.getByRole("button", { name: "Favourite" }).click();
  await shown.getByRole("button", { name: "Favourite, 1" }).waitFor();
  await shown.getByRole("button", { name: "Bookmark" }).click();
  await until(async () => (await server.ask("GET", "/v1/users/@n_bob/bookmarks")).items.length === 1, "the bookmark");
  // The number of bookmarks is private.
  const bookmark = shown.locator("button[data-kind=bookmarks][aria-pressed=true]");
  assert.deepEqual([await bookmark.getAttribute("aria-label"), await bookmark.innerText()], ["Bookmark", ""]);
  assert.equal(await shown.getByRole("button", { name: "Pin to profile" }).count(), 0);
  await page.getByRole("button", { name: "Follow @n_ada" }).click();
  await page.getByRole("button", { name: "Unfollow @n_ada" }).waitFor();
  await page.goto(`${server.url}/#/@n_bob/bookmarks`);
  await page.locator(".feed .post", { hasText: "the kettle works" }).waitFor();
  // The buttons show the state of the server.
  const again = page.locator(`.post[data-id="${post.id}"]`);
  await again.locator('[aria-label="Favourite, 1"][aria-pressed=true]').click();
  await again.locator('[aria-label="Favourite"][aria-pressed=false]').waitFor();
  await again.getByRole("button", { name: "Favourite" }).click();
  await again.getByRole("button", { name: "Favourite, 1" }).waitFor();
  await close(page);

  const own = await open(browser, server, { me: ada, at: "/#/notifications", ...PHONE });
  await own.locator(".notice").nth(1).waitFor();
  const lines = await own.locator(".notice p:first-child").allTextContents();
  assert.ok(lines[0].startsWith("Bob @n_bob favourited your post"), lines[0]);
  assert.ok(lines[1].startsWith("Bob @n_bob follows you"), lines[1]);
  await server.post("n_bob", "@n_ada good morning");
  await own.locator(".notices .post", { hasText: "good morning" }).waitFor();
  const [wide, screen] = await own.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= screen, `${wide} of ${screen}`);
  await own.getByRole("button", { name: "Clear all" }).click();
  await own.getByRole("button", { name: "Clear", exact: true }).click();
  await own.getByRole("heading", { name: "No notifications" }).waitFor();
  await own.getByRole("link", { name: "Mentions" }).click();
  await own.locator(".feed .post", { hasText: "good morning" }).waitFor();

  await own.goto(`${server.url}/#/@n_ada`);
  await own.locator(`.feed .post[data-id="${post.id}"]`).getByRole("button", { name: "Pin to profile" }).click();
  await own.getByText("Pinned to your profile.").first().waitFor();
  const pin = own.locator(`.feed .post[data-id="${post.id}"] button[data-kind=pins][aria-pressed=true]`);
  assert.deepEqual([await pin.getAttribute("aria-label"), await pin.innerText()], ["Pin to profile", ""]);
  await own.reload();
  await own.locator(".pins .post", { hasText: "the kettle works" }).waitFor();
  assert.equal(await own.locator(".pins .post").count(), 1);
  await close(own);
});

test("a user who approves followers is asked, accepts one and rejects another", async () => {
  const [ada, bob] = [await server.register("q_ada"), await server.register("q_bob")];
  const page = await open(browser, server, { me: ada, at: "/#/@q_ada" });
  await page.getByRole("button", { name: "Edit profile" }).click();
  await page.getByLabel("Approve new followers").check();
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator(".profile", { hasText: "Approves followers" }).waitFor();
  const other = await open(browser, server, { me: bob, at: "/#/@q_ada" });
  await other.getByRole("button", { name: "Follow @q_ada" }).click();
  await other.getByRole("button", { name: "Cancel request @q_ada" }).waitFor();
  await other.reload();
  await other.getByRole("button", { name: "Cancel request @q_ada" }).waitFor();
  await page.goto(`${server.url}/#/notifications`);
  await page.locator(".notice", { hasText: "asks to follow you" }).getByRole("button", { name: "Reject @q_bob" }).click();
  await page.getByText("Request rejected.").first().waitFor();
  await other.reload();
  await other.getByRole("button", { name: "Follow @q_ada" }).click();
  await other.getByRole("button", { name: "Cancel request @q_ada" }).waitFor();
  await page.reload();
  await page.locator(".notice").first().getByRole("button", { name: "Accept @q_bob" }).click();
  await page.getByText("@q_bob follows you now.").first().waitFor();
  await other.reload();
  await other.getByRole("button", { name: "Unfollow @q_ada" }).waitFor();
  await close(page);
  await close(other);
});

test("a hashtag in a post leads to the newest posts with it", async () => {
  const me = await server.register("h_me");
  await server.register("h_other");
  await publish("h_other", { text: "another #Caf\u00e9" });
  await publish("h_me", { text: "one #caf\u00e9, #2024 and https://a.example/#not" });
  const page = await open(browser, server, { me, at: "/#/@h_me" });
  const post = page.locator(".post", { hasText: "one" });
  await post.waitFor();
  assert.deepEqual(await post.locator("a[rel=tag]").allTextContents(), ["#caf\u00e9"]);
  await post.locator("a[rel=tag]").click();
  await page.getByRole("heading", { name: "#caf\u00e9", exact: true }).waitFor();
  await page.locator(".feed .post").nth(1).waitFor();
  const shown = await page.locator(".feed .post .text").allTextContents();
  assert.deepEqual(shown, ["one #caf\u00e9, #2024 and https://a.example/#not", "another #Caf\u00e9"]);
  assert.equal(await page.title(), "#caf\u00e9 · roost");
  await close(page);
});
