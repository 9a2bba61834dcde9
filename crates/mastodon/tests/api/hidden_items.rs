//! Pages of lists whose first items are hidden or filtered out: no page is empty while more items follow.

use serde_json::json;

use crate::client::{Person, World, ids};

/// Ids on a page of one item.
async fn one(world: &World, reader: &Person, path: &str) -> Vec<String> {
    let mark = if path.contains('?') { '&' } else { '?' };
    ids(&reader.get(world, &format!("{path}{mark}limit=1")).await)
}

async fn react(world: &World, user: &Person, post: &str, what: &str) {
    user.call(world, "POST", &format!("/api/v1/statuses/{post}/{what}"), &[]).await;
}

#[tokio::test]
async fn no_page_is_empty_while_there_is_something_to_show() {
    let world = World::new();
    let [ada, bob, cyd, eve] = world.people(["ada", "bob", "cyd", "eve"]).await;
    for (user, other) in [(&cyd, &bob), (&eve, &bob), (&ada, &bob), (&cyd, &ada)] {
        user.does(&world, "follow", other).await;
    }
    let list = ada.call(&world, "POST", "/api/v1/lists", &[("title", "friends")]).await;
    let list = list["id"].as_str().unwrap().to_owned();
    let members = [("account_ids[]", bob.id.as_str())];
    ada.call(&world, "POST", &format!("/api/v1/lists/{list}/accounts"), &members).await;
    let of_bob = bob.post(&world, "by bob").await;
    let of_cyd = cyd.post(&world, "by cyd for @ada").await;
    let of_eve = eve.post(&world, "by eve, who is hidden later").await;
    for user in [&cyd, &eve] {
        react(&world, user, &of_bob, "favourite").await;
        react(&world, user, &of_bob, "reblog").await;
    }
    for post in [&of_cyd, &of_eve] {
        react(&world, &ada, post, "favourite").await;
        react(&world, &ada, post, "bookmark").await;
    }
    react(&world, &bob, &of_eve, "reblog").await;
    for _ in 0..3 {
        let reply = [("status", "a reply"), ("in_reply_to_id", of_cyd.as_str())];
        bob.call(&world, "POST", "/api/v1/statuses", &reply).await;
        let direct = [("status", "to nobody"), ("visibility", "direct")];
        bob.call(&world, "POST", "/api/v1/statuses", &direct).await;
        eve.post(&world, "from eve to @ada").await;
    }
    eve.does(&world, "block", &ada).await;
    let profile = format!("/api/v1/accounts/{}", bob.id);
    let status = format!("/api/v1/statuses/{of_bob}");
    for (path, expected) in [
        (format!("{profile}/followers"), &cyd.id),
        (format!("{status}/favourited_by"), &cyd.id),
        (format!("{status}/reblogged_by"), &cyd.id),
        ("/api/v1/favourites".to_owned(), &of_cyd),
        ("/api/v1/bookmarks".to_owned(), &of_cyd),
        ("/api/v1/timelines/home".to_owned(), &of_bob),
        (format!("/api/v1/timelines/list/{list}"), &of_bob),
        (format!("{profile}/statuses?exclude_replies=true&exclude_reblogs=true"), &of_bob),
        ("/api/v1/timelines/public".to_owned(), &of_cyd),
    ] {
        assert_eq!(one(&world, &ada, &path).await, std::slice::from_ref(expected), "{path}");
    }
    let found = ada.get(&world, "/api/v1/notifications?limit=1&types[]=follow").await;
    assert_eq!((&found[0]["type"], &found[0]["account"]["id"]), (&json!("follow"), &json!(cyd.id)));
    let found = ada.get(&world, "/api/v1/notifications?limit=1&types[]=mention").await;
    assert_eq!(found[0]["status"]["id"], json!(of_cyd), "mentions by eve use no place");
    let path =
        format!("/api/v1/notifications?limit=1&account_id={}&exclude_types[]=mention", cyd.id);
    assert_eq!(ada.get(&world, &path).await[0]["type"], "follow");
    let count = ada.get(&world, "/api/v1/notifications/unread_count?types[]=follow&limit=1").await;
    assert_eq!(count, json!({"count": 1}));
}

#[tokio::test]
async fn the_profile_of_somebody_whom_one_blocks_loads() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    bob.post(&world, "#things by bob").await;
    bob.call(&world, "POST", "/api/v1/featured_tags", &[("name", "things")]).await;
    ada.does(&world, "block", &bob).await;
    let profile = format!("/api/v1/accounts/{}", bob.id);
    assert_eq!(ada.get(&world, &profile).await["id"], json!(bob.id));
    for (path, number) in [
        ("statuses", 0),
        ("statuses?pinned=true", 0),
        ("featured_tags", 1),
        ("followers", 0),
        ("following", 0),
    ] {
        let found = ada.get(&world, &format!("{profile}/{path}")).await;
        assert_eq!(found.as_array().map(Vec::len), Some(number), "{path}");
    }
    // The blocking user does not exist for the blocked user.
    let of_ada = format!("/api/v1/accounts/{}", ada.id);
    for path in ["", "/statuses", "/featured_tags", "/followers", "/following"] {
        let got = world.get(&format!("{of_ada}{path}"), Some(&bob.token)).await;
        assert_eq!(got.status.as_u16(), 404, "{path}");
    }
}
