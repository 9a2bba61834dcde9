//! `/v1/users/{user}/posts` and `/v1/posts/{id}`

use serde_json::{Value, json};

use crate::client::{Answer, TestServer};

#[test]
fn a_post_is_returned_completely_and_exists_until_it_is_deleted() {
    let server = TestServer::open();
    server.register(&["ada", "bob"]);
    let created =
        server.post("/v1/users/@ada/posts", &json!({"text": " @bob hi, @nobody \u{1F600} "}));
    assert_eq!(created.status, 201);
    let post = created.json();
    let id = post["id"].as_str().unwrap();
    assert_eq!(
        post,
        json!({"id": id, "author": {"id": "0", "handle": "ada", "name": ""},
            "text": "@bob hi, @nobody \u{1F600}", "created_at": post["created_at"],
            "edited_at": null, "in_reply_to_id": null,
            "reply_to": null, "mentions": [{"id": "1", "handle": "bob"}],
            "visibility": "public", "warning": "", "sensitive": false, "quote": null,
            "quote_policy": "public", "language": null,
            "media": [], "boost_of": null})
    );
    let path = format!("/v1/posts/{id}");
    assert_eq!(created.header("location"), Some(path.as_str()));
    assert_eq!(server.get(&path).json(), post);
    let of = |user: &str| format!("/v1/users/{user}/posts/{id}");
    server.send("DELETE", &of("1"), &[], b"").assert_error(404, "post_not_found", "of another");
    assert_eq!(server.send("DELETE", &of("@ada"), &[], b"").status, 204);
    server.get(&path).assert_error(404, "post_not_found", "deleted");
    let again = server.send("DELETE", &of("@ada"), &[], b"");
    again.assert_error(404, "post_not_found", "deleted again");
    assert_eq!(server.totals(), (2, 0, 0));
}

#[test]
fn a_repeated_key_posts_once_and_returns_the_same_response() {
    let server = TestServer::open();
    server.register(&["ada", "bob"]);
    let send = |user: &str, key: &str, text: &str| {
        let path = format!("/v1/users/{user}/posts");
        server.with_json("POST", &path, &[("Idempotency-Key", key)], &json!({"text": text}))
    };
    let first = send("@ada", "k1", "hello");
    let again = send("@ada", "k1", "hello");
    assert_eq!((first.status, again.status), (201, 201));
    assert_eq!(first.body, again.body);
    assert_eq!(first.header("idempotent-replayed"), None);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    send("@ada", "k1", "other").assert_error(422, "idempotency_key_reused", "other content");
    for (user, key) in [("@ada", "k2"), ("@bob", "k1")] {
        assert_eq!(send(user, key, "hello").header("idempotent-replayed"), None, "{user} {key}");
    }
    assert_eq!(server.totals().1, 3);
    let id = first.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/users/@ada/posts/{id}");
    let same = |why: &str| {
        let again = send("@ada", "k1", "hello");
        assert_eq!((again.status, &again.body), (201, &first.body), "{why}");
        assert_eq!(again.header("location"), first.header("location"), "{why}");
    };
    server.with_json("PATCH", &path, &[], &json!({"text": "edited"}));
    same("it was edited meanwhile");
    server.with_json("PATCH", "/v1/users/@ada", &[], &json!({"name": "Ada"}));
    same("the author was renamed meanwhile");
    server.send("DELETE", &path, &[], b"");
    let gone = |again: Answer, id: &str, why: &str| {
        assert_eq!((again.status, again.json()), (201, json!({"id": id})), "{why}");
        assert_eq!(again.header("idempotent-replayed"), Some("true"), "{why}");
    };
    gone(send("@ada", "k1", "hello"), &id, "it was deleted meanwhile");
    assert_eq!(server.totals().1, 2, "a replay does not bring a deleted post back");

    let register = || {
        let key = [("Idempotency-Key", "k")];
        server.with_json("POST", "/v1/users", &key, &json!({"handle": "cy", "bio": "secret"}))
    };
    let user = register().json()["id"].as_str().unwrap().to_owned();
    let post = send(&user, "k1", "hello").json()["id"].as_str().unwrap().to_owned();
    server.send("DELETE", &format!("/v1/users/{user}"), &[], b"");
    gone(register(), &user, "the user was deleted meanwhile");
    gone(send(&user, "k1", "hello"), &post, "the author was deleted meanwhile");
}

