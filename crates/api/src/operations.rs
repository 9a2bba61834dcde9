//! Routes for operators: health, readiness, metrics.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use tokio::time::MissedTickBehavior;
use utoipa::ToSchema;

use crate::MAX_LAG_DEFAULT;
use crate::error::ApiError;
use crate::history::{EVERY, HistoryView};
use crate::page::{json, to_json};
use crate::query::Query;
use crate::route::{Inputs, Reads, Route, inline};
use crate::state::AppState;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::public("/healthz", health)
            .named("check_health", "Check that the server is alive")
            .shows::<Healthy>("The server is alive"),
        Route::public("/readyz", readiness)
            .named("check_readiness", "Check that the server takes requests")
            .text("During the start this route, like all others except `/healthz`, responds with the error `starting`.")
            .shows::<Healthy>("The server takes requests")
            .errors(&["stopping"])
            .error(ApiError::lags(MAX_LAG_DEFAULT)),
        Route::get("/metrics", metrics)
            .named("get_metrics", "Read metrics")
            .text("The OpenMetrics text format, for Prometheus.")
            .answers_with("All metrics", "application/openmetrics-text", inline::<String>),
        Route::get("/metrics/history", history)
            .named("get_metrics_history", "Get measurements of the last hour")
            .text("One sample every two seconds since the server started, at most 1,800. Rates \
                 are per second, times in seconds.")
            .shows::<HistoryView>("The samples of the last hour"),
    ]
}

/// The response of a healthy server.
#[derive(ToSchema)]
#[expect(dead_code, reason = "schema of the response, which is written as bytes")]
pub(crate) struct Healthy {
    #[schema(example = true)]
    ok: bool,
}

pub(crate) async fn health() -> Response {
    json(b"{\"ok\":true}".to_vec())
}

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

pub(crate) async fn metrics(State(state): State<Arc<AppState>>) -> Result<Response, ApiError> {
    let mut response = encoded(&state).await?.into_response();
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    Ok(response)
}

/// Time after which samples are requested.
pub(crate) struct Since(u64);

impl<S: Send + Sync> FromRequestParts<S> for Since {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self(Query::parse(&parts.uri, &["after"])?.number("after")?.unwrap_or(0)))
    }
}

impl Reads for Since {
    fn describe(inputs: &mut Inputs) {
        inputs.number("after", "Only samples later than this `at_ms`.", 0..=u64::MAX);
    }
}

pub(crate) async fn history(
    State(state): State<Arc<AppState>>,
    Since(after): Since,
) -> Result<Response, ApiError> {
    let body = state.reads.run({
        let state = Arc::clone(&state);
        move || to_json(&state.history.after(after))
    });
    Ok(json(body.await?))
}

/// Takes samples of the metrics for their history while the future is polled.
pub(crate) async fn keep_history(state: Arc<AppState>) -> Infallible {
    let mut turn = tokio::time::interval(EVERY);
    turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = None;
    loop {
        turn.tick().await;
        // If too many reads are queued, this sample is skipped.
        if let Ok(text) = encoded(&state).await {
            state.history.add(&mut last, &text);
        }
    }
}

/// Encodes all metrics as text.
pub(crate) async fn encoded(state: &Arc<AppState>) -> Result<String, ApiError> {
    let sampled = Arc::clone(state);
    let text = state.reads.run(move || {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &sampled.registry).map(|()| text)
    });
    text.await?.map_err(|error| ApiError::fault(&error))
}
