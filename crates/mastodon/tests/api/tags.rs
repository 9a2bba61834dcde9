//! Hashtags: timelines, search, featured and followed hashtags.

use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use edge::BlockingReads;
use serde_json::{Value, json};

use crate::client::{Person, World, ids};

#[tokio::test]
async fn a_hashtag_timeline_has_the_public_posts_with_it_and_pages() {
    let world = World::new();
    let [ada, bob, eve] = world.people(["ada", "bob", "eve"]).await;
    let mut posts = Vec::new();
    for (who, text) in [
        (&ada, "#Rust"),
        (&bob, "#rust #fun"),
        (&ada, "#go"),
        (&bob, "@ada #rust"),
        (&eve, "#rust"),
    ] {
        posts.push(who.post(&world, text).await);
    }
    let unlisted = [("status", "#rust"), ("visibility", "unlisted")];
    ada.call(&world, "POST", "/api/v1/statuses", &unlisted).await;
    ada.does(&world, "block", &eve).await;
    let path = "/api/v1/timelines/tag";
    let (first, second) = (posts[0].as_str(), posts[1].as_str());
    for (query, expect) in [
        ("/rust", vec![3, 1, 0]),
        ("/RUST?local=true", vec![3, 1, 0]),
        ("/go", vec![2]),
        ("/go?any[]=fun", vec![2, 1]),
        ("/rust?all[]=fun", vec![1]),
        ("/rust?none[]=fun", vec![3, 0]),
        ("/rust?none[]=rust", vec![]),
        ("/rust?any[]=-&all[]=1&none[]=a%20b", vec![3, 1, 0]),
        ("/rust?remote=true", vec![]),
        ("/rust?only_media=true", vec![]),
        ("/nothing", vec![]),
        ("/1", vec![]),
        ("/rust?limit=2", vec![3, 1]),
        (&format!("/rust?max_id={second}"), vec![0]),
        (&format!("/rust?min_id={first}&limit=1"), vec![1]),
        (&format!("/rust?since_id={first}"), vec![3, 1]),
    ] {
        let expect: Vec<_> = expect.into_iter().map(|index: usize| posts[index].clone()).collect();
        assert_eq!(ada.ids(&world, &format!("{path}{query}")).await, expect, "{query}");
    }
    let got =
        world.get(&format!("{path}/go?limit=1&any[]=caf%C3%A9&any[]=fun"), Some(&ada.token)).await;
    let link = got.headers["link"].to_str().unwrap();
    assert!(link.contains("any%5B%5D=caf%C3%A9&any%5B%5D=fun&max_id="), "{link}");
    let long = format!("{path}/rust?none[]={}", "x".repeat(41));
    assert_eq!(world.get(&long, Some(&ada.token)).await.status.as_u16(), 422);
    let tagged = format!("/api/v1/accounts/{}/statuses?tagged=Rust", bob.id);
    assert_eq!(ada.ids(&world, &tagged).await, [posts[3].clone(), posts[1].clone()]);
}

