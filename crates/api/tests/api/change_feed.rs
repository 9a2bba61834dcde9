//! `/v1/changes`

use std::io::{Read as _, Write as _};

use api::webhooks::ChangeReader;
use edge::{Access, BlockingReads, KeyHash, KeySet, Scope, Scopes};
use node::changes::BYTES_MIN;
use serde_json::{Value, json};
use webhooks::{Gap, ReadError, Source as _, Wanted};

use crate::client::{KEY, TestServer};

fn prepared() -> TestServer {
    let server = TestServer::start(Access::Open, |options, _| options.changes_max = BYTES_MIN);
    server.register(&["ada", "bob", "cyd"]);
    server
}

/// Changes of a page and its `next`.
fn page(server: &TestServer, query: &str) -> (Vec<Value>, String) {
    let answer = server.get(&format!("/v1/changes?{query}"));
    assert_eq!(answer.status, 200, "{query}: {answer:?}");
    let body = answer.json();
    assert_eq!(body["prev"], Value::Null);
    (body["items"].as_array().unwrap().clone(), body["next"].as_str().unwrap().to_owned())
}

fn end(server: &TestServer) -> String {
    let (items, next) = page(server, "after=end");
    assert_eq!(items, [] as [Value; 0]);
    next
}

/// The only change after a position.
fn only(server: &TestServer, after: &str) -> Value {
    let (mut items, _) = page(server, &format!("after={after}"));
    assert_eq!(items.len(), 1, "{items:?}");
    items.remove(0)
}

fn positions(changes: &[Value]) -> Vec<&str> {
    changes.iter().map(|change| change["position"].as_str().unwrap()).collect()
}

#[test]
fn a_change_has_what_it_is_about_as_it_is_now_and_nothing_of_what_is_deleted() {
    let server = prepared();
    let before = end(&server);
    let text = json!({"text": "for @bob only", "visibility": "direct"});
    let post = server.post("/v1/users/@ada/posts", &text).json();
    let change = only(&server, &before);
    assert_eq!(change["kind"], "post_published");
    assert_eq!((&change["user_id"], &change["post_id"]), (&json!("0"), &post["id"]));
    assert_eq!(change["post"], post);
    assert_eq!(change["version"], 1);
    for absent in ["other_id", "story_id", "user", "story"] {
        assert_eq!(change[absent], Value::Null, "{absent}");
    }
    // Every change of a post has the newest text.
    let own = server.own(post["id"].as_str().unwrap());
    server.with_json("PATCH", &own, &[], &json!({"text": "new for @bob"}));
    let (changes, _) = page(&server, &format!("after={before}"));
    let texts: Vec<_> = changes.iter().map(|change| change["post"]["text"].clone()).collect();
    assert_eq!(texts, ["new for @bob", "new for @bob"]);
    server.send("DELETE", &own, &[], b"");
    let (changes, _) = page(&server, &format!("after={before}"));
    let kinds: Vec<_> = changes.iter().map(|change| change["kind"].clone()).collect();
    assert_eq!(kinds, ["post_published", "post_edited", "post_deleted"]);
    assert!(changes.iter().all(|change| change["post"].is_null()));

    let before = end(&server);
    server.with_json("PATCH", "/v1/users/@cyd", &[], &json!({"bio": "secret"}));
    server.follow("cyd", "bob");
    let story = server.post_story("cyd", "secret", 60);
    let (changes, _) = page(&server, &format!("after={before}"));
    assert_eq!(changes[0]["user"], server.get("/v1/users/@cyd").json());
    assert_eq!((&changes[1]["kind"], &changes[1]["other_id"]), (&json!("followed"), &json!("1")));
    assert_eq!(changes[2]["story"], server.get(&format!("/v1/stories/{story}")).json());
    assert_eq!(server.send("DELETE", "/v1/users/@cyd", &[], b"").status, 204);
    let answer = server.get(&format!("/v1/changes?after={before}")).text();
    assert!(answer.contains("user_deleted") && !answer.contains("secret"), "{answer}");
}

