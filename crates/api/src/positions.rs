//! Positions in requests to a node of a cluster, and the requests that wait for them.
//!
//! **Invariant:** at most [`WAITING_MAX`] requests wait at a time.

use axum::http::{HeaderMap, HeaderName};
use tokio::sync::Semaphore;

use crate::error::ApiError;

/// In requests: the position that the node must have reached before it answers.
pub(crate) const ROOST_AFTER: HeaderName = HeaderName::from_static("roost-after");

/// Requests that wait for a position at a time. Each holds its connection and its head, up to 2 s.
const WAITING_MAX: usize = 1_024;

/// The position that a request waits for.
pub(crate) fn after(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let Some(value) = headers.get(ROOST_AFTER) else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    let wrong = || ApiError::bad_request("Roost-After must be a number: that of Roost-Position");
    number.map(Some).ok_or_else(wrong)
}

/// The requests that wait for positions.
pub(crate) struct Waiting(Semaphore);

impl Waiting {
    pub(crate) fn new() -> Self {
        Self(Semaphore::new(WAITING_MAX))
    }

    /// Waits for `applied`, which says whether the node has reached the position in time.
    pub(crate) async fn wait(
        &self,
        after: u64,
        applied: impl Future<Output = bool>,
    ) -> Result<(), ApiError> {
        let _permit = self.0.try_acquire().map_err(|_| ApiError::overloaded())?;
        match applied.await {
            true => Ok(()),
            false => Err(ApiError::lagging(after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;
    use futures_util::future::FutureExt as _;
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn only_so_many_requests_wait_at_a_time() {
        let waiting = Waiting(Semaphore::new(1));
        let mut first = waiting.wait(7, pending()).boxed();
        assert!((&mut first).now_or_never().is_none(), "it waits");
        let second = waiting.wait(7, ready(true)).await.unwrap_err().into_response();
        assert_eq!(second.status(), 503);
        drop(first);
        waiting.wait(7, ready(true)).await.unwrap();
        assert_eq!(waiting.wait(7, ready(false)).await.unwrap_err().into_response().status(), 503);
    }

    #[test]
    fn a_position_is_a_number() {
        for (value, expected) in [
            (None, Ok(None)),
            (Some("0"), Ok(Some(0))),
            (Some("18446744073709551615"), Ok(Some(u64::MAX))),
            (Some("18446744073709551616"), Err(())),
            (Some("-1"), Err(())),
            (Some(""), Err(())),
            (Some("\u{e9}"), Err(())),
        ] {
            let mut headers = HeaderMap::new();
            value.inspect(|value| _ = headers.insert(ROOST_AFTER, value.parse().unwrap()));
            assert_eq!(after(&headers).map_err(drop), expected, "{value:?}");
        }
    }
}
