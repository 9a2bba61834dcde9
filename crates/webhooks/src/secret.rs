//! Secrets and signatures, as [Standard Webhooks] defines them: libraries of many languages verify them.
//!
//! [Standard Webhooks]: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::hmac;
use serde::{Deserialize, Serialize};
use thiserror::Error;

const PREFIX: &str = "whsec_";
/// Number of random bytes of a generated secret.
const BYTES: usize = 32;
/// Smallest and greatest number of bytes of a secret.
const BYTES_RANGE: std::ops::RangeInclusive<usize> = 24..=64;

/// Key with which the requests of a webhook are signed.
#[derive(Clone, Deserialize, PartialEq, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Secret(Vec<u8>);

/// The text is not a secret.
#[derive(Clone, Copy, Debug, Error)]
#[error("a secret is {PREFIX} and 24 to 64 bytes in base64")]
pub struct SecretError;

impl Secret {
    /// Parses a secret: `whsec_` and 24 to 64 bytes in base64.
    ///
    /// # Errors
    /// If the text has another form.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let bytes = text.strip_prefix(PREFIX).and_then(|text| BASE64.decode(text).ok());
        let bytes = bytes.filter(|bytes| BYTES_RANGE.contains(&bytes.len()));
        bytes.map(Self).ok_or(SecretError)
    }

    /// Generates a secret.
    ///
    /// # Errors
    /// If the operating system gives no random bytes.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut bytes = vec![0; BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Returns the text of the secret, as [`Secret::parse`] reads it.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{PREFIX}{}", BASE64.encode(&self.0))
    }

    /// Returns the value of the header `webhook-signature`. `timestamp` is in seconds since 1970.
    #[must_use]
    pub fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &self.0));
        context.update(format!("{id}.{timestamp}.").as_bytes());
        context.update(body);
        format!("v1,{}", BASE64.encode(context.sign()))
    }
}

/// Hides the secret.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl TryFrom<String> for Secret {
    type Error = SecretError;

    fn try_from(text: String) -> Result<Self, SecretError> {
        Self::parse(&text)
    }
}

impl From<Secret> for String {
    fn from(secret: Secret) -> Self {
        secret.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_that_of_the_libraries_of_standard_webhooks() {
        // The test vector of the libraries.
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature =
            secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b"{\"test\": 2432232314}");
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_secret_has_a_prefix_and_enough_bytes() {
        for (text, right) in [
            (format!("whsec_{}", BASE64.encode([7; 24])), true),
            (format!("whsec_{}", BASE64.encode([7; 64])), true),
            (format!("whsec_{}", BASE64.encode([7; 23])), false),
            (format!("whsec_{}", BASE64.encode([7; 65])), false),
            (BASE64.encode([7; 24]), false),
            ("whsec_not base64 not base64 not base64".to_owned(), false),
            ("whsec_".to_owned(), false),
        ] {
            let parsed = Secret::parse(&text);
            assert_eq!(parsed.is_ok(), right, "{text}");
            assert!(parsed.is_err() || parsed.unwrap().text() == text);
        }
        let made = Secret::generate().unwrap();
        assert_eq!(Secret::parse(&made.text()).unwrap(), made);
        assert_ne!(Secret::generate().unwrap(), made);
        assert_eq!(format!("{made:?}"), "Secret");
    }
}
