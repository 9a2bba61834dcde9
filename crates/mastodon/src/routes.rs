//! Every route, with what it needs of its client.

use std::collections::BTreeSet;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{any, get, options, post};
use feed::accounts::AccessScope as S;

use crate::access::{Needs, bad_method, check, preflight};
use crate::api::absent::Absent;
use crate::api::{
    accounts as people, conversations, filters, filters_v1, instance, links, lists, markers, media,
    notifications, pictures, polls, profile, reactions, relations, scheduled, search, statuses,
};
use crate::api::{streaming, tags, timelines, trends};
use crate::endpoints::{Endpoints, Route};
use crate::entities::instance::PICTURE;
use crate::state::Shared;
use crate::{accounts, oauth, pages, without};

/// Routes that anybody may use, whatever token is sent.
const PUBLIC: Needs = Needs::Nothing;
const READ_ACCOUNTS: Needs = Needs::Anyone(&[S::ReadAccounts]);
const READ_STATUSES: Needs = Needs::Anyone(&[S::ReadStatuses]);
const MY_STATUSES: Needs = Needs::User(&[S::ReadStatuses]);
const WRITE_STATUSES: Needs = Needs::User(&[S::WriteStatuses]);
const WRITE_ACCOUNTS: Needs = Needs::User(&[S::WriteAccounts]);
const WRITE_NOTIFICATIONS: Needs = Needs::User(&[S::WriteNotifications]);
const MY_NOTIFICATIONS: Needs = Needs::User(&[S::ReadNotifications]);

pub(crate) fn routes(state: Shared) -> Router {
    let (mut router, mut paths) = (Router::new(), BTreeSet::new());
    for Route { endpoint, needs, handler } in table().0 {
        let guard = from_fn_with_state((state.clone(), needs), check);
        let handler = handler.layer(guard);
        // Some clients end paths with a slash, which Mastodon ignores.
        let slash = format!("{}/", endpoint.path);
        let slash = Some(slash).filter(|path| path.starts_with("/api/") && !path.contains('*'));
        for path in [Some(endpoint.path.to_owned()), slash].into_iter().flatten() {
            router = router.route(&path, handler.clone());
            if paths.insert(path.clone()) {
                router = router.route(&path, options(preflight));
            }
        }
    }
    router = router.route(pictures::PATH, get(pictures::show).options(preflight));
    let guard = from_fn_with_state((state.clone(), PUBLIC), check);
    let unknown = any(|| async { Absent::Record.answer() }).layer(guard);
    router = router.route("/api/{*rest}", unknown.options(preflight));
    let router = router.method_not_allowed_fallback(bad_method);
    router.merge(pages()).with_state(state)
}

/// What is not of the API. Pages check the session of the browser, and the token of their form, themselves.
fn pages() -> Router<Shared> {
    Router::new()
        .route(PICTURE, get(instance::picture))
        .route(pictures::NO_AVATAR, get(pictures::no_avatar).options(preflight))
        .route(pictures::NO_HEADER, get(pictures::no_header).options(preflight))
        .route("/oauth/authorize", get(pages::consent::ask).post(pages::consent::decide))
        .route(pages::log_in::PATH, get(pages::log_in::show).post(pages::log_in::log_in))
        .route("/auth/session", get(pages::own::session))
        .route("/auth/log-out", post(pages::log_in::log_out))
        .route(pages::sign_up::PATH, get(pages::sign_up::show).post(pages::sign_up::sign_up))
        .route("/settings", get(pages::settings::show))
        .route("/settings/revoke", post(pages::settings::revoke))
        .route("/settings/password", post(pages::settings::change_password))
        .route("/@{handle}", get(links::profile))
        .route("/@{handle}/{id}", get(links::status))
        .route("/users/{handle}", get(links::profile))
        .route("/users/{handle}/statuses/{id}", get(links::status))
        .route("/@{handle}/tagged/{tag}", get(links::tagged))
        .route("/tags/{tag}", get(links::tag))
}

pub(crate) fn table() -> Endpoints {
    let mut table = Endpoints::default();
    oauth_and_accounts(&mut table);
    relations_of_accounts(&mut table);
    statuses_and_timelines(&mut table);
    polls_and_schedules(&mut table);
    reactions_to_statuses(&mut table);
    notifications_of_user(&mut table);
    hashtags(&mut table);
    lists_of_user(&mut table);
    filters_of_user(&mut table);
    media_of_user(&mut table);
    about_the_server(&mut table);
    streams(&mut table);
    without::add(&mut table);
    table
}

