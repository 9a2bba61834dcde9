//! Quotes: a status shows another one to the readers whom the authors of both allow to see it.

use std::time::Duration;

use feed::PostId;
use mastodon::Rate;
use serde_json::{Value, json};

use crate::client::{Person, World, ids};

impl Person {
    /// Publishes a status that quotes another one.
    async fn quote(&self, world: &World, quoted: &str, more: &[(&str, &str)]) -> Value {
        let fields = [&[("status", "look"), ("quoted_status_id", quoted)], more].concat();
        self.call(world, "POST", "/api/v1/statuses", &fields).await
    }

    async fn status(&self, world: &World, id: &Value) -> Value {
        self.get(world, &format!("/api/v1/statuses/{}", id.as_str().unwrap())).await
    }

    /// Changes which users may quote a status.
    async fn allow(&self, world: &World, id: &str, policy: &str) -> Value {
        let path = format!("/api/v1/statuses/{id}/interaction_policy");
        self.call(world, "PUT", &path, &[("quote_approval_policy", policy)]).await
    }
}

#[tokio::test]
async fn a_quote_shows_the_quoted_status_and_of_its_quote_the_id() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let first = ada.post(&world, "the first").await;
    let second = bob.quote(&world, &first, &[]).await;
    assert_eq!(second["quote"]["state"], "accepted");
    let quoted = &second["quote"]["quoted_status"];
    assert_eq!((&quoted["id"], &quoted["content"]), (&json!(first), &json!("<p>the first</p>")));
    assert_eq!((&quoted["quote"], &quoted["quotes_count"]), (&Value::Null, &json!(1)));
    assert_eq!(quoted["favourited"], false, "as its reader sees it");
    let third = ada.quote(&world, second["id"].as_str().unwrap(), &[]).await;
    let shallow = json!({"state": "accepted", "quoted_status_id": first});
    assert_eq!(third["quote"]["quoted_status"]["quote"], shallow);
    let boost = format!("/api/v1/statuses/{}/reblog", third["id"].as_str().unwrap());
    let boost = bob.call(&world, "POST", &boost, &[]).await;
    assert_eq!(boost["quote"], Value::Null);
    assert_eq!(boost["reblog"]["quote"]["quoted_status"]["quote"], shallow);
    // A reader without an account, and lists, get the same.
    let path = format!("/api/v1/statuses/{}", third["id"].as_str().unwrap());
    assert_eq!(world.get(&path, None).await.json()["quote"]["quoted_status"]["quote"], shallow);
    let path = format!("/api/v1/statuses/{first}/quotes");
    assert_eq!(ids(&ada.get(&world, &path).await), [second["id"].as_str().unwrap()]);
    // A quote shows the current text of the quoted status.
    let edit = [("status", "another")];
    ada.call(&world, "PUT", &format!("/api/v1/statuses/{first}"), &edit).await;
    let shown = bob.status(&world, &second["id"]).await;
    assert_eq!(shown["quote"]["quoted_status"]["content"], "<p>another</p>");
    ada.call(&world, "DELETE", &format!("/api/v1/statuses/{first}"), &[]).await;
    let deleted = json!({"state": "deleted", "quoted_status": null});
    assert_eq!(bob.status(&world, &second["id"]).await["quote"], deleted);
    let shown = bob.status(&world, &third["id"]).await;
    let shallow = json!({"state": "deleted", "quoted_status_id": null});
    assert_eq!(shown["quote"]["quoted_status"]["quote"], shallow);
}

