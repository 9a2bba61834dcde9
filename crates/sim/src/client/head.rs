//! The head of an HTTP/1.1 response: the status and how the body is delimited.

use memchr::{memchr, memmem};

use super::ClientError;

/// The longest accepted head, in bytes.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Status of a response to a client that exceeds a rate limit.
pub(crate) const TOO_MANY: u16 = 429;
/// Longest text of the rate-limit headers, in bytes.
const LIMITS_BYTES_MAX: usize = 200;

/// Rate-limit headers of a head, each after `; `.
pub(crate) fn limits(head: &[u8]) -> String {
    let text = String::from_utf8_lossy(head);
    let about_limits = |line: &&str| {
        let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        name == "retry-after" || name.starts_with("x-ratelimit-")
    };
    let lines = text.lines().skip(1).filter(about_limits).flat_map(|line| ["; ", line]);
    lines
        .flat_map(str::chars)
        .filter(|letter| !letter.is_control())
        .take(LIMITS_BYTES_MAX)
        .collect()
}

/// Delimiter of the body of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Length in bytes.
    Length(u64),
    /// Chunks, up to the last one.
    Chunked,
}

/// The parts of a head that the client uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) framing: Framing,
    /// Whether the server will close the connection after this response.
    pub(crate) closes: bool,
    /// Bytes of the head including its empty line.
    pub(crate) size: usize,
}

impl Head {
    /// Parses a head at the beginning of `input`; `None` if it is incomplete.
    pub(crate) fn parse(input: &[u8]) -> Result<Option<Head>, ClientError> {
        let Some(end) = memmem::find(input, b"\r\n\r\n") else {
            // Refuse the response early if its first bytes are wrong.
            let known = input.len().min(STATUS_LINE.len());
            if input.get(..known) != STATUS_LINE.get(..known) {
                return Err(ClientError::Malformed("no HTTP/1.1 answer"));
            }
            if input.len() > HEAD_BYTES_MAX {
                return Err(ClientError::Malformed("endless head"));
            }
            return Ok(None);
        };
        let (mut lines, _) = input.split_at(end + 2);
        let (status, closes) = status(next_line(&mut lines))?;
        let mut head = Head { status, framing: Framing::Length(0), closes, size: end + 4 };
        let mut framed = status == 204 || status == 304;
        while !lines.is_empty() {
            framed |= head.header(next_line(&mut lines))?;
        }
        if framed { Ok(Some(head)) } else { Err(ClientError::Malformed("no length of the body")) }
    }

    /// Applies one header and returns whether it delimits the body.
    fn header(&mut self, line: &[u8]) -> Result<bool, ClientError> {
        let Some(colon) = memchr(b':', line) else {
            return Err(ClientError::Malformed("header without a colon"));
        };
        let (name, value) = line.split_at(colon);
        let value = value.trim_ascii_start().strip_prefix(b":").unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
            let length = length.ok_or(ClientError::Malformed("bad content-length"))?;
            if self.framing != Framing::Chunked {
                self.framing = Framing::Length(length);
            }
            return Ok(true);
        }
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if !value.eq_ignore_ascii_case(b"chunked") {
                return Err(ClientError::Malformed("unknown transfer-encoding"));
            }
            self.framing = Framing::Chunked;
            return Ok(true);
        }
        if name.eq_ignore_ascii_case(b"connection") && value.eq_ignore_ascii_case(b"close") {
            self.closes = true;
        }
        Ok(false)
    }
}

const STATUS_LINE: &[u8] = b"HTTP/1.";

/// Removes the next line from `lines` and returns it without its line end.
fn next_line<'a>(lines: &mut &'a [u8]) -> &'a [u8] {
    let end = memchr(b'\n', lines).map_or(lines.len(), |at| at + 1);
    let (line, rest) = lines.split_at(end);
    *lines = rest;
    line.trim_ascii_end()
}