#[tokio::test]
async fn an_edit_and_a_deletion_change_the_timeline() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let post = ada.post(&world, "#one #two").await;
    let path = format!("/api/v1/statuses/{post}");
    let found = async |tag: &str| ada.ids(&world, &format!("/api/v1/timelines/tag/{tag}")).await;
    ada.call(&world, "PUT", &path, &[("status", "#two #three")]).await;
    assert_eq!(found("one").await, Vec::<String>::new());
    assert_eq!(found("two").await, std::slice::from_ref(&post));
    assert_eq!(found("three").await, std::slice::from_ref(&post));
    ada.call(&world, "DELETE", &path, &[]).await;
    assert_eq!(found("two").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_hashtag_has_a_history_and_is_found_by_its_beginning_also_with_a_mistake() {
    let world = World::new();
    let [ada, bob, eve] = world.people(["ada", "bob", "eve"]).await;
    ada.post(&world, "#rust").await;
    ada.post(&world, "#rust #ruby").await;
    bob.post(&world, "#rust").await;
    eve.post(&world, "#rusty").await;
    eve.does(&world, "block", &ada).await;
    let tag = ada.get(&world, "/api/v1/tags/RUST").await;
    assert_eq!(
        (&tag["name"], &tag["url"]),
        (&json!("rust"), &json!("https://social.example/tags/rust"))
    );
    let history = tag["history"].as_array().unwrap();
    assert_eq!(history.len(), 7);
    assert_eq!((&history[0]["uses"], &history[0]["accounts"]), (&json!("3"), &json!("2")));
    assert_eq!((&history[1]["uses"], &history[6]["accounts"]), (&json!("0"), &json!("0")));
    let search = async |who: &Person, query: &str| -> Vec<Value> {
        let found = who.get(&world, &format!("/api/v2/search?{query}")).await;
        found["hashtags"].as_array().unwrap().iter().map(|tag| tag["name"].clone()).collect()
    };
    assert_eq!(search(&ada, "q=ru").await, ["ruby", "rust"], "a blocking user has posted #rusty");
    assert_eq!(search(&bob, "q=%23Rust&type=hashtags").await, ["rust", "rusty"]);
    assert_eq!(search(&bob, "q=ru&limit=1&offset=1").await, ["rust"]);
    assert_eq!(search(&bob, "q=rusti").await, ["rust", "rusty"]);
    assert_eq!(search(&ada, "q=rusti").await, ["rust"]);
    assert_eq!(search(&bob, "q=rsut&offset=1").await, ["rusty"]);
    assert_eq!(search(&bob, "q=ru&type=accounts").await, Vec::<Value>::new());
    for (name, expect) in [("rust", 200), ("unused", 200), ("1", 404), ("a-b", 404)] {
        let got = world.get(&format!("/api/v1/tags/{name}"), Some(&ada.token)).await;
        assert_eq!(got.status.as_u16(), expect, "{name}");
    }
}

#[tokio::test]
async fn a_profile_shows_hashtags_with_the_number_of_their_posts() {
    let world = World::new();
    let [ada, bob, eve] = world.people(["ada", "bob", "eve"]).await;
    for text in ["#rust", "#rust #go", "plain"] {
        ada.post(&world, text).await;
    }
    bob.post(&world, "#rust").await;
    let path = "/api/v1/featured_tags";
    let names = |list: &Value| -> Vec<String> {
        let names =
            list.as_array().unwrap().iter().map(|tag| tag["name"].as_str().unwrap().to_owned());
        names.collect()
    };
    assert_eq!(names(&ada.get(&world, &format!("{path}/suggestions")).await), ["rust", "go"]);
    let added = ada.call(&world, "POST", path, &[("name", "#Rust")]).await;
    assert_eq!((&added["name"], &added["statuses_count"]), (&json!("rust"), &json!("2")));
    assert!(added["last_status_at"].is_string(), "{added}");
    let tag = ada.call(&world, "POST", "/api/v1/tags/unused/feature", &[]).await;
    assert_eq!(tag["featuring"], true);
    assert_eq!(names(&ada.get(&world, &format!("{path}/suggestions")).await), ["go"]);
    let of_ada = format!("/api/v1/accounts/{}/featured_tags", ada.id);
    let shown = bob.get(&world, &of_ada).await;
    assert_eq!(names(&shown), ["rust", "unused"]);
    assert_eq!(
        (&shown[1]["statuses_count"], &shown[1]["last_status_at"]),
        (&json!("0"), &Value::Null)
    );
    assert_eq!(bob.get(&world, path).await, json!([]));
    ada.does(&world, "block", &eve).await;
    assert_eq!(world.get(&of_ada, Some(&eve.token)).await.status.as_u16(), 404);
    ada.call(&world, "POST", "/api/v1/tags/unused/unfeature", &[]).await;
    let one = format!("{path}/{}", ids(&ada.get(&world, path).await)[0]);
    for (who, expect) in [(&bob, 404), (&ada, 200), (&ada, 404)] {
        let got = world.call("DELETE", &one, Some(&who.token), &[]).await;
        assert_eq!(got.status.as_u16(), expect, "{got:?}");
    }
    assert_eq!(ada.get(&world, path).await, json!([]));
    for name in ["", "1", "a b"] {
        let got = world.call("POST", path, Some(&ada.token), &[("name", name)]).await;
        assert_eq!(got.status.as_u16(), 422, "{name:?}");
    }
    for number in 0..=10 {
        let name = format!("t{number}");
        let got = world.call("POST", path, Some(&ada.token), &[("name", name.as_str())]).await;
        assert_eq!(got.status.as_u16(), if number < 10 { 200 } else { 422 }, "{got:?}");
    }
}

#[tokio::test]
async fn posts_with_followed_hashtags_are_at_home() {
    let world = World::new();
    let [ada, bob, eve, max] = world.people(["ada", "bob", "eve", "max"]).await;
    ada.does(&world, "follow", &bob).await;
    let home = async || ada.ids(&world, "/api/v1/timelines/home").await;
    let by_bob = bob.post(&world, "by bob #rust").await;
    let by_eve = eve.post(&world, "by eve #Rust #go").await;
    let reply = [("status", "a reply #rust"), ("in_reply_to_id", by_eve.as_str())];
    let reply = max.call(&world, "POST", "/api/v1/statuses", &reply).await;
    let reply = reply["id"].as_str().unwrap().to_owned();
    let unlisted = [("status", "#rust"), ("visibility", "unlisted")];
    eve.call(&world, "POST", "/api/v1/statuses", &unlisted).await;
    eve.call(&world, "POST", &format!("/api/v1/statuses/{reply}/reblog"), &[]).await;
    let before = home().await;
    assert_eq!(before, std::slice::from_ref(&by_bob));
    let followed = ada.call(&world, "POST", "/api/v1/tags/Rust/follow", &[]).await;
    assert_eq!((&followed["name"], &followed["following"]), (&json!("rust"), &json!(true)));
    ada.call(&world, "POST", "/api/v1/tags/go/follow", &[]).await;
    assert_eq!(home().await, [reply.clone(), by_eve.clone(), by_bob.clone()]);
    let page = format!("/api/v1/timelines/home?limit=1&max_id={reply}");
    assert_eq!(ada.ids(&world, &page).await, std::slice::from_ref(&by_eve));
    let page = format!("/api/v1/timelines/home?limit=1&min_id={by_bob}");
    assert_eq!(ada.ids(&world, &page).await, std::slice::from_ref(&by_eve));
    ada.does(&world, "mute", &max).await;
    eve.does(&world, "block", &ada).await;
    assert_eq!(home().await, std::slice::from_ref(&by_bob));
    eve.does(&world, "unblock", &ada).await;
    for tag in ["go", "rust"] {
        assert_eq!(home().await, [by_eve.clone(), by_bob.clone()]);
        let path = format!("/api/v1/tags/{tag}/unfollow");
        assert_eq!(ada.call(&world, "POST", &path, &[]).await["following"], false);
    }
    assert_eq!(home().await, before);
}

#[tokio::test]
async fn followed_hashtags_are_listed_newest_first_in_pages() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    for tag in ["b", "c", "a", "b"] {
        ada.call(&world, "POST", &format!("/api/v1/tags/{tag}/follow"), &[]).await;
    }
    let path = "/api/v1/followed_tags";
    assert_eq!(ada.ids(&world, path).await, ["a", "c", "b"]);
    assert_eq!(bob.ids(&world, path).await, Vec::<String>::new());
    for (person, following) in [(&ada, true), (&bob, false)] {
        assert_eq!(person.get(&world, "/api/v1/tags/c").await["following"], following);
    }
    let (mut next, mut found) = (format!("{path}?limit=2"), Vec::new());
    loop {
        let got = world.get(&next, Some(&ada.token)).await;
        found.push(ids(&got.json()));
        let link = got.headers["link"].to_str().unwrap().to_owned();
        let Some((url, _)) = link.split_once(">; rel=\"next\"") else { break };
        next = format!("/api{}", url.split_once("/api").unwrap().1);
    }
    assert_eq!(found, [vec!["a", "c"], vec!["b"]]);
    for number in 3..=30 {
        let path = format!("/api/v1/tags/t{number}/follow");
        let got = world.call("POST", &path, Some(&ada.token), &[]).await;
        assert_eq!(got.status.as_u16(), if number < 30 { 200 } else { 422 }, "{got:?}");
    }
    for name in ["1", "a-b"] {
        let path = format!("/api/v1/tags/{name}/follow");
        let got = world.call("POST", &path, Some(&ada.token), &[]).await;
        assert_eq!(got.status.as_u16(), 404, "{name}");
    }
}

