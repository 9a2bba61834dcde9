//! Errors of the store, and the abort of the process where no error can be returned.

use std::io::Write as _;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
#[cfg(feature = "simulation")]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reason why a store could not be opened, or a checkpoint or an erasure failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A directory could not be prepared.
    #[error("{path}: {source}")]
    Io {
        /// Directory.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The machine's clock is unusable.
    #[error("the machine's clock shows a time before 1970; set it")]
    Clock,
    /// The storage engine failed or refused.
    #[error("the storage engine: {0}")]
    Engine(fjall::Error),
    /// A later version of this program wrote the store.
    #[error("the store has format version {found}, but this program reads versions up to {known}")]
    NewerFormat {
        /// Version on disk.
        found: u32,
        /// Newest version that this program reads.
        known: u32,
    },
    /// The operating system returned no random bytes for the secret that orders keys.
    #[error("the operating system returned no random bytes")]
    NoRandomness,
    /// A file of the engine is missing or was changed. The attempt to open the store has changed nothing.
    #[error("the store is damaged: {path}: {what}")]
    DamagedFile {
        /// Damaged file.
        path: PathBuf,
        /// Description of the damage.
        what: &'static str,
    },
    /// A file is missing, and with it the rows that depend on it.
    #[error(
        "{} is missing; restore a backup (roost restore), or copy the file from a copy of the directory \
         that was made at the same time",
        .0.display()
    )]
    Missing(PathBuf),
    /// Two lines of an import create the same row.
    #[error("line {line} duplicates line {first}")]
    Repeated {
        /// Number of the second line, from 1.
        line: u64,
        /// Number of the first line, from 1.
        first: u64,
    },
    /// The rows that describe the store are missing or malformed.
    #[error("the store is damaged: {0}")]
    Damaged(&'static str),
}

// `#[from]` would make the engine's error a source, but the text of this error already includes it.
impl From<fjall::Error> for StoreError {
    fn from(error: fjall::Error) -> Self {
        Self::Engine(error)
    }
}

/// Whether [`fatal`] panics.
#[cfg(feature = "simulation")]
static FATAL_PANICS: AtomicBool = AtomicBool::new(false);

/// Makes [`fatal`] panic instead of ending the process. The simulator reports such a panic with its seed.
#[cfg(feature = "simulation")]
pub fn panic_when_fatal() {
    FATAL_PANICS.store(true, Ordering::Relaxed);
}

/// Payload of the panic of a thread that has read a damaged row.
#[derive(Debug)]
pub struct Unreadable;

/// Number of reads that found a damaged row.
static UNREADABLE: AtomicU64 = AtomicU64::new(0);

/// Returns the number of reads of this process that found a damaged row.
#[must_use]
pub fn unreadable_reads() -> u64 {
    UNREADABLE.load(Ordering::Relaxed)
}

/// Ends a read that has found damage on disk.
///
/// Reads return no errors: almost all callers could only pass them on, and an answer from incomplete facts would be
/// wrong. This function logs the cause and unwinds the thread with [`Unreadable`]. If the read was for a request, the
/// request fails. If it was for the writer, the process ends, because the writer cannot refuse a command of the log.
pub(crate) fn unreadable(doing: &str, error: &(dyn std::error::Error + 'static)) -> ! {
    let count = UNREADABLE.fetch_add(1, Ordering::Relaxed) + 1;
    // Log the first ten errors, then one in a thousand: a client may repeat a request endlessly.
    if count <= 10 || count.is_multiple_of(1_000) {
        let causes = causes(error);
        tracing::error!(
            doing,
            count,
            "the disk is damaged: {causes}; stop the server and run roost verify"
        );
    }
    rows::outside_rules(|| std::panic::resume_unwind(Box::new(Unreadable)))
}

/// Returns the result of `read`; `None` if `read` found damage, which is already logged.
pub fn unless_unreadable<T>(read: impl FnOnce() -> T) -> Option<T> {
    match std::panic::catch_unwind(AssertUnwindSafe(read)) {
        Ok(done) => Some(done),
        Err(payload) if payload.is::<Unreadable>() => None,
        Err(payload) => std::panic::resume_unwind(payload),
    }
}

fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut causes = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        causes.push_str(": ");
        causes.push_str(&error.to_string());
        cause = error.source();
    }
    causes
}

/// Ends the process after an error of the disk. Logs the cause and aborts without running destructors, which might
/// write.
pub fn fatal(doing: &str, error: &(dyn std::error::Error + 'static)) -> ! {
    let causes = causes(error);
    #[cfg(feature = "simulation")]
    if FATAL_PANICS.load(Ordering::Relaxed) {
        panic!("{doing}: {causes}");
    }
    tracing::error!(doing, "{causes}; stopping");
    if !tracing::dispatcher::has_been_set() {
        let _unread = writeln!(std::io::stderr(), "{doing}: {causes}; stopping");
    }
    std::process::abort()
}
