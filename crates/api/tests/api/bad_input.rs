//! Invalid input is refused with a clear error, and changes nothing.

use crate::client::{Answer, TestServer};

fn prepared() -> TestServer {
    let server = TestServer::open();
    server.register(&["ada", "bob"]);
    server
}

/// Sends every case, and expects its error and no change.
fn check(send: impl Fn(&TestServer, &[u8]) -> Answer, cases: &[(&[u8], u16, &str)]) {
    let server = prepared();
    let before = server.totals();
    for (input, status, code) in cases {
        let shown = String::from_utf8_lossy(&input[..input.len().min(80)]).into_owned();
        send(&server, input).assert_error(*status, code, &shown);
    }
    assert_eq!(server.totals(), before);
}

const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];

#[test]
fn malformed_bodies_are_refused() {
    let deep = "[".repeat(50_000);
    let deep_field = format!("{{\"text\":{deep}");
    let huge = format!("{{\"text\":\"{}\"}}", "x".repeat(70_000));
    check(
        |server, body| server.send("POST", "/v1/users/@ada/posts", &JSON, body),
        &[
            (b"", 400, "bad_json"),
            (b"{", 400, "bad_json"),
            (b"null", 400, "bad_json"),
            (b"\"text\"", 400, "bad_json"),
            (b"[\"in order\"]", 400, "bad_json"),
            (b"{}", 400, "bad_json"),
            (b"{\"text\":1}", 400, "bad_json"),
            (b"{\"text\":null}", 400, "bad_json"),
            (b"{\"text\":[\"x\"]}", 400, "bad_json"),
            (b"{\"text\":\"x\",\"text\":\"y\"}", 400, "bad_json"),
            (b"{\"text\":\"x\",\"extra\":1}", 400, "bad_json"),
            (b"{\"text\":\"x\"} trailing", 400, "bad_json"),
            (b"{\"text\":\"\xff\xfe\"}", 400, "bad_json"),
            (b"{\"text\":\"\\ud800\"}", 400, "bad_json"),
            (b"{\"text\":\"a\nb\"}", 400, "bad_json"),
            (b"\xef\xbb\xbf{\"text\":\"x\"}", 400, "bad_json"),
            (deep.as_bytes(), 400, "bad_json"),
            (deep_field.as_bytes(), 400, "bad_json"),
            (huge.as_bytes(), 413, "body_too_large"),
            (b"{\"text\":\"\"}", 422, "bad_text"),
            (b"{\"text\":\" \\n \"}", 422, "bad_text"),
            (b"{\"text\":\"a\\u0000b\"}", 422, "bad_text"),
            (format!("{{\"text\":\"{}\"}}", "x".repeat(501)).as_bytes(), 422, "bad_text"),
        ],
    );
}

#[test]
fn invalid_users_are_refused() {
    let long = format!("{{\"handle\":\"cyd\",\"name\":\"{}\"}}", "n".repeat(51));
    check(
        |server, body| server.send("POST", "/v1/users", &JSON, body),
        &[
            (b"{}", 400, "bad_json"),
            (b"{\"handle\":7}", 400, "bad_json"),
            (b"{\"handle\":\"\"}", 422, "bad_handle"),
            (b"{\"handle\":\"a-b\"}", 422, "bad_handle"),
            (b"{\"handle\":\"@cyd\"}", 422, "bad_handle"),
            (b"{\"handle\":\"aaaaaaaaaabbbbbbbbbbccccccccccd\"}", 422, "bad_handle"),
            (b"{\"handle\":\"cyd\",\"name\":null}", 400, "bad_json"),
            (b"{\"handle\":\"cyd\",\"name\":\"a\\nb\"}", 422, "bad_name"),
            (long.as_bytes(), 422, "bad_name"),
            (b"{\"handle\":\"cyd\",\"bio\":\"\\u0007\"}", 422, "bad_bio"),
            (b"{\"handle\":\"bob\"}", 409, "handle_taken"),
        ],
    );
    check(
        |server, body| server.send("PATCH", "/v1/users/@ada", &JSON, body),
        &[
            (b"{\"name\":null}", 400, "bad_json"),
            (b"{\"bio\":null}", 400, "bad_json"),
            (b"{\"handle\":\"cyd\"}", 400, "bad_json"),
            (b"{\"name\":\"a\\nb\"}", 422, "bad_name"),
        ],
    );
}

