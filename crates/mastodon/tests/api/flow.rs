//! Common flows of users and apps, from sign-up to revocation.

use axum::body::Body;
use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{Method, Request, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use feed::accounts::{AccountCommand, AccountState};
use feed::{Command, UserId, UserRef};
use mastodon::Registrations;

use crate::client::{App, Browser, OOB, PASSWORD, REDIRECT, World};

#[tokio::test]
async fn a_user_signs_up_allows_an_app_and_the_app_acts_for_the_user() {
    let world = World::new();
    let app = world.app().await;
    let mut browser = world.signed_up("ada").await;
    let url = app.url(&[("scope", "read write"), ("state", "a b&c")]);
    let page = browser.get(&world, &url).await;
    assert!(page.text.contains("An app") && page.text.contains("@ada"), "{page:?}");
    assert!(page.text.contains("You are then sent to app.example."), "{page:?}");
    let policy = page.headers[CONTENT_SECURITY_POLICY].to_str().unwrap();
    // The policy has no `form-action`, since the app may redirect further, to unknown sites.
    assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("form-action"));
    let page = browser.get(&world, "/settings").await;
    let policy = page.headers[CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.contains("form-action 'self'") && policy.contains("frame-ancestors 'none'"));
    let got = browser.decide(&world, &url, "allow").await;
    assert!(got.location().starts_with(&format!("{REDIRECT}?code=")));
    assert_eq!(got.led_with("state").as_deref(), Some("a b&c"));
    let got = app.exchange(&world, &got.led_with("code").unwrap(), &[]).await;
    let token = got.json();
    assert_eq!(
        (token["token_type"].as_str(), token["scope"].as_str()),
        (Some("Bearer"), Some("read write"))
    );
    let token = token["access_token"].as_str().unwrap();
    let me = world.get("/api/v1/accounts/verify_credentials", Some(token)).await;
    assert_eq!(me.status, StatusCode::OK, "{me:?}");
    assert_eq!(me.headers[ACCESS_CONTROL_ALLOW_ORIGIN], "*");
    let me = me.json();
    assert_eq!((me["acct"].as_str(), me["id"].as_str()), (Some("ada"), Some("0")));
    assert_eq!(me["url"].as_str(), Some("https://social.example/@ada"));
    assert_eq!(me["source"]["privacy"].as_str(), Some("public"));
    let application = world.get("/api/v1/apps/verify_credentials", Some(token)).await.json();
    assert_eq!(application["name"].as_str(), Some("An app"));
    assert!(application.get("client_secret").is_none());
}

#[tokio::test]
async fn an_app_is_registered_with_parameters_in_the_query_too() {
    let world = World::new();
    let query = "client_name=Cubes&redirect_uris=cubes://&scopes=read";
    let got = world.post(&format!("/api/v1/apps?{query}"), None, &[]).await;
    assert_eq!(got.status, StatusCode::OK, "{got:?}");
    assert_eq!(got.json()["redirect_uris"][0].as_str(), Some("cubes://"));
    let fields = [("client_name", "Cubes"), ("redirect_uris", "cubes://")];
    let got = world.post("/api/v1/apps?scopes=write", None, &fields).await;
    assert_eq!(got.json()["scopes"][0].as_str(), Some("write"), "{got:?}");
}

#[tokio::test]
async fn scopes_of_administration_are_accepted_and_not_granted() {
    let world = World::new();
    let asked = "read write admin:read admin:write:reports read:collections";
    let app = world.app_with(asked).await;
    let own = app.own_token(&world, asked).await;
    let entity = world.get("/api/v1/apps/verify_credentials", Some(&own)).await.json();
    assert_eq!(entity["scopes"], serde_json::json!(["read", "write"]));
    let mut browser = world.signed_up("ada").await;
    let url = app.url(&[("scope", asked)]);
    let page = browser.get(&world, &url).await;
    assert!(!page.text.contains("change your admin"), "{page:?}");
    assert_eq!(page.text.matches("<li>").count(), 2, "{page:?}");
    let code = browser.allow(&world, &url).await;
    let token = app.exchange(&world, &code, &[]).await.json();
    assert_eq!(token["scope"].as_str(), Some("read write"), "{token}");
    let url = app.url(&[("scope", "admin:read")]);
    let got = browser.get(&world, &url).await;
    assert_eq!(got.status, StatusCode::BAD_REQUEST, "no item is left: {got:?}");
    let moderation = world.app_with("admin:read admin:write").await;
    let fields = [
        ("grant_type", "client_credentials"),
        ("client_id", &moderation.id),
        ("client_secret", &moderation.secret),
        ("scope", "admin:read"),
    ];
    let got = world.post("/oauth/token", None, &fields).await;
    assert_eq!(got.json()["error"].as_str(), Some("invalid_scope"), "{got:?}");
    for bad in ["read administration", "admin", "admin:follow"] {
        let fields = [("client_name", "x"), ("redirect_uris", REDIRECT), ("scopes", bad)];
        let got = world.post("/api/v1/apps", None, &fields).await;
        assert_eq!(got.status, StatusCode::BAD_REQUEST, "{bad}");
    }
}

