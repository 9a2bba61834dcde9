//! Lengths of values when an operation of the group under construction will be applied.

use std::cell::Cell;

use kv::limits::VALUE_BYTES_MAX;
use kv::{BucketId, Facts, KeyOp, KeyRows, Lengths};
use rows::Cost;

/// Work of reading a row from the disk, in bytes copied: 30 microseconds.
const COLD_WORK: usize = 64 << 10;

/// Lengths of the stored values, but at least the length of the longest value that an earlier operation of the group
/// may leave: that operation may change the same key, even under another name.
pub(super) struct GroupLengths<'a, R: KeyRows> {
    facts: Facts<'a, R>,
    /// Length of the longest value so far, in bytes.
    longest: Cell<usize>,
    /// Whether some keys are not in memory, so that each key is loaded.
    cold: bool,
}

impl<'a, R: KeyRows> GroupLengths<'a, R> {
    /// Creates lengths for the operations after those whose longest value is `longest`.
    pub(super) fn new(facts: Facts<'a, R>, longest: usize) -> Self {
        Self { facts, longest: Cell::new(longest), cold: facts.has_cold_keys() }
    }

    /// Creates lengths for the first operations of a group, whose keys may be on disk.
    pub(super) fn in_memory_or_not(facts: Facts<'a, R>) -> Self {
        Self { facts, longest: Cell::new(0), cold: false }
    }
}

impl<R: KeyRows> GroupLengths<'_, R> {
    /// Returns the cost of the next operation of the group. Loads the rows of the operation's keys into memory, because
    /// readers would wait for the disk if the rows were loaded only when the group is applied.
    pub(super) fn cost(&self, op: &KeyOp<'_>) -> Cost {
        let mut cold = 0;
        if self.cold {
            op.each_key(&mut |bucket, key| cold += usize::from(self.facts.load_key(bucket, key)));
        }
        let mut cost = op.cost(self);
        cost.work += cold * COLD_WORK;
        let new = if op.exchanges_keys() { VALUE_BYTES_MAX } else { cost.longest };
        self.longest.set(self.longest.get().max(new));
        Cost { longest: self.longest.get(), ..cost }
    }
}

impl<R: KeyRows> Lengths for GroupLengths<'_, R> {
    fn value_bytes(&self, bucket: BucketId, key: &[u8]) -> usize {
        if self.longest.get() >= VALUE_BYTES_MAX {
            return VALUE_BYTES_MAX;
        }
        let row = self.facts.bucket(bucket).and_then(|bucket| self.facts.key(bucket.space, key));
        row.map_or(0, |row| row.value().len()).max(self.longest.get())
    }
}
