//! Comparison and derivation of secrets.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use feed::accounts::SecretHash;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// Compares two hashes in constant time.
pub(crate) fn same(one: SecretHash, other: SecretHash) -> bool {
    one.0.ct_eq(&other.0).into()
}

/// Token of forms for the browser with this cookie.
pub(crate) fn form_token(cookie: &str) -> String {
    let mut digest = Sha256::new();
    digest.update(b"roost form\0");
    digest.update(cookie.as_bytes());
    URL_SAFE_NO_PAD.encode(digest.finalize())
}

/// Decodes the 32 bytes of a code challenge; `None` if it is malformed.
pub(crate) fn challenge(text: &str) -> Option<SecretHash> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    bytes.try_into().ok().map(SecretHash)
}

#[cfg(test)]
mod tests {
    use node::Secret;

    use super::*;

    #[test]
    fn secrets_differ_and_a_challenge_is_the_hash_of_its_verifier() {
        let (one, other) = (Secret::random().unwrap(), Secret::random().unwrap());
        assert_ne!(one.as_str(), other.as_str());
        assert_eq!(one.as_str().len(), 43);
        assert!(same(one.hash(), Secret::hash_of(one.as_str())) && !same(one.hash(), other.hash()));
        // Example of RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let found = challenge("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_eq!(found, Some(Secret::hash_of(verifier)));
        for bad in ["", "abc", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM=", &"A".repeat(44)] {
            assert_eq!(challenge(bad), None, "{bad}");
        }
    }
}
