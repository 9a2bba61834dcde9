//! Error type required by the patterns of the Redis server.

/// Error without details.
#[derive(Debug)]
pub(crate) struct Failure;

impl Failure {
    pub(crate) const fn said(_: &'static str) -> Self {
        Self
    }
}
