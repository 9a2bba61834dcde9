//! The row that describes the store: format version, applied position, the secret that orders keys, totals.

use rows::{Totals, decode, encode, try_decode};

use crate::FORMAT_VERSION;
use crate::error::StoreError;
use crate::hash::{KeyHasher, SEED_BYTES};

/// The first version of the format that has a seed.
pub(crate) const SEED_VERSION: u32 = 4;
/// The first version whose totals count deleted users.
const DELETED_USERS_VERSION: u32 = 6;
/// The first version whose lists of users are packed and whose buckets count their expiring keys.
pub(crate) const PACKED_VERSION: u32 = 7;
/// The first version whose totals count accounts, blocks and mutes.
const ACCOUNTS_VERSION: u32 = 8;
/// The first version whose totals count posts that are not for everybody, and users who are hidden.
const HIDDEN_VERSION: u32 = 18;
/// The first version whose totals count accounts that wait for approval.
const PENDING_VERSION: u32 = 19;
/// What versions added, a zero of one byte each as postcard writes it: the number of accounts that wait for approval.
const NO_PENDING: [u8; 1] = [0; 1];
/// Before it, numbers of posts that are not for everybody, of disabled accounts, and of times that users were hidden.
const NO_HIDDEN: [u8; 4] = [0; 4];
/// Before these, numbers of accounts, of unused apps, of revocations, of blocks and of mutes.
const NO_ACCOUNTS: [u8; 9] = [0; 9];
/// Before these, numbers of deleted users, and of those whose rows are not removed.
const NO_DELETED_USERS: [u8; 11] = [0; 11];

/// The content of the row. Since version 4 of the format: version (`u32`), applied position (`u64`), seed (16 bytes),
/// totals (postcard); numbers little endian. Earlier versions have no seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// Position of the log up to which the rows are applied.
    pub(crate) applied: u64,
    pub(crate) hasher: KeyHasher,
    pub(crate) totals: Totals,
}

impl Head {
    pub(crate) fn encode(&self) -> Vec<u8> {
        self.encode_as(FORMAT_VERSION)
    }

    /// The row of a store of `version`, 6 or later.
    pub(crate) fn encode_as(&self, version: u32) -> Vec<u8> {
        let mut bytes = version.to_le_bytes().to_vec();
        bytes.extend_from_slice(&self.applied.to_le_bytes());
        bytes.extend_from_slice(&self.hasher.seed());
        bytes.extend_from_slice(&encode(&self.totals));
        bytes
    }

    /// As [`Head::peek`], of a row of version [`PACKED_VERSION`] or later.
    pub(crate) fn peek_packed(bytes: &[u8]) -> Result<(u64, Totals), StoreError> {
        let (found, _) = version(bytes)?;
        if found < PACKED_VERSION {
            return Err(StoreError::OldFormat(found));
        }
        Self::peek(bytes)
    }

    /// Applied position and totals of a row of version [`SEED_VERSION`] or later.
    pub(crate) fn peek(bytes: &[u8]) -> Result<(u64, Totals), StoreError> {
        let (found, rest) = version(bytes)?;
        if found < SEED_VERSION {
            return Err(StoreError::OldFormat(found));
        }
        let malformed = || StoreError::Damaged("the row that describes it is malformed");
        let (applied, rest) = rest.split_first_chunk().ok_or_else(malformed)?;
        let (_, totals) = rest.split_at_checked(SEED_BYTES).ok_or_else(malformed)?;
        let totals = try_decode(&[totals, missing(found)].concat()).ok_or_else(malformed)?;
        Ok((u64::from_le_bytes(*applied), totals))
    }

    /// Reads the row; returns its version with it. A row before [`SEED_VERSION`] gets `hasher` for its keys.
    pub(crate) fn read(bytes: &[u8], hasher: KeyHasher) -> Result<(u32, Self), StoreError> {
        let malformed = StoreError::Damaged("the row that describes it is too short");
        let (found, rest) = version(bytes)?;
        let Some((applied, rest)) = rest.split_first_chunk() else { return Err(malformed) };
        let applied = u64::from_le_bytes(*applied);
        if found >= SEED_VERSION {
            let Some((seed, totals)) = rest.split_first_chunk() else { return Err(malformed) };
            let totals = decode(&[totals, missing(found)].concat());
            return Ok((found, Self { applied, hasher: KeyHasher::new(*seed), totals }));
        }
        let mut totals = rest.to_vec();
        // What later versions added, a zero of one byte each: friendships, stories and the second of
        // their sweep; spaces, keys that expire and, in version 3, the second of their sweep; then what
        // [`NO_DELETED_USERS`] has.
        let missing = match found {
            1 => 6,
            2 => 3,
            _ => 0,
        };
        totals.resize(totals.len() + missing + NO_DELETED_USERS.len(), 0);
        Ok((found, Self { applied, hasher, totals: decode(&totals) }))
    }
}

/// The bytes that totals of a version from [`SEED_VERSION`] on lack at their end.
fn missing(version: u32) -> &'static [u8] {
    match version {
        0..DELETED_USERS_VERSION => &NO_DELETED_USERS,
        DELETED_USERS_VERSION..ACCOUNTS_VERSION => &NO_ACCOUNTS,
        ACCOUNTS_VERSION..HIDDEN_VERSION => &NO_HIDDEN,
        HIDDEN_VERSION..PENDING_VERSION => &NO_PENDING,
        _ => &[],
    }
}

/// The version of the format, and what follows it.
fn version(bytes: &[u8]) -> Result<(u32, &[u8]), StoreError> {
    let Some((version, rest)) = bytes.split_first_chunk() else {
        return Err(StoreError::Damaged("the row that describes it is too short"));
    };
    let found = u32::from_le_bytes(*version);
    match found > FORMAT_VERSION {
        true => Err(StoreError::NewerFormat { found, known: FORMAT_VERSION }),
        false => Ok((found, rest)),
    }
}
