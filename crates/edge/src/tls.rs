//! Certificate of a server, and the settings of its TLS connections: versions 1.2 and 1.3, HTTP/1.1.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use tokio::sync::Semaphore;
use tokio_rustls::rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::{NoServerSessionStorage, ParsedCertificate};
use tokio_rustls::rustls::{
    self, CertificateError as Invalid, RootCertStore, ServerConfig, crypto,
};

/// Maximum length of a certificate chain, in bytes without PEM. A handshake holds the chain in memory until it is sent.
const CHAIN_BYTES_MAX: usize = 16 << 10;

/// Certificate with its private key, ready to be served.
#[derive(Debug)]
pub struct Certificate {
    config: Arc<ServerConfig>,
    leaf: CertificateDer<'static>,
    begins: Timestamp,
    expires: Timestamp,
}

/// Reason why a certificate cannot be served.
#[derive(Debug, Error)]
pub enum CertificateError {
    /// The chain is empty.
    #[error(
        "the certificate file has no certificate in PEM form (-----BEGIN CERTIFICATE-----); it needs the certificate of \
         the server and then those of the authorities between"
    )]
    NoCertificate,
    /// The file contains an invalid certificate.
    #[error("the certificate file is damaged or not a PEM file: {0}")]
    Unreadable(String),
    /// The chain is longer than 16 KiB.
    #[error(
        "the certificate file has more than 16 KiB of certificates; leave out what clients do not need"
    )]
    TooLong,
    /// The certificate is no longer valid.
    #[error("the certificate expired on {0}; renew it")]
    Expired(Timestamp),
    /// The certificate is not valid yet.
    #[error("the certificate is not valid before {0}; check the clock of this machine")]
    NotValidYet(Timestamp),
    /// The key file contains no key.
    #[error(
        "the key file has no private key in PEM form (-----BEGIN PRIVATE KEY-----); an encrypted key must be decrypted \
         first: openssl pkey -in FILE -out NEW"
    )]
    NoKey,
    /// The private key belongs to another certificate.
    #[error(
        "the private key does not belong to the certificate of the server, which must be the first one in the \
         certificate file"
    )]
    Mismatch,
    /// The private key is damaged or of an unknown kind.
    #[error(
        "the private key cannot be used: {0}; it must be of ECDSA (P-256, P-384), Ed25519 or RSA (2048 to 8192 bits)"
    )]
    Key(String),
}

impl Certificate {
    /// Reads a chain of certificates, and the private key of the first one, from two PEM files.
    ///
    /// # Errors
    /// If the files are invalid, do not belong together, or the certificate is not valid at `now`.
    pub fn from_pem(chain: &[u8], key: &[u8], now: Timestamp) -> Result<Self, CertificateError> {
        let chain = CertificateDer::pem_slice_iter(chain).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| CertificateError::Unreadable(error.to_string()))?;
        let leaf = chain.first().ok_or(CertificateError::NoCertificate)?.clone();
        if chain.iter().map(|certificate| certificate.len()).sum::<usize>() > CHAIN_BYTES_MAX {
            return Err(CertificateError::TooLong);
        }
        let (begins, expires) = validity(&leaf, now)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
            PemError::NoItemsFound => CertificateError::NoKey,
            error => CertificateError::Key(error.to_string()),
        })?;
        Ok(Self { config: Arc::new(config(chain, key)?), leaf, begins, expires })
    }

    /// SHA-256 of the server's certificate, as browsers and `openssl` show it.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let bytes = Sha256::digest(&self.leaf);
        let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
        digits.join(":")
    }

    /// Last second at which the certificate is valid.
    #[must_use]
    pub fn expires(&self) -> Timestamp {
        self.expires
    }

    /// Total time for which the certificate is valid.
    #[must_use]
    pub fn lifetime(&self) -> SignedDuration {
        self.expires.duration_since(self.begins)
    }

    /// Whether the certificate is for a server with this host name or IP address.
    #[must_use]
    pub fn is_for(&self, name: &str) -> bool {
        ServerName::try_from(name).is_ok_and(|name| {
            ParsedCertificate::try_from(&self.leaf)
                .is_ok_and(|leaf| verify_server_name(&leaf, &name).is_ok())
        })
    }
}

