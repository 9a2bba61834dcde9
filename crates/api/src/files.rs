//! Public files: the pages at `/` and their assets at `/assets/`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use edge::{FileSource, Lookup};

use crate::error::ApiError;
use crate::guard::RouteKind;
use crate::input::path;
use crate::routes::Routes;
use crate::state::AppState;

/// Adds the pages.
pub(crate) fn route(routes: &mut Routes<'_>, pages: Arc<dyn FileSource>) {
    let shell = Arc::clone(&pages);
    routes.on(
        "GET",
        "/",
        RouteKind::Public,
        |State(state): State<Arc<AppState>>, headers: HeaderMap| {
            answer(state, shell, String::new(), headers)
        },
    );
    let asset = |State(state): State<Arc<AppState>>, Name(name): Name, headers: HeaderMap| {
        answer(state, pages, name, headers)
    };
    routes.on("GET", "/assets/{*file}", RouteKind::Public, asset);
}

/// The part of a path that names a file.
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