#[test]
fn invalid_paths_and_queries_are_refused() {
    let deep = "/x".repeat(1_000);
    check(
        |server, path| server.get(std::str::from_utf8(path).unwrap()),
        &[
            (b"/v2", 404, "not_found"),
            (b"/v1/users/", 404, "not_found"),
            (b"/v1/users/0/timeline/x", 404, "not_found"),
            (deep.as_bytes(), 404, "not_found"),
            (b"/v1/users/ada", 400, "bad_request"),
            (b"/v1/users/-1", 400, "bad_request"),
            (b"/v1/users/01", 400, "bad_request"),
            (b"/v1/users/4294967296", 400, "bad_request"),
            (b"/v1/users/%ff", 400, "bad_request"),
            (b"/v1/users/@a-b", 422, "bad_handle"),
            (b"/v1/users/@", 422, "bad_handle"),
            (b"/v1/users/@%ff", 400, "bad_request"),
            (b"/v1/users/2", 404, "user_not_found"),
            (b"/v1/users/@nobody", 404, "user_not_found"),
            (b"/v1/users?handle=a-b", 422, "bad_handle"),
            (b"/v1/users?handle=ada&limit=2", 400, "bad_request"),
            (b"/v1/users?search=", 422, "bad_handle"),
            (b"/v1/users?search=a-b", 422, "bad_handle"),
            (b"/v1/users?search=ada&limit=101", 422, "bad_limit"),
            (b"/v1/users?search=ada&cursor=1", 400, "bad_request"),
            (b"/v1/users?search=ada&handle=ada", 400, "bad_request"),
            (b"/v1/users?cursor=x", 422, "bad_cursor"),
            (b"/v1/users/0?x=1", 400, "bad_request"),
            (b"/v1/posts/x", 400, "bad_request"),
            (b"/v1/posts/9223372036854775808", 400, "bad_request"),
            (b"/v1/posts/7", 404, "post_not_found"),
            (b"/v1/users/0/timeline?limit=0", 422, "bad_limit"),
            (b"/v1/users/0/timeline?limit=101", 422, "bad_limit"),
            (b"/v1/users/0/mentions?limit=101", 422, "bad_limit"),
            (b"/v1/tags/1/posts", 422, "bad_tag"),
            (b"/v1/tags/a-b/posts", 422, "bad_tag"),
            (b"/v1/tags/a/posts?viewer=@nobody", 404, "user_not_found"),
            (b"/v1/users/0/timeline?limit=ten", 400, "bad_request"),
            (b"/v1/users/0/timeline?page=2", 400, "bad_request"),
            (b"/v1/users/0/timeline?cursor=x", 422, "bad_cursor"),
            (b"/v1/users/0/timeline?cursor=--5", 422, "bad_cursor"),
            (b"/v1/users/0/timeline?cursor=%00", 422, "bad_cursor"),
            (b"/v1/users/0/timeline?before=1", 400, "bad_request"),
            (b"/v1/users/0/followers?cursor=99999999999999999999", 422, "bad_cursor"),
            (b"/v1/users/0/events?last_event_id=7", 422, "bad_event_id"),
            (b"/v1/users/0/events?x=1", 400, "bad_request"),
        ],
    );
}

#[test]
fn wrong_methods_and_media_types_are_refused() {
    let server = prepared();
    let answer = server.send("PUT", "/v1/users/0", &[], b"");
    answer.assert_error(405, "method_not_allowed", "PUT");
    let mut allowed: Vec<_> = answer.header("allow").unwrap().split(',').collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["DELETE", "GET", "HEAD", "PATCH"]);
    for media_type in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""] {
        let headers = [("Content-Type", media_type)];
        let answer = server.send("POST", "/v1/users", &headers, b"{\"handle\":\"cyd\"}");
        answer.assert_error(415, "unsupported_media_type", media_type);
        let answer = server.send("POST", "/v1/batch", &headers, b"");
        answer.assert_error(415, "unsupported_media_type", media_type);
    }
    let answer = server.send("POST", "/v1/users", &[], b"{\"handle\":\"cyd\"}");
    answer.assert_error(415, "unsupported_media_type", "no type");
    let with_charset = [("Content-Type", "Application/JSON; charset=utf-8")];
    let answer = server.send("POST", "/v1/users", &with_charset, b"{\"handle\":\"cyd\"}");
    assert_eq!(answer.status, 201);
}

#[test]
fn a_body_without_a_length_is_also_bounded() {
    let server = prepared();
    let mut request = b"POST /v1/users HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
        Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        .to_vec();
    for _ in 0..9 {
        request.extend_from_slice(b"2000\r\n");
        request.extend_from_slice(&[b' '; 0x2000]);
        request.extend_from_slice(b"\r\n");
    }
    server.raw(&request).assert_error(413, "body_too_large", "chunked");
}

#[test]
fn a_request_needs_exactly_one_host() {
    let server = prepared();
    let answer = server.raw(b"GET /v1/users HTTP/1.1\r\nConnection: close\r\n\r\n");
    answer.assert_error(400, "bad_request", "no host");
    let two = b"GET /v1/users HTTP/1.1\r\nHost: localhost\r\nHost: a\r\nConnection: close\r\n\r\n";
    server.raw(two).assert_error(400, "bad_request", "two hosts");
    assert_eq!(server.raw(b"GET /healthz HTTP/1.0\r\n\r\n").status, 200);
}
