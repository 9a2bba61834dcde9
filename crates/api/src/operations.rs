//! Routes for operators: health, readiness, metrics.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Uri};
use axum::response::{IntoResponse as _, Response};
use tokio::time::MissedTickBehavior;
use utoipa::ToSchema;

use crate::error::{ApiError, ErrorBody};
use crate::guard::RouteKind;
use crate::history::{EVERY, HistoryView};
use crate::page::{json, to_json};
use crate::query::Query;
use crate::routes::Routes;
use crate::state::AppState;

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("GET", "/healthz", RouteKind::Public, health);
    routes.on("GET", "/readyz", RouteKind::Public, readiness);
    routes.on("GET", "/metrics", RouteKind::Plain, metrics);
    routes.on("GET", "/metrics/history", RouteKind::Query, history);
}

/// The response of a healthy server.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer, which is written as bytes")]
pub(crate) struct Healthy {
    #[schema(example = true)]
    ok: bool,
}

/// Check that the server is alive
#[utoipa::path(
    get, path = "/healthz", operation_id = "check_health", tag = "operations", security(()),
    responses((status = 200, description = "The server is alive", body = Healthy))
)]
pub(crate) async fn health() -> Response {
    json(b"{\"ok\":true}".to_vec())
}

/// Check that the server takes requests
#[utoipa::path(
    get, path = "/readyz", operation_id = "check_readiness", tag = "operations", security(()),
    responses((status = 200, description = "The server takes requests", body = Healthy), (status = 503, description = "`starting`, `stopping` or `lagging`", body = ErrorBody))
)]
pub(crate) async fn readiness(State(state): State<Arc<AppState>>) -> Result<Response, ApiError> {
    if *state.closing.borrow() {
        return Err(ApiError::stopping());
    }
    if let Some(cluster) = state.node.cluster()
        && cluster.lag > state.max_lag
    {
        return Err(ApiError::lags(cluster.lag));
    }
    Ok(json(b"{\"ok\":true}".to_vec()))
}

/// Read metrics
///
/// In the OpenMetrics text format, for Prometheus.
#[utoipa::path(
    get, path = "/metrics", operation_id = "get_metrics", tag = "operations",
    responses((status = 200, description = "All metrics", body = String, content_type = "application/openmetrics-text"))
)]
pub(crate) async fn metrics(State(state): State<Arc<AppState>>) -> Result<Response, ApiError> {
    let mut response = encoded(&state).await?.into_response();
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    Ok(response)
}

/// Get measurements of the last hour
///
/// One sample every two seconds since the server started, at most 1,800. Rates are per second, times in seconds.
#[utoipa::path(
    get, path = "/metrics/history", operation_id = "get_metrics_history", tag = "operations",
    params(("after" = Option<u64>, Query, description = "Only samples later than this `at_ms`")),
    responses(
        (status = 200, description = "The samples of the last hour", body = HistoryView),
        (status = 400, description = "`bad_request`", body = ErrorBody),
    )
)]
pub(crate) async fn history(
    State(state): State<Arc<AppState>>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let after = Query::parse(&uri, &["after"])?.number("after")?.unwrap_or(0);
    let body = state.reads.run({
        let state = Arc::clone(&state);
        move || to_json(&state.history.after(after))
    });
    Ok(json(body.await?))
}

/// Takes samples of the metrics for their history, as long as the future is polled.
pub(crate) async fn keep_history(state: Arc<AppState>) -> Infallible {
    let mut turn = tokio::time::interval(EVERY);
    turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = None;
    loop {
        turn.tick().await;
        // If too many reads are queued, this measurement is skipped.
        if let Ok(text) = encoded(&state).await {
            state.history.add(&mut last, &text);
        }
    }
}

/// All metrics as text.
pub(crate) async fn encoded(state: &Arc<AppState>) -> Result<String, ApiError> {
    let sampled = Arc::clone(state);
    let text = state.reads.run(move || {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &sampled.registry).map(|()| text)
    });
    text.await?.map_err(|error| ApiError::internal(&error))
}
