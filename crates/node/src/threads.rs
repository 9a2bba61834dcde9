//! Starting a thread of the node: none of them may end unnoticed.

use std::thread::JoinHandle;

use crate::fatal::fatal;

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

/// Starts a thread; its panic, or the lack of one, ends the process.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    let guarded = move || {
        let _guard = AbortOnPanic;
        work();
    };
    match std::thread::Builder::new().name(name.into()).spawn(guarded) {
        Ok(thread) => thread,
        Err(error) => fatal("a thread could not be started", &error),
    }
}
