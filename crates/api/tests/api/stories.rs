//! Stories: `/v1/users/{user}/stories`, `/v1/stories/{id}`, and their visibility to users.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use edge::Access;
use serde_json::{Value, json};

use crate::client::TestServer;

/// 2027-01-15T08:00:00Z.
const START_MS: u64 = 1_800_000_000_000;

/// Starts a server with a clock that the test sets.
fn at_start() -> (TestServer, Arc<AtomicU64>) {
    let now = Arc::new(AtomicU64::new(START_MS));
    let clock = Arc::clone(&now);
    let server = TestServer::start(Access::Open, |node, _| {
        node.clock = node::Clock::from_fn(move || clock.load(Ordering::SeqCst));
    });
    (server, now)
}

fn texts(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|story| story["text"].as_str().unwrap()).collect()
}

#[test]
fn a_story_is_returned_completely_and_exists_until_it_expires() {
    let (server, now) = at_start();
    server.register(&["ada", "bob"]);
    let posted = server.post("/v1/users/@ada/stories", &json!({"text": " hi @bob ", "ttl_s": 60}));
    assert_eq!(posted.status, 201);
    let story = posted.json();
    let path = format!("/v1/stories/{}", story["id"].as_str().unwrap());
    assert_eq!(
        story,
        json!({"id": story["id"], "author": {"id": "0", "handle": "ada", "name": ""},
            "text": "hi @bob", "created_at": "2027-01-15T08:00:00.000Z",
            "expires_at": "2027-01-15T08:01:00.000Z", "seen": null})
    );
    assert_eq!(posted.header("location"), Some(path.as_str()));
    now.store(START_MS + 59_999, Ordering::SeqCst);
    assert_eq!(server.get(&path).json(), story);
    assert_eq!(server.texts("/v1/users/@ada/stories"), ["hi @bob"]);
    now.store(START_MS + 60_000, Ordering::SeqCst);
    server.get(&path).assert_error(404, "story_not_found", "expired");
    let own = path.replace("/v1/", "/v1/users/@ada/");
    server.send("DELETE", &own, &[], b"").assert_error(404, "story_not_found", "expired");
    assert_eq!(server.texts("/v1/users/@ada/stories"), [""; 0]);
    now.store(START_MS, Ordering::SeqCst);
    server.get(&path).assert_error(404, "story_not_found", "a clock that was set back");
    assert_eq!(server.totals(), (2, 0, 0), "a story is no post");
}

#[test]
fn a_story_has_the_requested_or_the_default_lifetime() {
    let life = |server: &TestServer, body: Value| {
        server.register(&["ada"]);
        let story = server.post("/v1/users/@ada/stories", &body).json();
        let of = |time: &str| story[time].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        of("expires_at").as_millisecond() - of("created_at").as_millisecond()
    };
    for (body, expect_s) in [
        (json!({"text": "x"}), 86_400),
        (json!({"text": "x", "ttl_s": 1}), 1),
        (json!({"text": "x", "ttl_s": 604_800}), 604_800),
    ] {
        assert_eq!(life(&at_start().0, body), expect_s * 1_000);
    }
    let set = TestServer::start(Access::Open, |_, server| {
        server.story_life = feed::Lifetime::from_secs(300).unwrap();
    });
    assert_eq!(life(&set, json!({"text": "x"})), 300_000);
    let results = set.batch("{\"op\":\"post_story\",\"user\":0,\"text\":\"y\"}\n").lines();
    let path = format!("/v1/stories/{}", results[0]["id"].as_str().unwrap());
    let story = set.get(&path).json();
    let of = |time: &str| story[time].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let life = of("expires_at").as_millisecond() - of("created_at").as_millisecond();
    assert_eq!(life, 300_000, "in a batch too");
}

