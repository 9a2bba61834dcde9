//! Reader of the lines of an import. It numbers the lines, limits their length, and checks that the file is complete.
//!
//! **Invariant:** reading takes the memory of one line, whatever the file contains.

use std::io::{BufRead, BufReader, Read};

use sha2::{Digest as _, Sha256};

use super::ImportError;
use crate::export::bytes::to_hex;
use crate::export::counts::TransferCounts;
use crate::export::lines::{End, FORMAT_VERSION, Header, LINE_BYTES_MAX, Line};

/// Size of the buffer in bytes.
const BUFFER_BYTES: usize = 1 << 20;

/// Reader of lines.
pub(super) struct Input<R> {
    input: BufReader<R>,
    bytes: Vec<u8>,
    number: u64,
    digest: Sha256,
}

impl<R: Read> Input<R> {
    pub(super) fn new(input: R) -> Self {
        let input = BufReader::with_capacity(BUFFER_BYTES, input);
        Self { input, bytes: Vec::new(), number: 0, digest: Sha256::new() }
    }

    /// Returns the number of the last line that was read, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns an error about the last line that was read.
    pub(super) fn wrong(&self, what: &dyn std::fmt::Display) -> ImportError {
        ImportError::Line { line: self.number, what: what.to_string() }
    }

    /// Reads the first line.
    pub(super) fn header(&mut self) -> Result<Header<'_>, ImportError> {
        if !self.advance()? {
            return Err(ImportError::Incomplete(0));
        }
        // The fields of a later format are unknown.
        let any: Option<serde_json::Value> = serde_json::from_slice(&self.bytes).ok();
        let format = any.as_ref().and_then(|line| line.get("export")?.get("format")?.as_u64());
        if let Some(found) = format.filter(|found| *found > FORMAT_VERSION.into()) {
            return Err(ImportError::NewerFormat { found, known: FORMAT_VERSION });
        }
        match serde_json::from_slice(&self.bytes) {
            Ok(Line::Export(header)) if header.format > 0 => Ok(header),
            _ => {
                Err(self
                    .wrong(&"the first line is {\"export\":{\"format\":1}}, with more or without"))
            }
        }
    }

    /// Reads the next line.
    pub(super) fn line(&mut self) -> Result<Line<'_>, ImportError> {
        self.digest.update(match self.number {
            1 => &[],
            _ => self.bytes.as_slice(),
        });
        if !self.advance()? {
            return Err(ImportError::Incomplete(self.number));
        }
        let line = serde_json::from_slice(&self.bytes);
        line.map_err(|error| ImportError::Line { line: self.number, what: explain(&error) })
    }

    /// Called after the last line: compares its counts and digest with the lines before it, and reads to the end of the
    /// file.
    pub(super) fn finish(
        &mut self,
        counts: TransferCounts,
        (expected, sha256): (Option<TransferCounts>, Option<String>),
    ) -> Result<(), ImportError> {
        if let Some(expected) = expected.filter(|expected| *expected != counts) {
            return Err(
                self.wrong(&format_args!("it counts {expected}, but the lines contain {counts}"))
            );
        }
        let digest = to_hex(&std::mem::take(&mut self.digest).finalize());
        if sha256.is_some_and(|sha256| sha256 != digest) {
            return Err(
                self.wrong(&"the earlier lines do not match their digest: they were changed")
            );
        }
        if self.advance()? {
            return Err(self.wrong(&"there is a line after the last line"));
        }
        Ok(())
    }

    /// Reads a line; returns false at the end of the file.
    fn advance(&mut self) -> Result<bool, ImportError> {
        self.bytes.clear();
        let mut limited = (&mut self.input).take(LINE_BYTES_MAX as u64 + 1);
        limited.read_until(b'\n', &mut self.bytes).map_err(ImportError::Read)?;
        self.number += u64::from(!self.bytes.is_empty());
        if self.bytes.len() > LINE_BYTES_MAX {
            return Err(self.wrong(&format_args!("it has more than {LINE_BYTES_MAX} bytes")));
        }
        Ok(!self.bytes.is_empty())
    }
}

/// Returns copies of the parts of the last line.
pub(super) fn owned(end: End<'_>) -> (Option<TransferCounts>, Option<String>) {
    (end.counts, end.sha256.map(std::borrow::Cow::into_owned))
}

/// Formats the error of a line that is not the expected JSON, without serde's line number, which is always 1.
fn explain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    match text.strip_suffix(&place) {
        Some(what) => format!("{what} (at byte {})", error.column()),
        None => text,
    }
}
