//! Buckets. All of them are in memory.

use hashbrown::HashMap;
use kv::limits::NUMBERED_BUCKETS;
use kv::{Bucket, BucketId, Space};

use crate::disk::{Disk, KeyspaceKind};
use crate::error::StoreError;
use crate::layout;

/// Buckets by id. Numbered buckets exist from the beginning.
pub(crate) struct Buckets {
    by_id: HashMap<BucketId, Bucket>,
    /// Number of keys of all buckets.
    keys: u64,
}

impl Buckets {
    pub(crate) fn read(disk: &Disk) -> Result<Self, StoreError> {
        let numbered = (0..NUMBERED_BUCKETS)
            .map(|number| (BucketId(number.into()), Bucket::empty(Space(number))));
        let mut buckets = Self { by_id: numbered.collect(), keys: 0 };
        for row in disk.prefix(KeyspaceKind::Facts, &layout::BUCKETS_PREFIX) {
            let (key, bytes) = row?;
            let (Some(id), Some(bucket)) = (layout::read_bucket(&key), Bucket::decode(&bytes))
            else {
                return Err(StoreError::Damaged("a bucket is malformed"));
            };
            buckets.put(id, Some(bucket));
        }
        Ok(buckets)
    }

    pub(crate) fn find(&self, id: BucketId) -> Option<Bucket> {
        self.by_id.get(&id).copied()
    }

    pub(crate) fn ids(&self) -> Vec<BucketId> {
        let mut ids: Vec<BucketId> = self.by_id.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    pub(crate) fn count(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn keys(&self) -> u64 {
        self.keys
    }

    /// Sets or removes a bucket; returns its previous state.
    pub(crate) fn put(&mut self, id: BucketId, bucket: Option<Bucket>) -> Option<Bucket> {
        let keys = bucket.map_or(0, |bucket| bucket.keys);
        let old = match bucket {
            Some(bucket) => self.by_id.insert(id, bucket),
            None => self.by_id.remove(&id),
        };
        self.keys = self.keys.wrapping_add(keys).wrapping_sub(old.map_or(0, |old| old.keys));
        old
    }
}
