//! Why a request cannot be understood, in the words of Redis.

use std::fmt;

/// A request breaks the protocol. [`Display`](fmt::Display) is the text of the error reply, without
/// the leading `-`.
///
/// Where the next command would begin is unknown, so the connection ends after this reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The number of arguments is no number, or above [`Limits::arguments_max`](crate::Limits).
    InvalidCount,
    /// More than 10 arguments before authentication.
    UnauthenticatedCount,
    /// The line with the number of arguments does not end within
    /// [`Limits::line_bytes_max`](crate::Limits).
    CountLineTooLong,
    /// An argument begins with this byte and not with `$`.
    ExpectedBulk(u8),
    /// The length of an argument is no number, negative, or above
    /// [`Limits::bulk_bytes_max`](crate::Limits).
    InvalidBulkLength,
    /// An argument of more than 16,384 bytes before authentication.
    UnauthenticatedBulkLength,
    /// The line with the length of an argument does not end within
    /// [`Limits::line_bytes_max`](crate::Limits).
    LengthLineTooLong,
    /// The command is longer than [`Limits::command_bytes_max`](crate::Limits). Redis closes the
    /// connection without a reply here, so the text is roost's.
    CommandTooLong,
    /// An inline command does not end within [`Limits::line_bytes_max`](crate::Limits), or holds a
    /// NUL byte, after which Redis sees no end.
    InlineTooLong,
    /// A quote in an inline command is not closed, or text follows it without a blank.
    UnbalancedQuotes,
}

impl std::error::Error for ProtocolError {}

impl fmt::Display for ProtocolError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("ERR Protocol error: ")?;
        out.write_str(match self {
            Self::InvalidCount => "invalid multibulk length",
            Self::UnauthenticatedCount => "unauthenticated multibulk length",
            Self::CountLineTooLong => "too big mbulk count string",
            Self::ExpectedBulk(byte) => return expected_bulk(*byte, out),
            Self::InvalidBulkLength => "invalid bulk length",
            Self::UnauthenticatedBulkLength => "unauthenticated bulk length",
            Self::LengthLineTooLong => "too big bulk count string",
            Self::CommandTooLong => "too big request",
            Self::InlineTooLong => "too big inline request",
            Self::UnbalancedQuotes => "unbalanced quotes in request",
        })
    }
}

/// As in Redis a line break shows as a blank. Other bytes that cannot be printed are escaped.
fn expected_bulk(byte: u8, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match byte {
        b'\r' | b'\n' => out.write_str("expected '$', got ' '"),
        b' '..=b'~' => write!(out, "expected '$', got '{}'", char::from(byte)),
        _ => write!(out, "expected '$', got '{}'", byte.escape_ascii()),
    }
}
