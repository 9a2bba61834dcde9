//! Accounts, search, and the self-description of the server.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use feed::{Command, Handle, Language, UserId, UserRef};
use mastodon::{About, Picture, Rate, Rates};
use serde_json::{Value, json};

use crate::client::{Got, PASSWORD, World, ids};

#[tokio::test]
async fn a_profile_is_changed_and_what_is_fixed_is_refused() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let path = "/api/v1/accounts/update_credentials";
    let fields = [
        ("display_name", "Ada <3"),
        ("note", "one\n\n<script>\nhttps://a.example/"),
        ("hide_collections", "false"),
    ];
    let me = ada.call(&world, "PATCH", path, &fields).await;
    assert_eq!(me["display_name"], "Ada <3");
    assert_eq!(me["source"]["note"], fields[1].1);
    let note = me["note"].as_str().unwrap();
    assert!(note.starts_with("<p>one</p><p>&lt;script&gt;<br /><a href=\"https://a.example/\""));
    let cleared = ada.call(&world, "PATCH", path, &[("note", "")]).await;
    assert_eq!((&cleared["note"], &cleared["display_name"]), (&json!(""), &json!("Ada <3")));
    for (name, value) in [
        ("avatar", "x"),
        ("hide_collections", "true"),
        ("display_name", "a\nb"),
        ("fields_attributes[0][value]", "without a name"),
        ("fields_attributes[][name]", "a\nb"),
        ("source[privacy]", "direct"),
        ("source[privacy]", "followers"),
        ("source[language]", "english"),
    ] {
        let got = world.call("PATCH", path, Some(&ada.token), &[(name, value)]).await;
        assert_eq!(got.status.as_u16(), 422, "{name}: {got:?}");
    }
    let form = |kind: &str| {
        let head =
            "--x\r\nContent-Disposition: form-data; name=\"avatar\"; filename=\"a.png\"\r\n\r\n";
        let request = Request::patch(path).header(CONTENT_TYPE, kind);
        let request = request.header(AUTHORIZATION, format!("Bearer {}", ada.token));
        let body = format!("{head}{}\r\n--x--\r\n", "x".repeat(100_000));
        world.send(request.body(Body::from(body)).unwrap())
    };
    let got = form("multipart/form-data; boundary=x").await;
    assert_eq!(got.status.as_u16(), 422);
    assert!(got.text.contains("not a supported picture"), "a reason that apps show: {got:?}");
    assert_eq!(form("application/json").await.status.as_u16(), 413);
}

#[tokio::test]
async fn users_are_found_by_name_and_the_beginning_of_their_handles_also_with_a_mistake() {
    let world = World::new();
    let [ada, adam, bob] = world.people(["ada", "adam", "bob"]).await;
    bob.does(&world, "follow", &adam).await;
    for (query, expect) in [
        ("q=ad", vec![&ada.id, &adam.id]),
        ("q=@ADA", vec![&ada.id, &adam.id]),
        ("q=ada@social.example", vec![&ada.id, &adam.id]),
        ("q=ada@other.example", vec![]),
        ("q=ad&limit=1", vec![&ada.id]),
        ("q=ad&limit=1&offset=1", vec![&adam.id]),
        ("q=ad&following=true", vec![&adam.id]),
        ("q=adma", vec![&ada.id, &adam.id]),
        ("q=@adan", vec![&ada.id, &adam.id]),
        ("q=adan&limit=1&offset=1", vec![&adam.id]),
        ("q=adan&following=true", vec![&adam.id]),
        ("q=", vec![]),
        ("q=%25", vec![]),
    ] {
        let one = bob.ids(&world, &format!("/api/v1/accounts/search?{query}")).await;
        assert_eq!(one.iter().collect::<Vec<_>>(), expect, "{query}");
        let all = bob.get(&world, &format!("/api/v2/search?{query}")).await;
        assert_eq!(ids(&all["accounts"]).iter().collect::<Vec<_>>(), expect, "{query}");
        let none = bob.get(&world, &format!("/api/v2/search?type=statuses&{query}")).await;
        assert_eq!(none["accounts"], json!([]));
    }
    let post = ada.post(&world, "x").await;
    for version in ["v1", "v2"] {
        for (path, accounts, statuses) in [
            (format!("@ada/{post}"), vec![], vec![&post]),
            (format!("users/ada/statuses/{post}"), vec![], vec![&post]),
            ("@ada".to_owned(), vec![&ada.id], vec![]),
            ("users/ada".to_owned(), vec![&ada.id], vec![]),
            ("users/ada/statuses/x".to_owned(), vec![], vec![]),
            ("users/ada/inbox".to_owned(), vec![], vec![]),
            (String::new(), vec![], vec![]),
        ] {
            let query = format!("/api/{version}/search?q=https://social.example/{path}");
            let found = bob.get(&world, &query).await;
            assert_eq!(
                ids(&found["accounts"]).iter().take(1).collect::<Vec<_>>(),
                accounts,
                "{query}"
            );
            assert_eq!(ids(&found["statuses"]).iter().collect::<Vec<_>>(), statuses, "{query}");
        }
    }
    for (name, status) in [
        ("ada", 200),
        ("@ada@social.example", 200),
        ("ada@other.example", 404),
        ("eve", 404),
        ("", 404),
    ] {
        let got = world.get(&format!("/api/v1/accounts/lookup?acct={name}"), None).await;
        assert_eq!(got.status.as_u16(), status, "{name}");
    }
}

