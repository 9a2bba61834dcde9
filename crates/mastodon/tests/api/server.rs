//! Accounts, search, and what the server says about itself.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use feed::{Handle, Language};
use mastodon::{About, Picture};
use serde_json::{Value, json};

use crate::client::{World, ids};

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
    assert!(got.text.contains("no picture"), "a reason that apps show: {got:?}");
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
    let found = get("/.well-known/webfinger?resource=acct:ada@social.example").await;
    assert_eq!(found["subject"], "acct:ada@social.example");
    for bad in ["", "?resource=acct:eve@social.example", "?resource=acct:ada@other.example"] {
        let got = world.get(&format!("/.well-known/webfinger{bad}"), None).await;
        assert!(got.status.is_client_error(), "{bad}: {got:?}");
    }
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
async fn parameters_of_a_read_may_be_in_its_body() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let path = "/api/v1/accounts/relationships";
    let ask = |kind: &str, body: String| {
        let request = Request::get(path).header(CONTENT_TYPE, kind);
        let request = request.header(AUTHORIZATION, format!("Bearer {}", ada.token));
        world.send(request.body(Body::from(body)).unwrap())
    };
    // Mastodon.py does so.
    let got = ask("application/json", format!("{{\"id\": [\"{}\"]}}", bob.id)).await;
    assert_eq!(ids(&got.json()), [bob.id.as_str()]);
    assert_eq!(ask("application/json", "x".repeat(100_000)).await.status.as_u16(), 413);
    assert_eq!(ask("application/json", String::new()).await.json(), json!([]));
}
