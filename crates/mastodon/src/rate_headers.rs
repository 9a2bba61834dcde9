//! `X-RateLimit-*`: what a client has left of the rate that it comes closest to, of those that a request was counted for.

use std::cell::Cell;

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;

use crate::entities::time::time;
use crate::limiter::Usage;

/// The headers that pages of other origins may read.
pub(crate) const EXPOSED: &str =
    "Link, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset";
const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

tokio::task_local! {
    /// Rest of the rate that the client of this request comes closest to.
    static USAGE: Cell<Option<Usage>>;
}

/// Records that this request was counted.
pub(crate) fn record(usage: Option<Usage>) {
    let Some(usage) = usage else { return };
    // Outside of a route of the API, as on a page, nobody reads it.
    let _ = USAGE.try_with(|kept| {
        let closest = kept.get().filter(|kept| kept.remaining <= usage.remaining);
        kept.set(closest.or(Some(usage)));
    });
}

/// Adds the headers to the response of a request that is being carried out.
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
