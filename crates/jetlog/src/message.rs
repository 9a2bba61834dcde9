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
//! | 44 on | payload, 1 byte or more |

use bytes::{BufMut as _, Bytes, BytesMut};
use commitlog::{GroupId, NodeId};

/// The newest version of the format that this program writes and reads.
pub(crate) const FORMAT_VERSION: u32 = 1;
/// Bytes of a message before its payload.
pub(crate) const HEADER_BYTES: usize = 44;
const MAGIC: &[u8; 4] = b"RGRP";

/// Why a message is not a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// Description of the damage.
    Damaged(&'static str),
    /// The version in which it was written.
    Version(u32),
}

/// The message of a group.
pub(crate) fn encode(id: GroupId, payload: &[u8]) -> Bytes {
    let mut rest = BytesMut::with_capacity(HEADER_BYTES + payload.len());
    rest.put_slice(MAGIC);
    rest.put_u32_le(FORMAT_VERSION);
    let mut named = rest.split_off(rest.len());
    named.put_u128_le(id.node.0);
    named.put_u64_le(id.epoch);
    named.put_u64_le(id.number);
    named.put_slice(payload);
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&rest), &named);
    let mut message = BytesMut::with_capacity(HEADER_BYTES + payload.len());
    message.put_slice(&rest);
    message.put_u32_le(checksum);
    message.put_slice(&named);
    message.freeze()
}

/// The group of a message.
pub(crate) fn decode(message: &Bytes) -> Result<(GroupId, Bytes), Malformed> {
    let short = Malformed::Damaged("it is shorter than the header of a group");
    let Some((magic, rest)) = message.split_first_chunk::<4>() else { return Err(short) };
    let Some((version, rest)) = rest.split_first_chunk::<4>() else { return Err(short) };
    let Some((checksum, named)) = rest.split_first_chunk::<4>() else { return Err(short) };
    if magic != MAGIC {
        return Err(Malformed::Damaged("it does not begin as a group: another program wrote it"));
    }
    let found = u32::from_le_bytes(*version);
    if found > FORMAT_VERSION {
        return Err(Malformed::Version(found));
    }
    let expected =
        crc32c::crc32c_append(crc32c::crc32c_append(crc32c::crc32c(magic), version), named);
    if u32::from_le_bytes(*checksum) != expected {
        return Err(Malformed::Damaged("it does not match its checksum"));
    }
    let Some((node, rest)) = named.split_first_chunk::<16>() else { return Err(short) };
    let Some((epoch, rest)) = rest.split_first_chunk::<8>() else { return Err(short) };
    let Some((number, payload)) = rest.split_first_chunk::<8>() else { return Err(short) };
    let id = GroupId {
        node: NodeId(u128::from_le_bytes(*node)),
        epoch: u64::from_le_bytes(*epoch),
        number: u64::from_le_bytes(*number),
    };
    if payload.is_empty() || id.number == 0 || found == 0 {
        return Err(Malformed::Damaged("it has a header that no node writes"));
    }
    Ok((id, message.slice_ref(payload)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: GroupId = GroupId { node: NodeId(7 << 100), epoch: 1 << 40, number: 5 };

    #[test]
    fn a_message_is_read_as_it_was_written() {
        for payload in [&b"x"[..], &[0; 70_000]] {
            let (id, read) = decode(&encode(ID, payload)).unwrap();
            assert_eq!((id, &*read), (ID, payload));
        }
    }

    /// A change of the format must not change what version 1 means.
    #[test]
    fn a_message_of_version_1_is_read() {
        let fixture: &[u8] = b"RGRP\x01\0\0\0\xce\x59\x7d\x3f\
            \x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\
            \x11\0\0\0\0\0\0\0\x12\0\0\0\0\0\0\0payload";
        let (id, payload) = decode(&Bytes::from_static(fixture)).unwrap();
        let node = NodeId(0x100f_0e0d_0c0b_0a09_0807_0605_0403_0201);
        assert_eq!(id, GroupId { node, epoch: 17, number: 18 });
        assert_eq!(&*payload, b"payload");
        assert_eq!(&*encode(id, b"payload"), fixture);
    }

    #[test]
    fn a_message_that_was_changed_cut_or_extended_is_refused() {
        let message = encode(ID, b"payload");
        for bit in 0..message.len() * 8 {
            let mut changed = message.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&changed.into()).is_err(), "bit {bit}");
        }
        for bytes in 0..message.len() {
            assert!(decode(&message.slice(..bytes)).is_err(), "{bytes} bytes");
        }
        assert!(decode(&[&message[..], b"x"].concat().into()).is_err());
    }

    #[test]
    fn a_message_of_a_newer_version_says_which() {
        let mut newer = encode(ID, b"payload").to_vec();
        newer[4] = 2;
        assert_eq!(decode(&newer.into()), Err(Malformed::Version(2)));
    }

    #[test]
    fn headers_that_no_node_writes_are_refused() {
        let unnumbered = encode(GroupId { number: 0, ..ID }, b"payload");
        for message in [encode(ID, b""), unnumbered, Bytes::from_static(b"{\"order\": 7}")] {
            assert!(matches!(decode(&message), Err(Malformed::Damaged(_))), "{message:?}");
        }
    }
}
