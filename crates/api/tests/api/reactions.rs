//! Favourites, bookmarks, pins, boosts and notifications of `/v1`.

use serde_json::{Value, json};

use crate::client::TestServer;

fn put(server: &TestServer, path: &str) {
    assert_eq!(server.send("PUT", path, &[], b"").status, 204, "{path}");
}

fn delete(server: &TestServer, path: &str) {
    assert_eq!(server.send("DELETE", path, &[], b"").status, 204, "{path}");
}

fn ids(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

fn publish(server: &TestServer, author: &str, text: &str, visibility: &str) -> String {
    let body = json!({"text": text, "visibility": visibility});
    let created = server.post(&format!("/v1/users/@{author}/posts"), &body);
    created.json()["id"].as_str().unwrap().to_owned()
}

/// Prepares three posts by ada, the last for her followers; bob follows her, cyd does not.
fn prepared() -> (TestServer, [String; 3]) {
    let server = TestServer::open();
    server.register(&["ada", "bob", "cyd"]);
    server.follow("bob", "ada");
    let posts = [
        server.publish("ada", "one"),
        server.publish("ada", "two"),
        publish(&server, "ada", "three", "followers"),
    ];
    (server, posts)
}

#[test]
fn reactions_are_listed_by_the_time_of_the_reaction_and_counted() {
    let (server, [one, two, three]) = prepared();
    for kind in ["favourites", "bookmarks"] {
        for post in [&two, &three, &one, &two] {
            put(&server, &format!("/v1/users/@bob/{kind}/{post}"));
        }
        let path = format!("/v1/users/@bob/{kind}");
        assert_eq!(ids(&server.get(&path).json()), [&one, &three, &two], "{kind}");
        let two_of = format!("{path}?limit=2");
        let first = server.get(&two_of).json();
        assert_eq!(ids(&first), [&one, &three]);
        let second = server.page(&two_of, &first["next"]);
        assert_eq!((ids(&second), &second["next"]), (vec![two.as_str()], &Value::Null));
        let back = server.page(&two_of, &second["prev"]);
        assert_eq!(ids(&back), [&one, &three]);
    }
    put(&server, &format!("/v1/users/@cyd/favourites/{one}"));
    put(&server, &format!("/v1/users/@ada/pins/{two}"));
    let reactions = |user: &str| {
        let path = format!("/v1/users/@{user}/reactions?posts={three},{one},{two},1");
        server.get(&path).json()["items"].clone()
    };
    let expect = |id: &String, count: u32, [favourited, bookmarked, pinned]: [bool; 3]| {
        json!({
            "id": id, "favourite_count": count, "favourited": favourited, "boost_count": 0, "boosted": false,
            "bookmarked": bookmarked, "pinned": pinned
        })
    };
    let (yes, no) = ([true, true, false], [false; 3]);
    let bob = json!([expect(&three, 1, yes), expect(&one, 2, yes), expect(&two, 1, yes)]);
    assert_eq!(reactions("bob"), bob);
    let ada = [expect(&three, 1, no), expect(&one, 2, no), expect(&two, 1, [false, false, true])];
    assert_eq!(reactions("ada"), json!(ada));
    // Cyd may not see the last post.
    let cyd = [expect(&one, 2, [true, false, false]), expect(&two, 1, no)];
    assert_eq!(reactions("cyd"), json!(cyd));
    assert_eq!(ids(&server.get(&format!("/v1/posts/{one}/favourites")).json()), ["1", "2"]);
    assert_eq!(ids(&server.get("/v1/users/@ada/pins").json()), [&two]);

    delete(&server, &format!("/v1/users/@bob/favourites/{one}"));
    delete(&server, &format!("/v1/users/@bob/favourites/{one}"));
    assert_eq!(ids(&server.get(&format!("/v1/posts/{one}/favourites")).json()), ["2"]);
    delete(&server, &server.own(&three));
    assert_eq!(ids(&server.get("/v1/users/@bob/favourites").json()), [&two]);
    assert_eq!(ids(&server.get("/v1/users/@bob/bookmarks").json()), [&one, &two]);
}

#[test]
fn what_is_hidden_has_no_reactions_and_is_not_listed() {
    let (server, [one, _, three]) = prepared();
    for (path, status, code) in [
        (format!("/v1/users/@cyd/favourites/{three}"), 404, "post_not_found"),
        (format!("/v1/users/@cyd/bookmarks/{three}"), 404, "post_not_found"),
        ("/v1/users/@cyd/favourites/1".to_owned(), 404, "post_not_found"),
        (format!("/v1/users/@eve/favourites/{one}"), 404, "user_not_found"),
        (format!("/v1/users/@cyd/pins/{one}"), 422, "pin_not_own"),
        (
            format!("/v1/users/@cyd/pins/{}", publish(&server, "cyd", "hi @bob", "direct")),
            422,
            "pin_direct",
        ),
        ("/v1/users/@cyd/favourites/x".to_owned(), 400, "bad_request"),
        (format!("/v1/users/@cyd/boosts/{three}"), 404, "post_not_found"),
        (format!("/v1/users/@bob/boosts/{three}"), 422, "boost_not_open"),
    ] {
        server.send("PUT", &path, &[], b"").assert_error(status, code, &path);
    }
    for (path, status, code) in [
        (format!("/v1/posts/{three}/favourites?viewer=@cyd"), 404, "post_not_found"),
        ("/v1/posts/1/favourites".to_owned(), 404, "post_not_found"),
        ("/v1/users/@eve/favourites".to_owned(), 404, "user_not_found"),
        ("/v1/users/@ada/reactions".to_owned(), 400, "bad_request"),
        ("/v1/users/@ada/reactions?posts=".to_owned(), 400, "bad_request"),
        ("/v1/users/@ada/reactions?posts=1,,2".to_owned(), 400, "bad_request"),
        (format!("/v1/users/@ada/reactions?posts=1{}", ",1".repeat(100)), 400, "bad_request"),
        ("/v1/users/@eve/reactions?posts=1".to_owned(), 404, "user_not_found"),
        ("/v1/users/@eve/notifications".to_owned(), 404, "user_not_found"),
    ] {
        server.get(&path).assert_error(status, code, &path);
    }
    let hundred = format!("/v1/users/@ada/reactions?posts=1{}", ",1".repeat(99));
    assert_eq!(server.get(&hundred).json(), json!({"items": [], "next": null, "prev": null}));

    put(&server, &format!("/v1/users/@ada/pins/{three}"));
    for (viewer, seen) in [("", 1), ("?viewer=@bob", 1), ("?viewer=@cyd", 0)] {
        let pins = server.get(&format!("/v1/users/@ada/pins{viewer}")).json();
        assert_eq!(ids(&pins).len(), seen, "{viewer}");
    }
    // A former follower no longer sees the post, and a block hides the user who favourited it.
    put(&server, &format!("/v1/users/@bob/bookmarks/{three}"));
    put(&server, &format!("/v1/users/@bob/favourites/{one}"));
    put(&server, &format!("/v1/users/@cyd/favourites/{one}"));
    delete(&server, "/v1/users/@bob/following/@ada");
    assert!(ids(&server.get("/v1/users/@bob/bookmarks").json()).is_empty());
    put(&server, "/v1/users/@bob/blocks/@cyd");
    let by = format!("/v1/posts/{one}/favourites");
    assert_eq!(ids(&server.get(&format!("{by}?viewer=@bob")).json()), ["1"]);
    assert_eq!(ids(&server.get(&by).json()), ["1", "2"]);
}

#[test]
fn a_boost_is_a_post_with_the_boosted_one_in_it() {
    let (server, [one, two, _]) = prepared();
    server.register(&["dan"]);
    server.follow("dan", "bob");
    put(&server, &format!("/v1/users/@bob/boosts/{one}"));
    put(&server, &format!("/v1/users/@bob/boosts/{one}"));
    let home = "/v1/users/@dan/timeline";
    let boost = server.get(home).json()["items"][0].clone();
    let id = boost["id"].as_str().unwrap().to_owned();
    assert_eq!((&boost["author"]["handle"], &boost["text"]), (&json!("bob"), &json!("")));
    let original = server.get(&format!("/v1/posts/{one}")).json();
    assert_eq!(boost["boost_of"], original);
    assert_eq!(original["boost_of"], json!(null));
    // The post is the same when read from memory, on the profile, alone, and for a viewer.
    for path in [home, "/v1/users/@bob/posts", "/v1/users/@bob/posts?viewer=@dan"] {
        assert_eq!(server.get(path).json()["items"], json!([boost]), "{path}");
    }
    for path in [format!("/v1/posts/{id}"), format!("/v1/posts/{id}?viewer=@dan")] {
        assert_eq!(server.get(&path).json(), boost, "{path}");
    }
    assert_eq!(ids(&server.get(&format!("/v1/posts/{one}/boosts")).json()), ["1"]);
    let counts = server.get(&format!("/v1/users/@bob/reactions?posts={one}")).json();
    assert_eq!(counts["items"][0]["boost_count"], 1);
    assert_eq!(counts["items"][0]["boosted"], true);
    let notice = server.get("/v1/users/@ada/notifications").json()["items"][0].clone();
    assert_eq!((&notice["kind"], &notice["post"]["id"]), (&json!("boost"), &json!(one)));
    // A boost shows the current text and name.
    let edit = json!({"text": "one more"});
    server.with_json("PATCH", &server.own(&one), &[], &edit);
    assert_eq!(server.get(home).json()["items"][0]["boost_of"]["text"], "one more");
    server.with_json("PATCH", "/v1/users/@ada", &[], &json!({"name": "Ada L."}));
    assert_eq!(server.get(home).json()["items"][0]["boost_of"]["author"]["name"], "Ada L.");
    server.with_json("PATCH", "/v1/users/@bob", &[], &json!({"name": "Bob B."}));
    assert_eq!(server.get(home).json()["items"][0]["author"]["name"], "Bob B.");

    // A mute hides the boost at home, a block everywhere.
    let mute = server.with_json("PUT", "/v1/users/@dan/mutes/@ada", &[], &json!({}));
    assert_eq!(mute.status, 204);
    assert!(ids(&server.get(home).json()).is_empty());
    assert_eq!(ids(&server.get("/v1/users/@bob/posts?viewer=@dan").json()), [&id]);
    delete(&server, "/v1/users/@dan/mutes/@ada");
    put(&server, "/v1/users/@ada/blocks/@dan");
    assert!(ids(&server.get(home).json()).is_empty());
    assert!(ids(&server.get("/v1/users/@bob/posts?viewer=@dan").json()).is_empty());
    let gone = server.get(&format!("/v1/posts/{id}?viewer=@dan"));
    gone.assert_error(404, "post_not_found", "blocked");
    delete(&server, "/v1/users/@ada/blocks/@dan");
    assert_eq!(ids(&server.get(home).json()), [&id]);

    delete(&server, &format!("/v1/users/@bob/boosts/{one}"));
    delete(&server, &format!("/v1/users/@bob/boosts/{one}"));
    assert!(ids(&server.get(home).json()).is_empty());
    put(&server, &format!("/v1/users/@bob/boosts/{two}"));
    assert_eq!(ids(&server.get(home).json()).len(), 1);
    // The boost is deleted with the boosted post.
    delete(&server, &server.own(&two));
    assert!(ids(&server.get(home).json()).is_empty());
    assert!(ids(&server.get("/v1/users/@bob/posts").json()).is_empty());
}

#[test]
fn notifications_are_listed_dismissed_and_cleared() {
    let (server, [one, ..]) = prepared();
    let mention = server.publish("cyd", "hi @ada");
    put(&server, &format!("/v1/users/@bob/favourites/{one}"));
    let path = "/v1/users/@ada/notifications";
    let found = server.get(path).json()["items"].clone();
    let shown = |item: &Value| {
        let post = item["post"]["id"].as_str().map(str::to_owned);
        (item["kind"].clone(), item["user"]["handle"].clone(), post)
    };
    let shown: Vec<_> = found.as_array().unwrap().iter().map(shown).collect();
    let expect = [
        (json!("favourite"), json!("bob"), Some(one)),
        (json!("mention"), json!("cyd"), Some(mention.clone())),
        (json!("follow"), json!("bob"), None),
    ];
    assert_eq!(shown, expect);
    assert_eq!(found[1]["post"], server.get(&format!("/v1/posts/{mention}")).json());
    assert_eq!(found[1]["created_at"], found[1]["post"]["created_at"]);
    assert_eq!(found[2]["post"], Value::Null);

    let first = server.get(&format!("{path}?limit=1")).json();
    assert_eq!(ids(&first), [found[0]["id"].as_str().unwrap()]);
    assert_eq!(ids(&server.page(&format!("{path}?limit=1"), &first["next"])), [&mention]);

    let locked = json!({"locked": true});
    assert_eq!(server.with_json("PATCH", "/v1/users/@cyd", &[], &locked).status, 200);
    server.follow("bob", "cyd");
    let asked = server.get("/v1/users/@cyd/notifications").json()["items"][0].clone();
    assert_eq!(
        (&asked["kind"], &asked["user"]["handle"]),
        (&json!("follow_request"), &json!("bob"))
    );

    delete(&server, &format!("{path}/{mention}"));
    let again = server.send("DELETE", &format!("{path}/{mention}"), &[], b"");
    again.assert_error(404, "notification_not_found", "dismissed");
    assert_eq!(server.get(path).json()["items"].as_array().unwrap().len(), 2);
    delete(&server, path);
    assert_eq!(server.get(path).json()["items"], json!([]));
    assert_eq!(ids(&server.get("/v1/users/@ada/mentions").json()), [&mention]);
}
