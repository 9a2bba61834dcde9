//! Every limit on buckets and keys, in one place.

/// Buckets that are always there, for clients that choose them by number.
pub const NUMBERED_BUCKETS: u32 = 16;
/// Most buckets at a time: all are held in memory, about 60 bytes each.
pub const BUCKETS_MAX: usize = 1 << 20;
/// Most characters of the name of a bucket.
pub const BUCKET_NAME_CHARS_MAX: usize = 64;
/// Longest key, in bytes: the store puts its place before it, and takes 65,535 bytes together.
pub const KEY_BYTES_MAX: usize = (1 << 16) - 64;
/// Longest value, in bytes.
pub const VALUE_BYTES_MAX: usize = 16 << 20;
/// Longest value that can be added to as a decimal number, in bytes: reading one takes time.
pub const FLOAT_BYTES_MAX: usize = 5 << 10;
/// Bytes of keys and values after which one sweep ends: it reads the rows that it removes.
pub const SWEEP_BYTES_MAX: usize = 4 << 20;
/// Most rows that one sweep removes: the command is applied well within a millisecond, and others
/// do not wait for it.
pub const SWEEP_ROWS_MAX: u32 = 512;
