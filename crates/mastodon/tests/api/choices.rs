//! Settings of follows, muted threads, and notices of edits.

use serde_json::{Value, json};

use crate::client::{Person, World, ids};

const NOTIFICATIONS: &str = "/api/v1/notifications";

/// Types of a user's notifications, and ids of their statuses, newest first.
async fn notices(world: &World, reader: &Person) -> Vec<(String, String)> {
    let found = reader.get(world, NOTIFICATIONS).await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found = found.as_array().unwrap().iter();
    found.map(|one| (text(&one["type"]), text(&one["status"]["id"]))).collect()
}

async fn follow(world: &World, me: &Person, other: &Person, fields: &[(&str, &str)]) -> Value {
    me.call(world, "POST", &format!("/api/v1/accounts/{}/follow", other.id), fields).await
}

async fn relation(world: &World, me: &Person, other: &Person) -> Value {
    me.get(world, &format!("/api/v1/accounts/relationships?id[]={}", other.id)).await[0].clone()
}

#[tokio::test]
async fn a_follow_has_boosts_or_not_and_notifications_or_not() {
    let world = World::new();
    let [ada, bob, eve] = world.people(["ada", "bob", "eve"]).await;
    for (fields, boosts, notify) in [
        (&[][..], true, false),
        (&[("reblogs", "false")], false, false),
        (&[("notify", "true")], false, true),
        (&[], false, true),
        (&[("reblogs", "true"), ("notify", "false")], true, false),
        (&[("reblogs", "false"), ("notify", "true")], false, true),
    ] {
        let expected = (json!(true), json!(boosts), json!(notify));
        let answer = follow(&world, &ada, &bob, fields).await;
        for found in [answer, relation(&world, &ada, &bob).await] {
            let found = ["following", "showing_reblogs", "notifying"].map(|key| found[key].clone());
            let [following, showing, notifying] = found;
            assert_eq!((following, showing, notifying), expected, "{fields:?}");
        }
    }
    // A follow of only some languages is refused, because home shows all of them. A list of all languages is accepted.
    let path = format!("/api/v1/accounts/{}/follow", bob.id);
    for (name, value, status) in
        [("languages[]", "fr", 422), ("languages", "fr", 422), ("languages[]", "", 200)]
    {
        let got = world.post(&path, Some(&ada.token), &[(name, value)]).await;
        assert_eq!(got.status.as_u16(), status, "{name}={value}: {got:?}");
    }
    assert_eq!(relation(&world, &ada, &bob).await["languages"], json!(null));
    let post = eve.post(&world, "one").await;
    bob.call(&world, "POST", &format!("/api/v1/statuses/{post}/reblog"), &[]).await;
    let home = || async { ids(&ada.get(&world, "/api/v1/timelines/home").await) };
    assert_eq!(home().await.len(), 0);
    follow(&world, &ada, &bob, &[("reblogs", "true")]).await;
    assert_eq!(home().await.len(), 1);
    follow(&world, &ada, &bob, &[("reblogs", "false")]).await;
    assert_eq!(home().await.len(), 0);
    ada.does(&world, "unfollow", &bob).await;
    follow(&world, &ada, &bob, &[]).await;
    assert_eq!(home().await.len(), 1, "an unfollow ends the options");
    let found = relation(&world, &ada, &bob).await;
    assert_eq!((&found["showing_reblogs"], &found["notifying"]), (&json!(true), &json!(false)));
}

#[tokio::test]
async fn a_user_is_notified_of_statuses_and_of_edits_of_what_they_boosted() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    bob.post(&world, "before").await;
    follow(&world, &ada, &bob, &[("notify", "true")]).await;
    let post = bob.post(&world, "one").await;
    let mention = bob.post(&world, "@ada two").await;
    let of = |kind: &str, post: &String| (kind.to_owned(), post.clone());
    let both = [of("mention", &mention), of("status", &post)];
    assert_eq!(notices(&world, &ada).await, both);
    let only = ada.get(&world, &format!("{NOTIFICATIONS}?types[]=status")).await;
    assert_eq!((only.as_array().unwrap().len(), &only[0]["status"]["id"]), (1, &json!(post)));
    let one = ada.get(&world, &format!("{NOTIFICATIONS}/{post}")).await;
    assert_eq!((&one["type"], &one["account"]["acct"]), (&json!("status"), &json!("bob")));
    ada.call(&world, "POST", &format!("{NOTIFICATIONS}/{post}/dismiss"), &[]).await;
    assert_eq!(notices(&world, &ada).await, both[..1]);
    ada.call(&world, "POST", &format!("/api/v1/statuses/{post}/reblog"), &[]).await;
    let path = format!("/api/v1/statuses/{post}");
    bob.call(&world, "PUT", &path, &[("status", "edited")]).await;
    world.do_due().await;
    assert_eq!(notices(&world, &ada).await, [of("update", &post), of("mention", &mention)]);
    world.do_due().await;
    assert_eq!(notices(&world, &ada).await.len(), 2, "once");
}

#[tokio::test]
async fn a_thread_is_muted_for_one_user() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let post = ada.post(&world, "one").await;
    let reply = bob.reply(&world, &post, "@ada two").await;
    let deep = bob.reply(&world, &reply, "@ada three").await;
    assert_eq!(notices(&world, &ada).await.len(), 2);
    let muted = ada.call(&world, "POST", &format!("/api/v1/statuses/{reply}/mute"), &[]).await;
    assert_eq!((&muted["id"], &muted["muted"]), (&json!(reply), &json!(true)));
    assert_eq!(notices(&world, &ada).await, []);
    for (reader, expected) in [(&ada, true), (&bob, false)] {
        for id in [&post, &reply, &deep] {
            let found = reader.get(&world, &format!("/api/v1/statuses/{id}")).await;
            assert_eq!(found["muted"], expected, "{id}");
        }
    }
    let other = ada.post(&world, "another").await;
    assert_eq!(ada.get(&world, &format!("/api/v1/statuses/{other}")).await["muted"], false);
    let path = format!("/api/v1/statuses/{post}/unmute");
    assert_eq!(ada.call(&world, "POST", &path, &[]).await["muted"], false);
    assert_eq!(notices(&world, &ada).await.len(), 2);
}

#[tokio::test]
async fn a_mention_that_an_edit_adds_is_a_new_notification_and_one_of_oneself_is_none() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let post = bob.post(&world, "one").await;
    ada.call(&world, "POST", "/api/v1/notifications/clear", &[]).await;
    let newer = bob.post(&world, "@ada two").await;
    let path = format!("/api/v1/statuses/{post}");
    bob.call(&world, "PUT", &path, &[("status", "one, @ada and @bob")]).await;
    let of = |status: &str| ("mention".to_owned(), status.to_owned());
    assert_eq!(notices(&world, &ada).await, [of(&post), of(&newer)]);
    assert_eq!(notices(&world, &bob).await, []);
    let newest = ada.get(&world, NOTIFICATIONS).await[0]["id"].as_str().unwrap().to_owned();
    let dismiss = format!("/api/v1/notifications/{newest}/dismiss");
    ada.call(&world, "POST", &dismiss, &[]).await;
    assert_eq!(notices(&world, &ada).await, [of(&newer)]);
    bob.call(&world, "PUT", &path, &[("status", "one again, @ada")]).await;
    assert_eq!(notices(&world, &ada).await, [of(&newer)]);
}
