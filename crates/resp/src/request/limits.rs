//! Limits of a request. The parser checks them before it allocates memory.

/// Maximum number of arguments before authentication, as in Redis.
pub(crate) const ARGUMENTS_UNAUTHENTICATED_MAX: usize = 10;
/// Maximum length of an argument before authentication, in bytes, as in Redis.
pub(crate) const BULK_BYTES_UNAUTHENTICATED_MAX: usize = 16_384;
/// Maximum position within a command. Positions are stored in 32 bits.
const POSITION_MAX: usize = u32::MAX as usize;

/// Limits of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of arguments of a command, including its name. For an inline command, only the length of its line
    /// is limited.
    pub arguments_max: usize,
    /// Maximum length of an argument, in bytes.
    pub bulk_bytes_max: usize,
    /// Maximum length of a line (an inline command, a count, or a length) without its line end, in bytes.
    pub line_bytes_max: usize,
    /// Maximum length of a command as the client sends it, in bytes: with counts, lengths and line ends.
    pub command_bytes_max: usize,
}

impl Limits {
    /// Defaults of Redis, where a command must fit into the query buffer of a client: 1 GiB.
    pub const REDIS: Self = Self {
        arguments_max: 1 << 20,
        bulk_bytes_max: 512 << 20,
        line_bytes_max: 64 << 10,
        command_bytes_max: 1 << 30,
    };

    /// Checks that the limits are consistent.
    ///
    /// # Panics
    /// If a command could be longer than the maximum position, or a line longer than a command.
    pub(crate) fn assert_sound(&self) {
        assert!(self.command_bytes_max <= POSITION_MAX, "a command must be below 4 GiB");
        assert!(self.line_bytes_max <= self.command_bytes_max, "a line must fit a command");
    }
}
