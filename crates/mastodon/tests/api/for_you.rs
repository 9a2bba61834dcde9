//! The list "For You": the ranked feed as a timeline that apps page with ids of statuses.

use serde_json::json;

use crate::client::{Person, TestClock, World, ids};

/// Id of the list.
pub(crate) const FOR_YOU: &str = "1";
const PATH: &str = "/api/v1/timelines/list/1";
const MINUTE_MS: u64 = 60_000;

/// Ada follows three users with four posts each, of which the feed shows two.
async fn world() -> (World, TestClock, Person, Vec<String>) {
    let (world, clock) = World::with_clock();
    let [ada, bob, cyd, dan] = world.people(["ada", "bob", "cyd", "dan"]).await;
    let mut posts = Vec::new();
    for author in [&bob, &cyd, &dan] {
        ada.does(&world, "follow", author).await;
        for number in 0..4 {
            posts.push(author.post(&world, &number.to_string()).await);
        }
    }
    (world, clock, ada, posts)
}

async fn page(world: &World, reader: &Person, query: &str) -> (Vec<String>, Option<String>) {
    let got = world.get(&format!("{PATH}?{query}"), Some(&reader.token)).await;
    assert_eq!(got.status.as_u16(), 200, "{got:?}");
    let link = got.headers.get("link").map(|links| links.to_str().unwrap().to_owned());
    (ids(&got.json()), link)
}

#[tokio::test]
async fn pages_follow_the_ranking_by_the_last_status_and_by_links() {
    let (world, _, ada, posts) = world().await;
    let [fan, other] = world.people(["fan", "other"]).await;
    for reader in [&fan, &other] {
        let path = format!("/api/v1/statuses/{}/favourite", posts[0]);
        reader.call(&world, "POST", &path, &[]).await;
    }
    let (first, link) = page(&world, &ada, "limit=2").await;
    let link = link.unwrap();
    let (start, end) = (&first[0], &first[1]);
    assert_eq!(start, &posts[0], "the most popular one, not the newest");
    assert!(link.contains(&format!("list/1?limit=2&max_id={end}>; rel=\"next\"")), "{link}");
    assert!(link.contains(&format!("list/1?limit=2&min_id={start}>; rel=\"prev\"")), "{link}");
    let mut all = first.clone();
    for _ in 0..2 {
        let query = format!("limit=2&max_id={}", all.last().unwrap());
        let (next, _) = page(&world, &ada, &query).await;
        // A repeated request has the same page.
        assert_eq!(page(&world, &ada, &query).await.0, next);
        assert_eq!(next.len(), 2, "{all:?}");
        all.extend(next);
    }
    let (none, link) = page(&world, &ada, &format!("max_id={}", all[5])).await;
    assert_eq!((none, link), (Vec::new(), None), "the end");
    let (rest, link) = page(&world, &ada, &format!("max_id={start}")).await;
    assert_eq!(rest, all[1..], "after any status");
    assert!(!link.unwrap().contains("next"));
    let mut sorted = all.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), 6, "no status twice");
    assert!(all.iter().all(|post| posts.contains(post)));
    // Statuses that the ranking lacks, and another user's rankings, continue nothing.
    let left_out = posts.iter().find(|post| !all.contains(post)).unwrap();
    for (reader, id) in [(&ada, left_out.as_str()), (&ada, "77"), (&ada, "0")] {
        assert_eq!(page(&world, reader, &format!("max_id={id}")).await.0, [""; 0], "{id}");
    }
    let [eve] = world.people(["eve"]).await;
    assert_eq!(page(&world, &eve, &format!("max_id={start}")).await.0, [""; 0]);
}

