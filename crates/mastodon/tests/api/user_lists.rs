//! Lists of users, and their timelines.

use serde_json::json;

use crate::client::{Person, World, ids};
use crate::for_you::FOR_YOU;

async fn create(world: &World, owner: &Person, fields: &[(&str, &str)]) -> String {
    let list = owner.call(world, "POST", "/api/v1/lists", fields).await;
    list["id"].as_str().unwrap().to_owned()
}

async fn add(world: &World, owner: &Person, list: &str, members: &[&Person]) {
    let fields: Vec<_> = members.iter().map(|who| ("account_ids[]", who.id.as_str())).collect();
    owner.call(world, "POST", &format!("/api/v1/lists/{list}/accounts"), &fields).await;
}

#[tokio::test]
async fn lists_are_created_changed_and_deleted() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let one = create(&world, &ada, &[("title", " Friends ")]).await;
    let fields = [("title", "News"), ("replies_policy", "none"), ("exclusive", "false")];
    let two = create(&world, &ada, &fields).await;
    let entity = |id: &str, title: &str, replies: &str| json!({"id": id, "title": title, "replies_policy": replies, "exclusive": false});
    let all = ada.get(&world, "/api/v1/lists").await;
    let for_you = entity(FOR_YOU, "For You", "followed");
    assert_eq!(
        all,
        json!([for_you, entity(&one, "Friends", "list"), entity(&two, "News", "none")])
    );
    let path = format!("/api/v1/lists/{one}");
    for (fields, title, replies) in [
        (&[("replies_policy", "followed")][..], "Friends", "followed"),
        (&[("title", "Best friends")], "Best friends", "followed"),
        (&[], "Best friends", "followed"),
    ] {
        let changed = ada.call(&world, "PUT", &path, fields).await;
        assert_eq!(changed, entity(&one, title, replies), "{fields:?}");
        assert_eq!(ada.get(&world, &path).await, changed);
    }
    for fields in [
        &[("title", "")][..],
        &[("title", &"x".repeat(256))],
        &[("title", "x"), ("replies_policy", "some")],
        &[("title", "x"), ("exclusive", "true")],
    ] {
        for (method, path) in [("POST", "/api/v1/lists"), ("PUT", &path)] {
            let got = world.call(method, path, Some(&ada.token), fields).await;
            assert_eq!(got.status.as_u16(), 422, "{fields:?} {got:?}");
        }
    }
    let got = world.post("/api/v1/lists", Some(&ada.token), &[]).await;
    assert_eq!(got.status.as_u16(), 422, "{got:?}");
    assert_eq!(ada.call(&world, "DELETE", &path, &[]).await, json!({}));
    assert_eq!(ids(&ada.get(&world, "/api/v1/lists").await), [FOR_YOU, &two]);
}

#[tokio::test]
async fn members_are_users_whom_one_follows_and_are_listed_in_pages() {
    let world = World::new();
    let names = ["ada", "bob", "cy", "dan", "eve"];
    let [ada, bob, cy, dan, eve] = world.people(names).await;
    for other in [&bob, &cy, &dan] {
        ada.does(&world, "follow", other).await;
    }
    let list = create(&world, &ada, &[("title", "x")]).await;
    let path = format!("/api/v1/lists/{list}/accounts");
    add(&world, &ada, &list, &[&bob, &cy]).await;
    add(&world, &ada, &list, &[&cy, &dan]).await;
    // Users who do not exist are refused like users who are not followed.
    let mut refused = Vec::new();
    for id in [eve.id.as_str(), "77", "x", ada.id.as_str()] {
        let fields = [("account_ids[]", dan.id.as_str()), ("account_ids[]", id)];
        let got = world.post(&path, Some(&ada.token), &fields).await;
        assert_eq!(got.status.as_u16(), 404, "{id}: {got:?}");
        refused.push(got.text);
    }
    assert!(refused.windows(2).all(|two| two[0] == two[1]));
    let all = [dan.id.clone(), cy.id.clone(), bob.id.clone()];
    assert_eq!(ada.ids(&world, &path).await, all);
    assert_eq!(ada.ids(&world, &format!("{path}?limit=0")).await, all);
    let first = world.get(&format!("{path}?limit=2"), Some(&ada.token)).await;
    assert_eq!(ids(&first.json()), all[..2]);
    let link = first.headers["link"].to_str().unwrap();
    assert!(link.contains(&format!("{path}?limit=2&max_id={}>; rel=\"next\"", cy.id)), "{link}");
    assert_eq!(ada.ids(&world, &format!("{path}?max_id={}", cy.id)).await, all[2..]);
    assert_eq!(ada.ids(&world, &format!("{path}?min_id={}&limit=1", bob.id)).await, all[1..2]);
    let with = format!("/api/v1/accounts/{}/lists", cy.id);
    assert_eq!(ada.ids(&world, &with).await, std::slice::from_ref(&list));
    assert_eq!(bob.get(&world, &with).await, json!([]));
    ada.call(&world, "DELETE", &path, &[("account_ids[]", &cy.id)]).await;
    ada.does(&world, "unfollow", &bob).await;
    ada.does(&world, "follow", &bob).await;
    assert_eq!(ada.ids(&world, &path).await, all[..1]);
    assert_eq!(ada.get(&world, &with).await, json!([]));
    let many: Vec<_> = (0..101).map(|_| ("account_ids[]", dan.id.as_str())).collect();
    let got = world.post(&path, Some(&ada.token), &many).await;
    assert_eq!(got.status.as_u16(), 422, "{got:?}");
}

