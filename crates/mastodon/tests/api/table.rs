//! Table of endpoints compared with their behavior, row by row: working endpoints show and change items, and responses
//! of missing features are always the same.

use std::collections::BTreeSet;
use std::sync::Arc;

use mastodon::{About, Endpoint, EndpointState, endpoints};
use serde_json::Value;

use crate::client::{ALL_SCOPES, Got, PASSWORD, Person, World};
use crate::endpoints::{Kind, is_of_tag, is_stream, kind, with_id};

/// Working endpoints with the same response on every server at this address.
const FIXED: [&str; 5] = [
    "/.well-known/host-meta",
    "/.well-known/nodeinfo",
    "/api/v1/instance/languages",
    "/api/v1/streaming/health",
    "/health",
];
/// Endpoints that take a file; `media.rs` tests them.
const UPLOADS: [&str; 2] = ["/api/v1/media", "/api/v2/media"];

/// Server on which one user has an item of every kind.
struct Full {
    world: World,
    ada: Person,
    bob: Person,
    /// Follower of the user.
    fay: Person,
    gil: Person,
    /// Users who request to follow the user.
    hal: Person,
    ivy: Person,
    own: String,
    others: String,
    conversation: String,
    notification: String,
    list: String,
    filter: [String; 3],
    poll: String,
    scheduled: String,
    picture: String,
    featured: String,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

async fn created(world: &World, who: &Person, path: &str, fields: &[(&str, &str)]) -> String {
    text(&who.call(world, "POST", path, fields).await["id"])
}

/// Creates a filter; returns its id, that of a keyword and that of a status in it.
async fn filter(world: &World, owner: &Person, post: &str) -> [String; 3] {
    let fields =
        [("title", "x"), ("context[]", "home"), ("keywords_attributes[][keyword]", "word")];
    let filter = owner.call(world, "POST", "/api/v2/filters", &fields).await;
    let path = format!("/api/v2/filters/{}/statuses", text(&filter["id"]));
    let part = created(world, owner, &path, &[("status_id", post)]).await;
    [text(&filter["id"]), text(&filter["keywords"][0]["id"]), part]
}

/// Publishes a poll; returns its id.
async fn poll(world: &World, author: &Person) -> String {
    let poll = [
        ("status", "?"),
        ("visibility", "public"),
        ("poll[options][]", "a"),
        ("poll[options][]", "b"),
        ("poll[expires_in]", "300"),
    ];
    let poll = author.call(world, "POST", "/api/v1/statuses", &poll).await;
    text(&poll["poll"]["id"])
}

impl Full {
    async fn new() -> Self {
        let world = World::with(|options| {
            let rules = vec!["Be kind".to_owned()];
            options.about = Arc::new(About { text: "Cats".to_owned(), rules, ..About::default() });
            options.password_grant = true;
        });
        world.app().await;
        let names = ["ada", "bob", "cyd", "eve", "fay", "gil", "hal", "ivy"];
        let [ada, bob, cyd, eve, fay, gil, hal, ivy] = world.people(names).await;
        for (who, whom) in [(&ada, &bob), (&bob, &cyd), (&ada, &cyd), (&fay, &ada)] {
            who.does(&world, "follow", whom).await;
        }
        let settings = [("locked", "true"), ("source[privacy]", "unlisted")];
        ada.call(&world, "PATCH", "/api/v1/accounts/update_credentials", &settings).await;
        for who in [&hal, &ivy] {
            who.does(&world, "follow", &ada).await;
        }
        ada.does(&world, "block", &eve).await;
        ada.does(&world, "mute", &gil).await;
        let public = |text| [("status", text), ("visibility", "public")];
        let own = created(&world, &ada, "/api/v1/statuses", &public("#trend #mine")).await;
        let others = created(&world, &bob, "/api/v1/statuses", &public("@ada #trend")).await;
        let edited = format!("/api/v1/statuses/{others}");
        bob.call(&world, "PUT", &edited, &[("status", "@ada #trend!")]).await;
        bob.reply(&world, &others, "more").await;
        created(&world, &fay, "/api/v1/statuses", &public("by a suggested user")).await;
        let direct = [("status", "@ada psst"), ("visibility", "direct")];
        let conversation = created(&world, &bob, "/api/v1/statuses", &direct).await;
        for what in ["favourite", "reblog"] {
            ada.call(&world, "POST", &format!("{edited}/{what}"), &[]).await;
        }
        ada.call(&world, "POST", &format!("{edited}/bookmark"), &[]).await;
        let notification = ada.ids(&world, "/api/v1/notifications").await.swap_remove(0);
        let list = created(&world, &ada, "/api/v1/lists", &[("title", "x")]).await;
        let members = [("account_ids[]", bob.id.as_str())];
        ada.call(&world, "POST", &format!("/api/v1/lists/{list}/accounts"), &members).await;
        let filter = filter(&world, &ada, &others).await;
        let poll = poll(&world, &bob).await;
        let fields = [("status", "later"), ("scheduled_at", "2034-01-01T00:00:00Z")];
        let scheduled = created(&world, &ada, "/api/v1/statuses", &fields).await;
        let picture = ada.picture(&world, 1).await;
        let path = "/api/v1/featured_tags";
        let featured = created(&world, &ada, path, &[("name", "trend")]).await;
        bob.call(&world, "POST", path, &[("name", "trend")]).await;
        ada.call(&world, "POST", "/api/v1/tags/trend/follow", &[]).await;
        ada.call(&world, "POST", "/api/v1/markers", &[("home[last_read_id]", &own)]).await;
        Self {
            world,
            ada,
            bob,
            fay,
            gil,
            hal,
            ivy,
            own,
            others,
            conversation,
            notification,
            list,
            filter,
            poll,
            scheduled,
            picture,
            featured,
        }
    }

