//! `ETag`, `If-None-Match` and `If-Match` of posts, profiles and stories.

use serde_json::{Value, json};

use crate::client::TestServer;

fn prepared() -> (TestServer, String, String) {
    let server = TestServer::open();
    server.register(&["ada", "bob"]);
    server.befriend("ada", "bob");
    let (post, story) = (server.publish("ada", "a post"), server.post_story("ada", "a story", 600));
    (server, post, story)
}

fn tag(server: &TestServer, path: &str) -> String {
    let answer = server.get(path);
    assert_eq!(answer.status, 200, "{path}");
    answer.header("etag").unwrap().to_owned()
}

#[test]
fn a_read_with_the_tag_of_the_last_one_is_304_until_the_response_changes() {
    let (server, post, story) = prepared();
    let view = format!("/v1/users/@bob/viewed_stories/{story}");
    let changes: [(&str, String, &str, Value); 5] = [
        ("edited", format!("/v1/posts/{post}"), "/v1/users/@ada/posts/ID", json!({"text": "new"})),
        ("renamed", format!("/v1/posts/{post}"), "/v1/users/@ada", json!({"name": "Ada"})),
        ("renamed", "/v1/users/@ada?viewer=@bob".into(), "/v1/users/@ada", json!({"name": "A."})),
        ("followed", "/v1/users/@ada".into(), "/v1/users/@bob/following/@ada", Value::Null),
        ("viewed", format!("/v1/stories/{story}?viewer=@bob"), &view, Value::Null),
    ];
    for (what, path, changed, body) in changes {
        let old = tag(&server, &path);
        let read = |tag: &str| server.send("GET", &path, &[("If-None-Match", tag)], b"");
        for same in [old.clone(), format!("W/{old}"), format!("\"x\", {old}"), "*".to_owned()] {
            let answer = read(&same);
            assert_eq!((answer.status, answer.body.len()), (304, 0), "{path} {same}");
            assert_eq!(answer.header("etag"), Some(old.as_str()), "{path}");
        }
        let changed = changed.replace("ID", &post);
        let answer = match body.is_null() {
            true => server.send("PUT", &changed, &[], b""),
            false => server.with_json("PATCH", &changed, &[], &body),
        };
        assert!(answer.status < 300, "{what}: {answer:?}");
        let answer = read(&old);
        assert_eq!(answer.status, 200, "{what}");
        assert_ne!(answer.header("etag"), Some(old.as_str()), "{what}");
        read("x").assert_error(400, "bad_request", "no tag");
    }
}

#[test]
fn a_change_of_an_old_revision_is_refused_and_changes_nothing() {
    let (server, post, _) = prepared();
    for (path, own, first, second) in [
        (
            format!("/v1/posts/{post}"),
            format!("/v1/users/@ada/posts/{post}"),
            json!({"text": "first"}),
            json!({"text": "second"}),
        ),
        (
            "/v1/users/@ada".into(),
            "/v1/users/@ada".into(),
            json!({"bio": "1"}),
            json!({"bio": "2"}),
        ),
        (
            "/v1/users/@ada".into(),
            "/v1/users/0".into(),
            json!({"locked": true}),
            json!({"bio": "3"}),
        ),
    ] {
        let read = tag(&server, &path);
        let change =
            |tag: &str, body: &Value| server.with_json("PATCH", &own, &[("If-Match", tag)], body);
        let changed = change(&read, &first);
        assert_eq!(changed.status, 200, "{path}");
        assert_eq!(changed.header("etag"), Some(tag(&server, &path).as_str()), "{path}");
        let now = server.get(&path).json();
        for tag in [read.as_str(), "\"x\"", &format!("W/{}", tag(&server, &path))] {
            change(tag, &second).assert_error(412, "precondition_failed", tag);
            let delete = server.send("DELETE", &own, &[("If-Match", tag)], b"");
            delete.assert_error(412, "precondition_failed", tag);
        }
        assert_eq!(server.get(&path).json(), now, "{path}");
        let several = format!("{read}, {}", tag(&server, &path));
        let changed = change(&several, &second);
        assert_eq!(changed.status, 200, "{path}");
        let changed = change(changed.header("etag").unwrap(), &first);
        assert_eq!(changed.status, 200, "{path}: the tag of a change is that of the changed item");
        assert_eq!(change("*", &second).status, 200, "{path}");
        change("x", &first).assert_error(400, "bad_request", "no tag");
    }
}

#[test]
fn changes_by_others_refuse_no_change_of_the_user() {
    let (server, post, story) = prepared();
    let [of_post, of_user, of_story] =
        [format!("/v1/posts/{post}"), "/v1/users/@ada".into(), format!("/v1/stories/{story}")];
    let tags = [&of_post, &of_user, &of_story].map(|path| tag(&server, path));
    server.follow("bob", "ada");
    let path = format!("/v1/users/@bob/viewed_stories/{story}");
    assert_eq!(server.send("PUT", &path, &[], b"").status, 204);
    let path = format!("/v1/users/@bob/favourites/{post}");
    assert_eq!(server.send("PUT", &path, &[], b"").status, 204);
    let name = json!({"name": "Ada"});
    let [post_tag, user_tag, story_tag] = &tags;
    let edited = server.with_json("PATCH", &of_user, &[("If-Match", user_tag)], &name);
    assert_eq!(edited.status, 200, "the number of followers is another one");
    for (path, tag) in [
        (format!("/v1/users/@ada/posts/{post}"), post_tag),
        (format!("/v1/users/@ada/stories/{story}"), story_tag),
    ] {
        let answer = server.send("DELETE", &path, &[("If-Match", tag)], b"");
        assert_eq!(answer.status, 204, "{path}: {answer:?}");
    }
}

#[test]
fn a_condition_opens_nothing_and_a_retry_returns_the_first_result() {
    let (server, post, story) = prepared();
    let tags =
        [format!("/v1/posts/{post}"), format!("/v1/stories/{story}")].map(|p| tag(&server, &p));
    for (path, tag, code) in [
        (format!("/v1/users/@bob/posts/{post}"), &tags[0], "post_not_found"),
        (format!("/v1/users/@bob/stories/{story}"), &tags[1], "story_not_found"),
    ] {
        for tag in [tag.as_str(), "\"x\"", "*"] {
            let answer = server.send("DELETE", &path, &[("If-Match", tag)], b"");
            answer.assert_error(404, code, &format!("{path} {tag}"));
        }
    }
    let (path, text) = (format!("/v1/users/@ada/posts/{post}"), json!({"text": "once"}));
    let once = [("If-Match", tags[0].as_str()), ("Idempotency-Key", "k")];
    let edit = || server.with_json("PATCH", &path, &once, &text);
    let (first, again) = (edit(), edit());
    assert_eq!((first.status, again.status, &first.body), (200, 200, &again.body));
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    // The item may have been edited since the first result.
    assert_eq!((first.header("etag").is_some(), again.header("etag")), (true, None));

    let story_path = |user: &str| format!("/v1/users/@{user}/stories/{story}");
    let delete = |user: &str| server.send("DELETE", &story_path(user), &once[1..], b"");
    assert_eq!(delete("ada").status, 204);
    delete("bob").assert_error(404, "story_not_found", "the key is ada's");
    let path = format!("/v1/users/@bob/posts/{post}");
    let other = server.with_json("PATCH", &path, &once[1..], &json!({"text": "x"}));
    other.assert_error(404, "post_not_found", "the key is ada's");
}
