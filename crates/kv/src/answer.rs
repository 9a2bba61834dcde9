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

rows::refusals! {
/// Why an operation changed nothing. Not an error of the system, but for [`KeyRefusal::Internal`]: the caller can correct the
/// request. The sentences that clients of Redis match on are those of Redis. Logs have digests of the position in the table: a
/// new one goes to its end, whatever it is about.
pub enum KeyRefusal {
    /// Or it was deleted.
    BucketNotFound = NotFound "bucket_not_found": "there is no such bucket";
    BucketStays = Conflict "bucket_stays":
        "buckets 0 to {} cannot be deleted, only emptied", limits::NUMBERED_BUCKETS - 1;
    TooManyBuckets = Full "too_many_buckets":
        "there are already {} buckets, the maximum", limits::BUCKETS_MAX;
    /// All numbers of spaces are used by emptied or created buckets.
    SpacesUsedUp = Full "too_many_buckets": "buckets were emptied too often";
    /// The key that is to be renamed.
    KeyNotFound = NotFound "key_not_found": "no such key";
    BadKey = Invalid("key") "bad_key": "a key has 1 to {} bytes", limits::KEY_BYTES_MAX;
    SameKey = Invalid "same_key": "source and destination objects are the same";
    /// A whole number of 64 bits.
    NotInteger = Invalid "bad_value": "value is not an integer or out of range";
    NotFloat = Invalid "bad_value": "value is not a valid float";
    Overflow = Invalid "bad_value": "increment or decrement would overflow";
    NotFinite = Invalid "bad_value": "increment would produce NaN or Infinity";
    TooLong = Invalid "bad_value": "string exceeds maximum allowed size (proto-max-bulk-len)";
    /// The operation, or the transaction it belongs to, may change more than one write of the log may.
    TooLarge = Invalid "bad_value":
        "the change is too large: at most {} keys and {} MiB of new values together",
        CHANGE_ROWS_MAX / 4, CHANGE_BYTES_MAX >> 20;
    /// There is not enough memory for the answer now.
    Busy = Busy "overloaded": "the server is overloaded; try again in a second";
    /// The rules panicked.
    Internal = Internal "internal": "internal error; see the server log";
}
}

#[cfg(test)]
mod tests {
    use super::KeyRefusal;

    /// Digests are of positions, so an earlier one never changes; a new one is added at the end here, too.
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