    /// Path of an endpoint with the id of an existing item.
    fn path(&self, endpoint: &Endpoint) -> String {
        let id = match kind(endpoint) {
            Some(Kind::Account) => &self.bob.id,
            Some(Kind::Status) => &self.others,
            Some(Kind::Conversation) => &self.conversation,
            Some(Kind::Notification) => &self.notification,
            Some(Kind::List) => &self.list,
            Some(Kind::Media) => &self.picture,
            Some(Kind::Filter) => &self.filter[0],
            Some(Kind::FilterKeyword) => &self.filter[1],
            Some(Kind::FilterStatus) => &self.filter[2],
            Some(Kind::Poll) => &self.poll,
            Some(Kind::Scheduled) => &self.scheduled,
            None if is_of_tag(endpoint.path) => "trend",
            None => "0",
        };
        with_id(endpoint.path, id)
    }

    /// Parameters of all reads. Endpoints ignore the parameters of other endpoints.
    fn parameters(&self) -> Vec<(&str, &str)> {
        vec![
            ("q", "bob"),
            ("acct", "bob"),
            ("id[]", &self.bob.id),
            ("id[]", &self.others),
            ("id[]", "2"),
            ("timeline[]", "home"),
            ("resource", "acct:bob@social.example"),
        ]
    }
}

#[tokio::test]
async fn what_works_shows_what_there_is_and_what_does_not_is_always_the_same() {
    let full = Full::new().await;
    let empty = World::new();
    let [alone] = empty.people(["ada"]).await;
    let mut seen = [0; 3];
    for endpoint in endpoints() {
        let Endpoint { method, path, state, .. } = endpoint;
        if method != "GET" && state == EndpointState::Works || is_stream(path) {
            continue;
        }
        let (at, fields) = (full.path(&endpoint), full.parameters());
        let before = (full.world.node.visible_up_to(), empty.node.visible_up_to());
        let shown = full.world.call(method, &at, Some(&full.ada.token), &fields).await;
        let none = empty.call(method, &at, Some(&alone.token), &fields).await;
        let what = format!("{method} {path}: {shown:?}, and without anything {none:?}");
        let is_same = (shown.status, &shown.text) == (none.status, &none.text);
        match state {
            EndpointState::Works => {
                assert_eq!(shown.status.as_u16(), 200, "{what}");
                assert_eq!(is_same, FIXED.contains(&path), "{what}");
            }
            EndpointState::WithoutFeature => {
                assert!(is_same, "{what}");
                let says = shown.text.contains("This server has no");
                let status = shown.status.as_u16();
                assert!(status == 200 || status == 404 || status == 422 && says, "{what}");
            }
            EndpointState::Missing => assert_eq!(shown.status.as_u16(), 404, "{what}"),
        }
        let after = (full.world.node.visible_up_to(), empty.node.visible_up_to());
        assert_eq!(before, after, "the read changes data: {what}");
        seen[state as usize] += 1;
    }
    assert!(seen[0] > 60 && seen[1] > 40 && seen[2] > 5, "{seen:?}");
}

/// Endpoint, id in its path, and parameters.
type Change<'a> = (&'static str, &'static str, &'a str, &'a [(&'a str, &'a str)]);

impl Full {
    async fn change(&self, (method, path, id, fields): Change<'_>, token: Option<&str>) -> Got {
        let before = self.world.node.visible_up_to();
        let got = self.world.call(method, &with_id(path, id), token, fields).await;
        let what = format!("{method} {path}: {got:?}");
        assert_eq!(got.status.as_u16(), 200, "{what}");
        assert!(self.world.node.visible_up_to() > before, "no change reached the log: {what}");
        got
    }

