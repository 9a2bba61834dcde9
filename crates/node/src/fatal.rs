//! Errors of the disk, and the single place that ends the process for them.
//!
//! **Invariant:** after an error of the disk, nothing is retried. Errors of the log and of checkpoints are returned as
//! values to the thread that needed the disk.

use commitlog::LogError;
use store::StoreError;

use crate::applier::SharedError;
use crate::directory::divergence::Divergence;

/// Error after which a thread of the node cannot continue.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DiskError {
    /// The log could not be written, made durable or cut.
    #[error("the log failed")]
    Log(#[from] LogError),
    /// A group of a shared log cannot be applied.
    #[error("the log of the cluster cannot be applied")]
    Shared(#[from] SharedError),
    /// A checkpoint or an erasure could not be written.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// A thread could not be started.
    #[error("a thread could not be started")]
    Thread(#[from] std::io::Error),
}

impl DiskError {
    /// Returns the range in which the node began to differ from most other nodes, if that is the error.
    pub(crate) fn divergence(&self) -> Option<Divergence> {
        match self {
            Self::Shared(error) => error.divergence(),
            _ => None,
        }
    }
}

/// Ends the process at once.
///
/// After a failed write or fsync of the log the contents of the disk are unknown; a retry could report lost data as
/// durable. The next start reads the log to find out.
pub(crate) fn end(error: &DiskError) -> ! {
    store::fatal("continuing could lose acknowledged changes", error)
}
