//! Pages of statuses and accounts, and the links between them.

use axum::http::header::LINK;

use crate::client::{Got, Person, World, ids};

/// URL of a link, without the server.
fn link(got: &Got, rel: &str) -> Option<String> {
    let links = got.headers.get(LINK)?.to_str().unwrap().to_owned();
    let end = format!("; rel=\"{rel}\"");
    let url = links.split(", ").find_map(|link| link.strip_suffix(&end).map(str::to_owned))?;
    let url = url.strip_prefix('<').unwrap().strip_suffix('>').unwrap();
    Some(url.strip_prefix("https://social.example").unwrap().to_owned())
}

/// Follows the links `rel` from `path` on; returns the ids of each page.
async fn walk(world: &World, person: &Person, path: &str, rel: &str) -> Vec<Vec<String>> {
    let (mut pages, mut path) = (Vec::new(), Some(path.to_owned()));
    while let Some(next) = path {
        let got = world.get(&next, Some(&person.token)).await;
        assert_eq!(got.status.as_u16(), 200, "{next}: {got:?}");
        let found = ids(&got.json());
        path = link(&got, rel).filter(|_| !found.is_empty());
        pages.push(found);
    }
    pages
}

#[tokio::test]
async fn links_lead_through_all_statuses_downwards_and_upwards() {
    let world = World::new();
    let [ada, bob, eve] = world.people(["ada", "bob", "eve"]).await;
    let mut posts = Vec::new();
    for number in 0..7 {
        posts.push(ada.post(&world, &format!("number {number}")).await);
        // The reply is omitted from lists without replies, and from the timeline of all users.
        if number == 3 {
            let by_eve = eve.post(&world, "mine").await;
            ada.reply(&world, &by_eve, "a reply").await;
            eve.call(&world, "DELETE", &format!("/api/v1/statuses/{by_eve}"), &[]).await;
        }
    }
    posts.reverse();
    bob.does(&world, "follow", &ada).await;
    let own = format!("/api/v1/accounts/{}/statuses?exclude_replies=true&limit=3", ada.id);
    let public = "/api/v1/timelines/public?local=true&limit=3".to_owned();
    for path in [own, public] {
        let pages = walk(&world, &bob, &path, "next").await;
        assert_eq!(pages.concat(), posts, "{path}");
        assert!(pages.iter().all(|page| page.len() <= 3) && pages.len() <= 4, "{pages:?}");
        let up = format!("{path}&min_id={}", posts[6]);
        let pages = walk(&world, &bob, &up, "prev").await;
        let read: Vec<_> = pages.iter().rev().flatten().cloned().collect();
        assert_eq!(read, posts[..6], "{up}");
        assert_eq!(pages[0], posts[3..6], "the page directly above: {up}");
    }
    let home = "/api/v1/timelines/home?limit=3";
    assert_eq!(walk(&world, &bob, home, "next").await.concat(), posts);
    for (query, expect) in [
        (format!("since_id={}", posts[2]), &posts[..2]),
        (format!("max_id={}", posts[2]), &posts[3..]),
        (format!("max_id={}&since_id={}", posts[1], posts[5]), &posts[2..5]),
        (format!("max_id={}&min_id={}", posts[1], posts[5]), &posts[2..5]),
        ("limit=2".to_owned(), &posts[..2]),
        ("limit=1000000".to_owned(), &posts[..]),
        ("max_id=0".to_owned(), &posts[..0]),
    ] {
        for path in ["/api/v1/timelines/home", "/api/v1/timelines/public"] {
            let got = world.get(&format!("{path}?{query}"), Some(&bob.token)).await;
            assert_eq!(ids(&got.json()), expect, "{path} {query}");
            // With `since_id`, no link leads to the next page, since no page has older items.
            let leads_on = link(&got, "next").is_some();
            assert!(!(leads_on && query.contains("since_id")), "{path} {query}");
        }
    }
    for bad in ["max_id=x", "min_id=1&min_id=2"] {
        let got = world.get(&format!("/api/v1/timelines/home?{bad}"), Some(&bob.token)).await;
        assert!(got.status.is_client_error(), "{bad}: {got:?}");
    }
}

#[tokio::test]
async fn links_lead_through_all_followers() {
    let world = World::new();
    let [ada, bob, eve, max] = world.people(["ada", "bob", "eve", "max"]).await;
    for other in [&bob, &eve, &max] {
        other.does(&world, "follow", &ada).await;
        ada.does(&world, "follow", other).await;
    }
    let expect = [&max, &eve, &bob].map(|person| person.id.clone());
    for list in ["followers", "following"] {
        let path = format!("/api/v1/accounts/{}/{list}?limit=2", ada.id);
        let pages = walk(&world, &ada, &path, "next").await;
        assert_eq!(pages.concat(), expect, "{list}");
        assert_eq!(pages[0].len(), 2);
    }
}

#[tokio::test]
async fn lists_of_ids_are_bounded() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let many = |count: usize| (0..count).map(|id| format!("id[]={id}&")).collect::<String>();
    let few = [(100, 200), (101, 422), (300, 422), (600, 414)];
    let more = [(100, 200), (300, 200), (400, 200), (401, 414), (600, 414)];
    for (path, counts) in [
        ("/api/v1/accounts", &few[..]),
        ("/api/v1/statuses", &few),
        ("/api/v1/accounts/relationships", &more),
        ("/api/v1/accounts/familiar_followers", &more),
    ] {
        for (count, expect) in counts.iter().copied() {
            let got = world.get(&format!("{path}?{}", many(count)), Some(&ada.token)).await;
            assert_eq!(got.status.as_u16(), expect, "{path} {count}");
        }
        let got =
            world.get(&format!("{path}?id[]=x&id=-1&id[]=99999999999"), Some(&ada.token)).await;
        assert_eq!(got.text, "[]", "{path}");
    }
}
