//! The routes.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, on};
use edge::FileSource;
use node::Node;
use tokio::sync::watch;

use crate::error::Problem;
use crate::guard::{Entry, Guarded};
use crate::memory::RequestMemory;
use crate::metrics::HttpMetrics;
use crate::state::Edge;
use crate::{ApiOptions, docs, files, history, legacy, operations, v1};

/// All routes over `node`, and what is to run beside them as long as they serve.
pub(crate) fn routes(
    node: Node,
    mut options: ApiOptions,
    closing: watch::Receiver<bool>,
    memory: RequestMemory,
) -> (Router, impl Future<Output = Infallible>) {
    let metrics = Arc::new(HttpMetrics::default());
    let pages = options.pages.take();
    let edge = Arc::new(Edge::new(node, options, closing, memory, &metrics));
    (routes_of(Arc::clone(&edge), pages, &metrics), history::keep(edge))
}

pub(crate) fn routes_of(
    edge: Arc<Edge>,
    pages: Option<Arc<dyn FileSource>>,
    metrics: &HttpMetrics,
) -> Router {
    let mut routes = Routes { router: Router::new(), metrics };
    v1::route(&mut routes);
    operations::route(&mut routes);
    history::route(&mut routes);
    docs::route(&mut routes);
    if let Some(pages) = pages {
        files::route(&mut routes, pages);
    }
    if edge.access.is_open() {
        legacy::route(&mut routes);
    }
    routes.finish(edge)
}

/// Routes under construction.
pub(crate) struct Routes<'a> {
    router: Router<Arc<Edge>>,
    metrics: &'a HttpMetrics,
}

impl Routes<'_> {
    /// Adds a handler; `method` is a constant of [`Method`] in capitals.
    pub(crate) fn on<H, T>(
        &mut self,
        method: &'static str,
        path: &'static str,
        entry: Entry,
        handler: H,
    ) where
        H: Handler<T, Arc<Edge>>,
        T: 'static,
    {
        let known = Method::from_bytes(method.as_bytes()).map(MethodFilter::try_from);
        let Ok(Ok(filter)) = known else { unreachable!("{method} is a method") };
        let handler = Guarded::new(handler, entry, self.metrics.route(method, path));
        let router = std::mem::take(&mut self.router);
        self.router = router.route(path, on(filter, handler));
    }

    fn finish(self, edge: Arc<Edge>) -> Router {
        let guarded = |name| self.metrics.route("*", name);
        let nothing = || async { Problem::not_found() };
        let other = || async { Problem::method_not_allowed() };
        self.router
            .fallback(Guarded::new(nothing, Entry::Nowhere, guarded("unknown path")))
            .method_not_allowed_fallback(Guarded::new(
                other,
                Entry::Nowhere,
                guarded("unknown method"),
            ))
            .with_state(edge)
    }
}
