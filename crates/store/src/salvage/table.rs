//! Rows of one table file, block by block. If a block does not match its checksum, it is corrected if one bit was
//! flipped, and skipped otherwise.
//!
//! The blocks of rows are first in the file, without gaps. If the index is readable, it has the start of each block, so
//! reading continues after a block of unknown length. Bytes of a stored value that look like a block are never mistaken
//! for one.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use fjall::{CompressionType, Slice};
use lsm_tree::coding::Decode as _;
use lsm_tree::table::block::{BlockType, Header};
use lsm_tree::table::util::SliceIndexes;
use lsm_tree::table::{Block, DataBlock, IndexBlock};
use xxhash_rust::xxh3::xxh3_128;

use crate::flipped;
use crate::sections::{self, Section};

const HEADER_BYTES: usize = Header::serialized_len();
/// Maximum length of an unpacked block in bytes: enough for a value of 16 MiB and the other rows of its block.
const BLOCK_BYTES_MAX: u32 = 64 << 20;

/// Version of a row. If it has no value, the row was removed.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) key: Slice,
    pub(crate) value: Option<Slice>,
    pub(crate) seqno: u64,
}

/// Next part of a table.
pub(crate) enum Piece {
    Row(Version),
    /// Unreadable rows.
    Hole {
        /// Offset in bytes.
        offset: u64,
        what: &'static str,
    },
}

/// Reader of a table.
pub(crate) struct TableScan {
    file: File,
    length: u64,
    /// Start of the next block, and end of the last block of rows.
    at: u64,
    end: u64,
    /// Starts of blocks according to the index, in descending order.
    starts: Vec<u64>,
    rows: std::vec::IntoIter<Version>,
    /// Number to add to sequence numbers.
    seqno: u64,
    /// Offsets of corrected blocks.
    pub(crate) corrected: Vec<u64>,
}

impl TableScan {
    pub(crate) fn open(path: &Path, seqno: u64) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let (starts, rows) = (Vec::new(), Vec::new().into_iter());
        let (at, end, corrected) = (0, length, Vec::new());
        let mut scan = Self { file, length, at, end, starts, rows, seqno, corrected };
        let sections = sections::read(length, |offset, into| scan.file.read_exact_at(into, offset));
        if let Ok(Ok(sections)) = sections {
            let blocks = |section: &&Section| section.name != b"data";
            scan.end = sections
                .iter()
                .filter(blocks)
                .map(|section| section.offset)
                .min()
                .unwrap_or(length);
            scan.starts = scan.index(&sections);
            scan.starts.sort_unstable_by(|a, b| b.cmp(a));
        }
        // Do not report corrected blocks of the index, because they lose no rows.
        scan.corrected.clear();
        Ok(scan)
    }

    /// Returns the starts of blocks of rows, as far as the index is readable.
    fn index(&mut self, sections: &[Section]) -> Vec<u64> {
        let offset_of = |name: &[u8]| sections.iter().find(|section| section.name == name);
        let Some(top) = offset_of(b"tli").map(|section| section.offset) else { return Vec::new() };
        let parts = self.index_block(top);
        match offset_of(b"index") {
            Some(_) => parts.into_iter().flat_map(|part| self.index_block(part)).collect(),
            None => parts,
        }
    }

    /// Returns the offsets that a block of the index has.
    fn index_block(&mut self, at: u64) -> Vec<u64> {
        match self.block(at) {
            Ok((block, _)) if block.header.block_type == BlockType::Index => {
                IndexBlock::new(block).iter().map(|item| item.offset.0).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Reads the block at an offset. Returns the block and its end; if it is damaged, the start of the next block, if
    /// known.
    fn block(&mut self, at: u64) -> Result<(Block, u64), (Option<u64>, &'static str)> {
        let mut bytes = vec![0; HEADER_BYTES];
        if self.file.read_exact_at(&mut bytes, at).is_err() {
            return Err((None, "it cannot be read"));
        }
        let is_header = |bytes: &[u8]| Header::decode_from(&mut &*bytes).is_ok();
        let mut is_corrected = !is_header(&bytes);
        if is_corrected && !flipped::correct(&mut bytes, is_header) {
            return Err((None, "the header of a block is damaged"));
        }
        let Ok(header) = Header::decode_from(&mut bytes.as_slice()) else {
            return Err((None, "the header of a block is damaged"));
        };
        let end = at + HEADER_BYTES as u64 + u64::from(header.data_length);
        if end > self.length || header.uncompressed_length > BLOCK_BYTES_MAX {
            return Err((None, "a block is longer than the file"));
        }
        let mut data = vec![0; header.data_length as usize];
        if self.file.read_exact_at(&mut data, at + HEADER_BYTES as u64).is_err() {
            return Err((Some(end), "it cannot be read"));
        }
        let is_right = |data: &[u8]| xxh3_128(data) == header.checksum.into_u128();
        if !is_right(&data) {
            is_corrected = true;
            if !flipped::correct(&mut data, is_right) {
                return Err((Some(end), "a block does not match its checksum"));
            }
        }
        let is_packed = header.block_type == BlockType::Data
            || header.data_length != header.uncompressed_length;
        let compression = if is_packed { CompressionType::Lz4 } else { CompressionType::None };
        let whole = [bytes, data].concat();
        let block = Block::from_reader(&mut whole.as_slice(), compression);
        let block = block.map_err(|_| (Some(end), "a block cannot be unpacked"))?;
        if is_corrected {
            self.corrected.push(at);
        }
        Ok((block, end))
    }

    fn versions(&self, block: Block) -> Vec<Version> {
        let block = DataBlock::new(block);
        let bytes = block.as_slice();
        let part = |of: &SliceIndexes| bytes.get(of.0..of.1).unwrap_or_default();
        let version = |item: lsm_tree::table::data_block::DataBlockParsedItem| {
            let prefix = item.prefix.as_ref().map(part).unwrap_or_default();
            let key = Slice::from([prefix, part(&item.key)].concat());
            let value = item.value.as_ref().map(|value| Slice::from(part(value)));
            let value =
                (!item.value_type.is_tombstone()).then(|| value.unwrap_or_else(Slice::empty));
            Version { key, value, seqno: item.seqno + self.seqno }
        };
        block.iter().map(version).collect()
    }
}

impl Iterator for TableScan {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        loop {
            if let Some(row) = self.rows.next() {
                return Some(Piece::Row(row));
            }
            if self.at >= self.end {
                return None;
            }
            let offset = self.at;
            match self.block(offset) {
                Ok((block, _)) if block.header.block_type != BlockType::Data => {
                    self.at = self.end;
                }
                Ok((block, end)) => {
                    self.at = end;
                    self.rows = self.versions(block).into_iter();
                }
                Err((end, what)) => {
                    let next = || {
                        while self.starts.last().is_some_and(|start| *start <= offset) {
                            self.starts.pop();
                        }
                        self.starts.last().copied()
                    };
                    self.at = end.or_else(next).unwrap_or(self.end);
                    return Some(Piece::Hole { offset, what });
                }
            }
        }
    }
}
