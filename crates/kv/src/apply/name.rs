//! Operations that rename, copy and move keys.

use super::{Answer, Keys};
use crate::answer::{KeyAnswer, KeyRefusal};
use crate::bucket::BucketId;

impl Keys<'_, '_> {
    pub(super) fn rename(
        &mut self,
        bucket: BucketId,
        from: &[u8],
        to: &[u8],
        only_new: bool,
    ) -> Answer {
        let old = self.find(bucket, from)?;
        let live = old.live.clone().ok_or(KeyRefusal::KeyNotFound)?;
        if from == to {
            return Ok(KeyAnswer::Number((!only_new).into()));
        }
        if only_new && self.find(bucket, to)?.live.is_some() {
            return Ok(KeyAnswer::Number(0));
        }
        self.erase(&old);
        // The key is looked up again, because the counts of the bucket have just changed.
        let new = self.find(bucket, to)?;
        self.write(&new, to, live.value(), live.expires_ms());
        Ok(KeyAnswer::Number(1))
    }

    pub(super) fn copy(
        &mut self,
        (bucket, key): (BucketId, &[u8]),
        (to_bucket, to): (BucketId, &[u8]),
        replace: bool,
    ) -> Answer {
        if bucket == to_bucket && key == to {
            return Err(KeyRefusal::SameKey);
        }
        let target = self.find(to_bucket, to)?;
        let Some(live) = self.find(bucket, key)?.live else { return Ok(KeyAnswer::Number(0)) };
        if target.live.is_some() && !replace {
            return Ok(KeyAnswer::Number(0));
        }
        self.write(&target, to, live.value(), live.expires_ms());
        Ok(KeyAnswer::Number(1))
    }

    pub(super) fn move_to(&mut self, bucket: BucketId, key: &[u8], to_bucket: BucketId) -> Answer {
        let KeyAnswer::Number(1) = self.copy((bucket, key), (to_bucket, key), false)? else {
            return Ok(KeyAnswer::Number(0));
        };
        let old = self.find(bucket, key)?;
        self.erase(&old);
        Ok(KeyAnswer::Number(1))
    }
}
