//! History of all groups appended to the log, and a log that records groups and compares what it reads with the
//! history.

use std::sync::Arc;

use bytes::Bytes;
use commitlog::{Arrived, LocalLog, Log, LogError, Position, SyncPoint};
use parking_lot::Mutex;

/// Recorded group.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) time_ms: u64,
    pub(crate) payload: Vec<u8>,
}

/// Groups from position 1 on. Includes groups whose append failed, until the log is opened again.
#[derive(Default)]
pub(crate) struct History {
    pub(crate) groups: Vec<Recorded>,
    /// Position of the last successful append.
    pub(crate) appended: u64,
    /// Last durable position.
    pub(crate) synced: u64,
    /// Position of the last group when the last sync point was taken.
    pub(crate) pointed: u64,
}

/// Log that records appended groups.
pub(crate) struct RecordingLog {
    pub(crate) inner: LocalLog,
    pub(crate) history: Arc<Mutex<History>>,
}

impl Log for RecordingLog {
    fn append(&mut self, payload: Bytes, time_ms: u64) -> Result<(), LogError> {
        let position = self.inner.last().0 + 1;
        {
            let mut history = self.history.lock();
            history.groups.truncate(position as usize - 1);
            assert_eq!(history.groups.len() as u64 + 1, position, "positions have no gaps");
            history.groups.push(Recorded { time_ms, payload: payload.to_vec() });
        }
        Log::append(&mut self.inner, payload, time_ms)?;
        assert_eq!(self.inner.last().0, position);
        self.history.lock().appended = position;
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Arrived>, LogError> {
        let due = self.inner.delivered().0 + 1;
        let next = self.inner.next()?;
        if let Some(group) = &next {
            assert_eq!(group.position.0, due, "the log gives its groups in order, each once");
            let history = self.history.lock();
            let Some(recorded) = history.groups.get(due as usize - 1) else {
                panic!("the log has a group at {due} that was never appended")
            };
            assert!(
                recorded.payload == group.payload && group.time_ms == recorded.time_ms,
                "the group at {due} differs from the appended one"
            );
        } else {
            assert_eq!(due, self.inner.last().0 + 1, "the log gives all of its groups");
        }
        Ok(next)
    }

    fn sync(&mut self) -> Result<(), LogError> {
        self.inner.sync()?;
        self.history.lock().synced = self.inner.last().0;
        Ok(())
    }

    fn sync_point(&self) -> SyncPoint {
        self.history.lock().pointed = self.inner.last().0;
        self.inner.sync_point()
    }

    fn delivered(&self) -> Position {
        self.inner.delivered()
    }

    fn last_at_open(&self) -> Position {
        self.inner.last_at_open()
    }

    fn cut(&mut self, up_to: Position) -> Result<u64, LogError> {
        self.inner.cut(up_to)
    }

    fn renew(&mut self) -> Result<bool, LogError> {
        self.inner.renew()
    }

    fn is_renewed(&self) -> bool {
        self.inner.is_renewed()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }
}
