//! Attacks on log-in, sign-up, authorization and forms.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, RETRY_AFTER};
use axum::http::{Request, StatusCode};
use futures_util::StreamExt as _;
use mastodon::{Rate, Rates};

use crate::client::{Browser, PASSWORD, REDIRECT, World};

const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const ME: &str = "/api/v1/accounts/verify_credentials";

#[tokio::test]
async fn a_code_that_is_used_twice_ends_its_token() {
    let world = World::new();
    let app = world.app().await;
    let mut browser = world.signed_up("ada").await;
    let code = browser.allow(&world, &app.url(&[])).await;
    let first = app.exchange(&world, &code, &[]).await;
    let token = first.json()["access_token"].as_str().unwrap().to_owned();
    assert_eq!(world.get(ME, Some(&token)).await.status, StatusCode::OK);
    let second = app.exchange(&world, &code, &[]).await;
    assert_eq!(second.status, StatusCode::BAD_REQUEST);
    assert_eq!(second.json()["error"].as_str(), Some("invalid_grant"));
    assert_eq!(world.get(ME, Some(&token)).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_code_is_good_only_for_the_app_and_the_redirect_that_it_was_made_for() {
    let world = World::new();
    let (app, thief) = (world.app().await, world.app().await);
    let mut browser = world.signed_up("ada").await;
    let code = browser.allow(&world, &app.url(&[])).await;
    let got = thief.exchange(&world, &code, &[]).await;
    assert_eq!(got.json()["error"].as_str(), Some("invalid_grant"));
    let got = app.exchange(&world, &code, &[("redirect_uri", "https://evil.example/")]).await;
    assert_eq!(got.json()["error"].as_str(), Some("invalid_grant"));
    let wrong = crate::client::App { id: app.id.clone(), secret: thief.secret.clone() };
    let got = wrong.exchange(&world, &code, &[]).await;
    assert_eq!(got.status, StatusCode::UNAUTHORIZED);
    assert_eq!(got.json()["error"].as_str(), Some("invalid_client"));
    assert_eq!(app.exchange(&world, &code, &[]).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_request_with_an_unknown_redirect_leads_nowhere() {
    let world = World::new();
    let app = world.app().await;
    let mut browser = world.signed_up("ada").await;
    for redirect in [
        "https://evil.example/",
        "https://app.example/back/../evil",
        "https://app.example/back?x",
        "https://app.example/Back",
        "https://app.example.evil.example/back",
        "javascript:alert(1)",
    ] {
        let got = browser.get(&world, &app.url(&[("redirect_uri", redirect)])).await;
        assert_eq!(got.status, StatusCode::BAD_REQUEST, "{redirect} {got:?}");
        assert!(!got.headers.contains_key("location"));
    }
    let got = browser
        .get(
            &world,
            &format!("/oauth/authorize?response_type=code&client_id=1&redirect_uri={REDIRECT}"),
        )
        .await;
    assert_eq!(got.status, StatusCode::BAD_REQUEST);
    // A request with two apps or two redirects is refused.
    let got = browser.get(&world, &format!("{}&client_id=1", app.url(&[]))).await;
    assert_eq!(got.status, StatusCode::BAD_REQUEST);
    let got =
        browser.get(&world, &format!("{}&redirect_uri=https://evil.example/", app.url(&[]))).await;
    assert_eq!(got.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_challenge_cannot_be_left_out_or_weakened() {
    let world = World::new();
    let app = world.app().await;
    let mut browser = world.signed_up("ada").await;
    for method in [Some("plain"), None, Some("s256")] {
        let mut more = vec![("code_challenge", CHALLENGE)];
        more.extend(method.map(|method| ("code_challenge_method", method)));
        let got = browser.get(&world, &app.url(&more)).await;
        assert_eq!(got.status, StatusCode::BAD_REQUEST, "{method:?}");
        assert!(got.text.contains("error=invalid_request"), "{got:?}");
    }
    let with = app.url(&[("code_challenge", CHALLENGE), ("code_challenge_method", "S256")]);
    let code = browser.allow(&world, &with).await;
    let wrong = "x".repeat(43);
    for verifier in [None, Some(""), Some("short"), Some(wrong.as_str())] {
        let more: Vec<_> =
            verifier.map(|verifier| ("code_verifier", verifier)).into_iter().collect();
        let got = app.exchange(&world, &code, &more).await;
        assert_eq!(got.json()["error"].as_str(), Some("invalid_grant"), "{verifier:?}");
    }
    let got = app.exchange(&world, &code, &[("code_verifier", VERIFIER)]).await;
    assert_eq!(got.status, StatusCode::OK, "{got:?}");
    // A code issued without a challenge is refused to an app that sends a verifier.
    let code = browser.allow(&world, &app.url(&[])).await;
    let got = app.exchange(&world, &code, &[("code_verifier", VERIFIER)]).await;
    assert_eq!(got.json()["error"].as_str(), Some("invalid_grant"));
}

#[tokio::test]
async fn an_app_cannot_ask_for_scopes_that_it_has_not_registered() {
    let world = World::new();
    let app = world.app_with("read").await;
    let mut browser = world.signed_up("ada").await;
    for scope in ["write", "read write", "admin:read", "read:nothing"] {
        // Anybody can register an app, so a link to this server leads to another site only after a click.
        let got = browser.get(&world, &app.url(&[("scope", scope), ("state", "s")])).await;
        assert_eq!(got.status, StatusCode::BAD_REQUEST, "{scope}");
        assert!(!got.headers.contains_key("location"), "{got:?}");
        assert!(
            got.text.contains("error=invalid_scope") && got.text.contains("state=s"),
            "{got:?}"
        );
    }
    // A changed form does not give more rights either.
    let mut fields = browser.get(&world, &app.url(&[("scope", "read")])).await.hidden();
    fields.insert("scope".into(), "write".into());
    fields.insert("decision".into(), "allow".into());
    let got = browser.post(&world, "/oauth/authorize", &fields).await;
    assert_eq!(got.led_with("error").as_deref(), Some("invalid_scope"));
}

#[tokio::test]
async fn an_app_revokes_only_its_own_tokens() {
    let world = World::new();
    let (app, other) = (world.app().await, world.app().await);
    let mut browser = world.signed_up("ada").await;
    let token = app.user_token(&world, &mut browser, "read").await;
    let fields =
        [("client_id", other.id.as_str()), ("client_secret", &other.secret), ("token", &token)];
    let got = world.post("/oauth/revoke", None, &fields).await;
    assert_eq!(got.status, StatusCode::FORBIDDEN);
    assert_eq!(got.json()["error"].as_str(), Some("unauthorized_client"));
    assert_eq!(world.get(ME, Some(&token)).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_user_revokes_only_their_own_grants() {
    let world = World::new();
    let app = world.app().await;
    let [mut ada, mut eve] = [world.signed_up("ada").await, world.signed_up("eve").await];
    let token = app.user_token(&world, &mut ada, "read").await;
    let grants = ada.get(&world, "/settings").await.hidden();
    let mut fields = eve.get(&world, "/settings").await.hidden();
    fields.insert("grant".into(), grants["grant"].clone());
    eve.post(&world, "/settings/revoke", &fields).await;
    assert_eq!(world.get(ME, Some(&token)).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_session_that_ends_while_a_form_arrives_permits_nothing() {
    let world = World::new();
    let app = world.app().await;
    let mut browser = world.signed_up("ada").await;
    let mut consent = browser.get(&world, &app.url(&[])).await.hidden();
    consent.insert("decision".into(), "allow".into());
    let body = consent.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let body: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(body).finish();
    let (head, last) = body.split_at(body.len() - 1);
    let (send, rest) = tokio::sync::oneshot::channel::<()>();
    let (head, last) = (head.to_owned(), last.to_owned());
    let parts = futures_util::stream::once(async { Ok::<_, std::convert::Infallible>(head) })
        .chain(futures_util::stream::once(async move {
            rest.await.unwrap();
            Ok(last)
        }));
    let cookies: Vec<_> =
        browser.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let request = Request::post("/oauth/authorize")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(COOKIE, cookies.join("; "))
        .body(Body::from_stream(parts))
        .unwrap();
    let log_out = async {
        let fields = browser.get(&world, "/settings").await.hidden();
        let got = browser.post(&world, "/auth/log-out", &fields).await;
        assert_eq!(got.location(), "/auth/log-in", "{got:?}");
        send.send(()).unwrap();
    };
    let (got, ()) = tokio::join!(world.send(request), log_out);
    assert_eq!(got.status, StatusCode::FORBIDDEN, "{got:?}");
}

#[tokio::test]
async fn a_token_that_ends_while_a_body_arrives_permits_nothing() {
    let world = World::new();
    let app = world.app().await;
    let mut browser = world.signed_up("ada").await;
    let token = app.user_token(&world, &mut browser, "read write").await;
    // The token is cached from here on, so the next request reads its body immediately.
    assert_eq!(world.get(ME, Some(&token)).await.status, StatusCode::OK);
    let (send, rest) = tokio::sync::oneshot::channel::<()>();
    let parts = futures_util::stream::once(async move {
        rest.await.unwrap();
        Ok::<_, std::convert::Infallible>("status=late")
    });
    let request = Request::post("/api/v1/statuses")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(AUTHORIZATION, format!("Bearer {token}"))
        .body(Body::from_stream(parts))
        .unwrap();
    let revoke = async {
        let id = [("client_id", app.id.as_str()), ("client_secret", &app.secret)];
        let fields = [id.as_slice(), &[("token", &token)]].concat();
        assert_eq!(world.post("/oauth/revoke", None, &fields).await.status, StatusCode::OK);
        send.send(()).unwrap();
    };
    let (got, ()) = tokio::join!(world.send(request), revoke);
    assert_eq!(got.status, StatusCode::UNAUTHORIZED, "{got:?}");
    let home = browser.get(&world, "/api/v1/accounts/0/statuses").await;
    assert!(!home.text.contains("late"), "{home:?}");
}

#[tokio::test]
async fn whoever_knows_a_password_cannot_keep_others_out() {
    let world = World::with(|options| options.rates.log_ins.times = 3);
    world.signed_up("ada").await;
    world.signed_up("bob").await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(Browser::default().log_in(&world, "ada", PASSWORD).await.status);
    }
    assert_eq!(statuses.last(), Some(&StatusCode::TOO_MANY_REQUESTS), "{statuses:?}");
    let got = Browser::default().log_in(&world, "ada", PASSWORD).await;
    let rest: u64 = got.headers[RETRY_AFTER].to_str().unwrap().parse().unwrap();
    assert!((1..=600).contains(&rest), "the rest of ten minutes: {rest}");
}

#[tokio::test]
async fn forms_of_other_sites_are_refused() {
    let world = World::new();
    let app = world.app().await;
    let mut browser = world.signed_up("ada").await;
    let mut stranger = Browser::default();
    let foreign = stranger.get(&world, "/auth/log-in").await.hidden();
    let mut consent = browser.get(&world, &app.url(&[])).await.hidden();
    consent.insert("decision".into(), "allow".into());
    let settings = browser.get(&world, "/settings").await.hidden();
    for (path, fields) in [
        ("/oauth/authorize", &consent),
        ("/settings/password", &settings),
        ("/settings/revoke", &settings),
        ("/auth/log-out", &settings),
        ("/auth/log-in", &settings),
        ("/auth/sign-up", &settings),
    ] {
        for token in [None, Some(""), Some(foreign["form_token"].as_str())] {
            let mut fields: BTreeMap<_, _> = fields.clone();
            fields.remove("form_token");
            token.map(|token| fields.insert("form_token".into(), token.into()));
            let got = browser.post(&world, path, &fields).await;
            // A log-out after the end of the session is no error.
            let expect = match path {
                "/auth/log-out" => StatusCode::SEE_OTHER,
                _ => StatusCode::FORBIDDEN,
            };
            assert_eq!(got.status, expect, "{path} {token:?}");
        }
    }
    let got = browser.get(&world, "/settings").await;
    assert_eq!(got.status, StatusCode::OK, "no session has ended");
    // A browser without a cookie cannot have received a form.
    let mut fresh = Browser::default();
    let got = fresh.post(&world, "/auth/log-in", &foreign).await;
    assert_eq!(got.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_log_in_begins_a_new_session_whatever_the_browser_had() {
    let world = World::new();
    world.signed_up("ada").await;
    const COOKIE: &str = "__Host-roost_session";
    let mut victim = Browser::default();
    victim.cookies.insert(COOKIE.into(), "chosen-by-an-attacker".into());
    let got = victim.log_in(&world, "ada", PASSWORD).await;
    assert_eq!(got.location(), "/settings");
    let first = victim.cookies[COOKIE].clone();
    assert_ne!(first, "chosen-by-an-attacker");
    let mut attacker = Browser::default();
    attacker.cookies.insert(COOKIE.into(), "chosen-by-an-attacker".into());
    assert_eq!(attacker.get(&world, "/settings").await.location(), "/auth/log-in");
    // A second log-in of the same browser starts another session, with other form tokens.
    let before = victim.get(&world, "/settings").await.hidden();
    victim.log_in(&world, "ada", PASSWORD).await;
    assert_ne!(victim.cookies[COOKIE], first);
    let after = victim.get(&world, "/settings").await.hidden();
    assert_ne!(before["form_token"], after["form_token"]);
}

#[tokio::test]
async fn guessing_passwords_ends_after_some_failures() {
    let rate = |times| Rate { times, within: Duration::from_secs(600) };
    let world = World::with(|options| {
        options.rates = Rates {
            failures_of_address: rate(3),
            failures_of_account: rate(5),
            ..Rates::unlimited()
        };
    });
    world.signed_up("ada").await;
    let mut browser = Browser::default();
    for name in ["ada", "nobody", "ada"] {
        let got = browser.log_in(&world, name, "a wrong password").await;
        assert_eq!(got.status, StatusCode::BAD_REQUEST, "{name}");
        assert!(got.text.contains("The name or the password is wrong."));
    }
    for name in ["ada", "bob"] {
        let got = browser.log_in(&world, name, PASSWORD).await;
        assert_eq!(got.status, StatusCode::TOO_MANY_REQUESTS, "{name}");
    }
}

#[tokio::test]
async fn guesses_from_other_addresses_lock_no_user_out() {
    let rate = |times| Rate { times, within: Duration::from_secs(600) };
    let world = World::with(|options| {
        options.rates = Rates {
            failures_of_address: rate(20),
            failures_of_account: rate(5),
            ..Rates::unlimited()
        };
    });
    world.signed_up("ada").await;
    let at =
        |address: &str| Browser { address: Some(address.parse().unwrap()), ..Browser::default() };
    let mut home = at("192.0.2.7");
    assert_eq!(home.log_in(&world, "ada", PASSWORD).await.location(), "/settings");
    for number in 1..=4 {
        let mut attacker = at(&format!("198.51.100.{number}"));
        for _ in 0..3 {
            let got = attacker.log_in(&world, "ada", "a wrong password").await;
            assert_eq!(got.status, StatusCode::BAD_REQUEST);
        }
        // While an account is under attack, an address with several failures is refused even with the right password.
        let got = attacker.log_in(&world, "ada", PASSWORD).await;
        match number {
            1 => assert_eq!(got.location(), "/settings"),
            _ => assert_eq!(got.status, StatusCode::TOO_MANY_REQUESTS, "{number}"),
        }
    }
    assert_eq!(at("203.0.113.9").log_in(&world, "ada", PASSWORD).await.location(), "/settings");
    // An address from which the user has logged in may fail as often as any other.
    for _ in 0..5 {
        let got = home.log_in(&world, "ada", "a typing error").await;
        assert_eq!(got.status, StatusCode::BAD_REQUEST);
    }
    assert_eq!(home.log_in(&world, "ada", PASSWORD).await.location(), "/settings");
}

#[tokio::test]
async fn what_one_user_or_address_asks_for_has_a_rate() {
    let rate = |times| Rate { times, within: Duration::from_secs(300) };
    let world = World::with(|options| {
        options.rates.requests = rate(8);
        options.rates.anonymous_reads = rate(3);
        options.rates.posts = rate(2);
    });
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let publish = async || {
        let got = world.post("/api/v1/statuses", Some(&ada.token), &[("status", "x")]).await;
        got.status.as_u16()
    };
    let status = ada.post(&world, "y").await;
    let edit = async || {
        let path = format!("/api/v1/statuses/{status}");
        let got = world.call("PUT", &path, Some(&ada.token), &[("status", "z")]).await;
        got.status.as_u16()
    };
    assert_eq!([edit().await, publish().await, edit().await], [200, 429, 429], "edits, too");
    let read = async |token: Option<&str>, times: usize| {
        let mut last = world.get("/api/v1/timelines/public", token).await;
        for _ in 1..times {
            last = world.get("/api/v1/timelines/public", token).await;
        }
        last
    };
    assert_eq!(read(Some(&ada.token), 3).await.status.as_u16(), 200);
    let got = read(Some(&ada.token), 1).await;
    assert_eq!(got.status.as_u16(), 429);
    // The test has used some of the 300 seconds, so this waits for the rest.
    let wait: u64 = got.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=300).contains(&wait), "{wait}");
    assert_eq!(read(Some(&bob.token), 4).await.status.as_u16(), 200, "of each user");
    assert_eq!(read(None, 3).await.status.as_u16(), 200);
    assert_eq!(read(None, 1).await.status.as_u16(), 429);
    assert_eq!(world.get("/api/v1/instance", None).await.status.as_u16(), 200);
}

#[tokio::test]
async fn markup_of_apps_and_users_is_shown_as_text() {
    let world = World::new();
    let fields = [
        ("client_name", "<script>alert(1)</script>"),
        ("redirect_uris", REDIRECT),
        ("website", "https://x.example/'onload='"),
    ];
    let app = world.post("/api/v1/apps", None, &fields).await.json();
    let mut browser = world.signed_up("ada").await;
    let app = crate::client::App {
        id: app["client_id"].as_str().unwrap().into(),
        secret: app["client_secret"].as_str().unwrap().into(),
    };
    let page = browser.get(&world, &app.url(&[("state", "\"><script>alert(2)</script>")])).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(!page.text.contains("<script>"), "{page:?}");
    assert!(page.text.contains("&lt;script&gt;alert(1)"));
}
