//! Format of DUMP and RESTORE: a string as in an RDB file, then the RDB version in 2 bytes, then a CRC-64 of all bytes
//! before it in 8 bytes (both little endian). Redis and roost can read each other's payloads.
//!
//! A string is its length and its bytes. The two highest bits of the first byte of a length say where the length is
//! (big endian). 0: in the other 6 bits. 1: in the other 6 bits and the next byte. 2: in the next 4 bytes, or in the
//! next 8 if the lowest bit is set. For 3, the other 6 bits are the kind of the content. Kinds 0, 1 and 2: a
//! little-endian number of 1, 2 or 4 bytes, whose decimal digits are the value. Kind 3: a text compressed by LZF, after
//! its compressed length and its full length.

use kv::limits::VALUE_BYTES_MAX;

/// RDB version of Redis 7.0. Later versions of Redis read it. Payloads of later versions are refused.
const VERSION: u16 = 10;
/// Type of a string value.
const STRING: u8 = 0;
/// Size of version and checksum, in bytes.
const FOOTER_BYTES: usize = 10;
/// Maximum size of a payload without the value, in bytes.
pub(crate) const EXTRA_BYTES: usize = 6 + FOOTER_BYTES;

/// Reason why a payload is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DumpError {
    /// The payload is truncated, damaged, or from a newer Redis.
    Footer,
    /// The payload is intact, but not a string within the length limit.
    Format,
}

/// Packs a value into a payload.
pub(crate) fn dump(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len() + EXTRA_BYTES);
    out.push(STRING);
    match value.len() {
        len @ 0..64 => out.push(len as u8),
        len @ 64..16_384 => out.extend_from_slice(&(0x4000 | len as u16).to_be_bytes()),
        len => {
            out.push(0x80);
            out.extend_from_slice(&(len as u32).to_be_bytes());
        }
    }
    out.extend_from_slice(value);
    out.extend_from_slice(&VERSION.to_le_bytes());
    let checksum = crc64(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

/// Unpacks the value of a payload.
pub(crate) fn restore(payload: &[u8]) -> Result<Vec<u8>, DumpError> {
    let (rest, checksum) = payload.split_last_chunk::<8>().ok_or(DumpError::Footer)?;
    let (body, version) = rest.split_last_chunk::<2>().ok_or(DumpError::Footer)?;
    if u16::from_le_bytes(*version) > VERSION || u64::from_le_bytes(*checksum) != crc64(rest) {
        return Err(DumpError::Footer);
    }
    let string = body.strip_prefix(&[STRING]).and_then(string);
    let (value, []) = string.ok_or(DumpError::Format)? else { return Err(DumpError::Format) };
    if value.len() > VALUE_BYTES_MAX { Err(DumpError::Format) } else { Ok(value) }
}

/// Maximum memory that [`restore`] allocates, in bytes: for a compressed payload, the full length that it states.
pub(crate) fn work_bytes(payload: &[u8]) -> usize {
    let unpacked = match payload {
        [STRING, 0xc3, rest @ ..] => length(rest).and_then(|(_, rest)| length(rest)),
        _ => None,
    };
    let announced = unpacked.map_or(0, |(unpacked, _)| unpacked.min(VALUE_BYTES_MAX));
    announced.max(payload.len())
}

/// Parses a string. Returns the string and the rest.
fn string(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    match bytes {
        [0xc0, rest @ ..] => digits(rest, |bytes| i8::from_le_bytes(bytes).into()),
        [0xc1, rest @ ..] => digits(rest, |bytes| i16::from_le_bytes(bytes).into()),
        [0xc2, rest @ ..] => digits(rest, |bytes| i32::from_le_bytes(bytes).into()),
        [0xc3, rest @ ..] => {
            let (packed, rest) = length(rest)?;
            let (unpacked, rest) = length(rest)?;
            let (packed, rest) = rest.split_at_checked(packed)?;
            (unpacked <= VALUE_BYTES_MAX).then_some(())?;
            Some((unpack(packed, unpacked)?, rest))
        }
        _ => {
            let (len, rest) = length(bytes)?;
            let (value, rest) = rest.split_at_checked(len)?;
            Some((value.to_vec(), rest))
        }
    }
}

fn digits<const N: usize>(
    bytes: &[u8],
    number: impl FnOnce([u8; N]) -> i64,
) -> Option<(Vec<u8>, &[u8])> {
    let (bytes, rest) = bytes.split_first_chunk()?;
    Some((number(*bytes).to_string().into_bytes(), rest))
}

fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match bytes {
        [0x80, rest @ ..] => {
            let (len, rest) = rest.split_first_chunk()?;
            Some((u32::from_be_bytes(*len) as usize, rest))
        }
        [0x81, rest @ ..] => {
            let (len, rest) = rest.split_first_chunk()?;
            Some((usize::try_from(u64::from_be_bytes(*len)).ok()?, rest))
        }
        [len @ 0..0x40, rest @ ..] => Some((usize::from(*len), rest)),
        [high @ 0x40..0x80, low, rest @ ..] => {
            Some((usize::from(high & 0x3f) << 8 | usize::from(*low), rest))
        }
        _ => None,
    }
}

