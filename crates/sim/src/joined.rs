//! Results of tasks that this crate started.

use std::panic::resume_unwind;

use tokio::task::JoinError;

/// Result of a task that is never aborted. A panic of the task continues in the caller.
pub(crate) fn joined<T>(task: Result<T, JoinError>) -> T {
    match task {
        Ok(outcome) => outcome,
        Err(error) => resume_unwind(error.into_panic()),
    }
}
