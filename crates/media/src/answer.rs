//! Result of a conversion as bytes. The process that converts a picture writes them, and the process that started it
//! reads them.

use crate::{Encoded, MediaError, Picture, STORED_BYTES_MAX};

/// Maximum size of a result, in bytes.
pub const ANSWER_BYTES_MAX: usize = 2 * STORED_BYTES_MAX + 1_024;

const CONVERTED: u8 = 0;
const TOO_LONG: u8 = 1;
const DAMAGED: u8 = 2;

/// Serializes a result.
#[must_use]
pub fn to_bytes(result: &Result<Picture, MediaError>) -> Vec<u8> {
    let picture = match result {
        Ok(picture) => picture,
        Err(MediaError::Stored) => return vec![TOO_LONG],
        Err(_) => return vec![DAMAGED],
    };
    let mut bytes = vec![CONVERTED];
    put(&mut bytes, picture.blurhash.as_bytes());
    for file in std::iter::once(&picture.original).chain(&picture.preview) {
        bytes.push(u8::from(file.is_png));
        bytes.extend_from_slice(&file.width.to_le_bytes());
        bytes.extend_from_slice(&file.height.to_le_bytes());
        put(&mut bytes, &file.bytes);
    }
    bytes
}

/// Parses the bytes of [`to_bytes`].
///
/// # Errors
/// [`MediaError::Stored`] if the bytes contain this error, otherwise [`MediaError::Damaged`]. Incomplete bytes are also
/// damaged: the process ended before it had written all.
pub fn from_bytes(bytes: &[u8]) -> Result<Picture, MediaError> {
    match bytes.split_first() {
        Some((&CONVERTED, rest)) => picture(rest).ok_or(MediaError::Damaged),
        Some((&TOO_LONG, [])) => Err(MediaError::Stored),
        _ => Err(MediaError::Damaged),
    }
}

fn picture(mut bytes: &[u8]) -> Option<Picture> {
    let blurhash = std::str::from_utf8(take(&mut bytes)?).ok()?.to_owned();
    let original = file(&mut bytes)?;
    let preview = if bytes.is_empty() { None } else { Some(file(&mut bytes)?) };
    bytes.is_empty().then_some(Picture { original, preview, blurhash })
}

fn file(bytes: &mut &[u8]) -> Option<Encoded> {
    let ([is_png, w0, w1, w2, w3, h0, h1, h2, h3], rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(Encoded {
        is_png: *is_png == 1,
        width: u32::from_le_bytes([*w0, *w1, *w2, *w3]),
        height: u32::from_le_bytes([*h0, *h1, *h2, *h3]),
        bytes: take(bytes)?.to_vec(),
    })
}

/// Appends the length of `bytes`, then `bytes`.
fn put(to: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    to.extend_from_slice(&length.to_le_bytes());
    to.extend_from_slice(bytes);
}

fn take<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (taken, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_read_as_it_was_written_and_no_part_of_one_is() {
        let file = |bytes: &[u8], is_png| Encoded {
            bytes: bytes.to_vec(),
            is_png,
            width: 70_000,
            height: 3,
        };
        let original = file(b"original", true);
        for preview in [None, Some(file(b"", false))] {
            let picture = Picture { original: original.clone(), preview, blurhash: "L".to_owned() };
            let bytes = to_bytes(&Ok(picture.clone()));
            assert_eq!(from_bytes(&bytes).unwrap(), picture);
            let whole = 1 + 5 + 9 + 4 + original.bytes.len();
            for cut in (0..bytes.len()).filter(|cut| *cut != whole) {
                assert!(matches!(from_bytes(&bytes[..cut]), Err(MediaError::Damaged)), "{cut}");
            }
            assert!(from_bytes(&[&bytes[..], b"x"].concat()).is_err());
        }
        for error in [MediaError::Stored, MediaError::Damaged] {
            let text = error.to_string();
            assert_eq!(from_bytes(&to_bytes(&Err(error))).unwrap_err().to_string(), text);
        }
    }
}
