//! Implementation of [`Log`] for the writer of a node.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use commitlog::{Arrived, Log, LogEnd, LogError, NodeId, Position, SharedFiles, SyncPoint};

use crate::{JetLog, JetLogError};

impl From<JetLogError> for LogError {
    fn from(error: JetLogError) -> Self {
        Self::Shared(Box::new(error))
    }
}

impl Log for JetLog {
    fn append(&mut self, payload: Bytes, time_ms: u64) -> Result<(), LogError> {
        self.append(&payload, time_ms)?;
        Ok(())
    }

    fn sync_point(&self) -> SyncPoint {
        SyncPoint::durable(self.last)
    }

    fn delivered(&self) -> Position {
        self.last
    }

    fn node(&self) -> Option<NodeId> {
        Some(self.node)
    }

    fn last_at_open(&self) -> Position {
        self.last_at_open
    }

    fn payload_bytes_max(&self) -> usize {
        self.payload_bytes_max
    }

    fn next_within(&mut self, wait: Duration) -> Result<Option<Arrived>, LogError> {
        Ok(self.next(wait)?)
    }

    fn begin(&mut self, epoch: u64, wake: Box<dyn Fn() + Send + Sync>) {
        assert!(self.shared.wake.set(wake).is_ok(), "a log begins once");
        self.begin(epoch);
        // Groups may have arrived before `wake` was set.
        self.shared.wake();
    }

    fn next(&mut self) -> Result<Option<Arrived>, LogError> {
        Ok(self.next(Duration::ZERO)?)
    }

    fn refuses_changes(&self) -> bool {
        self.shared.refusal().is_some()
    }

    fn trim(&mut self, up_to: Position) {
        JetLog::trim(self, up_to);
    }

    fn end(&self) -> LogEnd {
        self.shared.end()
    }

    fn files(&self) -> Option<Arc<dyn SharedFiles>> {
        Some(self.files.clone())
    }
}
