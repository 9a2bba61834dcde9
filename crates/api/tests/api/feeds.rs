//! `/v1/users/{user}/feeds/{name}`

use serde_json::{Value, json};

use crate::client::TestServer;

/// Texts of the posts with the kinds of their reasons. Groups are found in the background, at any time.
fn shown(page: &Value) -> Vec<(String, String)> {
    let kinds = |item: &Value| {
        let reasons = item["reasons"].as_array().unwrap().iter();
        let kinds = reasons.map(|reason| reason["kind"].as_str().unwrap());
        kinds.filter(|kind| *kind != "group").collect::<Vec<_>>().join(" ")
    };
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| (item["post"]["text"].as_str().unwrap().to_owned(), kinds(item))).collect()
}

fn put(server: &TestServer, path: &str) {
    assert_eq!(server.send("PUT", path, &[], b"").status, 204, "{path}");
}

/// Ada follows Bob and Cyd, writes about gardens in German, blocks Eve and mutes Fay.
fn world() -> TestServer {
    let server = TestServer::open();
    server.register(&["ada", "bob", "cyd", "dan", "eve", "fay", "gus"]);
    server.follow("ada", "bob");
    server.follow("ada", "cyd");
    put(&server, "/v1/users/@ada/blocks/@eve");
    put(&server, "/v1/users/@ada/mutes/@fay");
    server
}

fn publish(server: &TestServer, user: &str, post: &Value) -> String {
    let answer = server.post(&format!("/v1/users/@{user}/posts"), post);
    assert_eq!(answer.status, 201);
    answer.json()["id"].as_str().unwrap().to_owned()
}

fn has(shown: &[(String, String)], text: &str) -> bool {
    shown.iter().any(|(other, _)| other == text)
}

#[test]
fn for_you_shows_what_the_user_may_like_with_the_reasons_and_nothing_hidden() {
    let server = world();
    publish(&server, "ada", &json!({"text": "My #garden", "language": "de"}));
    let private = |text| json!({"text": text, "visibility": "followers"});
    publish(&server, "bob", &json!({"text": "by Bob"}));
    publish(&server, "bob", &private("by Bob, for followers"));
    publish(&server, "bob", &json!({"text": "@ada between us", "visibility": "direct"}));
    publish(&server, "gus", &private("by Gus, for followers"));
    publish(&server, "gus", &json!({"text": "by Gus, unlisted", "visibility": "unlisted"}));
    let liked = publish(&server, "dan", &json!({"text": "by Dan, liked"}));
    let sensitive =
        publish(&server, "dan", &json!({"text": "by Dan, sensitive", "sensitive": true}));
    let warned = publish(&server, "dan", &json!({"text": "by Dan", "warning": "spiders"}));
    let blocked = publish(&server, "eve", &json!({"text": "by Eve"}));
    let muted = publish(&server, "fay", &json!({"text": "by Fay"}));
    let boosted = publish(&server, "gus", &json!({"text": "by Gus, boosted"}));
    publish(&server, "gus", &json!({"text": "a #garden in English", "language": "en"}));
    for post in [&liked, &sensitive, &warned, &blocked, &muted] {
        for user in ["bob", "cyd"] {
            put(&server, &format!("/v1/users/@{user}/favourites/{post}"));
        }
    }
    put(&server, &format!("/v1/users/@bob/boosts/{boosted}"));

    let path = "/v1/users/@ada/feeds/for-you";
    let page = server.get(path).json();
    let mut found = shown(&page);
    found.sort();
    let expect = [
        ("a #garden in English", "hashtag popular new_author"),
        ("by Bob", "followed popular new_author"),
        ("by Bob, for followers", "followed"),
        ("by Dan, liked", "liked_by_followed popular"),
        ("by Gus, boosted", "at_home liked_by_followed popular"),
    ];
    assert_eq!(found, expect.map(|(text, kinds)| (text.to_owned(), kinds.to_owned())));
    let items = page["items"].as_array().unwrap();
    let of = |text: &str| items.iter().find(|item| item["post"]["text"] == text).unwrap();
    let names = json!([
        {"id": "1", "handle": "bob", "name": ""},
        {"id": "2", "handle": "cyd", "name": ""},
    ]);
    let reason = &of("by Dan, liked")["reasons"][0];
    assert_eq!((&reason["users"], &reason["others"]), (&names, &json!(0)));
    assert_eq!(of("a #garden in English")["reasons"][0]["tag"], "garden");

    // The view follows changes in both directions after its start.
    let again = publish(&server, "dan", &json!({"text": "liked later"}));
    put(&server, &format!("/v1/users/@cyd/favourites/{again}"));
    let found = shown(&server.get(path).json());
    let later = ("liked later".to_owned(), "liked_by_followed popular new_author".to_owned());
    assert!(found.contains(&later), "{found:?}");
    server.send("DELETE", &format!("/v1/users/@dan/posts/{again}"), &[], b"");
    assert!(!has(&shown(&server.get(path).json()), "liked later"));
    put(&server, "/v1/users/@dan/blocks/@ada");
    assert!(!has(&shown(&server.get(path).json()), "by Dan, liked"));
}

