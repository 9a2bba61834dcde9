//! Posts that are not for everybody, as others see them.

use serde_json::{Value, json};

use crate::client::TestServer;

/// Publishes a post and returns it.
fn publish(server: &TestServer, user: &str, post: &Value) -> Value {
    let answer = server.post(&format!("/v1/users/@{user}/posts"), post);
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()
}

fn reply(server: &TestServer, user: &str, parent: &Value, visibility: &str) -> Value {
    let post = json!({"text": "yes", "in_reply_to_id": parent["id"], "visibility": visibility});
    publish(server, user, &post)
}

#[test]
fn a_reply_does_not_name_a_post_that_is_for_fewer() {
    let server = TestServer::open();
    server.register(&["ada", "bob"]);
    for (parent, replies) in [
        ("public", [("public", true), ("direct", true)]),
        ("unlisted", [("public", true), ("direct", true)]),
        ("followers", [("public", false), ("followers", true)]),
        ("direct", [("followers", false), ("direct", true)]),
    ] {
        let to = publish(&server, "ada", &json!({"text": "to @bob", "visibility": parent}));
        for (visibility, is_named) in replies {
            let post = reply(&server, "bob", &to, visibility);
            let expect = if is_named { to["id"].clone() } else { Value::Null };
            assert_eq!(post["in_reply_to_id"], expect, "{parent} {visibility}");
            let again = server.get(&format!("/v1/posts/{}", post["id"].as_str().unwrap())).json();
            assert_eq!(again, post, "{parent} {visibility}");
        }
    }
}

#[test]
fn links_name_no_hidden_posts() {
    let server = TestServer::open();
    server.register(&["ada", "bob", "eve"]);
    let first = publish(&server, "ada", &json!({"text": "hello"}));
    let hidden: Vec<Value> = (0..3)
        .map(|_| {
            let direct =
                json!({"text": "to @bob", "visibility": "direct", "in_reply_to_id": first["id"]});
            publish(&server, "ada", &direct)
        })
        .collect();
    let last = reply(&server, "ada", &first, "public");
    let mut path = "/v1/users/@ada/posts?viewer=@eve&limit=1".to_owned();
    for post in [&last, &first] {
        let page = server.get(&path);
        let text = String::from_utf8_lossy(&page.body);
        for hidden in &hidden {
            assert!(!text.contains(hidden["id"].as_str().unwrap()), "{text}");
        }
        let page = page.json();
        assert_eq!(page["items"][0]["id"], post["id"]);
        path = page["next"].as_str().unwrap_or_default().to_owned();
    }
    assert_eq!(path, "", "the second page is the last one");
    let thread = format!("/v1/posts/{}/context?viewer=@eve&limit=1", first["id"].as_str().unwrap());
    let thread = server.get(&thread).json();
    assert_eq!(thread["descendants"][0]["id"], last["id"]);
    assert_eq!(thread["next"], Value::Null);
}
