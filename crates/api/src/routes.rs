//! Table of all routes, and the router made from it.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::http::{HeaderMap, Method};
use axum::routing::{MethodFilter, on};
use edge::{ErasedHandler, FileSource, RequestMemory};
use node::Node;
use tokio::sync::watch;
use utoipa::openapi::OpenApi;

use crate::after::After;
use crate::auth::Needs;
use crate::cors::{self, Origins};
use crate::docs::openapi;
use crate::error::ApiError;
use crate::guard::Guarded;
use crate::metrics::HttpMetrics;
use crate::positions::Positions;
use crate::route::{Group, Route};
use crate::rule::Rule;
use crate::state::AppState;
use crate::v1::{
    batch, blocks, buckets, change_feed, context, events, feed_definitions, feeds, follows,
    friends, history, keys, notifications, posts, reactions, recognitions, relations, samples,
    stories, tags, timelines, tokens, users,
};
use crate::{ApiOptions, backup, cluster, docs, files, legacy, operations};

/// Router over `node`, and a future that must run while it is served.
pub(crate) fn routes(
    node: Node,
    mut options: ApiOptions,
    closing: watch::Receiver<bool>,
    memory: RequestMemory,
) -> (Router, impl Future<Output = Infallible>) {
    let metrics = Arc::new(HttpMetrics::default());
    let (pages, beside) = (options.pages.take(), options.beside.take());
    let origins = std::mem::take(&mut options.origins);
    let state = Arc::new(AppState::new(node, options, closing, memory, &metrics));
    let router = routes_of(Arc::clone(&state), (pages, beside, origins), &metrics);
    (router, operations::keep_history(state))
}

pub(crate) fn routes_of(
    state: Arc<AppState>,
    (pages, beside, origins): (Option<Arc<dyn FileSource>>, Option<Router>, Origins),
    metrics: &HttpMetrics,
) -> Router {
    let of_pages = pages.iter().flat_map(files::routes);
    let of_2014 = state.access.is_open().then(legacy::routes).into_iter().flatten();
    let mut router = Router::new();
    for route in table().chain(of_pages).chain(of_2014) {
        router = add(router, route, metrics);
    }
    let node = state.node.clone();
    let router = cors::allow(finish(router, state, pages, metrics), origins);
    match beside {
        Some(beside) if node.position().is_some() => router.merge(beside.layer(Positions(node))),
        Some(beside) => router.merge(beside),
        None => router,
    }
}

/// All routes except those of pages and of the 2014 report.
const GROUPS: &[Group] = &[
    Group {
        tag: "users",
        text: "Profiles, follows, friends, blocks, mutes and tokens",
        routes: &[
            users::routes,
            follows::routes,
            friends::routes,
            blocks::routes,
            relations::routes,
            tokens::routes,
        ],
    },
    Group {
        tag: "posts",
        text: "Single posts, and reactions to them",
        routes: &[
            posts::routes,
            context::routes,
            history::routes,
            reactions::routes,
            reactions::lists,
        ],
    },
    Group {
        tag: "timelines",
        text: "Lists of posts, notifications, and live events",
        routes: &[
            notifications::routes,
            timelines::routes,
            feeds::routes,
            feed_definitions::routes,
            tags::routes,
            events::routes,
        ],
    },
    Group { tag: "stories", text: "Posts for friends that expire", routes: &[stories::routes] },
    Group {
        tag: "buckets",
        text: "Keys and values, shared with Redis clients",
        routes: &[buckets::routes, keys::routes],
    },
    Group {
        tag: "recognizer",
        text: "Classifying drawings by their nearest neighbors",
        routes: &[recognitions::routes, samples::routes],
    },
    Group { tag: "batch", text: "Many changes in one request", routes: &[batch::routes] },
    Group {
        tag: "changes",
        text: "All changes, for the other systems of a product",
        routes: &[change_feed::routes],
    },
    Group {
        tag: "operations",
        text: "Health, readiness, metrics and backups, for operators",
        routes: &[operations::routes, backup::routes, cluster::routes, || docs::routes(document)],
    },
];

/// The OpenAPI document of all groups.
pub(crate) fn document() -> OpenApi {
    openapi::document(GROUPS)
}

/// The routes of all groups.
pub(crate) fn table() -> impl Iterator<Item = Route> {
    GROUPS.iter().flat_map(|group| group.routes).flat_map(|routes| routes())
}

fn add(
    router: Router<Arc<AppState>>,
    Route { method, path, handler, rule, .. }: Route,
    metrics: &HttpMetrics,
) -> Router<Arc<AppState>> {
    let known = Method::from_bytes(method.as_bytes()).map(MethodFilter::try_from);
    let Ok(Ok(filter)) = known else { unreachable!("{method} is a method") };
    let handler = match rule.needs {
        Needs::Scope(_) => ErasedHandler::new(After(handler)),
        // Requests without a key do not wait.
        Needs::Nothing | Needs::Nowhere => handler,
    };
    router.route(path, on(filter, Guarded::new(handler, rule, metrics.route(method, path))))
}