#[tokio::test]
async fn a_browser_has_one_session_and_can_log_out_after_it_has_ended() {
    let world = World::new();
    let mut browser = world.signed_up("ada").await;
    let mut former = Browser { cookies: browser.cookies.clone(), ..Browser::default() };
    let stale = browser.get(&world, "/settings").await.hidden();
    assert_eq!(browser.log_in(&world, "ada", PASSWORD).await.status, StatusCode::SEE_OTHER);
    let got = former.get(&world, "/settings").await;
    assert_eq!(got.location(), "/auth/log-in", "the former session has ended");
    let got = former.post(&world, "/auth/log-out", &stale).await;
    assert_eq!((got.status, got.location()), (StatusCode::SEE_OTHER, "/auth/log-in"));
    let got = browser.post(&world, "/auth/log-out", &stale).await;
    assert_eq!(got.status, StatusCode::SEE_OTHER);
    let got = browser.get(&world, "/settings").await;
    assert_eq!(got.status, StatusCode::OK, "a form without the right token ends no session");
}

#[tokio::test]
async fn nobody_signs_up_with_the_handle_of_an_operator_or_an_invite_that_does_not_exist() {
    let world = World::with(|options| options.registrations = Registrations::Invite);
    let app = world.app().await;
    let token = app.own_token(&world, "write").await;
    let instance = world.get("/api/v1/instance", None).await.json();
    assert_eq!(instance["registrations"].as_bool(), Some(false), "apps have no field for invites");
    assert_eq!(instance["invites_enabled"].as_bool(), Some(true));
    let sign_up = async |handle: &str| {
        let fields = [
            ("username", handle),
            ("email", "ada@example.org"),
            ("password", PASSWORD),
            ("agreement", "true"),
            ("invite_code", "made-up"),
        ];
        world.post("/api/v1/accounts", Some(&token), &fields).await.json()
    };
    let got = sign_up("Admin").await;
    assert_eq!(got["details"]["username"][0]["error"].as_str(), Some("ERR_RESERVED"), "{got:?}");
    let got = sign_up("ada").await;
    assert_eq!(got["details"]["invite_code"][0]["error"].as_str(), Some("ERR_INVALID"), "{got:?}");
}

#[tokio::test]
async fn a_user_denies_an_app_and_the_app_is_told() {
    let world = World::new();
    let app = world.app().await;
    let mut browser = world.signed_up("ada").await;
    let got = browser.decide(&world, &app.url(&[("state", "s")]), "deny").await;
    assert!(got.location().starts_with(REDIRECT));
    assert_eq!(got.led_with("error").as_deref(), Some("access_denied"));
    assert_eq!((got.led_with("state").as_deref(), got.led_with("code")), (Some("s"), None));
    let got = browser.decide(&world, &app.url(&[("redirect_uri", OOB)]), "deny").await;
    assert_eq!(got.status, StatusCode::OK);
}

#[tokio::test]
async fn a_code_out_of_band_is_shown_on_a_page() {
    let world = World::new();
    let app = world.app().await;
    let mut browser = world.signed_up("ada").await;
    let page = browser.decide(&world, &app.url(&[("redirect_uri", OOB)]), "allow").await;
    let (_, rest) = page.text.split_once("<code class=\"secret\">").unwrap();
    let code = rest.split('<').next().unwrap();
    let got = app.exchange(&world, code, &[("redirect_uri", OOB)]).await;
    assert_eq!(got.status, StatusCode::OK, "{got:?}");
}

#[tokio::test]
async fn a_browser_that_is_not_logged_in_comes_back_to_the_apps_request() {
    let world = World::new();
    let app = world.app().await;
    world.signed_up("ada").await;
    let mut browser = Browser::default();
    let url = app.url(&[("state", "s"), ("scope", "read")]);
    let got = browser.get(&world, &url).await;
    let login = got.location().to_owned();
    let mut fields = browser.get(&world, &login).await.hidden();
    fields.insert("username".into(), "ADA@example.org".into());
    fields.insert("password".into(), PASSWORD.into());
    let got = browser.post(&world, "/auth/log-in", &fields).await;
    let back = got.location().to_owned();
    let page = browser.get(&world, &back).await;
    assert!(page.text.contains("An app"), "{page:?}");
    // With `force_login` the log-in page appears, but only once.
    let again = browser.get(&world, &app.url(&[("force_login", "true")])).await;
    assert!(again.location().starts_with("/auth/log-in?next="));
    assert!(!again.location().contains("force_login"));
}

