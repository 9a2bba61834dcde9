//! Rows before they were changed by the command that is being applied, so that its changes can be undone.
//!
//! Putting a row into the overlay returns the row that it replaces, so undoing needs no reads. Until the command is
//! applied, each changed row takes the memory of an entry with the replaced row.

use kv::{Bucket, BucketId, KeyRow};
use rows::{NameTable, PointTable, SetTable, Totals, Value};

use crate::items::LayerRow;

/// Number of entries whose memory is reused for the next command.
const SPARE_ENTRIES: usize = 1_024;

/// Row of the overlay before a change; unknown if the overlay had no such row.
pub(crate) enum Before {
    Point(PointTable, u64, LayerRow<Value>),
    Member(SetTable, u64, u64, LayerRow<u64>),
    Name(NameTable, Box<[u8]>, LayerRow<Value>),
    /// New row, and the row that it replaced.
    Key(KeyRow, Option<KeyRow>),
    Bucket(BucketId, Option<Bucket>),
}

/// Changes of a command, oldest first.
#[derive(Default)]
pub(crate) struct Undo {
    /// Whether changes are recorded.
    pub(crate) is_on: bool,
    pub(crate) before: Vec<Before>,
    /// Totals before their first change.
    pub(crate) totals: Option<Totals>,
}

impl Undo {
    /// Begins to record changes.
    pub(crate) fn begin(&mut self) {
        self.is_on = true;
    }

    /// Drops the recorded changes and stops recording.
    pub(crate) fn end(&mut self) {
        self.is_on = false;
        self.before.clear();
        self.before.shrink_to(SPARE_ENTRIES);
        self.totals = None;
    }

    pub(crate) fn note(&mut self, before: impl FnOnce() -> Before) {
        if self.is_on {
            self.before.push(before());
        }
    }
}
