//! State that all handlers share.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use edge::{Access, BlockingReads, RequestMemory, Sessions, Share, Shares};
use feed::Lifetime;
use node::Node;
use prometheus_client::registry::Registry;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::ApiOptions;
use crate::auth;
use crate::error::ApiError;
use crate::history::History;
use crate::metrics::{HttpMetrics, Sampled};
use crate::positions::Waiting;
use crate::results::Results;
use crate::unsent::Unsent;

/// Maximum number of streams of the change feed, and of requests that wait for its changes. Few systems read it.
const FEED_READERS_MAX: usize = 32;

/// State that all handlers share.
pub(crate) struct AppState {
    pub(crate) node: Node,
    pub(crate) access: Access,
    /// Sessions of users; `None` in open mode, where clients act for any user.
    pub(crate) sessions: Option<Arc<dyn Sessions>>,
    /// Default lifetime of a story.
    pub(crate) story_life: Lifetime,
    /// Host and port of the server's URL.
    pub(crate) domain: Box<str>,
    pub(crate) reads: BlockingReads,
    /// Responses and events that are being sent.
    pub(crate) unsent: Unsent,
    /// Number of requests of each client that last as long as the client wants: live streams and batches.
    shares: Shares<[u8; 32]>,
    /// Maximum of `shares` per client: half of the connections, so that other clients can always connect.
    share_max: usize,
    /// Permits of streams of the change feed, and of requests that wait for its changes.
    feed_readers: Arc<Semaphore>,
    /// Permit for the single running backup.
    pub(crate) backups: Arc<Semaphore>,
    pub(crate) keys_file: Option<PathBuf>,
    pub(crate) memory: RequestMemory,
    pub(crate) registry: Registry,
    pub(crate) history: History,
    /// Requests that wait for positions; `None` outside of a cluster.
    pub(crate) positions: Option<Waiting>,
    /// Maximum lag of a cluster node that counts as ready.
    pub(crate) max_lag: Duration,
    /// Bodies of responses to changes with idempotency keys.
    pub(crate) results: Results,
    /// True from the beginning of a shutdown.
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
            feed_readers: Arc::new(Semaphore::new(FEED_READERS_MAX)),
            backups: Arc::new(Semaphore::new(1)),
            keys_file: options.keys_file,
            memory,
            registry,
            history: History::default(),
            results: Results::default(),
            closing,
        }
    }

    /// Runs a read that may block.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Node) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let node = self.node.clone();
        Ok(self.reads.run(move || read(&node)).await?)
    }

    /// Runs a read of many rows. Long reads have their own lane, so that reads of [`AppState::read`] do not wait for
    /// them.
    pub(crate) async fn read_long<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Node) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let node = self.node.clone();
        Ok(self.reads.run_listing(move |_| read(&node)).await?)
    }

    /// Reads the response to a completed change. The read is queued in order and never refused, because the change
    /// cannot be undone. The queue can have as many reads as there are such requests.
    pub(crate) async fn read_done<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Node) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let node = self.node.clone();
        Ok(self.reads.after_change().run(move || read(&node)).await?)
    }

    /// Runs a read for a live stream when it is the stream's turn.
    pub(crate) async fn read_for_stream<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Node) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let node = self.node.clone();
        Ok(self.reads.streams().run(move || read(&node)).await?)
    }

    /// Runs a read of the change feed when it is the read's turn.
    pub(crate) async fn read_feed<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Node) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let node = self.node.clone();
        Ok(self.reads.feed().run(move || read(&node)).await?)
    }

    /// Counts a stream of the change feed, or a request that waits for its changes.
    ///
    /// # Errors
    /// 429 if there are too many.
    pub(crate) fn feed_reader(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        let permit = Arc::clone(&self.feed_readers).try_acquire_owned();
        permit.map_err(|_| ApiError::too_many_streams())
    }

    /// Counts a request that lasts as long as the client wants. The limit is per key, and in open mode for all clients.
    ///
    /// # Errors
    /// 401 without a valid key, 429 if the client has too many.
    pub(crate) fn share(&self, headers: &HeaderMap) -> Result<Share<[u8; 32]>, ApiError> {
        let grant = auth::grant(&self.access, headers).ok_or_else(ApiError::unauthorized)?;
        let share = self.shares.take(grant.client(), 1, self.share_max);
        share.ok_or_else(ApiError::too_many_streams)
    }
}
