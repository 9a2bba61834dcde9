//! Order of keys: a hash with a secret, so that clients cannot construct keys that collide.

use std::fmt;

use kv::Space;
use siphasher::sip::SipHasher13;

use crate::error::StoreError;

/// Length of the secret in bytes.
pub(crate) const SEED_BYTES: usize = 16;

/// Hasher of keys with a secret of the data directory (SipHash-1-3). It is part of the format of stores.
#[derive(Clone, Copy)]
pub(crate) struct KeyHasher {
    low: u64,
    high: u64,
}

impl KeyHasher {
    pub(crate) fn new(seed: [u8; SEED_BYTES]) -> Self {
        let [low, high] = [&seed[..8], &seed[8..]]
            .map(|half| half.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)));
        Self { low, high }
    }

    /// Returns the seed.
    pub(crate) fn seed(self) -> [u8; SEED_BYTES] {
        (u128::from(self.high) << 64 | u128::from(self.low)).to_le_bytes()
    }

    /// Returns the position of a key in the walk through its space.
    pub(crate) fn hash(self, space: Space, key: &[u8]) -> u64 {
        SipHasher13::new_with_keys(self.low ^ u64::from(space.0), self.high).hash(key)
    }
}

/// Omits the secret.
impl fmt::Debug for KeyHasher {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("KeyHasher")
    }
}

/// Creates a hasher with a random secret.
pub(crate) fn random_hasher() -> Result<KeyHasher, StoreError> {
    let mut seed = [0; SEED_BYTES];
    getrandom::fill(&mut seed).map_err(|_| StoreError::NoRandomness)?;
    Ok(KeyHasher::new(seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_keys_depends_on_the_seed_and_never_changes() {
        let seed: [u8; 16] = std::array::from_fn(|at| at as u8);
        let hasher = KeyHasher::new(seed);
        assert_eq!(hasher.seed(), seed);
        // Reference vector of SipHash-1-3 for an empty input under this key.
        assert_eq!(hasher.hash(Space(0), b""), 0xabac_0158_050f_c4dc);
        let other = KeyHasher::new([1; 16]);
        for key in ["", "a", "a longer key than eight bytes"] {
            let key = key.as_bytes();
            assert_ne!(hasher.hash(Space(0), key), other.hash(Space(0), key));
            assert_ne!(hasher.hash(Space(0), key), hasher.hash(Space(1), key));
        }
    }
}
