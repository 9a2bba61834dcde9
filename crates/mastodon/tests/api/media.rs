//! Pictures: upload, attachment, reading, and attacks.

use std::io::Cursor;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Request;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use edge::STREAM_READS_MAX;
use feed::accounts::{AccountCommand, AccountState};
use feed::{Command, UserId, UserRef};
use futures_util::stream;
use image::{ImageFormat, Rgb, RgbImage};
use mastodon::Rate;
use serde_json::{Value, json};
use testkit::gif;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::{ALL_SCOPES, Got, Person, World, ids};

const BASE: &str = "https://social.example";
const STATUSES: &str = "/api/v1/statuses";

/// Makes a picture of noise, whose file is large because it cannot be compressed.
fn noise(width: u32, height: u32) -> Vec<u8> {
    let mut state = 1_u32;
    let picture = RgbImage::from_fn(width, height, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Rgb([state as u8, (state >> 8) as u8, (state >> 16) as u8])
    });
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

/// Encodes a multipart form with fields and named files.
fn form(fields: &[(&str, &str)], files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, value) in fields {
        let head = format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
        body.extend([head.as_bytes(), value.as_bytes(), b"\r\n"].concat());
    }
    for (name, file) in files {
        let head = format!(
            "--x\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"a.svg\"\r\n\
             Content-Type: image/svg+xml\r\n\r\n"
        );
        body.extend([head.as_bytes(), *file, b"\r\n"].concat());
    }
    body.extend(b"--x--\r\n");
    body
}

impl World {
    async fn send_form(&self, method: &str, path: &str, token: &str, body: impl Into<Body>) -> Got {
        let request = Request::builder().method(method).uri(path);
        let request = request.header(CONTENT_TYPE, "multipart/form-data; boundary=x");
        let request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        self.send(request.body(body.into()).unwrap()).await
    }

    /// Fetches a URL of this server.
    async fn fetch(&self, url: &Value) -> Got {
        self.get(url.as_str().unwrap().strip_prefix(BASE).unwrap(), None).await
    }
}

impl Person {
    async fn upload(&self, world: &World, file: &[u8], fields: &[(&str, &str)]) -> Value {
        let body = form(fields, &[("file", file)]);
        let got = world.send_form("POST", "/api/v2/media", &self.token, body).await;
        assert_eq!(got.status.as_u16(), 200, "{got:?}");
        got.json()
    }

    /// Uploads a picture; returns its id.
    pub(crate) async fn picture(&self, world: &World, color: u8) -> String {
        self.upload(world, &gif(color), &[]).await["id"].as_str().unwrap().to_owned()
    }

