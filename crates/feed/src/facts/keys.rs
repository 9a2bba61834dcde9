//! Buckets and their keys among the facts.
//!
//! **Invariant:** a bucket counts the rows of its space, and a row that expires stands in the table of
//! expiries under the second in which it does.

use super::{Facts, Txn};
use crate::ids::{BucketId, Space, Stamp};
use crate::keys::{Bucket, KeyRow, key_hash};
use crate::limits::{NUMBERED_BUCKETS, SWEEP_SECONDS_MAX};
use crate::records::{decode, encode};
use crate::rows::{NameTable, PointTable, Rows, SetTable, Span};
use crate::text::BucketName;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// The row of a key, though it may have expired.
    #[must_use]
    pub fn key(&self, space: Space, key: &[u8]) -> Option<KeyRow> {
        self.rows.key(space, key)
    }

    /// Rows of keys in the order of their hashes; see [`Rows::keys`].
    #[must_use]
    pub fn rows_of_keys(&self, space: Space, from: u64, at_least: usize) -> Vec<KeyRow> {
        self.rows.keys(space, from, at_least)
    }

    /// A bucket that stands.
    #[must_use]
    pub fn bucket(&self, bucket: BucketId) -> Option<Bucket> {
        self.rows.bucket(bucket)
    }

    /// How many buckets were ever made; also the next [`BucketId`].
    #[must_use]
    pub fn buckets(&self) -> usize {
        self.rows.buckets()
    }

    /// The bucket of this name.
    #[must_use]
    pub fn bucket_named(&self, name: &BucketName) -> Option<BucketId> {
        let made = || self.rows.name(NameTable::Bucket, name.as_str().as_bytes());
        name.numbered().or_else(|| made().map(|row| decode(&row)))
    }

    /// The first named bucket whose name is not below `from`.
    #[must_use]
    pub fn first_bucket_from(&self, from: &[u8]) -> Option<(BucketName, BucketId)> {
        let key = self.rows.first_name(NameTable::Bucket, from)?;
        let id = self.rows.name(NameTable::Bucket, &key).map(|row| decode(&row))?;
        let name = std::str::from_utf8(&key).ok().and_then(BucketName::parse);
        name.map(|name| (name, id))
    }

    /// Whose keys lie in this space.
    #[must_use]
    pub(crate) fn bucket_of(&self, space: Space) -> Option<BucketId> {
        let row = self.rows.point(PointTable::BucketOfSpace, space.0.into());
        let first = (space.0 < NUMBERED_BUCKETS).then_some(BucketId(space.0));
        let id = row.map(|row| decode(&row)).or(first)?;
        self.bucket(id).filter(|bucket| bucket.space == space).map(|_| id)
    }

    /// Whether something waits for [`KeyOp::Sweep`](crate::keys::KeyOp::Sweep): keys that expired in a
    /// second from `from` to before `now`, or keys of a space that no bucket has. If more seconds have
    /// passed than one sweep walks, it is taken for granted.
    #[must_use]
    pub fn has_dead_keys(&self, from: u64, now: u64) -> bool {
        let one = Span { limit: 1, ..Span::ALL };
        let totals = self.totals();
        let from = from.max(totals.keys_sweep_second);
        let expired = || {
            now.saturating_sub(from) > SWEEP_SECONDS_MAX
                || (from..now).any(|second| !self.expiring_keys(second, one).is_empty())
        };
        totals.keys_expiring > 0 && expired() || self.first_left_space().is_some()
    }

    /// Hashes and spaces of keys that expire in `second`.
    pub(crate) fn expiring_keys(&self, second: u64, span: Span) -> Vec<(u64, Space)> {
        let rows = self.rows.members(SetTable::ExpiringKeys, second, span);
        rows.into_iter().map(|(hash, space)| (hash, Space(space as u32))).collect()
    }

    /// The first space that no bucket has, and from where on it is not swept yet.
    pub(crate) fn first_left_space(&self) -> Option<(Space, u64)> {
        let first = Span { limit: 1, ..Span::ALL };
        let rows = self.rows.members(SetTable::LeftSpaces, 0, first);
        rows.first().map(|(space, from)| (Space(*space as u32), *from))
    }
}

