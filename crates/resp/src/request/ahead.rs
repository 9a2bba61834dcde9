//! Looks ahead at commands that are not parsed yet, so that callers can prefetch what they need. The
//! result is a hint.

use crate::number;

/// The name and the argument of each command at the front of some input, up to the first one that has not
/// exactly one argument, is incomplete, or is not an array of bulk strings with plain lengths.
///
/// Nothing is validated: only [`Parser`](crate::Parser) decides what the commands are.
#[derive(Clone, Debug)]
pub struct Ahead<'b> {
    rest: &'b [u8],
}

impl<'b> Ahead<'b> {
    /// Looks at `input` from its beginning, where a command begins.
    #[must_use]
    pub fn new(input: &'b [u8]) -> Self {
        Self { rest: input }
    }

    /// The bytes after the returned commands.
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

/// The bulk string at the front of some input, and what follows it.
#[inline]
fn word(input: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = input.strip_prefix(b"$")?;
    let (len, digits) = number::plain(line)?;
    let (word, rest) = line.get(digits + 2..)?.split_at_checked(len)?;
    Some((word, rest.get(2..)?))
}