#[tokio::test]
async fn the_operator_describes_the_server() {
    let world = World::with(|options| {
        let picture = Picture::new(b"GIF89a of cats".to_vec()).unwrap();
        options.about = Arc::new(About {
            title: "Cats".to_owned(),
            description: "A place <for> cats".to_owned(),
            text: "One.\n\n<b>Two".to_owned(),
            text_ms: 1_800_000_000_001,
            rules: vec!["Be kind".to_owned(), "No <dogs>".to_owned()],
            contact: Some(Handle::parse("ada").unwrap()),
            contact_email: "ada@example.org".to_owned(),
            languages: vec![Language::parse("fr").unwrap()],
            picture: Some(picture),
        });
    });
    let get = async |path: &str| world.get(path, None).await.json();
    assert_eq!(get("/api/v1/instance").await["contact_account"], json!(null), "nobody yet");
    let [ada] = world.people(["ada"]).await;
    let one = get("/api/v1/instance").await;
    assert_eq!(
        (&one["title"], &one["description"]),
        (&json!("Cats"), &json!("A place <for> cats"))
    );
    assert_eq!((&one["email"], &one["languages"]), (&json!("ada@example.org"), &json!(["fr"])));
    assert_eq!(one["contact_account"]["id"], ada.id.as_str());
    let two = get("/api/v2/instance").await;
    assert_eq!((&two["title"], &two["contact"]["account"]["id"]), (&json!("Cats"), &json!(ada.id)));
    assert_eq!(two["rules"], get("/api/v1/instance/rules").await);
    assert_eq!(
        (&two["rules"][1]["id"], &two["rules"][1]["text"]),
        (&json!("2"), &json!("No <dogs>"))
    );
    let text = get("/api/v1/instance/extended_description").await;
    assert_eq!(text["content"], "<p>One.</p><p>&lt;b&gt;Two</p>");
    assert_eq!(text["updated_at"], "2027-01-15T08:00:00.001Z");
    let url = two["thumbnail"]["url"].as_str().unwrap();
    let picture = world.get(url.strip_prefix("https://social.example").unwrap(), None).await;
    assert_eq!(picture.headers[CONTENT_TYPE], "image/gif");
    assert_eq!(picture.text, "GIF89a of cats");
    let page = world.get("/auth/sign-up", None).await;
    assert!(page.text.contains("<li>No &lt;dogs&gt;</li>"), "{page:?}");
}

