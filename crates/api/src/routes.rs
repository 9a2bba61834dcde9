//! The routes.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use edge::{ErasedHandler, FileSource, RequestMemory};
use futures_util::future::BoxFuture;
use node::Node;
use tokio::sync::watch;

use crate::after::After;
use crate::error::ApiError;
use crate::guard::{Guarded, RouteKind};
use crate::metrics::HttpMetrics;
use crate::positions::Positions;
use crate::state::AppState;
use crate::{ApiOptions, backup, cluster, docs, files, legacy, operations, v1};

/// All routes over `node`, and a future that must run as long as they are served.
pub(crate) fn routes(
    node: Node,
    mut options: ApiOptions,
    closing: watch::Receiver<bool>,
    memory: RequestMemory,
) -> (Router, impl Future<Output = Infallible>) {
    let metrics = Arc::new(HttpMetrics::default());
    let (pages, beside) = (options.pages.take(), options.beside.take());
    let state = Arc::new(AppState::new(node, options, closing, memory, &metrics));
    let router = routes_of(Arc::clone(&state), (pages, beside), &metrics);
    (router, operations::keep_history(state))
}

pub(crate) fn routes_of(
    state: Arc<AppState>,
    (pages, beside): (Option<Arc<dyn FileSource>>, Option<Router>),
    metrics: &HttpMetrics,
) -> Router {
    let mut routes = Routes { router: Router::new(), metrics };
    routes.add_described();
    if let Some(pages) = &pages {
        files::route(&mut routes, Arc::clone(pages));
    }
    if state.access.is_open() {
        legacy::route(&mut routes);
    }
    let node = state.node.clone();
    let router = routes.finish(state, pages);
    match beside {
        Some(beside) if node.position().is_some() => router.merge(beside.layer(Positions(node))),
        Some(beside) => router.merge(beside),
        None => router,
    }
}

/// Routes under construction.
pub(crate) struct Routes<'a> {
    router: Router<Arc<AppState>>,
    metrics: &'a HttpMetrics,
}

impl Routes<'_> {
    /// Adds all routes that `/v1/openapi.json` describes, and its documentation page.
    fn add_described(&mut self) {
        v1::route(self);
        operations::route(self);
        backup::route(self);
        cluster::route(self);
        docs::route(self);
    }

    /// Adds a handler; `method` is a constant of [`Method`] in capitals.
    pub(crate) fn on<H, T>(
        &mut self,
        method: &'static str,
        path: &'static str,
        entry: RouteKind,
        handler: H,
    ) where
        H: Handler<T, Arc<AppState>, Future = BoxFuture<'static, Response>>,
        T: 'static,
    {
        self.add(method, path, entry, ErasedHandler::new(handler));
    }

    fn add(
        &mut self,
        method: &'static str,
        path: &'static str,
        entry: RouteKind,
        handler: ErasedHandler<Arc<AppState>>,
    ) {
        let known = Method::from_bytes(method.as_bytes()).map(MethodFilter::try_from);
        let Ok(Ok(filter)) = known else { unreachable!("{method} is a method") };
        let counters = self.metrics.route(method, path);
        let router = std::mem::take(&mut self.router);
        let handler = match entry {
            RouteKind::Plain | RouteKind::Query => ErasedHandler::new(After(handler)),
            // Whoever needs no key does not wait.
            RouteKind::Public | RouteKind::Nowhere => handler,
        };
        self.router = router.route(path, on(filter, Guarded::new(handler, entry, counters)));
    }

    fn finish(self, state: Arc<AppState>, pages: Option<Arc<dyn FileSource>>) -> Router {
        let guarded = |name| self.metrics.route("*", name);
        let nothing = Guarded::new(
            ErasedHandler::new(|| async { ApiError::not_found() }),
            RouteKind::Nowhere,
            guarded("unknown path"),
        );
        let missing = pages.map(|pages| {
            let page = |State(state): State<Arc<AppState>>, headers: HeaderMap| {
                files::missing(state, pages, headers)
            };
            Guarded::new(ErasedHandler::new(page), RouteKind::Public, guarded("unknown page"))
        });
        let unknown = |State(state): State<Arc<AppState>>, request: Request| async move {
            match missing.filter(|_| files::is_for_page(&request)) {
                Some(missing) => missing.call(request, state).await,
                None => nothing.call(request, state).await,
            }
        };
        let other = || async { ApiError::method_not_allowed() };
        self.router
            .fallback(unknown)
            .method_not_allowed_fallback(Guarded::new(
                ErasedHandler::new(other),
                RouteKind::Nowhere,
                guarded("unknown method"),
            ))
            .with_state(state)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_route_is_described_and_every_description_is_a_route() {
        let metrics = HttpMetrics::default();
        let mut routes = Routes { router: Router::new(), metrics: &metrics };
        routes.add_described();
        let served: BTreeSet<(String, String)> = metrics
            .names()
            .into_iter()
            .filter(|(_, path)| !path.starts_with("/docs"))
            .map(|(method, path)| (method.to_lowercase(), path.replace("{*", "{")))
            .collect();
        let described = serde_json::to_value(docs::openapi()).unwrap();
        let paths = described["paths"].as_object().unwrap().iter();
        let described: BTreeSet<(String, String)> = paths
            .flat_map(|(path, item)| {
                item.as_object().unwrap().keys().map(|method| (method.clone(), path.clone()))
            })
            .collect();
        assert!(served.len() > 40, "{served:?}");
        assert_eq!(served, described);
    }
}
