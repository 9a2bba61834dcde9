//! A file as messages: parts of equal length, except that the last one may be shorter.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | format, 1 |
//! | 4 | length of the file, little endian |
//! | up to [`PART_BYTES`] | part of the file |
//!
//! The parts of a file depend only on its bytes, so any node may store it, at any time and repeatedly.

use bytes::{BufMut as _, Bytes, BytesMut};

/// Length of a part in bytes. With a header, it fits into the smallest maximum message length that a cluster may have
/// (64 KiB).
pub(super) const PART_BYTES: usize = 60 << 10;
const FORMAT: u8 = 1;
const HEADER_BYTES: usize = 5;

/// Returns the parts of a file. An empty file has one part.
pub(super) fn parts(file: &[u8]) -> impl Iterator<Item = Bytes> + '_ {
    let count = count(file.len());
    (0..count).map(|at| {
        let rest = file.get(at * PART_BYTES..).unwrap_or_default();
        let part = rest.get(..PART_BYTES).unwrap_or(rest);
        let mut message = BytesMut::with_capacity(HEADER_BYTES + part.len());
        message.put_u8(FORMAT);
        message.put_u32_le(u32::try_from(file.len()).unwrap_or(u32::MAX));
        message.put_slice(part);
        message.freeze()
    })
}

/// Returns the number of parts of a file of `bytes` bytes.
pub(super) fn count(bytes: usize) -> usize {
    bytes.div_ceil(PART_BYTES).max(1)
}

/// Returns the length of the file and the part in a message; `None` if the message is not a part of a file.
pub(super) fn read(message: &[u8]) -> Option<(usize, &[u8])> {
    let (header, part) = message.split_first_chunk::<HEADER_BYTES>()?;
    let [format, length @ ..] = *header;
    let length = usize::try_from(u32::from_le_bytes(length)).ok()?;
    (format == FORMAT && part.len() <= PART_BYTES).then_some((length, part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_file() {
        for length in [0, 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES, 200_000] {
            let file: Vec<u8> = (0..length).map(|at| (at * 7 + at / 251) as u8).collect();
            let messages: Vec<Bytes> = parts(&file).collect();
            assert_eq!(messages.len(), count(length));
            assert!(messages.iter().all(|message| message.len() <= 64 << 10));
            let found: Vec<(usize, &[u8])> =
                messages.iter().map(|one| read(one).unwrap()).collect();
            assert!(found.iter().all(|(bytes, _)| *bytes == length));
            let joined: Vec<u8> = found.iter().flat_map(|(_, part)| *part).copied().collect();
            assert!(joined == file, "{length}");
        }
    }

    #[test]
    fn what_is_no_part_is_refused() {
        for message in [&[][..], &[1, 0, 0, 0], &[2, 1, 0, 0, 0, 7], &[0; 5], &[1; PART_BYTES + 6]]
        {
            assert_eq!(read(message), None);
        }
    }
}
