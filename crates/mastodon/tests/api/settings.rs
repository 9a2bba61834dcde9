//! Settings of users for themselves and for their posts.

use axum::body::Body;
use axum::http::Request;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::{Value, json};

use crate::client::{Person, World};

const PATH: &str = "/api/v1/accounts/update_credentials";

impl Person {
    async fn set(&self, world: &World, fields: &[(&str, &str)]) -> Value {
        self.call(world, "PATCH", PATH, fields).await
    }

    async fn set_json(&self, world: &World, body: &Value) -> Value {
        let request = Request::patch(PATH).header(CONTENT_TYPE, "application/json");
        let request = request.header(AUTHORIZATION, format!("Bearer {}", self.token));
        let got = world.send(request.body(Body::from(body.to_string())).unwrap()).await;
        assert_eq!(got.status.as_u16(), 200, "{body}: {got:?}");
        got.json()
    }
}

#[tokio::test]
async fn what_a_user_says_about_themselves_is_shown_to_everybody() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let public = async || bob.get(&world, &format!("/api/v1/accounts/{}", ada.id)).await;
    for (name, before) in [("bot", false), ("discoverable", true), ("indexable", false)] {
        assert_eq!(public().await[name], before, "{name}");
        let after = ada.set(&world, &[(name, if before { "false" } else { "1" })]).await;
        assert_eq!((&after[name], &public().await[name]), (&json!(!before), &json!(!before)));
        // Absent fields do not change.
        ada.set(&world, &[("display_name", "Ada")]).await;
        assert_eq!(public().await[name], !before, "{name}");
        ada.set(&world, &[(name, if before { "on" } else { "false" })]).await;
        assert_eq!(public().await[name], before, "{name}");
    }
}

#[tokio::test]
async fn fields_of_a_profile_are_lists_or_have_numbers_and_are_replaced_together() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let field =
        |name: &str, value: &str| json!({"name": name, "value": value, "verified_at": null});
    let numbered = [
        ("fields_attributes[0][name]", "Web"),
        ("fields_attributes[0][value]", "https://a.example/<b>"),
        ("fields_attributes[1][name]", "<i>"),
        ("fields_attributes[1][value]", "me & you"),
        ("fields_attributes[2][name]", ""),
        ("fields_attributes[2][value]", ""),
    ];
    let me = ada.set(&world, &numbered).await;
    let plain = json!([field("Web", "https://a.example/<b>"), field("<i>", "me & you")]);
    assert_eq!(me["source"]["fields"], plain);
    let shown = bob.get(&world, &format!("/api/v1/accounts/{}", ada.id)).await;
    assert_eq!(shown["fields"], me["fields"]);
    let web = shown["fields"][0]["value"].as_str().unwrap();
    assert!(
        web.starts_with("<a href=\"https://a.example/\"") && web.ends_with("&lt;b&gt;"),
        "{web}"
    );
    assert_eq!(shown["fields"][1], field("<i>", "me &amp; you"));
    let me = ada.get(&world, "/api/v1/accounts/verify_credentials").await;
    assert_eq!(me["source"]["fields"], plain);
    let listed = [("fields_attributes[][name]", "a"), ("fields_attributes[][value]", "b")];
    assert_eq!(ada.set(&world, &listed).await["fields"], json!([field("a", "b")]));
    for (body, expect) in [
        (json!({"fields_attributes": [{"name": "c", "value": "d"}]}), json!([field("c", "d")])),
        (json!({"fields_attributes": {"0": {"name": "e"}}}), json!([field("e", "")])),
        (json!({"bot": false}), json!([field("e", "")])),
        (json!({"fields_attributes": []}), json!([])),
    ] {
        assert_eq!(ada.set_json(&world, &body).await["source"]["fields"], expect, "{body}");
    }
    let five: Vec<_> = (0..5).map(|_| ("fields_attributes[][name]", "x")).collect();
    let got = world.call("PATCH", PATH, Some(&ada.token), &five).await;
    assert_eq!(got.status.as_u16(), 422);
    assert!(got.text.contains("at most 4 fields"), "{got:?}");
}

