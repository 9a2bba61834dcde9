//! Format 1 of the local log: what stands in a segment file, byte by byte. Pure: no files here.
//!
//! All numbers are little endian. A file is a row of **sectors** of 512 bytes, the unit that a disk
//! writes whole or not at all. The first four bytes of a sector say what it is:
//!
//! | sector | bytes | what |
//! |---|---|---|
//! | segment, the first of a file | 0..4 | `SEGM` |
//! | | 4..8 | format version, `u32` |
//! | | 8..16 | position of the first group, `u64`, as in the file's name |
//! | | 16..24 | length of the file in bytes, `u64` |
//! | | 24..28 | CRC-32C of bytes 0..24, `u32` |
//! | | 28..512 | zeros |
//! | group, the first of a group | 0..4 | `GRUP` |
//! | | 4..8 | length of the payload in bytes, `u32`, 1 to 64 Mi |
//! | | 8..16 | position, `u64` |
//! | | 16..24 | durable: the last position that was known to be synced when this was written, `u64` |
//! | | 24..28 | CRC-32C of the payload, `u32` |
//! | | 28..32 | CRC-32C of bytes 0..28, `u32` |
//! | | 32..512 | the payload's first 480 bytes |
//! | more, the others of a group | 0..4 | `MORE` |
//! | | 4..512 | the payload's next 508 bytes |
//! | unwritten | 0..512 | zeros |
//!
//! What the payload leaves of a group's last sector is zeros. The file name is the position of the
//! first group in 20 digits and `.log`. Bytes 0..8 and 24..28 of the segment sector mean the same in
//! every format to come, so that an older program can tell a newer format from damage.
//!
//! Why it is so:
//! - Files are filled with zeros before they are used, because overwriting is cheaper to sync than
//!   growing; so a sector that a power loss swallowed is a sector of zeros.
//! - No two groups share a sector: what was acknowledged is never written again.
//! - No written sector is all zeros, nor one flipped bit away from it: a swallowed sector and a damaged
//!   one can be told apart whatever the payload. And no payload can pass for a group's header.
//! - `durable` tells a group that was lost before it was synced, while others behind it happened to
//!   reach the disk, from one that was synced and then damaged.

/// The unit of writing, and of alignment, in bytes.
pub(super) const SECTOR_BYTES: usize = 512;
/// The format that this program writes and reads.
pub(super) const FORMAT_VERSION: u32 = 1;
/// The longest payload of one group, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;

const SEGMENT: [u8; 4] = *b"SEGM";
const GROUP: [u8; 4] = *b"GRUP";
const MORE: [u8; 4] = *b"MORE";
/// Payload bytes in the first sector of a group, and in each of the others.
const FIRST_BYTES: usize = SECTOR_BYTES - 32;
const MORE_BYTES: usize = SECTOR_BYTES - 4;

pub(super) type Sector = [u8; SECTOR_BYTES];

/// What the first sector of a file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) version: u32,
    pub(super) first: u64,
    pub(super) bytes: u64,
}

/// What the first sector of a group says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupHeader {
    pub(super) payload_bytes: usize,
    pub(super) position: u64,
    pub(super) durable: u64,
    payload_crc: u32,
}

/// What stands where a group may begin.
pub(super) enum Start {
    Unwritten,
    Group(GroupHeader),
    Damaged(&'static str),
}

/// The state of a group whose header is sound.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Body {
    Whole,
    /// Some sectors were never written; the others may be sound.
    Torn,
    Damaged(&'static str),
}

/// The sectors that a group of so many payload bytes takes.
pub(super) fn group_sectors(payload_bytes: usize) -> usize {
    1 + payload_bytes.saturating_sub(FIRST_BYTES).div_ceil(MORE_BYTES)
}

pub(super) fn is_unwritten(sector: &Sector) -> bool {
    // Without an early exit the compiler makes vector code of it.
    sector.iter().fold(0, |any, byte| any | byte) == 0
}

pub(super) fn segment_sector(first: u64, bytes: u64) -> Sector {
    let mut header = Vec::with_capacity(28);
    header.extend(SEGMENT);
    header.extend(FORMAT_VERSION.to_le_bytes());
    header.extend(first.to_le_bytes());
    header.extend(bytes.to_le_bytes());
    header.extend(crc32c::crc32c(&header).to_le_bytes());
    sector_of(&header, &[])
}

/// Reads a file's first sector, of any version; what follows the header is checked in our own.
pub(super) fn read_segment_sector(sector: &Sector) -> Result<SegmentHeader, &'static str> {
    let mut rest = sector.as_slice();
    let magic: [u8; 4] = take(&mut rest);
    let header = SegmentHeader {
        version: u32::from_le_bytes(take(&mut rest)),
        first: u64::from_le_bytes(take(&mut rest)),
        bytes: u64::from_le_bytes(take(&mut rest)),
    };
    let crc = u32::from_le_bytes(take(&mut rest));
    if magic != SEGMENT {
        return Err("this is not a segment of a roost log");
    }
    if crc != crc32c::crc32c(sector.split_at(24).0) {
        return Err("the segment header does not match its checksum");
    }
    if header.version == FORMAT_VERSION && rest.iter().any(|byte| *byte != 0) {
        return Err("there is something behind the segment header");
    }
    Ok(header)
}

