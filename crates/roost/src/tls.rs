//! The certificate of `roost serve`: of two files, or made by the server itself.
//!
//! A running server checks once per second whether its certificate must be replaced, as it does for application keys.
//! **Invariant:** a certificate that cannot be served changes nothing: the one before it stays.

mod self_signed;

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use edge::{Certificate, Tls};
use jiff::{SignedDuration, Timestamp};

use self_signed::Made;
pub(crate) use self_signed::SelfSigned;

use crate::files::Identity;
use crate::settings::Settings;

/// Interval at which a running server checks its certificate.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Longest PEM file.
const FILE_BYTES_MAX: u64 = 256 << 10;
/// A certificate of files that is valid for less than this is logged: its renewal has failed.
const WARN_BEFORE: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Where the certificate is from.
#[derive(Debug, PartialEq)]
pub(crate) enum Source {
    /// PEM files that an operator replaces.
    Files {
        /// The chain of certificates.
        cert: PathBuf,
        /// The private key of the first one.
        key: PathBuf,
    },
    /// Made by the server.
    SelfSigned(SelfSigned),
}

/// The versions of both files.
type Versions = [Option<Identity>; 2];

/// The certificate that a server uses.
pub(crate) struct Https {
    source: Source,
    tls: Arc<Tls>,
    current: Certificate,
    /// A certificate that this server has made and not stored.
    unstored: Option<Made>,
    /// The versions of the files that were read last.
    read: Versions,
    /// Those that the last look found.
    seen: Versions,
    /// Whether the log says that the certificate expires soon.
    is_warned: bool,
}

impl Https {
    /// Reads the certificate, or makes one, which is not stored before [`Https::store`]. May block.
    ///
    /// # Errors
    /// If the files cannot be read or served, with what to do.
    pub(crate) fn open(source: Source, now: Timestamp) -> anyhow::Result<Self> {
        let seen = source.versions();
        let (current, unstored) = match &source {
            Source::Files { cert, key } => (read(cert, key, now)?, None),
            Source::SelfSigned(own) => own.load_or_make(now)?,
        };
        log(&current);
        let tls = Tls::new(&current);
        Ok(Self { source, tls, current, unstored, read: seen, seen, is_warned: false })
    }

    /// For the listener.
    pub(crate) fn tls(&self) -> Arc<Tls> {
        Arc::clone(&self.tls)
    }

    /// Stores a certificate that this server has made: once the data directory is its own. May block.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn store(&mut self) -> anyhow::Result<()> {
        match (&self.source, self.unstored.take()) {
            (Source::SelfSigned(own), Some(made)) => own.store(&made),
            _ => Ok(()),
        }
    }

    /// Replaces the certificate when it must be, for as long as the server runs.
    pub(crate) async fn follow(self) {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        let mut https = self;
        loop {
            ticks.tick().await;
            let looked = tokio::task::spawn_blocking(move || {
                https.look(Timestamp::now());
                https
            });
            match looked.await {
                Ok(back) => https = back,
                Err(error) => {
                    return tracing::error!(%error, "the certificate is no longer replaced");
                }
            }
        }
    }

    fn look(&mut self, now: Timestamp) {
        let seen = self.source.versions();
        // One file is replaced after the other: both are read when neither has changed between two looks.
        let is_stable = std::mem::replace(&mut self.seen, seen) == seen;
        match &self.source {
            Source::Files { cert, key } => {
                if is_stable && seen != self.read {
                    self.read = seen;
                    let read = read(cert, key, now);
                    self.replace(read);
                }
                self.warn_of_the_end(now);
            }
            Source::SelfSigned(own) if self_signed::is_due(&self.current, now) => {
                let made = own.make(now).map(|(certificate, made)| {
                    self.unstored = Some(made);
                    certificate
                });
                self.replace(made);
                if let Err(error) = self.store() {
                    // The next start makes another one.
                    tracing::error!("{error:#}; the new TLS certificate is not stored");
                }
            }
            Source::SelfSigned(_) => {}
        }
    }

    fn replace(&mut self, loaded: anyhow::Result<Certificate>) {
        match loaded {
            Ok(certificate) => {
                self.tls.replace(&certificate);
                log(&certificate);
                (self.current, self.is_warned) = (certificate, false);
            }
            Err(error) => {
                tracing::error!("{error:#}; the TLS certificate from before stays in use");
            }
        }
    }

    fn warn_of_the_end(&mut self, now: Timestamp) {
        let expires = self.current.expires();
        if expires.duration_since(now) < WARN_BEFORE && !self.is_warned {
            self.is_warned = true;
            tracing::warn!(%expires, "the TLS certificate expires within a week; renew it");
        }
    }
}

impl Source {
    /// Where the certificate is from, if https is served.
    ///
    /// # Errors
    /// If the settings contradict each other.
    pub(crate) fn of(settings: &Settings) -> anyhow::Result<Option<Self>> {
        let self_signed = settings.tls_self_signed == Some(true);
        Ok(match (&settings.tls_cert, &settings.tls_key) {
            (None, None) if !self_signed => None,
            (None, None) => {
                let url = settings.public_url.as_deref();
                Some(Self::SelfSigned(SelfSigned::new(
                    settings.data(),
                    url,
                    settings.listen().ip(),
                )))
            }
            (Some(_) | None, Some(_) | None) if self_signed => anyhow::bail!(
                "--tls-self-signed makes its own certificate: remove it, or --tls-cert and --tls-key"
            ),
            (Some(cert), Some(key)) => Some(Self::Files { cert: cert.clone(), key: key.clone() }),
            (Some(_), None) => {
                anyhow::bail!("--tls-cert needs --tls-key, the file of its private key")
            }
            (None, Some(_)) => {
                anyhow::bail!("--tls-key needs --tls-cert, the file of the certificate")
            }
        })
    }

    fn versions(&self) -> Versions {
        match self {
            Self::Files { cert, key } => [Identity::of(cert), Identity::of(key)],
            Self::SelfSigned(_) => [None, None],
        }
    }
}

fn log(certificate: &Certificate) {
    tracing::info!(
        sha256 = certificate.fingerprint(),
        expires = %certificate.expires(),
        "using a TLS certificate"
    );
}

/// The certificate of two files.
fn read(cert: &Path, key: &Path, now: Timestamp) -> anyhow::Result<Certificate> {
    let chain = contents(cert).with_context(|| {
        format!("cannot read the certificate file {} (--tls-cert)", cert.display())
    })?;
    let secret = contents(key)
        .with_context(|| format!("cannot read the key file {} (--tls-key)", key.display()))?;
    Certificate::from_pem(&chain, &secret, now).with_context(|| {
        format!("cannot serve https with --tls-cert {} --tls-key {}", cert.display(), key.display())
    })
}

fn contents(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    anyhow::ensure!(bytes.len() as u64 <= FILE_BYTES_MAX, "it is longer than 256 KiB");
    Ok(bytes)
}
