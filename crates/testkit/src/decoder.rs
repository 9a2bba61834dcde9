//! Decoder of a Redis server's replies. [`Decoder`] keeps the tokens of the unfinished reply in a flat list, and builds
//! the reply from them once it is complete. So each part of a reply is parsed only once.

use std::ops::Range;
use std::slice;

use crate::Reply;

/// Limits of one reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyLimits {
    /// Maximum depth of nested aggregates.
    pub depth_max: usize,
    /// Maximum number of elements in all aggregates together. A pair of a map counts as two elements.
    pub elements_max: usize,
    /// Maximum length of a string, in bytes.
    pub bulk_bytes_max: usize,
    /// Maximum length of a line (a status, an error, a number, or a header) without its line end, in bytes.
    pub line_bytes_max: usize,
}

/// Error of a malformed reply. The stream cannot be read any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The byte begins no known type. Attributes and streamed parts count as unknown, because roost never sends them.
    #[error("a reply begins with '{}', which is no type known here", .0.escape_ascii())]
    UnknownType(u8),
    /// A line is longer than [`ReplyLimits::line_bytes_max`].
    #[error("a line of a reply is too long")]
    LineTooLong,
    /// A string is longer than [`ReplyLimits::bulk_bytes_max`].
    #[error("a string in a reply is too long")]
    BulkTooLong,
    /// There are more elements than [`ReplyLimits::elements_max`].
    #[error("a reply has too many elements")]
    TooManyElements,
    /// There are more levels than [`ReplyLimits::depth_max`].
    #[error("a reply is nested too deeply")]
    TooDeep,
    /// A CR has no LF after it, or a string does not end where its length says.
    #[error("a part of a reply does not end with CR LF")]
    BadEnd,
    /// A number, a length, a Boolean or a null is malformed.
    #[error("a reply holds a malformed number or length")]
    BadNumber,
    /// A verbatim string does not begin with a format and a colon.
    #[error("a verbatim string in a reply has no format")]
    BadFormat,
}

/// Decoder of the replies of one connection.
///
/// **Invariant:** the tokens refer to the unfinished reply at the beginning of the caller's buffer.
#[derive(Debug)]
pub struct Decoder {
    limits: ReplyLimits,
    /// End of the bytes that have been read.
    at: usize,
    tokens: Vec<Token>,
    /// For each aggregate around `at`, from the outermost: the number of elements that have not been read.
    open: Vec<usize>,
    /// Number of elements announced by all headers read so far.
    elements: usize,
}

/// Token of a reply: a value, or the header of an aggregate whose elements follow.
#[derive(Clone, Debug)]
enum Token {
    Text(u8, Range<usize>),
    Integer(i64),
    Double(f64),
    Boolean(bool),
    Null,
    /// Marker of an aggregate, and number of its elements.
    Aggregate(u8, usize),
}

impl ReplyLimits {
    /// Limits far above the needs of a client of roost, and low enough to protect the client's memory.
    pub const CLIENT: Self = Self {
        depth_max: 32,
        elements_max: 1 << 20,
        bulk_bytes_max: 512 << 20,
        line_bytes_max: 64 << 10,
    };
}

impl Decoder {
    /// Creates a decoder for a new connection.
    #[must_use]
    pub fn new(limits: ReplyLimits) -> Self {
        Self { limits, at: 0, tokens: Vec::new(), open: Vec::new(), elements: 0 }
    }

    /// Takes the next reply from the front of `rest`, and moves `rest` past it.
    ///
    /// `None` means that more bytes are needed: call again with `rest` followed by more bytes.
    ///
    /// # Errors
    /// If the reply at the front of `rest` is malformed or exceeds a limit.
    pub fn next(&mut self, rest: &mut &[u8]) -> Result<Option<Reply>, DecodeError> {
        let input = *rest;
        loop {
            let Some((token, after)) = self.token(input)? else { return Ok(None) };
            let elements = if let Token::Aggregate(_, elements) = token { elements } else { 0 };
            if matches!(token, Token::Aggregate(..)) && self.open.len() == self.limits.depth_max {
                return Err(DecodeError::TooDeep);
            }
            self.elements += elements;
            self.tokens.push(token);
            self.at = after;
            if self.is_complete_with(elements) {
                break;
            }
        }
        let reply = build(&mut self.tokens.iter(), input);
        *rest = input.get(self.at..).unwrap_or_default();
        self.tokens.clear();
        (self.at, self.elements) = (0, 0);
        Ok(Some(reply))
    }

    /// Counts a token that announces `elements` more elements. Returns whether the reply is now complete.
    fn is_complete_with(&mut self, elements: usize) -> bool {
        if elements > 0 {
            self.open.push(elements);
            return false;
        }
        while let Some(missing) = self.open.last_mut() {
            *missing -= 1;
            if *missing > 0 {
                return false;
            }
            self.open.pop();
        }
        true
    }