/// Appends the sectors of a group to `out`.
pub(super) fn write_group(position: u64, durable: u64, payload: &[u8], out: &mut Vec<Sector>) {
    assert!((1..=PAYLOAD_BYTES_MAX).contains(&payload.len()));
    assert!(durable < position, "a group is durable after it is written");
    let mut header = [0; 32];
    let mut rest = header.as_mut_slice();
    put(&mut rest, &GROUP);
    put(&mut rest, &(payload.len() as u32).to_le_bytes());
    put(&mut rest, &position.to_le_bytes());
    put(&mut rest, &durable.to_le_bytes());
    put(&mut rest, &crc32c::crc32c(payload).to_le_bytes());
    let crc = crc32c::crc32c(header.split_at(28).0);
    put(&mut header.split_at_mut(28).1, &crc.to_le_bytes());

    let (first, more) = payload.split_at(payload.len().min(FIRST_BYTES));
    out.push(sector_of(&header, first));
    out.extend(more.chunks(MORE_BYTES).map(|part| sector_of(&MORE, part)));
}

/// Reads a sector where a group is due.
pub(super) fn read_start(sector: &Sector) -> Start {
    let mut rest = sector.as_slice();
    let magic: [u8; 4] = take(&mut rest);
    let header = GroupHeader {
        payload_bytes: u32::from_le_bytes(take(&mut rest)) as usize,
        position: u64::from_le_bytes(take(&mut rest)),
        durable: u64::from_le_bytes(take(&mut rest)),
        payload_crc: u32::from_le_bytes(take(&mut rest)),
    };
    let crc = u32::from_le_bytes(take(&mut rest));
    if is_unwritten(sector) {
        Start::Unwritten
    } else if magic != GROUP {
        Start::Damaged("there is something else where a group is due")
    } else if crc != crc32c::crc32c(sector.split_at(28).0) {
        Start::Damaged("a group's header does not match its checksum")
    } else if !(1..=PAYLOAD_BYTES_MAX).contains(&header.payload_bytes)
        || header.durable >= header.position
    {
        Start::Damaged("a group's header contradicts itself")
    } else {
        Start::Group(header)
    }
}

/// Gathers the payload from all the sectors of a group, and judges it. Unless the answer is `Whole`,
/// `payload` holds nothing of use.
pub(super) fn read_group(header: &GroupHeader, sectors: &[Sector], payload: &mut Vec<u8>) -> Body {
    assert_eq!(sectors.len(), group_sectors(header.payload_bytes));
    let Some((first, more)) = sectors.split_first() else {
        unreachable!("a group has at least one sector")
    };
    payload.clear();
    payload.extend_from_slice(first.split_at(SECTOR_BYTES - FIRST_BYTES).1);
    let mut marked = true;
    for sector in more {
        let mut rest = sector.as_slice();
        marked &= take(&mut rest) == MORE;
        payload.extend_from_slice(rest);
    }
    let (body, padding) = payload.split_at(header.payload_bytes);
    if !marked {
        let sound = |sector: &Sector| sector.starts_with(&MORE) || is_unwritten(sector);
        return match more.iter().all(sound) {
            true => Body::Torn,
            false => Body::Damaged("a part of a group is not marked as such"),
        };
    }
    if crc32c::crc32c(body) != header.payload_crc {
        return Body::Damaged("a payload does not match its checksum");
    }
    if padding.iter().any(|byte| *byte != 0) {
        return Body::Damaged("there is something between two groups");
    }
    payload.truncate(header.payload_bytes);
    Body::Whole
}

/// A sector of a header, as much payload as there is, and zeros.
fn sector_of(header: &[u8], payload: &[u8]) -> Sector {
    let mut sector = [0; SECTOR_BYTES];
    let mut rest = sector.as_mut_slice();
    put(&mut rest, header);
    put(&mut rest, payload);
    sector
}

fn put(rest: &mut &mut [u8], bytes: &[u8]) {
    let (place, behind) = std::mem::take(rest).split_at_mut(bytes.len());
    place.copy_from_slice(bytes);
    *rest = behind;
}

fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let Some((bytes, behind)) = rest.split_first_chunk() else {
        unreachable!("headers are shorter than a sector")
    };
    *rest = behind;
    *bytes
}
