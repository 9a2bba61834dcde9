//! Head row, which describes the store: format version, applied position, the secret that orders keys, and totals.

use rows::{Totals, encode, try_decode};

use crate::FORMAT_VERSION;
use crate::error::StoreError;
use crate::hash::{KeyHasher, SEED_BYTES};

/// Content of the head row: version (`u32`), applied position (`u64`), seed (16 bytes) and totals (postcard). Numbers
/// are little endian.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// Position of the log up to which the rows are applied.
    pub(crate) applied: u64,
    pub(crate) hasher: KeyHasher,
    pub(crate) totals: Totals,
}

impl Head {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = FORMAT_VERSION.to_le_bytes().to_vec();
        bytes.extend_from_slice(&self.applied.to_le_bytes());
        bytes.extend_from_slice(&self.hasher.seed());
        bytes.extend_from_slice(&encode(&self.totals));
        bytes
    }

    /// Decodes a row of this or an earlier version.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, StoreError> {
        let malformed = || StoreError::Damaged("the row that describes it is malformed");
        let (version, rest) = bytes.split_first_chunk().ok_or_else(malformed)?;
        let found = u32::from_le_bytes(*version);
        if found > FORMAT_VERSION {
            return Err(StoreError::NewerFormat { found, known: FORMAT_VERSION });
        }
        if found == 0 {
            return Err(malformed());
        }
        let (applied, rest) = rest.split_first_chunk().ok_or_else(malformed)?;
        let (seed, totals) = rest.split_first_chunk::<SEED_BYTES>().ok_or_else(malformed)?;
        let totals = try_decode(&[totals, added_since(found)].concat()).ok_or_else(malformed)?;
        Ok(Self { applied: u64::from_le_bytes(*applied), hasher: KeyHasher::new(*seed), totals })
    }
}

/// Returns the encoded defaults of the fields that were added to the totals after a version. A zero in postcard is one
/// byte.
fn added_since(version: u32) -> &'static [u8] {
    match version {
        #[cfg(feature = "next-format")]
        1 => &[0],
        _ => &[],
    }
}
