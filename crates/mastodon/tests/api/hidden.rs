//! Hidden items: undoing reactions to them, disabled accounts, and numbers that strangers see.

use feed::accounts::{AccountCommand, AccountState};
use feed::{Command, UserId, UserRef};
use serde_json::Value;

use crate::client::{Person, World};

const DAY_MS: u64 = 86_400_000;

impl Person {
    async fn posts(&self, world: &World, fields: &[(&str, &str)]) -> String {
        let status = self.call(world, "POST", "/api/v1/statuses", fields).await;
        status["id"].as_str().unwrap().to_owned()
    }

    /// Sends a change; returns the status code and the response.
    async fn tries(&self, world: &World, path: &str) -> (u16, Value) {
        let got = world.call("POST", path, Some(&self.token), &[]).await;
        let entity = if got.status.is_success() { got.json() } else { Value::Null };
        (got.status.as_u16(), entity)
    }
}

#[tokio::test]
async fn numbers_that_strangers_see_count_what_everybody_sees() {
    let (world, clock) = World::with_clock();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    bob.does(&world, "follow", &ada).await;
    let open = ada.post(&world, "the first #tag").await;
    let account = format!("/api/v1/accounts/{}", ada.id);
    let status = format!("/api/v1/statuses/{open}");
    let paths = [
        account.as_str(),
        &status,
        "/api/v1/instance",
        "/api/v2/instance",
        "/nodeinfo/2.0",
        "/api/v1/tags/tag",
    ];
    let seen = async || {
        let mut found = Vec::new();
        for path in paths {
            found.push(world.get(path, None).await.text);
        }
        found
    };
    clock.pass(2 * DAY_MS);
    let before = seen().await;
    assert!(before[0].contains("\"statuses_count\":1"), "{}", before[0]);
    let mut closed = Vec::new();
    for visibility in ["private", "direct", "direct"] {
        let fields = [
            ("status", "@bob in private #tag"),
            ("visibility", visibility),
            ("in_reply_to_id", &open),
        ];
        closed.push(ada.posts(&world, &fields).await);
        assert_eq!(seen().await, before, "{visibility}");
    }
    ada.call(&world, "POST", &format!("/api/v1/statuses/{}/reblog", closed[0]), &[]).await;
    assert_eq!(seen().await, before, "a boost for followers");
    assert_eq!(ada.get(&world, &account).await["statuses_count"], 1);
    for post in &closed {
        ada.call(&world, "DELETE", &format!("/api/v1/statuses/{post}"), &[]).await;
        assert_eq!(seen().await, before, "deleted");
    }
    ada.post(&world, "another").await;
    let after = ada.get(&world, &account).await;
    assert_eq!(after["statuses_count"], 2);
    assert_ne!(seen().await[0], before[0]);
    assert!(!before[0].contains(after["last_status_at"].as_str().unwrap()));
}

#[tokio::test]
async fn what_one_did_with_a_status_is_undone_though_it_is_hidden_by_now() {
    for is_blocked in [true, false] {
        let world = World::new();
        let [ada, bob] = world.people(["ada", "bob"]).await;
        bob.does(&world, "follow", &ada).await;
        let visibility = if is_blocked { "public" } else { "private" };
        let fields = [("status", "a secret of ada"), ("visibility", visibility)];
        let post = ada.posts(&world, &fields).await;
        let path = format!("/api/v1/statuses/{post}");
        let mut undone = vec![("favourite", "unfavourite", "favourited")];
        undone.push(("bookmark", "unbookmark", "bookmarked"));
        undone.push(("mute", "unmute", "muted"));
        if is_blocked {
            undone.push(("reblog", "unreblog", "reblogged"));
        }
        for (action, ..) in &undone {
            bob.call(&world, "POST", &format!("{path}/{action}"), &[]).await;
        }
        match is_blocked {
            true => drop(ada.does(&world, "block", &bob).await),
            false => drop(bob.does(&world, "unfollow", &ada).await),
        }
        for (action, undo, flag) in undone {
            let (code, status) = bob.tries(&world, &format!("{path}/{undo}")).await;
            assert_eq!((code, &status["id"]), (200, &post.clone().into()), "{undo}");
            assert_eq!((&status["content"], &status[flag]), (&"".into(), &false.into()), "{undo}");
            assert_eq!(status["account"]["username"], "ada");
            assert!(!status.to_string().contains("secret"), "{status}");
            // After the undo, the hidden status is not found, whatever the action.
            for again in [undo, action] {
                let (code, _) = bob.tries(&world, &format!("{path}/{again}")).await;
                assert_eq!(code, 404, "{again}");
            }
        }
        let seen = ada.get(&world, &path).await;
        let counts = (&seen["favourites_count"], &seen["reblogs_count"]);
        assert_eq!(counts, (&0.into(), &0.into()));
    }
}

