//! `GET /v1/cluster`, only for nodes of a cluster.

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
            .named("get_cluster", "Show the state of a cluster node")
            .shows::<ClusterView>("The node")
            .errors(&["no_cluster"]),
    ]
}

/// State of a cluster node
#[derive(Serialize, ToSchema)]
pub(crate) struct ClusterView {
    /// Id of the cluster: 32 hexadecimal digits
    #[schema(example = "5cf9d4a1cbd1b6d8f2b5f0e7d4c3a291")]
    cluster: String,
    /// Id of this node: 32 hexadecimal digits
    #[schema(example = "0a1b2c3d4e5f60718293a4b5c6d7e8f9")]
    node: String,
    /// Position in the cluster's log up to which this node has applied all changes
    position: u64,
    /// Time of the last change in milliseconds since 1970
    position_ms: u64,
    /// Digest of all applied changes, 16 hexadecimal digits; equal for nodes at the same position
    #[schema(example = "00f1e2d3c4b5a697")]
    digest: String,
    /// Position up to which this node no longer needs the log, even after a crash
    checkpoint: u64,
    /// Number of groups in the log that this node knows and has not applied
    lag_groups: u64,
    /// Milliseconds by which this node is behind the cluster, or for which it has not reached the log
    lag_ms: u64,
    /// Whether the cluster's log confirms changes in time
    accepts_changes: bool,
    /// Version of the commands that all live nodes know. Changes that need a later version get 503 (`upgrading`)
    commands: u32,
    /// Number of known files of pictures that this node still has to fetch
    missing_files: u64,
    /// Whether more files may be missing, because this node has not checked all pictures since its start
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
