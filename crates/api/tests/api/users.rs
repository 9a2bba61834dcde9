//! `/v1/users`

use serde_json::json;
use testkit::http::at;

use crate::client::TestServer;

#[test]
fn a_registered_user_is_returned_completely_and_found_by_id_and_handle() {
    let server = TestServer::open();
    let body = json!({"handle": "Ada", "name": " Ada L. ", "bio": "first\nof all"});
    let created = server.post("/v1/users", &body);
    assert_eq!((created.status, created.header("location")), (201, Some("/v1/users/0")));
    let user = created.json();
    let time = user["created_at"].as_str().unwrap();
    assert!(time.len() == 24 && time.ends_with('Z') && time.as_bytes()[19] == b'.', "{time}");
    assert_eq!(
        user,
        json!({"id": "0", "handle": "ada", "name": "Ada L.", "bio": "first\nof all",
            "fields": [], "bot": false, "discoverable": true, "indexable": false,
            "locked": false, "created_at": time, "post_count": 0, "follower_count": 0, "following_count": 0,
            "friend_count": 0})
    );
    for path in ["/v1/users/0", "/v1/users/@ada", "/v1/users/@ADA", "/v1/users/%40ada"] {
        assert_eq!(server.get(path).json(), user, "{path}");
    }
    let one = json!({"items": [user], "next": null, "prev": null});
    assert_eq!(server.get("/v1/users?handle=aDa").json(), one);
    let empty = json!({"items": [], "next": null, "prev": null});
    assert_eq!(server.get("/v1/users?handle=nobody").json(), empty);
    for (search, found) in
        [("a", true), ("AD", true), ("ada", true), ("adaa", true), ("b", false), ("da", false)]
    {
        let expected = if found { &one } else { &empty };
        assert_eq!(&server.get(&format!("/v1/users?search={search}")).json(), expected, "{search}");
    }
}

#[test]
fn handles_are_unique_and_case_insensitive() {
    let server = TestServer::open();
    server.register(&["ada"]);
    let again = server.post("/v1/users", &json!({"handle": "ADA"}));
    again.assert_error(409, "handle_taken", "again");
    assert_eq!(server.totals(), (1, 0, 0));
}

#[test]
fn an_edit_of_a_profile_keeps_absent_fields() {
    let server = TestServer::open();
    server.post("/v1/users", &json!({"handle": "ada", "name": "Ada", "bio": "b"}));
    for (change, name, bio) in [
        (json!({"name": "Countess"}), "Countess", "b"),
        (json!({"bio": ""}), "Countess", ""),
        (json!({}), "Countess", ""),
        (json!({"name": "A", "bio": "B"}), "A", "B"),
    ] {
        let answer = server.with_json("PATCH", "/v1/users/@ada", &[], &change);
        assert_eq!(answer.status, 200, "{change}");
        let user = answer.json();
        assert_eq!((&user["name"], &user["bio"]), (&json!(name), &json!(bio)), "{change}");
        assert_eq!(server.get("/v1/users/0").json(), user);
    }
}

#[test]
fn fields_and_settings_of_a_profile_are_changed_one_by_one() {
    let server = TestServer::open();
    server.register(&["ada"]);
    let edit =
        |change: &serde_json::Value| server.with_json("PATCH", "/v1/users/@ada", &[], change);
    let web = json!([{"name": "Web", "value": "https://a.example"}]);
    for (change, name, expect) in [
        (json!({"fields": [{"name": " Web ", "value": "https://a.example"}]}), "fields", &web),
        (json!({"bot": true}), "bot", &json!(true)),
        (json!({"discoverable": false}), "discoverable", &json!(false)),
        (json!({"indexable": true}), "indexable", &json!(true)),
        (json!({}), "fields", &web),
        (json!({"fields": [{"name": "", "value": ""}]}), "fields", &json!([])),
        (json!({"name": "Ada"}), "bot", &json!(true)),
    ] {
        assert_eq!(&edit(&change).json()[name], expect, "{change}");
        assert_eq!(&server.get("/v1/users/@ada").json()[name], expect, "{change}");
    }
    let field = json!({"name": "a", "value": "b"});
    for (fields, code) in [
        (json!([{"name": "", "value": "x"}]), "bad_field"),
        (json!([{"name": "a", "value": "x".repeat(256)}]), "bad_field"),
        (json!([field, field, field, field, field]), "too_many_fields"),
    ] {
        edit(&json!({ "fields": fields })).assert_error(422, code, code);
    }
    edit(&json!({"fields": null})).assert_error(400, "bad_json", "null");
}

#[test]
fn counts_follow_posts_and_follows() {
    let server = TestServer::open();
    server.register(&["ada", "bob"]);
    server.follow("ada", "bob");
    server.publish("bob", "one");
    let two = server.publish("bob", "two");
    let counts = |handle: &str| {
        let user = server.get(&format!("/v1/users/@{handle}")).json();
        ["post_count", "follower_count", "following_count"]
            .map(|count| user[count].as_u64().unwrap())
    };
    assert_eq!((counts("ada"), counts("bob")), ([0, 0, 1], [2, 1, 0]));
    server.send("DELETE", "/v1/users/0/following/1", &[], b"");
    server.send("DELETE", &server.own(&two), &[], b"");
    assert_eq!((counts("ada"), counts("bob")), ([0, 0, 0], [1, 0, 0]));
}

