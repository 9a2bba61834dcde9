//! Parser of commands in a buffer that grows while bytes arrive.
//!
//! [`Parser`] remembers how far it has read the unfinished command, so it reads each byte only once, even if the
//! command arrives in small pieces.

use super::command::{Command, Span};
use super::error::ProtocolError;
use super::inline;
use super::limits::{ARGUMENTS_UNAUTHENTICATED_MAX, BULK_BYTES_UNAUTHENTICATED_MAX, Limits};
use crate::number;

/// Maximum number of positions for which memory is kept between commands.
const KEPT_SPANS_MAX: usize = 64;
/// Maximum size of inline words for which memory is kept between commands, in bytes.
const KEPT_BYTES_MAX: usize = 512;
/// Length of a line end, in bytes.
const LINE_END_BYTES: usize = 2;

/// Parser of the requests of one connection.
///
/// **Invariant:** the state of the parser refers to the unfinished command at the beginning of the caller's buffer. The
/// caller keeps the bytes of the command until the parser has moved past them.
#[derive(Debug)]
pub struct Parser {
    limits: Limits,
    authenticated: bool,
    unfinished: Unfinished,
    /// Positions of the arguments: in the caller's buffer, or in `words` for an inline command.
    spans: Vec<Span>,
    /// Words of an inline command, without quotes and escapes.
    words: Vec<u8>,
}

/// State of the command at the start of the buffer; all zero if none has begun.
#[derive(Debug, Default)]
struct Unfinished {
    /// End of the bytes that have been read. If `at` is not 0, the number of arguments is known.
    at: usize,
    /// Number of arguments not yet read.
    missing: usize,
    /// Length of the argument that begins at `at`; `None` if its header has not been read.
    bulk_bytes: Option<usize>,
    /// Position up to which the parser has searched for the end of the current line.
    searched: usize,
}

/// Parsed header: its first byte, its digits, and the start of the next line.
struct Header<'b> {
    marker: u8,
    digits: &'b [u8],
    after: usize,
}

