//! The routes, and what all handlers share.

mod auth;
mod batch;
mod body;
mod buckets;
mod context;
mod docs;
pub(crate) mod error;
mod events;
mod file;
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
#[cfg(test)]
mod tests;
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
use tokio::sync::{Semaphore, watch};

use crate::memory::RequestMemory;
use crate::metrics::{HttpMetrics, Sampled};
use crate::reads::BlockingReads;
use crate::{Access, ServerOptions};
use error::Problem;
use guard::{Entry, Guarded};
use users::mark_replay;

/// Reads at a time for answers to changes that are done. What they read was just written, so most need
/// no disk.
const DONE_READS_MAX: usize = 8;

/// What all handlers share.
pub(crate) struct Edge {
    pub(crate) node: Node,
    pub(crate) access: Access,
    /// How long a story lives if the caller does not say.
    pub(crate) story_life: Lifetime,
    pub(crate) reads: BlockingReads,
    pub(crate) streams: events::StreamReads,
    /// Reads for answers to changes that are done, apart from those that are refused when many wait.
    done_reads: Arc<Semaphore>,
    pub(crate) memory: RequestMemory,
    pub(crate) registry: Registry,
    /// True once the server shuts down.
    pub(crate) closing: watch::Receiver<bool>,
}

impl Edge {
    /// Reads from the node where blocking is allowed.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Node) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let node = self.node.clone();
        self.reads.run(move || read(&node)).await
    }

    /// Reads what a change that is done is answered with: waits for its turn, in order, and is never
    /// refused, since the change cannot be taken back. As many wait as there are requests.
    pub(crate) async fn read_done<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Node) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let Ok(turn) = Arc::clone(&self.done_reads).acquire_owned().await else {
            unreachable!("the semaphore is never closed");
        };
        let node = self.node.clone();
        let read = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            read(&node)
        });
        read.await.map_err(|error| Problem::internal(&error))
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
    memory: RequestMemory,
) -> Router {
    let metrics = Arc::new(HttpMetrics::default());
    let edge = shared(node, options, closing, memory, &metrics);
    routes_of(Arc::new(edge), options, &metrics)
}

fn shared(
    node: Node,
    options: &ServerOptions,
    closing: watch::Receiver<bool>,
    memory: RequestMemory,
    metrics: &Arc<HttpMetrics>,
) -> Edge {
    let mut registry = Registry::default();
    node.metrics().register(&mut registry);
    let (http, redis) = (Arc::clone(metrics), options.redis_metrics.clone());
    let sampled = Sampled { http, redis, node: node.clone(), memory: memory.clone() };
    registry.register_collector(Box::new(sampled));
    Edge {
        node,
        access: options.access,
        story_life: options.story_life,
        reads: BlockingReads::new(options.blocking_reads_max),
        streams: events::StreamReads::default(),
        done_reads: Arc::new(Semaphore::new(DONE_READS_MAX)),
        memory,
        registry,
        closing,
    }
}

fn routes_of(edge: Arc<Edge>, options: &ServerOptions, metrics: &HttpMetrics) -> Router {
    let mut routes = Routes { router: Router::new(), metrics };
    users::route(&mut routes);
    follows::route(&mut routes);
    friends::route(&mut routes);
    posts::route(&mut routes);
    context::route(&mut routes);
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