#[tokio::test]
async fn a_relation_is_undone_though_the_other_is_hidden_by_now() {
    let world = World::new();
    let [ada, bob, cyd] = world.people(["ada", "bob", "cyd"]).await;
    bob.does(&world, "mute", &ada).await;
    let note = [("comment", "a note")];
    bob.call(&world, "POST", &format!("/api/v1/accounts/{}/note", ada.id), &note).await;
    ada.does(&world, "block", &bob).await;
    ada.does(&world, "block", &cyd).await;
    let of = |who: &Person, what: &str| format!("/api/v1/accounts/{}/{what}", who.id);
    let (code, relation) = bob.tries(&world, &of(&ada, "unmute")).await;
    assert_eq!((code, &relation["muting"]), (200, &false.into()));
    let (code, relation) = bob.tries(&world, &of(&ada, "note")).await;
    assert_eq!((code, &relation["note"]), (200, &"".into()));
    for what in ["unmute", "note", "unfollow", "follow", "mute"] {
        assert_eq!(bob.tries(&world, &of(&ada, what)).await.0, 404, "{what}: no item is left");
        assert_eq!(cyd.tries(&world, &of(&ada, what)).await.0, 404, "{what}: nothing to undo");
    }
    let [dan, eve] = world.people(["dan", "eve"]).await;
    dan.does(&world, "follow", &eve).await;
    disable(&world, &eve, AccountState::Disabled).await;
    let (code, relation) = dan.tries(&world, &of(&eve, "unfollow")).await;
    assert_eq!((code, &relation["following"]), (200, &false.into()));
}

pub(crate) async fn disable(world: &World, who: &Person, state: AccountState) {
    let user = UserRef::Id(UserId(who.id.parse().unwrap()));
    let command = Command::Account(AccountCommand::SetState { user, state });
    world.node.submit(command.into()).await.unwrap().outcome.unwrap();
}

#[tokio::test]
async fn a_disabled_account_is_shown_to_nobody_until_it_is_enabled() {
    let world = World::new();
    let [ada, bob, cyd] = world.people(["ada", "bob", "cyd"]).await;
    for who in [&ada, &bob] {
        cyd.does(&world, "follow", who).await;
    }
    let post = ada.post(&world, "hello @cyd #tag").await;
    let thread = bob.post(&world, "a thread #tag").await;
    let reply = ada.reply(&world, &thread, "below").await;
    bob.call(&world, "POST", &format!("/api/v1/statuses/{post}/reblog"), &[]).await;
    ada.call(&world, "POST", &format!("/api/v1/statuses/{thread}/favourite"), &[]).await;
    ada.does(&world, "follow", &cyd).await;
    let own = [
        format!("/api/v1/accounts/{}", ada.id),
        format!("/api/v1/accounts/{}/statuses", ada.id),
        format!("/api/v1/accounts/{}/followers", ada.id),
        format!("/api/v1/statuses/{post}"),
        format!("/api/v1/statuses/{reply}"),
        "/api/v1/accounts/lookup?acct=ada".to_owned(),
    ];
    let others = [
        "/api/v1/timelines/public".to_owned(),
        "/api/v1/timelines/tag/tag".to_owned(),
        format!("/api/v1/accounts/{}/statuses", bob.id),
        format!("/api/v1/accounts/{}/following", cyd.id),
        format!("/api/v1/accounts/{}/followers", cyd.id),
        format!("/api/v1/statuses/{thread}/context"),
        format!("/api/v1/statuses/{thread}/favourited_by"),
        "/api/v1/directory".to_owned(),
    ];
    let of_user = ["/api/v1/timelines/home", "/api/v1/notifications", "/api/v2/search?q=ada"];
    let see = async |reader: Option<&Person>| {
        let mut found = Vec::new();
        let of_user = of_user.iter().map(|path| (*path).to_owned()).filter(|_| reader.is_some());
        for path in own.iter().chain(&others).cloned().chain(of_user) {
            let got = world.get(&path, reader.map(|reader| reader.token.as_str())).await;
            found.push((path, got.status.as_u16(), got.text));
        }
        found
    };
    let before = [see(None).await, see(Some(&cyd)).await];
    for (path, status, text) in before.iter().flatten() {
        assert_eq!(*status, 200, "{path}");
        let shows = text.contains("\"username\":\"ada\"");
        assert!(shows || path.ends_with("/followers"), "{path}: {text}");
    }
    disable(&world, &ada, AccountState::Disabled).await;
    for reader in [None, Some(&cyd)] {
        for (path, status, text) in see(reader).await {
            let expect = if own.contains(&path) { 404 } else { 200 };
            assert_eq!(status, expect, "{path}: {text}");
            assert!(!text.contains("\"ada\"") && !text.contains("hello"), "{path}: {text}");
        }
    }
    let home = cyd.ids(&world, "/api/v1/timelines/home").await;
    assert_eq!(home, [thread.as_str()], "others are");
    disable(&world, &ada, AccountState::Active).await;
    // Polls end now; the node's own thread would end them a moment later.
    let node = world.node.clone();
    tokio::task::spawn_blocking(move || node.do_due()).await.unwrap();
    assert_eq!([see(None).await, see(Some(&cyd)).await], before);
}

