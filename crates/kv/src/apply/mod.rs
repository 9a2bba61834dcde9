//! Application of operations to the keys of buckets.
//!
//! An expired key does not exist, although its row may still be stored: every operation compares the expiry with the
//! time of its own stamp. The counts of a bucket include such rows until they are swept.

mod bucket;
mod name;
mod number;
mod string;
mod sweep;

pub use number::is_float;

use rows::Stamp;

use crate::answer::{KeyAnswer, KeyRefusal};
use crate::bucket::{Bucket, BucketId};
use crate::facts::{Facts, Txn};
use crate::key_rows::KeyRowsMut;
use crate::op::{Expiry, KeyOp, Only, OnlyExpiry, Watched};
use crate::ops::{KeyOps, OpPlace};
use crate::row::{KeyParts, KeyRow};

/// Maximum number of keys whose rows are prefetched together. More rows would evict each other from the processor's
/// cache.
const PREFETCH_KEYS: usize = 16;

/// Function that [`apply`] calls between operations, with the index of the next operation and the current facts.
pub type Between<'a> = dyn FnMut(usize, Facts<'_, dyn KeyRowsMut + '_>) + 'a;

/// Applies operations in order, and appends their results to `answers`. The first operation gets the stamp `first`,
/// each later one the next stamp. Calls `between` before each operation that is not skipped, and once after the last,
/// with the index of the next operation.
///
/// # Panics
/// If `first` is not greater than the last stamp, which means that the log is out of order.
pub fn apply(
    txn: &mut Txn<'_>,
    first: Stamp,
    ops: &KeyOps,
    between: &mut Between<'_>,
    answers: &mut Vec<KeyAnswer>,
) {
    txn.advance(first, ops.stamps());
    let mut skip = 0_u32;
    let mut prefetched = OpPlace::default();
    for (index, op) in ops.iter().enumerate() {
        if index == prefetched.ops && index + 1 < ops.len() {
            prefetched = prefetch(txn.facts(), ops, prefetched);
        }
        if skip > 0 {
            skip -= 1;
            answers.push(KeyAnswer::Skipped);
            continue;
        }
        between(index, txn.facts());
        let stamp = first.after(index as u64);
        let mut keys = Keys { txn: &mut *txn, stamp, now_ms: first.unix_ms() };
        if let KeyOp::Begin { watched, then } = &op
            && watched.iter().any(|watched| !keys.is_as_watched(watched))
        {
            skip = *then;
            answers.push(KeyAnswer::Skipped);
            continue;
        }
        answers.push(keys.run(&op).unwrap_or_else(KeyAnswer::Refused));
    }
    between(ops.len(), txn.facts());
}

/// Prefetches rows for the operations after `from`. Returns the place of the first operation without prefetched rows.
fn prefetch(facts: Facts<'_, dyn KeyRowsMut + '_>, ops: &KeyOps, from: OpPlace) -> OpPlace {
    let (mut place, mut keys) = (from, 0);
    while keys < PREFETCH_KEYS
        && let Some((op, after)) = ops.next(place)
    {
        op.each_key(&mut |bucket, key| {
            if keys < PREFETCH_KEYS {
                facts.prefetch_key(bucket, key);
                keys += 1;
            }
        });
        place = after;
    }
    place
}

type Answer = Result<KeyAnswer, KeyRefusal>;

/// State of one operation while it is applied.
struct Keys<'a, 'b> {
    txn: &'a mut Txn<'b>,
    stamp: Stamp,
    now_ms: u64,
}

/// Key with its bucket and row, as an operation finds it.
struct Found {
    id: BucketId,
    bucket: Bucket,
    /// Stored row, which may have expired.
    row: Option<KeyRow>,
    /// The row, if it has not expired.
    live: Option<KeyRow>,
}

