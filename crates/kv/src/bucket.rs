//! Buckets: their names and their contents.

use rows::Value;
use serde::{Deserialize, Serialize};

use crate::limits;

/// A bucket: its place in the order of creation, from 0; never reused, so that an id never refers to
/// another bucket later. The first [`NUMBERED_BUCKETS`](crate::limits::NUMBERED_BUCKETS) always
/// exist and are named after their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BucketId(pub u64);

/// Where the keys of a bucket are stored until it is emptied. Reused once all its rows are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Space(pub u32);

/// The name of a bucket: 1 to 64 of `a-z A-Z 0-9 _ -`.
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

    /// The id of the numbered bucket with this name, if there is one.
    #[must_use]
    pub fn numbered(&self) -> Option<BucketId> {
        let number =
            self.0.parse().ok().filter(|number: &u32| *number < limits::NUMBERED_BUCKETS)?;
        (number.to_string() == *self.0).then_some(BucketId(number.into()))
    }

    /// The checked text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The space of a bucket, and counts of its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// The space that has its keys now.
    pub space: Space,
    /// Number of rows of keys; expired ones count until they are removed.
    pub keys: u64,
    /// Bytes of these keys and their values.
    pub bytes: u64,
}

impl Bucket {
    /// A bucket without keys.
    #[must_use]
    pub const fn empty(space: Space) -> Self {
        Self { space, keys: 0, bytes: 0 }
    }

    /// 20 bytes, little endian, in the order of the fields.
    #[must_use]
    pub fn encode(self) -> Value {
        let mut bytes = Value::from_slice(&self.space.0.to_le_bytes());
        bytes.extend_from_slice(&self.keys.to_le_bytes());
        bytes.extend_from_slice(&self.bytes.to_le_bytes());
        bytes
    }

    /// Reverses [`Bucket::encode`]; `None` if the bytes are not a bucket's.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (space, rest) = bytes.split_first_chunk()?;
        let (keys, rest) = rest.split_first_chunk()?;
        let (bytes, []) = rest.split_first_chunk()? else { return None };
        Some(Self {
            space: Space(u32::from_le_bytes(*space)),
            keys: u64::from_le_bytes(*keys),
            bytes: u64::from_le_bytes(*bytes),
        })
    }
}
