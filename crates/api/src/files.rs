//! Public files: the pages at `/`, their assets at `/assets/`, and the page for unknown addresses.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::{ACCEPT, ETAG, IF_NONE_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use edge::{FileSource, Lookup, MISSING_PAGE};

use crate::error::ApiError;
use crate::input::path;
use crate::route::Route;
use crate::state::AppState;

/// Routes of the pages.
pub(crate) fn routes(pages: &Arc<dyn FileSource>) -> Vec<Route> {
    let (shell, assets) = (Arc::clone(pages), Arc::clone(pages));
    let shell = |State(state): State<Arc<AppState>>, headers: HeaderMap| {
        answer(state, shell, String::new(), headers)
    };
    let asset = |State(state): State<Arc<AppState>>, Name(name): Name, headers: HeaderMap| {
        answer(state, assets, name, headers)
    };
    vec![Route::file("/", shell), Route::file("/assets/{*file}", asset)]
}

/// Path prefixes of programs, which get errors as JSON even in a browser.
const PROGRAMS: [&str; 3] = ["/v1/", "/api/", "/oauth/"];

/// Whether a person who followed a link or typed an address sent this request for an unknown path.
pub(crate) fn is_for_page(request: &Request) -> bool {
    let path = request.uri().path();
    let mut accepted =
        request.headers().get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    matches!(*request.method(), Method::GET | Method::HEAD)
        && !PROGRAMS.iter().any(|start| path.starts_with(start))
        && accepted.any(|value| value.contains("text/html"))
}

/// Responds with the page for unknown addresses and the status 404.
pub(crate) async fn missing(
    state: Arc<AppState>,
    pages: Arc<dyn FileSource>,
    mut headers: HeaderMap,
) -> Result<Response, ApiError> {
    // An error response has no ETag, so the client's ETag is ignored.
    headers.remove(IF_NONE_MATCH);
    let mut response = answer(state, pages, MISSING_PAGE.to_owned(), headers).await?;
    response.headers_mut().remove(ETAG);
    *response.status_mut() = StatusCode::NOT_FOUND;
    Ok(response)
}

/// Name of a file, from the path.
pub(crate) struct Name(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self(path(parts).await?))
    }
}

async fn answer(
    state: Arc<AppState>,
    files: Arc<dyn FileSource>,
    name: String,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let file = match files.find(&name) {
        Lookup::Found(file) => Some(file),
        Lookup::Absent => None,
        Lookup::Load(load) => state.reads.run(load).await?,
    };
    let file = file.ok_or_else(ApiError::not_found)?;
    Ok(file.answer(&headers).map(Body::from))
}