#[test]
fn stories_are_for_their_author_friends_and_the_application() {
    let (server, _) = at_start();
    server.register(&["ada", "bob", "cyd", "dan"]);
    server.befriend("ada", "bob");
    server.befriend("dan", "ada");
    server.follow("cyd", "ada");
    let story = format!("/v1/stories/{}", server.post_story("ada", "x", 60));
    server.send("DELETE", "/v1/users/@ada/friends/@dan", &[], b"");
    // The page and the story, whether it is visible, and the value of `seen`.
    let on_behalf_of = |user: &str| {
        let page = format!("/v1/users/@ada/stories?viewer={user}");
        (page, format!("{story}?viewer={user}"))
    };
    for (who, (page, path), shown, seen) in [
        ("the application", ("/v1/users/0/stories".into(), story.clone()), true, Value::Null),
        ("the author", on_behalf_of("@ada"), true, json!(true)),
        ("the author by number", on_behalf_of("0"), true, json!(true)),
        ("a friend", on_behalf_of("%40BOB"), true, json!(false)),
        ("a stranger who follows", on_behalf_of("@cyd"), false, Value::Null),
        ("a former friend", on_behalf_of("3"), false, Value::Null),
    ] {
        let (page, answer) = (server.get(&page).json(), server.get(&path));
        if shown {
            assert_eq!((answer.status, &answer.json()["seen"]), (200, &seen), "{who}");
            assert_eq!(page["items"], json!([answer.json()]), "{who}");
        } else {
            answer.assert_error(404, "story_not_found", who);
            assert_eq!(page, json!({"items": [], "next": null, "prev": null}), "{who}");
        }
    }
    for (user, expect) in [("ada", vec![]), ("bob", vec!["x"]), ("cyd", vec![]), ("dan", vec![])] {
        let home = format!("/v1/users/@{user}/timeline/stories");
        assert_eq!(server.texts(&home), expect, "{user}");
    }
    let own = story.replace("/v1/", "/v1/users/@ada/");
    let of_bob = story.replace("/v1/", "/v1/users/@bob/");
    server.send("DELETE", &of_bob, &[], b"").assert_error(404, "story_not_found", "of another");
    assert_eq!(server.send("DELETE", &own, &[], b"").status, 204);
    for path in [story.clone(), on_behalf_of("@ada").1, on_behalf_of("@bob").1] {
        let path = path.as_str();
        server.get(path).assert_error(404, "story_not_found", path);
    }
    assert_eq!(server.texts("/v1/users/@bob/timeline/stories"), [""; 0]);
    server.send("DELETE", &own, &[], b"").assert_error(404, "story_not_found", "again");
}

#[test]
fn a_repeated_key_creates_one_story_and_returns_the_same_response() {
    let (server, now) = at_start();
    server.register(&["ada"]);
    let send = |text: &str| {
        let (path, key) = ("/v1/users/@ada/stories", [("Idempotency-Key", "k")]);
        server.with_json("POST", path, &key, &json!({"text": text, "ttl_s": 60}))
    };
    let (first, again) = (send("x"), send("x"));
    assert_eq!((first.status, again.status, &first.body), (201, 201, &again.body));
    assert_eq!(first.header("idempotent-replayed"), None);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    send("y").assert_error(422, "idempotency_key_reused", "other content");
    assert_eq!(server.texts("/v1/users/@ada/stories"), ["x"]);
    now.store(START_MS + 60_000, Ordering::SeqCst);
    let again = send("x");
    let only_id = json!({"id": first.json()["id"]});
    assert_eq!((again.status, again.json()), (201, only_id), "it has expired meanwhile");
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
}