    /// Publishes a status with pictures.
    async fn publish(&self, world: &World, text: &str, pictures: &[&str]) -> Value {
        let mut fields = vec![("status", text)];
        fields.extend(pictures.iter().map(|id| ("media_ids[]", *id)));
        self.call(world, "POST", STATUSES, &fields).await
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[tokio::test]
async fn a_picture_is_uploaded_posted_and_read_by_everybody_with_its_address() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let fields = [("description", " a <cat> "), ("focus", "-0.5,0.3"), ("thumbnail", "x")];
    let media = ada.upload(&world, &noise(300, 200), &fields).await;
    assert_eq!((&media["type"], &media["description"]), (&json!("image"), &json!("a <cat>")));
    assert_eq!(media["meta"]["original"]["size"], "300x200");
    assert_eq!(media["meta"]["original"]["aspect"], 1.5);
    assert_eq!(media["meta"]["focus"], json!({"x": -0.5, "y": 0.3}));
    assert!(text(&media["blurhash"]).len() > 6 && media["remote_url"].is_null());
    let id = text(&media["id"]);
    let post = ada.publish(&world, "", &[id]).await;
    assert_eq!((&post["content"], &post["media_attachments"]), (&json!(""), &json!([media])));
    let post_id = text(&post["id"]);
    // A boost has no pictures of its own; those of the boosted status are in `reblog`.
    let boost = bob.call(&world, "POST", &format!("{STATUSES}/{post_id}/reblog"), &[]).await;
    assert_eq!(boost["reblog"]["media_attachments"], json!([media]));
    assert_eq!(boost["media_attachments"], json!([]));
    let history = bob.get(&world, &format!("{STATUSES}/{post_id}/history")).await;
    assert_eq!(history[0]["media_attachments"], json!([media]));

    let got = world.fetch(&media["url"]).await;
    assert_eq!(got.status.as_u16(), 200);
    assert!(got.bytes.len() > 3 * (16 << 10), "in several pieces: {}", got.bytes.len());
    assert!(got.bytes.starts_with(b"\x89PNG") && text(&media["url"]).ends_with("/original.png"));
    assert_eq!(got.headers["content-length"], got.bytes.len().to_string().as_str());
    for (name, value) in [
        ("content-type", "image/png"),
        ("cache-control", "public, max-age=31536000, immutable"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; sandbox"),
        ("content-disposition", "inline"),
        ("access-control-allow-origin", "*"),
    ] {
        assert_eq!(got.headers[name], value, "{name}");
    }
    assert_eq!(world.fetch(&media["preview_url"]).await.headers["content-type"], "image/png");
    let path = text(&media["url"]).strip_prefix(BASE).unwrap();
    let head = world.call("HEAD", path, None, &[]).await;
    assert_eq!((head.status.as_u16(), head.bytes.len()), (200, 0));
    assert_eq!(head.headers["content-length"], got.headers["content-length"]);
    let etag = got.headers["etag"].to_str().unwrap();
    for (known, status) in [(etag, 304), ("*", 304), ("\"other\"", 200), ("bad", 200)] {
        let got = world.call_with("GET", path, None, &[], &[("if-none-match", known)]).await;
        assert_eq!(got.status.as_u16(), status, "{known}");
        assert_eq!(got.headers["etag"], etag);
        assert_eq!(got.bytes.is_empty(), status == 304);
    }
    assert_eq!(world.call("OPTIONS", path, None, &[]).await.status.as_u16(), 204);
}

#[tokio::test]
async fn without_the_right_key_there_is_no_picture_and_after_its_deletion_neither() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let media = ada.upload(&world, &gif(1), &[]).await;
    let url = text(&media["url"]).strip_prefix(BASE).unwrap();
    let (start, rest) = url.split_once('-').unwrap();
    let (key, name) = rest.split_once('/').unwrap();
    let last = if key.ends_with('0') { "1" } else { "0" };
    let wrong = format!("{}{last}", &key[..31]);
    for path in [
        format!("{start}-{wrong}/{name}"),
        format!("{start}-{}/{name}", &key[..31]),
        format!("{start}-{}/{name}", "0".repeat(32)),
        format!("{start}0-{key}/{name}"),
        format!("/media/0{}-{key}/{name}", &start[7..]),
        format!("{start}-{key}/original.jpg"),
        format!("{start}-{key}/large.png"),
        format!("{start}-{key}/original"),
        format!("{start}-{key}/..%2foriginal.png"),
        format!("{start}-{key}/{name}/"),
        format!("/media/{key}/{name}"),
    ] {
        let got = world.get(&path, None).await;
        assert_eq!(got.status.as_u16(), 404, "{path}: {got:?}");
        let known = world.call_with("GET", &path, None, &[], &[("if-none-match", "*")]).await;
        assert_eq!(known.status.as_u16(), 404, "{path}");
    }
    assert_eq!(world.get(url, None).await.status.as_u16(), 200);
    let post = ada.publish(&world, "", &[text(&media["id"])]).await;
    let path = format!("{STATUSES}/{}", text(&post["id"]));
    let path = format!("{path}?delete_media=true");
    let deleted = ada.call(&world, "DELETE", &path, &[]).await;
    assert_eq!(deleted["media_attachments"], json!([]), "nothing to attach again");
    assert_eq!(world.get(url, None).await.status.as_u16(), 404);
}

#[tokio::test]
async fn the_pictures_of_a_deleted_status_can_be_attached_to_the_next() {
    let world = World::new();
    let [ada, eve] = world.people(["ada", "eve"]).await;
    let ids = [ada.picture(&world, 1).await, ada.picture(&world, 2).await];
    let first = ada.publish(&world, "with a mistkae", &[&ids[0], &ids[1]]).await;
    let path = format!("{STATUSES}/{}", text(&first["id"]));
    let got = world.call("DELETE", &path, Some(&eve.token), &[]).await;
    assert_eq!(got.status.as_u16(), 404);
    let deleted = ada.call(&world, "DELETE", &path, &[]).await;
    assert_eq!(deleted["text"], "with a mistkae");
    assert_eq!(deleted["media_attachments"], first["media_attachments"]);
    let url = text(&first["media_attachments"][0]["url"]);
    let url = url.strip_prefix(BASE).unwrap();
    assert_eq!(world.get(url, None).await.status.as_u16(), 200);
    // An app may describe one picture again, and drop the other.
    let described = [("description", "a dot")];
    ada.call(&world, "PUT", &format!("/api/v1/media/{}", ids[0]), &described).await;
    let second = ada.publish(&world, "with none", &[&ids[0]]).await;
    assert_eq!(second["media_attachments"][0]["id"], ids[0].as_str());
    assert_eq!(second["media_attachments"][0]["description"], "a dot");
    let dropped = ada.get(&world, &format!("/api/v1/media/{}", ids[1])).await;
    assert_eq!(dropped["id"], ids[1].as_str(), "it can still be attached");
}

#[tokio::test]
async fn a_picture_is_described_and_deleted_until_a_status_has_it() {
    let world = World::new();
    let [ada, eve] = world.people(["ada", "eve"]).await;
    let id = ada.picture(&world, 1).await;
    let path = format!("/api/v1/media/{id}");
    let fields = [("description", "a dot"), ("focus", "0,1")];
    let changed = ada.call(&world, "PUT", &path, &fields).await;
    assert_eq!(changed["description"], "a dot");
    assert_eq!(changed["meta"]["focus"], json!({"x": 0.0, "y": 1.0}));
    assert_eq!(ada.get(&world, &path).await, changed);
    assert_eq!(ada.call(&world, "PUT", &path, &[("focus", "0,0")]).await["description"], "a dot");
    let cleared = ada.call(&world, "PUT", &path, &[("description", "")]).await;
    assert!(cleared["description"].is_null());
    let long = "x".repeat(1_501);
    for fields in [("description", long.as_str()), ("focus", "2,0"), ("focus", "x")] {
        let got = world.call("PUT", &path, Some(&ada.token), &[fields]).await;
        assert_eq!(got.status.as_u16(), 422, "{fields:?}");
    }
    for method in ["GET", "PUT", "DELETE"] {
        let got = world.call(method, &path, Some(&eve.token), &[("description", "mine")]).await;
        assert_eq!(got.status.as_u16(), 404, "{method}: {got:?}");
    }
    assert_eq!(ada.get(&world, &path).await, cleared);
    let other = ada.picture(&world, 2).await;
    assert_eq!(ada.call(&world, "DELETE", &format!("/api/v1/media/{other}"), &[]).await, json!({}));
    let got = world.get(&format!("/api/v1/media/{other}"), Some(&ada.token)).await;
    assert_eq!(got.status.as_u16(), 404);
    ada.publish(&world, "with a dot", &[&id]).await;
    for (method, status) in [("GET", 404), ("PUT", 404), ("DELETE", 422)] {
        let got = world.call(method, &path, Some(&ada.token), &[("description", "late")]).await;
        assert_eq!(got.status.as_u16(), status, "{method}: {got:?}");
    }
}

#[tokio::test]
async fn only_own_pictures_that_no_status_has_are_posted_at_most_four_and_each_once() {
    let world = World::new();
    let [ada, eve] = world.people(["ada", "eve"]).await;
    let mut own = Vec::new();
    for color in 0..5 {
        own.push(ada.picture(&world, color).await);
    }
    let others = eve.picture(&world, 9).await;
    ada.publish(&world, "first", &[&own[0]]).await;
    let refused = [
        vec![others.as_str()],
        vec![&own[0]],
        vec![&own[1], &own[1]],
        vec!["1"],
        vec!["x"],
        vec![&own[1], &own[2], &own[3], &own[4], &others],
        vec![&own[1], &own[2], &own[3], &own[4], "1"],
    ];
    for pictures in &refused {
        let mut fields = vec![("status", "x")];
        fields.extend(pictures.iter().map(|id| ("media_ids[]", *id)));
        let got = world.call("POST", STATUSES, Some(&ada.token), &fields).await;
        assert_eq!(got.status.as_u16(), 422, "{pictures:?}: {got:?}");
    }
    let path = format!("/api/v1/accounts/{}/statuses", ada.id);
    assert_eq!(ada.ids(&world, &path).await.len(), 1);
    let fields = [&own[4], &own[3], &own[2], &own[1]].map(|id| ("media_ids[]", id.as_str()));
    let key = [("idempotency-key", "k")];
    let send = || world.call_with("POST", STATUSES, Some(&ada.token), &fields, &key);
    let first = send().await.json();
    assert_eq!(
        ids(&first["media_attachments"]),
        [&own[4], &own[3], &own[2], &own[1]].map(String::clone)
    );
    assert_eq!(send().await.json(), first, "a retry is the same status");
    let got = world.call_with("POST", STATUSES, Some(&ada.token), &fields[..1], &key).await;
    assert_eq!(got.status.as_u16(), 422, "another request with its key");
}

#[tokio::test]
async fn an_edit_changes_removes_and_adds_pictures() {
    let world = World::new();
    let [ada, eve] = world.people(["ada", "eve"]).await;
    eve.does(&world, "follow", &ada).await;
    let [one, two, three] =
        [ada.picture(&world, 1).await, ada.picture(&world, 2).await, ada.picture(&world, 3).await];
    let post = ada.publish(&world, "text", &[&one, &two]).await;
    let path = format!("{STATUSES}/{}", text(&post["id"]));
    let seen = async || {
        let home = eve.get(&world, "/api/v1/timelines/home").await;
        home[0]["media_attachments"].clone()
    };
    assert_eq!(ids(&seen().await), [one.clone(), two.clone()]);
    let edited = ada.call(&world, "PUT", &path, &[("status", "other text")]).await;
    assert_eq!(
        edited["media_attachments"], post["media_attachments"],
        "not in the request, so kept"
    );
    let fields = [
        ("media_attributes[][id]", two.as_str()),
        ("media_attributes[][description]", "a dot"),
        ("media_ids[]", &three),
        ("media_ids[]", &two),
    ];
    ada.call(&world, "PUT", &path, &fields).await;
    let now = seen().await;
    assert_eq!(ids(&now), [three.clone(), two.clone()]);
    assert_eq!(now[1]["description"], "a dot");
    let gone = &post["media_attachments"][0];
    assert_eq!(world.fetch(&gone["url"]).await.status.as_u16(), 404, "{gone}");
    // The request has the format of the Mastodon app.
    let request = json!({"status": "x", "media_ids": [two], "media_attributes":
        [{"id": two, "description": "two dots", "focus": "0.1,0.2"}]});
    let request = Request::put(&path)
        .header(CONTENT_TYPE, "application/json")
        .header(AUTHORIZATION, format!("Bearer {}", ada.token))
        .body(Body::from(request.to_string()));
    assert_eq!(world.send(request.unwrap()).await.status.as_u16(), 200);
    assert_eq!(seen().await[0]["description"], "two dots");
    let others = eve.picture(&world, 4).await;
    for fields in [
        vec![("status", "x"), ("media_ids[]", others.as_str())],
        vec![("status", "x"), ("media_ids[]", &one)],
        vec![("status", "x"), ("media_attributes[][description]", "whose?")],
        vec![("status", ""), ("media_ids[]", "")],
    ] {
        let got = world.call("PUT", &path, Some(&ada.token), &fields).await;
        assert_eq!(got.status.as_u16(), 422, "{fields:?}: {got:?}");
    }
    let empty = ada.call(&world, "PUT", &path, &[("status", "")]).await;
    assert_eq!((&empty["content"], &ids(&empty["media_attachments"])), (&json!(""), &vec![two]));
    let none = ada.call(&world, "PUT", &path, &[("status", "x"), ("media_ids[]", "")]).await;
    assert_eq!(none["media_attachments"], json!([]));
    assert_eq!(world.call("PUT", &path, Some(&ada.token), &[]).await.status.as_u16(), 422);
}

#[tokio::test]
async fn profiles_have_pictures() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let update = "/api/v1/accounts/update_credentials";
    let before = ada.get(&world, "/api/v1/accounts/verify_credentials").await;
    let (avatar, header) = (gif(1), noise(1_600, 100));
    let body = form(&[("display_name", "Ada")], &[("avatar", &avatar), ("header", &header)]);
    let got = world.send_form("PATCH", update, &ada.token, body).await;
    assert_eq!(got.status.as_u16(), 200, "{got:?}");
    let me = got.json();
    assert_eq!((&me["display_name"], &me["avatar_static"]), (&json!("Ada"), &me["avatar"]));
    assert_ne!(me["avatar"], me["header"]);
    let seen = bob.get(&world, &format!("/api/v1/accounts/{}", ada.id)).await;
    for name in ["avatar", "header"] {
        assert_ne!(me[name], before[name], "{name}");
        assert_eq!(seen[name], me[name]);
        assert_eq!(world.fetch(&me[name]).await.status.as_u16(), 200, "{name}");
    }
    // Nothing changes if one of the files is not a picture.
    let body = form(&[("display_name", "Eve")], &[("avatar", &gif(2)), ("header", b"<svg>")]);
    assert_eq!(world.send_form("PATCH", update, &ada.token, body).await.status.as_u16(), 422);
    let now = ada.get(&world, "/api/v1/accounts/verify_credentials").await;
    assert_eq!((&now["display_name"], &now["avatar"]), (&json!("Ada"), &me["avatar"]));
    let body = form(&[], &[("avatar", &gif(2)), ("header", b"")]);
    let second = world.send_form("PATCH", update, &ada.token, body).await.json();
    assert_eq!(second["header"], me["header"]);
    assert_eq!(world.fetch(&me["avatar"]).await.status.as_u16(), 404, "the picture was replaced");
    // An app may set the description together with the file, or later.
    let body = form(&[("header_description", " a <field> ")], &[("header", &noise(1_500, 90))]);
    let me = world.send_form("PATCH", update, &ada.token, body).await.json();
    assert_eq!(
        (&me["header_description"], &me["avatar_description"]),
        (&json!("a <field>"), &json!(""))
    );
    for text in ["a cat", "another", ""] {
        let me = ada.call(&world, "PATCH", update, &[("avatar_description", text)]).await;
        assert_eq!((&me["avatar_description"], &me["avatar"]), (&json!(text), &second["avatar"]));
        let seen = bob.get(&world, &format!("/api/v1/accounts/{}", ada.id)).await;
        assert_eq!(
            (&seen["avatar_description"], &seen["header_description"]),
            (&json!(text), &json!("a <field>"))
        );
    }
    let long = "x".repeat(1_501);
    for fields in [
        &[("avatar_description", long.as_str()), ("note", "changed")][..],
        &[("attribution_domains[]", "a.example"), ("note", "changed")],
    ] {
        let got = world.call("PATCH", update, Some(&ada.token), fields).await;
        assert_eq!(got.status.as_u16(), 422, "{fields:?} {got:?}");
    }
    let none = world.call("PATCH", update, Some(&bob.token), &[("avatar_description", "x")]).await;
    assert_eq!(none.status.as_u16(), 422, "no picture to describe: {none:?}");
    bob.call(&world, "PATCH", update, &[("avatar_description", ""), ("attribution_domains[]", "")])
        .await;
    for name in ["avatar", "header"] {
        let left = ada.call(&world, "DELETE", &format!("/api/v1/profile/{name}"), &[]).await;
        assert_eq!(left[name], before[name], "{name}");
        ada.call(&world, "DELETE", &format!("/api/v1/profile/{name}"), &[]).await;
    }
    assert_eq!(world.fetch(&second["avatar"]).await.status.as_u16(), 404);
    let me = ada.get(&world, "/api/v1/accounts/verify_credentials").await;
    assert_eq!((&me["avatar_description"], &me["note"]), (&json!(""), &json!("")));
}

