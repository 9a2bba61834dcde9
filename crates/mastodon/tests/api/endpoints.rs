//! Every endpoint with every kind of token and reader, and its documentation. The tests are derived from the table of
//! routes, so that they include new routes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use feed::accounts::{AccountCommand, AccountState};
use feed::{Command, UserId, UserRef};
use mastodon::{Endpoint, EndpointState, endpoints};
use serde_json::Value;

use crate::client::{ALL_SCOPES, Person, World};

/// Whether a path is that of a stream, which does not end: `streaming.rs` reads streams.
pub(crate) fn is_stream(path: &str) -> bool {
    path.starts_with("/api/v1/streaming")
}

/// Path with ids instead of parameters.
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
    let [eve] = world.people(["eve"]).await;
    let user = UserRef::Id(UserId(eve.id.parse().unwrap()));
    let disable = AccountCommand::SetState { user, state: AccountState::Disabled };
    world.node.submit(Command::Account(disable).into()).await.unwrap().outcome.unwrap();
    let (mut of_users, mut optional) = (0, 0);
    for Endpoint { method, path, token: needed, state } in endpoints() {
        let narrow = if needed.contains("push") { &profile } else { &push };
        let wrong = "x".repeat(43);
        // Expected status with no token, an unknown token, the token of a disabled account, an app's own token, a token
        // without the scope, and a token with all scopes. 0 means neither 401 nor 403.
        let expect: [u16; 6] = match needed.as_str() {
            "none" => [0, 0, 0, 0, 0, 0],
            "any" => [401, 401, 401, 0, 0, 0],
            "of the app, `write:accounts`" => [401, 401, 401, 0, 403, 403],
            _ if needed.ends_with("`; or none") => [0, 401, 401, 0, 403, 0],
            _ if needed.starts_with("of a user, `") => [401, 401, 401, 422, 403, 0],
            other => panic!("{method} {path} needs {other}"),
        };
        of_users += usize::from(expect[0] == 401);
        optional += usize::from(needed.ends_with("; or none"));
        let disabled = Some(&eve.token);
        let tokens = [None, Some(&wrong), disabled, Some(&own), Some(narrow), Some(&ada.token)];
        for (number, token) in tokens.into_iter().enumerate() {
            if is_stream(path) && expect[number] == 0 {
                continue;
            }
            // These routes need a client's secret, and the app's token has all scopes.
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

/// Scopes that an endpoint accepts, by name.
fn scopes_of(needed: &str) -> Vec<&str> {
    needed.split('`').skip(1).step_by(2).collect()
}

/// Whether a token with `scope` covers `needed`. `follow` covers the scopes for relations of users.
fn allows(scope: &str, needed: &str) -> bool {
    let is_part = needed.strip_prefix(scope).is_some_and(|rest| rest.starts_with(':'));
    let of_follow = ["follows", "blocks", "mutes"];
    let is_of_follow = needed.split_once(':').is_some_and(|(_, what)| of_follow.contains(&what));
    scope == needed || is_part || scope == "follow" && is_of_follow
}

#[tokio::test]
async fn a_scope_opens_the_endpoints_that_need_it_and_no_others() {
    let world = World::new();
    let metadata = world.get("/.well-known/oauth-authorization-server", None).await.json();
    let scopes = metadata["scopes_supported"].as_array().unwrap().iter();
    let scopes: Vec<_> = scopes.map(|scope| scope.as_str().unwrap().to_owned()).collect();
    let app = world.app_with(&scopes.join(" ")).await;
    let mut browser = world.signed_up("ada").await;
    let mut opened = BTreeMap::new();
    for scope in &scopes {
        let token = app.user_token(&world, &mut browser, scope).await;
        for Endpoint { method, path, token: needed, .. } in endpoints() {
            let of_app = needed.starts_with("of the app");
            if scopes_of(&needed).is_empty() || of_app || is_stream(path) {
                continue;
            }
            let got = world.call(method, &concrete(path), Some(&token), &[]).await;
            let may = scopes_of(&needed).iter().any(|needed| allows(scope, needed));
            let what = format!("{scope}: {method} {path} {got:?}");
            assert_eq!(got.status.as_u16() == 403, !may, "{what}");
            *opened.entry(scope.as_str()).or_insert(0) += usize::from(may);
        }
    }
    assert!(opened["read"] > 60 && opened["write:favourites"] > 1, "{opened:?}");
}

/// Kind of item that the id in a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Account,
    Status,
    Conversation,
    Notification,
    List,
    Media,
    Filter,
    FilterKeyword,
    FilterStatus,
    Poll,
    Scheduled,
}

/// Whether a path names a hashtag, or a hashtag on the reader's own profile.
pub(crate) fn is_of_tag(path: &str) -> bool {
    ["/api/v1/tags/{", "/api/v1/timelines/tag/{", "/api/v1/featured_tags/{"]
        .into_iter()
        .any(|start| path.starts_with(start))
}

/// Kind of the id in a path; `None` if it has no id, or items of the kind do not exist on this server.
pub(crate) fn kind(endpoint: &Endpoint) -> Option<Kind> {
    let path = endpoint.path;
    let kinds = [
        ("/api/v1/accounts/{", Kind::Account),
        ("/api/v1/follow_requests/{", Kind::Account),
        ("/api/v1/statuses/{", Kind::Status),
        ("/api/v1/notifications/{", Kind::Notification),
        ("/api/v1/conversations/{", Kind::Conversation),
        ("/api/v1/lists/{", Kind::List),
        ("/api/v1/media/{", Kind::Media),
        ("/api/v1/timelines/list/{", Kind::List),
        ("/api/v2/filters/{", Kind::Filter),
        ("/api/v2/filters/keywords/{", Kind::FilterKeyword),
        ("/api/v1/filters/{", Kind::FilterKeyword),
        ("/api/v2/filters/statuses/{", Kind::FilterStatus),
        ("/api/v1/polls/{", Kind::Poll),
        ("/api/v1/scheduled_statuses/{", Kind::Scheduled),
    ];
    let found = kinds.into_iter().find(|(start, _)| path.starts_with(start));
    let is_known = found.is_some()
        || !path.contains('{')
        || endpoint.state != EndpointState::Works
        || is_of_tag(path)
        || is_stream(path);
    assert!(is_known, "specify the kind of the id in {path} here");
    found.map(|(_, kind)| kind).filter(|_| endpoint.state != EndpointState::Missing)
}

/// Path in which an id replaces the parameter.
pub(crate) fn with_id(path: &str, id: &str) -> String {
    let parts = path.split('/').map(|part| if part.starts_with('{') { id } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// Author whose items are partly hidden from other users, and those users.
struct Hidden {
    world: World,
    quentin: Person,
    /// Follower of the author.
    fay: Person,
    /// User without a relation to the author.
    eve: Person,
    /// User whom the author blocks.
    bob: Person,
    /// User who blocks the author.
    dan: Person,
    /// App's own token.
    own: String,
    open: String,
    private: String,
    /// Direct status for one user.
    conversation: String,
    deleted: String,
    /// Notification of the author.
    notification: String,
    /// List of the author.
    list: String,
    /// Unattached picture of the author.
    picture: String,
    /// Filter of the author, a keyword of it, and the id of a status in it.
    filter: [String; 3],
    /// Polls of the author: one for followers, one for everybody.
    polls: [String; 2],
    /// Scheduled status of the author.
    scheduled: String,
}

/// Publishes a poll; returns its id.
async fn asked(world: &World, author: &Person, visibility: &str, words: &str) -> String {
    let fields = [
        ("status", words),
        ("visibility", visibility),
        ("poll[options][]", words),
        ("poll[options][]", "b"),
        ("poll[expires_in]", "300"),
    ];
    let status = author.call(world, "POST", "/api/v1/statuses", &fields).await;
    status["poll"]["id"].as_str().unwrap().to_owned()
}

/// Schedules a status; returns its id.
async fn scheduled(world: &World, author: &Person) -> String {
    let fields = [("status", "privatewords"), ("scheduled_at", "2034-01-01T00:00:00Z")];
    let scheduled = author.call(world, "POST", "/api/v1/statuses", &fields).await;
    scheduled["id"].as_str().unwrap().to_owned()
}

impl Hidden {
    async fn new() -> Self {
        let world = World::new();
        let names = ["quentin", "fay", "eve", "bob", "dan"];
        let [quentin, fay, eve, bob, dan] = world.people(names).await;
        for reader in [&fay, &bob] {
            reader.does(&world, "follow", &quentin).await;
        }
        let open = quentin.post(&world, "publicwords #hidden @bob @eve @dan").await;
        let fields = [("status", "privatewords #hidden @fay"), ("visibility", "private")];
        let private = quentin.call(&world, "POST", "/api/v1/statuses", &fields).await;
        let private = private["id"].as_str().unwrap().to_owned();
        let fields = [("status", "privatewords @fay"), ("visibility", "direct")];
        let conversation = quentin.call(&world, "POST", "/api/v1/statuses", &fields).await;
        let conversation = conversation["id"].as_str().unwrap().to_owned();
        let deleted = quentin.post(&world, "deletedwords").await;
        let path = format!("/api/v1/statuses/{deleted}");
        quentin.call(&world, "DELETE", &path, &[]).await;
        for post in [&open, &private] {
            let path = format!("/api/v1/statuses/{post}");
            fay.call(&world, "POST", &format!("{path}/favourite"), &[]).await;
            fay.call(&world, "POST", &format!("{path}/bookmark"), &[]).await;
        }
        quentin.does(&world, "block", &bob).await;
        dan.does(&world, "block", &quentin).await;
        let notification = quentin.ids(&world, "/api/v1/notifications").await.swap_remove(0);
        let own = world.app_with(ALL_SCOPES).await.own_token(&world, ALL_SCOPES).await;
        quentin.does(&world, "follow", &fay).await;
        let list =
            quentin.call(&world, "POST", "/api/v1/lists", &[("title", "privatewords")]).await;
        let list = list["id"].as_str().unwrap().to_owned();
        let accounts = format!("/api/v1/lists/{list}/accounts");
        quentin.call(&world, "POST", &accounts, &[("account_ids[]", &fay.id)]).await;
        let picture = quentin.picture(&world, 1).await;
        let path = format!("/api/v1/media/{picture}");
        quentin.call(&world, "PUT", &path, &[("description", "privatewords")]).await;
        let fields = [
            ("title", "privatewords"),
            ("context[]", "home"),
            ("keywords_attributes[][keyword]", "privatewords"),
        ];
        let filter = quentin.call(&world, "POST", "/api/v2/filters", &fields).await;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let path = format!("/api/v2/filters/{}/statuses", text(&filter["id"]));
        let status = quentin.call(&world, "POST", &path, &[("status_id", &private)]).await;
        let filter = [&filter["id"], &filter["keywords"][0]["id"], &status["id"]].map(text);
        let polls = [
            asked(&world, &quentin, "private", "privatewords").await,
            asked(&world, &quentin, "public", "publicwords").await,
        ];
        let scheduled = scheduled(&world, &quentin).await;
        Self {
            world,
            quentin,
            fay,
            eve,
            bob,
            dan,
            own,
            open,
            private,
            conversation,
            deleted,
            notification,
            list,
            picture,
            filter,
            polls,
            scheduled,
        }
    }

    /// Everything the author sees of these items.
    async fn seen(&self) -> Vec<Value> {
        let mut seen = Vec::new();
        for path in [
            format!("/api/v1/accounts/{}/statuses", self.quentin.id),
            format!("/api/v1/accounts/{}/followers", self.quentin.id),
            "/api/v1/notifications".to_owned(),
            "/api/v1/accounts/verify_credentials".to_owned(),
            "/api/v1/conversations".to_owned(),
            "/api/v1/lists".to_owned(),
            format!("/api/v1/lists/{}/accounts", self.list),
            format!("/api/v1/media/{}", self.picture),
            "/api/v2/filters".to_owned(),
            format!("/api/v1/polls/{}", self.polls[0]),
            format!("/api/v1/polls/{}", self.polls[1]),
            "/api/v1/scheduled_statuses".to_owned(),
        ] {
            seen.push(self.quentin.get(&self.world, &path).await);
        }
        seen
    }
}

#[tokio::test]
async fn what_is_hidden_from_a_reader_is_as_if_it_did_not_exist_and_stays_as_it_is() {
    let it = Hidden::new().await;
    let before = it.seen().await;
    let cases = [
        ("private, no token", Kind::Status, &it.private, None),
        ("private, an app", Kind::Status, &it.private, Some(&it.own)),
        ("private, a stranger", Kind::Status, &it.private, Some(&it.eve.token)),
        ("blocked", Kind::Status, &it.open, Some(&it.bob.token)),
        ("who blocks", Kind::Status, &it.open, Some(&it.dan.token)),
        ("deleted", Kind::Status, &it.deleted, Some(&it.fay.token)),
        ("deleted, its author", Kind::Status, &it.deleted, Some(&it.quentin.token)),
        ("blocked", Kind::Account, &it.quentin.id, Some(&it.bob.token)),
        ("of another user", Kind::Notification, &it.notification, Some(&it.eve.token)),
        ("of others", Kind::Conversation, &it.conversation, Some(&it.eve.token)),
        ("of a status of no conversation", Kind::Conversation, &it.open, Some(&it.fay.token)),
        ("of another user", Kind::List, &it.list, Some(&it.fay.token)),
        ("of another user", Kind::Media, &it.picture, Some(&it.fay.token)),
        ("of another user", Kind::Filter, &it.filter[0], Some(&it.fay.token)),
        ("of another user", Kind::FilterKeyword, &it.filter[1], Some(&it.fay.token)),
        ("of another user", Kind::FilterStatus, &it.filter[2], Some(&it.fay.token)),
        ("private, no token", Kind::Poll, &it.polls[0], None),
        ("private, an app", Kind::Poll, &it.polls[0], Some(&it.own)),
        ("private, a stranger", Kind::Poll, &it.polls[0], Some(&it.eve.token)),
        ("blocked", Kind::Poll, &it.polls[1], Some(&it.bob.token)),
        ("who blocks", Kind::Poll, &it.polls[1], Some(&it.dan.token)),
        ("without a poll", Kind::Poll, &it.open, Some(&it.fay.token)),
        ("of another user", Kind::Scheduled, &it.scheduled, Some(&it.fay.token)),
        ("of whom it names", Kind::Notification, &it.notification, Some(&it.fay.token)),
    ];
    let mut checked = BTreeMap::new();
    for endpoint in endpoints() {
        let Some(kind) = kind(&endpoint) else { continue };
        let Endpoint { method, path, state, .. } = endpoint;
        for (what, _, id, token) in cases.iter().filter(|case| case.1 == kind) {
            // Number that is no id: users have ids from 0 on; statuses, notifications and lists have stamps, which are
            // greater than 2, except the list For You.
            let none = if kind == Kind::Account { "4000000000" } else { "2" };
            let token = token.map(String::as_str);
            let fields = [
                ("status", "changed"),
                ("description", "changed"),
                ("keyword", "changed"),
                ("status_id", it.open.as_str()),
                ("choices[]", "0"),
                ("scheduled_at", "2035-01-01T00:00:00Z"),
            ];
            let hidden = it.world.call(method, &with_id(path, id), token, &fields).await;
            let none = it.world.call(method, &with_id(path, none), token, &fields).await;
            let what = format!("{what}: {method} {path} {hidden:?}");
            assert_eq!((hidden.status, &hidden.text), (none.status, &none.text), "{what}");
            // As in Mastodon, dismissing an item succeeds even if it does not exist.
            let is_refused = !hidden.status.is_success() || path.ends_with("/dismiss");
            assert!(is_refused || state != EndpointState::Works, "{what}");
            *checked.entry(format!("{kind:?}")).or_insert(0) += 1;
        }
    }
    assert!(checked["Status"] > 100 && checked["Account"] > 15, "{checked:?}");
    assert_eq!(it.seen().await, before);
}

/// Endpoints that only the author of a status may use.
const OF_AUTHORS: [(&str, &str); 5] = [
    ("PUT", "/api/v1/statuses/{id}"),
    ("DELETE", "/api/v1/statuses/{id}"),
    ("POST", "/api/v1/statuses/{id}/pin"),
    ("PUT", "/api/v1/statuses/{id}/interaction_policy"),
    ("POST", "/api/v1/statuses/{id}/quotes/{quoting}/revoke"),
];

#[tokio::test]
async fn what_only_an_author_may_do_is_refused_to_all_other_readers() {
    let it = Hidden::new().await;
    let content = it.quentin.get(&it.world, &format!("/api/v1/statuses/{}/source", it.open)).await;
    let mut refused = Vec::new();
    for endpoint in endpoints() {
        if kind(&endpoint) != Some(Kind::Status) {
            continue;
        }
        let Endpoint { method, path, .. } = endpoint;
        for (who, token) in [("follower", &it.fay.token), ("stranger", &it.eve.token)] {
            let fields = [("status", "changed")];
            let got = it.world.call(method, &with_id(path, &it.open), Some(token), &fields).await;
            let is_missing = got.status.as_u16() == 422 && got.text.contains("This server has no");
            if !got.status.is_success() && !is_missing {
                assert!(OF_AUTHORS.contains(&(method, path)), "{who}: {method} {path} {got:?}");
                refused.push((method, path));
            }
        }
    }
    assert_eq!(refused.len(), OF_AUTHORS.len() * 2, "{refused:?}");
    let path = format!("/api/v1/statuses/{}", it.open);
    assert_eq!(it.quentin.get(&it.world, &format!("{path}/source")).await, content);
    assert_eq!(it.quentin.get(&it.world, &path).await["pinned"], false);
}

#[tokio::test]
async fn no_response_shows_what_is_hidden_from_its_reader() {
    let it = Hidden::new().await;
    let ids = [&it.open, &it.private];
    // Endpoints ignore parameters of other endpoints.
    let mut fields = vec![
        ("q", "quentin"),
        ("acct", "quentin"),
        ("account_id", &it.quentin.id),
        ("any[]", "hidden"),
        ("resource", "acct:quentin@social.example"),
    ];
    fields.extend(ids.into_iter().chain([&it.quentin.id]).map(|id| ("id[]", id.as_str())));
    let readers = [
        ("nobody", None, ["privatewords"].as_slice()),
        ("an app", Some(&it.own), &["privatewords"]),
        ("stranger", Some(&it.eve.token), &["privatewords"]),
        ("blocked", Some(&it.bob.token), &["privatewords", "publicwords", "quentin"]),
        ("follower", Some(&it.fay.token), &[]),
    ];
    let tag = "hidden".to_owned();
    // Number of responses in which a reader sees a word.
    let mut seen = BTreeMap::new();
    for endpoint in endpoints() {
        let Endpoint { method, path, .. } = endpoint;
        if method != "GET" || is_stream(path) {
            continue;
        }
        let ids = match kind(&endpoint) {
            Some(Kind::Account) => vec![&it.quentin.id],
            Some(Kind::Status) => vec![&it.open, &it.private],
            Some(Kind::Notification) => vec![&it.notification],
            Some(Kind::List) => vec![&it.list],
            Some(Kind::Conversation) => vec![&it.conversation],
            Some(Kind::Media) => vec![&it.picture],
            Some(Kind::Filter | Kind::FilterKeyword | Kind::FilterStatus) => {
                it.filter.iter().collect()
            }
            Some(Kind::Poll) => it.polls.iter().collect(),
            Some(Kind::Scheduled) => vec![&it.scheduled],
            None if is_of_tag(path) => vec![&tag],
            None => vec![&it.open],
        };
        for (reader, token, hidden) in readers {
            // This document shows a blocked user the same as everybody: other programs read it without a token, so it
            // contains only public facts.
            if path == "/.well-known/webfinger" && reader == "blocked" {
                continue;
            }
            let token = token.map(String::as_str);
            for id in &ids {
                let got = it.world.call(method, &with_id(path, id), token, &fields).await;
                for word in ["privatewords", "publicwords", "quentin", "deletedwords"] {
                    let shows = got.text.contains(word);
                    let may = !hidden.contains(&word) && word != "deletedwords";
                    assert!(may || !shows, "{reader} sees {word}: {path} {got:?}");
                    *seen.entry((reader, word)).or_insert(0) += usize::from(shows);
                }
            }
        }
    }
    assert!(seen[&("follower", "privatewords")] > 7, "{seen:?}");
    assert!(seen[&("nobody", "publicwords")] > 3 && seen[&("an app", "quentin")] > 10, "{seen:?}");
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
    // Endpoints without a token reveal nothing about users.
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
        ("GET", "/api/v3/unknown"),
    ] {
        let got = world.call(method, path, Some(&ada.token), &[("status", "x")]).await;
        assert_eq!(got.status.as_u16(), 404, "{method} {path}: {got:?}");
        assert_eq!(got.headers["access-control-allow-origin"], "*", "{path}");
    }
}

#[tokio::test]
async fn a_method_that_an_endpoint_lacks_is_refused_with_a_text() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    for Endpoint { path, .. } in endpoints() {
        let got = world.call("TRACE", &concrete(path), Some(&ada.token), &[]).await;
        assert_eq!(got.status.as_u16(), 405, "{path}: {got:?}");
        assert!(got.json()["error"].is_string() && got.headers.contains_key("allow"), "{got:?}");
        assert_eq!(got.headers["access-control-allow-origin"], "*", "{path}");
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

/// Endpoints for `docs/mastodon.md`: a table with a row per working path, and lists of the others.
fn documented() -> String {
    let mut paths: Vec<(&str, String)> = Vec::new();
    let [mut without_feature, mut missing] = [Vec::new(), Vec::new()];
    for Endpoint { method, path, token, state } in endpoints() {
        match state {
            EndpointState::Missing => missing.push(format!("`{method} {path}`")),
            EndpointState::WithoutFeature => without_feature.push(format!("`{method} {path}`")),
            EndpointState::Works => {
                let token = token
                    .replace("of a user, ", "")
                    .replace("app, ", "app ")
                    .replace("; or none", "?");
                match paths.last_mut().filter(|(last, _)| *last == path) {
                    Some((_, methods)) => write!(methods, ", {method} {token}").unwrap(),
                    None => paths.push((path, format!("{method} {token}"))),
                }
            }
        }
    }
    let mut text = String::from("| works | method and token |\n|---|---|\n");
    for (path, methods) in paths {
        writeln!(text, "| `{path}` | {methods} |").unwrap();
    }
    text + &paragraph("Without the feature", &without_feature) + &paragraph("Missing", &missing)
}

/// Formats a list as a paragraph with lines of at most 120 characters.
fn paragraph(title: &str, items: &[String]) -> String {
    let (mut text, mut used) = (String::new(), 0);
    for word in format!("{title}: {}.", items.join(", ")).split(' ') {
        let fits = used > 0 && used + 1 + word.len() <= 120;
        text.push(if fits { ' ' } else { '\n' });
        text.push_str(word);
        used = if fits { used + 1 } else { 0 } + word.len();
    }
    text + "\n"
}

/// Writes the table instead of comparing it if `ROOST_WRITE_DOCS=1` is set.
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
