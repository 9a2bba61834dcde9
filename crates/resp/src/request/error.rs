//! Errors of requests, with the messages of Redis.

use std::fmt;

/// Violation of the protocol by a request. [`Display`](fmt::Display) is the text of the error reply, without the
/// leading `-`.
///
/// The start of the next command is unknown, so the connection ends after this reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The number of arguments is not a number, or above [`Limits::arguments_max`](crate::Limits).
    InvalidCount,
    /// The command has more than 10 arguments before authentication.
    UnauthenticatedCount,
    /// The line with the number of arguments does not end within [`Limits::line_bytes_max`](crate::Limits).
    CountLineTooLong,
    /// An argument begins with this byte instead of `$`.
    ExpectedBulk(u8),
    /// The length of an argument is not a number, negative, or above [`Limits::bulk_bytes_max`](crate::Limits).
    InvalidBulkLength,
    /// An argument has more than 16,384 bytes before authentication.
    UnauthenticatedBulkLength,
    /// The line with the length of an argument does not end within [`Limits::line_bytes_max`](crate::Limits).
    LengthLineTooLong,
    /// The command is longer than [`Limits::command_bytes_max`](crate::Limits). Redis closes the connection without a
    /// reply, so the message is roost's own.
    CommandTooLong,
    /// An inline command does not end within [`Limits::line_bytes_max`](crate::Limits), or contains a NUL byte, after
    /// which Redis finds no end.
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

/// Formats the error. As in Redis, a line break becomes a blank; other unprintable bytes are escaped.
fn expected_bulk(byte: u8, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match byte {
        b'\r' | b'\n' => out.write_str("expected '$', got ' '"),
        b' '..=b'~' => write!(out, "expected '$', got '{}'", char::from(byte)),
        _ => write!(out, "expected '$', got '{}'", byte.escape_ascii()),
    }
}