#[test]
fn pages_of_a_ranking_repeat_nothing_and_a_new_one_is_made_without_a_cursor() {
    let server = world();
    for n in 0..7 {
        publish(&server, "bob", &json!({"text": format!("post {n}")}));
    }
    let path = "/v1/users/@ada/feeds/following";
    let newest_first: Vec<_> = (0..7).rev().map(|n| format!("post {n}")).collect();
    let texts = |page: &Value| shown(page).into_iter().map(|(text, _)| text).collect::<Vec<_>>();
    assert_eq!(texts(&server.get(path).json()), newest_first);
    let limited = format!("{path}?limit=3");
    let mut page = server.get(&limited).json();
    // Posts of this time are in the next ranking.
    publish(&server, "bob", &json!({"text": "new"}));
    let mut found = texts(&page);
    while let Some(next) = page["next"].as_str() {
        page = server.get(&format!("{limited}&cursor={next}")).json();
        found.extend(texts(&page));
    }
    assert_eq!(found, newest_first);
    assert_eq!(texts(&server.get(&limited).json())[0], "new");

    for (query, status, code) in [
        ("cursor=1", 422, "bad_cursor"),
        ("cursor=1-x", 422, "bad_cursor"),
        ("cursor=999-0", 410, "ranking_expired"),
        ("explain=2", 400, "bad_request"),
        ("limit=101", 422, "bad_limit"),
    ] {
        server.get(&format!("{path}?{query}")).assert_error(status, code, query);
    }
    let other = server.get(&limited).json()["next"].as_str().unwrap().to_owned();
    let stolen = format!("/v1/users/@bob/feeds/following?cursor={other}");
    server.get(&stolen).assert_error(410, "ranking_expired", "the ranking of another user");
    server.get("/v1/users/@ada/feeds/none").assert_error(404, "feed_not_found", "");
    server.get("/v1/users/@zoe/feeds/popular").assert_error(404, "user_not_found", "");
}

#[test]
fn a_reload_begins_with_posts_that_were_not_shown() {
    let server = world();
    for n in 0..4 {
        publish(&server, "gus", &json!({"text": format!("post {n}")}));
        publish(&server, "dan", &json!({"text": format!("other {n}")}));
    }
    let path = "/v1/users/@ada/feeds/for-you?limit=2";
    let texts = || shown(&server.get(path).json()).into_iter().map(|(text, _)| text);
    let first: Vec<_> = texts().collect();
    let second: Vec<_> = texts().collect();
    assert!(first.len() == 2 && second.len() == 2);
    assert!(first.iter().all(|text| !second.contains(text)), "{first:?} {second:?}");
}

#[test]
fn an_explained_ranking_has_the_features_and_the_score_that_follows_from_them() {
    let file = "[feeds.mine]\nsources = { following = 9, liked-by-followed = 9 }\n\
                score = \"10 * likes + liked_by_followed + followed\"\nnames_users = false";
    let feeds = api::Feeds::parse(file).unwrap();
    let server = TestServer::start(edge::Access::Open, |_, options| options.feeds = feeds);
    server.register(&["ada", "bob", "dan"]);
    server.follow("ada", "bob");
    publish(&server, "bob", &json!({"text": "by Bob"}));
    let post = publish(&server, "dan", &json!({"text": "by Dan"}));
    put(&server, &format!("/v1/users/@bob/favourites/{post}"));
    let path = "/v1/users/@ada/feeds/mine?explain=1";
    let page = server.get(path).json();
    let items = page["items"].as_array().unwrap();
    let scores: Vec<_> = items.iter().map(|item| (&item["post"]["text"], &item["score"])).collect();
    assert_eq!(scores, [(&json!("by Dan"), &json!(11.0)), (&json!("by Bob"), &json!(1.0))]);
    assert_eq!(items[0]["features"]["likes"], 1.0);
    assert_eq!(items[0]["features"]["liked_by_followed"], 1.0);
    let unnamed = json!({"kind": "liked_by_followed", "users": [], "others": 1});
    assert_eq!(items[0]["reasons"], json!([unnamed]));
    assert!(server.get("/v1/users/@ada/feeds/mine").json()["items"][0].get("features").is_none());
}

#[test]
fn a_user_who_writes_much_displaces_no_other_followed_user() {
    let server = world();
    publish(&server, "cyd", &json!({"text": "by Cyd"}));
    let boosted = publish(&server, "dan", &json!({"text": "by Dan"}));
    put(&server, &format!("/v1/users/@cyd/boosts/{boosted}"));
    for n in 0..130 {
        publish(&server, "bob", &json!({"text": format!("post {n}"), "visibility": "followers"}));
    }
    let found = shown(&server.get("/v1/users/@ada/feeds/for-you").json());
    for text in ["by Cyd", "by Dan"] {
        let found = found.iter().find(|(other, _)| other == text);
        let (_, reasons) = found.unwrap_or_else(|| panic!("{text}"));
        assert!(reasons.starts_with("followed") || reasons.starts_with("at_home"), "{reasons}");
    }
    assert_eq!(found.iter().filter(|(text, _)| text.starts_with("post")).count(), 2);
}
