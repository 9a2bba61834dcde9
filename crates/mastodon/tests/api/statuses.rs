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
        // Only users have reactions.
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
    ] {
        let got = world.call("POST", "/api/v1/statuses", Some(&ada.token), &fields).await;
        assert_eq!(got.status.as_u16(), 422, "{fields:?}: {got:?}");
    }
    let long = "x".repeat(501);
    for (fields, status) in [
        (vec![("status", long.as_str())], 422),
        (vec![("status", "x"), ("in_reply_to_id", "1")], 404),
        (vec![("status", "x"), ("in_reply_to_id", "x")], 404),
        (vec![("status", "x"), ("quoted_status_id", "1")], 404),
        (vec![("status", "x"), ("quote_id", "1")], 422),
        (vec![("status", "x"), ("quote_approval_policy", "x")], 422),
    ] {
        let got = world.call("POST", "/api/v1/statuses", Some(&ada.token), &fields).await;
        assert_eq!(got.status.as_u16(), status, "{got:?}");
    }
    let statuses = ada.ids(&world, &format!("/api/v1/accounts/{}/statuses", ada.id)).await;
    assert!(statuses.is_empty());
    let path = format!("/api/v1/statuses/{}", ada.post(&world, "x").await);
    for (method, path) in [("POST", "/api/v1/statuses"), ("PUT", path.as_str())] {
        let got = world.call(method, path, Some(&ada.token), &[("status", " ")]).await;
        assert_eq!(got.status.as_u16(), 422, "{got:?}");
        assert_eq!(got.json()["error"], "Validation failed: Text can't be blank", "{method}");
    }
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

#[tokio::test]
async fn a_user_of_this_server_may_be_written_with_its_domain() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let link = "<span class=\"h-card\" translate=\"no\"><a href=\"https://social.example/@bob\" \
                class=\"u-url mention\">@<span>bob</span></a></span>";
    let id = ada.post(&world, "hi @Bob@Social.Example, @bob@elsewhere.example").await;
    let path = format!("/api/v1/statuses/{id}");
    for text in ["", "hi @bob@social.example, @bob@elsewhere.example"] {
        if !text.is_empty() {
            ada.call(&world, "PUT", &path, &[("status", text)]).await;
        }
        let status = ada.get(&world, &path).await;
        assert_eq!(status["content"], format!("<p>hi {link}, @bob@elsewhere.example</p>"));
        assert_eq!(status["mentions"].as_array().unwrap().len(), 1);
        assert_eq!(status["mentions"][0]["id"], bob.id.as_str());
    }
    let source = ada.get(&world, &format!("{path}/source")).await;
    assert_eq!(source["text"], "hi @bob, @bob@elsewhere.example");
    let direct = [("status", "@bob@social.example x"), ("visibility", "direct")];
    let direct = ada.call(&world, "POST", "/api/v1/statuses", &direct).await;
    assert_eq!(bob.ids(&world, "/api/v1/conversations").await.len(), 1, "{direct}");
}

#[tokio::test]
async fn a_status_that_names_somebody_elsewhere_is_no_business_of_a_namesake() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    for text in [
        "https://medium.example/@bob/x",
        "x=@bob",
        "@bob@elsewhere.example",
        "@bob.social.example",
        "@bob/tools",
    ] {
        let fields = [("status", text), ("visibility", "direct")];
        let status = ada.call(&world, "POST", "/api/v1/statuses", &fields).await;
        assert_eq!(status["mentions"].as_array().unwrap().len(), 0, "{text}");
        let path = format!("/api/v1/statuses/{}", status["id"].as_str().unwrap());
        assert_eq!(world.get(&path, Some(&bob.token)).await.status.as_u16(), 404, "{text}");
    }
    for list in ["conversations", "notifications", "timelines/home"] {
        assert_eq!(bob.ids(&world, &format!("/api/v1/{list}")).await.len(), 0, "{list}");
    }
}

#[tokio::test]
async fn only_a_reply_to_a_status_is_left_out_of_lists_without_replies() {
    let world = World::new();
    let [ada, bob, eve] = world.people(["ada", "bob", "eve"]).await;
    eve.does(&world, "follow", &ada).await;
    let theirs = bob.post(&world, "one").await;
    let reply = ada.reply(&world, &theirs, "@bob two").await;
    let opening = ada.post(&world, "@bob three").await;
    let status = ada.get(&world, &format!("/api/v1/statuses/{opening}")).await;
    assert!(status["in_reply_to_account_id"].is_null(), "{status}");
    let profile = format!("/api/v1/accounts/{}/statuses?exclude_replies=true", ada.id);
    for list in [profile.as_str(), "/api/v1/timelines/home", "/api/v1/timelines/public"] {
        let found = eve.ids(&world, list).await;
        assert!(found.contains(&opening) && !found.contains(&reply), "{list}: {found:?}");
    }
}

#[tokio::test]
async fn a_url_counts_as_many_characters_as_the_instance_announces() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let instance = world.get("/api/v2/instance", None).await.json();
    let statuses = &instance["configuration"]["statuses"];
    let max = statuses["max_characters"].as_u64().unwrap() as usize;
    let url = statuses["characters_reserved_per_url"].as_u64().unwrap() as usize;
    for link in ["https://a.example/", "http://a"].map(|link| link.to_owned() + &"b".repeat(700)) {
        for (letters, expect) in [(max - url - 1, 200), (max - url, 422)] {
            let text = format!("{} {link}", "a".repeat(letters));
            let fields = [("status", text.as_str())];
            let got = world.post("/api/v1/statuses", Some(&ada.token), &fields).await;
            assert_eq!(got.status.as_u16(), expect, "{letters}");
        }
    }
}

#[tokio::test]
async fn a_mention_that_an_app_does_not_expect_is_refused() {
    let world = World::new();
    let [ada, bob, eve] = world.people(["ada", "bob", "eve"]).await;
    for (text, allowed, unexpected) in [
        ("@bob @eve", vec![&*bob.id], vec!["eve"]),
        ("@bob @eve", vec![""], vec!["bob", "eve"]),
        ("@bob @eve", vec![&bob.id, &eve.id], vec![]),
        ("nobody", vec![""], vec![]),
        ("@bob@elsewhere.example https://a.example/@bob", vec![""], vec![]),
    ] {
        let mut fields = vec![("status", text)];
        fields.extend(allowed.iter().map(|id| ("allowed_mentions[]", *id)));
        let got = world.post("/api/v1/statuses", Some(&ada.token), &fields).await;
        let refused = !unexpected.is_empty();
        assert_eq!(got.status.as_u16(), if refused { 422 } else { 200 }, "{text}");
        if refused {
            let refusal = got.json();
            assert_eq!(refusal["error"], "Post would be sent to unexpected accounts");
            let accounts = refusal["unexpected_accounts"].as_array().unwrap().iter();
            let names: Vec<_> = accounts.map(|account| account["acct"].as_str().unwrap()).collect();
            assert_eq!(names, unexpected, "{text}");
        }
    }
    let fields = [("status", "@bob"), ("visibility", "direct")];
    assert_eq!(bob.ids(&world, "/api/v1/notifications").await.len(), 1, "for the published status");
    ada.call(&world, "POST", "/api/v1/statuses", &fields).await;
    assert_eq!(bob.ids(&world, "/api/v1/notifications").await.len(), 2);
}