#[tokio::test]
async fn a_request_for_newer_statuses_makes_a_new_ranking_after_a_minute() {
    let (world, clock, ada, _) = world().await;
    let (first, _) = page(&world, &ada, "limit=3").await;
    let [start, end] = [&first[0], &first[2]];
    for newer in ["since_id", "min_id"] {
        let query = format!("{newer}={start}");
        assert_eq!(page(&world, &ada, &query).await, (Vec::new(), None), "nothing is newer");
    }
    clock.pass(MINUTE_MS);
    let (newer, link) = page(&world, &ada, &format!("min_id={start}&limit=3")).await;
    assert!(newer.iter().all(|post| !first.contains(post)), "{newer:?} {first:?}");
    assert!(link.unwrap().contains(&format!("max_id={}>; rel=\"next\"", newer[2])));
    assert_eq!(page(&world, &ada, &format!("since_id={}", newer[0])).await.0, [""; 0], "an end");
    // An app that has put the new page above the first one continues the first ranking.
    assert_eq!(page(&world, &ada, &format!("limit=3&max_id={end}")).await.0.len(), 3);
    clock.pass(11 * MINUTE_MS);
    assert_eq!(page(&world, &ada, &format!("max_id={end}")).await.0, [""; 0], "expired");
    assert_eq!(page(&world, &ada, "").await.0.len(), 6);
}

#[tokio::test]
async fn the_timeline_has_only_what_the_reader_may_see_and_wants() {
    let world = World::new();
    let [ada, bob, cyd, dan, eve] = world.people(["ada", "bob", "cyd", "dan", "eve"]).await;
    for author in [&bob, &cyd] {
        ada.does(&world, "follow", author).await;
    }
    let shown = bob.post(&world, "shown").await;
    let followers = [("status", "to followers"), ("visibility", "private")];
    let of_bob = bob.call(&world, "POST", "/api/v1/statuses", &followers).await;
    dan.call(&world, "POST", "/api/v1/statuses", &followers).await;
    let direct = [("status", "@ada psst"), ("visibility", "direct")];
    bob.call(&world, "POST", "/api/v1/statuses", &direct).await;
    for author in [&ada, &cyd, &eve] {
        author.post(&world, "hidden").await;
    }
    ada.does(&world, "mute", &cyd).await;
    eve.does(&world, "block", &ada).await;
    let mut found = page(&world, &ada, "").await.0;
    found.sort();
    assert_eq!(found, [shown.as_str(), of_bob["id"].as_str().unwrap()]);
    ada.does(&world, "block", &bob).await;
    // A page of a ranking of before.
    assert_eq!(page(&world, &ada, &format!("max_id={}", found[0])).await.0, [""; 0]);
    assert_eq!(page(&world, &ada, &format!("max_id={}", found[1])).await.0, [""; 0]);
}

#[tokio::test]
async fn the_list_has_no_members_and_cannot_be_changed() {
    let (world, _, ada, _) = world().await;
    let entity =
        json!({"id": "1", "title": "For You", "replies_policy": "followed", "exclusive": false});
    let lists = ada.get(&world, "/api/v1/lists").await;
    let bob = ada.ids(&world, "/api/v1/accounts/search?q=bob").await.swap_remove(0);
    for (method, path, fields) in [
        ("PUT", "", &[("title", "Mine")][..]),
        ("DELETE", "", &[]),
        ("POST", "/accounts", &[("account_ids[]", bob.as_str())]),
        ("DELETE", "/accounts", &[("account_ids[]", bob.as_str())]),
    ] {
        let path = format!("/api/v1/lists/1{path}");
        let got = world.call(method, &path, Some(&ada.token), fields).await;
        let error = "Validation failed: the list For You cannot be changed or deleted";
        assert_eq!((got.status.as_u16(), got.json()), (422, json!({"error": error})), "{method}");
    }
    assert_eq!(ada.get(&world, "/api/v1/lists/1").await, entity);
    assert_eq!(lists, json!([entity]));
    for path in ["/api/v1/lists/1/accounts", "/api/v1/lists/1/accounts?limit=0"] {
        assert_eq!(ada.get(&world, path).await, json!([]), "{path}");
    }
    assert_eq!(ada.get(&world, &format!("/api/v1/accounts/{bob}/lists")).await, json!([]));
}
