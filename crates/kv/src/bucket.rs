//! Buckets: names and contents.

use rows::Value;
use serde::{Deserialize, Serialize};

use crate::limits;

/// Id of a bucket: its number in order of creation, from 0. Never reused, so that an id never refers to another bucket.
/// The first [`NUMBERED_BUCKETS`](crate::limits::NUMBERED_BUCKETS) always exist, and their names are their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BucketId(pub u64);

/// Number under which the keys of a bucket are stored. Emptying the bucket gives it another space; the old space is
/// reused once all its rows are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Space(pub u32);

/// Name of a bucket: 1 to 64 of `a-z A-Z 0-9 _ -`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BucketName(Box<str>);

impl BucketName {
    /// Checks `text`; `None` if it is not 1 to 64 of `a-z A-Z 0-9 _ -`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let right_length = (1..=limits::BUCKET_NAME_CHARS_MAX).contains(&text.len());
        (right_length && text.bytes().all(known)).then(|| Self(text.into()))
    }

    /// Id of the numbered bucket with this name, if any.
    #[must_use]
    pub fn numbered(&self) -> Option<BucketId> {
        let number =
            self.0.parse().ok().filter(|number: &u32| *number < limits::NUMBERED_BUCKETS)?;
        (number.to_string() == *self.0).then_some(BucketId(number.into()))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Space of a bucket, and counts of its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// Space with the current keys.
    pub space: Space,
    /// Number of rows of keys; expired keys count until they are removed.
    pub keys: u64,
    /// Size of the counted keys and their values, in bytes.
    pub bytes: u64,
    /// Number of counted keys that expire.
    pub expiring: u64,
    /// Sum of the expiry times of the counted keys, in milliseconds since 1970.
    pub expiries_ms: u128,
}

impl Bucket {
    /// A bucket without keys.
    #[must_use]
    pub const fn empty(space: Space) -> Self {
        Self { space, keys: 0, bytes: 0, expiring: 0, expiries_ms: 0 }
    }

    /// Adds the expiry of a key whose row is already counted.
    pub fn count_expiry(&mut self, expires_ms: u64) {
        self.expiring += 1;
        self.expiries_ms += u128::from(expires_ms);
    }

    /// Mean TTL of the expiring keys, in milliseconds; 0 without such keys. Expired keys that are not yet removed lower
    /// it, but not below 0.
    #[must_use]
    pub fn mean_ttl_ms(&self, now_ms: u64) -> u64 {
        let mean = self.expiries_ms.checked_div(self.expiring.into()).unwrap_or(0);
        u64::try_from(mean).unwrap_or(u64::MAX).saturating_sub(now_ms)
    }

    /// Encodes the fields in order: 44 bytes, little endian.
    #[must_use]
    pub fn encode(self) -> Value {
        let mut bytes = Value::from_slice(&self.space.0.to_le_bytes());
        bytes.extend_from_slice(&self.keys.to_le_bytes());
        bytes.extend_from_slice(&self.bytes.to_le_bytes());
        bytes.extend_from_slice(&self.expiring.to_le_bytes());
        bytes.extend_from_slice(&self.expiries_ms.to_le_bytes());
        bytes
    }

    /// Reverses [`Bucket::encode`]; `None` if the bytes are invalid.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (space, rest) = bytes.split_first_chunk()?;
        let (keys, rest) = rest.split_first_chunk()?;
        let (bytes, rest) = rest.split_first_chunk()?;
        let (expiring, rest) = rest.split_first_chunk()?;
        let (expiries_ms, []) = rest.split_first_chunk()? else { return None };
        Some(Self {
            space: Space(u32::from_le_bytes(*space)),
            keys: u64::from_le_bytes(*keys),
            bytes: u64::from_le_bytes(*bytes),
            expiring: u64::from_le_bytes(*expiring),
            expiries_ms: u128::from_le_bytes(*expiries_ms),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_read_as_it_was_written_and_no_other_length_is_one() {
        let (space, expiries_ms) = (Space(7), u128::MAX - 1);
        let bucket = Bucket { space, keys: 3, bytes: 30, expiring: 2, expiries_ms };
        let bytes = bucket.encode();
        assert_eq!(Bucket::decode(&bytes), Some(bucket));
        for length in 0..bytes.len() {
            assert_eq!(Bucket::decode(&bytes[..length]), None, "{length}");
        }
        assert_eq!(Bucket::decode(&[&bytes[..], &[0]].concat()), None);
    }

    #[test]
    fn the_mean_ttl_is_that_of_the_keys_that_expire() {
        let mut bucket = Bucket::empty(Space(0));
        assert_eq!(bucket.mean_ttl_ms(50), 0);
        bucket.count_expiry(100);
        bucket.count_expiry(301);
        assert_eq!([50, 199, 200, 201].map(|now| bucket.mean_ttl_ms(now)), [150, 1, 0, 0]);
        // `u64::MAX` is the greatest expiry that a client can set.
        (0..3).for_each(|_| bucket.count_expiry(u64::MAX));
        assert_eq!(bucket.mean_ttl_ms(0), u64::MAX / 5 * 3 + 80);
    }
}
