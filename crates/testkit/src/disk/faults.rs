//! Faults of a disk while a process runs.

use std::fmt;

/// Faults of the disk while a process runs.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// The process stops at this operation from now: 1 is the next one.
    pub stop_at: Option<u64>,
    /// Bytes that can be written until the disk is full.
    pub bytes_left: Option<u64>,
    /// The write from now that fails.
    pub failed_write: Option<u64>,
    /// The sync from now that fails. As on Linux the data is lost, readers see it nevertheless, and later
    /// syncs succeed.
    pub failed_sync: Option<u64>,
    /// The write from now that lands in a wrong place and reports success.
    pub misdirected_write: Option<u64>,
    /// One in so many reads and writes is done in part only, or interrupted; 0 for none.
    pub partial: u64,
}

/// Only the faults that there are.
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

/// Counts an event; true if it is the one.
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
