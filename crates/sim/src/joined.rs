//! Results of tasks that this crate started.

use std::panic::resume_unwind;

use tokio::task::JoinError;

/// The result of a task that is never aborted. A panic in the task is resumed here.
pub(crate) fn joined<T>(task: Result<T, JoinError>) -> T {
    match task {
        Ok(outcome) => outcome,
        Err(error) => resume_unwind(error.into_panic()),
    }
}
