//! Rules that hold for every route.

use serde_json::{Value, json};

use crate::client::{Answer, TestServer};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const KEYED: (&str, &str) = ("Idempotency-Key", "k");

fn prepared() -> TestServer {
    let server = TestServer::open();
    server.register(&["ada", "bob", "cyd"]);
    server.befriend("ada", "bob");
    server
}

#[test]
fn what_cannot_be_read_is_400_and_what_a_rule_refuses_is_422_and_both_name_the_field() {
    let server = prepared();
    let hex = "0".repeat(256);
    let sample = |json: &str| json.replace("HEX", &hex);
    for (method, path, body, status, code, field) in [
        // These bodies have wrong syntax or types, or unknown, duplicate or missing names.
        ("POST", "/v1/users", "{", 400, "bad_json", None),
        ("POST", "/v1/users", "{}", 400, "bad_json", Some("handle")),
        ("POST", "/v1/users", r#"{"handle":7}"#, 400, "bad_json", Some("handle")),
        ("POST", "/v1/users", r#"{"handle":"a","x":1}"#, 400, "bad_json", Some("x")),
        ("PATCH", "/v1/users/0", r#"{"name":null}"#, 400, "bad_json", Some("name")),
        (
            "POST",
            "/v1/users/0/stories",
            r#"{"text":"x","ttl_s":"1"}"#,
            400,
            "bad_json",
            Some("ttl_s"),
        ),
        ("POST", "/v1/recognitions", r#"{"samples":7}"#, 400, "bad_json", Some("samples")),
        ("POST", "/v1/recognitions?k=x", "", 400, "bad_request", Some("k")),
        ("POST", "/v1/recognitions?n=1", "", 400, "bad_request", Some("n")),
        ("GET", "/v1/users/0/posts?limit=x", "", 400, "bad_request", Some("limit")),
        ("GET", "/v1/users/0/posts?limit=1&limit=1", "", 400, "bad_request", Some("limit")),
        ("GET", "/v1/users/0/posts?page=1", "", 400, "bad_request", Some("page")),
        ("GET", "/v1/users/0/posts?cursor=x", "", 422, "bad_cursor", Some("cursor")),
        ("GET", "/v1/buckets/0/keys?cursor=x", "", 422, "bad_cursor", Some("cursor")),
        ("GET", "/v1/users/x", "", 400, "bad_request", Some("user")),
        ("PUT", "/v1/users/0/friends/x", "", 400, "bad_request", Some("other")),
        ("GET", "/v1/posts/x", "", 400, "bad_request", Some("id")),
        ("PUT", "/v1/buckets/0/keys/k?ttl_s=x", "", 400, "bad_request", Some("ttl_s")),
        // These values have wrong lengths, ranges or formats.
        ("POST", "/v1/users", r#"{"handle":"a-b"}"#, 422, "bad_handle", Some("handle")),
        ("PATCH", "/v1/users/0", r#"{"name":"a\nb"}"#, 422, "bad_name", Some("name")),
        ("POST", "/v1/users/0/posts", r#"{"text":""}"#, 422, "bad_text", Some("text")),
        ("POST", "/v1/users/0/stories", r#"{"text":"x","ttl_s":0}"#, 422, "bad_ttl", Some("ttl_s")),
        ("PUT", "/v1/buckets/0/keys/k?ttl_s=0", "", 422, "bad_ttl", Some("ttl_s")),
        ("POST", "/v1/samples", r#"{"label":"x","sample":"0"}"#, 422, "bad_sample", Some("sample")),
        (
            "POST",
            "/v1/samples",
            &sample(r#"{"label":"","sample":"HEX"}"#),
            422,
            "bad_label",
            Some("label"),
        ),
        ("POST", "/v1/recognitions", r#"{"samples":["0"]}"#, 422, "bad_sample", Some("samples")),
        ("POST", "/v1/recognitions?k=0", "", 422, "bad_k", Some("k")),
        ("POST", "/v1/recognitions?set=a%20b", "", 422, "bad_set", Some("set")),
        ("GET", "/v1/users/0/posts?limit=101", "", 422, "bad_limit", Some("limit")),
        ("GET", "/v1/users?limit=0", "", 422, "bad_limit", Some("limit")),
        ("GET", "/v1/buckets?limit=101", "", 422, "bad_limit", Some("limit")),
        ("GET", "/v1/buckets/0/keys?limit=101", "", 422, "bad_limit", Some("limit")),
        ("GET", "/v1/users/@a-b", "", 422, "bad_handle", Some("user")),
        ("PUT", "/v1/users/0/friends/@a-b", "", 422, "bad_handle", Some("other")),
        ("PUT", "/v1/users/0/following/0", "", 422, "self_follow", Some("other")),
        ("PUT", "/v1/buckets/a.b", "", 422, "bad_bucket", Some("bucket")),
    ] {
        let answer = server.send(method, path, &[JSON], body.as_bytes());
        answer.assert_error(status, code, &format!("{method} {path} {body}"));
        assert_eq!(answer.json()["field"].as_str(), field, "{method} {path} {body}");
    }
    let twice = [("If-Match", "x")];
    let answer = server.send("PUT", "/v1/buckets/0/keys/k", &twice, b"");
    answer.assert_error(400, "bad_request", "a header");
    assert_eq!(answer.json()["field"], "If-Match");
}

#[test]
fn of_a_user_who_does_not_exist_the_field_says_which_it_is() {
    let server = prepared();
    for (method, path, field) in [
        ("GET", "/v1/users/9", "user"),
        ("GET", "/v1/users/0?viewer=9", "viewer"),
        ("GET", "/v1/users/9/posts", "user"),
        ("GET", "/v1/tags/a/posts?viewer=9", "viewer"),
        ("GET", "/v1/users/0/relations/9", "other"),
        ("GET", "/v1/users/9/relations/0", "user"),
        ("GET", "/v1/users/9/stories?viewer=0", "user"),
        ("GET", "/v1/stories/0?viewer=9", "viewer"),
        ("PUT", "/v1/users/9/following/0", "user"),
        ("PUT", "/v1/users/0/following/9", "other"),
    ] {
        // With a key, users are looked up before the rules apply.
        let once = [("Idempotency-Key", "k")];
        for headers in [[].as_slice(), &once] {
            let answer = server.send(method, path, headers, b"");
            answer.assert_error(404, "user_not_found", &format!("{method} {path}"));
            assert_eq!(answer.json()["field"], field, "{method} {path} {headers:?}");
        }
    }
}

#[test]
fn every_response_has_a_unique_id() {
    let server = prepared();
    let mut ids = std::collections::BTreeSet::new();
    let paths = ["/", "/healthz", "/v1/users", "/v1/users/9", "/nowhere", "/v1/openapi.json"];
    for path in paths {
        for method in ["GET", "HEAD", "PUT"] {
            let answer = server.send(method, path, &[("X-Request-Id", "mine")], b"");
            let id = answer.header("x-request-id").unwrap().to_owned();
            assert!(id.len() == 16 && ids.insert(id), "{method} {path}: {answer:?}");
        }
    }
}

/// Changes of ranked feeds.
fn changes_of_feeds(post: &str) -> Vec<(&'static str, String, Value, u16, bool)> {
    let path = |path: &str| path.to_owned();
    vec![
        (
            "PUT",
            path("/v1/feeds/new"),
            json!({"sources": {"popular": 1}, "score": "1"}),
            204,
            false,
        ),
        ("DELETE", path("/v1/feeds/new"), Value::Null, 204, false),
        ("POST", path("/v1/users/@ada/seen"), json!({"posts": [post]}), 204, false),
        (
            "POST",
            path("/v1/users/@ada/rank"),
            json!({"feed": "for-you", "posts": [post]}),
            200,
            false,
        ),
    ]
}

/// Every change with its response, and whether it supports a key.
fn changes(
    [post, mention, quote, story, sample]: [&str; 5],
) -> Vec<(&'static str, String, Value, u16, bool)> {
    let drawing = "0".repeat(256);
    let path = |path: &str| path.to_owned();
    vec![
        ("POST", path("/v1/users"), json!({"handle": "dan"}), 201, true),
        ("PATCH", path("/v1/users/@ada"), json!({"name": "Ada"}), 200, true),
        ("PUT", path("/v1/users/@ada/following/@bob"), Value::Null, 200, true),
        ("DELETE", path("/v1/users/@ada/following/@bob"), Value::Null, 204, true),
        ("PUT", path("/v1/users/@ada/follow_requests/@bob"), Value::Null, 204, true),
        ("DELETE", path("/v1/users/@ada/follow_requests/@cyd"), Value::Null, 204, true),
        ("PUT", path("/v1/users/@ada/friends/@cyd"), Value::Null, 204, true),
        ("DELETE", path("/v1/users/@ada/friends/@cyd"), Value::Null, 204, true),
        ("PUT", path("/v1/users/@ada/blocks/@cyd"), Value::Null, 204, true),
        ("DELETE", path("/v1/users/@ada/blocks/@cyd"), Value::Null, 204, true),
        ("PUT", path("/v1/users/@ada/mutes/@cyd"), Value::Null, 204, true),
        ("DELETE", path("/v1/users/@ada/mutes/@cyd"), Value::Null, 204, true),
        ("PUT", path("/v1/users/@ada/not_interested/@cyd"), Value::Null, 204, true),
        ("DELETE", path("/v1/users/@ada/not_interested/@cyd"), Value::Null, 204, true),
        ("POST", path("/v1/users/@ada/posts"), json!({"text": "x"}), 201, true),
        ("PATCH", format!("/v1/users/@ada/posts/{post}"), json!({"text": "y"}), 200, true),
        ("PUT", format!("/v1/users/@bob/favourites/{post}"), Value::Null, 204, true),
        ("DELETE", format!("/v1/users/@bob/favourites/{post}"), Value::Null, 204, true),
        ("PUT", format!("/v1/users/@bob/bookmarks/{post}"), Value::Null, 204, true),
        ("DELETE", format!("/v1/users/@bob/bookmarks/{post}"), Value::Null, 204, true),
        ("PUT", format!("/v1/users/@bob/less/{post}"), Value::Null, 204, true),
        ("DELETE", format!("/v1/users/@bob/less/{post}"), Value::Null, 204, true),
        ("PUT", format!("/v1/users/@bob/boosts/{post}"), Value::Null, 204, true),
        ("DELETE", format!("/v1/users/@bob/boosts/{post}"), Value::Null, 204, true),
        ("PUT", format!("/v1/users/@ada/pins/{post}"), Value::Null, 204, true),
        ("DELETE", format!("/v1/users/@ada/pins/{post}"), Value::Null, 204, true),
        ("DELETE", format!("/v1/users/@cyd/notifications/{mention}"), Value::Null, 204, true),
        ("DELETE", path("/v1/users/@cyd/notifications"), Value::Null, 204, true),
        ("DELETE", format!("/v1/users/@ada/quotes/{quote}"), Value::Null, 204, true),
        ("DELETE", format!("/v1/users/@ada/posts/{post}"), Value::Null, 204, true),
        ("POST", path("/v1/users/@ada/stories"), json!({"text": "x"}), 201, true),
        ("PUT", format!("/v1/users/@bob/viewed_stories/{story}"), Value::Null, 204, true),
        ("DELETE", format!("/v1/users/@ada/stories/{story}"), Value::Null, 204, true),
        ("POST", path("/v1/samples"), json!({"label": "x", "sample": drawing}), 201, true),
        ("DELETE", format!("/v1/samples/{sample}"), Value::Null, 204, true),
        (
            "POST",
            path("/v1/users/@ada/tokens"),
            json!({"scopes": ["read"], "ttl_s": 60}),
            201,
            false,
        ),
        ("DELETE", path("/v1/users/@ada/tokens/1"), Value::Null, 204, false),
        ("DELETE", path("/v1/users/@ada/tokens"), Value::Null, 204, false),
        ("DELETE", path("/v1/tokens?key=none"), Value::Null, 204, false),
        ("PUT", path("/v1/buckets/new"), Value::Null, 204, false),
        ("DELETE", path("/v1/buckets/new"), Value::Null, 204, false),
        ("PUT", path("/v1/buckets/0/keys/k"), Value::Null, 204, false),
        ("DELETE", path("/v1/buckets/0/keys/k"), Value::Null, 204, false),
        ("POST", path("/v1/batch"), Value::Null, 200, false),
        ("DELETE", path("/v1/users/@dan"), Value::Null, 204, true),
    ]
}

#[test]
fn an_idempotency_key_works_on_every_change_or_is_refused() {
    let server = prepared();
    let (post, story) = (server.publish("ada", "x"), server.post_story("ada", "x", 60));
    let drawing = json!({"label": "y", "sample": "0".repeat(256)});
    let sample = server.post("/v1/samples", &drawing).json()["id"].as_str().unwrap().to_owned();
    let send = |method: &str, path: &str, key: bool, body: &Value| -> Answer {
        let media = match path {
            "/v1/batch" => ("Content-Type", "application/x-ndjson"),
            _ => JSON,
        };
        let headers: &[_] = if key { &[media, KEYED] } else { &[media] };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        server.send(method, path, headers, body.as_bytes())
    };
    let locked = json!({"locked": true});
    assert_eq!(server.with_json("PATCH", "/v1/users/@ada", &[], &locked).status, 200);
    server.follow("bob", "ada");
    server.follow("cyd", "ada");
    let mention = server.publish("ada", "hi @cyd");
    let quote = json!({"text": "look", "quote_id": mention});
    let quote = server.post("/v1/users/@cyd/posts", &quote).json()["id"].clone();
    let mut changes = changes_of_feeds(&post);
    changes.extend(self::changes([&post, &mention, quote.as_str().unwrap(), &story, &sample]));
    // The table has every change of the OpenAPI document.
    let api = server.get("/v1/openapi.json").json();
    let documented = api["paths"].as_object().unwrap().values().flat_map(|path| {
        path.as_object().unwrap().keys().filter(|method| *method != "get").cloned()
    });
    // Recognition is a POST that changes nothing.
    assert_eq!(documented.count(), changes.len() + 1, "a change is not in this table");
    for (method, path, body, status, keyed) in &changes {
        let what = format!("{method} {path}");
        if !keyed {
            let refused = send(method, path, true, body);
            refused.assert_error(422, "idempotency_key_not_supported", &what);
            assert_eq!(send(method, path, false, body).status, *status, "{what}");
            continue;
        }
        let first = send(method, path, true, body);
        assert_eq!((first.status, first.header("idempotent-replayed")), (*status, None), "{what}");
        // Another path of the same resource gives the same result.
        let same = path.replace("@ada", "%30").replace("@bob", "@BOB").replace("@cyd", "2");
        let same = same.replace("@dan", "3");
        let again = send(method, &same, true, body);
        assert_eq!(again.header("idempotent-replayed"), Some("true"), "{what}: {again:?}");
        assert_eq!((again.status, &again.body), (*status, &first.body), "{what}");
    }
    let other = send("POST", "/v1/users/0/posts", true, &json!({"text": "y"}));
    other.assert_error(422, "idempotency_key_reused", "other content");
    let elsewhere = send("POST", "/v1/users/@bob/posts", true, &json!({"text": "y"}));
    assert_eq!((elsewhere.status, elsewhere.header("idempotent-replayed")), (201, None));
}

#[test]
fn every_list_has_the_same_shape_and_bounds() {
    let server = prepared();
    let story = server.post_story("ada", "x", 60);
    let post = server.publish("ada", "x");
    for path in [format!("/v1/users/0/pins/{post}"), format!("/v1/users/1/favourites/{post}")] {
        assert_eq!(server.send("PUT", &path, &[], b"").status, 204, "{path}");
    }
    server.publish("bob", "hi @ada #tag");
    for (path, items) in [
        ("/v1/users".to_owned(), 3),
        ("/v1/users?handle=ada".to_owned(), 1),
        ("/v1/users/0/followers".to_owned(), 0),
        ("/v1/users/0/follow_requests".to_owned(), 0),
        ("/v1/users/0/following".to_owned(), 0),
        ("/v1/users/0/friends".to_owned(), 1),
        ("/v1/users/0/blocks".to_owned(), 0),
        ("/v1/users/0/mutes".to_owned(), 0),
        ("/v1/users/0/not_interested".to_owned(), 0),
        ("/v1/users/0/posts".to_owned(), 1),
        ("/v1/users/0/timeline".to_owned(), 1),
        ("/v1/users/0/mentions".to_owned(), 1),
        ("/v1/users/0/feeds/following".to_owned(), 0),
        ("/v1/tags/Tag/posts".to_owned(), 1),
        ("/v1/users/0/favourites".to_owned(), 0),
        ("/v1/users/0/bookmarks".to_owned(), 0),
        ("/v1/users/0/less".to_owned(), 0),
        ("/v1/users/0/pins".to_owned(), 1),
        ("/v1/users/0/notifications".to_owned(), 2),
        (format!("/v1/posts/{post}/favourites"), 1),
        (format!("/v1/posts/{post}/quotes"), 0),
        ("/v1/users/0/stories".to_owned(), 1),
        ("/v1/users/1/timeline/stories".to_owned(), 1),
        ("/v1/users/0/stories?viewer=1".to_owned(), 1),
        (format!("/v1/users/0/stories/{story}/views"), 0),
        ("/v1/buckets".to_owned(), 0),
        ("/v1/buckets/0/keys".to_owned(), 0),
    ] {
        let page = server.get(&path).json();
        assert_eq!(page["items"].as_array().unwrap().len(), items, "{path}");
        let names: Vec<_> = page.as_object().unwrap().keys().collect();
        assert_eq!(names, ["items", "next", "prev"], "{path}");
        if !path.contains('?') {
            for limit in ["1", "100"] {
                assert_eq!(server.get(&format!("{path}?limit={limit}")).status, 200, "{path}");
            }
            for limit in ["0", "101"] {
                let answer = server.get(&format!("{path}?limit={limit}"));
                answer.assert_error(422, "bad_limit", &path);
            }
        }
    }
    let first = server.get("/v1/users?limit=1").json();
    assert_eq!((&first["next"], &first["prev"]), (&json!("1"), &Value::Null));
    let second = server.page("/v1/users?limit=1", &first["next"]);
    assert_eq!((&second["next"], &second["prev"]), (&json!("2"), &json!("-1")));
    assert_eq!(server.page("/v1/users?limit=1", &second["prev"])["items"], first["items"]);
    for n in 0..3 {
        assert_eq!(server.send("PUT", &format!("/v1/buckets/b{n}"), &[], b"").status, 204);
        assert_eq!(server.send("PUT", &format!("/v1/buckets/0/keys/{n}"), &[], b"").status, 204);
    }
    for path in ["/v1/buckets?limit=1", "/v1/buckets/0/keys?limit=1"] {
        let first = server.get(path).json();
        let second = server.page(path, &first["next"]);
        assert_eq!(second["items"].as_array().unwrap().len(), 1, "{path}");
        assert_ne!(second["items"], first["items"], "{path}");
    }
}

/// A cursor only says where a page begins, so one reader's cursor works for any other reader.
#[test]
fn a_cursor_opens_nothing_that_its_reader_may_not_see() {
    let server = prepared();
    let hidden = json!({"text": "to nobody", "visibility": "direct"});
    for body in [&json!({"text": "first"}), &hidden, &json!({"text": "last"})] {
        assert_eq!(server.post("/v1/users/@ada/posts", body).status, 201);
    }
    let list = "/v1/users/@ada/posts?limit=1";
    let all = server.get(list).json();
    let texts = |page: &Value| page["items"][0]["text"].clone();
    assert_eq!(texts(&server.page(list, &all["next"])), "to nobody");
    let seen = "/v1/users/@ada/posts?limit=1&viewer=@bob";
    assert_eq!(texts(&server.page(seen, &all["next"])), "first");
    // The cursor of another list is a place in this list, or is refused.
    let names = server.page("/v1/users?limit=1", &all["next"]);
    assert_eq!(names["items"], json!([]));
    server.get("/v1/users?cursor=digits").assert_error(422, "bad_cursor", "the name of a bucket");
}
