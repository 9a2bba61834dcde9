//! Polls and scheduled statuses as apps see them, until polls end and statuses are published.

use axum::body::Body;
use axum::http::Request;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::{Value, json};

use crate::client::{Got, Person, World, ids};

const STATUSES: &str = "/api/v1/statuses";
const SCHEDULED: &str = "/api/v1/scheduled_statuses";

/// Fields of a status with a poll of two options.
fn asking<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let fields = [
        ("status", "well?"),
        ("poll[options][]", "yes"),
        ("poll[options][]", "no"),
        ("poll[expires_in]", "300"),
    ];
    [&fields[..], more].concat()
}

impl Person {
    /// Publishes a poll; returns it.
    async fn asks(&self, world: &World, more: &[(&str, &str)]) -> Value {
        self.call(world, "POST", STATUSES, &asking(more)).await["poll"].clone()
    }

    async fn votes(&self, world: &World, poll: &Value, options: &[&str]) -> Got {
        let path = format!("/api/v1/polls/{}/votes", poll["id"].as_str().unwrap());
        let fields: Vec<_> = options.iter().map(|option| ("choices[]", *option)).collect();
        world.call("POST", &path, Some(&self.token), &fields).await
    }

    async fn sees(&self, world: &World, poll: &Value) -> Value {
        self.get(world, &format!("/api/v1/polls/{}", poll["id"].as_str().unwrap())).await
    }
}