#[tokio::test]
async fn lists_of_statuses_with_pictures_have_no_others_and_lead_on() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let mut expect = Vec::new();
    for number in 0..12 {
        let text = format!("{number} #dots");
        if number % 3 == 0 {
            let picture = ada.picture(&world, number).await;
            let post = ada.publish(&world, &text, &[&picture]).await;
            expect.insert(0, self::text(&post["id"]).to_owned());
        } else {
            ada.post(&world, &text).await;
        }
    }
    ada.call(&world, "POST", &format!("{STATUSES}/{}/reblog", expect[0]), &[]).await;
    for path in [
        format!("/api/v1/accounts/{}/statuses?only_media=true", ada.id),
        "/api/v1/timelines/public?only_media=true".to_owned(),
        "/api/v1/timelines/tag/dots?only_media=true".to_owned(),
    ] {
        assert_eq!(bob.ids(&world, &path).await, expect, "{path}");
        let (mut walked, mut next) = (Vec::new(), Some(format!("{path}&limit=1")));
        while let Some(path) = next {
            let got = world.get(&path, Some(&bob.token)).await;
            walked.extend(ids(&got.json()));
            let link = got.headers.get("link").map_or("", |link| link.to_str().unwrap());
            let older = link.split(", ").find(|link| link.ends_with("rel=\"next\""));
            next = older.map(|link| link[1..].split('>').next().unwrap()[BASE.len()..].to_owned());
            assert!(walked.len() <= expect.len(), "{path}");
        }
        assert_eq!(walked, expect, "{path}");
        let above = format!("{path}&min_id={}&limit=2", expect[3]);
        assert_eq!(bob.ids(&world, &above).await, expect[1..3], "{path}");
    }
}

