//! Operations on values: set, remove, and change parts of them.

use serde_bytes::Bytes;

use super::number::{add_decimals, whole_number};
use super::{Answer, Keys};
use crate::answer::{KeyAnswer, KeyRefusal};
use crate::bucket::BucketId;
use crate::limits::VALUE_BYTES_MAX;
use crate::op::{Expiry, Only, OnlyExpiry};

impl Keys<'_, '_> {
    pub(super) fn put(
        &mut self,
        bucket: BucketId,
        key: &[u8],
        value: &[u8],
        (expiry, only): (Expiry, Only),
        old: bool,
    ) -> Answer {
        let found = self.find(bucket, key)?;
        let created = found.live.is_none();
        let allowed = found.allows(only);
        if allowed {
            let expires_ms = self.expires_ms(expiry, &found);
            self.write(&found, key, value, expires_ms);
        }
        Ok(match (old, allowed) {
            (true, _) => found.live.map_or(KeyAnswer::Nothing, KeyAnswer::Row),
            (false, true) => KeyAnswer::Written { version: self.stamp, created },
            (false, false) => KeyAnswer::Nothing,
        })
    }

    pub(super) fn put_all(
        &mut self,
        bucket: BucketId,
        pairs: &[(&Bytes, &Bytes)],
        only_new: bool,
    ) -> Answer {
        self.bucket(bucket)?;
        if only_new {
            for (key, _) in pairs {
                if self.find(bucket, key)?.live.is_some() {
                    return Ok(KeyAnswer::Nothing);
                }
            }
        }
        for (key, value) in pairs {
            let found = self.find(bucket, key)?;
            self.write(&found, key, value, None);
        }
        Ok(KeyAnswer::Written { version: self.stamp, created: only_new })
    }

    pub(super) fn remove_all(&mut self, bucket: BucketId, keys: &[&Bytes]) -> Answer {
        let mut removed = 0;
        for key in keys {
            let found = self.find(bucket, key)?;
            removed += i64::from(found.live.is_some());
            self.erase(&found);
        }
        Ok(KeyAnswer::Number(removed))
    }

    pub(super) fn take(&mut self, bucket: BucketId, key: &[u8], only: Only) -> Answer {
        let found = self.find(bucket, key)?;
        if !found.allows(only) {
            return Ok(KeyAnswer::Nothing);
        }
        self.erase(&found);
        Ok(found.live.map_or(KeyAnswer::Nothing, KeyAnswer::Row))
    }

    pub(super) fn add(&mut self, bucket: BucketId, key: &[u8], by: i64) -> Answer {
        let found = self.find(bucket, key)?;
        let number = match &found.live {
            Some(row) => whole_number(row.value()).ok_or(KeyRefusal::NotInteger)?,
            None => 0,
        };
        let sum = number.checked_add(by).ok_or(KeyRefusal::Overflow)?;
        let digits = sum.to_string();
        self.write(&found, key, digits.as_bytes(), found.expires_ms());
        Ok(KeyAnswer::Number(sum))
    }

    pub(super) fn add_float(&mut self, bucket: BucketId, key: &[u8], by: &[u8]) -> Answer {
        let found = self.find(bucket, key)?;
        let number = if found.live.is_some() { found.value() } else { b"0" };
        let sum = add_decimals(number, by)?;
        self.write(&found, key, sum.as_bytes(), found.expires_ms());
        let row = self.txn.facts().key(found.bucket.space, key);
        Ok(row.map_or(KeyAnswer::Nothing, KeyAnswer::Row))
    }

    pub(super) fn append(&mut self, bucket: BucketId, key: &[u8], bytes: &[u8]) -> Answer {
        let found = self.find(bucket, key)?;
        let len = checked_len(found.value().len() as u64, bytes.len())?;
        let value = [found.value(), bytes].concat();
        self.write(&found, key, &value, found.expires_ms());
        Ok(KeyAnswer::Number(len))
    }

    pub(super) fn set_range(
        &mut self,
        bucket: BucketId,
        key: &[u8],
        offset: u64,
        bytes: &[u8],
    ) -> Answer {
        let found = self.find(bucket, key)?;
        if bytes.is_empty() {
            return Ok(KeyAnswer::Number(found.value().len() as i64));
        }
        checked_len(offset, bytes.len())?;
        let offset = offset as usize;
        let mut value = found.value().to_vec();
        value.resize(value.len().max(offset + bytes.len()), 0);
        if let Some(part) = value.get_mut(offset..offset + bytes.len()) {
            part.copy_from_slice(bytes);
        }
        self.write(&found, key, &value, found.expires_ms());
        Ok(KeyAnswer::Number(value.len() as i64))
    }

    pub(super) fn set_bit(
        &mut self,
        bucket: BucketId,
        key: &[u8],
        offset: u64,
        bit: bool,
    ) -> Answer {
        let found = self.find(bucket, key)?;
        let (byte, shift) = (offset / 8, 7 - offset % 8);
        checked_len(byte, 1)?;
        let mut value = found.value().to_vec();
        value.resize(value.len().max(byte as usize + 1), 0);
        let Some(place) = value.get_mut(byte as usize) else {
            unreachable!("the value was made long enough")
        };
        let before = *place >> shift & 1;
        *place = *place & !(1 << shift) | u8::from(bit) << shift;
        self.write(&found, key, &value, found.expires_ms());
        Ok(KeyAnswer::Number(before.into()))
    }

    pub(super) fn expire(
        &mut self,
        bucket: BucketId,
        key: &[u8],
        expiry: Expiry,
        only: OnlyExpiry,
        read: bool,
    ) -> Answer {
        let found = self.find(bucket, key)?;
        let Some(live) = &found.live else {
            return Ok(if read { KeyAnswer::Nothing } else { KeyAnswer::Number(0) });
        };
        let expires_ms = self.expires_ms(expiry, &found);
        // Removing a missing expiry changes nothing.
        let changes = expires_ms != live.expires_ms() || expires_ms.is_some();
        let allowed = changes && only.allows(live.expires_ms(), expires_ms);
        if allowed {
            self.write(&found, key, live.value(), expires_ms);
        }
        Ok(match read {
            true => KeyAnswer::Row(live.clone()),
            false => KeyAnswer::Number(allowed.into()),
        })
    }
}

/// Length of a value that ends `more` bytes after `start`.
fn checked_len(start: u64, more: usize) -> Result<i64, KeyRefusal> {
    let len = start.checked_add(more as u64).filter(|len| *len <= VALUE_BYTES_MAX as u64);
    len.map(|len| len as i64).ok_or(KeyRefusal::TooLong)
}
