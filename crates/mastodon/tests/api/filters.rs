//! Filters in both versions of the API, and how they mark posts.

use serde_json::{Value, json};

use crate::client::{Person, World, ids};

const V1: &str = "/api/v1/filters";
const V2: &str = "/api/v2/filters";

fn id(entity: &Value) -> &str {
    entity["id"].as_str().unwrap()
}

async fn create(world: &World, owner: &Person, fields: &[(&str, &str)]) -> Value {
    owner.call(world, "POST", V2, fields).await
}

/// Creates a filter with a keyword.
async fn with_keyword(world: &World, owner: &Person, keyword: &str, whole_word: bool) -> Value {
    let whole_word = if whole_word { "true" } else { "false" };
    let fields = [
        ("title", "title"),
        ("context[]", "home"),
        ("keywords_attributes[0][keyword]", keyword),
        ("keywords_attributes[0][whole_word]", whole_word),
    ];
    create(world, owner, &fields).await
}

/// Titles of the filters that a status matches, with the keyword and the status.
fn matches(status: &Value) -> Vec<(&str, Option<&str>, Option<&str>)> {
    let results = status["filtered"].as_array().unwrap().iter();
    let found = results.map(|result| {
        let first = |name: &str| result[name][0].as_str();
        let title = result["filter"]["title"].as_str().unwrap();
        (title, first("keyword_matches"), first("status_matches"))
    });
    found.collect()
}

#[tokio::test]
async fn filters_are_created_changed_and_deleted() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let fields = [
        ("title", " Spoilers "),
        ("context[]", "thread"),
        ("context[]", "home"),
        ("filter_action", "hide"),
        ("expires_in", "3600"),
        ("keywords_attributes[][keyword]", "ending"),
        ("keywords_attributes[][whole_word]", "false"),
        ("keywords_attributes[][keyword]", "dies"),
    ];
    let filter = create(&world, &ada, &fields).await;
    let path = format!("{V2}/{}", id(&filter));
    let (first, second) = (id(&filter["keywords"][0]), id(&filter["keywords"][1]));
    let expect = json!({
        "id": filter["id"], "title": "Spoilers", "context": ["home", "thread"],
        "filter_action": "hide", "expires_at": filter["expires_at"], "statuses": [],
        "keywords": [
            {"id": first, "keyword": "ending", "whole_word": false},
            {"id": second, "keyword": "dies", "whole_word": true},
        ],
    });
    assert_eq!(filter, expect);
    assert!(filter["expires_at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(ada.get(&world, &path).await, expect);
    assert_eq!(ada.get(&world, V2).await, json!([expect]));
    assert_eq!(bob.get(&world, V2).await, json!([]));
    let fields = [
        ("title", "x"),
        ("context[]", "public"),
        ("filter_action", "blur"),
        ("expires_in", ""),
        ("keywords_attributes[0][id]", first),
        ("keywords_attributes[0][_destroy]", "true"),
        ("keywords_attributes[1][id]", second),
        ("keywords_attributes[1][keyword]", "lives"),
        ("keywords_attributes[2][keyword]", "new"),
    ];
    let changed = ada.call(&world, "PUT", &path, &fields).await;
    let third = id(&changed["keywords"][1]);
    let expect = json!({
        "id": filter["id"], "title": "x", "context": ["public"], "filter_action": "blur",
        "expires_at": null, "statuses": [],
        "keywords": [
            {"id": second, "keyword": "lives", "whole_word": true},
            {"id": third, "keyword": "new", "whole_word": true},
        ],
    });
    assert_eq!(changed, expect);
    assert_eq!(ada.call(&world, "PUT", &path, &[]).await, expect, "without parameters");
    assert_eq!(ada.call(&world, "DELETE", &path, &[]).await, json!({}));
    assert_eq!(ada.get(&world, V2).await, json!([]));
    assert_eq!(world.get(&path, Some(&ada.token)).await.status.as_u16(), 404);
}

#[tokio::test]
async fn wrong_filters_are_refused_and_change_nothing() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let filter = with_keyword(&world, &ada, "word", true).await;
    let path = format!("{V2}/{}", id(&filter));
    let long = "x".repeat(101);
    let title = ("title", "x");
    let home = ("context[]", "home");
    for wrong in [
        ("title", ""),
        ("title", &long),
        ("context[]", "everywhere"),
        ("filter_action", "delete"),
        ("expires_in", "soon"),
        ("expires_in", "-1"),
        ("expires_in", "315360001"),
        ("keywords_attributes[][keyword]", " "),
        ("keywords_attributes[][keyword]", &long),
    ] {
        let fields: Vec<_> = [wrong, title, home]
            .into_iter()
            .filter(|one| *one == wrong || one.0 != wrong.0)
            .collect();
        for (method, path) in [("POST", V2), ("PUT", &path)] {
            let got = world.call(method, path, Some(&ada.token), &fields).await;
            assert_eq!(got.status.as_u16(), 422, "{method} {fields:?} {got:?}");
        }
    }
    for fields in [&[title][..], &[home], &[title, ("context[]", "")]] {
        let got = world.post(V2, Some(&ada.token), fields).await;
        assert_eq!(got.status.as_u16(), 422, "{fields:?} {got:?}");
    }
    let unknown = [("keywords_attributes[0][id]", "7"), ("keywords_attributes[0][keyword]", "x")];
    let got = world.call("PUT", &path, Some(&ada.token), &unknown).await;
    assert_eq!(got.status.as_u16(), 404, "{got:?}");
    for _ in 1..50 {
        create(&world, &ada, &[title, home]).await;
    }
    let got = world.post(V2, Some(&ada.token), &[title, home]).await;
    assert_eq!(got.status.as_u16(), 422, "{got:?}");
    assert_eq!(ada.get(&world, &path).await, filter);
}