#[test]
fn keys_work_on_every_change_and_a_refused_one_may_be_tried_again() {
    let server = TestServer::open();
    let key = [("Idempotency-Key", "k")];
    let register = || server.with_json("POST", "/v1/users", &key, &json!({"handle": "ada"}));
    assert_eq!(register().status, 201);
    let again = register();
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));
    let follow = || server.send("PUT", "/v1/users/0/following/1", &key, b"");
    follow().assert_error(404, "user_not_found", "too early");
    server.register(&["bob"]);
    assert_eq!(follow().header("idempotent-replayed"), None);
    assert_eq!(follow().header("idempotent-replayed"), Some("true"));
}

#[test]
fn malformed_keys_are_refused() {
    let server = TestServer::open();
    server.register(&["ada"]);
    let long = "k".repeat(256);
    for key in ["", "a\tb", "caf\u{e9}", &long] {
        let headers = [("Idempotency-Key", key)];
        let answer = server.with_json("POST", "/v1/users/0/posts", &headers, &json!({"text": "x"}));
        answer.assert_error(400, "bad_idempotency_key", key);
    }
    let headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")];
    let answer = server.with_json("POST", "/v1/users/0/posts", &headers, &json!({"text": "x"}));
    answer.assert_error(400, "bad_idempotency_key", "two keys");
    assert_eq!(server.totals().1, 0);
}

#[test]
fn a_reply_names_its_post_and_mentions_its_author_as_long_as_the_post_exists() {
    let server = TestServer::open();
    server.register(&["ada", "bob"]);
    let question = server.publish("bob", "a question");
    let reply = |parent: &str, text: &str| {
        let body = json!({"text": text, "in_reply_to_id": parent});
        server.post("/v1/users/@ada/posts", &body)
    };
    let created = reply(&question, "yes");
    assert_eq!(created.status, 201);
    let answer = created.json();
    let bob = json!({"id": "1", "handle": "bob"});
    assert_eq!(answer["in_reply_to_id"], question.as_str());
    assert_eq!((&answer["reply_to"], &answer["mentions"]), (&bob, &json!([bob])));
    assert_eq!(server.texts("/v1/users/@bob/mentions"), ["yes"]);

    let path = format!("/v1/posts/{}", answer["id"].as_str().unwrap());
    server.send("DELETE", &format!("/v1/users/@bob/posts/{question}"), &[], b"");
    let left = server.get(&path).json();
    assert!(left["in_reply_to_id"].is_null(), "{left}");
    assert_eq!(left["reply_to"], bob, "the user replied to is still known");
    for parent in [question.as_str(), "0", "9223372036854775807"] {
        reply(parent, "too late").assert_error(422, "in_reply_to_not_found", parent);
    }
    for parent in ["", "x", "-1", "01", "9223372036854775808"] {
        reply(parent, "to nothing").assert_error(400, "bad_request", parent);
    }
    for parent in [json!(null), json!(7), json!(["7"])] {
        let body = json!({"text": "x", "in_reply_to_id": parent});
        server.post("/v1/users/@ada/posts", &body).assert_error(400, "bad_json", "no string");
    }
    assert_eq!(server.totals().1, 1);
}

#[test]
fn an_edit_shows_everywhere_and_a_repeated_key_edits_once() {
    let server = TestServer::open();
    server.register(&["ada", "bob", "cyd"]);
    server.follow("bob", "ada");
    let id = server.publish("ada", "hello @bob");
    assert_eq!(server.texts("/v1/users/@bob/timeline"), ["hello @bob"]);
    let path = server.own(&id);
    let edit = |key: &str, text: &str| {
        server.with_json("PATCH", &path, &[("Idempotency-Key", key)], &json!({"text": text}))
    };
    let first = edit("k", " hello @cyd ");
    assert_eq!(first.status, 200);
    let post = first.json();
    assert_eq!((&post["text"], &post["id"]), (&json!("hello @cyd"), &json!(id)));
    assert!(post["edited_at"].as_str() >= post["created_at"].as_str(), "{post}");
    assert_eq!(server.get(&format!("/v1/posts/{id}")).json(), post);
    assert_eq!(server.texts("/v1/users/@bob/timeline"), ["hello @cyd"]);
    assert_eq!(server.texts("/v1/users/@bob/mentions"), [""; 0]);
    assert_eq!(server.texts("/v1/users/@cyd/mentions"), ["hello @cyd"]);
    let again = edit("k", " hello @cyd ");
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.body, first.body);
    edit("k", "another").assert_error(422, "idempotency_key_reused", "other content");
    edit("l", " ").assert_error(422, "bad_text", "empty");
    server.send("DELETE", &path, &[], b"");
    edit("m", "too late").assert_error(404, "post_not_found", "deleted");
    let (again, only_id) = (edit("k", " hello @cyd "), json!({"id": first.json()["id"]}));
    assert_eq!((again.status, again.json()), (200, only_id), "a replay after it is deleted");
}

