//! Reader of backups, which checks the whole stream.
//!
//! State: the next block, and count and digest of the bytes read.

use std::io::{ErrorKind, Read};

use sha2::{Digest as _, Sha256};

use crate::block::{self, HEAD_BYTES, Kind, MAGIC, PREFIX_BYTES, Tally, take_u32, take_u64};
use crate::{
    BackupError, CONTENT_BYTES_MAX, FORMAT_VERSION, Group, Header, Keyspace, PAYLOAD_BYTES_MAX,
    ReceiverError, Summary,
};

/// Reads a backup in the order in which it was written: call [`Reader::rows`] for ephemeral rows and then for the
/// others, [`Reader::groups`], [`Reader::files`], [`Reader::keys`], and [`Reader::finish`], which fails if a part was
/// skipped.
pub struct Reader<R> {
    stream: R,
    header: Header,
    tally: Tally,
    number: u32,
    next: Block,
    summary: Summary,
}

/// Block whose checksum is right.
#[derive(Default)]
struct Block {
    kind: Kind,
    offset: u64,
    content: Vec<u8>,
    /// Count and digest of the bytes before this block.
    before: Tally,
}

impl Block {
    fn damaged(&self, what: &'static str) -> BackupError {
        BackupError::Damaged { offset: self.offset, what }
    }
}

impl<R: Read> Reader<R> {
    /// Reads the beginning of a backup.
    ///
    /// # Errors
    /// See [`BackupError`]. The other functions have the same errors.
    pub fn open(mut stream: R) -> Result<Self, BackupError> {
        let mut tally = Tally::default();
        let mut prefix = Vec::new();
        read(&mut stream, PREFIX_BYTES, &mut prefix)?;
        if !prefix.starts_with(&MAGIC) {
            return Err(BackupError::NotABackup);
        }
        tally.add(&prefix);
        let damaged = |what| BackupError::Damaged { offset: 0, what };
        let (checked, crc) = prefix.split_at_checked(12).unwrap_or_default();
        let Some(((found, _), (crc, _))) = checked.get(8..).and_then(take_u32).zip(take_u32(crc))
        else {
            return Err(BackupError::Truncated { bytes: tally.bytes });
        };
        if crc != crc32c::crc32c(checked) {
            return Err(damaged("its prefix does not match the checksum"));
        }
        if found != FORMAT_VERSION {
            return Err(BackupError::Version { found, known: FORMAT_VERSION });
        }
        let header = Header::default();
        let (next, summary) = (Block::default(), Summary::default());
        let mut reader = Self { stream, header, tally, number: 0, next, summary };
        reader.advance()?;
        if reader.next.kind != block::HEADER {
            return Err(reader.next.damaged("it is not a header"));
        }
        reader.header = serde_json::from_slice(&reader.next.content)
            .map_err(|_| reader.next.damaged("the header is malformed"))?;
        if reader.header.last < reader.header.checkpoint {
            return Err(reader.next.damaged("the header contradicts itself"));
        }
        reader.advance()?;
        Ok(reader)
    }