#[tokio::test]
async fn keywords_and_statuses_are_added_changed_and_removed_one_by_one() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let filter = create(&world, &ada, &[("title", "x"), ("context[]", "home")]).await;
    let path = format!("{V2}/{}", id(&filter));
    let (keywords, statuses) = (format!("{path}/keywords"), format!("{path}/statuses"));
    let word = ada.call(&world, "POST", &keywords, &[("keyword", "word")]).await;
    assert_eq!((&word["keyword"], &word["whole_word"]), (&json!("word"), &json!(true)));
    assert_eq!(ada.get(&world, &keywords).await, json!([word]));
    let of_word = format!("{V2}/keywords/{}", id(&word));
    let changed = ada.call(&world, "PUT", &of_word, &[("whole_word", "false")]).await;
    assert_eq!(changed, json!({"id": word["id"], "keyword": "word", "whole_word": false}));
    let changed = ada.call(&world, "PUT", &of_word, &[("keyword", "other")]).await;
    assert_eq!(changed, json!({"id": word["id"], "keyword": "other", "whole_word": false}));
    assert_eq!(ada.get(&world, &of_word).await, changed);
    let post = bob.post(&world, "a post").await;
    let boost = bob.call(&world, "POST", &format!("/api/v1/statuses/{post}/reblog"), &[]).await;
    let status = ada.call(&world, "POST", &statuses, &[("status_id", &post)]).await;
    assert_eq!(status["status_id"], post.as_str());
    let again = ada.call(&world, "POST", &statuses, &[("status_id", id(&boost))]).await;
    assert_eq!(again, status, "the boosted status of a boost");
    assert_eq!(ada.get(&world, &statuses).await, json!([status]));
    let of_status = format!("{V2}/statuses/{}", id(&status));
    assert_eq!(ada.get(&world, &of_status).await, status);
    let private = [("status", "private"), ("visibility", "direct")];
    let private = bob.call(&world, "POST", "/api/v1/statuses", &private).await;
    for hidden in [id(&private), "1", "x"] {
        let got = world.post(&statuses, Some(&ada.token), &[("status_id", hidden)]).await;
        assert_eq!(got.status.as_u16(), 404, "{got:?}");
    }
    let all = ada.get(&world, &path).await;
    assert_eq!((&all["keywords"], &all["statuses"]), (&json!([changed]), &json!([status])));
    // A deleted status disappears from the filter.
    let other = bob.post(&world, "another post").await;
    ada.call(&world, "POST", &statuses, &[("status_id", &other)]).await;
    bob.call(&world, "DELETE", &format!("/api/v1/statuses/{other}"), &[]).await;
    assert_eq!(ada.get(&world, &statuses).await, json!([status]));
    for (path, expect) in [(&of_word, json!({})), (&of_status, status)] {
        assert_eq!(ada.call(&world, "DELETE", path, &[]).await, expect);
        assert_eq!(world.get(path, Some(&ada.token)).await.status.as_u16(), 404);
    }
    let left = ada.get(&world, &path).await;
    assert_eq!((&left["keywords"], &left["statuses"]), (&json!([]), &json!([])));
}

#[tokio::test]
async fn a_keyword_is_a_filter_of_version_1() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let fields = [("phrase", "a phrase"), ("context[]", "home"), ("irreversible", "true")];
    let one = ada.call(&world, "POST", V1, &fields).await;
    assert_eq!(
        one,
        json!({"id": one["id"], "phrase": "a phrase", "context": ["home"], "whole_word": true,
            "expires_at": null, "irreversible": true})
    );
    let path = format!("{V1}/{}", id(&one));
    assert_eq!(ada.get(&world, V1).await, json!([one]));
    let filters = ada.get(&world, V2).await;
    assert_eq!(
        (&filters[0]["title"], &filters[0]["filter_action"]),
        (&json!("a phrase"), &json!("hide"))
    );
    let fields = [
        ("phrase", "other"),
        ("context[]", "public"),
        ("whole_word", "false"),
        ("irreversible", "false"),
    ];
    let changed = ada.call(&world, "PUT", &path, &fields).await;
    assert_eq!(
        changed,
        json!({"id": one["id"], "phrase": "other", "context": ["public"], "whole_word": false,
            "expires_at": null, "irreversible": false})
    );
    assert_eq!(ada.get(&world, &path).await, changed);
    // This version cannot change properties that several keywords share.
    let keywords = format!("{V2}/{}/keywords", id(&filters[0]));
    let two = ada.call(&world, "POST", &keywords, &[("keyword", "two")]).await;
    assert_eq!(ids(&ada.get(&world, V1).await), [id(&one), id(&two)]);
    let got = world.call("PUT", &path, Some(&ada.token), &[("context[]", "home")]).await;
    assert_eq!(got.status.as_u16(), 422, "{got:?}");
    let fields = [("context[]", "public"), ("phrase", "other"), ("whole_word", "true")];
    assert_eq!(ada.call(&world, "PUT", &path, &fields).await["whole_word"], true);
    let got = world.post(V1, Some(&ada.token), &[("phrase", "x")]).await;
    assert_eq!(got.status.as_u16(), 422, "a filter has a context: {got:?}");
    for (keyword, left) in [(&one, 1), (&two, 0)] {
        let path = format!("{V1}/{}", id(keyword));
        assert_eq!(ada.call(&world, "DELETE", &path, &[]).await, json!({}));
        assert_eq!(ada.get(&world, V2).await.as_array().unwrap().len(), left);
    }
}

