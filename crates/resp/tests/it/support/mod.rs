//! Reference parser, which is simple, and a function that feeds the real parser in pieces.

use resp::{Limits, Parser};

pub(crate) const TINY: Limits =
    Limits { arguments_max: 12, bulk_bytes_max: 12, line_bytes_max: 24, command_bytes_max: 60 };

/// Content of a stream: its commands, and the error or the number of unfinished bytes at its end.
#[derive(Debug, PartialEq)]
pub(crate) struct Read {
    pub(crate) commands: Vec<Vec<Vec<u8>>>,
    pub(crate) end: Result<usize, String>,
}

/// Feeds `stream` to the parser as a server would: in pieces, each appended to the bytes not yet parsed. The pieces
/// have the sizes `pieces`, which repeat.
pub(crate) fn feed(stream: &[u8], pieces: &[usize], mut parser: Parser) -> Read {
    let mut commands = Vec::new();
    let mut buffer = Vec::new();
    let mut pieces = pieces.iter().cycle();
    let mut arriving = stream;
    while !arriving.is_empty() {
        let size = (*pieces.next().unwrap()).min(arriving.len());
        let (piece, later) = arriving.split_at(size);
        (arriving, buffer) = (later, [buffer.as_slice(), piece].concat());
        let mut rest = buffer.as_slice();
        loop {
            match parser.next(&mut rest) {
                Ok(Some(command)) => {
                    let words = std::iter::once(command.name()).chain(command.arguments());
                    commands.push(words.map(<[u8]>::to_vec).collect());
                }
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(parser.next(&mut rest).unwrap_err(), error, "the same error again");
                    return Read { commands, end: Err(error.to_string()) };
                }
            }
        }
        assert!(buffer.ends_with(rest), "the rest is the end of the input");
        buffer = rest.to_vec();
    }
    Read { commands, end: Ok(buffer.len()) }
}

enum Stop {
    Unfinished,
    Wrong(String),
}

/// Parses the whole of `stream` at once, as the protocol is documented.
pub(crate) fn reference(stream: &[u8], limits: &Limits, authenticated: bool) -> Read {
    let mut commands = Vec::new();
    let mut rest = stream;
    while !rest.is_empty() {
        let one =
            if rest[0] == b'*' { array(rest, limits, authenticated) } else { inline(rest, limits) };
        match one {
            Ok((words, after)) => {
                commands.extend((!words.is_empty()).then_some(words));
                rest = after;
            }
            Err(Stop::Unfinished) => break,
            Err(Stop::Wrong(what)) => {
                return Read { commands, end: Err(format!("ERR Protocol error: {what}")) };
            }
        }
    }
    Read { commands, end: Ok(rest.len()) }
}

type Words = Vec<Vec<u8>>;

fn array<'b>(
    stream: &'b [u8],
    limits: &Limits,
    authenticated: bool,
) -> Result<(Words, &'b [u8]), Stop> {
    let (line, mut rest) = header(stream, limits, "too big mbulk count string")?;
    let count = number(&line[1..]).filter(|count| *count <= limits.arguments_max as i64);
    let count = count.ok_or(wrong("invalid multibulk length"))?;
    if count > 10 && !authenticated {
        return Err(wrong("unauthenticated multibulk length"));
    }
    let mut words = Vec::new();
    for _ in 0..count {
        let (line, bytes) = header(rest, limits, "too big bulk count string")?;
        match line.first() {
            Some(b'$') => {}
            // An empty line begins with its CR, which the error shows as a space.
            None | Some(b'\n') => return Err(wrong("expected '$', got ' '")),
            Some(byte @ 32..=126) => {
                return Err(wrong(&format!("expected '$', got '{}'", *byte as char)));
            }
            Some(byte) => {
                return Err(wrong(&format!("expected '$', got '{}'", byte.escape_ascii())));
            }
        }
        let len = number(&line[1..]).filter(|len| (0..=limits.bulk_bytes_max as i64).contains(len));
        let len = len.ok_or(wrong("invalid bulk length"))? as usize;
        if len > 16_384 && !authenticated {
            return Err(wrong("unauthenticated bulk length"));
        }
        if stream.len() - bytes.len() + len + 2 > limits.command_bytes_max {
            return Err(wrong("too big request"));
        }
        if bytes.len() < len + 2 {
            return Err(Stop::Unfinished);
        }
        words.push(bytes[..len].to_vec());
        rest = &bytes[len + 2..];
    }
    Ok((words, rest))
}