#[tokio::test]
async fn the_server_describes_itself() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    ada.post(&world, "x").await;
    let get = async |path: &str| -> Value {
        let got = world.get(path, None).await;
        assert_eq!(got.status.as_u16(), 200, "{path}: {got:?}");
        got.json()
    };
    let one = get("/api/v1/instance").await;
    assert_eq!(one["uri"], "social.example");
    assert_eq!(one["stats"], json!({"user_count": 1, "status_count": 1, "domain_count": 0}));
    assert!(one["version"].as_str().unwrap().contains("compatible; roost"));
    assert_eq!(one["configuration"]["statuses"]["max_characters"], 500);
    assert_eq!(one["configuration"]["accounts"]["max_profile_fields"], 4);
    assert_eq!(one["configuration"]["statuses"]["max_media_attachments"], 4);
    assert_eq!(one["configuration"]["media_attachments"]["image_size_limit"], 16 << 20);
    assert_eq!(world.get("/instance/picture", None).await.status.as_u16(), 404);
    assert_eq!(get("/api/v1/instance/").await, one, "a slash at the end makes no difference");
    let two = get("/api/v2/instance").await;
    assert_eq!(two["domain"], "social.example");
    assert_eq!(two["configuration"]["urls"]["streaming"], "wss://social.example");
    assert_eq!(two["registrations"]["enabled"], true);
    let links = get("/.well-known/nodeinfo").await;
    assert_eq!(links["links"][0]["href"], "https://social.example/nodeinfo/2.0");
    assert_eq!(get("/nodeinfo/2.0").await["usage"]["localPosts"], 1);
    let host_meta = world.get("/.well-known/host-meta", None).await;
    assert_eq!(host_meta.headers["content-type"], "application/xrd+xml; charset=utf-8");
    let template =
        "template=\"https://social.example/.well-known/webfinger?resource={uri}\"/>\n</XRD>";
    assert!(host_meta.text.contains(template), "{}", host_meta.text);
    for path in ["/avatars/original/missing.png", "/headers/original/missing.png"] {
        let got = world.get(path, None).await;
        assert_eq!(got.headers["content-type"], "image/png", "{path}");
        assert_eq!(got.headers["access-control-allow-origin"], "*", "{path}");
    }
    let nodeinfo = get("/nodeinfo/2.0").await;
    // Clients recognize the API by this name only.
    assert_eq!(nodeinfo["metadata"]["upstream"]["name"], "mastodon");
    assert_eq!(nodeinfo["software"]["name"], "roost");
    for (path, to) in [
        ("/@ada", "/#/@ada"),
        ("/@ada/1", "/#/post/1"),
        ("/users/ada", "/#/@ada"),
        ("/users/ada/statuses/1", "/#/post/1"),
        ("/tags/Caf%C3%A9", "/#/tags/caf%C3%A9"),
        ("/@ada/tagged/x", "/#/@ada"),
    ] {
        assert_eq!(world.get(path, None).await.location(), to, "{path}");
    }
    for path in ["/@a-b", "/@ada/x", "/@%22/1", "/tags/1", "/tags/a-b"] {
        assert_eq!(world.get(path, None).await.status.as_u16(), 404, "{path}");
    }
}

#[tokio::test]
async fn webfinger_finds_users_by_their_names_and_both_urls() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let webfinger = "/.well-known/webfinger?resource=acct:ada@social.example";
    let found = world.get(webfinger, None).await.json();
    assert_eq!(found["subject"], "acct:ada@social.example");
    for (query, status) in [
        ("?resource=acct:ada@social.example", 200),
        ("?resource=ada@social.example", 200),
        ("?resource=https://social.example/@ada", 200),
        ("?resource=https://social.example/users/ada", 200),
        ("", 400),
        ("?resource=", 400),
        ("?resource=ada", 400),
        ("?resource=mailto:x", 400),
        ("?resource=acct:eve@social.example", 404),
        ("?resource=acct:ada@other.example", 404),
        ("?resource=https://other.example/@ada", 404),
        ("?resource=https://social.example/ada", 404),
        ("?resource=https://social.example/users/ada/inbox", 404),
    ] {
        let got = world.get(&format!("/.well-known/webfinger{query}"), None).await;
        assert_eq!(got.status.as_u16(), status, "{query}: {got:?}");
        if status == 200 {
            assert_eq!(got.json(), found, "{query}");
        }
    }
    let account = ada.get(&world, &format!("/api/v1/accounts/{}", ada.id)).await;
    let aliases = found["aliases"].as_array().unwrap();
    assert!(aliases.contains(&account["uri"]) && aliases.contains(&account["url"]), "{found}");
}

#[tokio::test]
async fn parameters_of_a_read_may_be_in_its_body() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let path = "/api/v1/accounts/relationships";
    let ask = |kind: &str, body: String| {
        let request = Request::get(path).header(CONTENT_TYPE, kind);
        let request = request.header(AUTHORIZATION, format!("Bearer {}", ada.token));
        world.send(request.body(Body::from(body)).unwrap())
    };
    // This request is one of Mastodon.py.
    let got = ask("application/json", format!("{{\"id\": [\"{}\"]}}", bob.id)).await;
    assert_eq!(ids(&got.json()), [bob.id.as_str()]);
    assert_eq!(ask("application/json", "x".repeat(100_000)).await.status.as_u16(), 413);
    assert_eq!(ask("application/json", String::new()).await.json(), json!([]));
}

