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
fn feedback_changes_the_feeds_of_its_user_alone() {
    let server = world();
    for reader in ["cyd", "eve"] {
        server.follow(reader, "bob");
    }
    let spam = publish(&server, "gus", &json!({"text": "buy #crypto"}));
    let more = publish(&server, "gus", &json!({"text": "more #crypto"}));
    let other = publish(&server, "dan", &json!({"text": "also #Crypto"}));
    let boost = publish(&server, "fay", &json!({"text": "by Fay"}));
    put(&server, &format!("/v1/users/@bob/boosts/{boost}"));
    for post in [&spam, &more, &other] {
        put(&server, &format!("/v1/users/@bob/favourites/{post}"));
    }
    let path =
        |user: &str, explain: u8| format!("/v1/users/@{user}/feeds/for-you?explain={explain}");
    let sorted = |page: &Value| {
        let mut texts: Vec<_> = shown(page).into_iter().map(|(text, _)| text).collect();
        texts.sort();
        texts
    };
    let all = ["also #Crypto", "buy #crypto", "by Fay", "more #crypto"];
    let first = server.get(&format!("{}&limit=1", path("cyd", 0))).json();
    let rest = format!("{}&cursor={}", path("cyd", 0), first["next"].as_str().unwrap());
    let of_cyd = server.get(&path("cyd", 1)).json();
    assert_eq!(sorted(&of_cyd), all);

    for post in [&spam, &other] {
        put(&server, &format!("/v1/users/@cyd/less/{post}"));
    }
    server.send("DELETE", &format!("/v1/users/@cyd/less/{other}"), &[], b"");
    put(&server, "/v1/users/@cyd/not_interested/@dan");
    put(&server, "/v1/users/@cyd/not_interested/@fay");
    // Later pages of the ranking of before have neither the post nor the author. What Bob boosts is at home.
    let expect = ["by Fay", "more #crypto"];
    let rest = sorted(&server.get(&rest).json());
    assert!(
        !rest.is_empty() && rest.iter().all(|text| expect.contains(&text.as_str())),
        "{rest:?}"
    );
    let of_cyd = server.get(&path("cyd", 1)).json();
    assert_eq!(sorted(&of_cyd), expect);
    let less = |page: &Value, text: &str| {
        let items = page["items"].as_array().unwrap();
        let found = items.iter().find(|item| item["post"]["text"] == text).unwrap();
        (found["features"]["less"].clone(), found["score"].as_f64().unwrap())
    };
    assert_eq!(less(&of_cyd, "more #crypto").0, 2.0, "the author and the hashtag");
    assert_eq!(less(&of_cyd, "by Fay").0, 0.0);

    // Another user with the same follows sees everything, at the same scores as before.
    let of_eve = server.get(&path("eve", 1)).json();
    assert_eq!(sorted(&of_eve), all);
    for text in all {
        assert_eq!(less(&of_eve, text).0, 0.0, "{text}");
    }
    let popular =
        |user: &str| server.get(&format!("/v1/users/@{user}/feeds/popular?explain=1")).json();
    let [of_cyd, of_eve] = ["cyd", "eve"].map(|user| less(&popular(user), "more #crypto").1);
    assert!((3.0 * of_cyd / of_eve - 1.0).abs() < 0.01, "{of_cyd} {of_eve}");
}

#[test]
fn feedback_is_listed_and_undone_and_wrong_feedback_is_refused() {
    let server = world();
    server.follow("cyd", "bob");
    let spam = publish(&server, "gus", &json!({"text": "buy #crypto"}));
    let other = publish(&server, "dan", &json!({"text": "by Dan"}));
    for post in [&spam, &other] {
        put(&server, &format!("/v1/users/@bob/favourites/{post}"));
    }
    put(&server, &format!("/v1/users/@cyd/less/{spam}"));
    put(&server, "/v1/users/@cyd/not_interested/@dan");
    let path = "/v1/users/@cyd/feeds/for-you";
    assert_eq!(shown(&server.get(path).json()), []);
    let listed = |kind: &str| server.get(&format!("/v1/users/@cyd/{kind}")).json()["items"].clone();
    let handles: Vec<_> = listed("not_interested")
        .as_array()
        .unwrap()
        .iter()
        .map(|user| user["handle"].clone())
        .collect();
    assert_eq!(handles, ["dan"]);
    assert_eq!(
        (listed("less").as_array().unwrap().len(), &listed("less")[0]["id"]),
        (1, &json!(spam))
    );
    server.send("DELETE", "/v1/users/@cyd/not_interested/@dan", &[], b"");
    assert!(has(&shown(&server.get(path).json()), "by Dan"));
    server.send("DELETE", &format!("/v1/users/@gus/posts/{spam}"), &[], b"");
    assert_eq!(listed("less"), json!([]), "a deleted post");
    for (method, path, status, code) in [
        ("PUT", "/v1/users/@cyd/not_interested/@cyd", 422, "self_not_interested"),
        ("PUT", "/v1/users/@cyd/not_interested/@zoe", 404, "user_not_found"),
        ("PUT", "/v1/users/@cyd/less/7", 404, "post_not_found"),
    ] {
        server.send(method, path, &[], b"").assert_error(status, code, path);
    }
}

