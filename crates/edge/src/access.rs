//! Who may call.

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// Who may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anybody on this machine, but no page of a foreign origin in a browser. Bind to loopback
    /// only; the URLs of the 2014 report exist in this mode.
    Open,
    /// Whoever presents the application key.
    Key {
        /// SHA-256 of the key.
        sha256: [u8; 32],
    },
}

impl Access {
    /// Whether callers with this key are let in. The time it takes does not depend on how much of it is right.
    #[must_use]
    pub fn accepts(&self, key: &[u8]) -> bool {
        match self {
            Self::Open => true,
            Self::Key { sha256 } => {
                let digest: [u8; 32] = Sha256::digest(key).into();
                digest.ct_eq(sha256).into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_key_is_accepted() {
        let access = Access::Key { sha256: Sha256::digest(b"secret").into() };
        for (key, expect) in [("secret", true), ("secre", false), ("secrets", false), ("", false)] {
            assert_eq!(access.accepts(key.as_bytes()), expect, "{key:?}");
        }
        assert!(Access::Open.accepts(b""));
    }
}