#[tokio::test]
async fn parameters_are_accepted_as_form_json_and_multipart() {
    let world = World::new();
    let json = r#"{"client_name":"x","redirect_uris":["https://a.example/","app://b"]}"#;
    let multipart = "--b\r\nContent-Disposition: form-data; name=\"client_name\"\r\n\r\nx\r\n\
        --b\r\nContent-Disposition: form-data; name=\"redirect_uris\"\r\n\r\nhttps://a.example/\napp://b\r\n--b--\r\n";
    let form = "client_name=x&redirect_uris=https%3A%2F%2Fa.example%2F%0Aapp%3A%2F%2Fb";
    for (kind, body) in [
        ("application/json", json),
        ("multipart/form-data; boundary=b", multipart),
        ("application/x-www-form-urlencoded; charset=utf-8", form),
    ] {
        let request = Request::post("/api/v1/apps").header(CONTENT_TYPE, kind);
        let got = world.send(request.body(Body::from(body)).unwrap()).await;
        assert_eq!(got.status, StatusCode::OK, "{got:?}");
        let app = got.json();
        assert_eq!(app["redirect_uris"].as_array().unwrap().len(), 2);
        assert_eq!(app["scopes"][0].as_str(), Some("read"));
        assert_eq!(app["client_secret_expires_at"].as_u64(), Some(0));
    }
    let request = Request::post("/api/v1/apps").header(CONTENT_TYPE, "text/plain");
    let got = world.send(request.body(Body::from(form)).unwrap()).await;
    assert_eq!(got.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let request = Request::post("/api/v1/apps").header(CONTENT_TYPE, "application/json");
    let got = world.send(request.body(Body::from("x".repeat(70_000))).unwrap()).await;
    assert_eq!(got.status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn an_app_signs_a_user_up_and_gets_a_token() {
    let world = World::new();
    let app = world.app().await;
    let token = app.own_token(&world, "write").await;
    let fields = |name: &'static str| {
        [
            ("username", name),
            ("email", "ada@example.org"),
            ("password", PASSWORD),
            ("agreement", "true"),
            ("locale", "en"),
        ]
    };
    let got = world.post("/api/v1/accounts", Some(&token), &fields("Ada")).await;
    assert_eq!(got.status, StatusCode::OK, "{got:?}");
    let token_of_user = got.json()["access_token"].as_str().unwrap().to_owned();
    let me = world.get("/api/v1/accounts/verify_credentials", Some(&token_of_user)).await.json();
    assert_eq!(me["username"].as_str(), Some("ada"));
    let got = world.post("/api/v1/accounts", Some(&token), &fields("ada")).await;
    assert_eq!(got.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(got.json()["details"]["email"][0]["error"].as_str(), Some("ERR_TAKEN"));
    let got = world.post("/api/v1/accounts", Some(&token), &[("username", "no good")]).await;
    let details = got.json()["details"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(details, ["agreement", "email", "password", "username"]);
    // A user cannot sign others up.
    let got = world.post("/api/v1/accounts", Some(&token_of_user), &fields("bob")).await;
    assert_eq!(got.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn whether_sign_up_is_possible_is_a_setting() {
    let invite = node::Secret::random().unwrap();
    for (registrations, code, expect) in [
        (Registrations::Closed, None, StatusCode::FORBIDDEN),
        (Registrations::Closed, Some(invite.as_str()), StatusCode::FORBIDDEN),
        (Registrations::Invite, None, StatusCode::FORBIDDEN),
        (Registrations::Invite, Some("wrong"), StatusCode::UNPROCESSABLE_ENTITY),
        (Registrations::Invite, Some(invite.as_str()), StatusCode::OK),
        (Registrations::Approval, None, StatusCode::FORBIDDEN),
        (Registrations::Approval, Some(invite.as_str()), StatusCode::OK),
        (Registrations::Open, None, StatusCode::OK),
    ] {
        let world = World::with(|options| options.registrations = registrations);
        let code_hash = invite.hash();
        let make = AccountCommand::CreateInvite { code: code_hash, uses: 1, life_secs: 60 };
        world.node.submit(Command::Account(make).into()).await.unwrap().outcome.unwrap();
        let app = world.app().await;
        let token = app.own_token(&world, "write").await;
        let mut fields = vec![
            ("username", "ada"),
            ("email", "ada@example.org"),
            ("password", PASSWORD),
            ("agreement", "true"),
        ];
        fields.extend(code.map(|code| ("invite_code", code)));
        let got = world.post("/api/v1/accounts", Some(&token), &fields).await;
        assert_eq!(got.status, expect, "{registrations:?} {code:?}: {got:?}");
        let page = Browser::default().get(&world, "/auth/sign-up").await;
        let is_closed = registrations == Registrations::Closed;
        assert_eq!(page.status == StatusCode::FORBIDDEN, is_closed);
        let pending = registrations == Registrations::Approval && code.is_none();
        let account = world.node.facts().account(UserId(0));
        let state = account.as_ref().map(|account| account.state);
        assert_eq!(state == Some(AccountState::Pending), pending);
        let mut browser = Browser::default();
        let got = browser.log_in(&world, "ada", PASSWORD).await;
        let expect = if expect == StatusCode::OK { StatusCode::SEE_OTHER } else { got.status };
        assert_eq!(got.status, expect);
        assert_eq!(got.text.contains("waits for approval"), pending, "{got:?}");
        let is_found = async |is_approved: bool| {
            for path in [
                "/api/v1/accounts/0",
                "/api/v1/accounts?id[]=0",
                "/api/v1/accounts/lookup?acct=ada",
                "/api/v1/accounts/search?q=a",
                "/api/v2/search?q=ada",
                "/api/v1/directory",
                "/.well-known/webfinger?resource=acct:ada@social.example",
            ] {
                let got = world.get(path, None).await;
                assert_eq!(
                    got.text.contains("ada"),
                    is_approved,
                    "{registrations:?} {path}: {got:?}"
                );
            }
            let got = world.get("/api/v1/accounts/0/statuses", None).await;
            assert_eq!(got.status == StatusCode::OK, is_approved);
        };
        is_found(account.is_some() && !pending).await;
        if pending {
            let user = UserRef::Id(UserId(0));
            let approve = AccountCommand::SetState { user, state: AccountState::Active };
            world.node.submit(Command::Account(approve).into()).await.unwrap().outcome.unwrap();
            let got = browser.log_in(&world, "ada", PASSWORD).await;
            assert_eq!(got.status, StatusCode::SEE_OTHER);
            is_found(true).await;
        }
    }
}

#[tokio::test]
async fn the_password_grant_works_only_behind_its_setting() {
    for (password_grant, expect) in [(false, StatusCode::BAD_REQUEST), (true, StatusCode::OK)] {
        let world = World::with(|options| options.password_grant = password_grant);
        let app = world.app().await;
        world.signed_up("ada").await;
        let ask = async |password: &str| {
            let fields = [
                ("grant_type", "password"),
                ("client_id", app.id.as_str()),
                ("client_secret", app.secret.as_str()),
                ("username", "ada@example.org"),
                ("password", password),
                ("scope", "read"),
            ];
            world.post("/oauth/token", None, &fields).await
        };
        assert_eq!(ask(PASSWORD).await.status, expect);
        assert_eq!(ask("wrong password").await.status, StatusCode::BAD_REQUEST);
        let metadata = world.get("/.well-known/oauth-authorization-server", None).await.json();
        let grants = metadata["grant_types_supported"].as_array().unwrap();
        assert_eq!(grants.iter().any(|grant| grant == "password"), password_grant);
        assert_eq!(metadata["code_challenge_methods_supported"][0].as_str(), Some("S256"));
        assert_eq!(metadata["issuer"].as_str(), Some("https://social.example/"));
    }
}

#[tokio::test]
async fn a_token_is_revoked_by_its_app_and_by_its_user() {
    let world = World::new();
    let app = world.app().await;
    let mut browser = world.signed_up("ada").await;
    let works = async |token: &str| {
        let got = world.get("/api/v1/accounts/verify_credentials", Some(token)).await;
        got.status == StatusCode::OK
    };
    let [one, two] = [
        app.user_token(&world, &mut browser, "read").await,
        app.user_token(&world, &mut browser, "read").await,
    ];
    assert!(works(&one).await && works(&two).await);
    let revoke = async |app: &App, token: &str| {
        let fields =
            [("client_id", app.id.as_str()), ("client_secret", &app.secret), ("token", token)];
        world.post("/oauth/revoke", None, &fields).await.status
    };
    for _ in 0..2 {
        assert_eq!(revoke(&app, &one).await, StatusCode::OK, "also if it is revoked already");
        assert!(!works(&one).await && works(&two).await);
    }
    let page = browser.get(&world, "/settings").await;
    assert!(page.text.contains("An app"));
    let fields = page.hidden();
    let got = browser.post(&world, "/settings/revoke", &fields).await;
    assert_eq!(got.location(), "/settings");
    assert!(!works(&two).await);
    assert!(!browser.get(&world, "/settings").await.text.contains("An app"));
}

#[tokio::test]
async fn a_new_password_logs_everything_else_out() {
    let world = World::new();
    let app = world.app().await;
    let mut browser = world.signed_up("ada").await;
    let token = app.user_token(&world, &mut browser, "read").await;
    let mut other = Browser::default();
    other.log_in(&world, "ada", PASSWORD).await;
    let mut fields = browser.get(&world, "/settings").await.hidden();
    fields.insert("new_password".into(), "another good password".into());
    for (current, expect) in [("wrong", StatusCode::BAD_REQUEST), (PASSWORD, StatusCode::OK)] {
        fields.insert("current_password".into(), current.into());
        let got = browser.post(&world, "/settings/password", &fields).await;
        assert_eq!(got.status, expect, "{got:?}");
    }
    assert_eq!(browser.get(&world, "/settings").await.status, StatusCode::OK);
    assert_eq!(other.get(&world, "/settings").await.location(), "/auth/log-in");
    let got = world.get("/api/v1/accounts/verify_credentials", Some(&token)).await;
    assert_eq!(got.status, StatusCode::UNAUTHORIZED);
    let mut again = Browser::default();
    assert_eq!(again.log_in(&world, "ada", PASSWORD).await.status, StatusCode::BAD_REQUEST);
    let got = again.log_in(&world, "ada", "another good password").await;
    assert_eq!(got.location(), "/settings");
}

#[tokio::test]
async fn a_log_out_ends_the_session_on_the_server() {
    let world = World::new();
    let mut browser = world.signed_up("ada").await;
    let copy = browser.clone();
    let fields = browser.get(&world, "/settings").await.hidden();
    let got = browser.post(&world, "/auth/log-out", &fields).await;
    assert_eq!(got.location(), "/auth/log-in");
    for mut browser in [browser, copy] {
        assert_eq!(browser.get(&world, "/settings").await.location(), "/auth/log-in");
    }
}

#[tokio::test]
async fn pages_of_other_origins_may_ask_the_api_and_nothing_else() {
    let world = World::new();
    let ask = async |path: &str| {
        let request = Request::builder().method(Method::OPTIONS).uri(path);
        world.send(request.body(Body::empty()).unwrap()).await
    };
    for path in ["/api/v1/apps", "/oauth/token", "/api/v1/accounts/verify_credentials"] {
        let got = ask(path).await;
        assert_eq!(got.status, StatusCode::NO_CONTENT, "{path}");
        assert_eq!(got.headers[ACCESS_CONTROL_ALLOW_ORIGIN], "*");
    }
    for path in ["/oauth/authorize", "/auth/log-in", "/settings"] {
        let got = ask(path).await;
        assert!(!got.headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN), "{path}");
    }
}

#[tokio::test]
async fn an_app_that_sends_its_token_with_every_request_gets_and_revokes_tokens() {
    let world = World::with(|options| options.password_grant = true);
    let app = world.app().await;
    world.signed_up("ada").await;
    let client = [("client_id", app.id.as_str()), ("client_secret", app.secret.as_str())];
    let own = app.own_token(&world, "read").await;
    let grant = [("grant_type", "password"), ("username", "ada"), ("password", PASSWORD)];
    let got = world.post("/oauth/token", Some(&own), &[&client[..], &grant].concat()).await;
    let token = got.json()["access_token"].as_str().unwrap().to_owned();
    let revoke = [&client[..], &[("token", token.as_str())]].concat();
    // This request is one of Mastodon.py.
    let got = world.post("/oauth/revoke", Some(&token), &revoke).await;
    assert_eq!(got.status, StatusCode::OK, "{got:?}");
    let got = world.get("/api/v1/accounts/verify_credentials", Some(&token)).await;
    assert_eq!(got.status, StatusCode::UNAUTHORIZED);
    for (header, status) in [
        (STANDARD.encode(format!("{}:{}", app.id, app.secret)), 200),
        (STANDARD.encode(format!("{}:wrong", app.id)), 403),
        (STANDARD.encode("no colon"), 403),
        ("!".to_owned(), 403),
    ] {
        // The secret in the body is right, but `Basic` takes precedence.
        let headers = [("authorization", &*format!("Basic {header}"))];
        let got = world.call_with("POST", "/oauth/revoke", None, &revoke, &headers).await;
        assert_eq!(got.status.as_u16(), status, "{header}: {got:?}");
    }
}
