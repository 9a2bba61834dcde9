//! Conversion of bytes to text.

use std::borrow::Cow;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A text and no base64, or base64 and no text.
type TextOrBase64<'a> = (Option<Cow<'a, str>>, Option<Cow<'a, str>>);

/// Converts bytes to text if they are readable text, otherwise to base64.
pub(crate) fn to_text(bytes: &[u8]) -> TextOrBase64<'_> {
    match std::str::from_utf8(bytes) {
        // Text with other control characters becomes base64, because JSON escapes each of them with six bytes.
        Ok(text) if !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) => {
            (Some(text.into()), None)
        }
        _ => (None, Some(STANDARD.encode(bytes).into())),
    }
}

/// Reverses [`to_text`]; `None` if not exactly one argument is given, or the base64 is invalid.
pub(crate) fn from_text(
    text: Option<Cow<'_, str>>,
    base64: Option<Cow<'_, str>>,
) -> Option<Vec<u8>> {
    match (text, base64) {
        (Some(text), None) => Some(text.into_owned().into_bytes()),
        (None, Some(base64)) => STANDARD.decode(base64.as_bytes()).ok(),
        _ => None,
    }
}

/// Formats each byte as two hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let Ok(()) = write!(text, "{byte:02x}") else { unreachable!("text grows") };
        text
    })
}

/// Reverses [`to_hex`] for a known number of bytes; accepts capital letters.
pub(crate) fn from_hex<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let digit = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    bytes.collect::<Option<Vec<u8>>>()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_text_where_people_can_read_them() {
        for (bytes, is_text) in [
            (&b"plain \"text\"\n"[..], true),
            ("caf\u{e9}".as_bytes(), true),
            (b"", true),
            (b"\0", false),
            (b"\x1b[0m", false),
            (b"\xff\xfe", false),
        ] {
            let (text, base64) = to_text(bytes);
            assert_eq!((text.is_some(), base64.is_some()), (is_text, !is_text), "{bytes:?}");
            assert_eq!(from_text(text, base64).as_deref(), Some(bytes));
        }
        assert_eq!(from_text(None, None), None);
        assert_eq!(from_text(Some("a".into()), Some("YQ==".into())), None);
        assert_eq!(from_text(None, Some("!".into())), None);
    }

    #[test]
    fn hexadecimal_digits_are_as_many_as_are_needed() {
        assert_eq!(from_hex(&to_hex(&[0, 0x7f, 0xff])), Some([0, 0x7f, 0xff]));
        assert_eq!(from_hex("aAF0"), Some([0xaa, 0xf0]));
        for wrong in ["", "aa", "aaaaa", "aaaaaa", "aag0", "+1+1"] {
            assert_eq!(from_hex::<2>(wrong), None, "{wrong}");
        }
    }
}