fn oauth_and_accounts(table: &mut Endpoints) {
    table.post("/api/v1/apps", PUBLIC, oauth::apps::register);
    table.get("/api/v1/apps/verify_credentials", Needs::Token, oauth::apps::verify);
    // The handler checks the client by its secret.
    table.post("/oauth/token", PUBLIC, oauth::token::token);
    table.post("/oauth/revoke", PUBLIC, oauth::token::revoke);
    let metadata = oauth::metadata::metadata;
    table.get("/.well-known/oauth-authorization-server", PUBLIC, metadata);
    table.post("/api/v1/accounts", Needs::App(S::WriteAccounts), accounts::sign_up);
    table.get("/api/v1/accounts", READ_ACCOUNTS, people::many);
    let me = Needs::User(&[S::ReadAccounts, S::Profile]);
    table.get("/api/v1/accounts/verify_credentials", me, accounts::verify);
    table.patch("/api/v1/accounts/update_credentials", WRITE_ACCOUNTS, profile::update);
    table.get("/api/v1/accounts/lookup", READ_ACCOUNTS, people::lookup);
    table.get("/api/v1/accounts/search", READ_ACCOUNTS, search::accounts);
    table.get("/api/v1/accounts/{id}", READ_ACCOUNTS, people::show);
    table.get("/api/v1/accounts/{id}/statuses", READ_STATUSES, people::statuses);
    table.get("/api/v1/accounts/{id}/followers", READ_ACCOUNTS, people::followers);
    table.get("/api/v1/accounts/{id}/following", READ_ACCOUNTS, people::following);
    table.get("/api/v1/directory", READ_ACCOUNTS, instance::directory);
    for path in ["/api/v1/search", "/api/v2/search"] {
        table.get(path, Needs::Anyone(&[S::ReadSearch]), search::all);
    }
}

fn relations_of_accounts(table: &mut Endpoints) {
    let follows = Needs::User(&[S::WriteFollows]);
    let blocks = Needs::User(&[S::WriteBlocks]);
    let mutes = Needs::User(&[S::WriteMutes]);
    table.post("/api/v1/accounts/{id}/follow", follows, relations::follow);
    table.post("/api/v1/accounts/{id}/unfollow", follows, relations::unfollow);
    let remove = relations::remove_from_followers;
    table.post("/api/v1/accounts/{id}/remove_from_followers", follows, remove);
    table.post("/api/v1/accounts/{id}/block", blocks, relations::block);
    table.post("/api/v1/accounts/{id}/unblock", blocks, relations::unblock);
    table.post("/api/v1/accounts/{id}/mute", mutes, relations::mute);
    table.post("/api/v1/accounts/{id}/unmute", mutes, relations::unmute);
    table.post("/api/v1/accounts/{id}/note", WRITE_ACCOUNTS, relations::note);
    table.post("/api/v1/follow_requests/{account_id}/authorize", follows, relations::authorize);
    table.post("/api/v1/follow_requests/{account_id}/reject", follows, relations::reject);
    let read = Needs::User(&[S::ReadFollows]);
    table.get("/api/v1/follow_requests", read, relations::requests);
    table.get("/api/v1/accounts/relationships", read, relations::relationships);
    table.get("/api/v1/accounts/familiar_followers", read, people::familiar);
    table.get("/api/v1/blocks", Needs::User(&[S::ReadBlocks]), relations::blocks);
    table.get("/api/v1/mutes", Needs::User(&[S::ReadMutes]), relations::mutes);
}

fn statuses_and_timelines(table: &mut Endpoints) {
    table.post("/api/v1/statuses", WRITE_STATUSES, statuses::create);
    table.get("/api/v1/statuses", READ_STATUSES, statuses::many);
    table.get("/api/v1/statuses/{id}", READ_STATUSES, statuses::show);
    table.put("/api/v1/statuses/{id}", WRITE_STATUSES, statuses::edit);
    table.delete("/api/v1/statuses/{id}", WRITE_STATUSES, statuses::delete);
    table.get("/api/v1/statuses/{id}/context", READ_STATUSES, statuses::context);
    table.get("/api/v1/statuses/{id}/source", MY_STATUSES, statuses::source);
    table.get("/api/v1/statuses/{id}/history", READ_STATUSES, statuses::history);
    table.get("/api/v1/timelines/home", MY_STATUSES, timelines::home);
    table.get("/api/v1/timelines/public", READ_STATUSES, timelines::public);
    table.get("/api/v1/timelines/direct", MY_STATUSES, conversations::direct);
    table.get("/api/v1/conversations", MY_STATUSES, conversations::list);
    let change = Needs::User(&[S::WriteConversations]);
    table.delete("/api/v1/conversations/{id}", change, conversations::remove);
    table.post("/api/v1/conversations/{id}/read", change, conversations::read);
    table.post("/api/v1/conversations/{id}/unread", change, conversations::unread);
    table.get("/api/v1/markers", MY_STATUSES, markers::show);
    table.post("/api/v1/markers", WRITE_STATUSES, markers::set);
}