#[test]
fn pages_can_be_read_in_both_directions_while_stories_expire() {
    let (server, now) = at_start();
    server.register(&["ada", "bob", "cyd"]);
    server.befriend("ada", "bob");
    server.befriend("ada", "cyd");
    // Stories with even numbers are by bob and expire after a minute; those with odd numbers are by cyd and expire
    // after an hour.
    for n in 0..24 {
        let (author, ttl_s) = if n % 2 == 0 { ("bob", 60) } else { ("cyd", 3_600) };
        server.post_story(author, &n.to_string(), ttl_s);
    }
    let numbers =
        |ns: &mut dyn Iterator<Item = u32>| -> Vec<String> { ns.map(|n| n.to_string()).collect() };
    let home = "/v1/users/@ada/timeline/stories";
    let ten = format!("{home}?limit=10");
    let first = server.get(&ten).json();
    assert_eq!(texts(&first), numbers(&mut (14..24).rev()));
    assert_eq!(server.texts(home).len(), 20, "the default limit");
    assert_eq!(server.texts(&format!("{home}?limit=100")).len(), 24);
    // The story of the cursor expires too.
    let two = format!("{home}?limit=2");
    let cut = server.get(&two).json()["next"].clone();
    now.store(START_MS + 60_000, Ordering::SeqCst);
    for swept in [false, true] {
        if swept {
            server.node.do_due();
        }
        let second = server.page(&ten, &first["next"]);
        assert_eq!(texts(&second), numbers(&mut (0..14).rev().filter(|n| n % 2 == 1)));
        assert_eq!(second["next"], Value::Null);
        let back = server.page(&ten, &second["prev"]);
        assert_eq!(texts(&back), numbers(&mut (14..24).rev().filter(|n| n % 2 == 1)));
        assert_eq!(texts(&server.page(&two, &cut)), ["21", "19"], "swept: {swept}");
    }
    now.store(START_MS + 3_600_000, Ordering::SeqCst);
    let end = server.page(&ten, &first["next"]);
    assert_eq!((texts(&end), &end["next"]), (vec![], &Value::Null));
}

#[test]
fn pages_of_a_friend_can_be_read_in_both_directions() {
    let (server, _) = at_start();
    server.register(&["ada", "bob", "cyd"]);
    server.befriend("ada", "bob");
    for n in 0..5 {
        server.post_story("ada", &n.to_string(), 60);
    }
    for reader in ["@bob", "1"] {
        let path = format!("/v1/users/@ada/stories?limit=2&viewer={reader}");
        let mut page = server.get(&path).json();
        let (mut read, mut back) = (vec![], vec![]);
        let mut follow = |relation: &str, read: &mut Vec<String>| {
            loop {
                assert_eq!(page["items"][0]["seen"], false, "read as {reader}: {page}");
                read.extend(texts(&page).iter().map(|text| (*text).to_owned()));
                if page[relation].is_null() {
                    break;
                }
                page = server.page(&path, &page[relation]);
            }
        };
        follow("next", &mut read);
        follow("prev", &mut back);
        assert_eq!(read, ["4", "3", "2", "1", "0"]);
        assert_eq!(back, ["0", "2", "1", "4", "3"]);
    }
    let as_stranger = server.get("/v1/users/@ada/stories?limit=2&viewer=@cyd").json();
    assert_eq!((texts(&as_stranger), &as_stranger["next"]), (vec![], &Value::Null));
}

#[test]
fn views_count_once_per_friend_and_are_only_visible_to_the_author() {
    let (server, now) = at_start();
    server.register(&["ada", "bob", "cyd", "dan"]);
    server.befriend("ada", "bob");
    server.befriend("ada", "cyd");
    let id = server.post_story("ada", "x", 60);
    let views = |user: &str| format!("/v1/users/{user}/stories/{id}/views");
    let view =
        |user: &str| server.send("PUT", &format!("/v1/users/{user}/viewed_stories/{id}"), &[], b"");
    for (viewer, at_s, status) in
        [("@cyd", 5, 204), ("1", 7, 204), ("@cyd", 9, 204), ("@ada", 9, 204), ("@dan", 9, 404)]
    {
        now.store(START_MS + at_s * 1_000, Ordering::SeqCst);
        let answer = view(viewer);
        assert_eq!(answer.status, status, "{viewer}: {answer:?}");
    }
    let user = |id: &str, handle: &str, second: u32| {
        let time = format!("2027-01-15T08:00:0{second}.000Z");
        json!({"id": id, "handle": handle, "name": "", "seen_at": time})
    };
    let (bob, cyd) = (user("1", "bob", 7), user("2", "cyd", 5));
    let all = server.get(&views("@ada")).json();
    assert_eq!(all, json!({"items": [bob, cyd], "next": null, "prev": null}));
    let one = views("@ada") + "?limit=1";
    let page = server.get(&one).json();
    assert_eq!(page["items"], json!([bob]));
    let page = server.page(&one, &page["next"]);
    assert_eq!(page["items"], json!([cyd]));
    let page = server.page(&one, &page["prev"]);
    assert_eq!(page["items"], json!([bob]));
    for reader in ["@bob", "@dan"] {
        let answer = server.get(&views(reader));
        answer.assert_error(404, "story_not_found", reader);
    }
    for (reader, seen) in [("bob", json!([true])), ("cyd", json!([true]))] {
        let home = server.get(&format!("/v1/users/@{reader}/timeline/stories")).json();
        assert_eq!(json!([home["items"][0]["seen"]]), seen, "{reader}");
    }
    // Hidden users appear on no page, and do not shorten it.
    let block = "/v1/users/@ada/blocks/@bob";
    assert_eq!(server.send("PUT", block, &[], b"").status, 204);
    let page = server.get(&(views("@ada") + "?limit=1")).json();
    assert_eq!((&page["items"], &page["next"]), (&json!([cyd]), &json!(null)));
    assert_eq!(server.send("DELETE", block, &[], b"").status, 204);
    server.befriend("ada", "bob");
    now.store(START_MS + 60_000, Ordering::SeqCst);
    let late = view("@bob");
    late.assert_error(404, "story_not_found", "expired");
    server.get(&views("@ada")).assert_error(404, "story_not_found", "expired");
}

