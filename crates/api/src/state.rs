//! State that all handlers share.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use edge::{Access, BlockingReads, RequestMemory, Sessions, Share, Shares};
use feed::Lifetime;
use node::Node;
use prometheus_client::registry::Registry;
use tokio::sync::{Semaphore, watch};

use crate::ApiOptions;
use crate::auth;
use crate::error::ApiError;
use crate::history::History;
use crate::metrics::{HttpMetrics, Sampled};
use crate::positions::Waiting;
use crate::unsent::Unsent;

/// State that all handlers share.
pub(crate) struct AppState {
    pub(crate) node: Node,
    pub(crate) access: Access,
    /// None in open mode, whose clients act for any user.
    pub(crate) sessions: Option<Arc<dyn Sessions>>,
    /// Lifetime of a story if the request has none.
    pub(crate) story_life: Lifetime,
    /// Host and port of the server's URL.
    pub(crate) domain: Box<str>,
    pub(crate) reads: BlockingReads,
    /// Responses and events that are being sent.
    pub(crate) unsent: Unsent,
    /// Requests of each client that last as long as it wants: live streams and batches.
    shares: Shares<[u8; 32]>,
    /// Most of one client: half of the connections, so that others can always connect.
    share_max: usize,
    /// One backup at a time.
    pub(crate) backups: Arc<Semaphore>,
    pub(crate) keys_file: Option<PathBuf>,
    pub(crate) memory: RequestMemory,
    pub(crate) registry: Registry,
    pub(crate) history: History,
    /// None if the node is not one of a cluster.
    pub(crate) positions: Option<Waiting>,
    /// A node of a cluster that lags longer is not ready.
    pub(crate) max_lag: Duration,
    /// True from the beginning of the shutdown.
    pub(crate) closing: watch::Receiver<bool>,
}

impl AppState {
    pub(crate) fn new(
        node: Node,
        options: ApiOptions,
        closing: watch::Receiver<bool>,
        memory: RequestMemory,
        metrics: &Arc<HttpMetrics>,
    ) -> Self {
        let mut registry = options.registry;
        node.metrics().register(&mut registry);
        let (http, sizes) = (Arc::clone(metrics), node.clone());
        registry.register_collector(Box::new(Sampled {
            http,
            node: sizes,
            memory: memory.clone(),
        }));
        Self {
            positions: node.cluster().map(|_| Waiting::new()),
            node,
            sessions: options.sessions.filter(|_| !options.access.is_open()),
            access: options.access,
            max_lag: options.max_lag,
            story_life: options.story_life,
            domain: options.domain.into(),
            reads: options.reads,
            unsent: Unsent::new(&memory),
            shares: Shares::default(),
            share_max: (options.connections_max as usize / 2).max(1),
            backups: Arc::new(Semaphore::new(1)),
            keys_file: options.keys_file,
            memory,
            registry,
            history: History::default(),
            closing,
        }
    }

    /// Reads from the node where blocking is allowed.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Node) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let node = self.node.clone();
        Ok(self.reads.run(move || read(&node)).await?)
    }

    /// Reads many rows, as [`AppState::read`], so that short reads do not wait for it.
    pub(crate) async fn read_long<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Node) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let node = self.node.clone();
        Ok(self.reads.run_listing(move |_| read(&node)).await?)
    }

    /// Reads the response to a completed change: queued in order and never refused, since the change
    /// cannot be undone. The queue is as long as the number of such requests.
    pub(crate) async fn read_done<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Node) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let node = self.node.clone();
        Ok(self.reads.after_change().run(move || read(&node)).await?)
    }

    /// Reads for a live stream, which waits for its turn.
    pub(crate) async fn read_for_stream<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Node) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let node = self.node.clone();
        Ok(self.reads.streams().run(move || read(&node)).await?)
    }

    /// Counts a request that lasts as long as its client wants: one key, or all clients in open mode, has a share of them.
    ///
    /// # Errors
    /// 401 without a valid key, 429 if the client has too many.
    pub(crate) fn share(&self, headers: &HeaderMap) -> Result<Share<[u8; 32]>, ApiError> {
        let grant = auth::grant(&self.access, headers).ok_or_else(ApiError::unauthorized)?;
        let share = self.shares.take(grant.client(), 1, self.share_max);
        share.ok_or_else(ApiError::too_many_streams)
    }
}
