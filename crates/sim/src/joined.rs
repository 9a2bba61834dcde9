//! Waiting for tasks of our own.

use std::panic::resume_unwind;

use tokio::task::JoinError;

/// What a task came to that nobody aborts. Its panic goes on here.
pub(crate) fn joined<T>(task: Result<T, JoinError>) -> T {
    match task {
        Ok(outcome) => outcome,
        Err(error) => resume_unwind(error.into_panic()),
    }
}
