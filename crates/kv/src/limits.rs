//! All limits of buckets and keys.

/// Number of buckets that always exist, for clients that select a bucket by number.
pub const NUMBERED_BUCKETS: u32 = 16;
/// Maximum number of buckets. All are in memory, about 130 bytes each.
pub const BUCKETS_MAX: usize = 1 << 20;
/// Maximum length of a bucket's name, in characters.
pub const BUCKET_NAME_CHARS_MAX: usize = 64;
/// Maximum length of a key, in bytes. The store adds a prefix with its place, and names in the store have at most
/// 65,535 bytes.
pub const KEY_BYTES_MAX: usize = (1 << 16) - 64;
/// Maximum length of a value, in bytes.
pub const VALUE_BYTES_MAX: usize = 16 << 20;
/// Maximum length of a value that can be added to as a decimal number, in bytes. Parsing a longer one takes too long.
pub const FLOAT_BYTES_MAX: usize = 5 << 10;
/// Size of keys and values after which a sweep ends, in bytes. A sweep reads the rows before it removes them.
pub const SWEEP_BYTES_MAX: usize = 4 << 20;
/// Maximum number of rows that a sweep removes. The command is applied in much less than a millisecond, so that other
/// commands do not wait long.
pub const SWEEP_ROWS_MAX: u32 = 512;
