//! Visibility of statuses to different readers.

use serde_json::Value;

use crate::client::{Person, World, ids};

async fn list(world: &World, reader: Option<&Person>, path: &str) -> Vec<String> {
    let got = world.get(path, reader.map(|reader| reader.token.as_str())).await;
    assert_eq!(got.status.as_u16(), 200, "{path}: {got:?}");
    match got.json() {
        Value::Object(context) => ids(&context["descendants"]),
        found => ids(&found),
    }
}

#[tokio::test]
async fn a_status_is_shown_to_those_whom_it_is_for_and_nobody_else() {
    let world = World::new();
    let [ada, follower, mentioned, stranger] =
        world.people(["ada", "follower", "mentioned", "stranger"]).await;
    follower.does(&world, "follow", &ada).await;
    // The replies are to the author's own post, since a reply to another user's post mentions that user.
    let root = ada.post(&world, "root").await;
    let readers = [
        ("nobody", None),
        ("stranger", Some(&stranger)),
        ("follower", Some(&follower)),
        ("mentioned", Some(&mentioned)),
        ("author", Some(&ada)),
    ];
    // Each row is a visibility, which of the readers (in order) see the post in their lists, and whether lists of the
    // newest posts do.
    for (visibility, sees, is_listed) in [
        ("public", [true, true, true, true, true], true),
        ("unlisted", [true, true, true, true, true], false),
        ("private", [false, false, true, true, true], false),
        ("direct", [false, false, false, true, true], false),
    ] {
        let fields = [
            ("status", "for you, @mentioned"),
            ("visibility", visibility),
            ("in_reply_to_id", root.as_str()),
        ];
        let reply = ada.call(&world, "POST", "/api/v1/statuses", &fields).await;
        assert_eq!(reply["visibility"], visibility);
        let reply = reply["id"].as_str().unwrap().to_owned();
        let first = ada.call(&world, "POST", "/api/v1/statuses", &fields[..2]).await;
        let first = first["id"].as_str().unwrap().to_owned();
        for ((name, reader), sees) in readers.iter().zip(sees) {
            let token = reader.map(|reader| reader.token.as_str());
            for path in ["", "/context", "/history", "/favourited_by"] {
                let path = format!("/api/v1/statuses/{reply}{path}");
                let status = world.get(&path, token).await.status.as_u16();
                assert_eq!(status, if sees { 200 } else { 404 }, "{name} {path} {visibility}");
            }
            for (path, id) in [
                (format!("/api/v1/accounts/{}/statuses", ada.id), &reply),
                (format!("/api/v1/accounts/{}/statuses?exclude_replies=true", ada.id), &first),
                (format!("/api/v1/statuses?id[]={first}"), &first),
                (format!("/api/v1/statuses/{root}/context"), &reply),
            ] {
                let found = list(&world, *reader, &path).await;
                assert_eq!(found.contains(id), sees, "{name} {path} {visibility}");
            }
            let public = list(&world, *reader, "/api/v1/timelines/public").await;
            assert_eq!(public.contains(&first), is_listed, "{name} {visibility}");
            assert_eq!(public.contains(&reply), is_listed, "{name} {visibility}");
            let query = format!("/api/v2/search?q=https://social.example/@ada/{first}");
            let found = world.get(&query, token).await.json();
            assert_eq!(ids(&found["statuses"]).contains(&first), sees, "{name} {visibility}");
        }
        let home = list(&world, Some(&follower), "/api/v1/timelines/home").await;
        assert_eq!(home.contains(&first), sees[2], "{visibility}");
        let notifications = list(&world, Some(&mentioned), "/api/v1/notifications").await;
        assert!(notifications.contains(&first) && notifications.contains(&reply));
    }
}

#[tokio::test]
async fn a_status_has_a_warning_and_a_language() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let fields = [("status", "x"), ("spoiler_text", "food <b>"), ("language", "de-AT")];
    let status = ada.call(&world, "POST", "/api/v1/statuses", &fields).await;
    assert_eq!(status["spoiler_text"], "food <b>");
    assert_eq!((&status["sensitive"], &status["language"]), (&true.into(), &"de".into()));
    let path = format!("/api/v1/statuses/{}", status["id"].as_str().unwrap());
    assert_eq!(ada.get(&world, &format!("{path}/source")).await["spoiler_text"], "food <b>");
    let edited = ada.call(&world, "PUT", &path, &[("status", "y"), ("sensitive", "true")]).await;
    assert_eq!((&edited["spoiler_text"], &edited["sensitive"]), (&"".into(), &true.into()));
    assert_eq!(edited["language"], "de");
    for (name, value) in [("visibility", "secret"), ("language", "x"), ("spoiler_text", "a\0b")] {
        let fields = [("status", "x"), (name, value)];
        let got = world.call("POST", "/api/v1/statuses", Some(&ada.token), &fields).await;
        assert_eq!(got.status.as_u16(), 422, "{name}: {got:?}");
    }
}
