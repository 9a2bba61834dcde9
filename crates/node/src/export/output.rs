//! Writes the lines of an export and computes their digest.

use std::io::{self, BufWriter, Write};

use sha2::{Digest as _, Sha256};

use super::bytes::to_hex;
use super::counts::TransferCounts;
use super::lines::{End, Header, Line};

/// Size of the buffer in bytes.
const BUFFER_BYTES: usize = 1 << 20;

/// Writer of lines.
pub(super) struct Output<W: Write> {
    out: BufWriter<W>,
    digest: Sha256,
    line: Vec<u8>,
}

impl<W: Write> Output<W> {
    /// Writes the first line.
    pub(super) fn begin(out: W, header: Header<'_>) -> io::Result<Self> {
        let out = BufWriter::with_capacity(BUFFER_BYTES, out);
        let mut output = Self { out, digest: Sha256::new(), line: Vec::new() };
        output.line(&Line::Export(header))?;
        // The first line has the time of the export, so it is not part of the digest.
        output.digest = Sha256::new();
        Ok(output)
    }

    pub(super) fn line(&mut self, line: &Line<'_>) -> io::Result<()> {
        let mut bytes = std::mem::take(&mut self.line);
        bytes.clear();
        serde_json::to_writer(&mut bytes, line)?;
        let written = self.raw_line(&bytes);
        self.line = bytes;
        written
    }

    /// Writes a line that is JSON already.
    pub(super) fn raw_line(&mut self, line: &[u8]) -> io::Result<()> {
        for bytes in [line, b"\n"] {
            self.digest.update(bytes);
            self.out.write_all(bytes)?;
        }
        Ok(())
    }

    /// Writes the last line.
    pub(super) fn end(mut self, counts: TransferCounts) -> io::Result<()> {
        let sha256 = to_hex(&std::mem::take(&mut self.digest).finalize());
        self.line(&Line::End(End { counts: Some(counts), sha256: Some(sha256.into()) }))?;
        self.out.flush()
    }
}