    /// The description at the beginning.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Passes all rows of a keyspace to `each`, in ascending order of keys.
    pub fn rows(
        &mut self,
        keyspace: Keyspace,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), ReceiverError>,
    ) -> Result<(), BackupError> {
        let kind = match keyspace {
            Keyspace::Ephemeral => block::EPHEMERAL,
            Keyspace::Facts => block::FACTS,
        };
        let mut last: Option<Vec<u8>> = None;
        while self.next.kind == kind {
            let mut rest = self.next.content.as_slice();
            while !rest.is_empty() {
                let row = take_row(rest);
                let (key, value, after) =
                    row.ok_or_else(|| self.next.damaged("a row is malformed"))?;
                if last.as_deref().is_some_and(|last| last >= key) {
                    return Err(self.next.damaged("rows are not in order"));
                }
                last.get_or_insert_default().clear();
                last.get_or_insert_default().extend_from_slice(key);
                each(key, value).map_err(BackupError::Receiver)?;
                match keyspace {
                    Keyspace::Ephemeral => self.summary.ephemeral_rows += 1,
                    Keyspace::Facts => self.summary.rows += 1,
                }
                rest = after;
            }
            self.advance()?;
        }
        Ok(())
    }

    /// Passes all groups to `each`, in order.
    pub fn groups(
        &mut self,
        mut each: impl FnMut(Group<'_>) -> Result<(), ReceiverError>,
    ) -> Result<(), BackupError> {
        let mut time_ms = 0;
        while self.next.kind == block::GROUPS {
            let mut rest = self.next.content.as_slice();
            while !rest.is_empty() {
                let group = take_group(rest);
                let (group, after) =
                    group.ok_or_else(|| self.next.damaged("a group is malformed"))?;
                let due = self.header.checkpoint + self.summary.groups + 1;
                if group.position != due || due > self.header.last || group.time_ms < time_ms {
                    return Err(self.next.damaged("groups are not in order"));
                }
                time_ms = group.time_ms;
                each(group).map_err(BackupError::Receiver)?;
                self.summary.groups += 1;
                rest = after;
            }
            self.advance()?;
        }
        Ok(())
    }

    /// Passes all files of pictures to `each`, with their SHA-256, in ascending order.
    pub fn files(
        &mut self,
        mut each: impl FnMut(&[u8; 32], &[u8]) -> Result<(), ReceiverError>,
    ) -> Result<(), BackupError> {
        let mut last: Option<[u8; 32]> = None;
        while self.next.kind == block::FILE {
            let found = self.next.content.split_first_chunk::<32>();
            let (hash, file) = found.ok_or_else(|| self.next.damaged("a file is malformed"))?;
            if <[u8; 32]>::from(Sha256::digest(file)) != *hash {
                return Err(self.next.damaged("a file has the name of another one"));
            }
            if last.is_some_and(|last| last >= *hash) {
                return Err(self.next.damaged("files are not in order"));
            }
            last = Some(*hash);
            each(hash, file).map_err(BackupError::Receiver)?;
            self.summary.files += 1;
            self.advance()?;
        }
        Ok(())
    }

    /// The file of application keys, if there is one.
    pub fn keys(&mut self) -> Result<Option<Vec<u8>>, BackupError> {
        if self.next.kind != block::KEYS {
            return Ok(None);
        }
        let keys = std::mem::take(&mut self.next.content);
        self.advance()?;
        Ok(Some(keys))
    }

    /// Checks the end of the backup.
    pub fn finish(mut self) -> Result<Summary, BackupError> {
        let Self { header, next, summary, stream, .. } = &mut self;
        if next.kind != block::DONE {
            return Err(next.damaged("it is in the wrong place"));
        }
        summary.bytes = next.before.bytes;
        summary.sha256 = next.before.clone().sha256();
        let written: Option<Summary> = serde_json::from_slice(&next.content).ok();
        summary.lost_files = written.as_ref().map_or(0, |written| written.lost_files);
        if written.as_ref() != Some(&*summary) {
            return Err(next.damaged("its counts or its digest are wrong"));
        }
        if header.checkpoint + summary.groups != header.last {
            return Err(next.damaged("groups are missing"));
        }
        let mut after = Vec::new();
        read(stream, 1, &mut after)?;
        if !after.is_empty() {
            return Err(next.damaged("bytes follow the last block"));
        }
        self.summary.total_bytes = self.tally.bytes;
        Ok(self.summary)
    }

    /// Reads the next block.
    fn advance(&mut self) -> Result<(), BackupError> {
        let offset = self.tally.bytes;
        let damaged = |what| BackupError::Damaged { offset, what };
        let before = self.tally.clone();
        let mut head = Vec::with_capacity(HEAD_BYTES);
        self.read(HEAD_BYTES, &mut head)?;
        let fields = || {
            let (kind, rest) = head.split_first_chunk::<4>()?;
            let (number, rest) = take_u32(rest)?;
            let (bytes, rest) = take_u32(rest)?;
            Some((*kind, number, bytes as usize, take_u32(rest)?.0))
        };
        let Some((kind, number, bytes, crc)) = fields() else {
            return Err(damaged("its head is malformed"));
        };
        if bytes > CONTENT_BYTES_MAX {
            return Err(damaged("it is longer than a block may be"));
        }
        let mut content = std::mem::take(&mut self.next.content);
        content.clear();
        self.read(bytes, &mut content)?;
        let checked = head.get(..12).unwrap_or_default();
        if crc != crc32c::crc32c_append(crc32c::crc32c(checked), &content) {
            return Err(damaged("it does not match its checksum"));
        }
        if number != self.number {
            return Err(damaged("another block is in its place"));
        }
        self.number += 1;
        self.next = Block { kind, offset, content, before };
        Ok(())
    }

    fn read(&mut self, bytes: usize, into: &mut Vec<u8>) -> Result<(), BackupError> {
        read(&mut self.stream, bytes, into)?;
        self.tally.add(into);
        match into.len() < bytes {
            true => Err(BackupError::Truncated { bytes: self.tally.bytes }),
            false => Ok(()),
        }
    }
}

/// Appends up to `bytes` bytes to `into`: fewer if the stream ends.
fn read(stream: &mut impl Read, bytes: usize, into: &mut Vec<u8>) -> Result<(), BackupError> {
    match stream.take(bytes as u64).read_to_end(into) {
        // A decompressor of the stream may report its early end as `UnexpectedEof`.
        Err(error) if error.kind() != ErrorKind::UnexpectedEof => Err(error.into()),
        _ => Ok(()),
    }
}

fn take_row(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (key, rest) = take_u32(bytes)?;
    let (value, rest) = take_u32(rest)?;
    let (key, rest) = rest.split_at_checked(key as usize)?;
    let (value, rest) = rest.split_at_checked(value as usize)?;
    (!key.is_empty()).then_some((key, value, rest))
}

fn take_group(bytes: &[u8]) -> Option<(Group<'_>, &[u8])> {
    let (position, rest) = take_u64(bytes)?;
    let (time_ms, rest) = take_u64(rest)?;
    let (length, rest) = take_u32(rest)?;
    let (payload, rest) = rest.split_at_checked(length as usize)?;
    let fits = (1..=PAYLOAD_BYTES_MAX).contains(&payload.len());
    fits.then_some((Group { position, time_ms, payload }, rest))
}