#[tokio::test]
async fn files_that_are_no_pictures_are_refused_with_the_reason() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let post = |body: Vec<u8>| world.send_form("POST", "/api/v1/media", &ada.token, body);
    for (file, why) in [
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>".to_vec(), "not a supported picture"),
        (b"\x1a\x45\xdf\xa3webm".to_vec(), "only pictures"),
        (gif(1)[..20].to_vec(), "damaged"),
        (noise(50, 50)[..200].to_vec(), "damaged"),
    ] {
        let got = post(form(&[], &[("file", &file)])).await;
        assert_eq!(got.status.as_u16(), 422, "{why}: {got:?}");
        assert!(got.text.contains(why), "{why}: {got:?}");
    }
    for (body, status) in [
        (form(&[("file", "no file")], &[]), 422),
        (form(&[], &[("picture", &gif(1))]), 422),
        (form(&[], &[("file", b"")]), 422),
        (form(&[("description", &"x".repeat(70_000))], &[("file", &gif(1))]), 413),
        (form(&[("description", &"x".repeat(1_501))], &[("file", &gif(1))]), 422),
        (form(&[], &[("file", &vec![0xff; 17 << 20])]), 413),
        (form(&[], &[("file", &vec![0xff; (16 << 20) + 1])]), 413),
        (b"--x\r\n".to_vec(), 400),
        (Vec::new(), 400),
    ] {
        let got = post(body).await;
        assert_eq!(got.status.as_u16(), status, "{got:?}");
    }
    let whole = form(&[("description", "x")], &[("file", &gif(1))]);
    for end in (0..whole.len() - 4).step_by(7) {
        let got = post(whole[..end].to_vec()).await;
        assert_eq!(got.status.as_u16(), 400, "cut after {end} bytes: {got:?}");
    }
    // The connection ends in the middle, regardless of the announced length.
    let parts = [Ok(Bytes::from(whole[..100].to_vec())), Err(std::io::Error::other("gone"))];
    let cut = Body::from_stream(stream::iter(parts));
    let got = world.send_form("POST", "/api/v1/media", &ada.token, cut).await;
    assert_eq!(got.status.as_u16(), 400);
    assert_eq!(world.node.facts().all_media_space().pictures, 0);
}

