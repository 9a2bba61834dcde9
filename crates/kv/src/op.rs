//! Operations on keys. They borrow from the bytes they were read from, so that a value is
//! copied only into its row; [`KeyOps`](crate::KeyOps) holds many of them.

use rows::Stamp;
use serde::{Deserialize, Serialize};
use serde_bytes::Bytes;

use crate::bucket::{BucketId, BucketName};
use crate::limits::KEY_BYTES_MAX;

/// One change. It is applied as a whole or, if refused, not at all. Each has a unique stamp.
///
/// Variants are stored as their position in the enum: new ones are added at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum KeyOp<'a> {
    /// Sets a key. Answers [`Written`](crate::KeyAnswer::Written), or [`Nothing`](crate::KeyAnswer::Nothing) if `only` forbade it;
    /// with `old`, the row before, or `Nothing` if there was none.
    Put {
        /// The bucket.
        bucket: BucketId,
        /// The key.
        #[serde(borrow)]
        key: &'a Bytes,
        /// The new value.
        value: &'a Bytes,
        /// The expiry of the key.
        expiry: Expiry,
        /// The condition under which it is applied.
        only: Only,
        /// Whether to answer with the row before.
        old: bool,
    },
    /// Sets several keys, which then do not expire; a key named twice gets the later value. Answers
    /// `Written`, or `Nothing` if `only_new` is set and one of them exists already.
    PutAll {
        /// The bucket.
        bucket: BucketId,
        /// Keys and values.
        #[serde(borrow)]
        pairs: Vec<(&'a Bytes, &'a Bytes)>,
        /// Whether it is applied only if none of the keys exists.
        only_new: bool,
    },
    /// Removes keys. Answers with the number of keys that existed.
    Remove {
        /// The bucket.
        bucket: BucketId,
        /// The keys.
        #[serde(borrow)]
        keys: Vec<&'a Bytes>,
    },
    /// Removes one key under a condition, which is `Always` or `IfVersion`. Answers with the removed row,
    /// or `Nothing` if there was none or `only` forbade it.
    Take {
        /// The bucket.
        bucket: BucketId,
        /// The key.
        #[serde(borrow)]
        key: &'a Bytes,
        /// The condition under which it is applied.
        only: Only,
    },
    /// Adds to a whole number in decimal digits; a key that does not exist counts as 0. Answers with
    /// the sum.
    Add {
        /// The bucket.
        bucket: BucketId,
        /// The key.
        #[serde(borrow)]
        key: &'a Bytes,
        /// The number to add.
        by: i64,
    },
    /// Adds to a number; a key that does not exist counts as 0. Answers with the new row.
    AddFloat {
        /// The bucket.
        bucket: BucketId,
        /// The key.
        #[serde(borrow)]
        key: &'a Bytes,
        /// The number to add: see [`is_float`](crate::is_float).
        by: &'a Bytes,
    },
    /// Appends to a value. Answers with its length.
    Append {
        /// The bucket.
        bucket: BucketId,
        /// The key.
        #[serde(borrow)]
        key: &'a Bytes,
        /// The bytes to append.
        bytes: &'a Bytes,
    },
    /// Overwrites a part of a value, which is first extended with zeros if it is too short. Writing no
    /// bytes changes nothing. Answers with the length of the value.
    SetRange {
        /// The bucket.
        bucket: BucketId,
        /// The key.
        #[serde(borrow)]
        key: &'a Bytes,
        /// Offset of the first byte to overwrite.
        offset: u64,
        /// The bytes to write.
        bytes: &'a Bytes,
    },
    /// Sets one bit, counted from the most significant one of the first byte. Answers with what it
    /// was before, 0 or 1.
    SetBit {
        /// The bucket.
        bucket: BucketId,
        /// The key.
        #[serde(borrow)]
        key: &'a Bytes,
        /// Index of the bit.
        offset: u64,
        /// The new value of the bit.
        bit: bool,
    },
    /// Changes when a key expires; a time in the past removes it. Answers 1 if it was changed and 0 if
    /// not; with `read`, the row before, or `Nothing`.
    Expire {
        /// The bucket.
        bucket: BucketId,
        /// The key.
        #[serde(borrow)]
        key: &'a Bytes,
        /// The new expiry.
        expiry: Expiry,
        /// The condition under which it is applied.
        only: OnlyExpiry,
        /// Whether to answer with the row.
        read: bool,
    },
    /// Renames a key; a key that has the new name already is replaced. Answers 1, or 0 if `only_new` is
    /// set and a key with the new name exists.
    Rename {
        /// The bucket.
        bucket: BucketId,
        /// The old name.
        #[serde(borrow)]
        from: &'a Bytes,
        /// The new name.
        to: &'a Bytes,
        /// Whether it is applied only if no key has the new name.
        only_new: bool,
    },
    /// Copies a key with its expiry. Answers 1, or 0 if there is no such key, or if the other key exists
    /// and `replace` is not set.
    Copy {
        /// The bucket of the key.
        bucket: BucketId,
        /// The key.
        #[serde(borrow)]
        key: &'a Bytes,
        /// The destination bucket.
        to_bucket: BucketId,
        /// The name of the copy.
        to: &'a Bytes,
        /// Whether it may replace an existing key.
        replace: bool,
    },
    /// Moves a key to another bucket. Answers 1, or 0 if there is no such key or that bucket has one.
    Move {
        /// The bucket of the key.
        bucket: BucketId,
        /// The key.
        #[serde(borrow)]
        key: &'a Bytes,
        /// The destination bucket.
        to_bucket: BucketId,
    },
    /// Removes every key of a bucket. Answers [`Done`](crate::KeyAnswer::Done).
    Flush {
        /// The bucket.
        bucket: BucketId,
    },
    /// Exchanges the contents of two buckets. Answers [`Done`](crate::KeyAnswer::Done).
    Swap {
        /// One of the two buckets.
        a: BucketId,
        /// The other bucket.
        b: BucketId,
    },
    /// Begins a transaction: unless every watched key is unchanged, the next `then` operations are
    /// not applied and answer [`Skipped`](crate::KeyAnswer::Skipped). Answers `Done` or `Skipped`.
    Begin {
        /// The watched keys, with their versions.
        #[serde(borrow)]
        watched: Vec<Watched<'a>>,
        /// Number of operations that belong to it.
        then: u32,
    },
    /// Creates a bucket. Answers with its number; with `Nothing` if there is one of this name.
    Create {
        /// Unique among buckets.
        name: BucketName,
    },
    /// Removes a bucket with all its keys. Answers `Done`.
    Drop {
        /// The name of the bucket.
        name: BucketName,
    },
    /// Removes a bounded number of rows of keys that expired or whose bucket was deleted or emptied. Sent by
    /// the node, never by a client. Answers [`Swept`](crate::KeyAnswer::Swept).
    Sweep,
    /// Removes every key of the numbered buckets. Answers [`Done`](crate::KeyAnswer::Done).
    FlushNumbered,
}

