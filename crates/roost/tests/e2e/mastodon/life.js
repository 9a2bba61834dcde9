// The life of an account with masto.js: `life.js URL`, of a server with `--registrations open` and `--password-grant`.
// Prints `done` if all is as expected.

const assert = require("node:assert/strict");
const { createOAuthAPIClient, createRestAPIClient, createStreamingAPIClient } = require("masto");
const WebSocket = require("ws");

const url = process.argv[2];
const password = "correct horse battery";
const scope = "read write follow";
const redirectUri = "urn:ietf:wg:oauth:2.0:oob";

const ids = (entities) => entities.map((entity) => entity.id);
const refused = (statusCode, request) => assert.rejects(request, { name: "MastoHttpError", statusCode });

// An app and two users: one signs up in it, the other one logs in with a password.
const users = async () => {
  const oauth = createOAuthAPIClient({ url });
  const anybody = createRestAPIClient({ url });
  const app = await anybody.v1.apps.create({ clientName: "Life", redirectUris: redirectUri, scopes: scope });
  const client = { clientId: app.clientId, clientSecret: app.clientSecret };
  const own = await oauth.token.create({ grantType: "client_credentials", ...client, redirectUri, scope });
  const signUps = createRestAPIClient({ url, accessToken: own.accessToken });
  const user = (username) =>
    ({ username, password, email: `${username}@example.org`, agreement: true, locale: "en" });
  const ada = await signUps.v1.accounts.create(user("ada"));
  await refused(422, signUps.v1.accounts.create(user("ada")));
  await signUps.v1.accounts.create(user("bob"));
  const login = { grantType: "password", ...client, redirectUri, scope, username: "bob" };
  await refused(400, oauth.token.create({ ...login, password: "a wrong password" }));
  const bob = await oauth.token.create({ ...login, password });
  const revoke = (token) => oauth.revoke({ ...client, token });
  return { ada: ada.accessToken, bob: bob.accessToken, revoke };
};

// The events of Bob's stream. masto.js connects after a second, and nothing says that the server knows of the
// subscription: posts do.
const stream = async (ada, accessToken) => {
  const instance = await ada.v2.instance.fetch();
  const streamingApiUrl = instance.configuration.urls.streaming;
  let opened;
  const isConnected = new Promise((resolve) => (opened = resolve));
  const implementation = class extends WebSocket {
    constructor(...given) {
      super(...given);
      this.once("open", opened);
    }
  };
  const streaming = createStreamingAPIClient({ streamingApiUrl, accessToken, implementation });
  const events = streaming.user.subscribe()[Symbol.asyncIterator]();
  const first = events.next();
  await isConnected;
  let isSubscribed = false;
  first.then(() => (isSubscribed = true));
  const knocks = new Set();
  while (!isSubscribed) {
    knocks.add((await ada.v1.statuses.create({ status: "knock", visibility: "private" })).id);
  }
  assert.equal((await first).value.event, "update");
  const next = async (name) => {
    for (;;) {
      const { value, done } = await events.next();
      assert.ok(!done, `the stream ends before ${name}`);
      if (!knocks.has(value.payload.id)) {
        assert.equal(value.event, name);
        return value.payload;
      }
    }
  };
  return { next, close: () => streaming.close() };
};

const posts = async (ada, bob, events) => {
  const post = await ada.v1.statuses.create({ status: "hello #hi", spoilerText: "warning", language: "en" });
  assert.equal(post.account.acct, "ada");
  assert.deepEqual(post.tags.map((tag) => tag.name), ["hi"]);
  assert.equal((await events.next("update")).id, post.id);
  const edited = await ada.v1.statuses.$select(post.id).update({ status: "hello, edited" });
  assert.ok(edited.editedAt && edited.content.includes("edited"));
  assert.ok((await events.next("status.update")).content.includes("edited"));
  assert.equal((await ada.v1.statuses.$select(post.id).source.fetch()).text, "hello, edited");
  const versions = await bob.v1.statuses.$select(post.id).history.list();
  assert.deepEqual(versions.map((version) => version.spoilerText), ["warning", ""]);
  assert.ok(versions[0].content.includes("hello ") && versions[1].content.includes("edited"));
  assert.equal((await bob.v1.timelines.home.list())[0].id, post.id);
  assert.deepEqual(ids(await bob.v1.statuses.fetch({ id: [post.id] })), [post.id]);
  return post.id;
};

