//! Errors of the store, and the abort of the process where no error can be returned.

use std::path::PathBuf;

/// Why a store could not be opened, or a checkpoint or an erasure not be made.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A directory could not be prepared.
    #[error("{path}: {source}")]
    Io {
        /// The directory.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The engine below failed or refused.
    #[error("the storage engine: {0}")]
    Engine(#[from] fjall::Error),
    /// A later version of this program wrote the store.
    #[error("the store has format version {found}, this program knows versions up to {known}")]
    NewerFormat {
        /// Version on disk.
        found: u32,
        /// Newest version that this program reads.
        known: u32,
    },
    /// An earlier version wrote the store, and no server has opened it since.
    #[error("the store has format version {0}; start the server on it once, which rewrites it")]
    OldFormat(u32),
    /// The operating system returned no random bytes for the secret that orders keys.
    #[error("the operating system returned no random bytes")]
    NoRandomness,
    /// Reads that began before an erasure have not ended.
    #[error("removed rows are still being read; erase again later")]
    StillRead,
    /// A file is missing, and with it the rows that it led to.
    #[error(
        "{} is missing; restore a backup (roost restore), or copy the file from a copy of the directory \
         that was made at the same time",
        .0.display()
    )]
    Missing(PathBuf),
    /// The rows that describe the store are missing or malformed.
    #[error("the store is damaged: {0}")]
    Damaged(&'static str),
}

/// Ends the process: the one place that does so for an error of the disk.
///
/// Reads return no errors: an answer from incomplete facts would be wrong, and the facts can be rebuilt
/// from the log. So the cause is logged and the process aborts, without running destructors that
/// might write.
pub fn fatal(doing: &str, error: &(dyn std::error::Error + 'static)) -> ! {
    let mut causes = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        causes.push_str(": ");
        causes.push_str(&error.to_string());
        cause = error.source();
    }
    tracing::error!(doing, "{causes}; stopping");
    if !tracing::dispatcher::has_been_set() {
        eprintln!("{doing}: {causes}; stopping");
    }
    std::process::abort()
}
