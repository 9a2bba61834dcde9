//! Opening the log of a cluster.

use std::path::PathBuf;

use jetlog::{JetLog, JetLogOptions};
use node::{ClusterId, LogError, NodeId, Position, SharedLog};

/// The log on these NATS servers.
pub(crate) fn log_options(
    servers: &str,
    credentials: Option<PathBuf>,
    tls_ca: Option<PathBuf>,
) -> JetLogOptions {
    JetLogOptions { credentials, tls_ca, ..JetLogOptions::new(servers) }
}

/// Opens the log for a node. Blocks.
pub(crate) fn open_log(
    options: &JetLogOptions,
    cluster: ClusterId,
    node: NodeId,
    after: Position,
) -> Result<Box<dyn SharedLog>, LogError> {
    Ok(Box::new(JetLog::open(options, (cluster, node), after)?))
}