impl Txn<'_> {
    /// Puts a row of `bucket` in place of `old`.
    pub(crate) fn put_key(
        &mut self,
        id: BucketId,
        bucket: Bucket,
        old: Option<&KeyRow>,
        row: KeyRow,
    ) {
        let counted = Bucket {
            keys: bucket.keys + u64::from(old.is_none()),
            bytes: bucket.bytes + row.data_bytes() - old.map_or(0, KeyRow::data_bytes),
            ..bucket
        };
        if counted != bucket {
            self.rows.put_bucket(id, Some(counted));
        }
        let old_expiry = old.and_then(KeyRow::expires_ms);
        if old_expiry != row.expires_ms() {
            self.expect(&row, old_expiry, false);
            self.expect(&row, row.expires_ms(), true);
        }
        self.rows.put_key(row);
    }

    /// Removes a row of `bucket`.
    pub(crate) fn remove_key(&mut self, id: BucketId, bucket: Bucket, row: &KeyRow, stamp: Stamp) {
        let counted =
            Bucket { keys: bucket.keys - 1, bytes: bucket.bytes - row.data_bytes(), ..bucket };
        self.rows.put_bucket(id, Some(counted));
        self.remove_left_key(row, stamp);
    }

    /// Removes a row that no bucket counts.
    pub(crate) fn remove_left_key(&mut self, row: &KeyRow, stamp: Stamp) {
        self.expect(row, row.expires_ms(), false);
        self.rows.put_key(KeyRow::removed(row.space(), row.key(), stamp));
    }

    /// Notes when a key expires, or no longer.
    fn expect(&mut self, row: &KeyRow, expires_ms: Option<u64>, stands: bool) {
        if let Some(expires_ms) = expires_ms {
            let hash = key_hash(row.space(), row.key());
            self.put_expiring_key(expires_ms / 1_000, hash, row.space(), stands);
        }
    }

    pub(crate) fn put_expiring_key(&mut self, second: u64, hash: u64, space: Space, stands: bool) {
        let stood = self.rows.member(SetTable::ExpiringKeys, second, hash).is_some();
        if stood != stands {
            let number = stands.then_some(u64::from(space.0));
            self.rows.put_member(SetTable::ExpiringKeys, second, hash, number);
            self.total(|totals| match stands {
                true => {
                    let first =
                        if totals.keys_expiring == 0 { second } else { totals.keys_sweep_second };
                    totals.keys_sweep_second = first.min(second);
                    totals.keys_expiring += 1;
                }
                false => totals.keys_expiring -= 1,
            });
        }
    }

    /// Sets or removes a bucket, and notes whose its space is.
    pub(crate) fn put_bucket(&mut self, id: BucketId, bucket: Option<Bucket>) {
        if let Some(bucket) = bucket {
            let space = u64::from(bucket.space.0);
            self.rows.put_point(PointTable::BucketOfSpace, space, Some(encode(&id)));
        }
        self.rows.put_bucket(id, bucket);
    }

    /// Gives a name to a bucket, or takes it away.
    pub(crate) fn put_bucket_name(&mut self, name: &BucketName, id: Option<BucketId>) {
        let row = id.map(|id| encode(&id));
        self.rows.put_name(NameTable::Bucket, name.as_str().as_bytes(), row);
    }

    /// Leaves the space of a bucket to the sweep.
    pub(crate) fn leave_space(&mut self, bucket: Bucket) {
        self.rows.put_point(PointTable::BucketOfSpace, bucket.space.0.into(), None);
        if bucket.keys > 0 {
            self.put_left_space(bucket.space, Some(0));
        }
    }

    /// Notes from which hash on a left space is to be swept; nothing if it is empty.
    pub(crate) fn put_left_space(&mut self, space: Space, from: Option<u64>) {
        self.rows.put_member(SetTable::LeftSpaces, 0, space.0.into(), from);
    }
}