fn polls_and_schedules(table: &mut Endpoints) {
    table.get("/api/v1/polls/{id}", READ_STATUSES, polls::show);
    table.post("/api/v1/polls/{id}/votes", WRITE_STATUSES, polls::vote);
    table.get("/api/v1/scheduled_statuses", MY_STATUSES, scheduled::list);
    table.get("/api/v1/scheduled_statuses/{id}", MY_STATUSES, scheduled::show);
    table.put("/api/v1/scheduled_statuses/{id}", WRITE_STATUSES, scheduled::change);
    table.delete("/api/v1/scheduled_statuses/{id}", WRITE_STATUSES, scheduled::cancel);
}

fn reactions_to_statuses(table: &mut Endpoints) {
    let favourites = Needs::User(&[S::WriteFavourites]);
    let bookmarks = Needs::User(&[S::WriteBookmarks]);
    table.post("/api/v1/statuses/{id}/favourite", favourites, reactions::favourite);
    table.post("/api/v1/statuses/{id}/unfavourite", favourites, reactions::unfavourite);
    table.post("/api/v1/statuses/{id}/bookmark", bookmarks, reactions::bookmark);
    table.post("/api/v1/statuses/{id}/unbookmark", bookmarks, reactions::unbookmark);
    table.post("/api/v1/statuses/{id}/pin", WRITE_ACCOUNTS, reactions::pin);
    table.post("/api/v1/statuses/{id}/unpin", WRITE_ACCOUNTS, reactions::unpin);
    let mutes = Needs::User(&[S::WriteMutes]);
    table.post("/api/v1/statuses/{id}/mute", mutes, reactions::mute_thread);
    table.post("/api/v1/statuses/{id}/unmute", mutes, reactions::unmute_thread);
    table.get("/api/v1/statuses/{id}/favourited_by", READ_STATUSES, reactions::favourited_by);
    table.post("/api/v1/statuses/{id}/reblog", WRITE_STATUSES, reactions::boost);
    table.post("/api/v1/statuses/{id}/unreblog", WRITE_STATUSES, reactions::unboost);
    table.get("/api/v1/statuses/{id}/reblogged_by", READ_STATUSES, reactions::boosted_by);
    let favourites = Needs::User(&[S::ReadFavourites]);
    table.get("/api/v1/favourites", favourites, reactions::favourites);
    let bookmarks = Needs::User(&[S::ReadBookmarks]);
    table.get("/api/v1/bookmarks", bookmarks, reactions::bookmarks);
}

fn hashtags(table: &mut Endpoints) {
    table.get("/api/v1/timelines/tag/{hashtag}", READ_STATUSES, tags::timeline);
    table.get("/api/v1/tags/{name}", READ_STATUSES, tags::show);
    table.post("/api/v1/tags/{name}/feature", WRITE_ACCOUNTS, tags::feature);
    table.post("/api/v1/tags/{name}/unfeature", WRITE_ACCOUNTS, tags::unfeature);
    let follow = Needs::User(&[S::WriteFollows]);
    table.post("/api/v1/tags/{name}/follow", follow, tags::follow);
    table.post("/api/v1/tags/{name}/unfollow", follow, tags::unfollow);
    table.get("/api/v1/followed_tags", Needs::User(&[S::ReadFollows]), tags::followed);
    for path in ["/api/v1/trends", "/api/v1/trends/tags"] {
        table.get(path, READ_STATUSES, trends::tags);
    }
    let mine = Needs::User(&[S::ReadAccounts]);
    table.get("/api/v1/featured_tags", mine, tags::featured);
    table.get("/api/v1/featured_tags/suggestions", mine, tags::suggestions);
    table.post("/api/v1/featured_tags", WRITE_ACCOUNTS, tags::add_featured);
    table.delete("/api/v1/featured_tags/{id}", WRITE_ACCOUNTS, tags::remove_featured);
    table.get("/api/v1/accounts/{id}/featured_tags", READ_ACCOUNTS, tags::featured_by);
}

fn lists_of_user(table: &mut Endpoints) {
    let (read, write) = (Needs::User(&[S::ReadLists]), Needs::User(&[S::WriteLists]));
    table.get("/api/v1/lists", read, lists::all);
    table.post("/api/v1/lists", write, lists::create);
    table.get("/api/v1/lists/{id}", read, lists::show);
    table.put("/api/v1/lists/{id}", write, lists::edit);
    table.delete("/api/v1/lists/{id}", write, lists::delete);
    table.get("/api/v1/lists/{id}/accounts", read, lists::accounts);
    table.post("/api/v1/lists/{id}/accounts", write, lists::add);
    table.delete("/api/v1/lists/{id}/accounts", write, lists::remove);
    table.get("/api/v1/accounts/{id}/lists", read, lists::with_account);
    table.get("/api/v1/timelines/list/{list_id}", read, lists::timeline);
}

