//! Starting threads of the node: none of them may end unnoticed.

use std::thread::JoinHandle;

use crate::fatal::{DiskError, end};

/// Ends the process when its thread panics: a server without its writer would seem to run and never reply
/// to a change again.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

/// Starts a thread; its panic, its error, or a failure to start it ends the process.
pub(crate) fn spawn(
    name: &str,
    work: impl FnOnce() -> Result<(), DiskError> + Send + 'static,
) -> JoinHandle<()> {
    let guarded = move || {
        let _guard = AbortOnPanic;
        if let Err(error) = work() {
            end(&error);
        }
    };
    match std::thread::Builder::new().name(name.into()).spawn(guarded) {
        Ok(thread) => thread,
        Err(error) => end(&DiskError::Thread(error)),
    }
}
