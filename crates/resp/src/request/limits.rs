//! How large a request may be. The parser enforces it before memory is taken.

/// Most arguments of a command before the client has authenticated, as in Redis.
pub(crate) const ARGUMENTS_UNAUTHENTICATED_MAX: usize = 10;
/// Longest argument before the client has authenticated, in bytes, as in Redis.
pub(crate) const BULK_BYTES_UNAUTHENTICATED_MAX: usize = 16_384;
/// Positions within a command are kept in 32 bits.
const POSITION_MAX: usize = u32::MAX as usize;

/// Limits of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most arguments of a command, its name among them. An inline command has no limit but its line.
    pub arguments_max: usize,
    /// Longest argument, in bytes.
    pub bulk_bytes_max: usize,
    /// Longest line without its end, in bytes: an inline command, a count, or a length.
    pub line_bytes_max: usize,
    /// Longest command as it is sent, with counts, lengths and line ends, in bytes.
    pub command_bytes_max: usize,
}

impl Limits {
    /// The defaults of Redis. It lets a command be as long as a client's query buffer: 1 GiB.
    pub const REDIS: Self = Self {
        arguments_max: 1 << 20,
        bulk_bytes_max: 512 << 20,
        line_bytes_max: 64 << 10,
        command_bytes_max: 1 << 30,
    };

    /// # Panics
    /// If a command could be longer than a 32-bit position allows, or shorter than a line.
    pub(crate) fn assert_sound(&self) {
        assert!(self.command_bytes_max <= POSITION_MAX, "a command must be below 4 GiB");
        assert!(self.line_bytes_max <= self.command_bytes_max, "a line must fit a command");
    }
}
