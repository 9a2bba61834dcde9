//! Pages of other origins that the operator names: browsers let them send requests with a token and read the responses.
//!
//! **Invariant:** no response permits credentials. So no page of another origin uses a cookie of this server, and its
//! requests never count as those of an application. **Invariant:** a preflight request is answered before anything is
//! looked up or counted.

use std::str::FromStr;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
    VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use edge::only;

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE");
/// Request headers that pages may set.
const ALLOWED: HeaderValue = HeaderValue::from_static(
    "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID",
);
/// Response headers that pages may read.
const EXPOSED: HeaderValue =
    HeaderValue::from_static("ETag, Idempotent-Replayed, Location, Retry-After, X-Request-Id");
/// Seconds for which browsers cache a preflight. Browsers cache it for at most two hours or a day.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// Maximum number of origins. Each request of a page is compared with all of them.
const ORIGINS_MAX: usize = 64;

/// Origins whose pages may send requests (default: none).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins(Arc<[HeaderValue]>);

/// Invalid list of origins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "give up to 64 origins with commas between them: https://app.example,http://localhost:5173"
)]
pub struct BadOrigins;

impl FromStr for Origins {
    type Err = BadOrigins;

    fn from_str(text: &str) -> Result<Self, BadOrigins> {
        let texts: Vec<_> =
            text.split(',').map(str::trim).filter(|_| text.trim() != "none").collect();
        if texts.len() > ORIGINS_MAX {
            return Err(BadOrigins);
        }
        let origins = texts.into_iter().map(|text| {
            // Browsers send hosts in lower case.
            let text = text.to_ascii_lowercase();
            let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
            let is_host = host.is_some_and(|host| !host.is_empty() && host.bytes().all(is_plain));
            // Browsers omit the default port.
            let has_default = match text.starts_with("https:") {
                true => text.ends_with(":443"),
                false => text.ends_with(":80"),
            };
            let is_origin = is_host && !has_default;
            HeaderValue::try_from(text.as_str()).ok().filter(|_| is_origin).ok_or(BadOrigins)
        });
        origins.collect::<Result<_, _>>().map(Self)
    }
}

impl Origins {
    /// Whether no other origin is allowed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Mark of a request from a page of an allowed origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfOtherPage;

/// Allows pages of these origins to use the routes.
pub(crate) fn allow(router: Router, Origins(origins): Origins) -> Router {
    if origins.is_empty() {
        return router;
    }
    router.layer(from_fn(move |mut request: Request, next: Next| {
        let allowed = allowed(&origins, request.headers());
        if allowed.is_some() {
            request.extensions_mut().insert(OfOtherPage);
        }
        async move {
            let is_preflight = request.method() == Method::OPTIONS
                && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
            let mut response = match &allowed {
                Some(_) if is_preflight => preflight(),
                _ => next.run(request).await,
            };
            let headers = response.headers_mut();
            headers.append(VARY, HeaderValue::from_name(ORIGIN));
            if let Some(origin) = allowed {
                headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
                headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
            }
            response
        }
    }))
}

/// Origin of a request, if it is allowed.
fn allowed(origins: &[HeaderValue], headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = only(headers, &ORIGIN).ok()??;
    origins.iter().find(|allowed| *allowed == origin).cloned()
}

fn preflight() -> Response {
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED),
        (ACCESS_CONTROL_MAX_AGE, MAX_AGE),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_and_a_host() {
        for (text, expect) in [
            ("none", Some(vec![])),
            ("https://app.example", Some(vec!["https://app.example"])),
            (
                "HTTPS://App.example , http://[::1]:5173",
                Some(vec!["https://app.example", "http://[::1]:5173"]),
            ),
            ("", None),
            ("*", None),
            ("null", None),
            ("https://*.example", None),
            ("https://app.example/", None),
            ("https://app.example:443", None),
            ("http://app.example:80", None),
            ("http://app.example:443", Some(vec!["http://app.example:443"])),
            ("app.example", None),
            ("https://a.example,", None),
            ("none,https://a.example", None),
        ] {
            let found = text.parse::<Origins>().ok();
            let expect =
                expect.map(|list| list.into_iter().map(HeaderValue::from_static).collect());
            assert_eq!(found, expect.map(Origins), "{text:?}");
        }
        let many = |count| vec!["http://a"; count].join(",").parse::<Origins>();
        assert!(many(ORIGINS_MAX).is_ok() && many(ORIGINS_MAX + 1).is_err());
    }
}
