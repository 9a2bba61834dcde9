//! Blocks of a backup, encoded and decoded.

use sha2::{Digest as _, Sha256};

use crate::FORMAT_VERSION;

pub(crate) const MAGIC: [u8; 8] = *b"roostbak";
pub(crate) const PREFIX_BYTES: usize = 16;
pub(crate) const HEAD_BYTES: usize = 16;

pub(crate) type Kind = [u8; 4];
pub(crate) const HEADER: Kind = *b"HEAD";
pub(crate) const EPHEMERAL: Kind = *b"EPHE";
pub(crate) const FACTS: Kind = *b"FACT";
pub(crate) const GROUPS: Kind = *b"GRUP";
pub(crate) const FILE: Kind = *b"FILE";
pub(crate) const KEYS: Kind = *b"KEYS";
pub(crate) const DONE: Kind = *b"DONE";

/// The first bytes of a backup.
pub(crate) fn prefix() -> [u8; PREFIX_BYTES] {
    let mut prefix = [0; PREFIX_BYTES];
    prefix[..8].copy_from_slice(&MAGIC);
    prefix[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    let crc = crc32c::crc32c(&prefix[..12]);
    prefix[12..].copy_from_slice(&crc.to_le_bytes());
    prefix
}

/// The head of a block with the given content.
pub(crate) fn head(kind: Kind, number: u32, content: &[u8]) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&kind);
    head[4..8].copy_from_slice(&number.to_le_bytes());
    head[8..12].copy_from_slice(&(content.len() as u32).to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&head[..12]), content);
    head[12..].copy_from_slice(&crc.to_le_bytes());
    head
}

/// Reads a number from the front of `bytes`. Returns it and the rest.
pub(crate) fn take_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*number), rest))
}

/// Reads a number from the front of `bytes`. Returns it and the rest.
pub(crate) fn take_u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*number), rest))
}

/// Number and digest of the bytes so far.
#[derive(Clone, Default)]
pub(crate) struct Tally {
    pub(crate) bytes: u64,
    sha256: Sha256,
}

impl Tally {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.sha256.update(bytes);
    }

    pub(crate) fn sha256(self) -> String {
        self.sha256.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
