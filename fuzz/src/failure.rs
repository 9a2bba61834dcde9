//! What the patterns of the Redis server need of its errors.

/// An error.
#[derive(Debug)]
pub(crate) struct Failure;

impl Failure {
    pub(crate) const fn said(_: &'static str) -> Self {
        Self
    }
}