#[tokio::test]
async fn a_new_post_has_the_defaults_of_its_author_where_the_app_says_nothing() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let shown = |status: &Value| {
        ["visibility", "sensitive", "language"].map(|name| status[name].clone()).to_vec()
    };
    let publish = async |more: &[(&str, &str)]| {
        let fields = [&[("status", "x")], more].concat();
        ada.call(&world, "POST", "/api/v1/statuses", &fields).await
    };
    let check = async |source: [Value; 4]| {
        let me = ada.get(&world, "/api/v1/accounts/verify_credentials").await;
        let names = ["privacy", "sensitive", "language", "quote_policy"];
        assert_eq!(names.map(|name| me["source"][name].clone()), source);
        let all = ada.get(&world, "/api/v1/preferences").await;
        let names = names.map(|name| name.replace("privacy", "visibility"));
        assert_eq!(names.map(|name| all[format!("posting:default:{name}")].clone()), source);
    };
    let [public, private] = ["public", "private"].map(|name| json!(name));
    check([public.clone(), json!(false), json!(null), public.clone()]).await;
    assert_eq!(shown(&publish(&[]).await), [public.clone(), json!(false), json!(null)]);
    let defaults = [
        ("source[privacy]", "private"),
        ("source[sensitive]", "true"),
        ("source[language]", "de-AT"),
        ("source[quote_policy]", "followers"),
    ];
    ada.set(&world, &defaults).await;
    let expect = [private.clone(), json!(true), json!("de")];
    check([private.clone(), json!(true), json!("de"), json!("followers")]).await;
    assert_eq!(shown(&publish(&[]).await), expect);
    let given = [("visibility", "public"), ("sensitive", "false"), ("language", "en")];
    let status = publish(&given).await;
    assert_eq!(shown(&status), [public.clone(), json!(false), json!("en")]);
    assert_eq!(status["quote_approval"]["automatic"], json!(["followers"]));
    let status = publish(&[given[0], ("quote_approval_policy", "public")]).await;
    assert_eq!(shown(&status), [public.clone(), json!(true), json!("de")]);
    assert_eq!(status["quote_approval"]["automatic"], json!(["public"]));
    // Each setting can be changed alone, and the language can be removed.
    ada.set_json(&world, &json!({"source": {"sensitive": false, "language": ""}})).await;
    check([private, json!(false), json!(null), json!("followers")]).await;
    let wrong = [("source[quote_policy]", "friends")];
    let got = world.call("PATCH", PATH, Some(&ada.token), &wrong).await;
    assert_eq!(got.status.as_u16(), 422);
}

#[tokio::test]
async fn a_retry_gives_the_first_post_although_the_defaults_are_others_by_then() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let once = async || {
        let key = [("idempotency-key", "k")];
        let fields = [("status", "x")];
        world.call_with("POST", "/api/v1/statuses", Some(&ada.token), &fields, &key).await.json()
    };
    let first = once().await;
    ada.set(&world, &[("source[privacy]", "unlisted")]).await;
    let again = once().await;
    assert_eq!((&again["id"], &again["visibility"]), (&first["id"], &json!("public")));
}

#[tokio::test]
async fn whoever_is_not_discoverable_is_not_in_the_directory() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let listed = async || ada.ids(&world, "/api/v1/directory").await;
    assert_eq!(listed().await, [&*bob.id, &ada.id]);
    bob.set(&world, &[("discoverable", "false")]).await;
    assert_eq!(listed().await, [&*ada.id]);
    // An exact name finds the user.
    assert_eq!(ada.ids(&world, "/api/v1/accounts/search?q=bob").await, [&*bob.id]);
    bob.set(&world, &[("discoverable", "true")]).await;
    assert_eq!(listed().await, [&*bob.id, &ada.id]);
}

