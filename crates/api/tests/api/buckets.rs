//! `/v1/buckets` and their keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use edge::Access;
use node::Clock;
use serde_json::Value;
use testkit::http::at;

use crate::client::{Answer, TestServer};

const START_MS: u64 = 1_800_000_000_000;

fn put(server: &TestServer, path: &str, headers: &[(&str, &str)], value: &[u8]) -> Answer {
    server.send("PUT", path, headers, value)
}

fn names(page: &Value, field: &str) -> Vec<String> {
    let items = page["items"].as_array().unwrap();
    items.iter().map(|item| item[field].as_str().unwrap().to_owned()).collect()
}

#[test]
fn buckets_are_created_once_listed_by_name_and_deleted() {
    let server = TestServer::open();
    for (path, status) in [
        ("/v1/buckets/drafts", 204),
        ("/v1/buckets/drafts", 204),
        ("/v1/buckets/Drafts-2_", 204),
        ("/v1/buckets/3", 204),
        ("/v1/buckets/16", 204),
    ] {
        assert_eq!(put(&server, path, &[], b"").status, status, "{path}");
    }
    assert_eq!(put(&server, "/v1/buckets/3/keys/k", &[], b"value").status, 204);
    let page = server.get("/v1/buckets").json();
    assert_eq!(names(&page, "name"), ["16", "3", "Drafts-2_", "drafts"]);
    assert_eq!(page["items"][1]["key_count"], 1);
    assert_eq!(page["items"][1]["size_bytes"], 6);
    let (mut path, mut walked) = ("/v1/buckets?limit=1".to_owned(), Vec::new());
    loop {
        let page = server.get(&path).json();
        walked.extend(names(&page, "name"));
        match page["next"].as_str() {
            Some(next) => path = at(&path, next),
            None => break,
        }
    }
    assert_eq!(walked, names(&page, "name"));
    let only_new = put(&server, "/v1/buckets/drafts", &[("If-None-Match", "*")], b"");
    only_new.assert_error(412, "precondition_failed", "it exists");
    assert_eq!(server.send("DELETE", "/v1/buckets/drafts", &[], b"").status, 204);
    for (method, path, status, code) in [
        ("GET", "/v1/buckets/drafts", 404, "bucket_not_found"),
        ("DELETE", "/v1/buckets/drafts", 404, "bucket_not_found"),
        ("GET", "/v1/buckets/drafts/keys", 404, "bucket_not_found"),
        ("GET", "/v1/buckets/drafts/keys/k", 404, "bucket_not_found"),
        ("PUT", "/v1/buckets/drafts/keys/k", 404, "bucket_not_found"),
        ("GET", "/v1/buckets/3/keys/missing", 404, "key_not_found"),
        ("DELETE", "/v1/buckets/3/keys/missing", 404, "key_not_found"),
        ("DELETE", "/v1/buckets/3", 409, "bucket_stays"),
        ("PUT", "/v1/buckets/a.b", 422, "bad_bucket"),
        ("PUT", "/v1/buckets/a%20b", 422, "bad_bucket"),
        ("GET", "/v1/buckets?prefix=a", 400, "bad_request"),
        ("GET", "/v1/buckets/3/keys?limit=0", 422, "bad_limit"),
        ("GET", "/v1/buckets/3/keys?limit=101", 422, "bad_limit"),
        ("GET", "/v1/buckets/3/keys?limit=1&limit=1", 400, "bad_request"),
        ("PUT", "/v1/buckets/3/keys/k?ttl_s=0", 422, "bad_ttl"),
        ("PUT", "/v1/buckets/3/keys/k?ttl_s=3153600001", 422, "bad_ttl"),
        ("PUT", "/v1/buckets/3/keys/k?ttl=1", 400, "bad_request"),
        ("PUT", "/v1/buckets/3/keys/k?ttl_s=99999999999999999999", 400, "bad_request"),
    ] {
        server.send(method, path, &[], b"").assert_error(status, code, path);
    }
    // A new bucket with the same name is a different one.
    assert_eq!(put(&server, "/v1/buckets/drafts", &[], b"").status, 204);
    assert_eq!(server.get("/v1/buckets/drafts").json()["key_count"], 0);
}

