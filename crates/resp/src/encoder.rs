//! Encoder of replies. It writes types that RESP2 lacks as Redis does.

use std::fmt::Display;
use std::io::Write as _;

/// Version of the protocol that a client has chosen with `HELLO`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Version of every new connection.
    #[default]
    Resp2,
    /// Version that adds nulls, doubles, booleans, big numbers, verbatim strings, maps, sets and pushes.
    Resp3,
}

/// Encoder that appends replies to a buffer of the caller.
///
/// A header ([`array`](Self::array), [`map`](Self::map), ...) announces a number of replies, which the caller then
/// writes.
#[derive(Debug)]
pub struct Encoder<'o> {
    out: &'o mut Vec<u8>,
    protocol: Protocol,
}

impl<'o> Encoder<'o> {
    /// Creates an encoder that appends to `out`.
    #[must_use]
    pub fn new(out: &'o mut Vec<u8>, protocol: Protocol) -> Self {
        Self { out, protocol }
    }

    /// Buffer of the replies, for callers that reserve memory before they write a long reply.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Writes a short status such as `OK`. Line breaks in it become blanks.
    pub fn simple(&mut self, text: &str) {
        self.out.push(b'+');
        self.one_line(|out| out.extend_from_slice(text.as_bytes()));
    }

    /// Writes an error: a code in capitals, a blank, and a message. Line breaks become blanks.
    pub fn error(&mut self, error: impl Display) {
        self.out.push(b'-');
        self.one_line(|out| {
            let Ok(()) = write!(out, "{error}") else { unreachable!("a Vec takes every byte") };
        });
    }

    /// Writes an integer.
    pub fn integer(&mut self, number: i64) {
        self.header(b':', number);
    }

    /// Writes a bulk string of arbitrary bytes.
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.length(b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.end_line();
    }

    /// Writes a text that clients display verbatim, with its format: `txt` or `mkd`. RESP2: a bulk string.
    pub fn verbatim(&mut self, format: [u8; 3], text: &[u8]) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text),
            Protocol::Resp3 => {
                self.length(b'=', format.len() + 1 + text.len());
                self.out.extend_from_slice(&format);
                self.out.push(b':');
                self.out.extend_from_slice(text);
                self.end_line();
            }
        }
    }

    /// Writes null in place of a value.
    pub fn null(&mut self) {
        self.either(b"$-1\r\n", b"_\r\n");
    }

    /// Writes null in place of an array.
    pub fn null_array(&mut self) {
        self.either(b"*-1\r\n", b"_\r\n");
    }

    /// Writes a Boolean. RESP2: 1 or 0.
    pub fn boolean(&mut self, truth: bool) {
        match truth {
            true => self.either(b":1\r\n", b"#t\r\n"),
            false => self.either(b":0\r\n", b"#f\r\n"),
        }
    }

    /// Writes the shortest decimal number that parses to the same value, or `inf`, `-inf` or `nan`. RESP2: a bulk
    /// string.
    pub fn double(&mut self, number: f64) {
        let text = match number.abs() {
            0.0 | 1e-4..1e17 => format!("{number}"),
            size if size.is_finite() => format!("{number:e}"),
            _ if number.is_nan() => "nan".to_owned(),
            _ => format!("{number}"),
        };
        self.number_text(b',', &text);
    }

    /// Writes an integer of any size, given in digits with an optional `-` in front. RESP2: a bulk string.
    pub fn big_number(&mut self, digits: &str) {
        self.number_text(b'(', digits);
    }

    /// Writes the header of an array of `len` replies.
    pub fn array(&mut self, len: usize) {
        self.length(b'*', len);
    }

    /// Writes the header of a map of `pairs` keys and values. RESP2: an array of twice as many replies.
    pub fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.length(b'*', pairs * 2),
            Protocol::Resp3 => self.length(b'%', pairs),
        }
    }

    /// Writes the header of a set of `len` distinct replies. RESP2: an array.
    pub fn set(&mut self, len: usize) {
        self.aggregate(b'~', len);
    }

    /// Writes the header of a push: a message of `len` parts that is not a reply to a command. RESP2: an array.
    pub fn push(&mut self, len: usize) {
        self.aggregate(b'>', len);
    }

    fn aggregate(&mut self, marker: u8, len: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(len),
            Protocol::Resp3 => self.length(marker, len),
        }
    }

    fn number_text(&mut self, marker: u8, text: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => {
                self.out.push(marker);
                self.one_line(|out| out.extend_from_slice(text.as_bytes()));
            }
        }
    }

    fn either(&mut self, resp2: &[u8], resp3: &[u8]) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => resp2,
            Protocol::Resp3 => resp3,
        });
    }

    /// Replaces line breaks in the text that `write` appends, and ends the line.
    fn one_line(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.out.len();
        write(self.out);
        for byte in self.out.iter_mut().skip(start) {
            if matches!(byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
        self.end_line();
    }

    #[inline]
    fn length(&mut self, marker: u8, len: usize) {
        let Ok(len) = i64::try_from(len) else { unreachable!("nothing in memory is that long") };
        self.header(marker, len);
    }

    #[inline]
    fn header(&mut self, marker: u8, number: i64) {
        self.out.push(marker);
        self.out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        self.end_line();
    }

    #[inline]
    fn end_line(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }
}
