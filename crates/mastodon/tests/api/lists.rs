//! Lists: the content of pages, and paging without losses.

use crate::client::{Got, Person, World, ids};

/// Parameters of the URL of another page.
fn link(got: &Got, rel: &str) -> Option<String> {
    let links = got.headers.get("link")?.to_str().unwrap().split(", ");
    let link = links.filter_map(|link| link.strip_suffix(&format!(">; rel=\"{rel}\""))).next()?;
    Some(link.strip_prefix("<https://social.example").unwrap().to_owned())
}

/// Ids of all pages from `path` on, following the links `rel`.
async fn all_pages(world: &World, reader: &Person, path: &str, rel: &str) -> Vec<String> {
    let (mut found, mut next) = (Vec::new(), Some(path.to_owned()));
    for _ in 0..50 {
        let Some(path) = next else { break };
        let got = world.get(&path, Some(&reader.token)).await;
        assert_eq!(got.status.as_u16(), 200, "{got:?}");
        let page = ids(&got.json());
        next = link(&got, rel).filter(|_| rel == "next" || !page.is_empty());
        found.extend(page);
    }
    found
}

/// Publishes statuses with these fields.
async fn many(world: &World, author: &Person, count: usize, fields: &[(&str, &str)]) {
    for number in 0..count {
        let text = number.to_string();
        let fields = [&[("status", text.as_str())], fields].concat();
        author.call(world, "POST", "/api/v1/statuses", &fields).await;
    }
}

/// Publishes a status whose entity has about 20 kB.
async fn long(world: &World, author: &Person) -> String {
    let letters = || ('a'..='z').take(12);
    let tags = letters().flat_map(|one| letters().map(move |other| format!("#{one}{other}")));
    let tags: Vec<_> = tags.take(124).collect();
    author.post(world, &tags.join(" ")).await
}

#[tokio::test]
async fn statuses_that_nobody_sees_do_not_end_a_timeline() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let first = bob.post(&world, "first").await;
    let own = ada.post(&world, "own").await;
    many(&world, &ada, 1_040, &[("visibility", "direct")]).await;
    let timeline = "/api/v1/timelines/public?limit=40";
    assert_eq!(bob.ids(&world, timeline).await, [own.clone(), first.clone()], "nor delay it");
    let upwards = format!("{timeline}&min_id=1");
    assert_eq!(bob.ids(&world, &upwards).await, [own.clone(), first.clone()]);
    assert_eq!(all_pages(&world, &bob, timeline, "next").await, [own.clone(), first]);
    let profile = format!("/api/v1/accounts/{}/statuses", ada.id);
    assert_eq!(all_pages(&world, &bob, &profile, "next").await, [own.as_str()]);
    let upwards = format!("{profile}?min_id=1");
    assert_eq!(all_pages(&world, &bob, &upwards, "prev").await, [own]);
}

#[tokio::test]
async fn replies_that_nobody_sees_are_neither_counted_nor_end_a_thread() {
    let world = World::new();
    let [ada, bob, eve] = world.people(["ada", "bob", "eve"]).await;
    let root = ada.post(&world, "root").await;
    let hidden = [("visibility", "direct"), ("in_reply_to_id", root.as_str())];
    many(&world, &eve, 130, &hidden).await;
    let reply = ada.reply(&world, &root, "seen").await;
    let context = bob.get(&world, &format!("/api/v1/statuses/{root}/context")).await;
    assert_eq!(ids(&context["descendants"]), [reply]);
    let root = ada.post(&world, "root").await;
    for (number, visibility) in ["direct", "private", "unlisted", "public"].iter().enumerate() {
        let fields = [("visibility", *visibility), ("in_reply_to_id", root.as_str())];
        many(&world, &eve, 1, &fields).await;
        let status = bob.get(&world, &format!("/api/v1/statuses/{root}")).await;
        assert_eq!(status["replies_count"], number.saturating_sub(1), "{visibility}");
    }
}

#[tokio::test]
async fn what_does_not_fit_in_a_response_is_on_the_next_page_in_both_directions() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    bob.does(&world, "follow", &ada).await;
    let mut posts = Vec::new();
    for _ in 0..30 {
        let post = long(&world, &ada).await;
        for what in ["favourite", "bookmark"] {
            bob.call(&world, "POST", &format!("/api/v1/statuses/{post}/{what}"), &[]).await;
        }
        posts.insert(0, post);
    }
    for path in [
        "/api/v1/timelines/home",
        "/api/v1/timelines/public",
        "/api/v1/favourites",
        "/api/v1/bookmarks",
        &format!("/api/v1/accounts/{}/statuses", ada.id),
    ] {
        let path = format!("{path}?limit=40");
        let got = world.get(&path, Some(&bob.token)).await;
        assert!((256 << 10..320 << 10).contains(&got.text.len()), "{path}: {}", got.text.len());
        assert_eq!(all_pages(&world, &bob, &path, "next").await, posts, "{path}");
        let mut upwards = all_pages(&world, &bob, &format!("{path}&min_id=1"), "prev").await;
        upwards.sort();
        assert!(upwards.iter().eq(posts.iter().rev()), "{path}");
    }
    let ids: Vec<_> = posts.iter().map(|id| format!("id[]={id}&id[]={id}&id[]=0{id}")).collect();
    let got = world.get(&format!("/api/v1/statuses?{}", ids.join("&")), Some(&bob.token)).await;
    assert!(got.text.len() < 320 << 10, "{}", got.text.len());
    let found = crate::client::ids(&got.json());
    assert!(posts.starts_with(&found), "each once: {found:?}");
    // Notifications of bob's favourites contain the statuses.
    let notified = all_pages(&world, &ada, "/api/v1/notifications?limit=80", "next").await;
    assert_eq!(notified.len(), 31);
}

#[tokio::test]
async fn links_repeat_only_known_parameters() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    ada.post(&world, "x").await;
    let secret = "client_secret=s&access_token=s";
    let types = "&types[]=%FF&exclude_types[]=mention".repeat(100);
    let path = format!("/api/v1/timelines/public?limit=1&local=true&{secret}&x=%FF{types}");
    let got = world.get(&path, Some(&ada.token)).await;
    let header = got.headers["link"].to_str().unwrap();
    assert!(header.contains("limit=1&local=true&exclude_types%5B%5D=mention"), "{header}");
    assert!(!header.contains("s=s") && !header.contains("secret") && !header.contains("%EF"));
    assert!(header.len() < 8 << 10, "{}", header.len());
}