#[test]
fn an_idempotency_key_of_a_view_belongs_to_its_viewer() {
    let (server, _) = at_start();
    server.register(&["ada", "bob", "cyd"]);
    server.befriend("ada", "bob");
    server.befriend("ada", "cyd");
    let id = server.post_story("ada", "x", 60);
    let view = |viewer: &str| {
        let key = [("Idempotency-Key", "k")];
        server.send("PUT", &format!("/v1/users/{viewer}/viewed_stories/{id}"), &key, b"")
    };
    assert_eq!(view("@bob").header("idempotent-replayed"), None);
    assert_eq!(view("@bob").header("idempotent-replayed"), Some("true"));
    assert_eq!(view("1").header("idempotent-replayed"), Some("true"), "the same user");
    assert_eq!(view("@cyd").header("idempotent-replayed"), None, "another one");
}

#[test]
fn invalid_stories_are_refused() {
    let (server, _) = at_start();
    server.register(&["ada"]);
    let id = server.post_story("ada", "kept", 60);
    let headers = [("Content-Type", "application/json")];
    let long = format!("{{\"text\":\"{}\"}}", "x".repeat(501));
    for (body, status, code) in [
        ("", 400, "bad_json"),
        ("{}", 400, "bad_json"),
        ("{\"text\":\"x\",\"life\":5}", 400, "bad_json"),
        ("{\"text\":\"x\",\"ttl_s\":null}", 400, "bad_json"),
        ("{\"text\":\"x\",\"ttl_s\":\"5\"}", 400, "bad_json"),
        ("{\"text\":\"x\",\"ttl_s\":-5}", 400, "bad_json"),
        ("{\"text\":\"x\",\"ttl_s\":1.5}", 400, "bad_json"),
        ("{\"text\":\"x\",\"ttl_s\":0}", 422, "bad_ttl"),
        ("{\"text\":\"x\",\"ttl_s\":604801}", 422, "bad_ttl"),
        ("{\"text\":\"x\",\"ttl_s\":18446744073709551615}", 422, "bad_ttl"),
        ("{\"text\":\" \"}", 422, "bad_text"),
        (&long, 422, "bad_text"),
    ] {
        let answer = server.send("POST", "/v1/users/@ada/stories", &headers, body.as_bytes());
        answer.assert_error(status, code, body);
    }
    let unknown = server.send("POST", "/v1/users/1/stories", &headers, b"{\"text\":\"x\"}");
    unknown.assert_error(404, "user_not_found", "no such user");
    assert_eq!(server.texts("/v1/users/@ada/stories"), ["kept"]);
    let of_story = |rest: &str| format!("/v1/stories/{id}{rest}");
    for (method, path, status, code) in [
        ("GET", String::from("/v1/stories/x"), 400, "bad_request"),
        ("GET", String::from("/v1/stories/9223372036854775808"), 400, "bad_request"),
        ("GET", String::from("/v1/stories/7"), 404, "story_not_found"),
        ("DELETE", String::from("/v1/users/0/stories/7"), 404, "story_not_found"),
        ("GET", of_story("?as=0"), 400, "bad_request"),
        ("DELETE", format!("/v1/users/0/stories/{id}?as=0"), 400, "bad_request"),
        ("GET", format!("/v1/stories/{id}?viewer=ada"), 400, "bad_request"),
        ("GET", format!("/v1/stories/{id}?viewer=@a-b"), 422, "bad_handle"),
        ("GET", format!("/v1/stories/{id}?viewer=1"), 404, "user_not_found"),
        ("GET", "/v1/stories/x?viewer=0".into(), 400, "bad_request"),
        ("PUT", format!("/v1/users/1/viewed_stories/{id}"), 404, "user_not_found"),
        ("PUT", format!("/v1/users/0/viewed_stories/{id}?limit=1"), 400, "bad_request"),
        ("PUT", "/v1/users/0/viewed_stories/7".into(), 404, "story_not_found"),
        ("GET", format!("/v1/users/1/stories/{id}/views"), 404, "user_not_found"),
        ("GET", format!("/v1/users/0/stories/{id}/views?limit=101"), 422, "bad_limit"),
        ("GET", "/v1/users/0/stories/7/views?cursor=-0".into(), 404, "story_not_found"),
        ("GET", "/v1/users/0/stories?viewer=1".into(), 404, "user_not_found"),
        ("GET", "/v1/users/1/stories?viewer=0".into(), 404, "user_not_found"),
        ("GET", "/v1/users/0/stories?who=1".into(), 400, "bad_request"),
        ("GET", "/v1/users/0/stories?cursor=a".into(), 422, "bad_cursor"),
        ("GET", "/v1/users/0/timeline/stories?limit=101".into(), 422, "bad_limit"),
        ("GET", "/v1/users/0/timeline/stories?as=0".into(), 400, "bad_request"),
        ("GET", "/v1/users/0/followers?as=0".into(), 400, "bad_request"),
    ] {
        server.send(method, &path, &[], b"").assert_error(status, code, &path);
    }
}

