//! Operations on whole buckets. Their time is independent of the number of keys.

use super::{Answer, Keys};
use crate::answer::{KeyAnswer, KeyRefusal};
use crate::bucket::{Bucket, BucketId, BucketName, Space};
use crate::limits;

impl Keys<'_, '_> {
    pub(super) fn create(&mut self, name: &BucketName) -> Answer {
        if self.txn.facts().bucket_named(name).is_some() {
            return Ok(KeyAnswer::Nothing);
        }
        if self.txn.facts().bucket_count() >= limits::BUCKETS_MAX {
            return Err(KeyRefusal::TooManyBuckets);
        }
        let space = self.new_space()?;
        let made = self.txn.facts().totals().buckets_made;
        let id = BucketId(u64::from(limits::NUMBERED_BUCKETS) + made);
        self.txn.total(|totals| totals.buckets_made += 1);
        self.txn.put_bucket_name(name, Some(id));
        self.txn.put_bucket(id, Some(Bucket::empty(space)));
        Ok(KeyAnswer::Number(id.0 as i64))
    }

    pub(super) fn drop_bucket(&mut self, name: &BucketName) -> Answer {
        if name.numbered().is_some() {
            return Err(KeyRefusal::BucketStays);
        }
        let id = self.txn.facts().bucket_named(name).ok_or(KeyRefusal::BucketNotFound)?;
        let bucket = self.bucket(id)?;
        self.txn.orphan_space(bucket);
        self.txn.put_bucket_name(name, None);
        self.txn.put_bucket(id, None);
        Ok(KeyAnswer::Done)
    }

    pub(super) fn flush(&mut self, bucket: BucketId) -> Answer {
        let bucket_now = self.bucket(bucket)?;
        self.empty(bucket, bucket_now)?;
        Ok(KeyAnswer::Done)
    }

    pub(super) fn flush_numbered(&mut self) -> Answer {
        for id in (0..limits::NUMBERED_BUCKETS).map(|id| BucketId(id.into())) {
            self.flush(id)?;
        }
        Ok(KeyAnswer::Done)
    }

    pub(super) fn swap(&mut self, a: BucketId, b: BucketId) -> Answer {
        let (of_a, of_b) = (self.bucket(a)?, self.bucket(b)?);
        self.txn.put_bucket(a, Some(of_b));
        self.txn.put_bucket(b, Some(of_a));
        Ok(KeyAnswer::Done)
    }

    fn empty(&mut self, id: BucketId, bucket: Bucket) -> Result<(), KeyRefusal> {
        if bucket.keys > 0 {
            let space = self.new_space()?;
            self.txn.orphan_space(bucket);
            self.txn.put_bucket(id, Some(Bucket::empty(space)));
        }
        Ok(())
    }

    fn new_space(&mut self) -> Result<Space, KeyRefusal> {
        if let Some(space) = self.txn.facts().first_free_space() {
            self.txn.put_free_space(space, false);
            return Ok(space);
        }
        let made = self.txn.facts().totals().spaces;
        let space = made.checked_add(limits::NUMBERED_BUCKETS).map(Space);
        let space = space.ok_or(KeyRefusal::SpacesUsedUp)?;
        self.txn.total(|totals| totals.spaces += 1);
        Ok(space)
    }
}
