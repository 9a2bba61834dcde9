//! Every endpoint with every kind of token, and the documentation of them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use mastodon::{Endpoint, EndpointState, endpoints};

use crate::client::{ALL_SCOPES, World};

/// A path with ids in the place of parameters.
fn concrete(path: &str) -> String {
    let parts = path.split('/').map(|part| if part.starts_with('{') { "0" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn every_endpoint_refuses_every_token_that_is_not_enough() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let app = world.app_with(ALL_SCOPES).await;
    let own = app.own_token(&world, ALL_SCOPES).await;
    let mut browser = world.signed_up("bob").await;
    let push = app.user_token(&world, &mut browser, "push").await;
    let profile = app.user_token(&world, &mut browser, "profile").await;
    let (mut of_users, mut optional) = (0, 0);
    for Endpoint { method, path, token: needed, state } in endpoints() {
        let narrow = if needed.contains("push") { &profile } else { &push };
        let wrong = "x".repeat(43);
        // No token, an unknown one, one of the app, one without the scope, one with all scopes: 0 is none of 401 and 403.
        let expect: [u16; 5] = match needed.as_str() {
            "none" => [0, 0, 0, 0, 0],
            "any" => [401, 401, 0, 0, 0],
            "of the app, `write:accounts`" => [401, 401, 0, 403, 403],
            _ if needed.ends_with("`; or none") => [0, 401, 0, 403, 0],
            _ if needed.starts_with("of a user, `") => [401, 401, 422, 403, 0],
            other => panic!("{method} {path} needs {other}"),
        };
        of_users += usize::from(expect[0] == 401);
        optional += usize::from(needed.ends_with("; or none"));
        let tokens = [None, Some(&wrong), Some(&own), Some(narrow), Some(&ada.token)];
        for (number, token) in tokens.into_iter().enumerate() {
            // Streams do not end.
            if path.starts_with("/api/v1/streaming") && expect[number] == 0 {
                continue;
            }
            // The token of an app is not narrow, so what needs a client's secret is not meant here.
            if path.starts_with("/oauth/") {
                continue;
            }
            let got = world.call(method, &concrete(path), token.map(String::as_str), &[]).await;
            let status = got.status.as_u16();
            let what = format!("{method} {path}, token {number}: {got:?}");
            match expect[number] {
                0 => assert!(status != 401 && status != 403 && status < 500, "{what}"),
                expect => assert_eq!(status, expect, "{what}"),
            }
            if !got.status.is_success() {
                assert!(got.json()["error"].is_string(), "{what}");
            }
            if state == EndpointState::Missing {
                assert_eq!(status, 404, "{what}");
            }
            assert_eq!(got.headers["access-control-allow-origin"], "*", "{what}");
        }
    }
    assert!(of_users > 100 && optional > 10, "{of_users} {optional}");
}

#[tokio::test]
async fn only_users_read_unless_the_operator_allows_others() {
    let world = World::with(|options| options.anonymous_reads = false);
    let [quentin] = world.people(["quentin"]).await;
    let post = quentin.post(&world, "hello").await;
    let own = world.app_with(ALL_SCOPES).await.own_token(&world, ALL_SCOPES).await;
    let mut closed = 0;
    for Endpoint { method, path, token: needed, .. } in endpoints() {
        if !needed.ends_with("; or none") {
            continue;
        }
        closed += 1;
        for (token, expect) in [(None, 401), (Some(&own), 422)] {
            let got = world.call(method, &concrete(path), token.map(String::as_str), &[]).await;
            assert_eq!(got.status.as_u16(), expect, "{method} {path}: {got:?}");
        }
    }
    assert!(closed > 15, "{closed}");
    // What needs no token says nothing about users.
    for Endpoint { method, path, token: needed, .. } in endpoints() {
        if method == "GET" && needed == "none" {
            let got = world.get(&concrete(path), None).await;
            assert!(!got.text.contains("quentin") && !got.text.contains(&post), "{path}: {got:?}");
        }
    }
    let stats = world.get("/api/v1/instance", None).await.json()["stats"].clone();
    assert_eq!((&stats["user_count"], &stats["status_count"]), (&0.into(), &0.into()));
    quentin.get(&world, &format!("/api/v1/statuses/{post}")).await;
}

#[tokio::test]
async fn ids_that_are_none_are_not_found() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    for path in ["accounts", "statuses", "notifications"] {
        for id in ["x", "-1", "+0", "99999999999999999999", "4294967295", "0x1", "1%00", "%2e%2e"] {
            let got = world.get(&format!("/api/v1/{path}/{id}"), Some(&ada.token)).await;
            assert_eq!(got.status.as_u16(), 404, "{path} {id}: {got:?}");
        }
    }
    for (method, path) in [
        ("DELETE", "/api/v1/statuses/1"),
        ("PUT", "/api/v1/statuses/1"),
        ("GET", "/api/v1/statuses/1/context"),
        ("POST", "/api/v1/accounts/7/follow"),
        ("GET", "/api/v1/accounts/7/statuses"),
        ("GET", "/api/v1/unknown/path"),
        ("GET", "/api/v2/unknown"),
    ] {
        let got = world.call(method, path, Some(&ada.token), &[("status", "x")]).await;
        assert_eq!(got.status.as_u16(), 404, "{method} {path}: {got:?}");
    }
}

#[tokio::test]
async fn a_page_of_another_origin_may_ask() {
    let world = World::new();
    for path in ["/api/v1/statuses", "/api/v1/statuses/1", "/api/v1/unknown", "/oauth/token"] {
        let got = world.call("OPTIONS", path, None, &[]).await;
        assert_eq!(got.status.as_u16(), 204, "{path}");
        assert_eq!(got.headers["access-control-allow-origin"], "*");
        let headers = got.headers["access-control-allow-headers"].to_str().unwrap();
        assert!(headers.contains("Authorization") && headers.contains("Idempotency-Key"));
    }
    let got = world.get("/api/v1/instance", None).await;
    assert!(got.headers["access-control-expose-headers"].to_str().unwrap().contains("Link"));
    assert!(!got.headers.contains_key("access-control-allow-credentials"));
}

/// The table of `docs/mastodon.md`.
fn documented() -> String {
    let mut table = String::from("| endpoint | token | state |\n|---|---|---|\n");
    for Endpoint { method, path, token, state } in endpoints() {
        let state = match state {
            EndpointState::Works => "works",
            EndpointState::WithoutFeature => "without the feature",
            EndpointState::Missing => "missing",
        };
        writeln!(table, "| `{method} {path}` | {token} | {state} |").unwrap();
    }
    table
}

/// With `ROOST_WRITE_DOCS=1`, the table is written instead.
#[test]
fn the_documentation_lists_the_endpoints() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/mastodon.md");
    let text = fs::read_to_string(&file).unwrap();
    let (begin, end) = ("<!-- endpoints -->\n\n", "\n<!-- end -->");
    let (before, rest) = text.split_once(begin).unwrap();
    let (table, after) = rest.split_once(end).unwrap();
    if std::env::var_os("ROOST_WRITE_DOCS").is_some() {
        let text = format!("{before}{begin}{}{end}{after}", documented());
        fs::write(&file, text).unwrap();
    } else {
        let why = "run ROOST_WRITE_DOCS=1 cargo test -p mastodon --test api documentation";
        assert!(table == documented(), "docs/mastodon.md is not up to date: {why}");
    }
}