fn error(got: &Got) -> (u16, String) {
    (got.status.as_u16(), got.json()["error"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_poll_is_in_its_status_and_counts_each_voter_once() {
    let world = World::new();
    let [ada, bob, cyd] = world.people(["ada", "bob", "cyd"]).await;
    let poll = ada.asks(&world, &[]).await;
    let expires_at = poll["expires_at"].clone();
    assert_eq!(
        poll,
        json!({
            "id": poll["id"], "expires_at": expires_at, "expired": false, "multiple": false,
            "votes_count": 0, "voters_count": 0, "emojis": [], "voted": true, "own_votes": [],
            "options": [{"title": "yes", "votes_count": 0}, {"title": "no", "votes_count": 0}],
        })
    );
    let refused = |what: &str| (422, format!("Validation failed: {what}"));
    assert_eq!(
        error(&ada.votes(&world, &poll, &["0"]).await),
        refused("You cannot vote in your own polls")
    );
    let no_such = refused("The chosen vote option does not exist");
    for wrong in [&["2"][..], &["4"], &["-1"], &["x"], &["99999999999999999999"]] {
        assert_eq!(error(&bob.votes(&world, &poll, wrong).await), no_such, "{wrong:?}");
    }
    assert_eq!(bob.votes(&world, &poll, &[]).await.status.as_u16(), 422);
    let again = refused("You have already voted on this poll");
    assert_eq!(error(&bob.votes(&world, &poll, &["0", "1"]).await), again);
    let voted = bob.votes(&world, &poll, &["1"]).await;
    assert_eq!(voted.status.as_u16(), 200, "{voted:?}");
    let voted = voted.json();
    assert_eq!((&voted["voted"], &voted["own_votes"]), (&json!(true), &json!([1])));
    assert_eq!((&voted["votes_count"], &voted["voters_count"]), (&json!(1), &json!(1)));
    assert_eq!(voted["options"][1]["votes_count"], 1);
    assert_eq!(error(&bob.votes(&world, &poll, &["0"]).await), again);
    // Others see the number of votes but not the voters. Without a token, the field `voted` is absent.
    let seen = cyd.sees(&world, &poll).await;
    assert_eq!((&seen["voted"], &seen["own_votes"]), (&json!(false), &json!([])));
    assert_eq!(seen["options"][1]["votes_count"], 1);
    let path = format!("/api/v1/polls/{}", poll["id"].as_str().unwrap());
    let public = world.get(&path, None).await.json();
    assert!(public.get("voted").is_none() && public["votes_count"] == 1);
    let id = poll["id"].as_str().unwrap();
    let status = bob.get(&world, &format!("{STATUSES}/{id}")).await;
    assert_eq!(status["poll"], voted);
    // A boost has the poll in its boosted status.
    let boost = cyd.call(&world, "POST", &format!("{STATUSES}/{id}/reblog"), &[]).await;
    assert_eq!((&boost["poll"], &boost["reblog"]["poll"]["id"]), (&Value::Null, &json!(id)));
    let other = [
        ("status", "x"),
        ("poll[options][]", "a"),
        ("poll[options][]", "b"),
        ("poll[expires_in]", "300"),
    ];
    ada.call(&world, "PUT", &format!("{STATUSES}/{id}"), &other).await;
    let boost = boost["id"].as_str().unwrap();
    for id in [id, boost] {
        let history = bob.get(&world, &format!("{STATUSES}/{id}/history")).await;
        assert_eq!(history[0]["poll"]["options"], json!([{"title": "yes"}, {"title": "no"}]));
        assert_eq!(history[1]["poll"]["options"], json!([{"title": "a"}, {"title": "b"}]));
    }
}

#[tokio::test]
async fn whoever_voted_in_a_poll_of_several_options_votes_for_further_ones() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let poll = ada.asks(&world, &[("poll[multiple]", "true")]).await;
    for (options, expect, own) in [
        (&["1"][..], 200, json!([1])),
        (&["1"], 422, json!([1])),
        (&["0", "1"], 422, json!([1])),
        (&["0"], 200, json!([0, 1])),
    ] {
        let got = bob.votes(&world, &poll, options).await;
        assert_eq!(got.status.as_u16(), expect, "{options:?}: {got:?}");
        let seen = bob.sees(&world, &poll).await;
        assert_eq!((&seen["own_votes"], &seen["voters_count"]), (&own, &json!(1)), "{options:?}");
        assert_eq!(seen["votes_count"], own.as_array().unwrap().len());
    }
}

#[tokio::test]
async fn a_poll_is_sent_as_a_form_as_json_and_as_multipart_and_wrong_ones_are_refused() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let body = json!({
        "status": "x", "media_ids": [],
        "poll": {"options": ["a", "b"], "expires_in": 300, "multiple": true, "hide_totals": null},
    });
    let request = Request::post(STATUSES).header(CONTENT_TYPE, "application/json");
    let request = request.header(AUTHORIZATION, format!("Bearer {}", ada.token));
    let got = world.send(request.body(Body::from(body.to_string())).unwrap()).await;
    assert_eq!(got.json()["poll"]["multiple"], true, "{got:?}");
    let part = |(name, value): &(&str, &str)| {
        format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let body: String = asking(&[]).iter().map(part).collect();
    let request = Request::post(STATUSES).header(CONTENT_TYPE, "multipart/form-data; boundary=x");
    let request = request.header(AUTHORIZATION, format!("Bearer {}", ada.token));
    let got = world.send(request.body(Body::from(body + "--x--\r\n")).unwrap()).await;
    assert_eq!(got.json()["poll"]["options"][1]["title"], "no", "{got:?}");
    let long = "x".repeat(51);
    let picture = ada.picture(&world, 1).await;
    for more in [
        vec![("poll[options][]", "yes")],
        vec![("poll[options][]", long.as_str())],
        vec![("poll[options][]", "c"), ("poll[options][]", "d"), ("poll[options][]", "e")],
        vec![("media_ids[]", picture.as_str())],
    ] {
        let got = world.call("POST", STATUSES, Some(&ada.token), &asking(&more)).await;
        assert_eq!(got.status.as_u16(), 422, "{more:?}: {got:?}");
        assert!(got.json()["error"].as_str().unwrap().starts_with("Validation failed"), "{got:?}");
    }
    for secs in ["299", "2629747", "-1", "", "x"] {
        let mut fields = asking(&[]);
        fields[3].1 = secs;
        let got = world.call("POST", STATUSES, Some(&ada.token), &fields).await;
        assert_eq!(got.status.as_u16(), 422, "{secs}: {got:?}");
    }
    let configuration = world.get("/api/v2/instance", None).await.json()["configuration"].clone();
    assert_eq!(
        configuration["polls"],
        json!({"max_options": 4, "max_characters_per_option": 50, "min_expiration": 300,
            "max_expiration": 2_629_746})
    );
}

#[tokio::test]
async fn an_edit_keeps_replaces_or_removes_a_poll() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let poll = ada.asks(&world, &[]).await;
    let path = format!("{STATUSES}/{}", poll["id"].as_str().unwrap());
    bob.votes(&world, &poll, &["0"]).await;
    let edit = async |fields: &[(&str, &str)]| ada.call(&world, "PUT", &path, fields).await;
    let kept = edit(&[("status", "other words")]).await;
    assert_eq!((&kept["poll"]["votes_count"], &kept["poll"]["id"]), (&json!(1), &poll["id"]));
    let kept = edit(&asking(&[("poll[hide_totals]", "true")])).await;
    assert_eq!(
        (&kept["poll"]["votes_count"], &kept["poll"]["options"][0]["votes_count"]),
        (&json!(1), &Value::Null)
    );
    let reset = edit(&asking(&[("poll[options][]", "maybe")])).await;
    assert_eq!((&reset["poll"]["votes_count"], &reset["poll"]["id"]), (&json!(0), &poll["id"]));
    assert_eq!(bob.votes(&world, &poll, &["2"]).await.status.as_u16(), 200, "once more");
    let picture = ada.picture(&world, 1).await;
    let replaced = edit(&[("status", "x"), ("media_ids[]", &picture)]).await;
    assert_eq!(
        (&replaced["poll"], ids(&replaced["media_attachments"])),
        (&Value::Null, vec![picture])
    );
    let got = world.call("PUT", &path, Some(&ada.token), &asking(&[])).await;
    assert_eq!(got.status.as_u16(), 422, "a status with pictures");
    let again = edit(&asking(&[("media_ids[]", "")])).await;
    assert_eq!(again["poll"]["votes_count"], 0);
    let none = edit(&[("status", "x"), ("poll[options][]", "")]).await;
    assert_eq!(none["poll"], Value::Null);
    assert_eq!(bob.votes(&world, &poll, &["0"]).await.status.as_u16(), 404);
}

#[tokio::test]
async fn a_keyword_is_also_found_in_the_options_of_a_poll() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let filter =
        [("title", "t"), ("context[]", "home"), ("keywords_attributes[][keyword]", "maybe")];
    bob.call(&world, "POST", "/api/v2/filters", &filter).await;
    for (more, count) in [(vec![], 0), (vec![("poll[options][]", "Maybe not")], 1)] {
        let poll = ada.asks(&world, &more).await;
        let path = format!("{STATUSES}/{}", poll["id"].as_str().unwrap());
        let filtered = bob.get(&world, &path).await["filtered"].clone();
        assert_eq!(filtered.as_array().unwrap().len(), count);
    }
}