#[tokio::test]
async fn markers_are_those_of_the_user_and_count_their_changes() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let path = "/api/v1/markers";
    let both = format!("{path}?timeline[]=home&timeline[]=notifications&timeline[]=other");
    assert_eq!(ada.get(&world, &both).await, json!({}));
    assert_eq!(ada.call(&world, "POST", path, &[]).await, json!({}));
    let set = ada.call(&world, "POST", path, &[("home[last_read_id]", "103")]).await;
    let time = set["home"]["updated_at"].as_str().unwrap().to_owned();
    let home = |id: &str, version: u32| json!({"last_read_id": id, "version": version});
    let without_times = |mut markers: Value| {
        for marker in markers.as_object_mut().unwrap().values_mut() {
            assert!(marker.as_object_mut().unwrap().remove("updated_at").is_some());
        }
        markers
    };
    assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
    assert_eq!(without_times(set), json!({"home": home("103", 0)}));
    let fields = [("home[last_read_id]", "102"), ("notifications[last_read_id]", "7")];
    let set = ada.call(&world, "POST", path, &fields).await;
    let expect = json!({"home": home("102", 1), "notifications": home("7", 0)});
    assert_eq!(without_times(set), expect);
    assert_eq!(without_times(ada.get(&world, &both).await), expect);
    let one = ada.get(&world, &format!("{path}?timeline[]=notifications")).await;
    assert_eq!(without_times(one), json!({"notifications": home("7", 0)}));
    assert_eq!(ada.get(&world, path).await, json!({}), "no timeline is requested");
    assert_eq!(bob.get(&world, &both).await, json!({}));
    for wrong in ["x", "-1", "18446744073709551616", "9223372036854775808"] {
        let fields = [("home[last_read_id]", wrong)];
        let got = world.call("POST", path, Some(&ada.token), &fields).await;
        assert_eq!(got.status.as_u16(), 422, "{wrong}");
    }
}

#[tokio::test]
async fn of_requests_that_change_a_marker_at_a_time_those_succeed_that_saw_the_last_change() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let set = async |id: u32| {
        let fields = [("home[last_read_id]", &*id.to_string())];
        world.call("POST", "/api/v1/markers", Some(&ada.token), &fields).await
    };
    let (mut successes, mut conflicts, mut next) = (0, 0, 0);
    while conflicts == 0 {
        for got in futures_util::future::join_all((next..next + 20).map(&set)).await {
            match got.status.as_u16() {
                200 => successes += 1,
                409 => conflicts += 1,
                other => panic!("{other}: {got:?}"),
            }
        }
        next += 20;
    }
    let all = ada.get(&world, "/api/v1/markers?timeline[]=home").await;
    assert_eq!(all["home"]["version"], successes - 1, "each success is one change");
}

#[tokio::test]
async fn a_marker_of_notifications_says_what_is_unread() {
    let world = World::new();
    let [ada, bob, cyd] = world.people(["ada", "bob", "cyd"]).await;
    let unread = async |query: &str| {
        let path = format!("/api/v1/notifications/unread_count?{query}");
        ada.get(&world, &path).await["count"].as_u64().unwrap()
    };
    assert_eq!(unread("").await, 0);
    bob.does(&world, "follow", &ada).await;
    let mention = bob.post(&world, "hi @ada").await;
    cyd.does(&world, "follow", &ada).await;
    assert_eq!(unread("").await, 3, "without a marker all are unread");
    assert_eq!(unread("limit=2").await, 2);
    assert_eq!(unread("types[]=follow").await, 2);
    assert_eq!(unread(&format!("account_id={}", bob.id)).await, 2);
    let fields = [("notifications[last_read_id]", mention.as_str())];
    ada.call(&world, "POST", "/api/v1/markers", &fields).await;
    assert_eq!((unread("").await, unread("exclude_types[]=follow").await), (1, 0));
}

