//! What can be done to keys. Operations borrow from the bytes they were read from, so that a value is
//! copied only into its row; [`KeyOps`](crate::KeyOps) holds many of them.

use rows::Stamp;
use serde::{Deserialize, Serialize};
use serde_bytes::Bytes;

use crate::bucket::{BucketId, BucketName};
use crate::limits::KEY_BYTES_MAX;

/// One change. It is applied as a whole or, if refused, not at all. Each has a stamp of its own.
///
/// Variants are told apart by their order: new ones are added at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum KeyOp<'a> {
    /// Sets a key. Answers [`Written`](crate::KeyAnswer::Written), or [`Nothing`](crate::KeyAnswer::Nothing) if `only` forbade it;
    /// with `old`, the row that stood before, or `Nothing` if none did.
    Put {
        /// Where.
        bucket: BucketId,
        /// Which.
        #[serde(borrow)]
        key: &'a Bytes,
        /// What.
        value: &'a Bytes,
        /// Until when.
        expiry: Expiry,
        /// Under which condition.
        only: Only,
        /// Whether to answer with what stood before.
        old: bool,
    },
    /// Sets several keys, which then do not expire; a key named twice gets the later value. Answers
    /// `Written`, or `Nothing` if `only_new` is asked for and one of them stands already.
    PutAll {
        /// Where.
        bucket: BucketId,
        /// Keys and values.
        #[serde(borrow)]
        pairs: Vec<(&'a Bytes, &'a Bytes)>,
        /// Whether it happens only if none of the keys stands.
        only_new: bool,
    },
    /// Removes keys. Answers with the number of those that stood.
    Remove {
        /// Where.
        bucket: BucketId,
        /// Which.
        #[serde(borrow)]
        keys: Vec<&'a Bytes>,
    },
    /// Removes one key under a condition, which is `Always` or `IfVersion`. Answers with the row that
    /// stood, or `Nothing` if none did or `only` forbade it.
    Take {
        /// Where.
        bucket: BucketId,
        /// Which.
        #[serde(borrow)]
        key: &'a Bytes,
        /// Under which condition.
        only: Only,
    },
    /// Adds to a whole number in decimal digits; a key that does not stand counts as 0. Answers with
    /// the sum.
    Add {
        /// Where.
        bucket: BucketId,
        /// Which.
        #[serde(borrow)]
        key: &'a Bytes,
        /// How much.
        by: i64,
    },
    /// Adds to a decimal number; a key that does not stand counts as 0. Answers with the new row.
    AddFloat {
        /// Where.
        bucket: BucketId,
        /// Which.
        #[serde(borrow)]
        key: &'a Bytes,
        /// How much, in decimal digits.
        by: &'a Bytes,
    },
    /// Appends to a value. Answers with its length.
    Append {
        /// Where.
        bucket: BucketId,
        /// Which.
        #[serde(borrow)]
        key: &'a Bytes,
        /// What.
        bytes: &'a Bytes,
    },
    /// Overwrites a part of a value, filling it up with zeros before; nothing happens if there is
    /// nothing to write. Answers with the length of the value.
    SetRange {
        /// Where.
        bucket: BucketId,
        /// Which.
        #[serde(borrow)]
        key: &'a Bytes,
        /// From which byte on.
        offset: u64,
        /// With what.
        bytes: &'a Bytes,
    },
    /// Sets one bit, counted from the most significant one of the first byte. Answers with what it
    /// was before, 0 or 1.
    SetBit {
        /// Where.
        bucket: BucketId,
        /// Which.
        #[serde(borrow)]
        key: &'a Bytes,
        /// Which bit.
        offset: u64,
        /// To what.
        bit: bool,
    },
    /// Changes when a key expires; in the past means that it is removed. Answers 1 if it did and 0
    /// if not; with `read`, the row as it stood before, or `Nothing`.
    Expire {
        /// Where.
        bucket: BucketId,
        /// Which.
        #[serde(borrow)]
        key: &'a Bytes,
        /// To when.
        expiry: Expiry,
        /// Under which condition.
        only: OnlyExpiry,
        /// Whether to answer with the row.
        read: bool,
    },
    /// Gives a key another name; what had that name is gone. Answers 1, or 0 if `only_new` is asked
    /// for and the new name stands.
    Rename {
        /// Where.
        bucket: BucketId,
        /// The old name.
        #[serde(borrow)]
        from: &'a Bytes,
        /// The new name.
        to: &'a Bytes,
        /// Whether it happens only if nothing has the new name.
        only_new: bool,
    },
    /// Copies a key with its expiry. Answers 1, or 0 if there is none or the other stands and
    /// `replace` is not asked for.
    Copy {
        /// From where.
        bucket: BucketId,
        /// Which.
        #[serde(borrow)]
        key: &'a Bytes,
        /// Where to.
        to_bucket: BucketId,
        /// Under which name.
        to: &'a Bytes,
        /// Whether it may replace what stands there.
        replace: bool,
    },
    /// Moves a key to another bucket. Answers 1, or 0 if there is none or that bucket has one.
    Move {
        /// From where.
        bucket: BucketId,
        /// Which.
        #[serde(borrow)]
        key: &'a Bytes,
        /// Where to.
        to_bucket: BucketId,
    },
    /// Removes every key of a bucket. Answers [`Done`](crate::KeyAnswer::Done).
    Flush {
        /// Which; all there are, if none, which only logs of format 1 ask for.
        bucket: Option<BucketId>,
    },
    /// Exchanges what two buckets hold. Answers [`Done`](crate::KeyAnswer::Done).
    Swap {
        /// One.
        a: BucketId,
        /// The other.
        b: BucketId,
    },
    /// Begins a transaction: unless every watched key is as it was, the next `then` operations do
    /// not happen and answer [`Skipped`](crate::KeyAnswer::Skipped). Answers `Done` or `Skipped`.
    Begin {
        /// Keys and how they were.
        #[serde(borrow)]
        watched: Vec<Watched<'a>>,
        /// How many operations belong to it.
        then: u32,
    },
    /// Makes a bucket. Answers with its number; with `Nothing` if there is one of this name.
    Create {
        /// Unique among buckets.
        name: BucketName,
    },
    /// Removes a bucket with all its keys. Answers `Done`.
    Drop {
        /// Which.
        name: BucketName,
    },
    /// Removes rows of keys that expired or whose bucket is gone, a bounded piece. The node asks, not
    /// a person. Answers [`Swept`](crate::KeyAnswer::Swept).
    Sweep,
    /// Removes every key of the numbered buckets. Answers [`Done`](crate::KeyAnswer::Done).
    FlushNumbered,
}

impl<'a> KeyOp<'a> {
    /// Whether all keys that it may write can be keys. One that is only looked up need not be: then it
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

/// Whether there can be such a key.
#[must_use]
pub fn is_possible_key(key: &[u8]) -> bool {
    (1..=KEY_BYTES_MAX).contains(&key.len())
}

/// A key as it was when a client began to watch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched<'a> {
    /// Where.
    pub bucket: BucketId,
    /// Which.
    #[serde(borrow)]
    pub key: &'a Bytes,
    /// Its version, or none if it did not stand.
    pub version: Option<Stamp>,
}

/// When a key shall expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expiry {
    /// As before; a new key never.
    Keep,
    /// Never.
    Never,
    /// At this time, in milliseconds since 1970.
    At(u64),
    /// So many milliseconds after the command.
    In(u64),
}

/// When a key may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Only {
    /// Always.
    Always,
    /// If it does not stand.
    IfAbsent,
    /// If it stands.
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
    /// If the new expiry is later; never is latest.
    IfLater,
    /// If the new expiry is earlier; never is latest.
    IfEarlier,
    /// If it expires, and the new expiry is later.
    IfSomeAndLater,
    /// If it expires, and the new expiry is earlier.
    IfSomeAndEarlier,
}