const reactions = async (ada, bob, me, post, events) => {
  const reply = await ada.v1.statuses.create({ status: "@bob and more", inReplyToId: post });
  assert.equal((await events.next("update")).id, reply.id);
  assert.equal((await events.next("notification")).status.id, reply.id);
  const { descendants } = await bob.v1.statuses.$select(post).context.fetch();
  assert.deepEqual(ids(descendants), [reply.id]);
  const its = bob.v1.statuses.$select(post);
  assert.equal((await its.favourite()).favouritesCount, 1);
  assert.equal((await its.bookmark()).bookmarked, true);
  assert.deepEqual(ids(await its.favouritedBy.list()), [me.bob]);
  assert.deepEqual(ids(await bob.v1.favourites.list()), [post]);
  assert.deepEqual(ids(await bob.v1.bookmarks.list()), [post]);
  assert.equal((await ada.v1.statuses.$select(post).pin()).pinned, true);
  assert.deepEqual(ids(await bob.v1.accounts.$select(me.ada).statuses.list({ pinned: true })), [post]);
  const boost = await its.reblog();
  assert.deepEqual([boost.reblog.id, boost.reblog.reblogsCount, boost.reblogged], [post, 1, true]);
  assert.deepEqual(ids(await its.rebloggedBy.list()), [me.bob]);
  const notices = await ada.v1.notifications.list();
  assert.deepEqual(notices.map((notice) => notice.type), ["reblog", "favourite", "follow"]);
  assert.equal((await ada.v1.notifications.$select(notices[0].id).fetch()).status.id, post);
  await ada.v1.notifications.$select(notices[0].id).dismiss();
  assert.deepEqual(ids(await ada.v1.notifications.list({ types: ["follow"] })), [notices[2].id]);
  await ada.v1.notifications.clear();
  assert.deepEqual(await ada.v1.notifications.list(), []);
  for (const undo of ["unreblog", "unfavourite", "unbookmark"]) await its[undo]();
  await ada.v1.statuses.$select(post).unpin();
  assert.deepEqual(await bob.v1.favourites.list(), []);
  assert.deepEqual(await bob.v1.bookmarks.list(), []);
  return reply.id;
};

const pages = async (ada, bob) => {
  const posted = [];
  for (let number = 0; number < 5; number += 1) {
    posted.unshift((await ada.v1.statuses.create({ status: `post ${number}` })).id);
  }
  const walked = [];
  for await (const page of bob.v1.timelines.home.list({ limit: 2 })) walked.push(...ids(page));
  assert.deepEqual(walked.slice(0, 5), posted);
  assert.equal(new Set(walked).size, walked.length);
};

const pictures = async (ada, bob) => {
  const bytes = Buffer.from("R0lGODlhAQABAIAAAP8AAAAA/ywAAAAAAQABAAACAkQBADs=", "base64");
  const file = () => new Blob([bytes], { type: "image/gif" });
  const media = await ada.v2.media.create({ file: file(), description: "a dot", focus: "0.5,-0.5" });
  assert.deepEqual([media.type, media.description], ["image", "a dot"]);
  assert.equal((await ada.v1.media.$select(media.id).update({ description: "a red dot" })).description, "a red dot");
  const post = await ada.v1.statuses.create({ mediaIds: [media.id] });
  const [seen] = (await bob.v1.statuses.$select(post.id).fetch()).mediaAttachments;
  assert.deepEqual([seen.id, seen.description, seen.meta.original.size], [media.id, "a red dot", "1x1"]);
  assert.equal((await fetch(seen.previewUrl)).headers.get("content-type"), "image/png");
  const changed = await ada.v1.statuses.$select(post.id).update({
    status: "a dot", mediaIds: [media.id], mediaAttributes: [{ id: media.id, description: "one dot", focus: "0,0" }],
  });
  assert.equal(changed.mediaAttachments[0].description, "one dot");
  assert.equal((await ada.v1.statuses.$select(post.id).update({ status: "none", mediaIds: [] })).mediaAttachments.length, 0);
  const me = await ada.v1.accounts.updateCredentials({ header: file() });
  assert.equal((await fetch(me.header)).status, 200);
  await ada.v1.statuses.$select(post.id).remove();
};

