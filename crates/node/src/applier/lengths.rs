//! How long values can be when an operation of the group under construction is applied.

use std::cell::Cell;

use feed::keys::KeyOp;
use feed::limits::VALUE_BYTES_MAX;
use feed::{BucketId, Cost, Facts, Lengths, Rows};

/// Lengths as the facts have them, but at least that of the longest value that an earlier operation of
/// the group may leave: it may be the same key, under whatever name.
pub(super) struct GroupLengths<'a, R: Rows> {
    pub(super) facts: Facts<'a, R>,
    /// The longest value so far, in bytes.
    pub(super) longest: Cell<usize>,
}

impl<R: Rows> GroupLengths<'_, R> {
    /// The cost of the next operation of the group.
    pub(super) fn cost(&self, op: &KeyOp<'_>) -> Cost {
        let cost = op.cost(self);
        let new = if op.exchanges_keys() { VALUE_BYTES_MAX } else { cost.longest };
        self.longest.set(self.longest.get().max(new));
        Cost { longest: self.longest.get(), ..cost }
    }
}

impl<R: Rows> Lengths for GroupLengths<'_, R> {
    fn value_bytes(&self, bucket: BucketId, key: &[u8]) -> usize {
        if self.longest.get() >= VALUE_BYTES_MAX {
            return VALUE_BYTES_MAX;
        }
        let row = self.facts.bucket(bucket).and_then(|bucket| self.facts.key(bucket.space, key));
        row.map_or(0, |row| row.value().len()).max(self.longest.get())
    }

    fn bucket_count(&self) -> usize {
        self.facts.bucket_count()
    }
}
