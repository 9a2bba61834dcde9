//! Posts with a limited audience, as others see them.

use feed::accounts::{AccountCommand, AccountState, PasswordHash, Role};
use feed::{Command, UserId, UserRef};
use serde_json::{Value, json};
use testkit::http::at;

use crate::client::{Answer, TestServer};

/// Publishes a post and returns it.
fn publish(server: &TestServer, user: &str, post: &Value) -> Value {
    let answer = server.post(&format!("/v1/users/@{user}/posts"), post);
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()
}

fn reply(server: &TestServer, user: &str, parent: &Value, visibility: &str) -> Value {
    let post = json!({"text": "yes", "in_reply_to_id": parent["id"], "visibility": visibility});
    publish(server, user, &post)
}

#[test]
fn a_reply_does_not_name_a_post_that_is_for_fewer() {
    let server = TestServer::open();
    server.register(&["ada", "bob"]);
    for (parent, replies) in [
        ("public", [("public", true), ("direct", true)]),
        ("unlisted", [("public", true), ("direct", true)]),
        ("followers", [("public", false), ("followers", true)]),
        ("direct", [("followers", false), ("direct", true)]),
    ] {
        let to = publish(&server, "ada", &json!({"text": "to @bob", "visibility": parent}));
        for (visibility, is_named) in replies {
            let post = reply(&server, "bob", &to, visibility);
            let expect = if is_named { to["id"].clone() } else { Value::Null };
            assert_eq!(post["in_reply_to_id"], expect, "{parent} {visibility}");
            let again = server.get(&format!("/v1/posts/{}", post["id"].as_str().unwrap())).json();
            assert_eq!(again, post, "{parent} {visibility}");
        }
    }
}

#[test]
fn pages_name_no_hidden_posts() {
    let server = TestServer::open();
    server.register(&["ada", "bob", "eve"]);
    let first = publish(&server, "ada", &json!({"text": "hello"}));
    let hidden: Vec<Value> = (0..3)
        .map(|_| {
            let direct =
                json!({"text": "to @bob", "visibility": "direct", "in_reply_to_id": first["id"]});
            publish(&server, "ada", &direct)
        })
        .collect();
    let last = reply(&server, "ada", &first, "public");
    let mut path = "/v1/users/@ada/posts?viewer=@eve&limit=1".to_owned();
    let mut next = Value::Null;
    for post in [&last, &first] {
        let page = server.get(&path).json();
        let text = page["items"].to_string();
        for hidden in &hidden {
            assert!(!text.contains(hidden["id"].as_str().unwrap()), "{text}");
        }
        assert_eq!(page["items"][0]["id"], post["id"]);
        // The cursor depends only on shown posts, so it reveals no hidden one.
        let id: u64 = post["id"].as_str().unwrap().parse().unwrap();
        next = page["next"].clone();
        assert!(next.as_str().is_none_or(|next| next.parse() == Ok(id - 1)), "{next}");
        path = at(&path, next.as_str().unwrap_or_default());
    }
    assert_eq!(next, Value::Null, "the second page is the last one");
    let thread = format!("/v1/posts/{}/context?viewer=@eve&limit=1", first["id"].as_str().unwrap());
    let thread = server.get(&thread).json();
    assert_eq!(thread["items"][0]["id"], last["id"]);
    assert_eq!(thread["next"], Value::Null);
}

#[test]
fn a_profile_counts_posts_that_everybody_may_see() {
    let server = TestServer::open();
    server.register(&["ada", "bob"]);
    let counted = || server.get("/v1/users/@ada").json()["post_count"].as_u64().unwrap();
    for (visibility, expect) in [("direct", 0), ("followers", 0), ("public", 1), ("unlisted", 2)] {
        publish(&server, "ada", &json!({"text": "to @bob", "visibility": visibility}));
        assert_eq!(counted(), expect, "{visibility}");
    }
    let all = server.get("/v1/users/@ada/posts").json()["items"].clone();
    for post in all.as_array().unwrap() {
        let before = counted();
        let path = server.own(post["id"].as_str().unwrap());
        assert_eq!(server.send("DELETE", &path, &[], b"").status, 204);
        let is_open = ["public", "unlisted"].contains(&post["visibility"].as_str().unwrap());
        assert_eq!(counted(), before - u64::from(is_open), "{post}");
    }
}

#[test]
fn a_disabled_user_is_hidden_from_viewers_and_not_from_the_application() {
    let server = TestServer::open();
    server.register(&["ada", "bob", "cyd"]);
    for other in ["ada", "bob"] {
        server.follow("cyd", other);
    }
    server.befriend("cyd", "ada");
    let post = server.publish("ada", "hidden #tag");
    server.publish("bob", "shown #tag");
    let story = server.post_story("ada", "a hidden story", 600);
    let boost = format!("/v1/users/@bob/boosts/{post}");
    assert_eq!(server.send("PUT", &boost, &[], b"").status, 204);
    let account = |command| {
        let done = server.block_on(server.node.submit(Command::Account(command).into()));
        done.unwrap().outcome.unwrap();
    };
    let user = || UserRef::Id(UserId(0));
    let (email, password) = (None, PasswordHash::parse("$argon2id$x").unwrap());
    account(AccountCommand::Open { user: user(), email, password, role: Role::User });
    let pages = [
        "/v1/users/@cyd/timeline",
        "/v1/users/@bob/posts?viewer=@cyd",
        "/v1/tags/tag/posts?viewer=@cyd",
        "/v1/users?viewer=@cyd",
        "/v1/users/@cyd/following?viewer=@cyd",
        "/v1/users/@cyd/timeline/stories",
    ];
    let own = [
        "/v1/users/@ada?viewer=@cyd".to_owned(),
        "/v1/users/@ada/posts?viewer=@cyd".to_owned(),
        format!("/v1/posts/{post}?viewer=@cyd"),
        format!("/v1/stories/{story}?viewer=@cyd"),
    ];
    let see = || {
        let all = pages.iter().map(|page| (*page).to_owned()).chain(own.clone());
        all.map(|path| (path.clone(), server.get(&path))).collect::<Vec<_>>()
    };
    let text = |answer: &Answer| String::from_utf8(answer.body.clone()).unwrap();
    for (path, answer) in see() {
        let has = text(&answer).contains("hidden") || text(&answer).contains("\"ada\"");
        assert!(answer.status == 200 && has, "{path}: {}", text(&answer));
    }
    account(AccountCommand::SetState { user: user(), state: AccountState::Disabled });
    for (path, answer) in see() {
        let has = text(&answer).contains("hidden") || text(&answer).contains("\"ada\"");
        let expect = if own.contains(&path) { 404 } else { 200 };
        assert!(answer.status == expect && !has, "{path}: {answer:?}");
    }
    assert_eq!(server.get(&format!("/v1/posts/{post}")).status, 200, "for the application");
    account(AccountCommand::SetState { user: user(), state: AccountState::Active });
    for (path, answer) in see() {
        let has = text(&answer).contains("hidden") || text(&answer).contains("\"ada\"");
        assert!(answer.status == 200 && has, "{path}: {}", text(&answer));
    }
}
