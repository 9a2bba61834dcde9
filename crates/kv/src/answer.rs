//! Results of operations on keys.

use rows::{CHANGE_BYTES_MAX, CHANGE_ROWS_MAX, Stamp};

use crate::limits;
use crate::row::KeyRow;

/// The result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyAnswer {
    /// The operation was applied.
    Done,
    /// A key was set and has a new version.
    Written {
        /// The new version; different after every change of the key.
        version: Stamp,
        /// Whether the key did not exist before.
        created: bool,
    },
    /// A count, a length, a sum, a bit.
    Number(i64),
    /// A row.
    Row(KeyRow),
    /// There was no such key, or a condition was not met; nothing changed.
    Nothing,
    /// A watched key had changed: the transaction was not applied.
    Skipped,
    /// Rows were removed.
    Swept {
        /// Number of rows removed.
        rows: u32,
        /// Whether there is more to remove: sweep again soon.
        more: bool,
    },
    /// The operation was refused; nothing changed.
    Refused(KeyRefusal),
}

/// Why an operation changed nothing. Not an error of the system: the caller can correct the request. Logs have digests of it,
/// so variants keep their order, and new ones are at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyRefusal {
    /// The bucket does not exist, or was deleted.
    #[error("there is no such bucket")]
    BucketNotFound,
    /// Buckets 0 to 15 always exist.
    #[error("buckets 0 to {} cannot be deleted, only emptied", limits::NUMBERED_BUCKETS - 1)]
    BucketStays,
    /// Too many buckets.
    #[error("there are already {} buckets, the maximum", limits::BUCKETS_MAX)]
    TooManyBuckets,
    /// The key to be renamed does not exist.
    #[error("no such key")]
    KeyNotFound,
    /// The value or the increment is not a whole number of 64 bits.
    #[error("value is not an integer or out of range")]
    NotInteger,
    /// The value is not a number.
    #[error("value is not a valid float")]
    NotFloat,
    /// The sum does not fit into 64 bits.
    #[error("increment or decrement would overflow")]
    Overflow,
    /// The sum is not a finite number.
    #[error("increment would produce NaN or Infinity")]
    NotFinite,
    /// The value would be too long.
    #[error("string exceeds maximum allowed size (proto-max-bulk-len)")]
    TooLong,
    /// No more spaces: all numbers of spaces are used by emptied or created buckets.
    #[error("buckets were emptied too often")]
    SpacesUsedUp,
    /// The key is empty or too long.
    #[error("a key has 1 to {} bytes", limits::KEY_BYTES_MAX)]
    BadKey,
    /// The operation, or the transaction it belongs to, may change more than one write of the log may.
    #[error(
        "the change is too large: at most {} keys and {} MiB of new values together",
        CHANGE_ROWS_MAX / 4,
        CHANGE_BYTES_MAX >> 20
    )]
    TooLarge,
    /// There is not enough memory for the answer now.
    #[error("the server is overloaded; try again in a second")]
    Busy,
    /// A key cannot be copied or moved onto itself.
    #[error("source and destination objects are the same")]
    SameKey,
    /// The rules have an error: they panicked.
    #[error("internal error; see the server log")]
    Internal,
}
