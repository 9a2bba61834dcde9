//! Faults of a disk while a process runs.

use std::fmt;

/// Faults of the disk while a process runs.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// Operation during which the process stops. Counted from now: 1 is the next operation.
    pub stop_at: Option<u64>,
    /// Number of bytes that can be written before the disk is full.
    pub bytes_left: Option<u64>,
    /// Number of the write that fails. Counted from now: 1 is the next write.
    pub failed_write: Option<u64>,
    /// Number of the sync that fails, counted from now. As on Linux, the failed sync loses the data, but readers still
    /// see it, and later syncs succeed.
    pub failed_sync: Option<u64>,
    /// Number of the write that goes to a wrong place but reports success, counted from now.
    pub misdirected_write: Option<u64>,
    /// Makes one in this many reads and writes partial or interrupted; if 0, none.
    pub partial: u64,
}

/// Shows only the faults that are set.
impl fmt::Debug for Faults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [
            ("stop_at", self.stop_at),
            ("bytes_left", self.bytes_left),
            ("failed_write", self.failed_write),
            ("failed_sync", self.failed_sync),
            ("misdirected_write", self.misdirected_write),
            ("partial", Some(self.partial).filter(|times| *times > 0)),
        ];
        let set = named.iter().filter_map(|(name, number)| Some((*name, (*number)?)));
        out.debug_map().entries(set).finish()
    }
}

/// Decreases the number. Returns true if this was the last event.
pub(super) fn count_down(left: &mut Option<u64>) -> bool {
    match left {
        Some(0 | 1) => {
            *left = None;
            true
        }
        Some(more) => {
            *more -= 1;
            false
        }
        None => false,
    }
}