impl Keys<'_, '_> {
    fn run(&mut self, op: &KeyOp<'_>) -> Answer {
        match op {
            KeyOp::Put { bucket, key, value, expiry, only, old } => {
                self.put(*bucket, key, value, (*expiry, *only), *old)
            }
            KeyOp::PutAll { bucket, pairs, only_new } => self.put_all(*bucket, pairs, *only_new),
            KeyOp::Remove { bucket, keys } => self.remove_all(*bucket, keys),
            KeyOp::Take { bucket, key, only } => self.take(*bucket, key, *only),
            KeyOp::Add { bucket, key, by } => self.add(*bucket, key, *by),
            KeyOp::AddFloat { bucket, key, by } => self.add_float(*bucket, key, by),
            KeyOp::Append { bucket, key, bytes } => self.append(*bucket, key, bytes),
            KeyOp::SetRange { bucket, key, offset, bytes } => {
                self.set_range(*bucket, key, *offset, bytes)
            }
            KeyOp::SetBit { bucket, key, offset, bit } => self.set_bit(*bucket, key, *offset, *bit),
            KeyOp::Expire { bucket, key, expiry, only, read } => {
                self.expire(*bucket, key, *expiry, *only, *read)
            }
            KeyOp::Rename { bucket, from, to, only_new } => {
                self.rename(*bucket, from, to, *only_new)
            }
            KeyOp::Copy { bucket, key, to_bucket, to, replace } => {
                self.copy((*bucket, key), (*to_bucket, to), *replace)
            }
            KeyOp::Move { bucket, key, to_bucket } => self.move_to(*bucket, key, *to_bucket),
            KeyOp::Flush { bucket } => self.flush(*bucket),
            KeyOp::FlushNumbered => self.flush_numbered(),
            KeyOp::Swap { a, b } => self.swap(*a, *b),
            KeyOp::Begin { .. } => Ok(KeyAnswer::Done),
            KeyOp::Create { name } => self.create(name),
            KeyOp::Drop { name } => self.drop_bucket(name),
            KeyOp::Sweep => Ok(self.sweep()),
        }
    }

    fn is_as_watched(&self, watched: &Watched<'_>) -> bool {
        let found = self.find(watched.bucket, watched.key);
        let live = found.ok().and_then(|found| found.live);
        live.map(|row| row.version()) == watched.version
    }

    fn bucket(&self, id: BucketId) -> Result<Bucket, KeyRefusal> {
        self.txn.facts().bucket(id).ok_or(KeyRefusal::BucketNotFound)
    }

    fn find(&self, id: BucketId, key: &[u8]) -> Result<Found, KeyRefusal> {
        let bucket = self.bucket(id)?;
        let row = self.txn.facts().key(bucket.space, key);
        let live = row.clone().filter(|row| row.is_live(self.now_ms));
        Ok(Found { id, bucket, row, live })
    }

    /// Time at which a key with `expiry` expires, if it is set now.
    fn expires_ms(&self, expiry: Expiry, found: &Found) -> Option<u64> {
        match expiry {
            Expiry::Keep => found.live.as_ref().and_then(KeyRow::expires_ms),
            Expiry::Never => None,
            Expiry::At(ms) => Some(ms),
            Expiry::In(ms) => Some(self.now_ms.saturating_add(ms)),
        }
    }

    /// Sets the found key; removes it if it expires immediately.
    fn write(&mut self, found: &Found, key: &[u8], value: &[u8], expires_ms: Option<u64>) {
        if expires_ms.is_some_and(|expires| expires <= self.now_ms) {
            self.erase(found);
            return;
        }
        let space = found.bucket.space;
        let row = KeyRow::new(KeyParts { space, key, value, expires_ms, version: self.stamp });
        self.txn.put_key(found.id, found.bucket, found.row.as_ref(), row);
    }

    /// Removes the found key, if it has a row.
    fn erase(&mut self, found: &Found) {
        if let Some(row) = &found.row {
            self.txn.remove_key(found.id, found.bucket, row, self.stamp);
        }
    }
}

impl Found {
    fn value(&self) -> &[u8] {
        self.live.as_ref().map_or(&[], KeyRow::value)
    }

    fn expires_ms(&self) -> Option<u64> {
        self.live.as_ref().and_then(KeyRow::expires_ms)
    }

    fn allows(&self, only: Only) -> bool {
        match only {
            Only::Always => true,
            Only::IfAbsent => self.live.is_none(),
            Only::IfPresent => self.live.is_some(),
            Only::IfVersion(version) => {
                self.live.as_ref().is_some_and(|row| row.version() == version)
            }
        }
    }
}

impl OnlyExpiry {
    /// Whether the condition allows a change of an expiry from `before` to `after`; `None` is no expiry.
    fn allows(self, before: Option<u64>, after: Option<u64>) -> bool {
        let at = |expires: Option<u64>| expires.unwrap_or(u64::MAX);
        let (later, earlier) = (at(after) > at(before), at(after) < at(before));
        match self {
            Self::Always => true,
            Self::IfNone => before.is_none(),
            Self::IfSome => before.is_some(),
            Self::IfLater => later,
            Self::IfEarlier => earlier,
            Self::IfSomeAndLater => before.is_some() && later,
            Self::IfSomeAndEarlier => before.is_some() && earlier,
        }
    }
}
