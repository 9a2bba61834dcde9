//! State that all handlers share.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use edge::{Access, BlockingReads, Sessions};
use feed::Lifetime;
use node::Node;
use prometheus_client::registry::Registry;
use tokio::sync::{Semaphore, watch};

use crate::ApiOptions;
use crate::error::ApiError;
use crate::history::History;
use crate::memory::RequestMemory;
use crate::metrics::{HttpMetrics, Sampled};
use crate::positions::Waiting;
use crate::request_id::carry;
use crate::shares::Shares;
use crate::streams::StreamReads;

/// Maximum number of concurrent reads for responses to completed changes. Their data was just written, so most
/// need no disk access.
const DONE_READS_MAX: usize = 8;

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
    pub(crate) streams: StreamReads,
    /// Live streams and batches of each client.
    pub(crate) shares: Arc<Shares>,
    /// Permits of reads for responses to completed changes. These reads are never refused.
    done_reads: Arc<Semaphore>,
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
            streams: StreamReads::new(&memory),
            shares: Shares::new(options.connections_max),
            done_reads: Arc::new(Semaphore::new(DONE_READS_MAX)),
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
        Ok(self.reads.run(carry(move || read(&node))).await?)
    }

    /// Reads many rows, as [`AppState::read`], so that short reads do not wait for it.
    pub(crate) async fn read_long<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Node) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let node = self.node.clone();
        let read = carry(move || read(&node));
        Ok(self.reads.run_listing(|_| read()).await?)
    }

    /// Reads the response to a completed change: queued in order and never refused, since the change
    /// cannot be undone. The queue is as long as the number of such requests.
    pub(crate) async fn read_done<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Node) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let Ok(turn) = Arc::clone(&self.done_reads).acquire_owned().await else {
            unreachable!("the semaphore is never closed");
        };
        let node = self.node.clone();
        let read = carry(move || {
            let _turn = turn;
            read(&node)
        });
        Ok(edge::blocking(read).await?)
    }
}
