//! Format 1 of the local log: the content of a segment file, byte by byte. This module does no I/O.
//!
//! All numbers are little endian. A file is a sequence of **sectors** of 512 bytes, the unit that a disk writes whole
//! or not at all. The first four bytes of a sector are its type:
//!
//! | sector | bytes | content |
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
//! | | 24..32 | time: milliseconds since 1970, `u64` |
//! | | 32..36 | CRC-32C of the payload, `u32` |
//! | | 36..40 | CRC-32C of bytes 0..36, `u32` |
//! | | 40..512 | the payload's first 472 bytes |
//! | more, the others of a group | 0..4 | `MORE` |
//! | | 4..512 | the payload's next 508 bytes |
//! | unwritten | 0..512 | zeros |
//!
//! The rest of a group's last sector after the payload is zeros. The file name is the position of the first group in 20
//! digits and `.log`. Bytes 0..8 and 24..28 of the segment sector mean the same in every later format, so that an older
//! program can distinguish a newer format from damage.
//!
//! Reasons:
//! - Files are filled with zeros before they are used, because a sync after overwriting costs less than a sync after
//!   growing. A sector lost at a power loss is therefore a sector of zeros.
//! - No two groups share a sector, so acknowledged data is never written again.
//! - No written sector consists of zeros, even after one bit has flipped. Lost and damaged sectors can thus be
//!   distinguished for every payload. No payload can be mistaken for the header of a group.
//! - `durable` distinguishes two cases: a group that was lost before it was synced, although later groups reached the
//!   disk; and a group that was synced and then damaged.

use std::path::Path;

use crate::LogError;

/// Unit of writing and of alignment, in bytes.
pub(crate) const SECTOR_BYTES: usize = 512;
/// Format that this program reads and writes.
pub(crate) const FORMAT_VERSION: u32 = 1;
/// Maximum length of the payload of one group, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;

const SEGMENT: [u8; 4] = *b"SEGM";
const GROUP: [u8; 4] = *b"GRUP";
const MORE: [u8; 4] = *b"MORE";
/// Number of payload bytes in each sector of a group except the first.
const MORE_BYTES: usize = SECTOR_BYTES - 4;
/// Length of a group's header with its two checksums, in bytes.
const HEADER_BYTES: usize = 40;

pub(crate) type Sector = [u8; SECTOR_BYTES];

impl SegmentHeader {
    /// # Errors
    /// [`LogError::Version`]: `file` has another format than this program.
    pub(crate) fn check_version(self, file: &Path) -> Result<(), LogError> {
        match self.version {
            FORMAT_VERSION => Ok(()),
            found => Err(LogError::Version { file: file.into(), found, known: FORMAT_VERSION }),
        }
    }
}

/// Content of the first sector of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) version: u32,
    pub(crate) first: u64,
    pub(crate) bytes: u64,
}

/// Content of the first sector of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    pub(crate) payload_bytes: usize,
    pub(crate) position: u64,
    pub(crate) durable: u64,
    /// Time of the group in milliseconds since 1970.
    pub(crate) time_ms: u64,
    payload_crc: u32,
}

/// Content of a sector where a group may begin.
pub(crate) enum Start {
    Unwritten,
    Group(GroupHeader),
    Damaged(&'static str),
}

/// State of the sectors of a group whose header is valid.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Whole,
    /// Some sectors were never written; the others may be valid.
    Torn,
    Damaged(&'static str),
}

/// Returns the number of sectors of a group with this number of payload bytes.
pub(crate) fn group_sectors(payload_bytes: usize) -> usize {
    let first = SECTOR_BYTES - HEADER_BYTES;
    1 + payload_bytes.saturating_sub(first).div_ceil(MORE_BYTES)
}

pub(crate) fn is_unwritten(sector: &Sector) -> bool {
    // Without an early exit, the compiler can vectorize this.
    sector.iter().fold(0, |any, byte| any | byte) == 0
}

pub(crate) fn segment_sector(first: u64, bytes: u64) -> Sector {
    let mut header = Vec::with_capacity(28);
    header.extend(SEGMENT);
    header.extend(FORMAT_VERSION.to_le_bytes());
    header.extend(first.to_le_bytes());
    header.extend(bytes.to_le_bytes());
    header.extend(crc32c::crc32c(&header).to_le_bytes());
    sector_of(&header, &[])
}

/// Reads the first sector of a file of any version. Checks the bytes after the header if the version is known.
pub(crate) fn read_segment_sector(sector: &Sector) -> Result<SegmentHeader, &'static str> {
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
    if header.version <= FORMAT_VERSION && rest.iter().any(|byte| *byte != 0) {
        return Err("unexpected data after the segment header");
    }
    Ok(header)
}

pub(crate) struct NewGroup<'a> {
    pub(crate) position: u64,
    pub(crate) durable: u64,
    pub(crate) time_ms: u64,
    pub(crate) payload: &'a [u8],
}