/// Adds the handler for unknown paths.
fn finish(
    router: Router<Arc<AppState>>,
    state: Arc<AppState>,
    pages: Option<Arc<dyn FileSource>>,
    metrics: &HttpMetrics,
) -> Router {
    let guarded = |name| metrics.route("*", name);
    let nothing = Guarded::new(
        ErasedHandler::new(|| async { ApiError::not_found() }),
        Rule::NOWHERE,
        guarded("unknown path"),
    );
    let missing = pages.map(|pages| {
        let page = |State(state): State<Arc<AppState>>, headers: HeaderMap| {
            files::missing(state, pages, headers)
        };
        Guarded::new(ErasedHandler::new(page), Rule::PUBLIC, guarded("unknown page"))
    });
    let unknown = |State(state): State<Arc<AppState>>, request: Request| async move {
        match missing.filter(|_| files::is_for_page(&request)) {
            Some(missing) => missing.call(request, state).await,
            None => nothing.call(request, state).await,
        }
    };
    let other = ErasedHandler::new(|| async { ApiError::method_not_allowed() });
    let other = Guarded::new(other, Rule::NOWHERE, guarded("unknown method"));
    router.fallback(unknown).method_not_allowed_fallback(other).with_state(state)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use edge::{Lookup, Scope};
    use utoipa::openapi::path::ParameterIn;

    use super::*;
    use crate::rule::May;

    #[derive(Debug)]
    struct NoPages;

    impl FileSource for NoPages {
        fn find(&self, _: &str) -> Lookup {
            Lookup::Absent
        }
    }

    /// The test lists the access to each route a second time, so that no change opens a route unnoticed.
    #[test]
    fn all_routes_need_a_key_that_may_read_or_write_but_for_these() {
        let expect = [
            ("DELETE", "/v1/buckets/{bucket}", Some(Scope::Admin)),
            ("DELETE", "/v1/feeds/{name}", Some(Scope::Admin)),
            ("DELETE", "/v1/tokens", Some(Scope::Admin)),
            ("DELETE", "/v1/users/{user}", Some(Scope::Admin)),
            ("DELETE", "/v1/users/{user}/tokens", Some(Scope::Admin)),
            ("DELETE", "/v1/users/{user}/tokens/{id}", Some(Scope::Admin)),
            ("GET", "/", None),
            ("GET", "/assets/{*file}", None),
            ("GET", "/docs", None),
            ("GET", "/docs/", None),
            ("GET", "/docs/{*file}", None),
            ("GET", "/healthz", None),
            ("GET", "/readyz", None),
            ("GET", "/v1/backup", Some(Scope::Admin)),
            ("GET", "/v1/changes", Some(Scope::Admin)),
            ("GET", "/v1/changes/events", Some(Scope::Admin)),
            ("GET", "/v1/feeds", Some(Scope::Admin)),
            ("GET", "/v1/feeds/{name}", Some(Scope::Admin)),
            ("GET", "/v1/openapi.json", None),
            ("GET", "/v1/users/{user}/tokens", Some(Scope::Admin)),
            ("POST", "/v1/recognitions", Some(Scope::Read)),
            ("POST", "/v1/users/{user}/rank", Some(Scope::Read)),
            ("POST", "/v1/users/{user}/seen", Some(Scope::Read)),
            ("POST", "/v1/users/{user}/tokens", Some(Scope::Admin)),
            ("PUT", "/v1/feeds/{name}", Some(Scope::Admin)),
        ];
        let pages: Arc<dyn FileSource> = Arc::new(NoPages);
        let all = table().chain(files::routes(&pages)).chain(legacy::routes());
        let mut others: Vec<_> = all
            .filter_map(|Route { method, path, rule, .. }| {
                let usual = if method == "GET" { Scope::Read } else { Scope::Write };
                match rule.needs {
                    Needs::Scope(scope) if scope == usual => None,
                    Needs::Scope(scope) => Some((method, path, Some(scope))),
                    Needs::Nothing => Some((method, path, None)),
                    Needs::Nowhere => panic!("{method} {path} is a route"),
                }
            })
            .collect();
        others.sort_unstable_by_key(|(method, path, _)| (*method, *path));
        assert_eq!(others, expect);
    }

    #[test]
    fn every_route_has_one_place_a_description_and_what_its_rule_compares() {
        let mut places = BTreeSet::new();
        for Route { method, path, rule, about, .. } in table() {
            let what = format!("{method} {path}");
            assert!(places.insert(what.clone()), "{what} is defined twice");
            let Some(about) = about else {
                assert!(path.starts_with("/docs"), "{what} is not described");
                continue;
            };
            assert!(!about.id.is_empty() && !about.summary.is_empty(), "{what}");
            assert!(!about.answers.is_empty(), "{what}");
            let in_path = path.split('/').filter(|part| part.starts_with('{')).count();
            let has = |place: ParameterIn| {
                about.inputs.parameters.iter().filter(move |found| found.parameter_in == place)
            };
            assert_eq!(has(ParameterIn::Path).count(), in_path, "{what}");
            match rule.may {
                None => {}
                Some(May::Own) => assert!(path.starts_with("/v1/users/{user}"), "{what}"),
                Some(May::See) => {
                    let viewer = has(ParameterIn::Query).any(|found| found.name == "viewer");
                    assert!(viewer && method == "GET", "{what}");
                }
            }
        }
        assert!(places.len() > 70, "{places:?}");
    }
}