#[test]
fn the_list_of_users_is_read_to_its_end_by_its_cursors() {
    let server = TestServer::open();
    let handles: Vec<String> = (0..45).map(|n| format!("user{n}")).collect();
    server.register(&handles.iter().map(String::as_str).collect::<Vec<_>>());
    let mut read = Vec::new();
    let mut next = Some(String::from("/v1/users"));
    while let Some(path) = next {
        let page = server.get(&path).json();
        let items = page["items"].as_array().unwrap();
        read.extend(items.iter().map(|user| user["handle"].as_str().unwrap().to_owned()));
        next = page["next"].as_str().map(|next| at(&path, next));
    }
    assert_eq!(read, handles);
    let last = server.get("/v1/users?limit=20&cursor=40").json();
    let previous = server.page("/v1/users?limit=20", &last["prev"]);
    let ids: Vec<u32> = previous["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|user| user["id"].as_str().unwrap().parse().unwrap())
        .collect();
    assert_eq!(ids, (20..40).collect::<Vec<_>>(), "and back");
    let page = server.get("/v1/users?limit=2&cursor=44").json();
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
}

fn delete(server: &TestServer, user: &str) {
    let answer = server.send("DELETE", &format!("/v1/users/{user}"), &[], b"");
    assert_eq!((answer.status, answer.body.as_slice()), (204, b"".as_slice()), "{user}");
}

#[test]
fn a_deleted_user_and_what_they_made_are_found_nowhere() {
    let server = TestServer::open();
    server.register(&["ada", "bob", "cyd"]);
    for (user, other) in [("ada", "bob"), ("bob", "ada"), ("bob", "cyd")] {
        server.follow(user, other);
    }
    server.befriend("ada", "bob");
    let post = server.publish("ada", "hello @bob");
    let story = server.post_story("ada", "a story", 600);
    let bobs_story = server.post_story("bob", "another", 600);
    let seen = server.send("PUT", &format!("/v1/users/0/viewed_stories/{bobs_story}"), &[], b"");
    assert_eq!(seen.status, 204);
    let reply = json!({"text": "to you @ada", "in_reply_to_id": post});
    let reply = server.post("/v1/users/@bob/posts", &reply).json();
    let reply = reply["id"].as_str().unwrap().to_owned();
    // These reads load the user's data into memory.
    for path in ["/v1/users/@bob/timeline", "/v1/users/@bob/timeline/stories", "/v1/users/@ada"] {
        assert_eq!(server.get(path).status, 200);
    }
    delete(&server, "@ada");
    for path in ["", "/posts", "/timeline", "/mentions", "/followers", "/stories", "/events"] {
        for user in ["0", "@ada"] {
            let path = format!("/v1/users/{user}{path}");
            server.get(&path).assert_error(404, "user_not_found", &path);
        }
    }
    server.get(&format!("/v1/posts/{post}")).assert_error(404, "post_not_found", "the post");
    let context = format!("/v1/posts/{post}/context");
    server.get(&context).assert_error(404, "post_not_found", "the thread");
    server.get(&format!("/v1/stories/{story}")).assert_error(404, "story_not_found", "the story");
    let again = server.send("DELETE", "/v1/users/0", &[], b"");
    again.assert_error(404, "user_not_found", "again");
    server.post("/v1/users", &json!({"handle": "ada"})).assert_error(409, "handle_taken", "again");
    for path in ["/followers", "/friends", "/mentions", "/timeline/stories"] {
        let path = format!("/v1/users/@bob{path}");
        assert_eq!(server.get(&path).json()["items"], json!([]), "{path}");
    }
    let views = format!("/v1/users/@bob/stories/{bobs_story}/views");
    assert_eq!(server.get(&views).json()["items"], json!([]));
    assert_eq!(server.texts("/v1/users/@bob/timeline"), ["to you @ada"]);
    let bob = server.get("/v1/users/@bob").json();
    let counts = ["follower_count", "following_count", "friend_count"].map(|count| &bob[count]);
    assert_eq!(counts, [0, 1, 0]);
    assert_eq!(server.totals(), (2, 1, 1));
    let reply = server.get(&format!("/v1/posts/{reply}")).json();
    assert_eq!(reply["in_reply_to_id"], json!(null));
    assert_eq!(reply["mentions"], json!([{"id": "0", "handle": "ada"}]), "as in the text");
}

#[test]
fn lists_are_read_to_their_ends_over_deleted_users() {
    let server = TestServer::open();
    let handles: Vec<String> = (0..12).map(|n| format!("user{n}")).collect();
    server.register(&handles.iter().map(String::as_str).collect::<Vec<_>>());
    (1..12).for_each(|n| server.follow(&handles[n], "user0"));
    for n in [2, 3, 4, 7, 11] {
        delete(&server, &n.to_string());
    }
    for (path, expected) in [
        ("/v1/users?limit=2", vec![0, 1, 5, 6, 8, 9, 10]),
        ("/v1/users/0/followers?limit=2", vec![1, 5, 6, 8, 9, 10]),
    ] {
        let (mut next, mut read) = (Some(path.to_owned()), Vec::new());
        while let Some(path) = next {
            let page = server.get(&path).json();
            let ids = page["items"].as_array().unwrap().iter().map(|user| user["id"].clone());
            read.extend(ids.map(|id| id.as_str().unwrap().parse::<u32>().unwrap()));
            next = page["next"].as_str().map(|next| at(&path, next));
        }
        assert_eq!(read, expected, "{path}");
    }
    assert_eq!(server.get("/v1/users?handle=user2").json()["items"], json!([]));
}

#[test]
fn a_retry_of_a_deletion_with_its_key_succeeds() {
    let server = TestServer::open();
    server.register(&["ada"]);
    let once = |path| server.send("DELETE", path, &[("Idempotency-Key", "k1")], b"");
    for (path, replayed) in [("/v1/users/@ada", None), ("/v1/users/@ada", Some("true"))] {
        let answer = once(path);
        assert_eq!((answer.status, answer.header("idempotent-replayed")), (204, replayed));
    }
    server.send("DELETE", "/v1/users/@ada", &[], b"").assert_error(404, "user_not_found", "no key");
}
