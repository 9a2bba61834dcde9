//! `/v1/users/{user}/blocks`, `/v1/users/{user}/mutes`, and `viewer`: what a block or a mute hides, route by route.

use serde_json::{Value, json};
use testkit::http::at;

use crate::client::TestServer;

fn ids(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

fn put(server: &TestServer, path: &str) {
    assert_eq!(server.send("PUT", path, &[], b"").status, 204, "{path}");
}

fn delete(server: &TestServer, path: &str) {
    assert_eq!(server.send("DELETE", path, &[], b"").status, 204, "{path}");
}

fn mute(server: &TestServer, user: &str, other: &str, body: &Value) {
    let path = format!("/v1/users/@{user}/mutes/@{other}");
    let answer = server.with_json("PUT", &path, &[], body);
    assert_eq!((answer.status, answer.body.as_slice()), (204, b"".as_slice()), "{path}");
}

fn reply(server: &TestServer, author: &str, parent: &str, text: &str) -> String {
    let body = json!({"text": text, "in_reply_to_id": parent});
    let created = server.post(&format!("/v1/users/@{author}/posts"), &body);
    assert_eq!(created.status, 201, "{created:?}");
    created.json()["id"].as_str().unwrap().to_owned()
}

fn thread(server: &TestServer, path: &str) -> (Vec<String>, Vec<String>) {
    let thread = server.get(path).json();
    let texts = |list: &str| {
        let posts = thread[list].as_array().unwrap().iter();
        posts.map(|post| post["text"].as_str().unwrap().to_owned()).collect()
    };
    (texts("ancestors"), texts("items"))
}

/// Ada and bob follow each other and are friends; cyd follows both. Bob wrote two posts, one of which mentions ada.
fn prepared() -> (TestServer, String, String) {
    let server = TestServer::open();
    server.register(&["ada", "bob", "cyd"]);
    for (user, other) in [("ada", "bob"), ("bob", "ada"), ("cyd", "ada"), ("cyd", "bob")] {
        server.follow(user, other);
    }
    server.befriend("ada", "bob");
    let (plain, mention) = (server.publish("bob", "plain"), server.publish("bob", "hi @ada"));
    (server, plain, mention)
}

#[test]
fn a_block_hides_both_from_each_other_on_every_surface() {
    let (server, plain, mention) = prepared();
    let mine = server.publish("ada", "mine");
    reply(&server, "bob", &mine, "an answer");
    let story = server.post_story("bob", "a story", 600);
    put(&server, &format!("/v1/users/@ada/viewed_stories/{story}"));
    put(&server, "/v1/users/@ada/blocks/@bob");
    assert_eq!(ids(&server.get("/v1/users/@ada/blocks").json()), ["1"]);
    assert_eq!(
        ids(&server.get("/v1/users/@bob/blocks").json()),
        [""; 0],
        "bob has no notification"
    );
    for path in [
        "/v1/users/@ada/mentions",
        "/v1/users/@ada/following",
        "/v1/users/@bob/following",
        "/v1/users/@ada/friends",
        "/v1/users/@ada/timeline/stories",
        // Lists of other users omit hidden users.
        "/v1/users/@bob/followers?viewer=@cyd&limit=100&cursor=-2",
    ] {
        assert_eq!(ids(&server.get(path).json()), [""; 0], "{path}");
    }
    assert_eq!(server.texts("/v1/users/@ada/timeline"), ["mine"]);
    assert_eq!(server.texts("/v1/users/@bob/timeline"), ["an answer", "hi @ada", "plain"]);
    for (path, hidden) in [
        (format!("/v1/posts/{plain}"), "post_not_found"),
        (format!("/v1/posts/{mention}"), "post_not_found"),
        (format!("/v1/posts/{plain}/context"), "post_not_found"),
        ("/v1/users/@bob".to_owned(), "user_not_found"),
        ("/v1/users/@bob/posts".to_owned(), "user_not_found"),
        ("/v1/users/@bob/followers".to_owned(), "user_not_found"),
        ("/v1/users/@bob/following".to_owned(), "user_not_found"),
        ("/v1/users/@bob/friends".to_owned(), "user_not_found"),
        ("/v1/users/@bob/stories".to_owned(), "user_not_found"),
    ] {
        server.get(&format!("{path}?viewer=@ada")).assert_error(404, hidden, &path);
        for seen in [path.clone(), format!("{path}?viewer=@cyd"), format!("{path}?viewer=1")] {
            assert_eq!(server.get(&seen).status, 200, "{seen}");
        }
    }
    server.get(&format!("/v1/posts/{mine}?viewer=1")).assert_error(404, "post_not_found", "mine");
    server.get("/v1/users/0?viewer=1").assert_error(404, "user_not_found", "the other direction");
    assert_eq!(ids(&server.get("/v1/users/@cyd/following").json()), ["0", "1"]);
    assert_eq!(ids(&server.get("/v1/users/@cyd/following?viewer=@ada").json()), ["0"]);
    let context = format!("/v1/posts/{mine}/context");
    assert_eq!(thread(&server, &context).1, ["an answer"]);
    assert_eq!(thread(&server, &format!("{context}?viewer=@cyd")).1, ["an answer"]);
    assert_eq!(thread(&server, &format!("{context}?viewer=@ada")).1, [""; 0]);
    // New relations are refused, and a reply does not find the post.
    let other = "/v1/users/@ada/following/@bob";
    server.send("PUT", other, &[], b"").assert_error(422, "blocked", "by oneself");
    for path in ["/v1/users/@bob/following/@ada", "/v1/users/@bob/friends/@ada"] {
        server.send("PUT", path, &[], b"").assert_error(404, "user_not_found", path);
    }
    let answer =
        server.post("/v1/users/@bob/posts", &json!({"text": "again", "in_reply_to_id": mine}));
    answer.assert_error(422, "in_reply_to_not_found", "a hidden post");
    delete(&server, "/v1/users/@ada/blocks/@bob");
    assert_eq!(server.texts("/v1/users/@ada/mentions"), ["an answer", "hi @ada"]);
    assert_eq!(server.get(&format!("/v1/posts/{plain}?viewer=@ada")).status, 200);
    assert_eq!(
        ids(&server.get("/v1/users/@ada/following").json()),
        [""; 0],
        "follows are not restored"
    );
}

#[test]
fn a_mute_hides_posts_stories_and_on_request_mentions_from_its_user_only() {
    let (server, plain, _) = prepared();
    server.post_story("bob", "a story", 600);
    server.follow("ada", "cyd");
    reply(&server, "cyd", &server.publish("bob", "another"), "a reply to bob");
    server.publish("cyd", "by cyd");
    let answer = reply(&server, "bob", &plain, "more by bob");
    reply(&server, "cyd", &answer, "below");
    let context = format!("/v1/posts/{plain}/context?viewer=@ada");
    mute(&server, "ada", "bob", &json!({"mentions": false}));
    assert_eq!(server.texts("/v1/users/@ada/timeline"), ["by cyd"]);
    assert_eq!(server.texts("/v1/users/@ada/timeline/stories"), [""; 0]);
    assert_eq!(server.texts("/v1/users/@ada/mentions"), ["hi @ada"]);
    assert_eq!(thread(&server, &context).1, ["below"], "replies by others remain");
    // Items that ada requests by name remain, and so do items in the lists of other users.
    assert_eq!(server.texts("/v1/users/@bob/posts?viewer=@ada").len(), 4);
    assert_eq!(server.texts("/v1/users/@bob/stories?viewer=@ada"), ["a story"]);
    assert_eq!(server.texts("/v1/users/@cyd/timeline").len(), 7);
    assert_eq!(ids(&server.get("/v1/users/@ada/following").json()), ["1", "2"]);
    mute(&server, "ada", "bob", &json!({}));
    assert_eq!(server.texts("/v1/users/@ada/mentions"), [""; 0]);
    delete(&server, "/v1/users/@ada/mutes/@bob");
    assert_eq!(server.texts("/v1/users/@ada/mentions"), ["hi @ada"]);
    assert_eq!(server.texts("/v1/users/@ada/timeline").len(), 7);
    assert_eq!(server.texts("/v1/users/@ada/timeline/stories"), ["a story"]);
    assert_eq!(thread(&server, &context).1, ["more by bob", "below"]);
}

#[test]
fn mutes_are_listed_with_their_ends_and_replaced() {
    let server = TestServer::open();
    server.register(&["ada", "bob", "cyd"]);
    let listed = || server.get("/v1/users/@ada/mutes").json()["items"].clone();
    mute(&server, "ada", "bob", &json!({}));
    mute(&server, "ada", "cyd", &json!({"mentions": false, "ttl_s": 3_600}));
    assert_eq!(
        listed()[0],
        json!({"id": "1", "handle": "bob", "name": "", "mentions": true, "expires_at": null})
    );
    let cyd = listed()[1].clone();
    assert_eq!((&cyd["id"], &cyd["mentions"]), (&json!("2"), &json!(false)));
    assert!(cyd["expires_at"].as_str().unwrap().ends_with('Z'), "{cyd}");
    mute(&server, "ada", "cyd", &json!({}));
    assert!(listed()[1]["expires_at"].is_null());
    delete(&server, "/v1/users/@ada/mutes/@bob");
    delete(&server, "/v1/users/@ada/mutes/@bob");
    assert_eq!(ids(&server.get("/v1/users/0/mutes?limit=1").json()), ["2"]);
    assert_eq!(ids(&server.get("/v1/users/1/mutes").json()), [""; 0]);
}

#[test]
fn wrong_blocks_mutes_and_viewers_are_refused() {
    let (server, plain, _) = prepared();
    for (path, status, code) in [
        ("/v1/users/0/blocks/@ada", 422, "self_block"),
        ("/v1/users/0/blocks/9", 404, "user_not_found"),
        ("/v1/users/@eve/blocks/0", 404, "user_not_found"),
        ("/v1/users/0/blocks/bob", 400, "bad_request"),
        ("/v1/users/0/mutes/0", 422, "self_mute"),
    ] {
        for method in ["PUT", "DELETE"] {
            let answer = server.with_json(method, path, &[], &json!({}));
            if method == "PUT" || path.contains("mutes") || path.contains("blocks") {
                answer.assert_error(status, code, path);
            }
        }
    }
    for (body, status, code) in [
        (json!({"ttl_s": 0}), 422, "bad_duration"),
        (json!({"ttl_s": 315_360_001}), 422, "bad_duration"),
        (json!({"ttl_s": "1"}), 400, "bad_json"),
        (json!({"forever": true}), 400, "bad_json"),
        (json!({"mentions": 1}), 400, "bad_json"),
    ] {
        let answer = server.with_json("PUT", "/v1/users/0/mutes/1", &[], &body);
        answer.assert_error(status, code, &body.to_string());
    }
    for path in [
        format!("/v1/posts/{plain}"),
        format!("/v1/posts/{plain}/context"),
        "/v1/users/0".to_owned(),
        "/v1/users/0/posts".to_owned(),
        "/v1/users/0/followers".to_owned(),
    ] {
        let unknown = server.get(&format!("{path}?viewer=@eve"));
        unknown.assert_error(404, "user_not_found", &path);
        server.get(&format!("{path}?viewer=ada")).assert_error(400, "bad_request", &path);
        server.get(&format!("{path}?viewer=0&viewer=1")).assert_error(400, "bad_request", &path);
    }
    server.get("/v1/users/0/timeline?viewer=1").assert_error(400, "bad_request", "its own viewer");
}

#[test]
fn links_to_other_pages_are_for_the_same_viewer() {
    let server = TestServer::open();
    let handles: Vec<String> = (0..6).map(|n| format!("u{n}")).collect();
    server.register(&handles.iter().map(String::as_str).collect::<Vec<_>>());
    for user in 1..6 {
        server.follow(&format!("u{user}"), "u0");
    }
    put(&server, "/v1/users/2/blocks/5");
    put(&server, "/v1/users/3/blocks/5");
    for viewer in ["5", "@u5"] {
        let mut path = format!("/v1/users/0/followers?limit=2&viewer={viewer}");
        let mut all = Vec::new();
        loop {
            let page = server.get(&path).json();
            all.extend(ids(&page).into_iter().map(str::to_owned));
            match page["next"].as_str() {
                Some(next) => path = at(&path, next),
                None => break,
            }
        }
        assert_eq!(all, ["1", "4", "5"], "{viewer}");
    }
    let top = server.publish("u0", "top");
    for user in ["u1", "u2", "u3", "u4"] {
        reply(&server, user, &top, user);
    }
    let mut path = format!("/v1/posts/{top}/context?limit=1&viewer=@u5");
    let mut all = Vec::new();
    loop {
        all.extend(thread(&server, &path).1);
        match server.get(&path).json()["next"].as_str() {
            Some(next) => path = at(&path, next),
            None => break,
        }
    }
    assert_eq!(all, ["u1", "u4"]);
}

#[test]
fn a_stream_has_nothing_of_hidden_users() {
    let (server, ..) = prepared();
    let mut events = server.events("/v1/users/@ada/events", None);
    put(&server, "/v1/users/@ada/blocks/@bob");
    mute(&server, "ada", "cyd", &json!({}));
    let hidden = server.publish("bob", "hidden @ada");
    let muted = server.publish("cyd", "muted @ada");
    let edit = json!({"text": "edited @ada"});
    assert_eq!(
        server.with_json("PATCH", &format!("/v1/users/@bob/posts/{hidden}"), &[], &edit).status,
        200
    );
    delete(&server, &format!("/v1/users/@bob/posts/{hidden}"));
    delete(&server, &format!("/v1/users/@cyd/posts/{muted}"));
    server.post_story("bob", "hidden story", 600);
    server.publish("ada", "mine");
    let next = loop {
        match events.next_shown() {
            Some((kind, _)) if kind == "resync" || kind == "unfollow" => {}
            // Muted users are visible, so the deletion of their posts is not secret.
            Some((kind, id)) if kind == "delete" && id == muted => {}
            next => break next,
        }
    };
    assert_eq!(next, Some(("post".to_owned(), "mine".to_owned())));
}

#[test]
fn a_relation_is_what_one_of_the_two_may_know() {
    let (server, ..) = prepared();
    let relation =
        |user: &str, other: &str| server.get(&format!("/v1/users/@{user}/relations/@{other}"));
    let shown = |user: &str, other: &str| {
        let relation = relation(user, other).json();
        let fields = relation.as_object().unwrap().iter();
        fields
            .filter(|(_, is)| **is == json!(true))
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(shown("ada", "bob"), ["followed_by", "following", "friends"]);
    assert_eq!(shown("ada", "cyd"), ["followed_by"]);
    assert_eq!(shown("cyd", "ada"), ["following"]);
    mute(&server, "ada", "cyd", &json!({}));
    assert_eq!(
        (shown("ada", "cyd"), shown("cyd", "ada")),
        (vec!["followed_by".into(), "muting".into()], vec!["following".into()])
    );
    server.with_json("PATCH", "/v1/users/@bob", &[], &json!({"locked": true}));
    delete(&server, "/v1/users/@cyd/following/@bob");
    server.follow("cyd", "bob");
    assert_eq!(shown("cyd", "bob"), ["requested"]);
    put(&server, "/v1/users/@ada/blocks/@bob");
    assert_eq!(shown("ada", "bob"), ["blocking"]);
    relation("bob", "ada").assert_error(404, "user_not_found", "whoever is blocked");
    put(&server, "/v1/users/@cyd/blocks/@ada");
    put(&server, "/v1/users/@ada/blocks/@cyd");
    assert_eq!(
        (shown("ada", "cyd"), shown("cyd", "ada")),
        (vec!["blocking".into(), "muting".into()], vec!["blocking".into()])
    );
    relation("ada", "nobody").assert_error(404, "user_not_found", "nobody");
}

#[test]
fn a_list_of_all_users_leaves_out_who_is_hidden_from_the_viewer() {
    let (server, ..) = prepared();
    put(&server, "/v1/users/@ada/blocks/@bob");
    for (path, expect) in [
        ("/v1/users", vec!["0", "1", "2"]),
        ("/v1/users?viewer=@ada", vec!["0", "2"]),
        ("/v1/users?viewer=1", vec!["1", "2"]),
        ("/v1/users?viewer=@cyd&limit=2", vec!["0", "1"]),
        ("/v1/users?handle=bob", vec!["1"]),
        ("/v1/users?handle=bob&viewer=@ada", vec![]),
        ("/v1/users?viewer=@cyd&handle=bob", vec!["1"]),
        ("/v1/users?search=b", vec!["1"]),
        ("/v1/users?search=b&viewer=@ada", vec![]),
        ("/v1/users?viewer=@cyd&search=b&limit=2", vec!["1"]),
    ] {
        assert_eq!(ids(&server.get(path).json()), expect, "{path}");
    }
    let list = "/v1/users?viewer=@ada&limit=1";
    let next = server.get(list).json()["next"].clone();
    assert_eq!(ids(&server.page(list, &next)), ["2"]);
    server.get("/v1/users?viewer=@nobody").assert_error(404, "user_not_found", "viewer");
    server.get("/v1/users?handle=bob&viewer=@nobody").assert_error(404, "user_not_found", "viewer");
}