#[test]
fn pages_and_streams_continue_anywhere_without_gaps_and_doubles() {
    let server = prepared();
    let lines = (0..7).map(|n| format!("{{\"op\":\"post\",\"user\":\"@ada\",\"text\":\"{n}\"}}\n"));
    server.batch(&lines.collect::<String>());
    let (all, last) = page(&server, "limit=100");
    assert_eq!((all.len(), last), (10, end(&server)));
    let all = positions(&all);
    for limit in [1, 3, 10] {
        for (at, position) in all.iter().enumerate() {
            let (mut found, mut after) = (Vec::new(), (*position).to_owned());
            loop {
                let (items, next) = page(&server, &format!("after={after}&limit={limit}"));
                if items.is_empty() {
                    break;
                }
                found.extend(positions(&items).iter().map(|position| (*position).to_owned()));
                after = next;
            }
            assert_eq!(found, all[at + 1..], "{position} {limit}");
        }
    }
    for (at, position) in all.iter().enumerate() {
        let query = format!("/v1/changes/events?after={position}");
        for mut events in [
            server.events("/v1/changes/events", Some(position)),
            server.events(&query, None),
            server.events("/v1/changes/events?after=0", Some(position)),
        ] {
            assert_eq!(events.last_id, *position);
            for expect in &all[at + 1..] {
                let event = events.next_event().unwrap();
                assert_eq!((event.kind.as_str(), event.id.as_str()), ("change", *expect));
            }
        }
    }
    let mut events = server.events("/v1/changes/events", None);
    let before = end(&server);
    server.publish("bob", "new");
    let next = events.next_event().unwrap();
    assert_eq!(next.id, only(&server, &before)["position"].as_str().unwrap());
}

#[test]
fn a_request_waits_for_a_change_and_for_no_longer_than_it_says() {
    let server = prepared();
    let before = end(&server);
    let query = format!("after={before}&wait_s=30");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| page(&server, &query));
        server.publish("ada", "hello");
        assert_eq!(positions(&waiting.join().unwrap().0).len(), 1);
    });
    let after = end(&server);
    assert_eq!(page(&server, &format!("after={after}&wait_s=1")), (Vec::new(), after));
}

#[test]
fn a_limited_number_of_readers_waits_and_others_read_on() {
    let server = prepared();
    let mut streams: Vec<_> = (0..32).map(|_| server.events("/v1/changes/events", None)).collect();
    server.get("/v1/changes/events").assert_error(429, "too_many_requests", "stream");
    server.get("/v1/changes?wait_s=1").assert_error(429, "too_many_requests", "wait");
    assert_eq!(page(&server, "limit=1").0.len(), 1);
    server.publish("ada", "hello");
    for stream in &mut streams {
        assert_eq!(stream.next_event().unwrap().kind, "change");
    }
}

#[test]
fn positions_that_are_not_kept_or_not_valid_are_refused() {
    let server = prepared();
    for (query, status, code) in [
        ("after=", 422, "bad_position"),
        ("after=x", 422, "bad_position"),
        ("after=1-", 422, "bad_position"),
        ("after=-1", 422, "bad_position"),
        ("after=01", 422, "bad_position"),
        ("after=1-2-3", 422, "bad_position"),
        ("after=1-4294967296", 422, "bad_position"),
        ("after=9223372036854775808", 422, "bad_position"),
        ("after=9223372036854775807", 410, "changes_gone"),
        ("after=9223372036854775807-4294967295", 410, "changes_gone"),
        ("wait_s=31", 422, "bad_wait"),
        ("limit=101", 422, "bad_limit"),
        ("cursor=1", 400, "bad_request"),
    ] {
        server.get(&format!("/v1/changes?{query}")).assert_error(status, code, query);
        if query.starts_with("after") {
            let path = format!("/v1/changes/events?{query}");
            server.get(&path).assert_error(status, code, &path);
        }
    }
    let off = TestServer::open();
    for path in ["/v1/changes", "/v1/changes?after=end", "/v1/changes/events"] {
        off.get(path).assert_error(404, "changes_off", path);
    }
}

