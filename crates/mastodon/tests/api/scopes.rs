//! Access with every kind of token.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::http::header::AUTHORIZATION;
use axum::http::{Request, StatusCode};
use edge::Admission;
use feed::accounts::{AccountCommand, AccountState};
use feed::{Command, UserId, UserRef};

use crate::client::World;

const ME: &str = "/api/v1/accounts/verify_credentials";
const APP: &str = "/api/v1/apps/verify_credentials";

#[tokio::test]
async fn a_route_needs_a_token_of_its_kind_with_its_scope() {
    let world = World::new();
    let app = world.app_with("read write follow push profile").await;
    let mut browser = world.signed_up("ada").await;
    let session = browser.cookies["__Host-roost_session"].clone();
    let mut tokens = Vec::new();
    for scope in ["read", "read:accounts", "profile", "write", "follow"] {
        tokens.push((scope, app.user_token(&world, &mut browser, scope).await));
    }
    let user = |scope: &str| tokens.iter().find(|(name, _)| *name == scope).unwrap().1.clone();
    let code = browser.allow(&world, &app.url(&[])).await;
    for (what, token, me, own) in [
        ("no token", None, 401, 401),
        ("an unknown token", Some("x".repeat(43)), 401, 401),
        ("a long token", Some("x".repeat(5_000)), 401, 401),
        ("a session", Some(session), 401, 401),
        ("a code", Some(code), 401, 401),
        ("the app's secret", Some(app.secret.clone()), 401, 401),
        ("a token of the app", Some(app.own_token(&world, "read").await), 422, 200),
        ("read", Some(user("read")), 200, 200),
        ("read:accounts", Some(user("read:accounts")), 200, 200),
        ("profile", Some(user("profile")), 200, 200),
        ("write", Some(user("write")), 403, 200),
        ("follow", Some(user("follow")), 403, 200),
    ] {
        for (path, expect) in [(ME, me), (APP, own)] {
            let got = world.get(path, token.as_deref()).await;
            assert_eq!(got.status.as_u16(), expect, "{what}: {path} {got:?}");
            assert!(got.status.is_success() || got.json()["error"].is_string());
        }
    }
    for (token, expect) in [
        (app.own_token(&world, "read").await, 403),
        (app.own_token(&world, "write:accounts").await, 422),
        (user("write"), 403),
    ] {
        let got = world.post("/api/v1/accounts", Some(&token), &[("username", "x")]).await;
        assert_eq!(got.status.as_u16(), expect, "{got:?}");
    }
}

#[tokio::test]
async fn a_token_of_a_disabled_or_deleted_account_is_refused_at_once() {
    let world = World::new();
    let app = world.app().await;
    let [mut ada, mut bob] = [world.signed_up("ada").await, world.signed_up("bob").await];
    let one = app.user_token(&world, &mut ada, "read").await;
    let two = app.user_token(&world, &mut bob, "read").await;
    for token in [&one, &two] {
        // Sent twice, so that the second response uses the cache.
        for _ in 0..2 {
            assert_eq!(world.get(ME, Some(token)).await.status, StatusCode::OK);
        }
    }
    let (user, state) = (UserRef::Id(UserId(0)), AccountState::Disabled);
    let disable = Command::Account(AccountCommand::SetState { user, state });
    world.node.submit(disable.into()).await.unwrap().outcome.unwrap();
    assert_eq!(world.get(ME, Some(&one)).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(world.get(ME, Some(&two)).await.status, StatusCode::OK);
    let delete = Command::DeleteUser { user: UserRef::Id(UserId(1)) };
    world.node.submit(delete.into()).await.unwrap().outcome.unwrap();
    assert_eq!(world.get(ME, Some(&two)).await.status, StatusCode::UNAUTHORIZED);
    let got = ada.log_in(&world, "ada", crate::client::PASSWORD).await;
    assert!(got.text.contains("disabled"), "{got:?}");
    let got = bob.log_in(&world, "bob", crate::client::PASSWORD).await;
    assert_eq!(got.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_token_of_a_user_admits_its_connection() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let own = world.app().await.own_token(&world, "read").await;
    for (token, expect) in [("x", false), (&own, false), (&ada.token, true)] {
        let is_admitted = Arc::new(AtomicBool::new(false));
        let request = Request::get(APP).header(AUTHORIZATION, format!("Bearer {token}"));
        let admitted = Arc::clone(&is_admitted);
        let admission = Admission::new(move || admitted.store(true, Ordering::Relaxed));
        let request = request.extension(admission);
        world.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(is_admitted.load(Ordering::Relaxed), expect, "{token}");
    }
}