#[tokio::test]
async fn bodies_of_strangers_are_not_read() {
    let world = World::new();
    let app = world.app_with(ALL_SCOPES).await;
    let own = app.own_token(&world, ALL_SCOPES).await;
    let mut browser = world.signed_up("bob").await;
    let narrow = app.user_token(&world, &mut browser, "write:statuses").await;
    // The body never ends: a response shows that the server did not wait for it.
    let endless = || Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
    let wrong = "x".repeat(43);
    for (token, status) in [(&wrong, 401), (&own, 422), (&narrow, 403)] {
        for (method, path) in [("POST", "/api/v2/media"), ("PUT", "/api/v1/media/1")] {
            let got = world.send_form(method, path, token, endless()).await;
            assert_eq!(got.status.as_u16(), status, "{method} {path}: {got:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_arrives_too_slowly_ends_and_others_are_read_meanwhile() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let slow = || {
        Body::from_stream(stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Some((Ok::<_, std::io::Error>(Bytes::from_static(b"x")), ()))
        }))
    };
    let slow = || world.send_form("POST", "/api/v2/media", &bob.token, slow());
    let [one, two, three, four, five] = [slow(), slow(), slow(), slow(), slow()];
    let picture = ada.picture(&world, 1);
    let (one, two, three, four, five, picture) = tokio::join!(one, two, three, four, five, picture);
    for late in [one, two, three, four] {
        assert_eq!(late.status.as_u16(), 408, "{late:?}");
    }
    assert_eq!(five.status.as_u16(), 429, "at most four at a time");
    assert!(five.headers.contains_key("retry-after"));
    assert!(!picture.is_empty());
}

