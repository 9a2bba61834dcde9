//! Writer of backups.
//!
//! State: the block under construction, and count and digest of the bytes written.

use std::io::{self, Write};

use crate::block::{self, Kind, Tally};
use crate::{BLOCK_BYTES, CONTENT_BYTES_MAX, Group, Header, Keyspace, PAYLOAD_BYTES_MAX, Summary};

/// Writes a backup in this order: ephemeral rows, other rows, groups, files, keys, end.
pub struct Writer<W> {
    out: W,
    tally: Tally,
    number: u32,
    kind: Kind,
    content: Vec<u8>,
    summary: Summary,
}

impl<W: Write> Writer<W> {
    /// Begins a backup.
    ///
    /// # Errors
    /// Errors of `out`. The other functions have the same errors.
    pub fn new(out: W, header: &Header) -> io::Result<Self> {
        let mut writer = Self {
            out,
            tally: Tally::default(),
            number: 0,
            kind: block::EPHEMERAL,
            content: Vec::new(),
            summary: Summary::default(),
        };
        writer.put(&block::prefix())?;
        writer.block(block::HEADER, &serde_json::to_vec(header)?)?;
        Ok(writer)
    }

    /// Adds a row. Rows come in ascending order of keys; key and value together must have less than 64 MiB.
    pub fn row(&mut self, keyspace: Keyspace, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.begin(match keyspace {
            Keyspace::Ephemeral => block::EPHEMERAL,
            Keyspace::Facts => block::FACTS,
        })?;
        match keyspace {
            Keyspace::Ephemeral => self.summary.ephemeral_rows += 1,
            Keyspace::Facts => self.summary.rows += 1,
        }
        for length in [key.len(), value.len()] {
            self.content.extend_from_slice(&(length as u32).to_le_bytes());
        }
        self.content.extend_from_slice(key);
        self.content.extend_from_slice(value);
        self.end_if_full()
    }

    /// Adds the next group of the log.
    pub fn group(&mut self, group: Group<'_>) -> io::Result<()> {
        assert!((1..=PAYLOAD_BYTES_MAX).contains(&group.payload.len()));
        self.begin(block::GROUPS)?;
        self.summary.groups += 1;
        self.content.extend_from_slice(&group.position.to_le_bytes());
        self.content.extend_from_slice(&group.time_ms.to_le_bytes());
        self.content.extend_from_slice(&(group.payload.len() as u32).to_le_bytes());
        self.content.extend_from_slice(group.payload);
        self.end_if_full()
    }

    /// Adds a file of a picture of less than 64 MiB; `hash` is its SHA-256. Files come in ascending order of hashes.
    pub fn file(&mut self, hash: &[u8; 32], file: &[u8]) -> io::Result<()> {
        self.begin(block::FILE)?;
        self.summary.files += 1;
        self.content.extend_from_slice(hash);
        self.content.extend_from_slice(file);
        self.end_block()
    }

    /// Counts a file that is missing or damaged.
    pub fn lost_file(&mut self) {
        self.summary.lost_files += 1;
    }

    /// Adds the file of application keys.
    pub fn keys(&mut self, file: &[u8]) -> io::Result<()> {
        self.end_block()?;
        self.block(block::KEYS, file)
    }

    /// Ends the backup. Without this call, the backup is incomplete.
    pub fn finish(mut self) -> io::Result<(W, Summary)> {
        self.end_block()?;
        let mut summary = std::mem::take(&mut self.summary);
        summary.bytes = self.tally.bytes;
        summary.sha256 = self.tally.clone().sha256();
        self.block(block::DONE, &serde_json::to_vec(&summary)?)?;
        summary.total_bytes = self.tally.bytes;
        self.out.flush()?;
        Ok((self.out, summary))
    }

    /// Makes space for another entry in a block of this type.
    fn begin(&mut self, kind: Kind) -> io::Result<()> {
        if kind != self.kind {
            self.end_block()?;
            self.kind = kind;
        }
        Ok(())
    }

    fn end_if_full(&mut self) -> io::Result<()> {
        if self.content.len() >= BLOCK_BYTES { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> io::Result<()> {
        if self.content.is_empty() {
            return Ok(());
        }
        let mut content = std::mem::take(&mut self.content);
        self.block(self.kind, &content)?;
        content.clear();
        content.shrink_to(2 * BLOCK_BYTES);
        self.content = content;
        Ok(())
    }

    fn block(&mut self, kind: Kind, content: &[u8]) -> io::Result<()> {
        assert!(content.len() <= CONTENT_BYTES_MAX, "an entry is shorter than a block may be");
        self.put(&block::head(kind, self.number, content))?;
        self.put(content)?;
        self.number += 1;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.tally.add(bytes);
        self.out.write_all(bytes)
    }
}