#[tokio::test]
async fn nothing_of_a_quoted_status_is_shown_to_who_may_not_see_it() {
    let world = World::new();
    let [ada, bob, cyd, dan] = world.people(["ada", "bob", "cyd", "dan"]).await;
    let secret = "xyzzy";
    let quoted = ada.post(&world, secret).await;
    let quote = bob.quote(&world, &quoted, &[]).await["id"].clone();
    let above = dan.quote(&world, quote.as_str().unwrap(), &[]).await["id"].clone();
    let home = "/api/v1/timelines/home".to_owned();
    cyd.does(&world, "follow", &bob).await;
    cyd.does(&world, "follow", &dan).await;
    let path = |id: &Value| format!("/api/v1/statuses/{}", id.as_str().unwrap());
    let public = "/api/v1/timelines/public".to_owned();
    let context = format!("{}/context", path(&quote));
    let by_bob = format!("/api/v1/accounts/{}/statuses", bob.id);
    let quotes = format!("{}/quotes", path(&quote));
    let everywhere = [path(&quote), path(&above), home, public, context, by_bob, quotes];
    let shows = async |token: Option<&str>| {
        let mut shown = 0;
        for path in &everywhere {
            let got = world.get(path, token).await;
            shown += usize::from(got.text.contains(secret) || got.text.contains(&quoted));
        }
        shown
    };
    let token = Some(cyd.token.as_str());
    assert_eq!(shows(token).await, 6);
    for (by, what, whom, undo, state) in [
        (&cyd, "block", &ada, "unblock", "blocked_account"),
        (&ada, "block", &cyd, "unblock", "unauthorized"),
        (&cyd, "mute", &ada, "unmute", "muted_account"),
    ] {
        by.does(&world, what, whom).await;
        assert_eq!(shows(token).await, 0, "{state}");
        let shown = cyd.status(&world, &quote).await;
        assert_eq!(shown["quote"], json!({"state": state, "quoted_status": null}));
        let shown = cyd.status(&world, &above).await;
        let shallow = json!({"state": state, "quoted_status_id": null});
        assert_eq!(shown["quote"]["quoted_status"]["quote"], shallow);
        by.does(&world, undo, whom).await;
        assert_eq!(shows(token).await, 6);
    }
    // The user quotes their own status for followers, and mentions another user.
    cyd.does(&world, "follow", &ada).await;
    let private = [("status", "plugh"), ("visibility", "private")];
    let private = ada.call(&world, "POST", "/api/v1/statuses", &private).await["id"].clone();
    let fields = [("status", "@dan look"), ("visibility", "public")];
    let quote = ada.quote(&world, private.as_str().unwrap(), &fields[1..]).await;
    assert_eq!(quote["visibility"], "private");
    let fields = [&fields[..], &[("quoted_status_id", private.as_str().unwrap())]].concat();
    let quote = ada.call(&world, "POST", "/api/v1/statuses", &fields).await;
    let (by_cyd, by_dan) =
        (cyd.status(&world, &quote["id"]).await, dan.status(&world, &quote["id"]).await);
    assert_eq!(by_cyd["quote"]["quoted_status"]["content"], "<p>plugh</p>");
    assert_eq!(by_dan["quote"], json!({"state": "unauthorized", "quoted_status": null}));
    assert!(!by_dan.to_string().contains(private.as_str().unwrap()));
    for (who, status) in [(&dan, 404), (&cyd, 422)] {
        let fields = [("status", "x"), ("quoted_status_id", private.as_str().unwrap())];
        let got = world.call("POST", "/api/v1/statuses", Some(&who.token), &fields).await;
        assert_eq!(got.status.as_u16(), status, "{got:?}");
    }
}

#[tokio::test]
async fn the_author_decides_who_may_quote() {
    let world = World::new();
    let [ada, bob, cyd] = world.people(["ada", "bob", "cyd"]).await;
    bob.does(&world, "follow", &ada).await;
    let post = ada.post(&world, "a post").await;
    let id = json!(post);
    for (policy, automatic, expect) in [
        ("nobody", json!([]), ["automatic", "denied", "denied"]),
        ("followers", json!(["followers"]), ["automatic", "automatic", "denied"]),
        ("public", json!(["public"]), ["automatic"; 3]),
    ] {
        assert_eq!(ada.allow(&world, &post, policy).await["edited_at"], Value::Null);
        for (who, expect) in [&ada, &bob, &cyd].into_iter().zip(expect) {
            let approval = who.status(&world, &id).await["quote_approval"].clone();
            let current = json!({"automatic": automatic, "manual": [], "current_user": expect});
            assert_eq!(approval, current, "{policy}");
            let fields = [("status", "look"), ("quoted_status_id", post.as_str())];
            let got = world.call("POST", "/api/v1/statuses", Some(&who.token), &fields).await;
            let status = if expect == "automatic" { 200 } else { 422 };
            assert_eq!(got.status.as_u16(), status, "{policy}: {got:?}");
        }
        let anyone = world.get(&format!("/api/v1/statuses/{post}"), None).await.json();
        assert_eq!(anyone["quote_approval"]["current_user"], "denied");
    }
    let path = format!("/api/v1/statuses/{post}/interaction_policy");
    for (who, policy, status) in [(&bob, "nobody", 404), (&ada, "some", 422)] {
        let fields = [("quote_approval_policy", policy)];
        let got = world.call("PUT", &path, Some(&who.token), &fields).await;
        assert_eq!(got.status.as_u16(), status, "{got:?}");
    }
    let fields = [("status", "x"), ("quote_approval_policy", "nobody")];
    let closed = ada.call(&world, "POST", "/api/v1/statuses", &fields).await;
    assert_eq!(closed["quote_approval"]["automatic"], json!([]));
    // An edit without a quote policy keeps the old policy and the quote.
    let path = format!("/api/v1/statuses/{}", closed["id"].as_str().unwrap());
    let edited = ada.call(&world, "PUT", &path, &[("status", "y")]).await;
    assert_eq!(edited["quote_approval"]["automatic"], json!([]));
    let later = [("status", "later"), ("quoted_status_id", post.as_str())];
    let later = [&later[..], &[("scheduled_at", "2034-01-01T00:00:00Z")]].concat();
    let later = bob.call(&world, "POST", "/api/v1/statuses", &later).await;
    assert_eq!(later["params"]["quoted_status_id"], post.as_str());
    assert_eq!(later["params"]["quote_approval_policy"], "public");
}