#[tokio::test]
async fn author_and_voters_are_notified_when_a_poll_ends_and_then_totals_are_shown() {
    let (world, clock) = World::with_clock();
    let [ada, bob, cyd] = world.people(["ada", "bob", "cyd"]).await;
    let poll = ada.asks(&world, &[("poll[hide_totals]", "1")]).await;
    bob.votes(&world, &poll, &["1"]).await;
    let seen = bob.sees(&world, &poll).await;
    assert_eq!(
        (&seen["options"][1]["votes_count"], &seen["votes_count"]),
        (&Value::Null, &json!(1))
    );
    clock.pass(300_000);
    world.do_due().await;
    let late = cyd.votes(&world, &poll, &["1"]).await;
    assert_eq!(error(&late), (422, "Validation failed: The poll has already ended".to_owned()));
    let seen = cyd.sees(&world, &poll).await;
    assert_eq!((&seen["options"][1]["votes_count"], &seen["expired"]), (&json!(1), &json!(true)));
    for (person, count) in [(&ada, 1), (&bob, 1), (&cyd, 0)] {
        let path = "/api/v1/notifications?types[]=poll";
        let found = person.get(&world, path).await;
        assert_eq!(found.as_array().unwrap().len(), count);
        for notification in found.as_array().unwrap() {
            assert_eq!(notification["type"], "poll");
            assert_eq!(notification["account"]["username"], "ada");
            assert_eq!(notification["status"]["poll"]["id"], poll["id"]);
        }
        assert_eq!(person.ids(&world, "/api/v1/notifications?exclude_types[]=poll").await.len(), 0);
    }
}

/// Time in the future, as apps send it.
fn at(world: &World, ahead_secs: u64) -> String {
    let ms = world.node.now_ms() + ahead_secs * 1_000;
    jiff::Timestamp::from_millisecond(ms as i64).unwrap().to_string()
}