#[tokio::test]
async fn what_visitors_may_not_see_takes_no_place_in_what_they_read() {
    let world = World::new();
    let [ada, bob, cyd] = world.people(["ada", "bob", "cyd"]).await;
    let thread = ada.post(&world, "a thread").await;
    let first = bob.reply(&world, &thread, "first").await;
    for _ in 0..100 {
        let fields = [("status", "psst"), ("visibility", "direct"), ("in_reply_to_id", &*first)];
        cyd.call(&world, "POST", "/api/v1/statuses", &fields).await;
    }
    let second = bob.reply(&world, &thread, "second").await;
    let context = world.get(&format!("/api/v1/statuses/{thread}/context"), None).await.json();
    assert_eq!(crate::client::ids(&context["descendants"]), [first, second]);
}

#[tokio::test]
async fn posts_of_a_disabled_account_take_no_place_on_the_pages_of_others() {
    let world = World::new();
    let [ada, bob, cyd] = world.people(["ada", "bob", "cyd"]).await;
    cyd.does(&world, "follow", &bob).await;
    let own = bob.post(&world, "mine #tag").await;
    for number in 0..25 {
        let post = ada.post(&world, &format!("{number} #tag")).await;
        bob.call(&world, "POST", &format!("/api/v1/statuses/{post}/reblog"), &[]).await;
    }
    disable(&world, &ada, AccountState::Disabled).await;
    assert_eq!(cyd.ids(&world, "/api/v1/timelines/home").await, [own.as_str()]);
    for path in ["/api/v1/timelines/tag/tag", "/api/v1/timelines/public"] {
        let page = world.get(path, None).await.json();
        assert_eq!(crate::client::ids(&page), [own.as_str()], "{path}");
    }
}

#[tokio::test]
async fn quotes_of_a_disabled_account_do_not_count_until_it_is_enabled() {
    let world = World::new();
    let [ada, bob, cyd] = world.people(["ada", "bob", "cyd"]).await;
    let post = ada.post(&world, "a post").await;
    let path = format!("/api/v1/statuses/{post}");
    let quote = [("status", "look"), ("quoted_status_id", post.as_str())];
    bob.call(&world, "POST", "/api/v1/statuses", &quote).await;
    for (state, quotes) in
        [(AccountState::Active, 1), (AccountState::Disabled, 0), (AccountState::Active, 1)]
    {
        disable(&world, &bob, state).await;
        // This read caches the count before the rows of the account's posts follow its state.
        cyd.get(&world, &path).await;
        world.do_due().await;
        assert_eq!(cyd.get(&world, &path).await["quotes_count"], quotes, "{state:?}");
        let listed = cyd.ids(&world, &format!("{path}/quotes")).await;
        assert_eq!(listed.len(), quotes, "{state:?}");
    }
}
