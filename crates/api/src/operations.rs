//! What those who run the server ask: does it live, does it take requests, what does it measure.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};

use crate::error::{ErrorBody, Problem};
use crate::guard::Entry;
use crate::page::json;
use crate::routes::Routes;
use crate::state::Edge;

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("GET", "/healthz", Entry::Public, health);
    routes.on("GET", "/readyz", Entry::Public, readiness);
    routes.on("GET", "/metrics", Entry::Plain, metrics);
}

/// Liveness
#[utoipa::path(get, path = "/healthz", tag = "operations", security(()), responses((status = 200)))]
pub(crate) async fn health() -> Response {
    json(b"{\"ok\":true}".to_vec())
}

/// Readiness
#[utoipa::path(
    get, path = "/readyz", tag = "operations", security(()),
    responses((status = 200), (status = 503, description = "`stopping`", body = ErrorBody))
)]
pub(crate) async fn readiness(State(edge): State<Arc<Edge>>) -> Result<Response, Problem> {
    if *edge.closing.borrow() {
        return Err(Problem::stopping());
    }
    Ok(json(b"{\"ok\":true}".to_vec()))
}

/// Get all metrics, for Prometheus
#[utoipa::path(
    get, path = "/metrics", tag = "operations",
    responses((status = 200, content_type = "application/openmetrics-text"))
)]
pub(crate) async fn metrics(State(edge): State<Arc<Edge>>) -> Result<Response, Problem> {
    let mut response = encoded(&edge).await?.into_response();
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    Ok(response)
}

/// Everything measured, as text.
pub(crate) async fn encoded(edge: &Arc<Edge>) -> Result<String, Problem> {
    let sampled = Arc::clone(edge);
    let text = edge.reads.run(move || {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &sampled.registry).map(|()| text)
    });
    text.await?.map_err(|error| Problem::internal(&error))
}
