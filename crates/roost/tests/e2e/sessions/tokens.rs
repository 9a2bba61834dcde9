//! Tests of tokens that the product mints for its users.

use std::io::{BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use serde_json::{Value, json};

use super::{APP, KEY, World, check_routes, code};
use crate::support::http::{Answer, Client, connect, number, read_head};

/// Mints a token. Returns its id and its secret.
pub(super) fn mint(world: &mut World, user: u64, scopes: &[&str]) -> (u64, String) {
    let path = format!("/v1/users/{user}/tokens");
    let answer = world.product.post(&path, &json!({"scopes": scopes, "ttl_s": 600})).expect(201);
    let made = answer.json();
    let id = number(&made["id"]);
    assert_eq!(answer.header("location"), Some(&*format!("{path}/{id}")));
    (id, made["secret"].as_str().unwrap().to_owned())
}

/// Returns a function that sends requests with a token.
fn sender(address: SocketAddr, secret: String) -> impl FnMut(&str, &str, Option<&Value>) -> Answer {
    let mut client = Client::new(address, Some(secret));
    move |method, path, body| {
        let json = [("Content-Type", "application/json")];
        let headers: &[_] = if body.is_some() { &json } else { &[] };
        let body = body.map(Value::to_string).unwrap_or_default();
        client.send(method, path, headers, body.as_bytes()).unwrap()
    }
}

/// Here the users have no accounts.
#[test]
fn a_token_opens_what_its_scopes_name_of_what_is_open_for_users() {
    let mut world = World::new();
    for (user, scopes) in [("dan", &["read", "write"][..]), ("fay", &["read"]), ("gil", &["write"])]
    {
        let id = world.register(user);
        let (_, secret) = mint(&mut world, id, scopes);
        let mut send = sender(world.server.address, secret);
        let checked = check_routes(&mut world, user, scopes, &mut send);
        assert!(checked > 800, "{user}: {checked}");
    }
}

#[test]
fn with_a_token_a_user_reads_as_themselves_without_saying_so() {
    let mut world = World::new();
    let dan = world.register("dan");
    let bob = world.id("bob");
    let hidden = world.post("bob", &json!({"text": "for others", "visibility": "followers"}));
    let (_, secret) = mint(&mut world, dan, &["read", "write"]);
    let mut send = sender(world.server.address, secret);
    let seen = send("GET", &format!("/v1/posts/{hidden}"), None);
    assert_eq!(code(seen.status, &seen.body), "post_not_found");
    let listed = send("GET", &format!("/v1/users/{bob}/posts"), None).expect(200).json();
    assert_eq!(listed["items"], json!([]));
    world.product.put(&format!("/v1/users/{bob}/blocks/{dan}")).expect(204);
    for path in [format!("/v1/users/{bob}"), format!("/v1/users/{bob}/followers")] {
        let seen = send("GET", &path, None);
        assert_eq!(code(seen.status, &seen.body), "user_not_found", "{path}");
    }
    let all = send("GET", "/v1/users", None).expect(200).json();
    assert!(!all.to_string().contains("\"bob\""), "{all}");
    let found = send("GET", "/v1/users?handle=bob", None).expect(200).json();
    assert_eq!(found["items"], json!([]));
    let thread = send("GET", &format!("/v1/posts/{hidden}/context"), None);
    assert_eq!(code(thread.status, &thread.body), "post_not_found");
}

#[test]
fn only_the_product_mints_lists_and_revokes_tokens_and_only_digests_are_stored() {
    let mut world = World::new();
    let dan = world.register("dan");
    let path = format!("/v1/users/{dan}/tokens");
    for (body, expect) in [
        (json!({"scopes": [], "ttl_s": 60}), "bad_scope"),
        (json!({"scopes": ["admin"], "ttl_s": 60}), "bad_json"),
        (json!({"scopes": ["read"]}), "bad_json"),
        (json!({"scopes": ["read"], "ttl_s": 0}), "bad_ttl"),
        (json!({"scopes": ["read"], "ttl_s": 7_776_001}), "bad_ttl"),
    ] {
        let refused = world.product.post(&path, &body);
        assert_eq!(code(refused.status, &refused.body), expect, "{body}");
    }
    let (id, secret) = mint(&mut world, dan, &["read"]);
    let listed = world.product.get(&path).expect(200).json();
    let [token] = listed["items"].as_array().unwrap().as_slice() else { panic!("{listed}") };
    assert_eq!((number(&token["id"]), &token["scopes"]), (id, &json!(["read"])));
    assert!(!listed.to_string().contains(&secret), "{listed}");
    // Another user cannot use this token.
    let bob = world.id("bob");
    let other = format!("/v1/users/{bob}/tokens/{id}");
    world.product.send("DELETE", &other, &[], b"").unwrap().expect(204);
    let mut send = sender(world.server.address, secret.clone());
    send("GET", &format!("/v1/users/{dan}"), None).expect(200);
    for number in 1..33 {
        let made = world.product.post(&path, &json!({"scopes": ["read"], "ttl_s": 600}));
        match number {
            32 => made.assert_error(422, "too_many_tokens", "the last"),
            _ => drop(made.expect(201)),
        }
    }
    world.product.send("DELETE", &format!("{path}/{id}"), &[], b"").unwrap().expect(204);
    let refused = send("GET", &format!("/v1/users/{dan}"), None);
    assert_eq!(code(refused.status, &refused.body), "unauthorized");
    world.product.post(&path, &json!({"scopes": ["read"], "ttl_s": 600})).expect(201);
    assert!(!is_in_a_file(world.data.path(), secret.as_bytes()));
}

/// Whether a file in a folder contains these bytes.
fn is_in_a_file(folder: &Path, bytes: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return is_in_a_file(&path, bytes);
        }
        let read = std::fs::read(&path).unwrap_or_default();
        read.windows(bytes.len()).any(|part| part == bytes)
    })
}

