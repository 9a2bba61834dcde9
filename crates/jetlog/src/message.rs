//! A group as a message of the stream. Numbers are little endian:
//!
//! | bytes | content |
//! |---|---|
//! | 0 to 3 | `RGRP` |
//! | 4 to 7 | version of this format: 1 |
//! | 8 to 11 | CRC-32C of all other bytes |
//! | 12 to 27 | node |
//! | 28 to 35 | epoch |
//! | 36 to 43 | number |
//! | 44 to 51 | the node's time when it appended the group, in milliseconds since 1970 |
//! | 52 on | payload, 1 byte or more |

use bytes::{BufMut as _, Bytes, BytesMut};
use commitlog::{GroupId, NodeId};

/// Version of the format that this program reads and writes.
pub(crate) const FORMAT_VERSION: u32 = 1;
/// Length of the header before the payload, in bytes.
pub(crate) const HEADER_BYTES: usize = 52;
const MAGIC: &[u8; 4] = b"RGRP";

/// Content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) id: GroupId,
    /// Time of the node when it appended the group, in milliseconds since 1970.
    pub(crate) sent_ms: u64,
    pub(crate) payload: Bytes,
}

/// Reason why a message cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// Description of the damage.
    Damaged(&'static str),
    /// Version of the message.
    Version(u32),
}

/// Encodes the message of a group.
pub(crate) fn encode(id: GroupId, sent_ms: u64, payload: &[u8]) -> Bytes {
    let mut named = BytesMut::with_capacity(HEADER_BYTES + payload.len());
    named.put_u128_le(id.node.0);
    named.put_u64_le(id.epoch);
    named.put_u64_le(id.number);
    named.put_u64_le(sent_ms);
    named.put_slice(payload);
    let version = FORMAT_VERSION.to_le_bytes();
    let mut message = BytesMut::with_capacity(HEADER_BYTES + payload.len());
    message.put_slice(MAGIC);
    message.put_slice(&version);
    message.put_u32_le(checksum(version, &named));
    message.put_slice(&named);
    message.freeze()
}

/// Returns the checksum of a group's message: of all bytes except the checksum.
fn checksum(version: [u8; 4], named: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(crc32c::crc32c(MAGIC), &version), named)
}

/// Decodes the group in a message; `None` if another program wrote the message. A message counts as a group if its
/// magic number or its checksum is right, so a damaged group is not mistaken for a message of another program.
pub(crate) fn decode(message: &Bytes) -> Result<Option<Message>, Malformed> {
    let begins = message.starts_with(MAGIC);
    let short = match begins {
        true => Err(Malformed::Damaged("it is shorter than the header of a group")),
        false => Ok(None),
    };
    let Some((_, rest)) = message.split_first_chunk::<4>() else { return short };
    let Some((version, rest)) = rest.split_first_chunk::<4>() else { return short };
    let Some((expected, named)) = rest.split_first_chunk::<4>() else { return short };
    let found = u32::from_le_bytes(*version);
    if begins && found != FORMAT_VERSION {
        return Err(Malformed::Version(found));
    }
    match (begins, u32::from_le_bytes(*expected) == checksum(*version, named)) {
        (true, true) => {}
        (true, false) => return Err(Malformed::Damaged("it does not match its checksum")),
        (false, true) => return Err(Malformed::Damaged("it does not begin as a group")),
        (false, false) => return Ok(None),
    }
    let Some((node, rest)) = named.split_first_chunk::<16>() else { return short };
    let Some((epoch, rest)) = rest.split_first_chunk::<8>() else { return short };
    let Some((number, rest)) = rest.split_first_chunk::<8>() else { return short };
    let Some((sent_ms, payload)) = rest.split_first_chunk::<8>() else { return short };
    let id = GroupId {
        node: NodeId(u128::from_le_bytes(*node)),
        epoch: u64::from_le_bytes(*epoch),
        number: u64::from_le_bytes(*number),
    };
    if payload.is_empty() || id.number == 0 {
        return Err(Malformed::Damaged("it has a header that no node writes"));
    }
    Ok(Some(Message {
        id,
        sent_ms: u64::from_le_bytes(*sent_ms),
        payload: message.slice_ref(payload),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: GroupId = GroupId { node: NodeId(7 << 100), epoch: 1 << 40, number: 5 };
    const SENT_MS: u64 = 1 << 41;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        for payload in [&b"x"[..], &[0; 70_000]] {
            let read = decode(&encode(ID, SENT_MS, payload)).unwrap().unwrap();
            assert_eq!((read.id, read.sent_ms, &*read.payload), (ID, SENT_MS, payload));
        }
    }

    #[test]
    fn a_message_of_version_1_has_these_bytes() {
        let node = NodeId(0x100f_0e0d_0c0b_0a09_0807_0605_0403_0201);
        let id = GroupId { node, epoch: 17, number: 18 };
        let payload = Bytes::from_static(b"payload");
        let version_1: &[u8] = b"RGRP\x01\0\0\0\x47\xc5\x33\x3c\
            \x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\
            \x11\0\0\0\0\0\0\0\x12\0\0\0\0\0\0\0\x13\0\0\0\0\0\0\0payload";
        let read = decode(&Bytes::from_static(version_1)).unwrap().unwrap();
        assert_eq!(read, Message { id, sent_ms: 19, payload });
        assert_eq!(&*encode(id, 19, b"payload"), version_1);
    }

    #[test]
    fn a_message_that_was_changed_cut_or_extended_is_refused() {
        let message = encode(ID, SENT_MS, b"payload");
        for bit in 0..message.len() * 8 {
            let mut changed = message.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&changed.into()).is_err(), "bit {bit}");
        }
        for bytes in MAGIC.len()..message.len() {
            assert!(decode(&message.slice(..bytes)).is_err(), "{bytes} bytes");
        }
        assert!(decode(&[&message[..], b"x"].concat().into()).is_err());
    }

    #[test]
    fn a_message_of_another_version_says_which() {
        let mut newer = encode(ID, SENT_MS, b"payload").to_vec();
        newer[4] = 2;
        assert_eq!(decode(&newer.into()), Err(Malformed::Version(2)));
    }

    #[test]
    fn headers_that_no_node_writes_are_refused() {
        let unnumbered = encode(GroupId { number: 0, ..ID }, SENT_MS, b"payload");
        for message in [encode(ID, SENT_MS, b""), unnumbered] {
            assert!(matches!(decode(&message), Err(Malformed::Damaged(_))), "{message:?}");
        }
    }

    #[test]
    fn messages_of_other_programs_are_no_groups() {
        for message in [&b""[..], b"RGR", b"{\"order\": 7}", &[0; 60], &[b'R'; 60]] {
            assert_eq!(decode(&Bytes::from_static(message)), Ok(None), "{message:?}");
        }
    }
}
