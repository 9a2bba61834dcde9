//! Operations on keys. An operation borrows from the bytes it was read from, so that a value is copied only into its
//! row. [`KeyOps`](crate::KeyOps) is a sequence of operations.

use rows::Stamp;
use serde::{Deserialize, Serialize};
use serde_bytes::Bytes;

use crate::bucket::{BucketId, BucketName};
use crate::limits::KEY_BYTES_MAX;

/// One change, applied as a whole or refused as a whole. Each has a unique stamp.
///
/// Variants are stored as their position in the enum: add new ones at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum KeyOp<'a> {
    /// Sets a key. The answer is [`Written`](crate::KeyAnswer::Written), or [`Nothing`](crate::KeyAnswer::Nothing) if
    /// the condition `only` is not met. With `old`, the answer is the previous row, or `Nothing` if there was none.
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
        /// Condition for applying the operation.
        only: Only,
        /// Whether to answer with the previous row.
        old: bool,
    },
    /// Sets several keys without an expiry; a key named twice gets the later value. The answer is `Written`, or
    /// `Nothing` if `only_new` is set and one of the keys exists.
    PutAll {
        /// The bucket.
        bucket: BucketId,
        /// Keys and values.
        #[serde(borrow)]
        pairs: Vec<(&'a Bytes, &'a Bytes)>,
        /// Whether to apply the operation only if none of the keys exists.
        only_new: bool,
    },
    /// Removes keys. The answer is the number of keys that existed.
    Remove {
        /// The bucket.
        bucket: BucketId,
        /// The keys.
        #[serde(borrow)]
        keys: Vec<&'a Bytes>,
    },
    /// Removes one key if the condition `only`, which is `Always` or `IfVersion`, is met. The answer is the removed
    /// row, or `Nothing` if no row was removed.
    Take {
        /// The bucket.
        bucket: BucketId,
        /// The key.
        #[serde(borrow)]
        key: &'a Bytes,
        /// Condition for applying the operation.
        only: Only,
    },
    /// Adds to an integer in decimal digits; a missing key counts as 0. The answer is the sum.
    Add {
        /// The bucket.
        bucket: BucketId,
        /// The key.
        #[serde(borrow)]
        key: &'a Bytes,
        /// The number to add.
        by: i64,
    },
    /// Adds to a number; a missing key counts as 0. The answer is the new row.
    AddFloat {
        /// The bucket.
        bucket: BucketId,
        /// The key.
        #[serde(borrow)]
        key: &'a Bytes,
        /// The number to add: see [`is_float`](crate::is_float).
        by: &'a Bytes,
    },
    /// Appends to a value. The answer is the value's new length.
    Append {
        /// The bucket.
        bucket: BucketId,
        /// The key.
        #[serde(borrow)]
        key: &'a Bytes,
        /// The bytes to append.
        bytes: &'a Bytes,
    },
    /// Overwrites a part of a value, which is first extended with zeros if it is too short. Writing no bytes changes
    /// nothing. The answer is the length of the value.
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
    /// Sets one bit, counted from the most significant bit of the first byte. The answer is its previous value, 0 or 1.
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
    /// Changes the expiry of a key; a time in the past removes the key. The answer is 1 if the expiry was changed,
    /// otherwise 0. With `read`, the answer is the previous row, or `Nothing`.
    Expire {
        /// The bucket.
        bucket: BucketId,
        /// The key.
        #[serde(borrow)]
        key: &'a Bytes,
        /// The new expiry.
        expiry: Expiry,
        /// Condition for applying the operation.
        only: OnlyExpiry,
        /// Whether to answer with the previous row.
        read: bool,
    },
    /// Renames a key, replacing any key with the new name. The answer is 1, or 0 if `only_new` is set and a key with
    /// the new name exists.
    Rename {
        /// The bucket.
        bucket: BucketId,
        /// The old name.
        #[serde(borrow)]
        from: &'a Bytes,
        /// The new name.
        to: &'a Bytes,
        /// Whether to apply the operation only if no key has the new name.
        only_new: bool,
    },
    /// Copies a key with its expiry. The answer is 1, or 0 if the key does not exist, or if the destination exists and
    /// `replace` is not set.
    Copy {
        /// Bucket of the key.
        bucket: BucketId,
        /// The key.
        #[serde(borrow)]
        key: &'a Bytes,
        /// The destination bucket.
        to_bucket: BucketId,
        /// The name of the copy.
        to: &'a Bytes,
        /// Whether the copy may replace an existing key.
        replace: bool,
    },
    /// Moves a key to another bucket. The answer is 1, or 0 if the key does not exist, or already exists in that
    /// bucket.
    Move {
        /// Bucket of the key.
        bucket: BucketId,
        /// The key.
        #[serde(borrow)]
        key: &'a Bytes,
        /// The destination bucket.
        to_bucket: BucketId,
    },
    /// Removes every key of a bucket. The answer is [`Done`](crate::KeyAnswer::Done).
    Flush {
        /// The bucket.
        bucket: BucketId,
    },
    /// Exchanges the contents of two buckets. The answer is [`Done`](crate::KeyAnswer::Done).
    Swap {
        /// One of the two buckets.
        a: BucketId,
        /// The other bucket.
        b: BucketId,
    },
    /// Begins a transaction. If a watched key has changed, the answer is [`Skipped`](crate::KeyAnswer::Skipped), and
    /// the next `then` operations are not applied and have this answer too. Otherwise the answer is `Done`.
    Begin {
        /// Watched keys with their versions.
        #[serde(borrow)]
        watched: Vec<Watched<'a>>,
        /// Number of operations in the transaction.
        then: u32,
    },
    /// Creates a bucket. The answer is its number, or `Nothing` if the name is in use.
    Create {
        /// Name, unique among buckets.
        name: BucketName,
    },
    /// Removes a bucket and all its keys. The answer is `Done`.
    Drop {
        /// The name of the bucket.
        name: BucketName,
    },
    /// Removes a bounded number of rows of keys that have expired or whose bucket was deleted or emptied. Only the node
    /// sends it, no client. The answer is [`Swept`](crate::KeyAnswer::Swept).
    Sweep,
    /// Removes every key of the numbered buckets. The answer is [`Done`](crate::KeyAnswer::Done).
    FlushNumbered,
}

