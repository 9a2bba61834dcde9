//! The error type that `patterns` of the Redis server needs.

/// Error without details.
#[derive(Debug)]
pub(crate) struct Failure;

impl Failure {
    pub(crate) const fn said(_: &'static str) -> Self {
        Self
    }
}
