//! Relations of users, and what a block or a mute hides from an app.

use serde_json::{Value, json};

use crate::client::{Person, World};

async fn relation(world: &World, user: &Person, other: &Person) -> Option<Value> {
    let path = format!("/api/v1/accounts/relationships?id[]={}", other.id);
    user.get(world, &path).await.as_array().unwrap().first().cloned()
}

#[tokio::test]
async fn relations_are_as_they_were_made() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    // Each row is an action of ada on bob, and the fields of her relation to him that are then true.
    for (what, expect) in [
        ("follow", ["following", "showing_reblogs"].as_slice()),
        ("unfollow", &[]),
        ("mute", &["muting", "muting_notifications"]),
        ("unmute", &[]),
        ("follow", &["following", "showing_reblogs"]),
        ("block", &["blocking"]),
        ("unblock", &[]),
    ] {
        let reply = ada.does(&world, what, &bob).await;
        assert_eq!(Some(&reply), relation(&world, &ada, &bob).await.as_ref());
        let fields = reply.as_object().unwrap().iter();
        let mut found: Vec<_> =
            fields.filter(|(_, value)| **value == json!(true)).map(|(name, _)| name).collect();
        found.sort();
        assert_eq!(found, expect, "{what}");
    }
    bob.does(&world, "follow", &ada).await;
    assert_eq!(relation(&world, &ada, &bob).await.unwrap()["followed_by"], true);
    ada.does(&world, "remove_from_followers", &bob).await;
    assert_eq!(relation(&world, &ada, &bob).await.unwrap()["followed_by"], false);
    let path = format!("/api/v1/accounts/{}/mute", bob.id);
    let fields = [("notifications", "false"), ("duration", "3600")];
    let muted = ada.call(&world, "POST", &path, &fields).await;
    assert_eq!((&muted["muting"], &muted["muting_notifications"]), (&json!(true), &json!(false)));
    let mutes = ada.get(&world, "/api/v1/mutes").await;
    assert_eq!(mutes[0]["id"], bob.id.as_str());
    assert_eq!(mutes[0]["mute_expires_at"], muted["muting_expires_at"]);
    for (what, fields) in [("follow", vec![]), ("block", vec![]), ("mute", vec![("duration", "x")])]
    {
        let path = format!("/api/v1/accounts/{}/{what}", ada.id);
        let got = world.call("POST", &path, Some(&ada.token), &fields).await;
        assert_eq!(got.status.as_u16(), 422, "self, {what}: {got:?}");
    }
}

#[tokio::test]
async fn what_a_block_hides_does_not_exist_for_an_app() {
    let world = World::new();
    let [ada, bob, eve] = world.people(["ada", "bob", "eve"]).await;
    bob.does(&world, "follow", &ada).await;
    eve.does(&world, "follow", &ada).await;
    let post = ada.post(&world, "hello @bob @eve").await;
    let by_eve = eve.reply(&world, &post, "@bob look").await;
    let by_ada = ada.reply(&world, &by_eve, "@bob too").await;
    ada.does(&world, "block", &bob).await;
    // Users do not see each other's items, whichever of them blocks.
    for (viewer, other, posts) in [(&bob, &ada, [&post, &by_ada])] {
        for path in [
            format!("/api/v1/accounts/{}", other.id),
            format!("/api/v1/accounts/{}/statuses", other.id),
            format!("/api/v1/accounts/{}/followers", other.id),
            "/api/v1/accounts/lookup?acct=ada".to_owned(),
            format!("/api/v1/statuses/{}", posts[0]),
            format!("/api/v1/statuses/{}/context", posts[0]),
            format!("/api/v1/statuses/{}/source", posts[0]),
            format!("/api/v1/statuses/{}/history", posts[0]),
            format!("/api/v1/statuses/{}/favourited_by", posts[0]),
            format!("/api/v1/notifications/{}", posts[0]),
        ] {
            let got = world.get(&path, Some(&viewer.token)).await;
            assert_eq!(got.status.as_u16(), 404, "{path}: {got:?}");
        }
        for path in [
            "/api/v1/timelines/home".to_owned(),
            "/api/v1/timelines/public".to_owned(),
            "/api/v1/notifications".to_owned(),
            format!("/api/v1/accounts?id[]={}", other.id),
            format!("/api/v1/statuses?id[]={}&id[]={}", posts[0], posts[1]),
            format!("/api/v1/accounts/relationships?id[]={}", other.id),
            "/api/v1/accounts/search?q=a".to_owned(),
            "/api/v2/search?q=ada".to_owned(),
            format!("/api/v2/search?q=https://social.example/@ada/{}", posts[0]),
            "/api/v1/directory".to_owned(),
            format!("/api/v1/accounts/{}/following", eve.id),
            format!("/api/v1/statuses/{by_eve}"),
            format!("/api/v1/statuses/{by_eve}/context"),
            "/api/v1/blocks".to_owned(),
        ] {
            let text = viewer.get(&world, &path).await.to_string();
            let hidden = [posts[0].as_str(), posts[1], "@ada", "\"ada\""];
            assert!(hidden.iter().all(|part| !text.contains(part)), "{path}: {text}");
        }
        for what in ["follow", "block", "mute", "unblock"] {
            let path = format!("/api/v1/accounts/{}/{what}", other.id);
            let got = world.call("POST", &path, Some(&viewer.token), &[]).await;
            assert_eq!(got.status.as_u16(), 404, "{what}: {got:?}");
        }
        let fields = [("status", "x"), ("in_reply_to_id", posts[0].as_str())];
        let got = world.call("POST", "/api/v1/statuses", Some(&viewer.token), &fields).await;
        assert_eq!(got.status.as_u16(), 404, "{got:?}");
    }
    // The blocking user still sees the blocked one, and can unblock.
    let blocks = ada.ids(&world, "/api/v1/blocks").await;
    assert_eq!(blocks, [bob.id.as_str()]);
    let follow = format!("/api/v1/accounts/{}/follow", bob.id);
    let got = world.call("POST", &follow, Some(&ada.token), &[]).await;
    assert_eq!(got.status.as_u16(), 403, "{got:?}");
    assert!(ada.ids(&world, &format!("/api/v1/accounts/{}/statuses", bob.id)).await.is_empty());
    ada.does(&world, "unblock", &bob).await;
    bob.get(&world, &format!("/api/v1/statuses/{post}")).await;
}

#[tokio::test]
async fn a_mute_hides_where_nobody_asked_for_the_author() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    ada.does(&world, "follow", &bob).await;
    let post = bob.post(&world, "hello @ada").await;
    let lists = ["/api/v1/timelines/home", "/api/v1/timelines/public", "/api/v1/notifications"];
    for path in lists {
        assert_eq!(ada.ids(&world, path).await, [post.as_str()], "{path}");
    }
    ada.does(&world, "mute", &bob).await;
    for path in lists {
        assert!(ada.ids(&world, path).await.is_empty(), "{path}");
    }
    let profile = format!("/api/v1/accounts/{}/statuses", bob.id);
    assert_eq!(ada.ids(&world, &profile).await, [post.as_str()]);
    let got = world.get("/api/v1/timelines/public", None).await.json();
    assert_eq!(crate::client::ids(&got), [post.as_str()], "others see the post");
}
