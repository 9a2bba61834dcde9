//! Results of operations on keys.

use rows::{CHANGE_BYTES_MAX, CHANGE_ROWS_MAX, Stamp};

use crate::limits;
use crate::row::KeyRow;

/// Result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyAnswer {
    /// The operation was applied.
    Done,
    /// A key was set, and has a new version.
    Written {
        /// New version; different after every change of the key.
        version: Stamp,
        /// Whether the key did not exist before.
        created: bool,
    },
    /// Number: a count, a length, a sum or a bit.
    Number(i64),
    /// Row of a key.
    Row(KeyRow),
    /// The key did not exist, or a condition was not met; nothing changed.
    Nothing,
    /// A watched key has changed, so the transaction was not applied.
    Skipped,
    /// Rows were removed.
    Swept {
        /// Number of rows removed.
        rows: u32,
        /// Whether rows are left, so that another sweep is needed soon.
        more: bool,
    },
    /// The operation was refused; nothing changed.
    Refused(KeyRefusal),
}

rows::refusals! {
/// Reason why an operation was refused. A refusal is not an error of the server, except for [`KeyRefusal::Internal`].
/// Messages that Redis clients match on are those of Redis. Digests in the log contain the position of a refusal in
/// this table, so add new refusals at the end.
pub enum KeyRefusal {
    /// The bucket never existed or was deleted.
    BucketNotFound = NotFound "bucket_not_found": "there is no such bucket";
    BucketStays = Conflict "bucket_stays":
        "buckets 0 to {} cannot be deleted, only emptied", limits::NUMBERED_BUCKETS - 1;
    TooManyBuckets = Full "too_many_buckets":
        "there are already {} buckets, the maximum", limits::BUCKETS_MAX;
    /// No space is free: each belongs to a bucket, or has rows that are not yet removed.
    SpacesUsedUp = Full "too_many_buckets": "buckets were emptied too often";
    /// The key to rename does not exist.
    KeyNotFound = NotFound "key_not_found": "no such key";
    BadKey = Invalid("key") "bad_key": "a key has 1 to {} bytes", limits::KEY_BYTES_MAX;
    SameKey = Invalid "same_key": "source and destination objects are the same";
    /// The value is not a 64-bit integer.
    NotInteger = Invalid "bad_value": "value is not an integer or out of range";
    NotFloat = Invalid "bad_value": "value is not a valid float";
    Overflow = Invalid "bad_value": "increment or decrement would overflow";
    NotFinite = Invalid "bad_value": "increment would produce NaN or Infinity";
    TooLong = Invalid "bad_value": "string exceeds maximum allowed size (proto-max-bulk-len)";
    /// The operation or its transaction might change more data than one group of the log may change.
    TooLarge = Invalid "bad_value":
        "the change is too large: at most {} keys and {} MiB of new values together",
        CHANGE_ROWS_MAX / 4, CHANGE_BYTES_MAX >> 20;
    /// There is currently not enough memory for the answer.
    Busy = Busy "overloaded": "the server is overloaded; try again in a second";
    /// The rules panicked.
    Internal = Internal "internal": "internal error; see the server log";
}
}

#[cfg(test)]
mod tests {
    use super::KeyRefusal;

    /// Digests in the log contain these positions, so they never change. New refusals are added at the end.
    #[test]
    fn every_refusal_keeps_its_position() {
        let expect = [
            ("BucketNotFound", "bucket_not_found"),
            ("BucketStays", "bucket_stays"),
            ("TooManyBuckets", "too_many_buckets"),
            ("SpacesUsedUp", "too_many_buckets"),
            ("KeyNotFound", "key_not_found"),
            ("BadKey", "bad_key"),
            ("SameKey", "same_key"),
            ("NotInteger", "bad_value"),
            ("NotFloat", "bad_value"),
            ("Overflow", "bad_value"),
            ("NotFinite", "bad_value"),
            ("TooLong", "bad_value"),
            ("TooLarge", "bad_value"),
            ("Busy", "overloaded"),
            ("Internal", "internal"),
        ];
        let now: Vec<_> = KeyRefusal::ALL
            .iter()
            .map(|refusal| (format!("{refusal:?}"), refusal.code()))
            .collect();
        let expect = expect.map(|(name, code)| (name.to_owned(), code));
        assert_eq!(now, expect);
    }
}
