//! Tokens that the product mints for its users.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};

use super::{APP, KEY, World, check_routes, code};
use crate::support::http::{Answer, Client, number};

/// Mints a token; returns its id and secret.
pub(super) fn mint(world: &mut World, user: u64, scopes: &[&str]) -> (u64, String) {
    let path = format!("/v1/users/{user}/tokens");
    let answer = world.product.post(&path, &json!({"scopes": scopes, "ttl_s": 600})).expect(201);
    let made = answer.json();
    let id = number(&made["id"]);
    assert_eq!(answer.header("location"), Some(&*format!("{path}/{id}")));
    (id, made["secret"].as_str().unwrap().to_owned())
}

/// Sends requests with a token.
fn sender(address: SocketAddr, secret: String) -> impl FnMut(&str, &str, Option<&Value>) -> Answer {
    let mut client = Client::new(address, Some(secret));
    move |method, path, body| {
        let json = [("Content-Type", "application/json")];
        let headers: &[_] = if body.is_some() { &json } else { &[] };
        let body = body.map(Value::to_string).unwrap_or_default();
        client.send(method, path, headers, body.as_bytes()).unwrap()
    }
}

/// The users have no accounts.
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
    // Of another user there is no such token.
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

/// Whether a file in a folder has these bytes.
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
fn a_token_of_an_application_opens_the_api_for_apps_and_one_of_an_app_opens_v1() {
    let mut world = World::new();
    let dan = world.register("dan");
    let (_, secret) = mint(&mut world, dan, &["read"]);
    let mut send = sender(world.server.address, secret);
    let me = send("GET", "/api/v1/accounts/verify_credentials", None).expect(200).json();
    assert_eq!((number(&me["id"]), &me["acct"]), (dan, &json!("dan")));
    send("GET", "/api/v1/timelines/home", None).expect(200);
    assert_eq!(send("POST", "/api/v1/statuses", Some(&json!({"status": "x"}))).status, 403);
    assert_eq!(send("GET", "/api/v1/apps/verify_credentials", None).status, 401);
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
    assert!(answer.header("access-control-expose-headers").unwrap().contains("Link"));
    assert_eq!(answer.header("vary"), Some("origin"));
    // What went wrong can be read, too.
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
    // Cookies are of no use to these pages.
    let ada = world.log_in("ada");
    let session = [("Cookie", ada.cookie.as_str()), ("Roost-Session", ada.token.as_str())];
    let answer = ask("GET", &format!("/v1/users/{}/timeline", ada.user), APP, &session);
    assert_eq!(code(answer.status, &answer.body), "forbidden_origin");
    assert_eq!(answer.header("access-control-allow-credentials"), None);
    let key = format!("Bearer {KEY}");
    ask("GET", "/v1/users", "https://evil.example", &[("Authorization", &key)]).expect(200);
}