impl<'a> KeyOp<'a> {
    /// Whether the operation only removes data, or begins a transaction.
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

    /// Whether all keys that the operation may write are valid. Keys that it only looks up do not matter: an invalid
    /// key does not exist.
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

/// Key with the version at which a client began to watch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched<'a> {
    /// The bucket.
    pub bucket: BucketId,
    /// The key.
    #[serde(borrow)]
    pub key: &'a Bytes,
    /// Version of the key; `None` if it did not exist.
    pub version: Option<Stamp>,
}

/// Expiry of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expiry {
    /// Keep the expiry; a new key never expires.
    Keep,
    /// Never expire.
    Never,
    /// Expire at this time, in milliseconds since 1970.
    At(u64),
    /// Expire this number of milliseconds after the command.
    In(u64),
}

/// Condition for changing a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Only {
    /// No condition.
    Always,
    /// The key does not exist.
    IfAbsent,
    /// The key exists.
    IfPresent,
    /// The key has this version.
    IfVersion(Stamp),
}

/// Condition for changing an expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnlyExpiry {
    /// No condition.
    Always,
    /// The key does not expire.
    IfNone,
    /// The key expires.
    IfSome,
    /// The new expiry is later; no expiry counts as the latest.
    IfLater,
    /// The new expiry is earlier; no expiry counts as the latest.
    IfEarlier,
    /// The key expires, and the new expiry is later.
    IfSomeAndLater,
    /// The key expires, and the new expiry is earlier.
    IfSomeAndEarlier,
}