impl Parser {
    /// Creates a parser for a new connection; the client counts as authenticated.
    ///
    /// # Panics
    /// If the limits allow a command of 4 GiB or more, or a line longer than a command.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        limits.assert_sound();
        Self {
            limits,
            authenticated: true,
            unfinished: Unfinished::default(),
            spans: Vec::new(),
            words: Vec::new(),
        }
    }

    /// Sets whether the client has authenticated. Before, it may send at most 10 arguments of at most 16,384 bytes
    /// each.
    ///
    /// The change applies only to bytes that are not yet read. Until the client has authenticated, the caller must
    /// therefore execute each command before it parses the next.
    pub fn set_authenticated(&mut self, authenticated: bool) {
        self.authenticated = authenticated;
    }

    /// Size of the allocated memory, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.spans.capacity() * size_of::<Span>() + self.words.capacity()
    }

    /// Takes the next command from the front of `rest`, and moves `rest` past it.
    ///
    /// `None` means that more bytes are needed: call again with the remaining `rest` followed by at least one more
    /// byte. Empty commands (`*0`, `*-1`, an empty line) are skipped. Like Redis, the parser does not check the LF
    /// after a header and the line end after an argument, and accepts any bytes in their places.
    ///
    /// # Errors
    /// If the request at the front of `rest` violates the protocol or a limit. Another call returns the same error.
    pub fn next<'p, 'b: 'p>(
        &'p mut self,
        rest: &mut &'b [u8],
    ) -> Result<Option<Command<'p>>, ProtocolError> {
        loop {
            let input = *rest;
            let is_inline = match input.first() {
                None => return Ok(None),
                Some(marker) => *marker != b'*',
            };
            let found = if is_inline { self.inline(input)? } else { self.multibulk(input)? };
            let Some(consumed) = found else { return Ok(None) };
            self.unfinished = Unfinished::default();
            *rest = input.get(consumed..).unwrap_or_default();
            if !self.spans.is_empty() {
                let bytes = if is_inline { &self.words } else { input };
                return Ok(Command::new(bytes, &self.spans));
            }
        }
    }

    /// Continues to read an array of bulk strings. Returns the length of the array in bytes once it is complete.
    fn multibulk(&mut self, input: &[u8]) -> Result<Option<usize>, ProtocolError> {
        if self.unfinished.at == 0 {
            let Some((count, after)) = self.count(input)? else { return Ok(None) };
            self.forget();
            self.unfinished.missing = count;
            self.unfinished.at = after;
        }
        while self.unfinished.missing > 0 {
            let len = match self.unfinished.bulk_bytes {
                Some(len) => len,
                None => {
                    let Some((len, after)) = self.length(input)? else { return Ok(None) };
                    self.unfinished.at = after;
                    len
                }
            };
            let start = self.unfinished.at;
            let end = start + len + LINE_END_BYTES;
            if input.len() < end {
                self.unfinished.bulk_bytes = Some(len);
                return Ok(None);
            }
            self.spans.push(Span::new(start, len));
            self.unfinished.at = end;
            self.unfinished.bulk_bytes = None;
            self.unfinished.missing -= 1;
        }
        Ok(Some(self.unfinished.at))
    }

    /// Reads the header of a command. Returns the number of arguments, and the position after the header.
    fn count(&mut self, input: &[u8]) -> Result<Option<(usize, usize)>, ProtocolError> {
        let (count, after) = match number::plain(input.get(1..).unwrap_or_default()) {
            Some((count, digits)) => (count, 1 + digits + LINE_END_BYTES),
            None => {
                let header = self.header(input, 0, ProtocolError::CountLineTooLong)?;
                let Some(Header { digits, after, .. }) = header else { return Ok(None) };
                let count = number::canonical(digits).ok_or(ProtocolError::InvalidCount)?;
                // A negative count is an empty command. A count that does not fit into a `usize` is above every limit.
                (usize::try_from(count.max(0)).unwrap_or(usize::MAX), after)
            }
        };
        if count > self.limits.arguments_max {
            return Err(ProtocolError::InvalidCount);
        }
        if !self.authenticated && count > ARGUMENTS_UNAUTHENTICATED_MAX {
            return Err(ProtocolError::UnauthenticatedCount);
        }
        Ok(Some((count, after)))
    }

    /// Reads the header of an argument. Returns the length of the argument, and the position of its first byte.
    fn length(&mut self, input: &[u8]) -> Result<Option<(usize, usize)>, ProtocolError> {
        let from = self.unfinished.at;
        let (len, after) = match plain_length(input.get(from..).unwrap_or_default()) {
            Some((len, header_bytes)) => (len, from + header_bytes),
            None => {
                let header = self.header(input, from, ProtocolError::LengthLineTooLong)?;
                let Some(Header { marker, digits, after }) = header else { return Ok(None) };
                if marker != b'$' {
                    return Err(ProtocolError::ExpectedBulk(marker));
                }
                let len = number::canonical(digits).ok_or(ProtocolError::InvalidBulkLength)?;
                (usize::try_from(len).map_err(|_| ProtocolError::InvalidBulkLength)?, after)
            }
        };
        if len > self.limits.bulk_bytes_max {
            return Err(ProtocolError::InvalidBulkLength);
        }
        if !self.authenticated && len > BULK_BYTES_UNAUTHENTICATED_MAX {
            return Err(ProtocolError::UnauthenticatedBulkLength);
        }
        if len.saturating_add(after + LINE_END_BYTES) > self.limits.command_bytes_max {
            return Err(ProtocolError::CommandTooLong);
        }
        Ok(Some((len, after)))
    }

    /// Header that begins at `from`; `None` if it is incomplete.
    #[cold]
    fn header<'b>(
        &mut self,
        input: &'b [u8],
        from: usize,
        too_long: ProtocolError,
    ) -> Result<Option<Header<'b>>, ProtocolError> {
        let end = self.line_end(input, from, too_long, |byte| byte == b'\r')?;
        // The byte after the CR belongs to the header, so it must have arrived.
        let Some(end) = end.filter(|end| end + 1 < input.len()) else { return Ok(None) };
        let line = input.get(from..=end).unwrap_or_default();
        let Some((marker, digits)) = line.split_first() else {
            unreachable!("a line contains at least its CR")
        };
        let digits = digits.strip_suffix(b"\r").unwrap_or_default();
        Ok(Some(Header { marker: *marker, digits, after: end + LINE_END_BYTES }))
    }

    /// Position of the end of the line that starts at `from`. Searches each byte only once.
    fn line_end(
        &mut self,
        input: &[u8],
        from: usize,
        too_long: ProtocolError,
        is_end: impl Fn(u8) -> bool,
    ) -> Result<Option<usize>, ProtocolError> {
        let searched = self.unfinished.searched.max(from);
        let limit = input.len().min(from + self.limits.line_bytes_max + 1);
        let fresh = input.get(searched..limit).unwrap_or_default();
        if let Some(found) = fresh.iter().position(|byte| is_end(*byte)) {
            self.unfinished.searched = searched + found;
            return Ok(Some(searched + found));
        }
        self.unfinished.searched = limit;
        if input.len() - from > self.limits.line_bytes_max { Err(too_long) } else { Ok(None) }
    }

    /// Splits an inline command into `words`. Returns the length of its line once the line is complete.
    fn inline(&mut self, input: &[u8]) -> Result<Option<usize>, ProtocolError> {
        let too_long = ProtocolError::InlineTooLong;
        // As in Redis, whose lines are C strings, no LF is found after a NUL. Binary data of a client that is out of
        // sync with the protocol therefore exceeds the limit and is not executed.
        let end = self.line_end(input, 0, too_long, |byte| matches!(byte, b'\n' | 0))?;
        let Some(end) = end else { return Ok(None) };
        let Some((b'\n', line)) = input.get(..=end).and_then(<[u8]>::split_last) else {
            let over = input.len() > self.limits.line_bytes_max;
            return if over { Err(too_long) } else { Ok(None) };
        };
        self.forget();
        // The CR before the LF counts as a space.
        inline::split(line, &mut self.words, &mut self.spans)?;
        Ok(Some(end + 1))
    }

    /// Drops the last returned command, and memory that few commands need.
    fn forget(&mut self) {
        self.spans.clear();
        self.spans.shrink_to(KEPT_SPANS_MAX);
        self.words.clear();
        self.words.shrink_to(KEPT_BYTES_MAX);
    }
}

/// For the header `$N\r\n`, returns N and the length of the header; `None` if the header needs the full parser.
#[inline]
fn plain_length(header: &[u8]) -> Option<(usize, usize)> {
    let (b'$', line) = header.split_first()? else { return None };
    let (len, digits) = number::plain(line)?;
    Some((len, 1 + digits + LINE_END_BYTES))
}
