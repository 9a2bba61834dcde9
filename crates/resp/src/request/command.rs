//! Command of a client.

use std::fmt;
use std::slice;

/// Position of an argument, relative to the start of its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl Span {
    /// Creates a span.
    ///
    /// # Panics
    /// If it ends after the 4 GiB that [`Limits`](crate::Limits) allow for a command.
    #[inline]
    pub(crate) fn new(start: usize, len: usize) -> Self {
        let (Ok(start), Ok(len)) = (u32::try_from(start), u32::try_from(len)) else {
            unreachable!("limits keep commands below 4 GiB")
        };
        Self { start, len }
    }
}

/// Command as a client sent it: a name and arguments of arbitrary bytes, as slices of the buffer.
///
/// A command is valid until the next call of the parser. **Invariant:** it has a name.
#[derive(Clone, Copy)]
pub struct Command<'a> {
    name: &'a [u8],
    arguments: Spans<'a>,
}

/// Arguments of a command in order, without its name.
#[derive(Clone)]
pub struct Arguments<'a> {
    bytes: &'a [u8],
    spans: slice::Iter<'a, Span>,
}

#[derive(Clone, Copy)]
struct Spans<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Command<'a> {
    /// Creates a command from the slices of `bytes` at `spans`; `None` if there are no spans.
    ///
    /// # Panics
    /// If a span does not lie within `bytes`.
    pub(crate) fn new(bytes: &'a [u8], spans: &'a [Span]) -> Option<Self> {
        let (name, spans) = spans.split_first()?;
        Some(Self { name: cut(bytes, *name), arguments: Spans { bytes, spans } })
    }

    /// The name, in upper or lower case as the client sent it.
    #[must_use]
    pub fn name(&self) -> &'a [u8] {
        self.name
    }

    /// Arguments after the name.
    #[must_use]
    pub fn arguments(&self) -> Arguments<'a> {
        Arguments { bytes: self.arguments.bytes, spans: self.arguments.spans.iter() }
    }

    /// Argument at `index`, counted from 0 after the name.
    #[must_use]
    pub fn argument(&self, index: usize) -> Option<&'a [u8]> {
        let Spans { bytes, spans } = self.arguments;
        spans.get(index).map(|span| cut(bytes, *span))
    }

    /// Whether this is a line of an HTTP request instead of a command.
    ///
    /// A web page can make a browser send HTTP requests to any port. On such a line, Redis closes the connection
    /// without a reply and without reading more.
    #[must_use]
    pub fn is_http(&self) -> bool {
        self.name.eq_ignore_ascii_case(b"post") || self.name.eq_ignore_ascii_case(b"host:")
    }
}

/// Shows only the name and the number of arguments, because arguments may contain a password.
impl fmt::Debug for Command<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} and {} arguments", self.name.escape_ascii(), self.arguments.spans.len())
    }
}

impl<'a> Iterator for Arguments<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<Self::Item> {
        self.spans.next().map(|span| cut(self.bytes, *span))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.spans.size_hint()
    }
}

impl ExactSizeIterator for Arguments<'_> {}

#[inline]
fn cut(bytes: &[u8], span: Span) -> &[u8] {
    let start = span.start as usize;
    let Some(argument) = bytes.get(start..start + span.len as usize) else {
        unreachable!("the parser made the span for these bytes")
    };
    argument
}