#[tokio::test]
async fn a_note_about_a_user_is_shown_to_its_author_alone() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let path = format!("/api/v1/accounts/{}/note", bob.id);
    let shown = async |reader: &Person, about: &Person| {
        let path = format!("/api/v1/accounts/relationships?id[]={}", about.id);
        reader.get(&world, &path).await[0]["note"].clone()
    };
    let set = ada.call(&world, "POST", &path, &[("comment", " met in <Rome>\n")]).await;
    assert_eq!((&set["id"], &set["note"]), (&json!(bob.id), &json!("met in <Rome>")));
    assert_eq!(shown(&ada, &bob).await, "met in <Rome>");
    assert_eq!((shown(&bob, &ada).await, shown(&bob, &bob).await), (json!(""), json!("")));
    let long = "x".repeat(2_001);
    for (comment, status) in [(long.as_str(), 422), ("a\u{0}b", 422), (&long[1..], 200)] {
        let got = world.call("POST", &path, Some(&ada.token), &[("comment", comment)]).await;
        assert_eq!(got.status.as_u16(), status, "{} bytes", comment.len());
    }
    assert_eq!(shown(&ada, &bob).await, long[1..]);
    assert_eq!(ada.call(&world, "POST", &path, &[]).await["note"], "");
    // A blocked user does not see the blocking user, and so cannot change a note about them.
    ada.call(&world, "POST", &path, &[("comment", "x")]).await;
    bob.does(&world, "block", &ada).await;
    let got = world.call("POST", &path, Some(&ada.token), &[("comment", "y")]).await;
    assert_eq!(got.status.as_u16(), 404);
    bob.does(&world, "unblock", &ada).await;
    assert_eq!(shown(&ada, &bob).await, "x");
}

#[tokio::test]
async fn a_follow_of_a_locked_account_is_a_request_until_it_is_answered() {
    let world = World::new();
    let [ada, bob, cyd] = world.people(["ada", "bob", "cyd"]).await;
    assert_eq!(ada.set(&world, &[("locked", "true")]).await["locked"], true);
    let relation = async |reader: &Person, other: &Person| {
        let path = format!("/api/v1/accounts/relationships?id[]={}", other.id);
        let found = reader.get(&world, &path).await[0].clone();
        ["following", "requested", "requested_by", "followed_by"].map(|name| found[name] == true)
    };
    let requests = async || ada.ids(&world, "/api/v1/follow_requests").await;
    let notified = async || {
        let all = ada.get(&world, "/api/v1/notifications").await;
        let all = all.as_array().unwrap().clone().into_iter();
        all.map(|found| format!("{} {}", found["type"], found["account"]["acct"]))
            .collect::<Vec<_>>()
    };
    let asked = bob.does(&world, "follow", &ada).await;
    assert_eq!((&asked["following"], &asked["requested"]), (&json!(false), &json!(true)));
    cyd.does(&world, "follow", &ada).await;
    assert_eq!(relation(&ada, &bob).await, [false, false, true, false]);
    assert_eq!(requests().await, [&*cyd.id, &bob.id]);
    let me = ada.get(&world, "/api/v1/accounts/verify_credentials").await;
    assert_eq!(me["source"]["follow_requests_count"], 2);
    let both = ["\"follow_request\" \"cyd\"", "\"follow_request\" \"bob\""];
    assert_eq!(notified().await, both);
    let post = [("status", "for followers"), ("visibility", "private")];
    ada.call(&world, "POST", "/api/v1/statuses", &post).await;
    let home = async |reader: &Person| reader.ids(&world, "/api/v1/timelines/home").await.len();
    assert_eq!(home(&bob).await, 0);
    let answer = async |what: &str, other: &Person| {
        let path = format!("/api/v1/follow_requests/{}/{what}", other.id);
        world.call("POST", &path, Some(&ada.token), &[]).await
    };
    let accepted = answer("authorize", &bob).await.json();
    assert_eq!(
        (&accepted["followed_by"], &accepted["requested_by"]),
        (&json!(true), &json!(false))
    );
    assert_eq!((home(&bob).await, home(&cyd).await), (1, 0));
    assert_eq!(answer("reject", &cyd).await.json()["requested_by"], false);
    assert_eq!(requests().await.len(), 0);
    assert_eq!(notified().await, ["\"follow\" \"bob\""], "for the accepted follow");
    for (what, other) in [("authorize", &bob), ("reject", &cyd), ("authorize", &ada)] {
        assert_eq!(answer(what, other).await.status.as_u16(), 404, "{what}");
    }
    // Unlocking accepts no pending request.
    cyd.does(&world, "follow", &ada).await;
    ada.set(&world, &[("locked", "false")]).await;
    assert_eq!(relation(&cyd, &ada).await, [false, true, false, false]);
    cyd.does(&world, "follow", &ada).await;
    assert_eq!(relation(&cyd, &ada).await, [true, false, false, false]);
}
