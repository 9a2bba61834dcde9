//! Favourites, bookmarks and pins, and notifications.

use serde_json::Value;

use crate::client::World;

#[tokio::test]
async fn reactions_are_shown_to_those_whom_they_concern() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let post = ada.post(&world, "hello").await;
    let path = format!("/api/v1/statuses/{post}");
    for (who, does, undoes, flag, list) in [
        (&bob, "favourite", "unfavourite", "favourited", "/api/v1/favourites"),
        (&bob, "bookmark", "unbookmark", "bookmarked", "/api/v1/bookmarks"),
        (
            &ada,
            "pin",
            "unpin",
            "pinned",
            &format!("/api/v1/accounts/{}/statuses?pinned=true", ada.id),
        ),
    ] {
        let other = if who.id == ada.id { &bob } else { &ada };
        for on in [true, false] {
            let action = if on { does } else { undoes };
            let status = who.call(&world, "POST", &format!("{path}/{action}"), &[]).await;
            assert_eq!(status[flag], on, "{action}");
            assert_eq!(who.ids(&world, list).await.contains(&post), on, "{action}");
            let seen = other.get(&world, &path).await;
            assert_eq!(seen[flag], false, "{action}, seen by the other");
            let count = u32::from(on && does == "favourite");
            assert_eq!(seen["favourites_count"], count, "{action}");
            let by = ada.ids(&world, &format!("{path}/favourited_by")).await;
            assert_eq!(by.len(), count as usize, "{action}");
        }
    }
    let got = world.call("POST", &format!("{path}/pin"), Some(&bob.token), &[]).await;
    assert!(got.status.is_client_error(), "post of another user: {got:?}");
    ada.does(&world, "block", &bob).await;
    for action in ["favourite", "bookmark"] {
        let got = world.call("POST", &format!("{path}/{action}"), Some(&bob.token), &[]).await;
        assert_eq!(got.status.as_u16(), 404, "{action}: {got:?}");
    }
}

#[tokio::test]
async fn a_user_is_notified_of_mentions_favourites_and_follows() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let post = ada.post(&world, "hello").await;
    bob.does(&world, "follow", &ada).await;
    bob.call(&world, "POST", &format!("/api/v1/statuses/{post}/favourite"), &[]).await;
    bob.post(&world, "@ada hi").await;
    let list = "/api/v1/notifications";
    let kinds = async |query: &str| -> Vec<Value> {
        let found = ada.get(&world, &format!("{list}{query}")).await;
        found.as_array().unwrap().iter().map(|found| found["type"].clone()).collect()
    };
    for (query, expect) in [
        ("", ["mention", "favourite", "follow"].as_slice()),
        ("?types[]=follow&types[]=mention", &["mention", "follow"]),
        ("?exclude_types[]=mention", &["favourite", "follow"]),
        ("?types[]=reblog", &[]),
        ("?limit=1", &["mention"]),
        (&format!("?account_id={}", ada.id), &[]),
    ] {
        assert_eq!(kinds(query).await, expect, "{query}");
    }
    let ids = ada.ids(&world, list).await;
    let one = ada.get(&world, &format!("{list}/{}", ids[1])).await;
    assert_eq!(one["status"]["id"], post.as_str());
    assert_eq!(one["account"]["id"], bob.id.as_str());
    let got = world.get(&format!("{list}/{}", ids[1]), Some(&bob.token)).await;
    assert_eq!(got.status.as_u16(), 404, "item of another user: {got:?}");
    ada.call(&world, "POST", &format!("{list}/{}/dismiss", ids[1]), &[]).await;
    assert_eq!(kinds("").await, ["mention", "follow"]);
    bob.call(&world, "POST", &format!("{list}/clear"), &[]).await;
    assert_eq!(kinds("").await, ["mention", "follow"], "bob's were cleared");
    ada.does(&world, "mute", &bob).await;
    assert!(kinds("").await.is_empty());
    ada.does(&world, "unmute", &bob).await;
    ada.call(&world, "POST", &format!("{list}/clear"), &[]).await;
    assert!(kinds("").await.is_empty());
}

#[tokio::test]
async fn whoever_accepts_a_request_is_notified_of_the_follow() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let update = "/api/v1/accounts/update_credentials";
    ada.call(&world, "PATCH", update, &[("locked", "true")]).await;
    bob.does(&world, "follow", &ada).await;
    let kinds = async || {
        let found = ada.get(&world, "/api/v1/notifications").await;
        let kind = |found: &Value| found["type"].as_str().unwrap().to_owned();
        found.as_array().unwrap().iter().map(kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds().await, ["follow_request"]);
    let path = format!("/api/v1/follow_requests/{}/authorize", bob.id);
    ada.call(&world, "POST", &path, &[]).await;
    assert_eq!(kinds().await, ["follow"]);
}
