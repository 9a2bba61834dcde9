//! What comes of operations on keys.

use rows::{CHANGE_BYTES_MAX, CHANGE_ROWS_MAX, Stamp};

use crate::limits;
use crate::row::KeyRow;

/// What came of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyAnswer {
    /// It happened.
    Done,
    /// A key was set, and this is its version now.
    Written {
        /// Different after every change of the key.
        version: Stamp,
        /// Whether it did not stand before.
        created: bool,
    },
    /// A count, a length, a sum, a bit.
    Number(i64),
    /// A row.
    Row(KeyRow),
    /// There was none, or a condition forbade it; nothing changed.
    Nothing,
    /// A watched key had changed: the transaction did not happen.
    Skipped,
    /// Rows were removed.
    Swept {
        /// How many.
        rows: u32,
        /// Whether more waits: ask again soon.
        more: bool,
    },
    /// It cannot be done; nothing changed.
    Refused(KeyRefusal),
}

/// Why an operation changed nothing. Not an error of the system: the caller can put it right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyRefusal {
    /// The bucket is gone.
    #[error("there is no such bucket")]
    BucketNotFound,
    /// Buckets 0 to 15 are always there.
    #[error("buckets 0 to {} cannot be deleted, only emptied", limits::NUMBERED_BUCKETS - 1)]
    BucketStays,
    /// Too many buckets.
    #[error("there are {} buckets, and there can be no more", limits::BUCKETS_MAX)]
    TooManyBuckets,
    /// The key to be renamed does not stand.
    #[error("no such key")]
    KeyNotFound,
    /// The value or the increment is not a whole number of 64 bits.
    #[error("value is not an integer or out of range")]
    NotInteger,
    /// The value is not a number.
    #[error("value is not a valid float")]
    NotFloat,
    /// The sum does not fit 64 bits.
    #[error("increment or decrement would overflow")]
    Overflow,
    /// The sum is no number.
    #[error("increment would produce NaN or Infinity")]
    NotFinite,
    /// The value would be too long.
    #[error("string exceeds maximum allowed size (proto-max-bulk-len)")]
    TooLong,
    /// No more spaces: as many buckets were emptied or made as there are numbers.
    #[error("buckets were emptied too often")]
    SpacesUsedUp,
    /// No key is empty or so long.
    #[error("a key has 1 to {} bytes", limits::KEY_BYTES_MAX)]
    BadKey,
    /// The operation, or the transaction it belongs to, may change more than one write of the log may.
    #[error(
        "the change is too large: at most {} keys and {} MiB of new values together",
        CHANGE_ROWS_MAX / 4,
        CHANGE_BYTES_MAX >> 20
    )]
    TooLarge,
    /// There is no memory for the answer now.
    #[error("the server has too much under way; try again in a second")]
    Busy,
    /// A key cannot be copied or moved onto itself.
    #[error("source and destination objects are the same")]
    SameKey,
}
