//! All limits of buckets and keys.

/// Number of buckets that always exist, for clients that select a bucket by number.
pub const NUMBERED_BUCKETS: u32 = 16;
/// Maximum number of buckets. All are in memory, about 130 bytes each.
pub const BUCKETS_MAX: usize = 1 << 20;
/// Maximum length of a bucket's name, in characters.
pub const BUCKET_NAME_CHARS_MAX: usize = 64;
/// Maximum length of a key, in bytes. A name in the store has at most 65,535 bytes: a prefix and the key.
pub const KEY_BYTES_MAX: usize = (1 << 16) - 64;
/// Maximum length of a value, in bytes.
pub const VALUE_BYTES_MAX: usize = 16 << 20;
/// Maximum length of a value to which a decimal number can be added, in bytes. Parsing a longer value takes too long.
pub const FLOAT_BYTES_MAX: usize = 5 << 10;
/// Size of removed keys and values after which a sweep ends, in bytes.
pub const SWEEP_BYTES_MAX: usize = 4 << 20;
/// Maximum number of rows that a sweep removes. Applying such a sweep takes much less than a millisecond, so other
/// commands do not wait long.
pub const SWEEP_ROWS_MAX: u32 = 512;
