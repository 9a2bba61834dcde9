//! Errors of requests, with the messages of Redis.

use std::fmt;

/// Violation of the protocol by a request. [`Display`](fmt::Display) is the text of the error reply, without the
/// leading `-`.
///
/// After this reply, the server closes the connection, because it cannot find the start of the next command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The number of arguments is not a number, or is above [`Limits::arguments_max`](crate::Limits).
    InvalidCount,
    /// A command before authentication has more than 10 arguments.
    UnauthenticatedCount,
    /// The line with the number of arguments does not end within [`Limits::line_bytes_max`](crate::Limits).
    CountLineTooLong,
    /// An argument begins with this byte, not with `$`.
    ExpectedBulk(u8),
    /// The length of an argument is not a number, is negative, or is above [`Limits::bulk_bytes_max`](crate::Limits).
    InvalidBulkLength,
    /// An argument of a command before authentication has more than 16,384 bytes.
    UnauthenticatedBulkLength,
    /// The line with the length of an argument does not end within [`Limits::line_bytes_max`](crate::Limits).
    LengthLineTooLong,
    /// The command is longer than [`Limits::command_bytes_max`](crate::Limits). For this error, Redis has no reply and
    /// closes the connection; the message is roost's own.
    CommandTooLong,
    /// An inline command does not end within [`Limits::line_bytes_max`](crate::Limits), or contains a NUL byte. Redis
    /// finds no line end after a NUL byte.
    InlineTooLong,
    /// A quote in an inline command is not closed, or text follows the closing quote without a space.
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

/// Formats the error. As in Redis, a line break is shown as a space. Other unprintable bytes are escaped.
fn expected_bulk(byte: u8, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match byte {
        b'\r' | b'\n' => out.write_str("expected '$', got ' '"),
        b' '..=b'~' => write!(out, "expected '$', got '{}'", char::from(byte)),
        _ => write!(out, "expected '$', got '{}'", byte.escape_ascii()),
    }
}