#[tokio::test]
async fn trends_are_the_hashtags_that_most_users_have_used_lately() {
    let (world, clock) = World::with_clock();
    let names = ["ada", "bob", "cyd", "eve", "fay"];
    let [ada, bob, cyd, eve, fay] = world.people(names).await;
    let names = |tags: &Value| {
        let tags = tags.as_array().unwrap().iter();
        tags.map(|tag| tag["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (who, text) in [(&ada, "#old"), (&bob, "#old")] {
        who.post(&world, text).await;
    }
    clock.pass(8 * 86_400_000);
    for (who, text) in [
        (&ada, "#two #three"),
        (&bob, "#three #two"),
        (&cyd, "#three #one #one"),
        (&cyd, "#one"),
        (&cyd, "#one again"),
        (&eve, "#pair"),
        (&fay, "#pair"),
    ] {
        who.post(&world, text).await;
    }
    for who in [&ada, &bob] {
        for visibility in ["unlisted", "private", "direct"] {
            let fields = [("status", "#hidden"), ("visibility", visibility)];
            who.call(&world, "POST", "/api/v1/statuses", &fields).await;
        }
    }
    let path = "/api/v1/trends/tags";
    // Trends are cached when all posts are loaded, in the background.
    while !world.node.knows_popular() {
        ada.get(&world, path).await;
    }
    let found = ada.get(&world, path).await;
    assert_eq!(names(&found), ["three", "pair", "two"], "posts of one user are no trend");
    assert_eq!(found[0]["history"][0]["accounts"], "3");
    for other in ["/api/v1/trends", "/api/v1/trends/tags?limit=20"] {
        assert_eq!(ada.get(&world, other).await, found, "{other}");
    }
    assert_eq!(world.get(path, None).await.json()[0]["name"], "three");
    assert_eq!(names(&ada.get(&world, &format!("{path}?limit=1&offset=1")).await), ["pair"]);
    // Posts of blocked users do not count for trends.
    for other in [&eve, &fay] {
        ada.does(&world, "block", other).await;
    }
    assert_eq!(names(&ada.get(&world, path).await), ["three", "two"]);
    assert_eq!(names(&bob.get(&world, path).await), ["three", "pair", "two"]);
    for who in [&ada, &bob, &cyd, &eve] {
        who.post(&world, "#new").await;
    }
    assert_eq!(
        names(&bob.get(&world, path).await)[0],
        "three",
        "trends are computed once a minute"
    );
    clock.pass(60_000);
    assert_eq!(names(&bob.get(&world, path).await)[0], "new");
}

#[tokio::test]
async fn popular_statuses_trend_and_authors_who_are_not_followed_are_suggested() {
    let world = World::new();
    let [ada, bob, cyd, eve] = world.people(["ada", "bob", "cyd", "eve"]).await;
    let popular = bob.post(&world, "popular").await;
    cyd.post(&world, "without reactions").await;
    let hidden = eve.post(&world, "by Eve").await;
    ada.does(&world, "block", &eve).await;
    for (who, post) in [(&eve, &popular), (&cyd, &popular), (&cyd, &hidden)] {
        who.call(&world, "POST", &format!("/api/v1/statuses/{post}/favourite"), &[]).await;
    }
    let trends = "/api/v1/trends/statuses";
    assert_eq!(ada.ids(&world, trends).await, [popular.as_str()]);
    assert_eq!(cyd.ids(&world, trends).await, [popular.as_str(), hidden.as_str()]);
    assert_eq!(cyd.ids(&world, &format!("{trends}?offset=1")).await, [hidden.as_str()]);
    assert_eq!(cyd.ids(&world, &format!("{trends}?offset=18446744073709551615")).await, [""; 0]);

    let suggested = async || {
        let mut ids = ada.ids(&world, "/api/v1/suggestions").await;
        ids.sort_unstable();
        let found = ada.get(&world, "/api/v2/suggestions").await;
        let accounts = found.as_array().unwrap().iter().map(|found| &found["account"]["id"]);
        let mut accounts: Vec<_> = accounts.map(|id| id.as_str().unwrap().to_owned()).collect();
        accounts.sort_unstable();
        assert_eq!(accounts, ids);
        ids
    };
    assert_eq!(suggested().await, [bob.id.as_str(), &cyd.id]);
    ada.does(&world, "follow", &bob).await;
    assert_eq!(suggested().await, [cyd.id.as_str()]);
    cyd.call(&world, "PATCH", "/api/v1/accounts/update_credentials", &[("discoverable", "false")])
        .await;
    assert_eq!(suggested().await, [""; 0]);
}

/// Short reads do not wait for long ones, however many there are.
#[tokio::test]
async fn reads_of_many_rows_have_a_lane_of_their_own() {
    let reads = BlockingReads::new(1);
    let world = World::with(|options| options.reads = reads.clone());
    let [ada, bob] = world.people(["ada", "bob"]).await;
    ada.post(&world, "#one").await;
    ada.get(&world, "/api/v1/timelines/home").await;
    // No long read is admitted from here on.
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let mut reading = Vec::new();
    loop {
        let wait = Arc::clone(&wait);
        let mut read = Box::pin(reads.run_listing(move |_| wait.lock().unwrap().recv().is_err()));
        if read.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            break;
        }
        reading.push(read);
    }
    let many: Vec<_> = (0..200).map(|id| format!("id[]={id}")).collect();
    let (many, bob) = (many.join("&"), &bob.id);
    for path in [
        "/api/v1/trends/tags".to_owned(),
        "/api/v1/trends".to_owned(),
        format!("/api/v1/accounts/familiar_followers?id[]={bob}"),
        format!("/api/v1/accounts/relationships?{many}"),
        "/api/v1/followed_tags".to_owned(),
        "/api/v1/featured_tags".to_owned(),
        format!("/api/v1/accounts/{bob}/featured_tags"),
        "/api/v1/featured_tags/suggestions".to_owned(),
        "/api/v1/timelines/tag/one?all[]=two".to_owned(),
        "/api/v2/search?q=one".to_owned(),
        "/api/v1/accounts/search?q=b".to_owned(),
        "/api/v1/directory".to_owned(),
    ] {
        assert_eq!(world.get(&path, Some(&ada.token)).await.status, 503, "{path}");
    }
    for path in [
        "/api/v1/timelines/home".to_owned(),
        "/api/v1/timelines/public".to_owned(),
        "/api/v1/timelines/tag/one".to_owned(),
        "/api/v1/tags/one".to_owned(),
        "/api/v1/notifications".to_owned(),
        format!("/api/v1/accounts/relationships?id[]={bob}"),
    ] {
        assert_eq!(world.get(&path, Some(&ada.token)).await.status, 200, "{path}");
    }
    drop(done);
}

/// Counts that strangers request often are computed once.
#[tokio::test]
async fn a_history_counts_new_posts_at_once_and_is_kept_otherwise() {
    let (world, clock) = World::with_clock();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let uses = async || {
        let tag = world.get("/api/v1/tags/one", Some(&ada.token)).await.json();
        tag["history"][0]["uses"].as_str().unwrap().to_owned()
    };
    assert_eq!(uses().await, "0");
    let first = ada.post(&world, "#one").await;
    bob.post(&world, "#one").await;
    assert_eq!(uses().await, "2");
    ada.call(&world, "DELETE", &format!("/api/v1/statuses/{first}"), &[]).await;
    clock.pass(61_000);
    assert_eq!(uses().await, "1");
    bob.post(&world, "#one again").await;
    assert_eq!(uses().await, "2");
    clock.pass(86_400_000);
    assert_eq!(uses().await, "0");
}