#[tokio::test]
async fn a_quote_is_revoked_by_the_quoted_author_alone_and_stays_so() {
    let world = World::new();
    let [ada, bob, cyd] = world.people(["ada", "bob", "cyd"]).await;
    let post = ada.post(&world, "a post").await;
    let other = ada.post(&world, "another").await;
    let quote = bob.quote(&world, &post, &[]).await["id"].clone();
    let id = quote.as_str().unwrap();
    let kinds = async |who: &Person| {
        let found = who.get(&world, "/api/v1/notifications").await;
        let found = found.as_array().unwrap().iter();
        found.map(|it| (it["type"].clone(), it["status"]["id"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&ada).await, [(json!("quote"), quote.clone())]);
    let revoke = |of: &str| format!("/api/v1/statuses/{of}/quotes/{id}/revoke");
    for (who, of) in [(&bob, &post), (&cyd, &post), (&ada, &other)] {
        let got = world.call("POST", &revoke(of), Some(&who.token), &[]).await;
        assert_eq!(got.status.as_u16(), 404, "{got:?}");
    }
    assert_eq!(cyd.status(&world, &quote).await["quote"]["state"], "accepted");
    ada.call(&world, "PUT", &format!("/api/v1/statuses/{post}"), &[("status", "edited")]).await;
    world.do_due().await;
    assert_eq!(kinds(&bob).await, [(json!("quoted_update"), quote.clone())]);
    // The author of the quoted status can also revoke a quote by a user whom they have blocked since.
    ada.does(&world, "block", &bob).await;
    let revoked = ada.call(&world, "POST", &revoke(&post), &[]).await;
    assert_eq!((&revoked["id"], &revoked["content"]), (&quote, &json!("")));
    ada.does(&world, "unblock", &bob).await;
    let shown = cyd.status(&world, &quote).await;
    assert_eq!(shown["quote"], json!({"state": "revoked", "quoted_status": null}));
    assert_eq!(shown["edited_at"], Value::Null);
    assert!(!shown.to_string().contains(&post));
    assert!(kinds(&ada).await.is_empty() && kinds(&bob).await.is_empty());
    let path = format!("/api/v1/statuses/{post}/quotes");
    assert!(ids(&cyd.get(&world, &path).await).is_empty());
    assert_eq!(cyd.status(&world, &json!(post)).await["quotes_count"], 0);
    let path = format!("/api/v1/statuses/{id}");
    let again = [("status", "again"), ("quoted_status_id", other.as_str())];
    let got = world.call("PUT", &path, Some(&bob.token), &again).await;
    assert_eq!(got.status.as_u16(), 422, "another quote: {got:?}");
    let again = [("status", "again"), ("quoted_status_id", post.as_str())];
    bob.call(&world, "PUT", &path, &again).await;
    assert_eq!(cyd.status(&world, &quote).await["quote"]["state"], "revoked");
}

#[tokio::test]
async fn a_status_that_is_quoted_at_once_does_not_count_as_untouched() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let post = ada.post(&world, "a post").await;
    let id = PostId(post.parse().unwrap());
    assert!(world.node.try_new_post(id).is_some());
    bob.quote(&world, &post, &[]).await;
    assert!(world.node.try_new_post(id).is_none());
}

#[tokio::test]
async fn changes_of_who_may_quote_are_limited_like_edits() {
    let world = World::with(|options| {
        options.rates.posts = Rate { times: 2, within: Duration::from_secs(300) };
    });
    let [ada] = world.people(["ada"]).await;
    let post = ada.post(&world, "a post").await;
    let path = format!("/api/v1/statuses/{post}/interaction_policy");
    let allow = async |policy| {
        let fields = [("quote_approval_policy", policy)];
        world.call("PUT", &path, Some(&ada.token), &fields).await.status.as_u16()
    };
    assert_eq!([allow("nobody").await, allow("public").await], [200, 429]);
}