#[test]
fn the_history_of_a_post_has_what_it_said_before_each_edit() {
    let server = TestServer::open();
    server.register(&["ada", "bob"]);
    let body = json!({"text": "one", "visibility": "followers", "language": "en"});
    let post = server.post("/v1/users/@ada/posts", &body).json();
    let path = format!("/v1/posts/{}", post["id"].as_str().unwrap());
    let (history, own) = (format!("{path}/history"), path.replace("/v1/", "/v1/users/0/"));
    let shown = |post: &Value, at: &str| {
        json!({"text": post["text"], "warning": post["warning"], "sensitive": post["sensitive"],
            "language": post["language"], "media_ids": [], "created_at": post[at]})
    };
    let page = |items: &[Value]| json!({"items": items, "next": null, "prev": null});
    let first = shown(&post, "created_at");
    assert_eq!(server.get(&history).json(), page(std::slice::from_ref(&first)));
    let edited = server.with_json("PATCH", &own, &[], &json!({"text": "two", "warning": "w"}));
    let second = shown(&edited.json(), "edited_at");
    assert_eq!(server.get(&history).json(), page(&[first, second]));
    for (viewer, sees) in [("ada", true), ("bob", false), ("nobody", false)] {
        let found = server.get(&format!("{history}?viewer=@{viewer}"));
        assert_eq!(found.status == 200, sees, "{viewer}");
    }
    server.send("DELETE", &own, &[], b"");
    server.get(&history).assert_error(404, "post_not_found", "deleted");
}

#[test]
fn a_post_is_shown_to_those_it_is_for_with_its_warning_and_language() {
    let server = TestServer::open();
    server.register(&["ada", "bob", "cy", "dan"]);
    server.send("PUT", "/v1/users/@cy/following/@ada", &[], b"");
    let body = json!({"text": "to @bob", "visibility": "followers", "warning": " food ",
        "sensitive": true, "language": "de-AT"});
    let created = server.post("/v1/users/@ada/posts", &body);
    assert_eq!(created.status, 201);
    let post = created.json();
    let shown = ["visibility", "warning", "sensitive", "language"].map(|field| &post[field]);
    assert_eq!(shown, [&json!("followers"), &json!("food"), &json!(true), &json!("de")]);
    let path = format!("/v1/posts/{}", post["id"].as_str().unwrap());
    for (viewer, sees) in [("ada", true), ("bob", true), ("cy", true), ("dan", false)] {
        let found = server.get(&format!("{path}?viewer=@{viewer}"));
        assert_eq!(found.status == 200, sees, "{viewer}");
        let list = server.get(&format!("/v1/users/@ada/posts?viewer=@{viewer}")).json();
        assert_eq!(list["items"].as_array().unwrap().len(), usize::from(sees), "{viewer}");
    }
    let edit = json!({"warning": "", "language": "", "sensitive": false});
    let own = path.replace("/v1/", "/v1/users/@ada/");
    let edited = server.with_json("PATCH", &own, &[], &edit).json();
    let shown = ["text", "warning", "sensitive", "language"].map(|field| &edited[field]);
    assert_eq!(shown, [&json!("to @bob"), &json!(""), &json!(false), &json!(null)]);
    for (body, code) in [
        (json!({"text": "x", "warning": "w".repeat(501)}), "bad_warning"),
        (json!({"text": "x", "language": "english"}), "bad_language"),
        (json!({"text": "x", "language": ""}), "bad_language"),
    ] {
        server.post("/v1/users/@ada/posts", &body).assert_error(422, code, &body.to_string());
    }
    let unknown = server.post("/v1/users/@ada/posts", &json!({"text": "x", "visibility": "all"}));
    assert_eq!(unknown.status, 400);
}

#[test]
fn a_user_of_this_server_may_be_written_with_its_domain() {
    let server = TestServer::start(edge::Access::Open, |_, options| {
        options.domain = "social.example".to_owned();
    });
    server.register(&["ada", "bob"]);
    let bob = json!([{"id": "1", "handle": "bob"}]);
    let check = |post: &Value| {
        assert_eq!((&post["text"], &post["mentions"]), (&json!("to @bob"), &bob), "{post}");
    };
    let body = json!({"text": "to @bob@Social.Example"});
    let post = server.post("/v1/users/@ada/posts", &body).json();
    check(&post);
    let path = format!("/v1/posts/{}", post["id"].as_str().unwrap());
    let own = path.replace("/v1/", "/v1/users/@ada/");
    server.with_json("PATCH", &own, &[], &json!({"text": "nobody@social.example"}));
    assert_eq!(server.get(&path).json()["mentions"], json!([]));
    check(&server.with_json("PATCH", &own, &[], &body).json());
    server.batch("{\"op\":\"post\",\"user\":\"@ada\",\"text\":\"to @bob@social.example\"}\n");
    check(&server.get("/v1/users/@ada/posts").json()["items"][0]);
}