const lists = async (bob, me, post) => {
  const friends = await bob.v1.lists.create({ title: "Friends", repliesPolicy: "followed" });
  assert.equal(friends.repliesPolicy, "followed");
  const its = bob.v1.lists.$select(friends.id);
  await its.accounts.create({ accountIds: [me.ada] });
  assert.deepEqual(ids(await its.accounts.list()), [me.ada]);
  assert.equal((await bob.v1.timelines.list.$select(friends.id).list())[0].id, post);
  await its.accounts.remove({ accountIds: [me.ada] });
  assert.deepEqual(ids(await its.accounts.list()), []);
  await its.remove();
  const [forYou, ...others] = await bob.v1.lists.list();
  assert.deepEqual([forYou.title, others], ["For You", []]);
  const shown = [];
  for await (const page of bob.v1.timelines.list.$select(forYou.id).list({ limit: 1 })) shown.push(...ids(page));
  assert.ok(shown.length > 0 && new Set(shown).size === shown.length, `${shown}`);
};

const filters = async (bob, post) => {
  const keywordsAttributes = [{ keyword: "last", wholeWord: true }];
  const filter = await bob.v2.filters.create({ title: "Spoilers", context: ["home"], keywordsAttributes });
  const status = () => bob.v1.statuses.$select(post).fetch();
  assert.deepEqual((await status()).filtered[0].keywordMatches, ["last"]);
  const its = bob.v2.filters.$select(filter.id);
  const keyword = await its.keywords.create({ keyword: "other", wholeWord: false });
  assert.deepEqual(ids(await its.keywords.list()), [filter.keywords[0].id, keyword.id]);
  await bob.v2.filters.keywords.$select(keyword.id).remove();
  const listed = await its.statuses.create({ statusId: post });
  assert.deepEqual((await status()).filtered[0].statusMatches, [post]);
  await bob.v2.filters.statuses.$select(listed.id).remove();
  assert.equal((await its.update({ filterAction: "hide" })).filterAction, "hide");
  await its.remove();
  assert.deepEqual((await status()).filtered, []);
};

const hides = async (ada, bob, me, post) => {
  const her = bob.v1.accounts.$select(me.ada);
  const him = ada.v1.accounts.$select(me.bob);
  assert.equal((await her.mute({ notifications: true, duration: 3600 })).muting, true);
  assert.deepEqual(ids(await bob.v1.mutes.list()), [me.ada]);
  assert.equal((await her.unmute()).muting, false);
  assert.equal((await him.block()).blocking, true);
  assert.deepEqual(ids(await ada.v1.blocks.list()), [me.bob]);
  await refused(404, her.fetch());
  await refused(404, bob.v1.statuses.$select(post).fetch());
  assert.equal((await him.unblock()).blocking, false);
  assert.equal((await her.unfollow()).following, false);
};

const hashtags = async (ada, bob) => {
  const post = await ada.v1.statuses.create({ status: "#Novel" });
  const tag = bob.v1.tags.$select("novel");
  assert.equal((await tag.follow()).following, true);
  assert.deepEqual((await bob.v1.followedTags.list()).map((one) => one.name), ["novel"]);
  assert.equal((await bob.v1.timelines.home.list())[0].id, post.id);
  assert.equal((await tag.unfollow()).following, false);
  assert.ok(!ids(await bob.v1.timelines.home.list()).includes(post.id));
  await ada.v1.statuses.$select(post.id).remove();
};

