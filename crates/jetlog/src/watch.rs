//! Task that watches the stream. If the configuration of the stream could lose data, the task makes the log refuse
//! changes. It also records the end of the stream, so that the node knows how far it lags.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::stream::Stream;
use commitlog::{ClusterId, Position};

use crate::error::JetLogError;
use crate::shared::Shared;
use crate::{JetLogOptions, stream};

/// Interval at which the state of the stream is read.
const INTERVAL: Duration = Duration::from_secs(5);

/// Runs until the log is dropped.
pub(crate) async fn run(
    stream: Stream,
    options: JetLogOptions,
    cluster: ClusterId,
    shared: Arc<Shared>,
) {
    let mut interval = tokio::time::interval(INTERVAL);
    loop {
        interval.tick().await;
        // If there is no answer, changes are refused for that reason anyway.
        let Ok(info) = stream.get_info().await else { continue };
        shared.note_end(Position(info.state.last_sequence));
        match stream::check(&info.config, &options, cluster) {
            Ok(()) => shared.refuse(None),
            Err(error @ JetLogError::Config { .. }) => shared.refuse(Some(error.to_string())),
            // The reader gets the same error and stops the log.
            Err(_) => {}
        }
    }
}