#[tokio::test]
async fn the_timeline_of_a_list_has_the_posts_of_its_members() {
    let world = World::new();
    let [ada, bob, cy, dan] = world.people(["ada", "bob", "cy", "dan"]).await;
    for other in [&bob, &cy, &dan] {
        ada.does(&world, "follow", other).await;
    }
    let list = create(&world, &ada, &[("title", "x")]).await;
    add(&world, &ada, &list, &[&bob, &cy]).await;
    let path = format!("/api/v1/timelines/list/{list}");
    let mut posts: Vec<String> = Vec::new();
    for (who, text, parent) in [
        (&bob, "one", None),
        (&dan, "not a member", None),
        (&cy, "two", None),
        (&ada, "own", None),
        (&cy, "to a member", Some(0)),
        (&bob, "to somebody else", Some(1)),
        (&bob, "to the owner", Some(3)),
    ] {
        posts.push(match parent {
            Some(parent) => who.reply(&world, &posts[parent], text).await,
            None => who.post(&world, text).await,
        });
    }
    dan.call(&world, "POST", &format!("/api/v1/statuses/{}/reblog", posts[1]), &[]).await;
    bob.call(&world, "POST", &format!("/api/v1/statuses/{}/reblog", posts[2]), &[]).await;
    let shown = async |query: &str| ada.ids(&world, &format!("{path}{query}")).await;
    let expect = |of: &[usize]| of.iter().map(|at| posts[*at].clone()).collect::<Vec<_>>();
    assert_eq!(shown("").await, expect(&[6, 4, 2, 0]));
    let replies = async |policy: &str| {
        let fields = [("replies_policy", policy)];
        ada.call(&world, "PUT", &format!("/api/v1/lists/{list}"), &fields).await;
    };
    replies("followed").await;
    assert_eq!(shown("").await, expect(&[6, 5, 4, 2, 0]));
    replies("none").await;
    assert_eq!(shown("").await, expect(&[6, 2, 0]));
    assert_eq!(shown("?limit=1").await, expect(&[6]));
    let got = world.get(&format!("{path}?limit=1"), Some(&ada.token)).await;
    let link = got.headers["link"].to_str().unwrap();
    assert!(link.contains(&format!("limit=1&max_id={}", posts[6])), "{link}");
    assert_eq!(shown(&format!("?max_id={}", posts[6])).await, expect(&[2, 0]));
    assert_eq!(shown(&format!("?min_id={}&limit=1", posts[0])).await, expect(&[2]));
    ada.does(&world, "mute", &cy).await;
    assert_eq!(shown("").await, expect(&[6, 0]));
    ada.does(&world, "unmute", &cy).await;
    cy.does(&world, "block", &ada).await;
    assert_eq!(shown("").await, expect(&[6, 0]));
    // The timeline has a boost of a post by a user who is not in the list.
    bob.call(&world, "POST", &format!("/api/v1/statuses/{}/reblog", posts[1]), &[]).await;
    let newest = ada.get(&world, &format!("{path}?limit=1")).await;
    assert_eq!(newest[0]["reblog"]["id"], posts[1].as_str());
    ada.does(&world, "mute", &dan).await;
    assert_eq!(shown("").await, expect(&[6, 0]), "a mute hides boosts, too");
    let got = world.get(&path, Some(&bob.token)).await;
    assert_eq!((got.status.as_u16(), got.json()), (404, json!({"error": "Record not found"})));
    assert_eq!(bob.ids(&world, "/api/v1/lists").await, [FOR_YOU]);
}
