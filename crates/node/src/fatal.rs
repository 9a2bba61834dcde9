//! Errors of the disk, and the one place that ends the process for them.

use commitlog::LogError;
use store::StoreError;

/// Why a thread of the node cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DiskError {
    /// The log could not be written, made durable or cut.
    #[error("the log failed")]
    Log(#[from] LogError),
    /// A checkpoint or an erasure could not be written.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// A thread could not be started.
    #[error("a thread could not be started")]
    Thread(#[from] std::io::Error),
}

/// Ends the process at once.
///
/// After a failed write or fsync of the log nobody knows what the disk holds; retrying could report
/// as durable what is not. The next start reads the log and knows.
pub(crate) fn end(error: &DiskError) -> ! {
    store::fatal("going on could lose acknowledged changes", error)
}