#[test]
fn reported_posts_count_as_seen_for_their_user_alone() {
    let server = world();
    let posts: Vec<_> =
        (0..3).map(|n| publish(&server, "bob", &json!({"text": format!("post {n}")}))).collect();
    server.follow("cyd", "bob");
    let report = |posts: Value| server.post("/v1/users/@ada/seen", &json!({"posts": posts}));
    assert_eq!(report(json!([posts[0], posts[1]])).status, 204);
    assert_eq!(report(json!([posts[1]])).status, 204);
    let seen = |user: &str| {
        let page = server.get(&format!("/v1/users/@{user}/feeds/following?explain=1")).json();
        let items = page["items"].as_array().unwrap().iter().rev();
        items.map(|item| item["features"]["seen"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(seen("ada"), [1.0, 2.0, 0.0]);
    // The page that was read is a ranking. It does not count in addition to a report.
    assert_eq!(seen("ada"), [1.0, 2.0, 1.0]);
    assert_eq!(seen("cyd"), [0.0, 0.0, 0.0]);
    let ids = |count: u64| json!((1..=count).map(|id| id.to_string()).collect::<Vec<_>>());
    assert_eq!(report(ids(100)).status, 204, "also ids of no posts");
    for wrong in [ids(101), json!([]), json!(["x"]), json!(["-1"])] {
        report(wrong.clone()).assert_error(400, "bad_request", &wrong.to_string());
    }
    report(json!([7])).assert_error(400, "bad_json", "a number");
    server.post("/v1/users/@zoe/seen", &json!({"posts": ["7"]})).assert_error(
        404,
        "user_not_found",
        "",
    );
}

#[test]
fn given_posts_are_ranked_as_the_feed_would_and_none_that_it_may_not_show() {
    let server = world();
    let private = |text| json!({"text": text, "visibility": "followers"});
    let bob = publish(&server, "bob", &private("by Bob, for followers"));
    let dan = [0, 1, 2].map(|n| publish(&server, "dan", &json!({"text": format!("by Dan {n}")})));
    for user in ["bob", "cyd", "gus"] {
        put(&server, &format!("/v1/users/@{user}/favourites/{}", dan[1]));
    }
    put(&server, &format!("/v1/users/@gus/favourites/{}", dan[2]));
    let boost = server.get("/v1/users/@bob/posts").json()["items"][0]["id"].clone();
    assert_eq!(boost, json!(bob));
    put(&server, &format!("/v1/users/@cyd/boosts/{}", dan[1]));
    let boost = server.get("/v1/users/@cyd/posts").json()["items"][0]["id"].clone();
    let hidden = [
        publish(&server, "ada", &json!({"text": "her own"})),
        publish(&server, "bob", &json!({"text": "@ada between us", "visibility": "direct"})),
        publish(&server, "gus", &private("by Gus, for followers")),
        publish(&server, "gus", &json!({"text": "by Gus, unlisted", "visibility": "unlisted"})),
        publish(&server, "gus", &json!({"text": "by Gus", "sensitive": true})),
        publish(&server, "gus", &json!({"text": "by Gus", "warning": "spiders"})),
        publish(&server, "eve", &json!({"text": "by a blocked user"})),
        publish(&server, "fay", &json!({"text": "by a muted user"})),
        publish(&server, "gus", &json!({"text": "less"})),
        publish(&server, "gus", &json!({"text": "deleted"})),
        "7".to_owned(),
    ];
    put(&server, &format!("/v1/users/@ada/less/{}", hidden[8]));
    server.send("DELETE", &format!("/v1/users/@gus/posts/{}", hidden[9]), &[], b"");
    let rank = |user: &str, feed: &str, posts: &Value| {
        server.post(&format!("/v1/users/@{user}/rank"), &json!({"feed": feed, "posts": posts}))
    };
    let mut all =
        [[bob.clone(), dan[0].clone(), dan[1].clone(), dan[2].clone()].as_slice(), &hidden]
            .concat();
    all.push(boost.as_str().unwrap().to_owned());
    let page = rank("ada", "popular", &json!(all)).json();
    let items = page["items"].as_array().unwrap();
    let ids: Vec<_> = items.iter().map(|item| item["id"].as_str().unwrap()).collect();
    // Two of an author. Nobody reacted to Bob's post.
    assert_eq!(ids, [&dan[1], &dan[2], &bob]);
    // All accounts are young, so three of the four reactions count.
    assert_eq!(
        (&items[0]["features"]["likes"], &items[0]["features"]["boosts"]),
        (&json!(2.0), &json!(1.0))
    );
    assert_eq!(items[2]["reasons"], json!([{"kind": "followed"}]));
    let score = |item: &Value| item["score"].as_f64().unwrap();
    assert!(score(&items[0]) > score(&items[1]) && score(&items[2]) == 0.0);
    let page = rank("ada", "for-you", &json!([dan[1]])).json();
    assert_eq!(page["items"][0]["reasons"][0]["kind"], "liked_by_followed");

    // Popular posts that may not be shown take no places: the feed has two of an author.
    for post in &hidden[4..6] {
        put(&server, &format!("/v1/users/@cyd/favourites/{post}"));
    }
    let plain = publish(&server, "gus", &json!({"text": "plain"}));
    let page = rank("ada", "popular", &json!([hidden[4], hidden[5], plain])).json();
    assert_eq!(page["items"].as_array().map(Vec::len), Some(1), "{page}");
    assert_eq!(page["items"][0]["id"], json!(plain));

    // A post that no source has stays too, with its counts.
    let no_source = json!({"sources": {"groups": 9}, "score": "likes"});
    assert_eq!(server.with_json("PUT", "/v1/feeds/groups", &[], &no_source).status, 204);
    let page = rank("eve", "groups", &json!([dan[2]])).json();
    let item = &page["items"][0];
    assert_eq!((&item["id"], &item["reasons"]), (&json!(dan[2]), &json!([])));
    assert_eq!((&item["score"], &item["features"]["likes"]), (&json!(1.0), &json!(1.0)));

    // A followed author stays, though the user is not interested. Others go.
    put(&server, "/v1/users/@ada/not_interested/@bob");
    put(&server, "/v1/users/@ada/not_interested/@dan");
    let page = rank("ada", "popular", &json!(all)).json();
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    assert_eq!(page["items"][0]["id"], json!(bob));

    let ids = |count: u64| json!((1..=count).map(|id| id.to_string()).collect::<Vec<_>>());
    assert_eq!(rank("ada", "popular", &ids(400)).json()["items"], json!([]));
    rank("ada", "popular", &ids(401)).assert_error(400, "bad_request", "too many");
    rank("ada", "none", &ids(1)).assert_error(404, "feed_not_found", "");
    rank("zoe", "popular", &ids(1)).assert_error(404, "user_not_found", "");
}

#[test]
fn a_stored_feed_replaces_a_built_in_one_until_it_is_deleted() {
    let file = "[feeds.fixed]\nsources = { popular = 9 }\nscore = \"1\"";
    let feeds = node::Feeds::parse(file).unwrap();
    let server = TestServer::start(edge::Access::Open, |options, _| options.feeds = feeds.into());
    server.register(&["ada", "bob", "cyd"]);
    publish(&server, "bob", &json!({"text": "post 0"}));
    let liked = publish(&server, "bob", &json!({"text": "post 1"}));
    put(&server, &format!("/v1/users/@cyd/favourites/{liked}"));
    let set =
        |name: &str, feed: &Value| server.with_json("PUT", &format!("/v1/feeds/{name}"), &[], feed);
    let delete = |name: &str| server.send("DELETE", &format!("/v1/feeds/{name}"), &[], b"").status;
    let texts = |name: &str| {
        let page = server.get(&format!("/v1/users/@ada/feeds/{name}")).json();
        shown(&page).into_iter().map(|(text, _)| text).collect::<Vec<_>>()
    };
    let unpopular = json!({"sources": {"popular": 10}, "score": "-likes", "names_users": false});
    assert_eq!(texts("popular"), ["post 1", "post 0"]);
    for name in ["popular", "mine"] {
        assert_eq!(set(name, &unpopular).status, 204, "{name}");
        assert_eq!(texts(name), ["post 0", "post 1"], "{name}");
    }
    let posts = json!({"feed": "mine", "posts": ["7"]});
    assert_eq!(server.post("/v1/users/@ada/rank", &posts).status, 200);

    let full = json!({"sources": {"popular": 10}, "score": "-likes", "per_author_max": 0,
                      "explore": 0.0, "names_users": false});
    let view = |name: &str, source: &str| {
        let found = server.get(&format!("/v1/feeds/{name}")).json();
        assert_eq!((&found["name"], &found["source"]), (&json!(name), &json!(source)));
        found["definition"].clone()
    };
    assert_eq!((view("popular", "stored"), view("mine", "stored")), (full.clone(), full));
    assert_eq!(view("fixed", "file")["score"], "1");
    let names = || {
        let page = server.get("/v1/feeds").json();
        let items = page["items"].as_array().unwrap().iter();
        items.map(|item| item["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(), ["explore", "fixed", "following", "for-you", "mine", "popular"]);

    let definition = |score: &str| json!({"sources": {"popular": 10}, "score": score});
    for (name, feed, status, code) in [
        ("fixed", unpopular.clone(), 409, "feed_in_file"),
        ("Fixed", unpopular.clone(), 422, "bad_feed_name"),
        ("x", definition("1 + lieks"), 422, "bad_feed"),
        ("x", json!({"sources": {}, "score": "1"}), 422, "bad_feed"),
        ("x", json!({"sources": {"friends": 5}, "score": "1"}), 422, "bad_feed"),
        ("x", definition(&format!("1{}", "\n".repeat(1_000))), 422, "feed_too_long"),
        ("x", json!({"score": "1"}), 422, "bad_feed"),
        ("x", json!({"sources": {"popular": 1}, "score": "1", "more": 1}), 422, "bad_feed"),
    ] {
        set(name, &feed).assert_error(status, code, &feed.to_string());
    }
    server.get("/v1/feeds/x").assert_error(404, "feed_not_found", "");
    for n in 0..30 {
        assert_eq!(set(&format!("f{n}"), &definition("1")).status, 204);
    }
    set("x", &definition("1")).assert_error(507, "too_many_feeds", "");
    assert_eq!((delete("popular"), delete("mine"), delete("none")), (204, 204, 204));
    assert_eq!(texts("popular"), ["post 1", "post 0"]);
    server.get("/v1/users/@ada/feeds/mine").assert_error(404, "feed_not_found", "");
}

#[test]
fn an_explained_ranking_has_the_features_and_the_score_that_follows_from_them() {
    let file = "[feeds.mine]\nsources = { following = 9, liked-by-followed = 9 }\n\
                score = \"10 * likes + liked_by_followed + followed\"\nnames_users = false";
    let feeds = node::Feeds::parse(file).unwrap();
    let server = TestServer::start(edge::Access::Open, |options, _| options.feeds = feeds.into());
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

    // A later page can be explained too.
    let first = server.get("/v1/users/@ada/feeds/mine?limit=1").json();
    let next = first["next"].as_str().unwrap();
    let page = server.get(&format!("{path}&limit=1&cursor={next}")).json();
    assert_eq!(page["items"][0]["score"], 1.0, "{page}");
}

#[test]
fn posts_leave_the_later_pages_when_the_user_unfollows_who_brought_them() {
    let server = world();
    let post = |user, text: &str, is_sensitive| {
        publish(&server, user, &json!({"text": text, "sensitive": is_sensitive}))
    };
    for (user, post) in [
        ("bob", post("dan", "boosted by Bob", false)),
        ("cyd", post("gus", "boosted by Cyd", true)),
    ] {
        put(&server, &format!("/v1/users/@{user}/boosts/{post}"));
    }
    post("bob", "by Bob", false);
    post("bob", "sensitive by Bob", true);
    post("cyd", "by Cyd", true);
    let path = "/v1/users/@ada/feeds/following";
    let first = server.get(&format!("{path}?limit=1")).json();
    assert_eq!(shown(&first), [("by Cyd".to_owned(), "followed".to_owned())]);
    server.send("DELETE", "/v1/users/@ada/following/@bob", &[], b"");
    let next = first["next"].as_str().unwrap();
    let rest = server.get(&format!("{path}?cursor={next}")).json();
    let reasons = "at_home liked_by_followed".to_owned();
    assert_eq!(shown(&rest), [("boosted by Cyd".to_owned(), reasons)]);
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