#[test]
fn of_the_api_for_apps_a_minted_token_opens_the_pictures_alone() {
    let mut world = World::new();
    let ada = world.id("ada");
    let (_, secret) = mint(&mut world, ada, &["read", "write"]);
    let mut send = sender(world.server.address, secret);
    send("GET", &format!("/v1/users/{ada}"), None).expect(200);
    for (method, path) in [
        ("GET", "/api/v1/accounts/verify_credentials"),
        ("GET", "/api/v1/timelines/home"),
        ("GET", "/api/v1/streaming/user"),
        ("POST", "/api/v1/statuses"),
        ("GET", "/api/v1/apps/verify_credentials"),
    ] {
        assert_eq!(send(method, path, None).status, 401, "{method} {path}");
    }
    for path in ["/api/v1/media", "/api/v2/media"] {
        let answer = send("POST", path, None);
        assert_eq!(answer.status, 422, "there is no file: {}", answer.text());
    }
    let (_, reading) = mint(&mut world, ada, &["read"]);
    let mut read = sender(world.server.address, reading);
    assert_eq!(read("POST", "/api/v2/media", None).status, 403);
}

#[test]
fn the_product_revokes_all_tokens_of_a_user_and_no_session() {
    let mut world = World::new();
    let [ada, bob] = [world.id("ada"), world.id("bob")];
    let mut browser = world.log_in("ada");
    let mut senders: Vec<_> = [ada, ada, bob]
        .into_iter()
        .map(|user| (user, sender(world.server.address, mint(&mut world, user, &["read"]).1)))
        .collect();
    let path = format!("/v1/users/{ada}/tokens");
    for _ in 0..2 {
        world.product.send("DELETE", &path, &[], b"").unwrap().expect(204);
        let statuses: Vec<_> = senders
            .iter_mut()
            .map(|(user, send)| send("GET", &format!("/v1/users/{user}/timeline"), None).status)
            .collect();
        assert_eq!(statuses, [401, 401, 200]);
    }
    assert_eq!(world.product.get(&path).expect(200).json()["items"], json!([]));
    browser.send("GET", &format!("/v1/users/{ada}/timeline"), None).expect(200);
}

