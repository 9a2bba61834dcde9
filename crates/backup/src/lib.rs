//! Format of a backup: a stream that contains the rows of a store at a checkpoint, and the groups of the log after that
//! checkpoint. [`Writer`] writes a backup, [`Reader`] reads and checks it, [`verify`] only checks it. The crate does
//! not interpret rows and groups.
//!
//! All numbers are little endian. The stream is a prefix followed by **blocks**:
//!
//! | part | bytes | content |
//! |---|---|---|
//! | prefix | 0..8 | `roostbak` |
//! | | 8..12 | format version, `u32` |
//! | | 12..16 | CRC-32C of bytes 0..12, `u32` |
//! | block | 0..4 | type |
//! | | 4..8 | its number, from 0, `u32` |
//! | | 8..12 | length of the content in bytes, `u32`, at most 66 Mi |
//! | | 12..16 | CRC-32C of bytes 0..12 and the content, `u32` |
//! | | 16.. | content |
//!
//! The blocks come in the following order. Those of rows and groups hold about 1 MiB each:
//!
//! | type | number of blocks | content |
//! |---|---|---|
//! | `HEAD` | 1 | [`Header`] in JSON |
//! | `EPHE` | any | rows of the ephemeral keyspace, in ascending order of keys: length of the key (`u32`), length of the value (`u32`), key, value |
//! | `FACT` | any | rows of the other keyspace, likewise |
//! | `GRUP` | any | groups: position (`u64`), time (`u64`), length of the payload (`u32`), payload |
//! | `FILE` | any | a file of a picture, in ascending order: SHA-256 of the file (32 bytes), which is its name, and the file |
//! | `KEYS` | 0 or 1 | the file of application keys |
//! | `DONE` | 1 | [`Summary`] in JSON, with the SHA-256 of everything before this block |
//!
//! Nothing follows the last block.
//!
//! - **Invariant:** a stream is refused if a byte is missing, a byte follows its end, or one bit differs.
//! - **Invariant:** for any input, reading needs at most the memory of one block, and never more than the bytes that
//!   have arrived.
//! - **Invariant:** the crate uses no other crate of this repository.
//!
//! Read `block`, `write`, then `read`.

mod block;
mod read;
mod write;

use std::io::Read;

use serde::{Deserialize, Serialize};

pub use read::Reader;
pub use write::Writer;

/// The format that this code reads and writes.
pub const FORMAT_VERSION: u32 = 1;
/// Maximum length of the payload of a group, in bytes, as in the log.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;
/// Length at which a block of rows or groups ends, in bytes.
const BLOCK_BYTES: usize = 1 << 20;
/// Maximum length of the content of a block, in bytes: nearly [`BLOCK_BYTES`], and then the longest group.
const CONTENT_BYTES_MAX: usize = 66 << 20;

/// Description of a backup, at its beginning.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Version of the program that made the backup.
    pub roost: String,
    /// The identity of the data directory; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Time at which the backup was made, by the clock of the node, in milliseconds since 1970.
    pub made_ms: u64,
    /// The position of the log up to which the rows are applied.
    pub checkpoint: u64,
    /// Time of the newest change in the rows, in milliseconds since 1970; 0 if there is none.
    pub checkpoint_ms: u64,
    /// Position of the last group. The first one is at `checkpoint` + 1.
    pub last: u64,
}

/// Counts of a backup's contents, at its end.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Number of rows of the ephemeral keyspace.
    pub ephemeral_rows: u64,
    /// Number of rows of the other keyspace.
    pub rows: u64,
    /// Number of groups of the log.
    pub groups: u64,
    /// Number of files of pictures.
    pub files: u64,
    /// Number of files of pictures that were missing or damaged when the backup was made.
    pub lost_files: u64,
    /// Number of bytes before the last block.
    pub bytes: u64,
    /// SHA-256 of the bytes before the last block, as 64 hexadecimal digits.
    pub sha256: String,
    /// Length of the whole stream, in bytes. Not stored, because the last block would contain its own length.
    #[serde(skip)]
    pub total_bytes: u64,
}

/// A keyspace of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyspace {
    /// Rows of ephemeral tables.
    Ephemeral,
    /// All other rows.
    Facts,
}

/// A group of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group<'a> {
    /// Position in the log.
    pub position: u64,
    /// Time assigned by the log, in milliseconds since 1970.
    pub time_ms: u64,
    /// Payload: 1 to [`PAYLOAD_BYTES_MAX`] bytes.
    pub payload: &'a [u8],
}

/// Error of the receiver of the rows and groups.
pub type ReceiverError = Box<dyn std::error::Error + Send + Sync>;

/// Error of reading a backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Reading or writing the stream failed.
    #[error("the backup cannot be read or written")]
    Io(#[from] std::io::Error),
    /// The stream does not begin like a backup.
    #[error("this is not a backup of roost")]
    NotABackup,
    /// The backup has another format version than this program.
    #[error("the backup has format version {found}, but this program reads version {known}")]
    Version {
        /// Version of the backup.
        found: u32,
        /// Version that this program reads.
        known: u32,
    },
    /// The stream ends too early.
    #[error("the backup is incomplete: it ends after {bytes} bytes")]
    Truncated {
        /// Length of the stream in bytes.
        bytes: u64,
    },
    /// The stream differs from what was written.
    #[error("the backup is damaged in the block at byte {offset}: {what}")]
    Damaged {
        /// Start of the block, in bytes.
        offset: u64,
        /// Description of the damage.
        what: &'static str,
    },
    /// The receiver of rows and groups returned an error.
    #[error("{0}")]
    Receiver(#[source] ReceiverError),
}

/// Checks a whole backup without keeping its contents.
///
/// # Errors
/// See [`BackupError`].
pub fn verify(stream: impl Read) -> Result<(Header, Summary), BackupError> {
    let mut reader = Reader::open(stream)?;
    let header = reader.header().clone();
    reader.rows(Keyspace::Ephemeral, |_, _| Ok(()))?;
    reader.rows(Keyspace::Facts, |_, _| Ok(()))?;
    reader.groups(|_| Ok(()))?;
    reader.files(|_, _| Ok(()))?;
    reader.keys()?;
    Ok((header, reader.finish()?))
}
