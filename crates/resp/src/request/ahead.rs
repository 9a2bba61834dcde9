//! Look-ahead at commands that are not yet parsed, so that callers can prefetch data. The result is a hint.

use crate::number;

/// Iterator over the name and the argument of each command at the front of the input. It ends before the first command
/// that does not have exactly one argument, is incomplete, or is not an array of bulk strings with plain lengths.
///
/// The iterator validates nothing: only [`Parser`](crate::Parser) decides what the commands are.
#[derive(Clone, Debug)]
pub struct Ahead<'b> {
    rest: &'b [u8],
}

impl<'b> Ahead<'b> {
    /// Creates an iterator over `input`, which begins with a command.
    #[must_use]
    pub fn new(input: &'b [u8]) -> Self {
        Self { rest: input }
    }

    /// Bytes after the commands returned so far.
    #[must_use]
    pub fn rest(&self) -> &'b [u8] {
        self.rest
    }
}

impl<'b> Iterator for Ahead<'b> {
    type Item = (&'b [u8], &'b [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, rest) = word(self.rest.strip_prefix(b"*2\r\n")?)?;
        let (argument, rest) = word(rest)?;
        self.rest = rest;
        Some((name, argument))
    }
}

/// Bulk string at the front of the input, and the rest.
#[inline]
fn word(input: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = input.strip_prefix(b"$")?;
    let (len, digits) = number::plain(line)?;
    let (word, rest) = line.get(digits + 2..)?.split_at_checked(len)?;
    Some((word, rest.get(2..)?))
}