#[tokio::test]
async fn a_scheduled_status_is_listed_moved_and_published() {
    let (world, clock) = World::with_clock();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let parent = bob.post(&world, "hello").await;
    let picture = ada.picture(&world, 1).await;
    let time = at(&world, 600);
    let fields = [
        ("status", "later @bob"),
        ("scheduled_at", time.as_str()),
        ("in_reply_to_id", &parent),
        ("media_ids[]", &picture),
        ("visibility", "unlisted"),
        ("spoiler_text", "warned"),
        ("language", "en"),
    ];
    let scheduled = ada.call(&world, "POST", STATUSES, &fields).await;
    let id = scheduled["id"].as_str().unwrap().to_owned();
    let params = &scheduled["params"];
    assert_eq!(
        *params,
        json!({
            "text": "later @bob", "poll": null, "media_ids": [picture], "sensitive": true,
            "spoiler_text": "warned", "visibility": "unlisted", "language": "en",
            "in_reply_to_id": parent.parse::<u64>().unwrap(), "application_id": 0,
            "scheduled_at": null, "idempotency": null, "with_rate_limit": false,
            "quoted_status_id": null,
            "quote_approval_policy": "public",
        })
    );
    assert_eq!(ids(&scheduled["media_attachments"]), [picture.as_str()]);
    let profile = format!("/api/v1/accounts/{}/statuses", ada.id);
    assert_eq!(ada.ids(&world, &profile).await.len(), 0);
    let with_poll = [asking(&[("poll[multiple]", "1")]), vec![("scheduled_at", &time)]].concat();
    let second = ada.call(&world, "POST", STATUSES, &with_poll).await;
    assert_eq!(
        second["params"]["poll"],
        json!({"options": ["yes", "no"], "expires_in": 300, "multiple": true, "hide_totals": false})
    );
    let second = second["id"].as_str().unwrap();
    assert_eq!(ada.ids(&world, SCHEDULED).await, [second, &id]);
    for (query, expect) in [
        ("limit=1", vec![second]),
        ("min_id=1&limit=1", vec![&*id]),
        (&*format!("max_id={second}"), vec![&*id]),
        (&*format!("since_id={id}"), vec![second]),
    ] {
        assert_eq!(ada.ids(&world, &format!("{SCHEDULED}?{query}")).await, expect, "{query}");
    }
    assert_eq!(bob.ids(&world, SCHEDULED).await.len(), 0);
    let path = format!("{SCHEDULED}/{id}");
    let moved = ada.call(&world, "PUT", &path, &[("scheduled_at", &at(&world, 900))]).await;
    assert_ne!(moved["scheduled_at"], scheduled["scheduled_at"]);
    assert_eq!(ada.get(&world, &path).await, moved);
    clock.pass(600_000);
    world.do_due().await;
    assert_eq!(ada.ids(&world, SCHEDULED).await, [id.as_str()]);
    let published = ada.get(&world, &profile).await;
    assert_eq!(published[0]["poll"]["expired"], false, "its duration begins then");
    clock.pass(300_000);
    world.do_due().await;
    assert_eq!(ada.ids(&world, SCHEDULED).await.len(), 0);
    let published = ada.get(&world, &profile).await;
    let published = published.as_array().unwrap();
    assert_eq!(published.len(), 2);
    let last = &published[0];
    assert_eq!(
        (&last["in_reply_to_id"], &last["visibility"]),
        (&json!(parent), &json!("unlisted"))
    );
    assert_eq!(ids(&last["media_attachments"]), [picture]);
    assert_eq!(bob.ids(&world, "/api/v1/notifications").await.len(), 1, "bob is mentioned");
}

#[tokio::test]
async fn wrong_times_are_refused_and_what_is_cancelled_is_never_published() {
    let (world, clock) = World::with_clock();
    let [ada] = world.people(["ada"]).await;
    for (time, expect) in [
        ("banana".to_owned(), "Record invalid"),
        (at(&world, 0), "Validation failed: a post is scheduled"),
        (at(&world, 290), "Validation failed: a post is scheduled"),
        ("9999-01-01T00:00:00Z".to_owned(), "Validation failed: a post is scheduled"),
    ] {
        let fields = [("status", "x"), ("scheduled_at", time.as_str())];
        let got = world.call("POST", STATUSES, Some(&ada.token), &fields).await;
        let (status, text) = error(&got);
        assert!(status == 422 && text.starts_with(expect), "{time}: {got:?}");
    }
    let fields = [("status", "x"), ("scheduled_at", &*at(&world, 400))];
    let retry = [("Idempotency-Key", "once")];
    let mut found = Vec::new();
    for _ in 0..2 {
        let got = world.call_with("POST", STATUSES, Some(&ada.token), &fields, &retry).await;
        found.push(got.json()["id"].as_str().unwrap().to_owned());
    }
    assert_eq!(found[0], found[1], "a retry returns the first");
    let path = format!("{SCHEDULED}/{}", found[0]);
    let early = [("scheduled_at", &*at(&world, 10))];
    let got = world.call("PUT", &path, Some(&ada.token), &early).await;
    assert_eq!(got.status.as_u16(), 422, "{got:?}");
    ada.call(&world, "DELETE", &path, &[]).await;
    for method in ["GET", "PUT", "DELETE"] {
        let fields = [("scheduled_at", &*at(&world, 400))];
        let got = world.call(method, &path, Some(&ada.token), &fields).await;
        assert_eq!(got.status.as_u16(), 404, "{method}: {got:?}");
    }
    clock.pass(500_000);
    world.do_due().await;
    assert_eq!(ada.ids(&world, &format!("/api/v1/accounts/{}/statuses", ada.id)).await.len(), 0);
}