const conversations = async (ada, bob) => {
  const first = await ada.v1.statuses.create({ status: "@bob between us", visibility: "direct" });
  const answer = { status: "@ada agreed", visibility: "direct", inReplyToId: first.id };
  const last = await bob.v1.statuses.create(answer);
  const [found] = await ada.v1.conversations.list();
  assert.deepEqual([found.id, found.unread, found.lastStatus.id], [first.id, true, last.id]);
  assert.deepEqual(found.accounts.map((one) => one.acct), ["bob"]);
  assert.equal((await ada.v1.conversations.$select(found.id).read()).unread, false);
  await ada.v1.conversations.$select(found.id).remove();
  assert.deepEqual(await ada.v1.conversations.list(), []);
  assert.equal((await bob.v1.conversations.list())[0].unread, false);
};

const chooses = async (ada, bob, me) => {
  const her = bob.v1.accounts.$select(me.ada);
  const relation = await her.follow({ reblogs: false, notify: true });
  assert.deepEqual([relation.showingReblogs, relation.notifying], [false, true]);
  const post = await ada.v1.statuses.create({ status: "to be known" });
  const [newest] = await bob.v1.notifications.list({ types: ["status"] });
  assert.deepEqual([newest.type, newest.status.id], ["status", post.id]);
  assert.equal((await her.follow({ reblogs: true, notify: false })).notifying, false);
  const thread = bob.v1.statuses.$select(post.id);
  assert.equal((await thread.mute()).muted, true);
  assert.equal((await thread.unmute()).muted, false);
};

const main = async () => {
  const tokens = await users();
  const ada = createRestAPIClient({ url, accessToken: tokens.ada });
  const bob = createRestAPIClient({ url, accessToken: tokens.bob });
  const me = {
    ada: (await ada.v1.accounts.verifyCredentials()).id,
    bob: (await bob.v1.accounts.verifyCredentials()).id,
  };
  assert.equal((await ada.v1.apps.verifyCredentials()).name, "Life");
  const changed = await ada.v1.accounts.updateCredentials({ displayName: "Ada L.", note: "I post." });
  assert.deepEqual([changed.displayName, changed.source.note], ["Ada L.", "I post."]);
  assert.deepEqual(ids((await bob.v2.search.list({ q: "ad" })).accounts), [me.ada]);
  assert.deepEqual(ids(await bob.v1.accounts.search.list({ q: "ad" })), [me.ada]);
  assert.equal((await bob.v1.accounts.lookup({ acct: "ada" })).id, me.ada);
  assert.equal((await bob.v1.accounts.$select(me.ada).follow()).following, true);
  const [relation] = await ada.v1.accounts.relationships.fetch({ id: [me.bob] });
  assert.equal(relation.followedBy, true);
  assert.deepEqual(ids(await ada.v1.accounts.$select(me.ada).followers.list()), [me.bob]);
  const events = await stream(ada, tokens.bob);
  const post = await posts(ada, bob, events);
  const reply = await reactions(ada, bob, me, post, events);
  for (const id of [reply, post]) {
    assert.ok((await ada.v1.statuses.$select(id).remove()).text);
    // As in Mastodon, a deletion may be heard twice: of what was at home, and of a mention.
    while ((await events.next("delete")) !== id);
    await refused(404, bob.v1.statuses.$select(id).fetch());
  }
  events.close();
  await pages(ada, bob);
  await pictures(ada, bob);
  const last = (await ada.v1.statuses.create({ status: "last" })).id;
  await lists(bob, me, last);
  await filters(bob, last);
  await hides(ada, bob, me, last);
  await hashtags(ada, bob);
  await conversations(ada, bob);
  await chooses(ada, bob, me);
  await tokens.revoke(tokens.ada);
  await refused(401, ada.v1.accounts.verifyCredentials());
};

main().then(() => console.log("done"), (error) => {
  console.error(error);
  process.exit(1);
});
