//! Starting threads of the node: none of them may end unnoticed.

use std::thread::JoinHandle;

use crate::fatal::{DiskError, end};

/// Ends the process when its thread panics: a server whose writer is gone would look alive and
/// never answer a change again.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

/// Starts a thread; its panic, its error, or the lack of a thread ends the process.
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