#[test]
fn a_quote_names_the_quoted_post_for_who_may_see_it_until_it_is_revoked() {
    let server = TestServer::open();
    server.register(&["ada", "bob", "cyd"]);
    let quoted = server.publish("ada", "a post");
    let quote = |user: &str, id: &str| {
        let body = json!({"text": "look", "quote_id": id});
        server.post(&format!("/v1/users/@{user}/posts"), &body)
    };
    let created = quote("bob", &quoted).json();
    assert_eq!(created["quote"], json!({"id": quoted, "state": "accepted"}));
    let id = created["id"].as_str().unwrap();
    let path = format!("/v1/posts/{id}");
    let list = format!("/v1/posts/{quoted}/quotes");
    assert_eq!(server.texts(&list), ["look"]);
    let notice = server.get("/v1/users/@ada/notifications").json();
    assert_eq!(
        (&notice["items"][0]["kind"], &notice["items"][0]["post"]),
        (&json!("quote"), &created)
    );
    // A user who may not see the quoted post may not quote it, and gets no list of its quotes.
    assert_eq!(server.send("PUT", "/v1/users/@ada/blocks/@cyd", &[], b"").status, 204);
    quote("cyd", &quoted).assert_error(422, "quoted_not_found", "of a post by who blocks");
    let answer = server.get(&format!("/v1/posts/{quoted}?viewer=@cyd"));
    answer.assert_error(404, "post_not_found", "blocked");
    server.get(&format!("{list}?viewer=@cyd")).assert_error(404, "post_not_found", "blocked");
    // A quote of a post for followers is also for followers. A user mentioned in the quote does not see what it quotes.
    let closed = json!({"text": "secret", "visibility": "followers", "quote_policy": "nobody"});
    let closed = server.post("/v1/users/@ada/posts", &closed).json();
    assert_eq!(closed["quote_policy"], "nobody");
    let closed = closed["id"].as_str().unwrap();
    let own = quote("ada", closed).json();
    assert_eq!((&own["visibility"], &own["quote"]["id"]), (&json!("followers"), &json!(closed)));
    let body = json!({"text": "look @cyd", "quote_id": closed});
    let own = server.post("/v1/users/@ada/posts", &body).json();
    assert_eq!(own["quote"], json!({"id": null, "state": "unauthorized"}), "others see the quote");
    quote("bob", closed).assert_error(422, "quoted_not_found", "not a follower");
    server.follow("bob", "ada");
    quote("bob", closed).assert_error(422, "quote_not_allowed", "a follower");
    for id in ["0", "9223372036854775807"] {
        quote("bob", id).assert_error(422, "quoted_not_found", id);
    }
    quote("bob", "x").assert_error(400, "bad_request", "no id");
    // Only the author of the quoted post revokes it.
    for user in ["bob", "cyd"] {
        let answer = server.send("DELETE", &format!("/v1/users/@{user}/quotes/{id}"), &[], b"");
        answer.assert_error(404, "post_not_found", user);
    }
    assert_eq!(server.get(&path).json()["quote"]["state"], "accepted");
    for _ in 0..2 {
        let answer = server.send("DELETE", &format!("/v1/users/@ada/quotes/{id}"), &[], b"");
        assert_eq!(answer.status, 204);
    }
    let shown = server.get(&path).json();
    assert_eq!(shown["quote"], json!({"id": null, "state": "revoked"}));
    assert_eq!((&shown["edited_at"], server.texts(&list).len()), (&Value::Null, 0));
    // A cached quote of a deleted post shows it as deleted.
    let again = quote("bob", &quoted).json();
    let again = format!("/v1/posts/{}", again["id"].as_str().unwrap());
    assert_eq!(server.get(&again).json()["quote"]["id"], quoted.as_str());
    server.send("DELETE", &format!("/v1/users/@ada/posts/{quoted}"), &[], b"");
    assert_eq!(server.get(&again).json()["quote"], json!({"id": null, "state": "deleted"}));
}
