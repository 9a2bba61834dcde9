//! Rows as they were before the command that is being applied, so that its changes can be taken back.
//!
//! A put into the overlay returns what it replaces there, so nothing is read for this. Memory: as many entries as a
//! command may change rows, and what they replaced, until the command is applied.

use kv::{Bucket, BucketId, KeyRow};
use rows::{NameTable, PointTable, SetTable, Totals, Value};

use crate::items::LayerRow;

/// Entries for which the memory is kept.
const SPARE_ENTRIES: usize = 1_024;

/// A row as the overlay had it before a change; unknown if the overlay had none.
pub(crate) enum Before {
    Point(PointTable, u64, LayerRow<Value>),
    Member(SetTable, u64, u64, LayerRow<u64>),
    Name(NameTable, Box<[u8]>, LayerRow<Value>),
    /// The row that was put, and the one that it replaced.
    Key(KeyRow, Option<KeyRow>),
    Bucket(BucketId, Option<Bucket>),
}

/// The changes of a command, oldest first.
#[derive(Default)]
pub(crate) struct Undo {
    /// Whether changes are noted.
    pub(crate) is_on: bool,
    pub(crate) before: Vec<Before>,
    /// As they were before the first change of them.
    pub(crate) totals: Option<Totals>,
}

impl Undo {
    /// Notes changes from now on.
    pub(crate) fn begin(&mut self) {
        self.is_on = true;
    }

    /// Forgets what it has noted, and notes nothing more.
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