/// Line before its CR, and the bytes after the CR and one more byte.
fn header<'b>(
    stream: &'b [u8],
    limits: &Limits,
    too_long: &str,
) -> Result<(&'b [u8], &'b [u8]), Stop> {
    let line = stream.split(|byte| *byte == b'\r').next().unwrap();
    if line.len() > limits.line_bytes_max {
        return Err(wrong(too_long));
    }
    let after = stream.get(line.len() + 2..).ok_or(Stop::Unfinished)?;
    Ok((line, after))
}

fn inline<'b>(stream: &'b [u8], limits: &Limits) -> Result<(Words, &'b [u8]), Stop> {
    let line = stream.split(|byte| *byte == b'\n').next().unwrap();
    let no_end = line.contains(&0) || line.len() == stream.len();
    let shown = if no_end { stream.len() } else { line.len() };
    if shown > limits.line_bytes_max {
        return Err(wrong("too big inline request"));
    }
    if no_end {
        return Err(Stop::Unfinished);
    }
    let words = words(line.strip_suffix(b"\r").unwrap_or(line));
    Ok((words.ok_or(wrong("unbalanced quotes in request"))?, &stream[line.len() + 1..]))
}

#[derive(Clone, Copy)]
enum State {
    Between,
    Word,
    Double,
    Single,
    Closed,
}

/// Splits a line byte by byte.
fn words(line: &[u8]) -> Option<Words> {
    let mut words: Words = Vec::new();
    let mut state = State::Between;
    let mut at = 0;
    while at < line.len() {
        let (byte, next) = (line[at], line.get(at + 1).copied());
        at += 1;
        let mut take = |byte| words.last_mut().unwrap().push(byte);
        state = match (state, byte) {
            (State::Between | State::Closed, b' ' | 9..=13) => State::Between,
            (State::Closed, _) => return None,
            (State::Between, _) => {
                words.push(Vec::new());
                at -= 1;
                State::Word
            }
            (State::Word, b' ' | b'\n' | b'\r' | b'\t') => State::Between,
            (State::Word, b'"') => State::Double,
            (State::Word, b'\'') => State::Single,
            (State::Double, b'"') | (State::Single, b'\'') => State::Closed,
            (State::Single, b'\\') if next == Some(b'\'') => {
                take(b'\'');
                at += 1;
                state
            }
            (State::Double, b'\\') if next.is_some() => {
                let digits = line.get(at + 1..at + 3).unwrap_or(b"no");
                let digits = std::str::from_utf8(digits).unwrap_or("no");
                let is_hex = next == Some(b'x') && digits.chars().all(|c| c.is_ascii_hexdigit());
                take(match line[at] {
                    b'x' if is_hex => u8::from_str_radix(digits, 16).unwrap(),
                    b'n' => 10,
                    b'r' => 13,
                    b't' => 9,
                    b'b' => 8,
                    b'a' => 7,
                    other => other,
                });
                at += if is_hex { 3 } else { 1 };
                state
            }
            _ => {
                take(byte);
                state
            }
        };
    }
    matches!(state, State::Between | State::Word | State::Closed).then_some(words)
}

/// Parses a 64-bit number: digits with an optional `-` and without a leading zero.
fn number(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let well_formed = match digits {
        [b'0'] => text == b"0",
        [b'1'..=b'9', more @ ..] => more.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if well_formed { String::from_utf8_lossy(text).parse().ok() } else { None }
}

fn wrong(what: &str) -> Stop {
    Stop::Wrong(what.to_owned())
}