#[test]
fn a_batch_creates_views_and_deletes_stories() {
    let (server, _) = at_start();
    server.register(&["ada", "bob"]);
    let results = server.batch(
        "{\"op\":\"befriend\",\"user\":0,\"other\":\"@bob\"}\n\
         {\"op\":\"post_story\",\"user\":\"@ada\",\"text\":\"one\",\"ttl_s\":5}\n\
         {\"op\":\"post_story\",\"user\":0,\"text\":\"two\"}\n\
         {\"op\":\"post_story\",\"user\":0,\"text\":\"x\",\"ttl_s\":0}\n\
         {\"op\":\"befriend\",\"user\":0,\"other\":0}\n",
    );
    let results = results.lines();
    assert_eq!((&results[3]["error"], &results[3]["line"]), (&json!("bad_ttl"), &json!(4)));
    assert_eq!(results[4]["error"], "self_friend");
    assert_eq!(server.texts("/v1/users/@bob/timeline/stories"), ["two", "one"]);
    let (one, two) = (results[1]["id"].as_str().unwrap(), results[2]["id"].as_str().unwrap());
    let results = server.batch(&format!(
        "{{\"op\":\"view_story\",\"id\":\"{two}\",\"user\":\"@bob\"}}\n\
         {{\"op\":\"delete_story\",\"id\":\"{one}\",\"user\":1}}\n\
         {{\"op\":\"delete_story\",\"id\":\"{one}\",\"user\":\"@ada\"}}\n\
         {{\"op\":\"delete_story\",\"id\":{one},\"user\":0}}\n\
         {{\"op\":\"unfriend\",\"user\":1,\"other\":0}}\n\
         {{\"op\":\"view_story\",\"id\":{two},\"user\":1}}\n"
    ));
    let results = results.lines();
    let errors: Vec<_> = results.iter().map(|r| r["error"].as_str().unwrap_or("-")).collect();
    assert_eq!(errors, ["-", "story_not_found", "-", "story_not_found", "-", "story_not_found"]);
    assert_eq!(results[0], json!({"ok": true}));
    let views = server.get(&format!("/v1/users/0/stories/{two}/views")).json();
    assert_eq!(views["items"][0]["handle"], "bob");
    assert_eq!(server.texts("/v1/users/@bob/timeline/stories"), [""; 0]);
}
