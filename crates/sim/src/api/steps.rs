//! Shared parts of loading: concurrent tasks and their progress.

use std::sync::atomic::AtomicU64;

use tokio::task::JoinSet;

use super::LoadError;
use crate::joined::joined;
use crate::progress;

/// Waits for all tasks. The first error aborts the others.
pub(super) async fn all(mut parts: JoinSet<Result<(), LoadError>>) -> Result<(), LoadError> {
    while let Some(part) = parts.join_next().await {
        joined(part)?;
    }
    Ok(())
}

/// Shows the progress of `done` towards `total` during the work.
pub(super) async fn with_progress(
    what: &'static str,
    total: u64,
    done: &AtomicU64,
    work: impl Future<Output = Result<(), LoadError>>,
) -> Result<(), LoadError> {
    tokio::select! {
        outcome = work => outcome,
        () = progress::show(what, total, done) => unreachable!("progress never ends by itself"),
    }
}