impl<'a> KeyOp<'a> {
    /// Whether it only removes something, or begins a transaction.
    #[must_use]
    pub fn removes(&self) -> bool {
        matches!(
            self,
            Self::Remove { .. }
                | Self::Take { .. }
                | Self::Flush { .. }
                | Self::FlushNumbered
                | Self::Drop { .. }
                | Self::Begin { .. }
                | Self::Sweep
        )
    }

    /// Whether all keys that it may write are valid. A key that is only looked up may be invalid: it
    /// does not exist.
    #[must_use]
    pub fn writes_possible_keys(&self) -> bool {
        match self {
            Self::Put { key, .. }
            | Self::Add { key, .. }
            | Self::AddFloat { key, .. }
            | Self::Append { key, .. }
            | Self::SetRange { key, .. }
            | Self::SetBit { key, .. }
            | Self::Rename { to: key, .. }
            | Self::Copy { to: key, .. } => is_possible_key(key),
            Self::PutAll { pairs, .. } => pairs.iter().all(|(key, _)| is_possible_key(key)),
            _ => true,
        }
    }

    /// Calls `each` with every key whose row the operation looks up.
    pub fn each_key(&self, each: &mut dyn FnMut(BucketId, &'a Bytes)) {
        match self {
            Self::Put { bucket, key, .. }
            | Self::Take { bucket, key, .. }
            | Self::Add { bucket, key, .. }
            | Self::AddFloat { bucket, key, .. }
            | Self::Append { bucket, key, .. }
            | Self::SetRange { bucket, key, .. }
            | Self::SetBit { bucket, key, .. }
            | Self::Expire { bucket, key, .. } => each(*bucket, key),
            Self::PutAll { bucket, pairs, .. } => {
                pairs.iter().for_each(|(key, _)| each(*bucket, key));
            }
            Self::Remove { bucket, keys } => keys.iter().for_each(|key| each(*bucket, key)),
            Self::Rename { bucket, from, to, .. } => {
                each(*bucket, from);
                each(*bucket, to);
            }
            Self::Copy { bucket, key, to_bucket, to, .. } => {
                each(*bucket, key);
                each(*to_bucket, to);
            }
            Self::Move { bucket, key, to_bucket } => {
                each(*bucket, key);
                each(*to_bucket, key);
            }
            Self::Begin { watched, .. } => {
                watched.iter().for_each(|watched| each(watched.bucket, watched.key));
            }
            Self::Flush { .. }
            | Self::Swap { .. }
            | Self::Create { .. }
            | Self::Drop { .. }
            | Self::Sweep
            | Self::FlushNumbered => {}
        }
    }
}

/// Whether a key is valid: neither empty nor too long.
#[must_use]
pub fn is_possible_key(key: &[u8]) -> bool {
    (1..=KEY_BYTES_MAX).contains(&key.len())
}

/// A key as it was when a client began to watch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched<'a> {
    /// The bucket.
    pub bucket: BucketId,
    /// The key.
    #[serde(borrow)]
    pub key: &'a Bytes,
    /// Its version, or none if it did not exist.
    pub version: Option<Stamp>,
}

/// When a key expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expiry {
    /// The expiry stays; a new key never expires.
    Keep,
    /// Never.
    Never,
    /// At this time, in milliseconds since 1970.
    At(u64),
    /// This number of milliseconds after the command.
    In(u64),
}

/// When a key may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Only {
    /// Always.
    Always,
    /// If it does not exist.
    IfAbsent,
    /// If it exists.
    IfPresent,
    /// If this is its version.
    IfVersion(Stamp),
}

/// When an expiry may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnlyExpiry {
    /// Always.
    Always,
    /// If the key does not expire.
    IfNone,
    /// If it expires.
    IfSome,
    /// If the new expiry is later; no expiry counts as the latest.
    IfLater,
    /// If the new expiry is earlier; no expiry counts as the latest.
    IfEarlier,
    /// If it expires, and the new expiry is later.
    IfSomeAndLater,
    /// If it expires, and the new expiry is earlier.
    IfSomeAndEarlier,
}