#[tokio::test]
async fn statuses_say_which_filters_they_match_everywhere() {
    let world = World::new();
    let [ada, bob, cy] = world.people(["ada", "bob", "cy"]).await;
    for other in [&bob, &cy] {
        ada.does(&world, "follow", other).await;
    }
    let fields = [("status", "@ada The CAT sat #tag"), ("spoiler_text", "no dogs")];
    let post = bob.call(&world, "POST", "/api/v1/statuses", &fields).await;
    let other = bob.post(&world, "concatenate").await;
    let boost =
        cy.call(&world, "POST", &format!("/api/v1/statuses/{}/reblog", id(&post)), &[]).await;
    ada.call(&world, "POST", &format!("/api/v1/statuses/{}/favourite", id(&post)), &[]).await;
    with_keyword(&world, &ada, "cat", true).await;
    with_keyword(&world, &ada, "dogs", false).await;
    let by_status = create(&world, &ada, &[("title", "posts"), ("context[]", "home")]).await;
    let path = format!("{V2}/{}/statuses", id(&by_status));
    ada.call(&world, "POST", &path, &[("status_id", &other)]).await;
    let of_post = vec![("title", Some("cat"), None), ("title", Some("dogs"), None)];
    let of_other = vec![("posts", None, Some(other.as_str()))];
    let home = ada.get(&world, "/api/v1/timelines/home").await;
    let shown = home.as_array().unwrap().iter();
    for status in shown {
        let expect = if id(status) == other { &of_other } else { &of_post };
        assert_eq!(&matches(status), expect);
        assert_eq!(status["reblog"].is_object(), id(status) == id(&boost));
        if status["reblog"].is_object() {
            assert_eq!(&matches(&status["reblog"]), expect, "the boosted status, too");
        }
    }
    for path in [
        format!("/api/v1/accounts/{}/statuses?exclude_reblogs=true&tagged=tag", bob.id),
        "/api/v1/timelines/tag/tag".to_owned(),
        "/api/v1/favourites".to_owned(),
        format!("/api/v1/statuses?id[]={}", id(&post)),
    ] {
        let list = ada.get(&world, &path).await;
        assert_eq!(matches(&list[0]), of_post, "{path}");
    }
    let mentions = ada.get(&world, "/api/v1/notifications?types[]=mention").await;
    assert_eq!(matches(&mentions[0]["status"]), of_post, "it is delivered and marked");
    let path = format!("/api/v1/statuses/{}", id(&post));
    assert_eq!(matches(&ada.get(&world, &path).await), of_post);
    assert_eq!(matches(&bob.get(&world, &path).await), [], "only the reader's filters");
    let anonymous = world.get(&path, None).await.json();
    assert!(anonymous.get("filtered").is_none());
}

#[tokio::test]
async fn descriptions_of_pictures_are_searched_and_expired_filters_are_not() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let picture = ada.picture(&world, 1).await;
    let path = format!("/api/v1/media/{picture}");
    ada.call(&world, "PUT", &path, &[("description", "a large spider")]).await;
    let fields = [("status", "look"), ("media_ids[]", picture.as_str())];
    let post = ada.call(&world, "POST", "/api/v1/statuses", &fields).await;
    let path = format!("/api/v1/statuses/{}", id(&post));
    let filter = with_keyword(&world, &ada, "Spider", true).await;
    assert_eq!(matches(&ada.get(&world, &path).await), [("title", Some("Spider"), None)]);
    let of_filter = format!("{V2}/{}", id(&filter));
    ada.call(&world, "PUT", &of_filter, &[("expires_in", "0")]).await;
    assert_eq!(matches(&ada.get(&world, &path).await), []);
    assert_eq!(ids(&ada.get(&world, V2).await), [id(&filter)], "it is listed");
    ada.call(&world, "PUT", &of_filter, &[("expires_in", "")]).await;
    assert_eq!(matches(&ada.get(&world, &path).await).len(), 1);
}
