//! `/v1/posts/{id}/context`

use serde_json::{Value, json};
use testkit::http::at;

use crate::client::TestServer;

fn reply(server: &TestServer, author: &str, parent: &str, text: &str) -> String {
    let body = json!({"text": text, "in_reply_to_id": parent});
    let created = server.post(&format!("/v1/users/@{author}/posts"), &body);
    assert_eq!(created.status, 201);
    created.json()["id"].as_str().unwrap().to_owned()
}

fn texts(posts: &Value) -> Vec<&str> {
    posts.as_array().unwrap().iter().map(|post| post["text"].as_str().unwrap()).collect()
}

#[test]
fn a_thread_has_ancestors_and_pages_of_replies() {
    let server = TestServer::open();
    server.register(&["ada", "bob"]);
    let top = server.publish("ada", "top");
    let one = reply(&server, "bob", &top, "1");
    let two = reply(&server, "ada", &top, "2");
    let one_one = reply(&server, "ada", &one, "1.1");
    reply(&server, "bob", &two, "2.1");
    reply(&server, "bob", &one_one, "1.1.1");
    reply(&server, "bob", &one, "1.2");

    let thread = server.get(&format!("/v1/posts/{one_one}/context")).json();
    assert_eq!(texts(&thread["ancestors"]), ["top", "1"]);
    assert_eq!(texts(&thread["items"]), ["1.1.1"]);
    assert!(thread["next"].is_null());
    assert_eq!(thread["ancestors"][1], server.get(&format!("/v1/posts/{one}")).json());

    for limit in 1..=7 {
        let mut path = format!("/v1/posts/{top}/context?limit={limit}");
        let mut all: Vec<String> = Vec::new();
        loop {
            let page = server.get(&path).json();
            assert_eq!(texts(&page["ancestors"]), [""; 0]);
            all.extend(texts(&page["items"]).into_iter().map(str::to_owned));
            match page["next"].as_str() {
                Some(next) => path = at(&path, next),
                None => break,
            }
        }
        assert_eq!(all, ["1", "1.1", "1.1.1", "1.2", "2", "2.1"], "{limit} on a page");
    }

    server.send("DELETE", &server.own(&one), &[], b"");
    let thread = server.get(&format!("/v1/posts/{top}/context")).json();
    assert_eq!(texts(&thread["items"]), ["2", "2.1"]);
    let thread = server.get(&format!("/v1/posts/{one_one}/context")).json();
    assert_eq!(texts(&thread["ancestors"]), [""; 0]);
    assert_eq!(texts(&thread["items"]), ["1.1.1"]);
    let gone = server.get(&format!("/v1/posts/{one}/context"));
    gone.assert_error(404, "post_not_found", "deleted");
}

#[test]
fn invalid_pages_of_threads_are_refused() {
    let server = TestServer::open();
    server.register(&["ada"]);
    let top = server.publish("ada", "top");
    for (query, code) in [
        ("limit=0", "bad_limit"),
        ("limit=101", "bad_limit"),
        ("before=1", "bad_request"),
        ("limit=1&limit=1", "bad_request"),
        ("cursor=x", "bad_cursor"),
        ("cursor=1..2", "bad_cursor"),
        ("cursor=9223372036854775808", "bad_cursor"),
    ] {
        let answer = server.get(&format!("/v1/posts/{top}/context?{query}"));
        let status = if code == "bad_request" { 400 } else { 422 };
        answer.assert_error(status, code, query);
    }
    // A cursor that the server never returned gives an empty page.
    let strange = server.get(&format!("/v1/posts/{top}/context?cursor=7.{top}")).json();
    assert_eq!(texts(&strange["items"]), [""; 0]);
}
