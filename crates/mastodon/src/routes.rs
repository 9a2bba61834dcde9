//! Table of all routes, and the router made from it. Each module lists its own routes with the token that they need.

use std::collections::BTreeSet;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{any, get, options, post};

use crate::access::{Needs, bad_method, check, preflight};
use crate::api::absent::Absent;
use crate::api::{instance, links, pictures};
use crate::endpoints::{Endpoints, Route};
use crate::entities::instance::PICTURE;
use crate::state::Shared;
use crate::{accounts, api, oauth, pages, without};

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
    let guard = from_fn_with_state((state.clone(), Needs::Nothing), check);
    let unknown = any(|| async { Absent::Record.answer() }).layer(guard);
    router = router.route("/api/{*rest}", unknown.options(preflight));
    let router = router.method_not_allowed_fallback(bad_method);
    router.merge(pages()).with_state(state)
}

/// Routes outside of the API. Pages check the session of the browser and the token of their form themselves.
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

/// Table of all routes: those of each module, and those of missing features.
pub(crate) fn table() -> Endpoints {
    let mut table = Endpoints::default();
    for add in [
        oauth::apps::routes,
        oauth::token::routes,
        oauth::metadata::routes,
        accounts::routes,
        api::accounts::routes,
        api::profile::routes,
        api::search::routes,
        instance::routes,
        api::relations::routes,
        api::statuses::routes,
        api::timelines::routes,
        api::conversations::routes,
        api::markers::routes,
        api::polls::routes,
        api::scheduled::routes,
        api::reactions::routes,
        api::tags::routes,
        api::trends::routes,
        api::lists::routes,
        api::filters::routes,
        api::filters_v1::routes,
        api::media::routes,
        api::notifications::routes,
        api::streaming::routes,
        without::routes,
    ] {
        add(&mut table);
    }
    table
}