#[tokio::test]
async fn booleans_are_read_as_rails_reads_them() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let credentials = "/api/v1/accounts/update_credentials";
    for (text, expect) in [
        ("True", true),
        ("FALSE", false),
        ("yes", true),
        ("off", false),
        ("1", true),
        ("0", false),
        ("on", true),
        ("F", false),
    ] {
        let fields = [("status", "x"), ("sensitive", text)];
        let status = ada.call(&world, "POST", "/api/v1/statuses", &fields).await;
        assert_eq!(status["sensitive"], expect, "{text}");
        let fields = [("locked", text), ("bot", text), ("source[sensitive]", text)];
        let me = ada.call(&world, "PATCH", credentials, &fields).await;
        let [locked, bot, sensitive] = [&me["locked"], &me["bot"], &me["source"]["sensitive"]];
        assert_eq!((locked, bot, sensitive), (&expect.into(), &expect.into(), &expect.into()));
        let fields = [
            ("title", "x"),
            ("context[]", "home"),
            ("keywords_attributes[][keyword]", "x"),
            ("keywords_attributes[][whole_word]", text),
        ];
        let filter = ada.call(&world, "POST", "/api/v2/filters", &fields).await;
        assert_eq!(filter["keywords"][0]["whole_word"], expect, "{text}");
        let fields = [("title", "x"), ("exclusive", text)];
        let got = world.post("/api/v1/lists", Some(&ada.token), &fields).await;
        assert_eq!(got.status.as_u16(), if expect { 422 } else { 200 }, "{text}: {got:?}");
    }
    // An empty value counts as absent.
    ada.call(&world, "PATCH", credentials, &[("locked", "true")]).await;
    let me = ada.call(&world, "PATCH", credentials, &[("locked", ""), ("note", "x")]).await;
    assert_eq!(me["locked"], true);
}

#[tokio::test]
async fn relations_to_as_many_accounts_as_fit_in_a_url_are_read_at_once() {
    let world = World::new();
    let [ada, bob, cyd] = world.people(["ada", "bob", "cyd"]).await;
    for (who, whom) in [(&ada, &bob), (&bob, &cyd)] {
        who.does(&world, "follow", whom).await;
    }
    let ask = async |path: &str, ids: &[&str]| {
        let fields: Vec<_> = ids.iter().map(|id| ("id[]", *id)).collect();
        let path = format!("/api/v1/accounts/{path}");
        world.call("GET", &path, Some(&ada.token), &fields).await
    };
    let numbers: Vec<_> = (1_000..1_600).map(|number| number.to_string()).collect();
    let many = |count: usize| {
        let strangers = numbers.iter().map(String::as_str).take(count - 1);
        strangers.chain([bob.id.as_str()]).collect::<Vec<_>>()
    };
    for (count, expect) in [(1, 200), (101, 200), (300, 200), (400, 200), (401, 414), (600, 414)] {
        for path in ["relationships", "familiar_followers"] {
            let got = ask(path, &many(count)).await;
            assert_eq!(got.status.as_u16(), expect, "{path} {count}: {got:?}");
            if expect == 200 {
                assert_eq!(ids(&got.json()), [bob.id.as_str()], "{path} {count}");
            }
        }
    }
    let got = ask("familiar_followers", &[&cyd.id, "77", &bob.id]).await.json();
    assert_eq!((&got[0]["id"], &got[1]["id"]), (&json!(cyd.id), &json!(bob.id)));
    assert_eq!(ids(&got[0]["accounts"]), [bob.id.as_str()], "followers of cyd whom ada follows");
    assert_eq!(got[0]["accounts"][0]["acct"], "bob");
    assert_eq!((&got[1]["accounts"], got.as_array().unwrap().len()), (&json!([]), 2));
    // Long notes make the relations to all accounts too long for one response. Such a request is refused, so that no
    // account is omitted.
    let names: [String; 40] = std::array::from_fn(|number| format!("u{number}"));
    let people = world.people(names.each_ref().map(String::as_str)).await;
    let note = "\u{1F469}\u{200D}\u{1F680}".repeat(720);
    for person in &people {
        let path = format!("/api/v1/accounts/{}/note", person.id);
        ada.call(&world, "POST", &path, &[("comment", &note)]).await;
    }
    let all: Vec<_> = people.iter().map(|person| person.id.as_str()).collect();
    assert_eq!(ask("relationships", &all).await.status.as_u16(), 414);
    assert_eq!(ids(&ask("relationships", &all[..20]).await.json()), all[..20]);
}

