//! Files that anybody may load: the pages at `/` and what they load from `/assets/`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use edge::{FileSource, Lookup};

use crate::error::Problem;
use crate::guard::Entry;
use crate::input::path;
use crate::routes::Routes;
use crate::state::Edge;

/// Adds the pages.
pub(crate) fn route(routes: &mut Routes<'_>, pages: Arc<dyn FileSource>) {
    let shell = Arc::clone(&pages);
    routes.on("GET", "/", Entry::Public, |State(edge): State<Arc<Edge>>, headers: HeaderMap| {
        answer(edge, shell, String::new(), headers)
    });
    let asset = |State(edge): State<Arc<Edge>>, Name(name): Name, headers: HeaderMap| {
        answer(edge, pages, name, headers)
    };
    routes.on("GET", "/assets/{*file}", Entry::Public, asset);
}

/// The part of a path that names a file.
pub(crate) struct Name(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self(path(parts).await?))
    }
}

async fn answer(
    edge: Arc<Edge>,
    files: Arc<dyn FileSource>,
    name: String,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let file = match files.find(&name) {
        Lookup::Found(file) => Some(file),
        Lookup::Absent => None,
        Lookup::Load(load) => edge.reads.run(load).await?,
    };
    let file = file.ok_or_else(Problem::not_found)?;
    Ok(file.answer(&headers).map(Body::from))
}
