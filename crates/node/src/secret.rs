//! Secrets of grants: 256 random bits as 43 characters, and their hashes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use feed::accounts::SecretHash;
use sha2::{Digest as _, Sha256};

/// A secret that this program generated.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Generates a secret.
    ///
    /// # Errors
    /// The operating system provides no random bytes.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Whether a text has the form of a secret; others need no look-up.
    #[must_use]
    pub fn is_well_formed(text: &str) -> bool {
        let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        text.len() == 43 && text.bytes().all(is_digit)
    }

    /// Returns the text that the owner presents.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the stored hash of the secret.
    #[must_use]
    pub fn hash(&self) -> SecretHash {
        Self::hash_of(&self.0)
    }

    /// Returns the hash of a secret, or of a text that is compared with one.
    #[must_use]
    pub fn hash_of(text: &str) -> SecretHash {
        SecretHash(Sha256::digest(text.as_bytes()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_be_a_secret_is_looked_up() {
        let secret = Secret::random().unwrap();
        assert!((0..100).all(|_| Secret::is_well_formed(Secret::random().unwrap().as_str())));
        let text = secret.as_str();
        for wrong in [
            String::new(),
            text[1..].to_owned(),
            format!("{text}A"),
            format!("{}+", &text[1..]),
            format!("{}=", &text[1..]),
            format!("{}\u{e9}", &text[2..]),
            "a-key-of-the-product".to_owned(),
        ] {
            assert!(!Secret::is_well_formed(&wrong), "{wrong}");
        }
    }
}