#[test]
fn reading_needs_an_admin_and_content_also_needs_the_scope_to_read() {
    let key = |name: &str, scopes: &[Scope]| {
        KeyHash::new(name.as_bytes(), scopes.iter().copied().collect())
    };
    let keys = KeySet::new(vec![
        key("app", &[Scope::Read, Scope::Write]),
        key("admin", &[Scope::Admin]),
        KeyHash::new(KEY.as_bytes(), Scopes::ALL),
    ]);
    let access = Access::Keys(std::sync::Arc::clone(&keys));
    let server = TestServer::start(access, |options, _| options.changes_max = BYTES_MIN);
    let send = |key: &str, method: &str, path: &str, body: &[u8]| {
        let key = format!("Bearer {key}");
        let headers = [("Authorization", key.as_str()), ("Content-Type", "application/json")];
        server.send(method, path, &headers, body)
    };
    assert_eq!(send("app", "POST", "/v1/users", br#"{"handle":"ada"}"#).status, 201);
    for path in ["/v1/changes", "/v1/changes/events"] {
        send("app", "GET", path, b"").assert_error(403, "missing_scope", path);
        send("none", "GET", path, b"").assert_error(401, "unauthorized", path);
    }
    let user = |key| send(key, "GET", "/v1/changes", b"").json()["items"][0]["user"].clone();
    assert_eq!((&user(KEY)["handle"], user("admin")), (&json!("ada"), Value::Null));

    // A stream and a waiting request end with their key.
    let begin = |path: &str| {
        let mut stream = server.connect();
        let head = "HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer";
        stream.write_all(format!("GET {path} {head} admin\r\n\r\n").as_bytes()).unwrap();
        stream
    };
    let mut events = begin("/v1/changes/events");
    let mut read = Vec::new();
    while !read.ends_with(b": connected\n") {
        let mut byte = [0];
        events.read_exact(&mut byte).unwrap();
        read.push(byte[0]);
    }
    let mut waiting = begin("/v1/changes?after=end&wait_s=30");
    keys.replace(&[key("app", &[Scope::Read, Scope::Write])]);
    let posted = send("app", "POST", "/v1/users/@ada/posts", br#"{"text":"secret"}"#);
    assert_eq!(posted.status, 201);
    for stream in [&mut events, &mut waiting] {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert!(!String::from_utf8_lossy(&rest).contains("post_published"));
    }
}

#[test]
fn a_page_for_webhooks_ends_at_its_limits_and_has_the_wanted_kinds() {
    let server = prepared();
    let (text, count) = ("x".repeat(400), 150);
    for _ in 0..count {
        server.publish("ada", &text);
    }
    server.follow("ada", "bob");
    let (all, _) = page(&server, "limit=100");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let reader = ChangeReader::new(server.node.clone(), BlockingReads::new(1));
    let read = |after: Option<&str>, wanted: &Wanted| runtime.block_on(reader.read(after, wanted));
    let wanted = |changes_max, bytes, kinds: &[&str], ids_only| {
        let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        Wanted { changes_max, bytes, kinds, ids_only }
    };
    for (changes_max, bytes, expect) in [(100, usize::MAX, 100), (7, usize::MAX, 7), (100, 1, 1)] {
        let found = read(None, &wanted(changes_max, bytes, &[], false)).unwrap();
        let json = found.changes.iter().map(|change| serde_json::from_slice(&change.json).unwrap());
        assert_eq!(json.collect::<Vec<Value>>(), all[..expect], "{changes_max} {bytes}");
        assert_eq!(found.next, found.changes[expect - 1].position);
    }
    // The page that reaches the size is full.
    let found = read(None, &wanted(100, 4_000, &["post_published"], false)).unwrap();
    let bytes: Vec<_> = found.changes.iter().map(|change| change.json.len()).collect();
    assert!(bytes.iter().sum::<usize>() >= 4_000);
    assert!(bytes[1..].iter().sum::<usize>() < 4_000, "{bytes:?}");

    // Pages of other kinds are empty, and lead to the next change.
    let (mut after, mut pages) = ("0".to_owned(), 0);
    let only = loop {
        let found = read(Some(&after), &wanted(100, 1, &["followed"], true)).unwrap();
        (after, pages) = (found.next, pages + 1);
        if let Some(change) = found.changes.into_iter().next() {
            break change;
        }
    };
    assert!(pages > 1, "{pages}");
    assert_eq!(reader.end().split('-').next(), only.position.split('-').next());
    let again = read(Some(&reader.before(&only.position)), &wanted(1, 1, &[], false)).unwrap();
    assert_eq!((again.changes.len(), &again.changes[0].position), (1, &only.position));
    let profiles = wanted(1, 1, &["user_registered"], true);
    let profile: Value =
        serde_json::from_slice(&read(None, &profiles).unwrap().changes[0].json).unwrap();
    assert_eq!((&profile["user_id"], &profile["user"]), (&json!("0"), &Value::Null));

    let wanted = wanted(1, 1, &[], true);
    assert!(matches!(read(Some("999999"), &wanted), Err(ReadError::Gone)));
    assert!(matches!(runtime.block_on(reader.gap(Some("999999"))), Ok(Gap::Foreign)));
    for (position, other) in [("2", "1"), ("10", "9"), ("2-0", "1"), ("2", "2-7"), ("2-1", "2-0")] {
        assert!(reader.is_after(position, other), "{position} {other}");
        assert!(!reader.is_after(other, position) && !reader.is_after(other, other));
    }
    assert!(matches!(read(Some("no"), &wanted), Err(ReadError::Unavailable(_))));
}
