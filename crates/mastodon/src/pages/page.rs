//! Frame of all pages, and their responses.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, RETRY_AFTER,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

use crate::error::ApiError;

/// Content-Security-Policy of a page whose form leads to an app. It has no `form-action`: Chrome applies it to all
/// redirects after the form, including unknown ones of the app's site.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; font-src 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";
/// Content-Security-Policy of all other pages.
const STRICT_POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; font-src 'self'; \
                             base-uri 'none'; frame-ancestors 'none'; form-action 'self'";

/// Page to be sent.
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) title: &'static str,
    pub(crate) main: Markup,
    /// Whether the forms may lead to other sites, such as that of an app.
    pub(crate) leads_anywhere: bool,
    pub(crate) retry_after_secs: Option<u64>,
}

impl Page {
    pub(crate) fn new(title: &'static str, main: Markup) -> Self {
        let status = StatusCode::OK;
        Self { status, title, main, leads_anywhere: false, retry_after_secs: None }
    }

    /// Page that only shows an error.
    pub(crate) fn of_error(error: &ApiError) -> Self {
        let main = html! {
            p role="alert" { (error.message()) }
            p { a href="/" { "Back to the server" } }
        };
        Self::new("This did not work", main).with_status_of(Some(error))
    }

    /// Sets the status of an error, if any.
    pub(crate) fn with_status_of(self, error: Option<&ApiError>) -> Self {
        let Some(error) = error else { return self };
        Self { status: error.status(), retry_after_secs: error.retry_after_secs(), ..self }
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let Self { status, title, main, leads_anywhere, retry_after_secs } = self;
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
        let mut response = (status, body.into_string()).into_response();
        let headers = response.headers_mut();
        if let Some(secs) = retry_after_secs {
            headers.insert(RETRY_AFTER, secs.into());
        }
        let policy = if leads_anywhere { POLICY } else { STRICT_POLICY };
        for (name, value) in [
            (CONTENT_SECURITY_POLICY, policy),
            (CONTENT_TYPE, "text/html; charset=utf-8"),
            (CACHE_CONTROL, "no-store"),
            // URLs of these pages contain parameters of apps.
            (REFERRER_POLICY, "no-referrer"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (X_FRAME_OPTIONS, "DENY"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// Redirects the browser to a URL made by this server.
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

/// Response of a page's handler.
pub(crate) type Answer = Result<Response, Failed>;

/// Error shown as a page.
pub(crate) struct Failed(ApiError);

impl Failed {
    /// Whether a form was refused because a page of another site may have sent it.
    pub(crate) fn is_of_another_site(&self) -> bool {
        self.0.status() == StatusCode::FORBIDDEN
    }
}

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
