//! Pages of other origins, which the operator names: browsers let them send requests and read responses, with a token.
//!
//! **Invariant:** no response permits credentials, so no page of another origin uses a cookie of this server, and no
//! request of such a page is one of an application.
//! **Invariant:** what a browser asks first (a preflight) is answered before anything is looked up or counted.

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
/// Headers of requests that pages may set.
const ALLOWED: HeaderValue = HeaderValue::from_static(
    "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID",
);
/// Headers of responses that pages may read.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "ETag, Idempotent-Replayed, Link, Location, Retry-After, X-Request-Id",
);
/// Seconds for which a browser need not ask again: the most that browsers accept is two hours or a day.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// Most origins: each request of a page is compared with all of them.
const ORIGINS_MAX: usize = 64;

/// Origins whose pages may call; by default none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins(Arc<[HeaderValue]>);

/// A text that is no list of origins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is none, or up to 64 origins with commas between: https://app.example,http://localhost:5173"
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
            // As browsers send it.
            let text = text.to_ascii_lowercase();
            let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
            let is_host = host.is_some_and(|host| !host.is_empty() && host.bytes().all(is_plain));
            // Browsers leave the default port out.
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
    /// Whether pages of no other origin may call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Marks a request of a page of such an origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfOtherPage;

/// Routes that pages of these origins may call.
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

/// The origin of a request, if its pages may send requests.
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
