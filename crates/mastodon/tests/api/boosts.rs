//! Boosts.

use serde_json::Value;

use crate::client::{Person, World};

const HOME: &str = "/api/v1/timelines/home";

impl Person {
    /// Boosts a status; returns the boost.
    async fn boost(&self, world: &World, status: &str) -> Value {
        self.call(world, "POST", &format!("/api/v1/statuses/{status}/reblog"), &[]).await
    }
}

fn id(status: &Value) -> String {
    status["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_boost_is_a_status_with_the_boosted_one_in_it() {
    let world = World::new();
    let [ada, bob, cyd] = world.people(["ada", "bob", "cyd"]).await;
    cyd.does(&world, "follow", &bob).await;
    let post = ada.post(&world, "hello").await;
    let path = format!("/api/v1/statuses/{post}");
    let boost = bob.boost(&world, &post).await;
    assert_ne!(boost["id"], post.as_str());
    assert_eq!(boost["account"]["id"], bob.id.as_str());
    assert_eq!((&boost["content"], &boost["reblogged"]), (&"".into(), &true.into()));
    assert_eq!(boost["reblog"], bob.get(&world, &path).await);
    assert_eq!(boost["reblog"]["reblogs_count"], 1);
    let again = bob.boost(&world, &post).await;
    assert_eq!(again["id"], boost["id"], "a second boost of the status");
    assert_eq!(bob.boost(&world, &id(&boost)).await["id"], boost["id"], "and a boost of the boost");

    let at_home = cyd.get(&world, HOME).await;
    assert_eq!(at_home[0]["reblog"], cyd.get(&world, &path).await);
    assert_eq!((at_home.as_array().unwrap().len(), &at_home[0]["reblogged"]), (1, &false.into()));
    let statuses = format!("/api/v1/accounts/{}/statuses", bob.id);
    assert_eq!(cyd.ids(&world, &statuses).await, [id(&boost)]);
    assert!(cyd.ids(&world, &format!("{statuses}?exclude_reblogs=true")).await.is_empty());
    assert_eq!(cyd.ids(&world, "/api/v1/timelines/public").await, [post.as_str()]);
    // An action on the boost applies to the boosted status.
    let boosted = format!("/api/v1/statuses/{}", id(&boost));
    cyd.call(&world, "POST", &format!("{boosted}/favourite"), &[]).await;
    assert_eq!(ada.get(&world, &path).await["favourites_count"], 1);
    let reply = ada.reply(&world, &post, "more").await;
    let below = cyd.get(&world, &format!("{boosted}/context")).await;
    assert_eq!(id(&below["descendants"][0]), reply);
    for path in [&path, &boosted] {
        let by = cyd.get(&world, &format!("{path}/reblogged_by")).await;
        assert_eq!(id(&by[0]), bob.id);
        let by = ada.get(&world, &format!("{path}/favourited_by")).await;
        assert_eq!(id(&by[0]), cyd.id);
    }
    let notices = ada.get(&world, "/api/v1/notifications?types[]=reblog").await;
    let [notice] = notices.as_array().unwrap().as_slice() else { panic!("{notices}") };
    assert_eq!((id(&notice["account"]), id(&notice["status"])), (bob.id.clone(), post.clone()));

    let status = bob.call(&world, "POST", &format!("{boosted}/unreblog"), &[]).await;
    assert_eq!((id(&status), &status["reblogged"]), (post, &false.into()));
    assert!(cyd.ids(&world, HOME).await.is_empty());
    let gone = world.get(&boosted, Some(&cyd.token)).await;
    assert_eq!(gone.status.as_u16(), 404);
    let notices = ada.get(&world, "/api/v1/notifications?types[]=reblog").await;
    assert_eq!(notices, serde_json::json!([]));
}

#[tokio::test]
async fn a_boost_is_deleted_by_its_author_or_with_what_it_shows() {
    let world = World::new();
    let [ada, bob, cyd] = world.people(["ada", "bob", "cyd"]).await;
    cyd.does(&world, "follow", &bob).await;
    let post = ada.post(&world, "hello").await;
    let boost = id(&bob.boost(&world, &post).await);
    let path = format!("/api/v1/statuses/{boost}");
    let got = world.call("DELETE", &path, Some(&ada.token), &[]).await;
    assert_eq!(got.status.as_u16(), 404, "not the author of the boost: {got:?}");
    bob.call(&world, "DELETE", &path, &[]).await;
    assert!(cyd.ids(&world, HOME).await.is_empty());
    let boost = id(&bob.boost(&world, &post).await);
    assert_eq!(cyd.ids(&world, HOME).await, [boost]);
    ada.call(&world, "DELETE", &format!("/api/v1/statuses/{post}"), &[]).await;
    assert!(cyd.ids(&world, HOME).await.is_empty());
    assert!(cyd.ids(&world, &format!("/api/v1/accounts/{}/statuses", bob.id)).await.is_empty());
}

#[tokio::test]
async fn only_what_everybody_may_see_is_boosted_for_everybody() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    bob.does(&world, "follow", &ada).await;
    let post = ada.post(&world, "hello").await;
    let fields = [("status", "to followers"), ("visibility", "private")];
    let private = id(&ada.call(&world, "POST", "/api/v1/statuses", &fields).await);
    for (post, visibility, expect) in [
        (&post, "public", 200),
        (&post, "unlisted", 200),
        (&post, "private", 422),
        (&post, "direct", 422),
        (&private, "public", 422),
    ] {
        let path = format!("/api/v1/statuses/{post}/reblog");
        let fields = [("visibility", visibility)];
        let got = world.call("POST", &path, Some(&bob.token), &fields).await;
        assert_eq!(got.status.as_u16(), expect, "{visibility}: {got:?}");
    }
}