fn filters_of_user(table: &mut Endpoints) {
    let (read, write) = (Needs::User(&[S::ReadFilters]), Needs::User(&[S::WriteFilters]));
    table.get("/api/v2/filters", read, filters::all);
    table.post("/api/v2/filters", write, filters::create);
    table.get("/api/v2/filters/{id}", read, filters::show);
    table.put("/api/v2/filters/{id}", write, filters::edit);
    table.delete("/api/v2/filters/{id}", write, filters::delete);
    table.get("/api/v2/filters/{id}/keywords", read, filters::keywords);
    table.post("/api/v2/filters/{id}/keywords", write, filters::add_keyword);
    table.get("/api/v2/filters/keywords/{id}", read, filters::keyword);
    table.put("/api/v2/filters/keywords/{id}", write, filters::edit_keyword);
    table.delete("/api/v2/filters/keywords/{id}", write, filters::delete_keyword);
    table.get("/api/v2/filters/{id}/statuses", read, filters::statuses);
    table.post("/api/v2/filters/{id}/statuses", write, filters::add_status);
    table.get("/api/v2/filters/statuses/{id}", read, filters::status);
    table.delete("/api/v2/filters/statuses/{id}", write, filters::delete_status);
    table.get("/api/v1/filters", read, filters_v1::all);
    table.post("/api/v1/filters", write, filters_v1::create);
    table.get("/api/v1/filters/{id}", read, filters_v1::show);
    table.put("/api/v1/filters/{id}", write, filters_v1::edit);
    table.delete("/api/v1/filters/{id}", write, filters_v1::delete);
}

fn media_of_user(table: &mut Endpoints) {
    let write = Needs::User(&[S::WriteMedia]);
    for path in ["/api/v1/media", "/api/v2/media"] {
        table.post(path, write, media::add);
    }
    table.get("/api/v1/media/{id}", write, media::show);
    table.put("/api/v1/media/{id}", write, media::change);
    table.delete("/api/v1/media/{id}", write, media::delete);
    table.delete("/api/v1/profile/avatar", WRITE_ACCOUNTS, profile::delete_avatar);
    table.delete("/api/v1/profile/header", WRITE_ACCOUNTS, profile::delete_header);
}

fn notifications_of_user(table: &mut Endpoints) {
    table.get("/api/v1/notifications", MY_NOTIFICATIONS, notifications::list);
    table.get("/api/v1/notifications/{id}", MY_NOTIFICATIONS, notifications::show);
    table.post("/api/v1/notifications/clear", WRITE_NOTIFICATIONS, notifications::clear);
    let dismiss = "/api/v1/notifications/{id}/dismiss";
    table.post(dismiss, WRITE_NOTIFICATIONS, notifications::dismiss);
    let count = notifications::unread_count;
    table.get("/api/v1/notifications/unread_count", MY_NOTIFICATIONS, count);
}

fn streams(table: &mut Endpoints) {
    // The scope that a channel needs is checked when it is known.
    let either = Needs::Stream(&[S::ReadStatuses, S::ReadNotifications]);
    table.get("/api/v1/streaming", either, streaming::connect);
    table.get("/api/v1/streaming/health", PUBLIC, streaming::health);
    table.get("/api/v1/streaming/{*channel}", either, streaming::listen);
}

fn about_the_server(table: &mut Endpoints) {
    table.get("/api/v1/instance", PUBLIC, instance::version_1);
    table.get("/api/v2/instance", PUBLIC, instance::version_2);
    table.get("/api/v1/instance/extended_description", PUBLIC, instance::extended_description);
    table.get("/api/v1/instance/rules", PUBLIC, instance::rules);
    table.get("/api/v1/instance/languages", PUBLIC, instance::all_languages);
    let preferences = Needs::User(&[S::ReadAccounts]);
    table.get("/api/v1/preferences", preferences, profile::preferences);
    table.get("/.well-known/nodeinfo", PUBLIC, instance::nodeinfo_links);
    table.get("/.well-known/host-meta", PUBLIC, instance::host_meta);
    table.get("/nodeinfo/2.0", PUBLIC, instance::nodeinfo);
    // As other reads, it needs no token if the operator allows that.
    table.get("/.well-known/webfinger", READ_ACCOUNTS, instance::webfinger);
    table.get("/health", PUBLIC, instance::health);
}