fn config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, CertificateError> {
    let wrong = |error: rustls::Error| match error {
        rustls::Error::InconsistentKeys(_) => CertificateError::Mismatch,
        rustls::Error::InvalidCertificate(error) => CertificateError::Unreadable(error.to_string()),
        error => CertificateError::Key(error.to_string()),
    };
    let mut config =
        ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(wrong)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(wrong)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Sessions are stored by clients, as encrypted tickets, so the server stores none.
    config.ticketer = crypto::ring::Ticketer::new().map_err(wrong)?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}

/// First and last second at which a certificate is valid.
///
/// # Errors
/// If the bytes are not a certificate, or the certificate is not valid at `now`.
fn validity(
    certificate: &CertificateDer<'_>,
    now: Timestamp,
) -> Result<(Timestamp, Timestamp), CertificateError> {
    let unreadable = |error: rustls::Error| CertificateError::Unreadable(error.to_string());
    let parsed = ParsedCertificate::try_from(certificate).map_err(unreadable)?;
    // The library checks the times before the issuer, so the issuer does not matter here, and is never trusted.
    let check = |time: Duration| {
        let (roots, time) = (RootCertStore::empty(), UnixTime::since_unix_epoch(time));
        verify_server_cert_signed_by_trust_anchor(&parsed, &roots, &[], time, &[])
    };
    let now = Duration::from_secs(now.as_second().max(0).unsigned_abs());
    match check(now) {
        Err(rustls::Error::InvalidCertificate(Invalid::ExpiredContext { not_after, .. })) => {
            return Err(CertificateError::Expired(timestamp(not_after)));
        }
        Err(rustls::Error::InvalidCertificate(Invalid::NotValidYetContext {
            not_before, ..
        })) => return Err(CertificateError::NotValidYet(timestamp(not_before))),
        _ => {}
    }
    // No certificate is valid at the beginning or at the end of time, so these checks fail. Their errors contain the
    // first and last second of the certificate.
    let begins = match check(Duration::ZERO) {
        Err(rustls::Error::InvalidCertificate(Invalid::NotValidYetContext {
            not_before, ..
        })) => timestamp(not_before),
        _ => Timestamp::UNIX_EPOCH,
    };
    match check(Duration::MAX) {
        Err(rustls::Error::InvalidCertificate(Invalid::ExpiredContext { not_after, .. })) => {
            Ok((begins, timestamp(not_after)))
        }
        Err(error) => Err(unreadable(error)),
        Ok(()) => Ok((begins, Timestamp::MAX)),
    }
}

fn timestamp(time: UnixTime) -> Timestamp {
    let seconds = i64::try_from(time.as_secs()).ok();
    seconds.and_then(|seconds| Timestamp::from_second(seconds).ok()).unwrap_or(Timestamp::MAX)
}

/// State shared by all TLS connections of a server.
#[derive(Debug)]
pub struct Tls {
    config: ArcSwap<ServerConfig>,
    /// Permits for handshakes that compute at the same time: see [`Listener`](crate::Listener).
    pub(crate) turns: Semaphore,
}

impl Tls {
    /// Creates the state of connections that use this certificate.
    #[must_use]
    pub fn new(certificate: &Certificate) -> Arc<Self> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Arc::new(Self {
            config: ArcSwap::new(Arc::clone(&certificate.config)),
            turns: Semaphore::new((processors / 2).max(1)),
        })
    }

    /// Uses this certificate for connections that begin from now on.
    pub fn replace(&self, certificate: &Certificate) {
        self.config.store(Arc::clone(&certificate.config));
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.config.load_full()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn a_certificate_is_valid_from_its_first_to_its_last_second() {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        (params.not_before, params.not_after) =
            (date_time_ymd(2030, 1, 1), date_time_ymd(2030, 1, 11));
        let (chain, key) = (params.self_signed(&key).unwrap().pem(), key.serialize_pem());
        let served =
            |at: &str| Certificate::from_pem(chain.as_bytes(), key.as_bytes(), at.parse().unwrap());
        let certificate = served("2030-01-01T00:00:00Z").unwrap();
        assert_eq!(certificate.lifetime(), SignedDuration::from_hours(240));
        assert_eq!(certificate.expires(), "2030-01-11T00:00:00Z".parse().unwrap());
        for (at, is_served) in [
            ("2029-12-31T23:59:59Z", false),
            ("2030-01-11T00:00:00Z", true),
            ("2030-01-11T00:00:01Z", false),
        ] {
            assert_eq!(served(at).is_ok(), is_served, "{at}");
        }
    }
}
