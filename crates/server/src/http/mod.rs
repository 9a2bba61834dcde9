//! The routes, and what all handlers share.

mod auth;
mod batch;
mod buckets;
mod docs;
pub(crate) mod error;
mod events;
mod follows;
mod friends;
mod guard;
mod input;
mod keys;
mod operations;
mod page;
mod posts;
mod recognise;
mod reports;
mod samples;
mod stories;
mod timelines;
mod users;
mod web;

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, on};
use feed::{Command, Done, Idempotency, Lifetime};
use node::{Node, Request};
use prometheus_client::registry::Registry;
use tokio::sync::watch;

use crate::metrics::{HttpMetrics, Sampled};
use crate::reads::BlockingReads;
use crate::room::Room;
use crate::{Access, ServerOptions};
use error::Problem;
use guard::{Entry, Guarded};
use users::mark_replay;

/// What all handlers share.
pub(crate) struct Edge {
    pub(crate) node: Node,
    pub(crate) access: Access,
    /// How long a story lives if the caller does not say.
    pub(crate) story_life: Lifetime,
    pub(crate) reads: BlockingReads,
    pub(crate) streams: events::StreamReads,
    pub(crate) room: Room,
    pub(crate) registry: Registry,
    /// True once the server shuts down.
    pub(crate) closing: watch::Receiver<bool>,
}

impl Edge {
    /// What handlers share, before anything is under way.
    fn new(
        node: Node,
        options: &ServerOptions,
        registry: Registry,
        closing: watch::Receiver<bool>,
    ) -> Self {
        Self {
            node,
            access: options.access,
            story_life: options.story_life,
            reads: BlockingReads::new(options.blocking_reads_max),
            streams: events::StreamReads::default(),
            room: Room::new(),
            registry,
            closing,
        }
    }

    /// Reads from the node where blocking is allowed.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Node) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let node = self.node.clone();
        self.reads.run(move || read(&node)).await
    }

    /// Submits a command; tells what it did and whether it had done so before.
    pub(crate) async fn submit(
        &self,
        command: Command,
        idempotency: Option<Idempotency>,
    ) -> Result<(Done, bool), Problem> {
        let reply = self.node.submit(Request { command, idempotency }).await?;
        Ok((reply.outcome?, reply.replayed))
    }

    /// Submits a command that has nothing to tell but that it is done.
    pub(crate) async fn carry_out(
        &self,
        command: Command,
        idempotency: Option<Idempotency>,
    ) -> Result<Response, Problem> {
        let (_, replayed) = self.submit(command, idempotency).await?;
        Ok(mark_replay(StatusCode::NO_CONTENT.into_response(), replayed))
    }
}

/// All routes over `node`.
pub(crate) fn routes(
    node: Node,
    options: &ServerOptions,
    closing: watch::Receiver<bool>,
) -> Router {
    let metrics = Arc::new(HttpMetrics::default());
    let mut registry = Registry::default();
    node.metrics().register(&mut registry);
    let redis = options.redis_metrics.clone();
    let sampled = Sampled { http: Arc::clone(&metrics), redis, node: node.clone() };
    registry.register_collector(Box::new(sampled));
    let edge = Edge::new(node, options, registry, closing);
    let mut routes = Routes { router: Router::new(), metrics: &metrics };
    users::route(&mut routes);
    follows::route(&mut routes);
    friends::route(&mut routes);
    posts::route(&mut routes);
    timelines::route(&mut routes);
    stories::route(&mut routes);
    recognise::route(&mut routes);
    samples::route(&mut routes);
    buckets::route(&mut routes);
    keys::route(&mut routes);
    events::route(&mut routes);
    batch::route(&mut routes);
    operations::route(&mut routes);
    docs::route(&mut routes);
    web::route(&mut routes, &options.pages);
    if options.access == Access::Open {
        reports::route(&mut routes);
    }
    routes.finish(edge)
}

/// Routes under construction.
struct Routes<'a> {
    router: Router<Arc<Edge>>,
    metrics: &'a HttpMetrics,
}

impl Routes<'_> {
    /// Adds a handler; `method` is a constant of [`Method`] in capitals.
    fn on<H, T>(&mut self, method: &'static str, path: &'static str, entry: Entry, handler: H)
    where
        H: Handler<T, Arc<Edge>>,
        T: 'static,
    {
        let known = Method::from_bytes(method.as_bytes()).map(MethodFilter::try_from);
        let Ok(Ok(filter)) = known else { unreachable!("{method} is a method") };
        let handler = Guarded::new(handler, entry, self.metrics.route(method, path));
        let router = std::mem::take(&mut self.router);
        self.router = router.route(path, on(filter, handler));
    }

    fn finish(self, edge: Edge) -> Router {
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
            .with_state(Arc::new(edge))
    }
}
