//! `/v1/users/{user}/timeline`, `/posts` and `/mentions`

use serde_json::{Value, json};
use testkit::http::at;

use crate::client::TestServer;

fn texts(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|post| post["text"].as_str().unwrap().to_owned()).collect()
}

/// Follows the cursors with this name, `next` or `prev`, from the page at `path`.
fn read_by(server: &TestServer, cursor: &str, path: &str) -> (Vec<Vec<String>>, String) {
    let (mut pages, mut path) = (Vec::new(), path.to_owned());
    loop {
        let page = server.get(&path).json();
        pages.push(texts(&page));
        match page[cursor].as_str() {
            Some(cursor) => path = at(&path, cursor),
            None => return (pages, path),
        }
    }
}

#[test]
fn every_timeline_is_read_in_both_directions_by_its_cursors() {
    let server = TestServer::open();
    server.register(&["ada", "bob", "cyd"]);
    server.follow("ada", "bob");
    for n in 0..25 {
        server.publish("bob", &format!("post {n} for @cyd"));
    }
    let newest_first: Vec<String> = (0..25).rev().map(|n| format!("post {n} for @cyd")).collect();
    let pages: Vec<Vec<String>> = newest_first.chunks(10).map(<[String]>::to_vec).collect();
    for path in ["/v1/users/0/timeline", "/v1/users/@bob/posts", "/v1/users/@cyd/mentions"] {
        let (onwards, last) = read_by(&server, "next", &format!("{path}?limit=10"));
        assert_eq!(onwards, pages, "{path}");
        // The previous page is the adjacent one, not the first page.
        let (backwards, _) = read_by(&server, "prev", &last);
        let expect = [&newest_first[20..], &newest_first[10..20], &newest_first[..10]];
        assert_eq!(backwards, expect, "{path}");
        assert_eq!(server.texts(path), newest_first[..20], "{path}: 20 by default");
        // An id is the cursor of the page that begins with it.
        let two = format!("{path}?limit=2");
        let middle = server.get(path).json()["items"][12]["id"].clone();
        let page = server.page(&two, &middle);
        assert_eq!(texts(&page), newest_first[12..14], "{path}");
        assert_eq!(texts(&server.page(&two, &page["prev"])), newest_first[10..12], "{path}");
    }
}

#[test]
fn home_shows_replies_to_users_who_follow_both_and_own_posts_immediately() {
    let server = TestServer::open();
    server.register(&["ada", "bob", "cyd", "dan"]);
    server.follow("ada", "bob");
    server.follow("dan", "bob");
    server.follow("dan", "cyd");
    let question = server.publish("cyd", "a question");
    let reply = json!({"text": "@cyd a reply", "in_reply_to_id": question});
    assert_eq!(server.post("/v1/users/@bob/posts", &reply).status, 201);
    server.publish("bob", "@cyd is no reply");
    server.publish("bob", "about @cyd");
    server.publish("ada", "mine");
    for (user, expect) in [
        ("ada", vec!["mine", "about @cyd", "@cyd is no reply"]),
        ("bob", vec!["about @cyd", "@cyd is no reply", "@cyd a reply"]),
        ("cyd", vec!["a question"]),
        ("dan", vec!["about @cyd", "@cyd is no reply", "@cyd a reply", "a question"]),
    ] {
        assert_eq!(server.texts(&format!("/v1/users/@{user}/timeline")), expect, "{user}");
    }
    let mentions = ["about @cyd", "@cyd is no reply", "@cyd a reply"];
    assert_eq!(server.texts("/v1/users/@cyd/mentions"), mentions);
    server.send("DELETE", "/v1/users/@dan/following/@bob", &[], b"");
    assert_eq!(server.texts("/v1/users/@dan/timeline"), ["a question"]);
    let id = server.publish("bob", "gone soon");
    assert_eq!(server.texts("/v1/users/@ada/timeline").len(), 4);
    server.send("DELETE", &format!("/v1/users/@bob/posts/{id}"), &[], b"");
    assert_eq!(server.texts("/v1/users/@ada/timeline").len(), 3);
}

#[test]
fn timelines_of_unknown_users_are_not_found() {
    let server = TestServer::open();
    for noun in ["timeline", "posts", "mentions", "events", "stories", "timeline/stories"] {
        for user in ["7", "@nobody"] {
            let path = format!("/v1/users/{user}/{noun}");
            server.get(&path).assert_error(404, "user_not_found", &path);
        }
    }
}

#[test]
fn a_hashtag_timeline_has_public_posts_that_its_viewer_wants() {
    let server = TestServer::open();
    server.register(&["ada", "bob", "cyd"]);
    server.publish("ada", "#Caf\u{e9} one");
    server.publish("bob", "@ada #caf\u{e9} two");
    let hidden = serde_json::json!({"text": "#caf\u{e9}", "visibility": "unlisted"});
    assert_eq!(server.post("/v1/users/@ada/posts", &hidden).status, 201);
    let path = "/v1/users/@cyd/mutes/@bob";
    assert_eq!(server.with_json("PUT", path, &[], &serde_json::json!({})).status, 204);
    let path = "/v1/tags/CAF%C3%89/posts";
    for (query, expect) in [
        ("", ["@ada #caf\u{e9} two", "#Caf\u{e9} one"].as_slice()),
        ("?viewer=@ada&limit=1", &["@ada #caf\u{e9} two"]),
        ("?viewer=@cyd", &["#Caf\u{e9} one"]),
    ] {
        assert_eq!(texts(&server.get(&format!("{path}{query}")).json()), expect, "{query}");
    }
    let (pages, last) = read_by(&server, "next", &format!("{path}?limit=1"));
    assert_eq!(pages.concat().len(), 2);
    assert_eq!(read_by(&server, "prev", &last).0.concat().len(), 2);
    // A letter that forms one grapheme cluster with the character after it.
    let path = "/v1/tags/%E0%B5%8E\"/posts?cursor=5";
    server.get(path).assert_error(422, "bad_tag", path);
}
