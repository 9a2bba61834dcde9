//! The frame of all pages, and responses.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

use crate::error::ApiError;

/// A page to be sent.
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) title: &'static str,
    pub(crate) main: Markup,
    /// Where its forms may lead besides this server, as a source of a Content-Security-Policy.
    pub(crate) leads_to: Option<String>,
}

impl Page {
    pub(crate) fn new(title: &'static str, main: Markup) -> Self {
        Self { status: StatusCode::OK, title, main, leads_to: None }
    }

    /// A page that only says what is wrong.
    pub(crate) fn of_error(error: &ApiError) -> Self {
        let main = html! {
            p role="alert" { (error.message()) }
            p { a href="/" { "Back to the server" } }
        };
        Self { status: error.status(), ..Self::new("This did not work", main) }
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let Self { status, title, main, leads_to } = self;
        let body = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    title { (title) " - roost" }
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    link rel="icon" href="/assets/icon.svg" type="image/svg+xml";
                    link rel="stylesheet" href="/assets/css/base.css";
                    link rel="stylesheet" href="/assets/css/parts.css";
                    link rel="stylesheet" href="/assets/css/forms.css";
                }
                body.forms {
                    main.forms {
                        p.brand { a href="/" { "roost" } }
                        h1 { (title) }
                        (main)
                    }
                }
            }
        };
        let leads_to = leads_to.map(|source| format!(" {source}")).unwrap_or_default();
        let policy = format!(
            "default-src 'none'; style-src 'self'; img-src 'self'; font-src 'self'; base-uri 'none'; \
             form-action 'self'{leads_to}; frame-ancestors 'none'"
        );
        let mut response = (status, body.into_string()).into_response();
        let headers = response.headers_mut();
        let policy = HeaderValue::try_from(policy);
        let strict = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
        headers.insert(CONTENT_SECURITY_POLICY, policy.unwrap_or(strict));
        for (name, value) in [
            (CONTENT_TYPE, "text/html; charset=utf-8"),
            (CACHE_CONTROL, "no-store"),
            // URLs of these pages have parameters of apps.
            (REFERRER_POLICY, "no-referrer"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (X_FRAME_OPTIONS, "DENY"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// Sends the browser to a URL that was made here.
pub(crate) fn see_other(url: &str) -> Response {
    let Ok(location) = HeaderValue::try_from(url) else {
        return Page::of_error(&ApiError::internal()).into_response();
    };
    let headers = [
        (LOCATION, location),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// The response of a page's handler.
pub(crate) type Answer = Result<Response, Failed>;

/// An error, shown as a page.
pub(crate) struct Failed(ApiError);

impl From<ApiError> for Failed {
    fn from(error: ApiError) -> Self {
        Self(error)
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        Page::of_error(&self.0).into_response()
    }
}
