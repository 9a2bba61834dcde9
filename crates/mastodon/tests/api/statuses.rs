//! Statuses: publishing, reading, editing and deleting them.

use axum::body::Body;
use axum::http::Request;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::Value;

use crate::client::World;

#[tokio::test]
async fn a_status_is_published_read_edited_and_deleted() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let id = ada.post(&world, "hello @bob, see https://a.example/ #roost").await;
    let path = format!("/api/v1/statuses/{id}");
    for token in [None, Some(ada.token.as_str()), Some(bob.token.as_str())] {
        let status = world.get(&path, token).await.json();
        assert_eq!(status["id"], id.as_str());
        assert_eq!(status["url"], format!("https://social.example/@ada/{id}"));
        assert_eq!(status["account"]["acct"], "ada");
        assert_eq!(status["mentions"][0]["acct"], "bob");
        assert_eq!(status["tags"][0]["name"], "roost");
        assert_eq!(status["visibility"], "public");
        assert_eq!(status["edited_at"], Value::Null);
        assert!(status["content"].as_str().unwrap().contains("href=\"https://a.example/\""));
        // Only a user has relations with it.
        assert_eq!(status["favourited"].is_boolean(), token.is_some());
    }
    let status = ada.get(&world, &path).await;
    let edited = ada.call(&world, "PUT", &path, &[("status", "hello <b>all</b>")]).await;
    assert_eq!(edited["content"], "<p>hello &lt;b&gt;all&lt;/b&gt;</p>");
    assert!(edited["edited_at"].is_string() && edited["mentions"].as_array().unwrap().is_empty());
    let source = ada.get(&world, &format!("{path}/source")).await;
    assert_eq!(source["text"], "hello <b>all</b>");
    let history = ada.get(&world, &format!("{path}/history")).await;
    let [first, second] = &history.as_array().unwrap()[..] else { panic!("{history}") };
    for field in ["content", "created_at", "spoiler_text", "sensitive", "media_attachments"] {
        assert_eq!(first[field], status[field], "{field}");
    }
    assert_eq!(first["account"]["acct"], "ada");
    assert_eq!(second["created_at"], edited["edited_at"]);
    assert_eq!(second["content"], edited["content"]);
    for (method, fields) in [("PUT", vec![("status", "mine")]), ("DELETE", vec![])] {
        let got = world.call(method, &path, Some(&bob.token), &fields).await;
        assert_eq!(got.status.as_u16(), 404, "another user's: {got:?}");
    }
    let deleted = ada.call(&world, "DELETE", &path, &[]).await;
    assert_eq!(deleted["text"], "hello <b>all</b>");
    assert_eq!(world.get(&path, None).await.status.as_u16(), 404);
}

#[tokio::test]
async fn parameters_are_a_form_a_multipart_form_json_or_a_query() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let multipart = "--x\r\nContent-Disposition: form-data; name=\"status\"\r\n\r\nhi\r\n--x--\r\n";
    for (path, kind, body) in [
        ("", "application/x-www-form-urlencoded", "status=hi"),
        ("", "multipart/form-data; boundary=x", multipart),
        ("", "application/json", "{\"status\":\"hi\",\"media_ids\":[],\"poll\":null}"),
        ("?status=hi", "", ""),
    ] {
        let request = Request::post(format!("/api/v1/statuses{path}"))
            .header(AUTHORIZATION, format!("Bearer {}", ada.token))
            .header(CONTENT_TYPE, kind);
        let got = world.send(request.body(Body::from(body)).unwrap()).await;
        assert_eq!(got.status.as_u16(), 200, "{kind}: {got:?}");
        assert_eq!(got.json()["content"], "<p>hi</p>");
    }
}

