//! All buckets, in memory.

use hashbrown::HashMap;
use kv::limits::NUMBERED_BUCKETS;
use kv::{Bucket, BucketId, Space};

use crate::disk::{Disk, Part};
use crate::error::StoreError;
use crate::layout;

/// Buckets by id. Numbered buckets exist from the beginning.
pub(crate) struct Buckets(HashMap<BucketId, Bucket>);

impl Buckets {
    pub(crate) fn read(disk: &Disk) -> Result<Self, StoreError> {
        let numbered = (0..NUMBERED_BUCKETS)
            .map(|number| (BucketId(number.into()), Bucket::empty(Space(number))));
        let mut buckets = Self(numbered.collect());
        for row in disk.prefix(Part::Facts, &layout::BUCKETS_PREFIX) {
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
        self.0.get(&id).copied()
    }

    pub(crate) fn ids(&self) -> Vec<BucketId> {
        let mut ids: Vec<BucketId> = self.0.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn put(&mut self, id: BucketId, bucket: Option<Bucket>) {
        match bucket {
            Some(bucket) => self.0.insert(id, bucket),
            None => self.0.remove(&id),
        };
    }
}