#[tokio::test]
async fn a_client_is_told_what_is_left_of_its_rate() {
    let rate = |times| Rate { times, within: Duration::from_secs(600) };
    let world = World::with(|options| {
        options.rates = Rates {
            requests: rate(9),
            posts: rate(3),
            anonymous_reads: rate(2),
            ..Rates::unlimited()
        };
    });
    let [ada] = world.people(["ada"]).await;
    let left = |got: &Got| {
        let number = |name: &str| got.headers[name].to_str().unwrap().parse::<u32>().unwrap();
        let reset = got.headers["x-ratelimit-reset"].to_str().unwrap();
        assert!(reset.len() == 24 && reset.ends_with('Z'), "{reset}");
        let exposed = got.headers["access-control-expose-headers"].to_str().unwrap();
        for name in ["Link", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"] {
            assert!(exposed.split(", ").any(|exposed| exposed == name), "{exposed}");
        }
        (got.status.as_u16(), number("x-ratelimit-limit"), number("x-ratelimit-remaining"))
    };
    let home = async || world.get("/api/v1/timelines/home", Some(&ada.token)).await;
    // One request was used before: that for the account.
    assert_eq!(left(&home().await), (200, 9, 7));
    let post = async || world.post("/api/v1/statuses", Some(&ada.token), &[("status", "x")]).await;
    for remaining in [2, 1, 0] {
        assert_eq!(left(&post().await), (200, 3, remaining), "the nearest limit");
    }
    let got = post().await;
    assert_eq!(left(&got), (429, 3, 0));
    assert!(got.headers.contains_key("retry-after"));
    assert_eq!(left(&home().await), (200, 9, 2));
    let guest = async || world.get("/api/v1/timelines/public", None).await;
    assert_eq!(left(&guest().await), (200, 2, 1));
    assert_eq!(left(&guest().await), (200, 2, 0));
    assert_eq!(left(&guest().await), (429, 2, 0));
    let unlimited = World::new();
    let got = unlimited.get("/api/v1/timelines/public", None).await;
    assert!(!got.headers.contains_key("x-ratelimit-limit"));
}

#[tokio::test]
async fn a_deleted_account_does_not_exist_and_nobody_gets_its_handle() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    ada.does(&world, "follow", &bob).await;
    let own = bob.post(&world, "hello").await;
    let before = ada.post(&world, "@bob hello").await;
    let user = UserRef::Id(UserId(bob.id.parse().unwrap()));
    let delete = Command::DeleteUser { user };
    world.node.submit(delete.into()).await.unwrap().outcome.unwrap();
    for path in [
        "/api/v1/accounts/lookup?acct=bob".to_owned(),
        format!("/api/v1/accounts/{}", bob.id),
        format!("/api/v1/accounts/{}/statuses", bob.id),
        format!("/api/v1/accounts/{}/followers", bob.id),
        format!("/api/v1/statuses/{own}"),
        "/.well-known/webfinger?resource=acct:bob@social.example".to_owned(),
    ] {
        let got = world.get(&path, Some(&ada.token)).await;
        assert_eq!(got.status.as_u16(), 404, "{path}: {got:?}");
    }
    for path in [
        "/api/v1/accounts/search?q=bob".to_owned(),
        format!("/api/v1/accounts?id[]={}", bob.id),
        format!("/api/v1/accounts/relationships?id[]={}", bob.id),
        format!("/api/v1/accounts/familiar_followers?id[]={}", bob.id),
        format!("/api/v1/accounts/{}/following", ada.id),
        "/api/v1/timelines/home?limit=0&max_id=1".to_owned(),
    ] {
        assert_eq!(ada.get(&world, &path).await, json!([]), "{path}");
    }
    let me = ada.get(&world, "/api/v1/accounts/verify_credentials").await;
    assert_eq!(me["following_count"], 0);
    let after = ada.post(&world, "@bob hello").await;
    for post in [before, after] {
        let status = ada.get(&world, &format!("/api/v1/statuses/{post}")).await;
        assert_eq!(status["mentions"], json!([]), "{status}");
        let content = status["content"].as_str().unwrap();
        assert!(content.contains("bob hello") && !content.contains("href"), "{content}");
    }
    let app = world.app_with("write:accounts").await;
    let token = app.own_token(&world, "write:accounts").await;
    let sign_up = async |name: &str| {
        let fields = [
            ("username", name),
            ("email", "bob@example.org"),
            ("password", PASSWORD),
            ("agreement", "true"),
        ];
        world.post("/api/v1/accounts", Some(&token), &fields).await
    };
    let got = sign_up("Bob").await;
    assert_eq!(got.json()["details"]["username"][0]["error"], "ERR_TAKEN", "{got:?}");
    assert_eq!(sign_up("bob2").await.status.as_u16(), 200, "the address is free");
}
