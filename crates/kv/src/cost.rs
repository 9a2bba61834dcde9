//! Maximum cost of each operation on keys; see [`rows::Cost`].

use rows::{Cost, ROW_BYTES, WORK_PER_ROW};
use serde_bytes::Bytes;

use crate::bucket::BucketId;
use crate::limits::{
    KEY_BYTES_MAX, NUMBERED_BUCKETS, SWEEP_BYTES_MAX, SWEEP_ROWS_MAX, VALUE_BYTES_MAX,
};
use crate::op::{Expiry, KeyOp};

/// Memory of the row of a key, except the key and the value, in bytes.
const KEY_ROW_BYTES: usize = 128;
/// Maximum length of a sum of decimal numbers, in bytes: a sign, the digits of `f64::MAX` without an exponent, and
/// digits after the point.
const NUMBER_BYTES_MAX: usize = 400;

/// Upper bounds of the lengths of values when an operation is applied.
pub trait Lengths {
    /// Maximum length of the key's value when the operation is applied, in bytes; 0 if the key cannot have a value.
    fn value_bytes(&self, bucket: BucketId, key: &[u8]) -> usize;
}

impl KeyOp<'_> {
    /// Maximum cost when values have at most these lengths.
    #[must_use]
    pub fn cost(&self, lengths: &dyn Lengths) -> Cost {
        match self {
            Self::Put { bucket, key, value, expiry, old, .. } => {
                let expires = *expiry != Expiry::Never;
                let cost = write(key.len(), value.len(), expires);
                if *old { answering(cost, key, lengths.value_bytes(*bucket, key)) } else { cost }
            }
            Self::PutAll { pairs, .. } => {
                each(pairs, |(key, value)| write(key.len(), value.len(), false).and(look_up()))
            }
            Self::Remove { keys, .. } => each(keys, |key| write(key.len(), 0, false)),
            Self::Take { bucket, key, .. } => {
                let old = lengths.value_bytes(*bucket, key);
                answering(write(key.len(), 0, false), key, old)
            }
            Self::Add { key, .. } => write(key.len(), NUMBER_BYTES_MAX, true),
            Self::AddFloat { key, by, .. } => {
                let cost = write(key.len(), NUMBER_BYTES_MAX, true).and(look_up());
                answering(Cost { work: cost.work + 64 * by.len(), ..cost }, key, NUMBER_BYTES_MAX)
            }
            Self::Append { bucket, key, bytes } => {
                let old = lengths.value_bytes(*bucket, key);
                rewrite(key, old, old.saturating_add(bytes.len()))
            }
            Self::SetRange { bucket, key, offset, bytes } => {
                let end = usize::try_from(*offset).unwrap_or(usize::MAX);
                let old = lengths.value_bytes(*bucket, key);
                rewrite(key, old, end.saturating_add(bytes.len()).max(old))
            }
            Self::SetBit { bucket, key, offset, .. } => {
                let end = usize::try_from(*offset / 8).unwrap_or(usize::MAX).saturating_add(1);
                let old = lengths.value_bytes(*bucket, key);
                rewrite(key, old, end.max(old))
            }
            Self::Expire { bucket, key, read, .. } => {
                let old = lengths.value_bytes(*bucket, key);
                let cost = rewrite(key, 0, old);
                if *read { answering(cost, key, old) } else { cost }
            }
            Self::Rename { bucket, from, to, .. } => {
                let old = lengths.value_bytes(*bucket, from);
                rewrite(to, 0, old).and(write(from.len(), 0, false)).and(look_up())
            }
            Self::Copy { bucket, key, to, .. } => {
                rewrite(to, 0, lengths.value_bytes(*bucket, key)).and(look_up())
            }
            Self::Move { bucket, key, .. } => {
                let old = lengths.value_bytes(*bucket, key);
                rewrite(key, 0, old).and(write(key.len(), 0, false)).and(look_up())
            }
            Self::Flush { .. } => Cost::of_rows(FLUSH_ROWS, 64),
            Self::FlushNumbered => Cost::of_rows(FLUSH_ROWS * NUMBERED_BUCKETS as usize, 1_024),
            Self::Swap { .. } => Cost::of_rows(4, 64),
            Self::Begin { watched, .. } => each(watched, |_| look_up()),
            Self::Create { name } | Self::Drop { name } => {
                Cost::of_rows(FLUSH_ROWS + 2, 2 * name.as_str().len() + 64)
            }
            Self::Sweep => sweep(),
        }
    }

    /// Maximum cost, if it depends only on the operation.
    #[must_use]
    pub fn known_cost(&self) -> Option<Cost> {
        if !self.writes_possible_keys() {
            return None;
        }
        match self {
            Self::Put { old: false, .. }
            | Self::PutAll { .. }
            | Self::Remove { .. }
            | Self::Add { .. } => Some(self.cost(&Unknown)),
            _ => None,
        }
    }

    /// Whether keys may have values of unknown length after the operation. If so, the cost of later operations in the
    /// same group must be computed with the maximum length of a value.
    #[must_use]
    pub fn exchanges_keys(&self) -> bool {
        matches!(self, Self::Swap { .. })
    }
}

/// Lengths for operations whose cost does not depend on lengths.
struct Unknown;

impl Lengths for Unknown {
    fn value_bytes(&self, _: BucketId, _: &[u8]) -> usize {
        VALUE_BYTES_MAX
    }
}

/// Number of rows that emptying a bucket changes.
const FLUSH_ROWS: usize = 6;

/// Cost of writing the row of a key, storing its new expiry and removing the old one.
fn write(key: usize, value: usize, expires: bool) -> Cost {
    let held = key + value;
    let expiries = 1 + usize::from(expires);
    Cost {
        rows: 2 + expiries,
        bytes: KEY_ROW_BYTES + held + expiries * (ROW_BYTES + key),
        work: (3 + expiries) * WORK_PER_ROW + held,
        answer: 0,
        longest: value,
    }
}

/// Cost of writing a row whose value is derived from an old one of `old` bytes.
fn rewrite(key: &Bytes, old: usize, new: usize) -> Cost {
    let new = new.min(VALUE_BYTES_MAX);
    let cost = write(key.len(), new, true);
    // The new value is built before it is copied into its row.
    Cost { work: cost.work + old.min(new) + new, ..cost }
}

/// Adds the cost of keeping the old row for the answer.
fn answering(cost: Cost, key: &Bytes, old: usize) -> Cost {
    Cost { answer: KEY_ROW_BYTES + key.len() + old, ..cost }
}

fn look_up() -> Cost {
    Cost { work: WORK_PER_ROW, ..Cost::default() }
}

fn each<T>(items: &[T], cost: impl Fn(&T) -> Cost) -> Cost {
    items.iter().map(cost).fold(Cost::default(), Cost::and)
}

/// Cost of a sweep. The last row that it removes may have a key and a value of any length.
fn sweep() -> Cost {
    // The rows that the sweep may remove, 64 rows for the last step of a walk, and one that may exceed its limits.
    let rows = SWEEP_ROWS_MAX as usize + 65;
    let keys = SWEEP_BYTES_MAX + KEY_BYTES_MAX;
    Cost {
        rows: 4 * rows + 16,
        bytes: rows * (KEY_ROW_BYTES + 2 * ROW_BYTES) + 2 * keys,
        work: 8 * rows * WORK_PER_ROW + SWEEP_BYTES_MAX + VALUE_BYTES_MAX + KEY_BYTES_MAX,
        answer: 0,
        longest: 0,
    }
}