#[tokio::test]
async fn who_is_muted_or_blocks_is_not_seen_through_boosts() {
    let world = World::new();
    let [ada, bob, cyd] = world.people(["ada", "bob", "cyd"]).await;
    cyd.does(&world, "follow", &bob).await;
    let post = ada.post(&world, "hello").await;
    let boost = id(&bob.boost(&world, &post).await);
    let statuses = format!("/api/v1/accounts/{}/statuses", bob.id);
    cyd.does(&world, "mute", &ada).await;
    assert!(cyd.ids(&world, HOME).await.is_empty());
    assert_eq!(cyd.ids(&world, &statuses).await, [boost.as_str()]);
    cyd.does(&world, "unmute", &ada).await;
    assert_eq!(cyd.ids(&world, HOME).await, [boost.as_str()]);
    ada.does(&world, "block", &cyd).await;
    assert!(cyd.ids(&world, HOME).await.is_empty());
    assert!(cyd.ids(&world, &statuses).await.is_empty());
    let got = world.get(&format!("/api/v1/statuses/{boost}"), Some(&cyd.token)).await;
    assert_eq!(got.status.as_u16(), 404);
}

#[tokio::test]
async fn a_reply_to_a_boost_is_one_to_what_it_boosts() {
    let world = World::new();
    let [ada, bob, cyd] = world.people(["ada", "bob", "cyd"]).await;
    let post = ada.post(&world, "hello").await;
    let boost = id(&bob.boost(&world, &post).await);
    let reply = cyd.reply(&world, &boost, "hi").await;
    let found = cyd.get(&world, &format!("/api/v1/statuses/{reply}")).await;
    assert_eq!(found["in_reply_to_id"], post.as_str());
    assert_eq!(found["in_reply_to_account_id"], ada.id.as_str());
    assert_eq!(found["mentions"][0]["username"], "ada");
    let context = ada.get(&world, &format!("/api/v1/statuses/{post}/context")).await;
    assert_eq!(id(&context["descendants"][0]), reply);
    assert_eq!(ada.get(&world, &format!("/api/v1/statuses/{post}")).await["replies_count"], 1);
}

#[tokio::test]
async fn authors_boost_their_own_posts_for_followers() {
    let world = World::new();
    let [ada, bob, cyd] = world.people(["ada", "bob", "cyd"]).await;
    bob.does(&world, "follow", &ada).await;
    let fields = [("status", "for followers"), ("visibility", "private")];
    let post = id(&ada.call(&world, "POST", "/api/v1/statuses", &fields).await);
    let path = format!("/api/v1/statuses/{post}/reblog");
    for fields in [&[][..], &[("visibility", "private")], &[("visibility", "public")]] {
        let boost = ada.call(&world, "POST", &path, fields).await;
        assert_eq!((&boost["visibility"], id(&boost["reblog"])), (&"private".into(), post.clone()));
        let seen = format!("/api/v1/statuses/{}", id(&boost));
        assert_eq!(bob.get(&world, &seen).await["reblog"]["content"], "<p>for followers</p>");
        for token in [None, Some(cyd.token.as_str())] {
            assert_eq!(world.get(&seen, token).await.status.as_u16(), 404);
        }
    }
    for other in [&bob, &cyd] {
        let got = world.call("POST", &path, Some(&other.token), &[]).await;
        assert!(got.status.is_client_error(), "{got:?}");
    }
}

#[tokio::test]
async fn a_boost_that_another_one_hid_is_at_home_when_that_ends() {
    let world = World::new();
    let [ada, bob, cyd, dan] = world.people(["ada", "bob", "cyd", "dan"]).await;
    for who in [&bob, &cyd] {
        dan.does(&world, "follow", who).await;
    }
    let post = ada.post(&world, "hello").await;
    let first = id(&bob.boost(&world, &post).await);
    let second = id(&cyd.boost(&world, &post).await);
    assert_eq!(dan.ids(&world, HOME).await, [first.as_str()]);
    bob.call(&world, "POST", &format!("/api/v1/statuses/{post}/unreblog"), &[]).await;
    assert_eq!(dan.ids(&world, HOME).await, [second.as_str()], "in a timeline in memory");
    bob.boost(&world, &post).await;
    assert_eq!(dan.ids(&world, HOME).await, [second.as_str()]);
}