#[test]
fn the_keys_for_retries_of_a_user_are_not_those_of_the_product() {
    let mut world = World::new();
    let dan = world.register("dan");
    let (_, secret) = mint(&mut world, dan, &["read", "write"]);
    let mut user = Client::new(world.server.address, Some(secret));
    let path = format!("/v1/users/{dan}/posts");
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", "one")];
    for (client, body) in [(&mut world.product, r#"{"text":"x"}"#), (&mut user, r#"{"text":"y"}"#)]
    {
        let first = client.send("POST", &path, &headers, body.as_bytes()).unwrap().expect(201);
        let again = client.send("POST", &path, &headers, body.as_bytes()).unwrap().expect(201);
        assert_eq!(first.json()["id"], again.json()["id"]);
        assert_eq!(
            [&first, &again].map(|answer| answer.header("idempotent-replayed").is_some()),
            [false, true]
        );
    }
}

/// Begins a post whose body does not end. Waits until the server responds or has begun to read the body.
fn begin_post(world: &World, path: &str, bearer: &str) -> (u16, BufReader<TcpStream>) {
    let mut stream = connect(world.server.address).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: {bearer}\r\nContent-Type: application/json\r\n\
         Expect: 100-continue\r\nContent-Length: 65536\r\n\r\n",
        world.server.address
    );
    stream.get_mut().write_all(head.as_bytes()).unwrap();
    let status = read_head(&mut stream).unwrap().0;
    (status, stream)
}

#[test]
fn the_bodies_of_a_user_are_limited_and_keep_out_no_application() {
    let mut world = World::new();
    let dan = world.register("dan");
    let (_, secret) = mint(&mut world, dan, &["write"]);
    let (path, bearer) = (format!("/v1/users/{dan}/posts"), format!("Bearer {secret}"));
    let streams: Vec<_> = (0..17).map(|_| begin_post(&world, &path, &bearer)).collect();
    let statuses: Vec<_> = streams.iter().map(|(status, _)| *status).collect();
    assert_eq!((&statuses[..16], statuses[16]), (&[100; 16][..], 429));
    world.post("dan", &json!({"text": "of the product"}));
    drop(streams);
}

#[test]
fn what_a_token_may_not_do_counts_for_nothing_but_a_request() {
    let mut world = World::new();
    let [dan, bob] = [world.register("dan"), world.id("bob")];
    let (_, reading) = mint(&mut world, dan, &["read"]);
    let (_, writing) = mint(&mut world, dan, &["write"]);
    let (mut read, mut write) =
        (sender(world.server.address, reading), sender(world.server.address, writing));
    let post = json!({"text": "x"});
    for _ in 0..301 {
        let refused = read("POST", &format!("/v1/users/{dan}/posts"), Some(&post));
        assert_eq!(code(refused.status, &refused.body), "missing_scope");
        let refused = write("POST", &format!("/v1/users/{bob}/posts"), Some(&post));
        assert_eq!(code(refused.status, &refused.body), "not_own");
    }
    write("POST", &format!("/v1/users/{dan}/posts"), Some(&post)).expect(201);
}

#[test]
fn pages_of_the_origins_that_the_operator_names_may_call_with_a_token() {
    let mut world = World::new();
    let dan = world.register("dan");
    let (_, secret) = mint(&mut world, dan, &["read"]);
    let bearer = format!("Bearer {secret}");
    let path = format!("/v1/users/{dan}/timeline");
    let mut client = Client::new(world.server.address, None);
    let mut ask = |method: &str, path: &str, origin: &str, headers: &[(&str, &str)]| {
        let headers = [&[("Origin", origin)][..], headers].concat();
        client.send(method, path, &headers, b"").unwrap()
    };
    let wish = [("Access-Control-Request-Method", "PUT")];
    for path in [path.as_str(), "/v1/nothing", "/v1/users/9/following/1"] {
        let answer = ask("OPTIONS", path, APP, &wish).expect(204);
        assert_eq!(answer.header("access-control-allow-origin"), Some(APP), "{path}");
        let allowed = answer.header("access-control-allow-headers").unwrap();
        assert!(allowed.contains("Authorization") && !allowed.contains('*'), "{allowed}");
        assert!(!allowed.to_lowercase().contains("roost-session"), "{allowed}");
        assert!(answer.header("access-control-allow-methods").unwrap().contains("PUT"));
    }
    let token = [("Authorization", bearer.as_str())];
    let answer = ask("GET", &path, APP, &token).expect(200);
    assert_eq!(answer.header("access-control-allow-origin"), Some(APP));
    assert!(answer.header("access-control-expose-headers").unwrap().contains("ETag"));
    assert_eq!(answer.header("vary"), Some("origin"));
    // Pages can also read errors.
    let refused = ask("GET", &path, APP, &[]);
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (401, Some(APP)));
    for origin in
        ["https://evil.example", "https://app.example.evil.example", "null", "http://app.example"]
    {
        let answer = ask("OPTIONS", &path, origin, &wish);
        assert_eq!(answer.header("access-control-allow-origin"), None, "{origin}");
        assert_ne!(answer.status, 204, "{origin}");
        let answer = ask("GET", &path, origin, &token).expect(200);
        assert_eq!(answer.header("access-control-allow-origin"), None, "{origin}");
    }
    // For pages of other origins, cookies have no effect.
    let ada = world.log_in("ada");
    let session = [("Cookie", ada.cookie.as_str()), ("Roost-Session", ada.token.as_str())];
    let answer = ask("GET", &format!("/v1/users/{}/timeline", ada.user), APP, &session);
    assert_eq!(code(answer.status, &answer.body), "forbidden_origin");
    assert_eq!(answer.header("access-control-allow-credentials"), None);
    // Keys are for programs of the product, not for pages.
    let key = format!("Bearer {KEY}");
    let answer = ask("GET", "/v1/users", APP, &[("Authorization", &key)]);
    assert_eq!(code(answer.status, &answer.body), "forbidden_origin");
    assert_eq!(answer.header("access-control-allow-origin"), Some(APP));
}