#[tokio::test]
async fn a_key_is_for_one_request_of_one_user() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let send = async |token: &str, text: &str, key: &str| {
        let fields = [("status", text)];
        let headers = [("idempotency-key", key)];
        let path = "/api/v1/statuses";
        world.call_with("POST", path, Some(token), &fields, &headers).await
    };
    let first = send(&ada.token, "one", "k").await.json()["id"].clone();
    for (token, text, key, expect) in [
        (&ada.token, "one", "k", Some(true)),
        (&ada.token, "one", "l", Some(false)),
        (&bob.token, "one", "k", Some(false)),
        (&ada.token, "other", "k", None),
    ] {
        let got = send(token, text, key).await;
        let same = got.status.is_success().then(|| got.json()["id"] == first);
        assert_eq!(same, expect, "{text} {key}: {got:?}");
    }
    let statuses = ada.ids(&world, &format!("/api/v1/accounts/{}/statuses", ada.id)).await;
    assert_eq!(statuses.len(), 2);
    let got = send(&ada.token, "one", &"k".repeat(256)).await;
    assert_eq!(got.status.as_u16(), 422, "{got:?}");
}

#[tokio::test]
async fn what_the_server_lacks_is_refused_and_publishes_nothing() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    for fields in [
        vec![],
        vec![("status", " \n")],
        vec![("status", "x"), ("media_ids[]", "1")],
        vec![("status", "x"), ("poll[options][]", "a"), ("poll[options][]", "b")],
        vec![("status", "x"), ("scheduled_at", "soon")],
        vec![("status", "x"), ("quoted_status_id", "1")],
    ] {
        let got = world.call("POST", "/api/v1/statuses", Some(&ada.token), &fields).await;
        assert_eq!(got.status.as_u16(), 422, "{fields:?}: {got:?}");
    }
    let long = "x".repeat(501);
    for (fields, status) in [
        (vec![("status", long.as_str())], 422),
        (vec![("status", "x"), ("in_reply_to_id", "1")], 404),
        (vec![("status", "x"), ("in_reply_to_id", "x")], 404),
    ] {
        let got = world.call("POST", "/api/v1/statuses", Some(&ada.token), &fields).await;
        assert_eq!(got.status.as_u16(), status, "{got:?}");
    }
    let statuses = ada.ids(&world, &format!("/api/v1/accounts/{}/statuses", ada.id)).await;
    assert!(statuses.is_empty());
}

#[tokio::test]
async fn a_thread_has_what_is_above_and_below() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let root = ada.post(&world, "root").await;
    let reply = bob.reply(&world, &root, "reply").await;
    let below = ada.reply(&world, &reply, "below").await;
    let beside = bob.reply(&world, &root, "beside").await;
    let context = async |id: &str| {
        let found = ada.get(&world, &format!("/api/v1/statuses/{id}/context")).await;
        (crate::client::ids(&found["ancestors"]), crate::client::ids(&found["descendants"]))
    };
    assert_eq!(context(&root).await, (vec![], vec![reply.clone(), below.clone(), beside]));
    assert_eq!(context(&below).await, (vec![root.clone(), reply.clone()], vec![]));
    let status = ada.get(&world, &format!("/api/v1/statuses/{below}")).await;
    assert_eq!(status["in_reply_to_id"], reply.as_str());
    assert_eq!(status["in_reply_to_account_id"], bob.id.as_str());
    assert_eq!(ada.get(&world, &format!("/api/v1/statuses/{root}")).await["replies_count"], 2);
    bob.call(&world, "DELETE", &format!("/api/v1/statuses/{reply}"), &[]).await;
    let status = ada.get(&world, &format!("/api/v1/statuses/{below}")).await;
    assert_eq!(status["in_reply_to_id"], Value::Null);
}

#[tokio::test]
async fn a_profile_is_listed_with_or_without_direct_statuses() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let mut posts = Vec::new();
    for visibility in ["public", "direct", "private", "direct", "unlisted"] {
        let fields = [("status", visibility), ("visibility", visibility)];
        let status = ada.call(&world, "POST", "/api/v1/statuses", &fields).await;
        posts.insert(0, status["id"].as_str().unwrap().to_owned());
    }
    let path = format!("/api/v1/accounts/{}/statuses", ada.id);
    assert_eq!(ada.ids(&world, &path).await, posts);
    assert_eq!(ada.ids(&world, &format!("{path}?exclude_direct=false")).await, posts);
    let without = [&posts[0], &posts[2], &posts[4]].map(String::clone);
    let path = format!("{path}?exclude_direct=true");
    assert_eq!(ada.ids(&world, &path).await, without);
    let got = world.get(&format!("{path}&limit=2"), Some(&ada.token)).await;
    assert!(got.headers["link"].to_str().unwrap().contains("exclude_direct=true&limit=2&max_id="));
}
