//! Inline commands: lines of words as typed by hand, split as by Redis and redis-cli.
//!
//! A word may have quoted parts. Between double quotes, `\n \r \t \b \a`, `\xHH` and a backslash before any other
//! character are escapes; between single quotes, only `\'` is one. A closing quote ends the word.

use super::command::Span;
use super::error::ProtocolError;

/// Splits `line` into words. Appends their bytes to `words` and their positions to `spans`.
///
/// # Errors
/// [`ProtocolError::UnbalancedQuotes`] if a quote is not closed, or a word continues after a closing quote.
pub(crate) fn split(
    line: &[u8],
    words: &mut Vec<u8>,
    spans: &mut Vec<Span>,
) -> Result<(), ProtocolError> {
    let mut rest = skip_blanks(line);
    while !rest.is_empty() {
        let start = words.len();
        rest = skip_blanks(word(rest, words)?);
        spans.push(Span::new(start, words.len() - start));
    }
    Ok(())
}

/// Takes one word from the front of `rest`, which does not begin with a space. Returns the rest.
fn word<'b>(mut rest: &'b [u8], words: &mut Vec<u8>) -> Result<&'b [u8], ProtocolError> {
    while let [first, after @ ..] = rest {
        match first {
            b' ' | b'\n' | b'\r' | b'\t' => break,
            b'"' => return ended(double_quoted(after, words)?),
            b'\'' => return ended(single_quoted(after, words)?),
            plain => words.push(*plain),
        }
        rest = after;
    }
    Ok(rest)
}

/// Checks that a closing quote is followed by a space or by the end.
fn ended(rest: &[u8]) -> Result<&[u8], ProtocolError> {
    match rest.first() {
        Some(next) if !is_blank(*next) => Err(ProtocolError::UnbalancedQuotes),
        _ => Ok(rest),
    }
}

fn double_quoted<'b>(mut rest: &'b [u8], words: &mut Vec<u8>) -> Result<&'b [u8], ProtocolError> {
    loop {
        rest = match rest {
            [b'"', after @ ..] => return Ok(after),
            [b'\\', b'x', high, low, after @ ..] if let Some(byte) = hex_byte(*high, *low) => {
                words.push(byte);
                after
            }
            [b'\\', escaped, after @ ..] => {
                words.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    itself => *itself,
                });
                after
            }
            [plain, after @ ..] => {
                words.push(*plain);
                after
            }
            [] => return Err(ProtocolError::UnbalancedQuotes),
        };
    }
}

fn single_quoted<'b>(mut rest: &'b [u8], words: &mut Vec<u8>) -> Result<&'b [u8], ProtocolError> {
    loop {
        rest = match rest {
            [b'\'', after @ ..] => return Ok(after),
            [b'\\', b'\'', after @ ..] => {
                words.push(b'\'');
                after
            }
            [plain, after @ ..] => {
                words.push(*plain);
                after
            }
            [] => return Err(ProtocolError::UnbalancedQuotes),
        };
    }
}

fn hex_byte(high: u8, low: u8) -> Option<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

fn skip_blanks(line: &[u8]) -> &[u8] {
    let blanks = line.iter().take_while(|byte| is_blank(**byte)).count();
    line.get(blanks..).unwrap_or_default()
}

/// Whether a byte is a space in C. Only ` \n\r\t` end an unquoted word.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}
