//! Table of sections at the end of a file of the engine. The engine allocates memory for the number of sections in the
//! file before it compares the checksum; this module compares the checksum first.
//!
//! A file ends with a table of sections and a trailer. Numbers are little endian:
//!
//! | part | bytes | content |
//! |---|---|---|
//! | table | 4 | `TOC!` |
//! | | 4 | number of sections |
//! | each section | 8, 8 | offset and length |
//! | | 2, and that many | length of the name, name |
//! | trailer | 4, 1, 1 | `SFA!`, version 1, kind of checksum 0 (xxh3) |
//! | | 16 | checksum of the table |
//! | | 8, 8 | offset and length of the table |

use std::io;

use xxhash_rust::xxh3::xxh3_128;

const TRAILER: [u8; 6] = *b"SFA!\x01\x00";
const TRAILER_BYTES: usize = 38;
const TABLE: [u8; 4] = *b"TOC!";
/// Maximum length of a table, in bytes. The engine writes about ten sections with short names.
const TABLE_BYTES_MAX: u64 = 64 << 10;

/// Part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) name: Vec<u8>,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// Returns the sections of a file of this length, or a description of the fault. `read_at` reads bytes from an offset
/// on.
pub(crate) fn read(
    length: u64,
    read_at: impl Fn(u64, &mut [u8]) -> io::Result<()>,
) -> io::Result<Result<Vec<Section>, &'static str>> {
    let Some(end) = length.checked_sub(TRAILER_BYTES as u64) else {
        return Ok(Err("it is shorter than its trailer"));
    };
    let mut trailer = [0; TRAILER_BYTES];
    read_at(end, &mut trailer)?;
    let mut rest = trailer.as_slice();
    let magic: Option<[u8; 6]> = take(&mut rest);
    let checksum = take(&mut rest).map(u128::from_le_bytes);
    let begin = take(&mut rest).map(u64::from_le_bytes).unwrap_or_default();
    let bytes = take(&mut rest).map(u64::from_le_bytes).unwrap_or_default();
    if magic != Some(TRAILER) || begin.checked_add(bytes) != Some(end) || bytes > TABLE_BYTES_MAX {
        return Ok(Err("its trailer was changed"));
    }
    let mut table = vec![0; bytes as usize];
    read_at(begin, &mut table)?;
    if Some(xxh3_128(&table)) != checksum {
        return Ok(Err("the table of its sections does not match its checksum"));
    }
    Ok(parse(&table, begin).ok_or("the table of its sections is malformed"))
}

fn parse(mut table: &[u8], end: u64) -> Option<Vec<Section>> {
    if take(&mut table) != Some(TABLE) {
        return None;
    }
    let mut sections = Vec::new();
    for _ in 0..take(&mut table).map(u32::from_le_bytes)? {
        let offset = take(&mut table).map(u64::from_le_bytes)?;
        let bytes = take(&mut table).map(u64::from_le_bytes)?;
        let name = take(&mut table).map(u16::from_le_bytes)?;
        let (name, rest) = table.split_at_checked(name.into())?;
        table = rest;
        if offset.checked_add(bytes)? > end {
            return None;
        }
        sections.push(Section { name: name.to_vec(), offset, bytes });
    }
    table.is_empty().then_some(sections)
}

/// Takes the first bytes.
pub(crate) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}