/// Decompresses LZF. A control byte `n` below 32 is followed by `n + 1` literal bytes. Other control bytes repeat
/// earlier output: they have 3 bits of length and 13 bits of distance. If the 3 bits are all set, a byte of additional
/// length is between them.
fn unpack(packed: &[u8], unpacked: usize) -> Option<Vec<u8>> {
    // LZF expands by a factor of at most about 260, so memory is proportional to the input.
    let mut out = Vec::with_capacity(unpacked.min(packed.len().saturating_mul(264)));
    let mut rest = packed;
    while let [control, after @ ..] = rest {
        if *control < 32 {
            let (literal, after) = after.split_at_checked(usize::from(*control) + 1)?;
            out.extend_from_slice(literal);
            rest = after;
        } else {
            let (more, low, after) = match (*control >> 5, after) {
                (7, [more, low, after @ ..]) => (usize::from(*more), *low, after),
                (0..7, [low, after @ ..]) => (0, *low, after),
                _ => return None,
            };
            let len = usize::from(*control >> 5) + more + 2;
            let distance = (usize::from(*control & 0x1f) << 8 | usize::from(low)) + 1;
            let from = out.len().checked_sub(distance)?;
            // The source may overlap the bytes that are being written.
            if out.len() + len > unpacked {
                return None;
            }
            for at in from..from + len {
                out.push(*out.get(at)?);
            }
            rest = after;
        }
        if out.len() > unpacked {
            return None;
        }
    }
    (out.len() == unpacked).then_some(out)
}

/// Computes the CRC-64 of Redis: the polynomial of Jones, reflected input and output, no final XOR.
fn crc64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |crc: u64, byte| {
        let [low, ..] = crc.to_le_bytes();
        let Some(change) = TABLE.get(usize::from(low ^ byte)) else {
            unreachable!("a byte indexes a table of 256")
        };
        change ^ (crc >> 8)
    })
}

#[allow(clippy::indexing_slicing, reason = "a byte indexes a table of 256")]
const TABLE: [u64; 256] = {
    /// Polynomial ad93d23594c935a9 with its bits in reverse order.
    const POLYNOMIAL: u64 = 0xad93_d235_94c9_35a9_u64.reverse_bits();
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(body: &[u8]) -> Vec<u8> {
        let mut payload = [body, &VERSION.to_le_bytes()].concat();
        payload.extend_from_slice(&crc64(&payload).to_le_bytes());
        payload
    }

    #[test]
    fn the_checksum_is_that_of_redis() {
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }

    #[test]
    fn values_of_all_lengths_come_back() {
        for len in [0, 1, 63, 64, 16_383, 16_384, 100_000, VALUE_BYTES_MAX] {
            let value = vec![b'x'; len];
            assert_eq!(restore(&dump(&value)).as_ref(), Ok(&value), "{len}");
        }
    }

    #[test]
    fn what_redis_writes_is_read() {
        // Replies of Redis 7.0.15 to DUMP.
        let hello = b"\0\x05hello\x0a\0\x63\x72\xdf\x76\x65\x34\x20\x0a";
        assert_eq!(restore(hello).unwrap(), b"hello");
        assert_eq!(dump(b"hello"), hello);
        let ten = b"\0\xc0\x0a\x0a\0\x6e\x9f\x57\x45\x0e\xae\x63\xbb";
        assert_eq!(restore(ten).unwrap(), b"10");
        let packed = b"\0\xc3\x09\x28\x01aa\xe0\x1b\0\x01aa\x0a\0\xcf\x09\x2f\xaa\xae\x25\x83\x1d";
        assert_eq!(restore(packed).unwrap(), [b'a'; 40]);
        for (body, value) in
            [(&b"\0\xc1\x2c\xfe"[..], "-468"), (b"\0\xc2\xff\xff\xff\x7f", "2147483647")]
        {
            assert_eq!(restore(&sealed(body)).unwrap(), value.as_bytes());
        }
    }

    #[test]
    fn compressed_texts_are_unpacked() {
        // One literal `a`, then 19 bytes that repeat the previous byte.
        assert_eq!(unpack(b"\0a\xe0\x0a\0", 20).unwrap(), [b'a'; 20]);
        assert_eq!(unpack(b"\x02abc\x20\x02", 6).unwrap(), b"abcabc");
        for (packed, unpacked) in [
            (&b"\0"[..], 1),        // the literal is missing
            (b"\0a\x20", 4),        // the distance is missing
            (b"\0a\x20\x01", 4),    // before the beginning
            (b"\0a\xe0\x0a\0", 19), // longer than announced
            (b"\0a\xe0\x0a\0", 21), // shorter
        ] {
            assert_eq!(unpack(packed, unpacked), None, "{packed:?}");
        }
    }

    #[test]
    fn damaged_payloads_are_told_from_wrong_ones() {
        let payload = dump(b"hello");
        for at in 0..payload.len() {
            let mut damaged = payload.clone();
            damaged[at] ^= 1;
            assert_eq!(restore(&damaged), Err(DumpError::Footer), "{at}");
            assert_eq!(restore(&payload[..at]), Err(DumpError::Footer), "{at}");
        }
        for body in [
            &b"\x01\x05hello"[..],
            b"\0\x06hello",
            b"\0\x04hello",
            b"\0\xc4",
            b"",
            b"\0",
            b"\0\x81\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\0\xc3\x01\x84\xff\xff\xff\xff\0",
        ] {
            assert_eq!(restore(&sealed(body)), Err(DumpError::Format), "{body:?}");
        }
    }
}