#[tokio::test]
async fn uploads_have_a_rate() {
    let rate = Rate { times: 2, within: Duration::from_secs(60) };
    let world = World::with(|options| options.rates.uploads = rate);
    let [ada, bob] = world.people(["ada", "bob"]).await;
    ada.picture(&world, 1).await;
    let avatar = form(&[], &[("avatar", &gif(2))]);
    let update = "/api/v1/accounts/update_credentials";
    let got = world.send_form("PATCH", update, &ada.token, avatar).await;
    assert_eq!(got.status.as_u16(), 200);
    let third = form(&[], &[("file", &gif(3))]);
    let got = world.send_form("POST", "/api/v2/media", &ada.token, third).await;
    assert_eq!(got.status.as_u16(), 429, "{got:?}");
    bob.picture(&world, 1).await;
}

#[tokio::test]
async fn a_short_form_does_not_wait_for_a_picture_of_its_user() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let never = stream::pending::<Result<Bytes, std::io::Error>>();
    let never = Body::from_stream(never);
    let others = async {
        for _ in 0..5 {
            let body = form(&[("display_name", "Ada")], &[]);
            let path = "/api/v1/accounts/update_credentials";
            let got = world.send_form("PATCH", path, &ada.token, body).await;
            assert_eq!(got.status.as_u16(), 200, "{got:?}");
        }
    };
    tokio::select! {
        got = world.send_form("POST", "/api/v2/media", &ada.token, never) => panic!("{got:?}"),
        () = others => {}
    }
}