    /// Changes by the user, each of an existing item, in an order in which it exists.
    fn changes<'a>(&'a self, fields: &'a [Vec<(&'a str, &'a str)>; 3]) -> Vec<Change<'a>> {
        let [home, members, status] = fields;
        let [filter, keyword, part] = self.filter.each_ref().map(String::as_str);
        let (bob, gil) = (self.bob.id.as_str(), self.gil.id.as_str());
        let (own, others) = (self.own.as_str(), self.others.as_str());
        let list = self.list.as_str();
        vec![
            ("PATCH", "/api/v1/accounts/update_credentials", "", &[("note", "x")]),
            ("POST", "/api/v1/accounts/{id}/unmute", gil, &[]),
            ("POST", "/api/v1/accounts/{id}/follow", gil, &[("reblogs", "false")]),
            ("POST", "/api/v1/accounts/{id}/unfollow", gil, &[]),
            ("POST", "/api/v1/accounts/{id}/remove_from_followers", &self.fay.id, &[]),
            ("POST", "/api/v1/accounts/{id}/mute", gil, &[]),
            ("POST", "/api/v1/accounts/{id}/block", gil, &[]),
            ("POST", "/api/v1/accounts/{id}/unblock", gil, &[]),
            ("POST", "/api/v1/accounts/{id}/note", bob, &[("comment", "x")]),
            ("POST", "/api/v1/follow_requests/{account_id}/authorize", &self.hal.id, &[]),
            ("POST", "/api/v1/follow_requests/{account_id}/reject", &self.ivy.id, &[]),
            ("POST", "/api/v1/statuses", "", &[("status", "x")]),
            ("PUT", "/api/v1/statuses/{id}", own, &[("status", "y")]),
            ("POST", "/api/v1/statuses/{id}/favourite", others, &[]),
            ("POST", "/api/v1/statuses/{id}/unfavourite", others, &[]),
            ("POST", "/api/v1/statuses/{id}/bookmark", others, &[]),
            ("POST", "/api/v1/statuses/{id}/unbookmark", others, &[]),
            ("POST", "/api/v1/statuses/{id}/reblog", others, &[]),
            ("POST", "/api/v1/statuses/{id}/unreblog", others, &[]),
            ("POST", "/api/v1/statuses/{id}/mute", others, &[]),
            ("POST", "/api/v1/statuses/{id}/unmute", others, &[]),
            ("POST", "/api/v1/statuses/{id}/pin", own, &[]),
            ("POST", "/api/v1/statuses/{id}/unpin", own, &[]),
            ("POST", "/api/v1/polls/{id}/votes", &self.poll, &[("choices[]", "0")]),
            (
                "PUT",
                "/api/v1/scheduled_statuses/{id}",
                &self.scheduled,
                &[("scheduled_at", "2035-01-01T00:00:00Z")],
            ),
            ("DELETE", "/api/v1/scheduled_statuses/{id}", &self.scheduled, &[]),
            ("POST", "/api/v1/conversations/{id}/read", &self.conversation, &[]),
            ("POST", "/api/v1/conversations/{id}/unread", &self.conversation, &[]),
            ("DELETE", "/api/v1/conversations/{id}", &self.conversation, &[]),
            ("POST", "/api/v1/markers", "", home),
            ("POST", "/api/v1/tags/{name}/feature", "zebra", &[]),
            ("POST", "/api/v1/tags/{name}/unfeature", "zebra", &[]),
            ("POST", "/api/v1/tags/{name}/follow", "zebra", &[]),
            ("POST", "/api/v1/tags/{name}/unfollow", "zebra", &[]),
            ("POST", "/api/v1/featured_tags", "", &[("name", "lion")]),
            ("DELETE", "/api/v1/featured_tags/{id}", &self.featured, &[]),
            ("POST", "/api/v1/lists", "", &[("title", "y")]),
            ("PUT", "/api/v1/lists/{id}", list, &[("title", "z")]),
            ("DELETE", "/api/v1/lists/{id}/accounts", list, members),
            ("POST", "/api/v1/lists/{id}/accounts", list, members),
            ("DELETE", "/api/v1/lists/{id}", list, &[]),
            ("PUT", "/api/v1/filters/{id}", keyword, &[("phrase", "q"), ("context[]", "home")]),
            ("POST", "/api/v2/filters", "", &[("title", "y"), ("context[]", "home")]),
            ("PUT", "/api/v2/filters/{id}", filter, &[("title", "z")]),
            ("POST", "/api/v2/filters/{id}/keywords", filter, &[("keyword", "y")]),
            ("PUT", "/api/v2/filters/keywords/{id}", keyword, &[("keyword", "z")]),
            ("DELETE", "/api/v2/filters/statuses/{id}", part, &[]),
            ("POST", "/api/v2/filters/{id}/statuses", filter, status),
            ("POST", "/api/v1/filters", "", &[("phrase", "p"), ("context[]", "home")]),
            ("DELETE", "/api/v1/filters/{id}", keyword, &[]),
            ("PUT", "/api/v1/media/{id}", &self.picture, &[("description", "x")]),
            ("DELETE", "/api/v1/media/{id}", &self.picture, &[]),
            ("DELETE", "/api/v1/profile/avatar", "", &[]),
            ("DELETE", "/api/v1/profile/header", "", &[]),
            ("POST", "/api/v1/notifications/{id}/dismiss", &self.notification, &[]),
            ("POST", "/api/v1/notifications/clear", "", &[]),
            ("DELETE", "/api/v1/statuses/{id}", own, &[]),
        ]
    }
}

#[tokio::test]
async fn every_change_that_works_reaches_the_log() {
    let full = Full::new().await;
    let fields = [
        vec![("home[last_read_id]", full.others.as_str())],
        vec![("account_ids[]", full.bob.id.as_str())],
        vec![("status_id", full.own.as_str())],
    ];
    let mut done = BTreeSet::new();
    for change in full.changes(&fields) {
        full.change(change, Some(&full.ada.token)).await;
        done.insert((change.0, change.1));
    }
    // These requests come from an app without a user.
    let app = [("client_name", "x"), ("redirect_uris", "https://app.example/")];
    full.change(("POST", "/api/v1/apps", "", &app), None).await;
    let app = full.world.app_with(ALL_SCOPES).await;
    let client = [("client_id", app.id.as_str()), ("client_secret", app.secret.as_str())];
    let grant = [("grant_type", "client_credentials"), ("scope", "write:accounts")];
    let granted = full.change(("POST", "/oauth/token", "", &[client, grant].concat()), None).await;
    let token = text(&granted.json()["access_token"]);
    let account = [
        ("username", "new"),
        ("email", "new@example.org"),
        ("password", PASSWORD),
        ("agreement", "true"),
    ];
    full.change(("POST", "/api/v1/accounts", "", &account), Some(&token)).await;
    let ended = [client.as_slice(), &[("token", token.as_str())]].concat();
    full.change(("POST", "/oauth/revoke", "", &ended), None).await;
    done.extend(
        ["/api/v1/apps", "/oauth/token", "/api/v1/accounts", "/oauth/revoke"]
            .map(|at| ("POST", at)),
    );
    // The last keyword was deleted before, so these endpoints of filters come last.
    let filter = ["/api/v2/filters/keywords/{id}", "/api/v2/filters/{id}"];
    let path = format!("/api/v2/filters/{}/keywords", full.filter[0]);
    let keyword = created(&full.world, &full.ada, &path, &[("keyword", "last")]).await;
    for (path, id) in filter.into_iter().zip([&keyword, &full.filter[0]]) {
        full.change(("DELETE", path, id, &[]), Some(&full.ada.token)).await;
        done.insert(("DELETE", path));
    }
    let quoted = full.ada.post(&full.world, "mine").await;
    let quote = [("status", "look"), ("quoted_status_id", quoted.as_str())];
    let quote = created(&full.world, &full.fay, "/api/v1/statuses", &quote).await;
    let path = format!("/api/v1/statuses/{quoted}/quotes/{quote}/revoke");
    let revoked = full.ada.call(&full.world, "POST", &path, &[]).await;
    assert_eq!(revoked["quote"]["state"], "revoked");
    done.insert(("POST", "/api/v1/statuses/{id}/quotes/{quoting}/revoke"));
    let (policy, nobody) =
        ("/api/v1/statuses/{id}/interaction_policy", [("quote_approval_policy", "nobody")]);
    full.change(("PUT", policy, &quoted, &nobody), Some(&full.ada.token)).await;
    done.insert(("PUT", policy));
    let works = endpoints().into_iter().filter(|endpoint| {
        let Endpoint { method, path, state, .. } = endpoint;
        *state == EndpointState::Works && *method != "GET" && !UPLOADS.contains(path)
    });
    let works: BTreeSet<_> = works.map(|endpoint| (endpoint.method, endpoint.path)).collect();
    assert_eq!(done, works, "specify the request for a new endpoint here");
}
