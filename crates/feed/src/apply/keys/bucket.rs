//! Whole buckets. None of this takes longer when a bucket has more keys.

use super::{Answer, Keys};
use crate::ids::{BucketId, Space};
use crate::keys::{Bucket, KeyAnswer, KeyRefusal};
use crate::limits;
use crate::text::BucketName;

impl Keys<'_, '_> {
    pub(super) fn create(&mut self, name: &BucketName) -> Answer {
        if self.txn.facts().bucket_named(name).is_some() {
            return Ok(KeyAnswer::Nothing);
        }
        let next = self.txn.facts().buckets();
        if next >= limits::BUCKETS_MAX {
            return Err(KeyRefusal::TooManyBuckets);
        }
        let id = BucketId(next as u32);
        let space = self.new_space()?;
        self.txn.put_bucket_name(name, Some(id));
        self.txn.put_bucket(id, Some(Bucket::empty(space)));
        Ok(KeyAnswer::Number(id.0.into()))
    }

    pub(super) fn drop_bucket(&mut self, name: &BucketName) -> Answer {
        if name.numbered().is_some() {
            return Err(KeyRefusal::BucketStays);
        }
        let id = self.txn.facts().bucket_named(name).ok_or(KeyRefusal::BucketNotFound)?;
        let bucket = self.bucket(id)?;
        self.txn.leave_space(bucket);
        self.txn.put_bucket_name(name, None);
        self.txn.put_bucket(id, None);
        Ok(KeyAnswer::Done)
    }

    pub(super) fn flush(&mut self, bucket: Option<BucketId>) -> Answer {
        match bucket {
            Some(id) => {
                let bucket = self.bucket(id)?;
                self.empty(id, bucket)?;
            }
            None => {
                for id in (0..self.txn.facts().buckets() as u32).map(BucketId) {
                    if let Some(bucket) = self.txn.facts().bucket(id) {
                        self.empty(id, bucket)?;
                    }
                }
            }
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
            self.txn.leave_space(bucket);
            self.txn.put_bucket(id, Some(Bucket::empty(space)));
        }
        Ok(())
    }

    fn new_space(&mut self) -> Result<Space, KeyRefusal> {
        let made = self.txn.facts().totals().spaces;
        let space = made.checked_add(limits::NUMBERED_BUCKETS).map(Space);
        let space = space.ok_or(KeyRefusal::SpacesUsedUp)?;
        self.txn.total(|totals| totals.spaces += 1);
        Ok(space)
    }
}
