//! Secrets of grants: 256 random bits as 43 characters, and their hashes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use feed::accounts::SecretHash;
use sha2::{Digest as _, Sha256};

/// A secret that was made here.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// A new one.
    ///
    /// # Errors
    /// If the operating system gives no random bytes.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// The text that its owner presents.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What is stored of it.
    #[must_use]
    pub fn hash(&self) -> SecretHash {
        Self::hash_of(&self.0)
    }

    /// What is stored of a secret, or of a text that is only compared.
    #[must_use]
    pub fn hash_of(text: &str) -> SecretHash {
        SecretHash(Sha256::digest(text.as_bytes()).into())
    }
}
