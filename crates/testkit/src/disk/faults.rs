//! Faults of a disk while a process runs.

use std::fmt;

/// Faults of the disk while a process runs.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// Operation at which the process stops, counted from now: 1 is the next one.
    pub stop_at: Option<u64>,
    /// Number of bytes that can be written until the disk is full.
    pub bytes_left: Option<u64>,
    /// Number of the write that fails, counted from now: 1 is the next one.
    pub failed_write: Option<u64>,
    /// Number of the sync that fails, counted from now. As on Linux, the data is lost, readers still see it, and later
    /// syncs succeed.
    pub failed_sync: Option<u64>,
    /// Number of the write that lands in a wrong place but reports success, counted from now.
    pub misdirected_write: Option<u64>,
    /// Makes one in this many reads and writes partial or interrupted; 0 for none.
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

/// Counts an event down. Returns true for the last one.
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