#[test]
fn values_are_any_bytes_under_keys_of_any_bytes() {
    let server = TestServer::open();
    let large = vec![0xa5; 16 << 20];
    let long = format!("/v1/buckets/0/keys/{}", "k".repeat(20_000));
    for (path, value) in [
        ("/v1/buckets/0/keys/plain", &b"text"[..]),
        ("/v1/buckets/0/keys/%00%FF%2F%25", b"\0\xff\r\n"),
        ("/v1/buckets/0/keys/with/slashes?ttl_s=1000", b""),
        ("/v1/buckets/0/keys/large", &large),
        (&long, b"long"),
    ] {
        assert_eq!(put(&server, path, &[], value).status, 204, "{path:.60}");
        let path = path.split('?').next().unwrap();
        let answer = server.get(path);
        assert_eq!(answer.status, 200);
        assert!(answer.body == value, "{path:.60}");
        assert_eq!(answer.header("content-type"), Some("application/octet-stream"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(put(&server, path, &[], b"again").status, 204, "it is replaced");
    }
    let listed = server.get("/v1/buckets/0/keys").json();
    assert!(names(&listed, "key").iter().any(|key| key == "%00%FF%2F%25"));
    let larger = vec![0; (16 << 20) + 1];
    put(&server, "/v1/buckets/0/keys/k", &[], &larger).assert_error(413, "body_too_large", "");
    let longest = format!("/v1/buckets/0/keys/{}", "%00".repeat(0));
    assert_eq!(server.get(&longest).status, 404, "an empty key is invalid");
}

#[test]
fn changes_may_have_preconditions() {
    let server = TestServer::open();
    let path = "/v1/buckets/0/keys/k";
    let absent = [("If-None-Match", "*")];
    let first = put(&server, path, &absent, b"1");
    assert_eq!(first.status, 204);
    let old = first.header("etag").unwrap().to_owned();
    put(&server, path, &absent, b"2").assert_error(412, "precondition_failed", "");
    let second = put(&server, path, &[("If-Match", &old)], b"1");
    let new = second.header("etag").unwrap().to_owned();
    assert_eq!((second.status, new == old), (204, false), "a new version of the same bytes");
    for (tag, what) in [(old.as_str(), "old"), ("\"7\"", "other"), ("\"x\"", "unknown")] {
        let answer = put(&server, path, &[("If-Match", tag)], b"3");
        answer.assert_error(412, "precondition_failed", what);
        let answer = server.send("DELETE", path, &[("If-Match", tag)], b"");
        answer.assert_error(412, "precondition_failed", what);
    }
    let unchanged = server.send("GET", path, &[("If-None-Match", &new)], b"");
    assert_eq!((unchanged.status, unchanged.body.as_slice()), (304, &b""[..]));
    assert_eq!(server.send("GET", path, &[("If-None-Match", &old)], b"").body, b"1");
    assert_eq!(put(&server, path, &[("If-Match", "*")], b"4").status, 204);
    for (headers, status) in [
        (&[("If-Match", "7")][..], 400),
        (&[("If-None-Match", "\"7")], 400),
        (&[("If-Match", "*"), ("If-None-Match", "*")], 412),
        (&[("If-Match", "\"7\", \"8,9\"")], 412),
    ] {
        let answer = put(&server, path, headers, b"5");
        let code = if status == 400 { "bad_request" } else { "precondition_failed" };
        answer.assert_error(status, code, &format!("{headers:?}"));
    }
    // A header may have several tags, in one line or in two, including weak ones.
    let now = || server.get(path).header("etag").unwrap().to_owned();
    let before = now();
    assert_eq!(
        put(&server, path, &[("If-Match", &format!("\"a,b\", {before}"))], b"5").status,
        204
    );
    let weak = format!("W/{}", now());
    put(&server, path, &[("If-Match", &weak)], b"6").assert_error(
        412,
        "precondition_failed",
        "weak",
    );
    put(&server, path, &[("If-None-Match", &weak)], b"6").assert_error(
        412,
        "precondition_failed",
        "",
    );
    let lines = [("If-None-Match", before.as_str()), ("If-None-Match", "\"7\"")];
    assert_eq!(put(&server, path, &lines, b"6").status, 204);
    let known = format!("{before}, W/{}", now());
    assert_eq!(server.send("GET", path, &[("If-None-Match", &known)], b"").status, 304);
    assert_eq!(server.send("GET", path, &[("If-None-Match", "*")], b"").status, 304);
    let moved = server.send("GET", path, &[("If-Match", &before)], b"");
    moved.assert_error(412, "precondition_failed", "a read");
    let star = server.send("DELETE", path, &[("If-None-Match", "*")], b"");
    star.assert_error(412, "precondition_failed", "it exists");
    assert_eq!(server.send("DELETE", path, &[("If-Match", &now())], b"").status, 204);
    let gone = server.send("DELETE", path, &[("If-None-Match", "*")], b"");
    gone.assert_error(404, "key_not_found", "nothing to delete");
    assert_eq!(server.get(path).status, 404);
    put(&server, path, &[("If-Match", "*")], b"6").assert_error(412, "precondition_failed", "");
}

#[test]
fn keys_expire_at_their_expiry_time() {
    let clock = Arc::new(AtomicU64::new(START_MS));
    let turned = Arc::clone(&clock);
    let server = TestServer::start(Access::Open, |options, _| {
        options.clock = Clock::from_fn(move || turned.load(Ordering::Acquire));
    });
    let path = "/v1/buckets/0/keys/k";
    assert_eq!(put(&server, &format!("{path}?ttl_s=5"), &[], b"1").status, 204);
    let expires = START_MS + 5_000;
    assert_eq!(server.get(path).header("x-expires-at"), Some("2027-01-15T08:00:05.000Z"));
    assert_eq!(
        server.get("/v1/buckets/0/keys").json()["items"][0]["expires_at"],
        "2027-01-15T08:00:05.000Z"
    );
    clock.store(expires - 1, Ordering::Release);
    assert_eq!(server.get(path).status, 200);
    clock.store(expires, Ordering::Release);
    server.get(path).assert_error(404, "key_not_found", "");
    assert_eq!(server.get("/v1/buckets/0/keys").json()["items"].as_array().unwrap().len(), 0);
    assert_eq!(put(&server, path, &[("If-None-Match", "*")], b"2").status, 204);
    assert_eq!(server.get(path).header("x-expires-at"), None);
}

#[test]
fn a_change_keeps_the_expiry_if_asked_to() {
    let server = TestServer::open();
    let path = "/v1/buckets/0/keys/k";
    let ends = || server.get(path).header("x-expires-at").map(str::to_owned);
    assert_eq!(put(&server, &format!("{path}?ttl_s=500"), &[], b"1").status, 204);
    let before = ends();
    assert!(before.is_some());
    assert_eq!(put(&server, &format!("{path}?keep_ttl=true"), &[], b"2").status, 204);
    assert_eq!((ends(), server.get(path).body), (before, b"2".to_vec()));
    assert_eq!(put(&server, path, &[], b"3").status, 204);
    assert_eq!(ends(), None);
    for query in ["keep_ttl", "keep_ttl=1", "keep_ttl=true&ttl_s=5", "ttl_s=5&keep_ttl=true"] {
        let refused = put(&server, &format!("{path}?{query}"), &[], b"4");
        refused.assert_error(400, "bad_request", query);
    }
}

/// All keys of a page and the following pages, and the number of pages.
fn walk(server: &TestServer, path: &str) -> (Vec<String>, usize) {
    let (mut path, mut walked, mut pages) = (path.to_owned(), Vec::new(), 0);
    loop {
        let page = server.get(&path).json();
        walked.extend(names(&page, "key"));
        pages += 1;
        match page["next"].as_str() {
            Some(next) => path = at(&path, next),
            None => return (walked, pages),
        }
    }
}

#[test]
fn keys_are_listed_by_prefix_and_page_each_once() {
    let server = TestServer::open();
    for number in 0..30 {
        for kind in ["a", "b%2F"] {
            let path = format!("/v1/buckets/0/keys/{kind}{number:02}");
            assert_eq!(put(&server, &path, &[], b"v").status, 204);
        }
    }
    let (mut walked, pages) = walk(&server, "/v1/buckets/0/keys?prefix=b%2F&limit=7");
    walked.sort_unstable();
    let expected: Vec<String> = (0..30).map(|number| format!("b%2F{number:02}")).collect();
    assert_eq!(walked, expected);
    assert!(pages >= 30 / 7, "{pages}");
    let (all, pages) = walk(&server, "/v1/buckets/0/keys?limit=100");
    assert_eq!((all.len(), pages), (60, 1));
    assert_eq!(names(&server.get("/v1/buckets/0/keys").json(), "key").len(), 20);
    for after in ["a", "-1", "b%2F02", "18446744073709551616", ""] {
        let path = format!("/v1/buckets/0/keys?cursor={after}");
        server.get(&path).assert_error(422, "bad_cursor", after);
    }
}

#[test]
fn a_page_of_keys_scans_a_bounded_number_of_keys() {
    const KEYS: usize = 25_000;
    let server = TestServer::open();
    let mut ops = kv::KeyOps::default();
    let bucket = kv::BucketId(0);
    for number in 0..KEYS {
        let key = format!("key{number}");
        let (key, value) = (kv::Bytes::new(key.as_bytes()), kv::Bytes::new(b"v"));
        let (expiry, only) = (kv::Expiry::Never, kv::Only::Always);
        ops.push(&kv::KeyOp::Put { bucket, key, value, expiry, only, old: false });
        if ops.len() == 2_000 || number == KEYS - 1 {
            let ops = std::mem::take(&mut ops);
            server.block_on(server.node.submit_keys(ops, Vec::new())).unwrap();
        }
    }
    let (found, pages) = walk(&server, "/v1/buckets/0/keys?prefix=key24999&limit=100");
    assert_eq!(found, ["key24999"]);
    assert!(pages >= KEYS.div_ceil(10_000 + 256) && pages <= 5, "{pages}");
    // Large values also limit what a page scans.
    for number in 0..12 {
        let path = format!("/v1/buckets/1/keys/{number}");
        assert_eq!(put(&server, &path, &[], &vec![0; 2 << 20]).status, 204);
    }
    let (found, pages) = walk(&server, "/v1/buckets/1/keys?limit=2&prefix=1");
    assert_eq!(found.len(), 3);
    assert!(pages > 1, "{pages}");
}