/// Appends the sectors of a group to `out`.
pub(crate) fn write_group(group: &NewGroup<'_>, out: &mut Vec<Sector>) {
    let (first, more) = sectors_of(group);
    out.push(first);
    out.extend(more);
}

/// Returns the first sector of a group, and the others.
pub(crate) fn sectors_of<'a>(
    group: &NewGroup<'a>,
) -> (Sector, impl ExactSizeIterator<Item = Sector> + use<'a>) {
    let NewGroup { position, durable, time_ms, payload } = *group;
    assert!((1..=PAYLOAD_BYTES_MAX).contains(&payload.len()));
    assert!(durable < position, "a group is durable after it is written");
    let mut header = Vec::with_capacity(HEADER_BYTES);
    header.extend(GROUP);
    header.extend((payload.len() as u32).to_le_bytes());
    header.extend(position.to_le_bytes());
    header.extend(durable.to_le_bytes());
    header.extend(time_ms.to_le_bytes());
    header.extend(crc32c::crc32c(payload).to_le_bytes());
    header.extend(crc32c::crc32c(&header).to_le_bytes());

    let (first, more) = payload.split_at(payload.len().min(SECTOR_BYTES - header.len()));
    (sector_of(&header, first), more.chunks(MORE_BYTES).map(|part| sector_of(&MORE, part)))
}

/// Reads a sector where a group is expected.
pub(crate) fn read_start(sector: &Sector) -> Start {
    let mut rest = sector.as_slice();
    let magic: [u8; 4] = take(&mut rest);
    let payload_bytes = u32::from_le_bytes(take(&mut rest)) as usize;
    let position = u64::from_le_bytes(take(&mut rest));
    let durable = u64::from_le_bytes(take(&mut rest));
    let time_ms = u64::from_le_bytes(take(&mut rest));
    let payload_crc = u32::from_le_bytes(take(&mut rest));
    let checked = SECTOR_BYTES - rest.len();
    let crc = u32::from_le_bytes(take(&mut rest));
    let header = GroupHeader { payload_bytes, position, durable, time_ms, payload_crc };
    if is_unwritten(sector) {
        Start::Unwritten
    } else if magic != GROUP {
        Start::Damaged("unexpected data in place of a group")
    } else if crc != crc32c::crc32c(sector.split_at(checked).0) {
        Start::Damaged("a group's header does not match its checksum")
    } else if !(1..=PAYLOAD_BYTES_MAX).contains(&payload_bytes) || durable >= position {
        Start::Damaged("a group's header contradicts itself")
    } else {
        Start::Group(header)
    }
}

/// Collects the payload from all sectors of a group, and checks it. The content of `payload` is valid only if the
/// result is `Whole`.
pub(crate) fn read_group(header: &GroupHeader, sectors: &[Sector], payload: &mut Vec<u8>) -> Body {
    assert_eq!(sectors.len(), group_sectors(header.payload_bytes));
    let Some((first, more)) = sectors.split_first() else {
        unreachable!("a group has at least one sector")
    };
    payload.clear();
    payload.reserve_exact(sectors.as_flattened().len());
    payload.extend_from_slice(first.split_at(HEADER_BYTES).1);
    let mut marked = true;
    for sector in more {
        let mut rest = sector.as_slice();
        marked &= take(&mut rest) == MORE;
        payload.extend_from_slice(rest);
    }
    let (body, padding) = payload.split_at(header.payload_bytes);
    if crate::has_bug("accept-torn-group") {
        payload.truncate(header.payload_bytes);
        return Body::Whole;
    }
    if !marked {
        let sound = |sector: &Sector| sector.starts_with(&MORE) || is_unwritten(sector);
        return match more.iter().all(sound) {
            true => Body::Torn,
            false => Body::Damaged("a sector of a group has the wrong mark"),
        };
    }
    if crc32c::crc32c(body) != header.payload_crc && !crate::has_bug("skip-checksum") {
        return Body::Damaged("a payload does not match its checksum");
    }
    if padding.iter().any(|byte| *byte != 0) {
        return Body::Damaged("unexpected data between two groups");
    }
    payload.truncate(header.payload_bytes);
    Body::Whole
}

/// Returns a sector with a header, as much payload as fits, and zeros.
fn sector_of(header: &[u8], payload: &[u8]) -> Sector {
    let mut sector = [0; SECTOR_BYTES];
    let mut rest = sector.as_mut_slice();
    put(&mut rest, header);
    put(&mut rest, payload);
    sector
}

fn put(rest: &mut &mut [u8], bytes: &[u8]) {
    let (place, after) = std::mem::take(rest).split_at_mut(bytes.len());
    place.copy_from_slice(bytes);
    *rest = after;
}

fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let Some((bytes, after)) = rest.split_first_chunk() else {
        unreachable!("headers are shorter than a sector")
    };
    *rest = after;
    *bytes
}
