//! `X-RateLimit-*` headers: the state of the rate that is nearest to its limit, among those that a request counts
//! towards.

use std::cell::Cell;

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;

use crate::entities::time::time;
use crate::limiter::Usage;

/// Headers that pages of other origins may read.
pub(crate) const EXPOSED: &str =
    "Link, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset";
const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

tokio::task_local! {
    /// Usage of the rate that is nearest to its limit for the client of this request.
    static USAGE: Cell<Option<Usage>>;
}

/// Records the usage of a rate by this request.
pub(crate) fn record(usage: Option<Usage>) {
    let Some(usage) = usage else { return };
    // Requests outside of the API's routes, such as pages, have no place for the value.
    let _ = USAGE.try_with(|kept| {
        let closest = kept.get().filter(|kept| kept.remaining <= usage.remaining);
        kept.set(closest.or(Some(usage)));
    });
}

/// Runs a request, and adds the headers to its response.
pub(crate) async fn add_to(
    run: impl Future<Output = Response>,
    now_ms: impl Fn() -> u64,
) -> Response {
    USAGE
        .scope(Cell::new(None), async {
            let mut response = run.await;
            let Some(usage) = USAGE.with(Cell::get) else { return response };
            let headers = response.headers_mut();
            headers.insert(LIMIT, usage.limit.into());
            headers.insert(REMAINING, usage.remaining.into());
            let reset = now_ms().saturating_add(usage.rest.as_millis() as u64);
            if let Ok(reset) = HeaderValue::try_from(time(reset)) {
                headers.insert(RESET, reset);
            }
            response
        })
        .await
}
