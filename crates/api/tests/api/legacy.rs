//! The URLs of the 2014 report.

use serde_json::json;

use crate::client::{KEY, TestServer};

#[test]
fn the_old_urls_post_and_read() {
    let server = TestServer::open();
    server.register(&["u0", "u1", "u2"]);
    server.follow("u1", "u2");
    let lengths: Vec<usize> = ["0/0/hello", "1/1/hello%20there", "2/0/hello%20there", "2/0/hi"]
        .iter()
        .map(|rest| {
            let answer = server.get(&format!("/tweet/2/{rest}"));
            assert_eq!(answer.status, 200, "{rest}: {answer:?}");
            answer.body.len()
        })
        .collect();
    assert!(lengths.iter().all(|length| *length == lengths[0]), "{lengths:?}");
    let newest_first = ["hi @u0", "hello @u0 there", "@u1 hello there", "hello"];
    assert_eq!(server.texts("/homepage/2"), newest_first);
    assert_eq!(server.texts("/homepage/1"), newest_first);
    assert_eq!(server.texts("/mentionsfeed/0"), ["hi @u0", "hello @u0 there"]);
    assert_eq!(server.texts("/mentionsfeed/1"), ["@u1 hello there"]);
    assert_eq!(server.get("/followers/2").json(), json!({"items": ["1"]}));
}

#[test]
fn wrong_numbers_and_types_are_refused() {
    let server = TestServer::open();
    server.register(&["u0"]);
    for (path, status, code) in [
        ("/tweet/0/3/0/x", 400, "bad_request"),
        ("/tweet/0/1/7/x", 404, "user_not_found"),
        ("/tweet/7/0/0/x", 404, "user_not_found"),
        ("/tweet/x/0/0/x", 400, "bad_request"),
        ("/tweet/0/0/0/%20", 422, "bad_text"),
        ("/tweet/0/0/0/%ff", 400, "bad_request"),
        ("/homepage/7", 404, "user_not_found"),
        ("/mentionsfeed/@u0", 400, "bad_request"),
        ("/followers/7", 404, "user_not_found"),
    ] {
        server.get(path).assert_error(status, code, path);
    }
    for (path, field) in [
        ("/tweet/7/1/0/x", "user"),
        ("/tweet/x/1/0/x", "user"),
        ("/tweet/0/1/7/x", "other"),
        ("/tweet/0/1/x/x", "other"),
    ] {
        assert_eq!(server.get(path).json()["field"], field, "{path}");
    }
    assert_eq!(server.totals(), (1, 0, 0));
}

#[test]
fn with_a_key_they_do_not_exist() {
    let server = TestServer::with_key();
    let key = format!("Bearer {KEY}");
    for path in ["/tweet/0/0/0/x", "/homepage/0", "/mentionsfeed/0", "/followers/0"] {
        let answer = server.send("GET", path, &[("Authorization", &key)], b"");
        answer.assert_error(404, "not_found", path);
    }
}