/// Parses the status, and whether the version is HTTP/1.0. Then the server closes the connection after the response.
fn status(line: &[u8]) -> Result<(u16, bool), ClientError> {
    let malformed = ClientError::Malformed("bad status line");
    let Some([version, b' ', a, b, c, rest @ ..]) = line.strip_prefix(STATUS_LINE) else {
        return Err(malformed);
    };
    let digits = [a, b, c].map(|digit| u16::from(digit.wrapping_sub(b'0')));
    let [a, b, c] = digits;
    let ends = rest.first().is_none_or(|&byte| byte == b' ');
    if digits.iter().any(|&digit| digit > 9) || !ends || !matches!(version, b'0' | b'1') {
        return Err(malformed);
    }
    let status = a * 100 + b * 10 + c;
    // An interim response (1xx) is sent only on request, and this client never requests one.
    if status < 200 { Err(malformed) } else { Ok((status, *version == b'0')) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(status: u16, framing: Framing, closes: bool, size: usize) -> Head {
        Head { status, framing, closes, size }
    }

    #[test]
    fn a_head_reports_status_and_framing() {
        let check = |input: &str, expect: Head| {
            assert_eq!(Head::parse(input.as_bytes()).unwrap(), Some(expect), "{input:?}");
        };
        let (length, chunked) = (Framing::Length, Framing::Chunked);
        check("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", head(200, length(5), false, 38));
        check("HTTP/1.1 200\r\nCONTENT-LENGTH:5 \r\n\r\n", head(200, length(5), false, 35));
        check("HTTP/1.1 204 No Content\r\n\r\n", head(204, length(0), false, 27));
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n",
            head(200, chunked, false, 47),
        );
        check(
            "HTTP/1.1 503 x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            head(503, length(0), true, 56),
        );
        check("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", head(200, length(0), true, 38));
    }

    #[test]
    fn the_headers_of_a_limit_are_found() {
        let check = |headers: &str, expect: &str| {
            let head = format!("HTTP/1.1 429 Too Many\r\nContent-Length: 0\r\n{headers}\r\n\r\n");
            assert_eq!(limits(head.as_bytes()), expect);
        };
        check("retry-after: 9", "; retry-after: 9");
        check(
            "X-RateLimit-Limit: 5\r\nX-RateLimit-Reset: 2030-01-01",
            "; X-RateLimit-Limit: 5; X-RateLimit-Reset: 2030-01-01",
        );
        check("X-Other: 1", "");
        assert!(limits(&b"Retry-After: 1\r\n".repeat(99)).len() <= LIMITS_BYTES_MAX);
    }

    #[test]
    fn a_malformed_head_is_refused_and_an_incomplete_one_waited_for() {
        let check = |input: &[u8], expect: Option<&str>| {
            let outcome = Head::parse(input);
            match expect {
                None => assert_eq!(outcome.unwrap(), None),
                Some(part) => {
                    let error = outcome.expect_err("refused").to_string();
                    assert!(error.contains(part), "{error}");
                }
            }
        };
        check(b"", None);
        check(b"HTTP/1", None);
        check(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n", None);
        check(b"SSH-2.0", Some("no HTTP/1.1 answer"));
        check(b"\0\xff", Some("no HTTP/1.1 answer"));
        check(b"HTTP/2 200\r\n\r\n", Some("status line"));
        check(b"HTTP/1.1 2x0 OK\r\n\r\n", Some("status line"));
        check(b"HTTP/1.1 100 Continue\r\n\r\n", Some("status line"));
        check(b"HTTP/1.1 2000 OK\r\n\r\n", Some("status line"));
        check(b"HTTP/1.1 200 OK\r\n\r\n", Some("no length"));
        check(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Some("content-length"));
        check(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", Some("transfer-encoding"));
        check(b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", Some("colon"));
        let endless = [b"HTTP/1.1 200 OK\r\nX: ".as_slice(), &[b'x'; HEAD_BYTES_MAX]].concat();
        check(&endless, Some("endless head"));
    }
}
