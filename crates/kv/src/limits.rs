//! Every limit on buckets and keys, in one place.

/// Number of buckets that always exist, for clients that choose a bucket by number.
pub const NUMBERED_BUCKETS: u32 = 16;
/// Most buckets at a time: all are held in memory, about 130 bytes each.
pub const BUCKETS_MAX: usize = 1 << 20;
/// Most characters of the name of a bucket.
pub const BUCKET_NAME_CHARS_MAX: usize = 64;
/// Longest key, in bytes: the store adds a prefix with its place, and names in the store have at most 65,535 bytes.
pub const KEY_BYTES_MAX: usize = (1 << 16) - 64;
/// Longest value, in bytes.
pub const VALUE_BYTES_MAX: usize = 16 << 20;
/// Longest value that can be added to as a decimal number, in bytes: reading one takes time.
pub const FLOAT_BYTES_MAX: usize = 5 << 10;
/// Bytes of keys and values after which one sweep ends: it reads the rows that it removes.
pub const SWEEP_BYTES_MAX: usize = 4 << 20;
/// Most rows that one sweep removes: the command is applied in much less than a millisecond, so that
/// other commands do not wait long.
pub const SWEEP_ROWS_MAX: u32 = 512;