    /// The token at `at`, if it is complete, and the position after it.
    fn token(&self, input: &[u8]) -> Result<Option<(Token, usize)>, DecodeError> {
        let input = input.get(self.at..).unwrap_or_default();
        let Some((marker, after_marker)) = input.split_first() else { return Ok(None) };
        if !b"+-:$*_#,(!=%~>".contains(marker) {
            return Err(DecodeError::UnknownType(*marker));
        }
        let Some(line) = self.line(after_marker)? else { return Ok(None) };
        let start = self.at + 1;
        let after = start + line.len() + 2;
        let token = match marker {
            b'+' | b'-' => Token::Text(*marker, start..start + line.len()),
            b'(' if is_big_number(line) => Token::Text(*marker, start..start + line.len()),
            b':' => Token::Integer(parse(line)?),
            b',' => Token::Double(parse(line)?),
            b'#' if line == b"t" || line == b"f" => Token::Boolean(line == b"t"),
            b'_' if line.is_empty() => Token::Null,
            b'(' | b'#' | b'_' => return Err(DecodeError::BadNumber),
            b'$' | b'*' if line == b"-1" => Token::Null,
            b'$' | b'=' | b'!' => return self.text(*marker, input, line),
            _ => self.aggregate(*marker, line)?,
        };
        Ok(Some((token, after)))
    }

    fn line<'b>(&self, input: &'b [u8]) -> Result<Option<&'b [u8]>, DecodeError> {
        let line_bytes_max = self.limits.line_bytes_max;
        let within = input.get(..=line_bytes_max).unwrap_or(input);
        let Some(end) = within.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
            let too_long = input.len() > line_bytes_max;
            return if too_long { Err(DecodeError::LineTooLong) } else { Ok(None) };
        };
        match input.get(end..).unwrap_or_default() {
            [b'\r'] => Ok(None),
            [b'\r', b'\n', ..] => Ok(input.get(..end)),
            _ => Err(DecodeError::BadEnd),
        }
    }

    /// Parses a string: `line` is its length, and `input` begins with its header.
    fn text(
        &self,
        marker: u8,
        input: &[u8],
        line: &[u8],
    ) -> Result<Option<(Token, usize)>, DecodeError> {
        let len = length(line)?;
        if len > self.limits.bulk_bytes_max {
            return Err(DecodeError::BulkTooLong);
        }
        let start = 1 + line.len() + 2;
        let Some(end) = input.get(start + len..start + len + 2) else { return Ok(None) };
        if end != b"\r\n" {
            return Err(DecodeError::BadEnd);
        }
        if marker == b'=' && input.get(start..start + len).unwrap_or_default().get(3) != Some(&b':')
        {
            return Err(DecodeError::BadFormat);
        }
        let range = self.at + start..self.at + start + len;
        let after = range.end + 2;
        Ok(Some((Token::Text(marker, range), after)))
    }

    fn aggregate(&self, marker: u8, line: &[u8]) -> Result<Token, DecodeError> {
        let len = length(line)?;
        let elements = if marker == b'%' { len.saturating_mul(2) } else { len };
        if elements > self.limits.elements_max - self.elements {
            return Err(DecodeError::TooManyElements);
        }
        Ok(Token::Aggregate(marker, elements))
    }
}

/// Builds the reply at the front of `tokens`, which are complete and within the depth limit.
fn build(tokens: &mut slice::Iter<'_, Token>, input: &[u8]) -> Reply {
    let Some(token) = tokens.next() else { unreachable!("every announced element was read") };
    match token {
        Token::Text(marker, range) => text(*marker, input.get(range.clone()).unwrap_or_default()),
        Token::Integer(number) => Reply::Integer(*number),
        Token::Double(number) => Reply::Double(*number),
        Token::Boolean(truth) => Reply::Boolean(*truth),
        Token::Null => Reply::Bulk(None),
        Token::Aggregate(b'%', elements) => {
            let pair = |_| (build(tokens, input), build(tokens, input));
            Reply::Map((0..elements / 2).map(pair).collect())
        }
        Token::Aggregate(marker, elements) => {
            let elements = (0..*elements).map(|_| build(tokens, input)).collect();
            match marker {
                b'~' => Reply::Set(elements),
                b'>' => Reply::Push(elements),
                _ => Reply::Array(elements),
            }
        }
    }
}

fn text(marker: u8, bytes: &[u8]) -> Reply {
    let text = || String::from_utf8_lossy(bytes).into_owned();
    match (marker, bytes) {
        (b'=', [one, two, three, b':', text @ ..]) => {
            Reply::Verbatim([*one, *two, *three], text.to_vec())
        }
        (b'+', _) => Reply::Simple(text()),
        (b'-' | b'!', _) => Reply::Error(text()),
        (b'(', _) => Reply::BigNumber(text()),
        _ => Reply::Bulk(Some(bytes.to_vec())),
    }
}

fn length(line: &[u8]) -> Result<usize, DecodeError> {
    let length: usize = parse(line)?;
    // A length in its canonical form has no plus sign and no leading zeros.
    if length.to_string().as_bytes() == line { Ok(length) } else { Err(DecodeError::BadNumber) }
}

fn parse<N: std::str::FromStr>(line: &[u8]) -> Result<N, DecodeError> {
    let text = std::str::from_utf8(line).ok();
    text.and_then(|text| text.parse().ok()).ok_or(DecodeError::BadNumber)
}

fn is_big_number(line: &[u8]) -> bool {
    let digits = line.strip_prefix(b"-").or(line.strip_prefix(b"+")).unwrap_or(line);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}
