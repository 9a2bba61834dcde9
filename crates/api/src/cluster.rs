//! `GET /v1/cluster`, which only a node of a cluster has.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::page::{json, to_json};
use crate::route::Route;
use crate::state::AppState;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/cluster", cluster)
            .named("get_cluster", "Get the state of a node of a cluster")
            .shows::<ClusterView>("The node")
            .errors(&["no_cluster"]),
    ]
}

/// A node of a cluster
#[derive(Serialize, ToSchema)]
pub(crate) struct ClusterView {
    /// The cluster: 32 hexadecimal digits
    #[schema(example = "5cf9d4a1cbd1b6d8f2b5f0e7d4c3a291")]
    cluster: String,
    /// This node: 32 hexadecimal digits
    #[schema(example = "0a1b2c3d4e5f60718293a4b5c6d7e8f9")]
    node: String,
    /// Position in the log of the cluster up to which this node has made all changes
    position: u64,
    /// Time of the last change in milliseconds since 1970
    position_ms: u64,
    /// Digest of the changes so far, 16 hexadecimal digits: nodes at the same position have the same
    #[schema(example = "00f1e2d3c4b5a697")]
    digest: String,
    /// Position up to which this node does not need the log any more, even after a crash
    checkpoint: u64,
    /// Number of groups of the log that this node knows of and has not applied
    lag_groups: u64,
    /// For how many milliseconds this node has lacked a change, at most, or has not reached the log
    lag_ms: u64,
    /// Whether the log of the cluster confirms changes in time
    accepts_changes: bool,
    /// Version of the commands that all live nodes know: changes that need a later one get 503 (`upgrading`)
    commands: u32,
    /// Number of files of pictures that this node lacks and is about to fetch, as far as it knows
    missing_files: u64,
    /// Whether it may lack more of them: since its start it has not looked at all pictures yet
    fetches_files: bool,
}

pub(crate) async fn cluster(State(state): State<Arc<AppState>>) -> Result<Response, ApiError> {
    let status = state.node.cluster().ok_or_else(ApiError::no_cluster)?;
    let view = ClusterView {
        cluster: status.cluster,
        node: status.node,
        position: status.position,
        position_ms: status.position_ms,
        digest: format!("{:016x}", status.digest),
        checkpoint: status.checkpoint,
        lag_groups: status.lag_groups,
        lag_ms: u64::try_from(status.lag.as_millis()).unwrap_or(u64::MAX),
        accepts_changes: status.accepts_changes,
        commands: status.commands,
        missing_files: status.missing_files,
        fetches_files: status.fetches_files,
    };
    Ok(json(to_json(&view)))
}
