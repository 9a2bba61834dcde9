//! Buckets: named maps of keys to values. [`KeyRow`] is a key as it is held in memory, [`KeyOp`] what can
//! be done to keys.
//!
//! A bucket's keys are in its **space**. Emptying a bucket gives it another, empty space, and swapping
//! two exchanges their spaces: both take no longer for a million keys than for one. The rows of a
//! space that no bucket has are removed piece by piece, and then the space is used again.
//!
//! Keys are walked in an order that is the store's own and secret, not that of the alphabet: a walk that
//! began before keys came and went goes on at a number, and meets every key that existed all the while
//! exactly once; and nobody can make keys that share a place.

mod answer;
mod op;
mod ops;
mod row;

use serde::{Deserialize, Serialize};

pub use answer::{KeyAnswer, KeyRefusal};
pub use op::{Expiry, KeyOp, Only, OnlyExpiry, Watched, is_possible_key};
pub use ops::{KeyOps, OpPlace};
pub use row::{KeyParts, KeyRow};
pub use serde_bytes::Bytes;

use crate::ids::Space;
use crate::rows::Value;

/// What a bucket holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// Where its keys are now.
    pub space: Space,
    /// Rows of keys; those that expired count until they are removed.
    pub keys: u64,
    /// Bytes of these keys and their values.
    pub bytes: u64,
}

impl Bucket {
    /// A bucket without keys.
    #[must_use]
    pub const fn empty(space: Space) -> Self {
        Self { space, keys: 0, bytes: 0 }
    }

    /// 20 bytes, little endian, in the order of the fields.
    #[must_use]
    pub fn encode(self) -> Value {
        let mut bytes = Value::from_slice(&self.space.0.to_le_bytes());
        bytes.extend_from_slice(&self.keys.to_le_bytes());
        bytes.extend_from_slice(&self.bytes.to_le_bytes());
        bytes
    }

    /// Reverses [`Bucket::encode`]; `None` if the bytes are not a bucket's.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (space, rest) = bytes.split_first_chunk()?;
        let (keys, rest) = rest.split_first_chunk()?;
        let (bytes, []) = rest.split_first_chunk()? else { return None };
        Some(Self {
            space: Space(u32::from_le_bytes(*space)),
            keys: u64::from_le_bytes(*keys),
            bytes: u64::from_le_bytes(*bytes),
        })
    }
}
