//! Self-signed certificate in the data directory.
//!
//! **Invariant:** a stored certificate is used only if it belongs to the stored key, covers all names and does not
//! expire soon. Otherwise the server makes a new key and certificate.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use edge::Certificate;
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose,
};

use crate::files::replace;

/// File of the certificate, which may be public.
const CERT: &str = "tls-cert.pem";
/// File of its private key.
const KEY: &str = "tls-key.pem";
/// Validity of a certificate: clients refuse more than 398 days.
const VALID: Duration = Duration::from_secs(397 * 86_400);
/// Remaining validity at which the certificate is replaced.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Time between the start of the validity and the creation of the certificate. It allows for clients whose clocks are
/// slow.
const VALID_BEFORE: Duration = Duration::from_secs(86_400);

/// Description of the server's certificate.
#[derive(Debug, PartialEq)]
pub(crate) struct SelfSigned {
    data: PathBuf,
    names: Vec<String>,
}

/// Contents of the files of a new certificate.
pub(super) struct Made {
    cert: String,
    key: String,
}

impl SelfSigned {
    /// Describes a certificate for the host of the public URL, for this machine, and for the address to listen on
    /// unless it is a wildcard.
    pub(crate) fn new(data: PathBuf, public_url: Option<&str>, listen: IpAddr) -> Self {
        let mut names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
        let listen = Some(listen).filter(|listen| !listen.is_unspecified());
        let more = listen.map(|listen| listen.to_string());
        for name in more.into_iter().chain(public_url.map(host)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Self { data, names }
    }

    /// Returns the stored certificate, or a new one that the caller must store.
    ///
    /// # Errors
    /// If a name is not valid in a certificate.
    pub(super) fn load_or_make(
        &self,
        now: Timestamp,
    ) -> anyhow::Result<(Certificate, Option<Made>)> {
        let [cert, key] = [CERT, KEY].map(|file| super::contents(&self.data.join(file)));
        if let (Ok(cert), Ok(key)) = (cert, key)
            && let Ok(stored) = Certificate::from_pem(&cert, &key, now)
            && !is_due(&stored, now)
            && self.names.iter().all(|name| stored.is_for(name))
        {
            return Ok((stored, None));
        }
        self.make(now).map(|(certificate, made)| (certificate, Some(made)))
    }

    /// Makes a certificate with a new key.
    ///
    /// # Errors
    /// If a name is not valid in a certificate.
    pub(super) fn make(&self, now: Timestamp) -> anyhow::Result<(Certificate, Made)> {
        let names = self.names.join(", ");
        let cannot = || format!("cannot make a certificate for {names}; see --public-url");
        let made = make(&self.names, now).with_context(cannot)?;
        let certificate = Certificate::from_pem(made.cert.as_bytes(), made.key.as_bytes(), now);
        let certificate = certificate.with_context(cannot)?;
        anyhow::ensure!(self.names.iter().all(|name| certificate.is_for(name)), cannot());
        tracing::info!(names, "made a self-signed TLS certificate");
        Ok((certificate, made))
    }

    /// Writes the files of a new certificate, readable by their owner only.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn store(&self, made: &Made) -> anyhow::Result<()> {
        replace(&self.data.join(KEY), made.key.trim_end().as_bytes())?;
        replace(&self.data.join(CERT), made.cert.trim_end().as_bytes())
    }
}

/// Whether a certificate must be replaced.
pub(super) fn is_due(certificate: &Certificate, now: Timestamp) -> bool {
    certificate.expires().duration_since(now) < RENEW_BEFORE
}

fn make(names: &[String], now: Timestamp) -> Result<Made, rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names)?;
    let now = rcgen::date_time_ymd(1970, 1, 1)
        + Duration::from_secs(now.as_second().max(0).unsigned_abs());
    (params.not_before, params.not_after) = (now - VALID_BEFORE, now + VALID);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "roost");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let cert = params.self_signed(&key)?;
    Ok(Made { cert: cert.pem(), key: key.serialize_pem() })
}

/// Host of a URL without a path.
pub(super) fn host(url: &str) -> String {
    let authority = url.split_once("://").map_or(url, |(_, authority)| authority);
    let host = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => authority.split_once(':').map_or(authority, |(host, _)| host),
    };
    host.to_ascii_lowercase()
}
