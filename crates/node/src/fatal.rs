//! Errors of the disk, and the one place that ends the process for them.
//!
//! **Invariant:** after an error of the disk nothing is retried. Errors of the log and of checkpoints are returned as
//! values to the thread that needed the disk.

use commitlog::LogError;
use store::StoreError;

use crate::applier::SharedError;
use crate::directory::divergence::Divergence;

/// Why a thread of the node cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DiskError {
    /// The log could not be written, made durable or cut.
    #[error("the log failed")]
    Log(#[from] LogError),
    /// A group of a log that several nodes share cannot be applied.
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
    /// Since when the node has other rows than most other nodes, if that is the error.
    pub(crate) fn divergence(&self) -> Option<Divergence> {
        match self {
            Self::Shared(error) => error.divergence(),
            _ => None,
        }
    }
}

/// Ends the process at once.
///
/// After a failed write or fsync of the log it is unknown what the disk holds; a retry could report as
/// durable what is not. The next start finds out by reading the log.
pub(crate) fn end(error: &DiskError) -> ! {
    store::fatal("going on could lose acknowledged changes", error)
}