#[tokio::test]
async fn an_upload_ends_when_its_token_is_revoked_though_nothing_arrives_and_streams_read() {
    let mut reads = None;
    let world = World::with(|options| reads = Some(options.reads.clone()));
    let (streams, mut turns) = (reads.unwrap().streams().clone(), Vec::new());
    for _ in 0..STREAM_READS_MAX {
        turns.push(streams.next().await);
    }
    let [ada] = world.people(["ada"]).await;
    let mut upload = TcpStream::connect(world.listen().await).await.unwrap();
    let head = format!(
        "POST /api/v2/media HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 1000000\r\n\
         Expect: 100-continue\r\n\r\n",
        ada.token
    );
    upload.write_all(head.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    // The server asks for the body, so it has admitted the request.
    upload.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 100");
    upload.write_all(b"x").await.unwrap();
    let (user, state) = (UserRef::Id(UserId(0)), AccountState::Disabled);
    let disable = Command::Account(AccountCommand::SetState { user, state });
    world.node.submit(disable.into()).await.unwrap().outcome.unwrap();
    let mut rest = String::new();
    let ended = upload.read_to_string(&mut rest);
    // The connection ends soon, although the client could continue for minutes.
    drop(tokio::time::timeout(Duration::from_secs(5), ended).await.unwrap());
    assert!(rest.contains("HTTP/1.1 401"), "{rest}");
}
