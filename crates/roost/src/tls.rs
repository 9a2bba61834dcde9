//! Certificate of `roost serve`: read from two files, or self-signed.
//!
//! A running server checks once per second whether its certificate must be replaced. **Invariant:** if a new
//! certificate cannot be served, the old one stays in use.

mod self_signed;

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use edge::{Certificate, Tls};
use jiff::{SignedDuration, Timestamp};
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Notify;

use self_signed::Made;
pub(crate) use self_signed::SelfSigned;

use crate::files::Identity;
use crate::settings::Settings;

/// Interval at which a running server checks its certificate.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Longest PEM file, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 10;
/// Time before the expiry of a certificate from files at which the server logs a warning, because the renewal must have
/// failed. For short-lived certificates, it is a third of their lifetime.
const WARN_BEFORE: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Interval at which the log repeats that the certificate has expired.
const EXPIRED_EVERY: SignedDuration = SignedDuration::from_hours(24);
/// Interval between attempts to replace the certificate after a failure. Its cause may be elsewhere than in the files.
const RETRY_EVERY: SignedDuration = SignedDuration::from_secs(60);
/// Interval at which the log repeats the cause.
const FAILED_EVERY: SignedDuration = SignedDuration::from_hours(24);

/// Source of the certificate.
#[derive(Debug, PartialEq)]
pub(crate) enum Source {
    /// PEM files that an operator replaces.
    Files {
        /// Chain of certificates.
        cert: PathBuf,
        /// Private key of the first certificate.
        key: PathBuf,
        /// Host name that clients expect in the certificate.
        host: Option<String>,
    },
    /// Certificate made by the server.
    SelfSigned(SelfSigned),
}

/// Versions of both files.
type Versions = [Option<Identity>; 2];

/// Certificate that a server uses.
pub(crate) struct Https {
    source: Source,
    tls: Arc<Tls>,
    expiry: Gauge,
    current: Certificate,
    /// Certificate made by this server and not stored yet.
    unstored: Option<Made>,
    /// Versions of the files that were read last.
    read: Versions,
    /// Versions of the files at the last check.
    seen: Versions,
    /// Last attempt to replace the certificate, if it failed.
    failure: Option<Failure>,
    /// Last logged stage of the certificate's expiry, and the time of the log line.
    end: (End, Timestamp),
}

/// Certificate that could not be served.
struct Failure {
    message: String,
    tried: Timestamp,
    logged: Timestamp,
}

/// Stage of a certificate's expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Far,
    Near,
    Past,
}

impl End {
    fn of(lifetime: SignedDuration, left: SignedDuration) -> Self {
        match left {
            left if left.is_negative() => Self::Past,
            left if left < WARN_BEFORE.min(lifetime / 3) => Self::Near,
            _ => Self::Far,
        }
    }
}

impl Https {
    /// Reads the certificate, or makes one that [`Https::store`] stores later. May block.
    ///
    /// # Errors
    /// If the files cannot be read or served, with advice.
    pub(crate) fn open(source: Source, now: Timestamp) -> anyhow::Result<Self> {
        let seen = source.versions();
        let (current, unstored) = match &source {
            Source::Files { cert, key, .. } => (read(cert, key, now)?, None),
            Source::SelfSigned(own) => own.load_or_make(now)?,
        };
        source.log(&current);
        let tls = Tls::new(&current);
        let end = (End::Far, now);
        let expiry = Gauge::default();
        expiry.set(current.expires().as_second());
        Ok(Self { source, tls, expiry, current, unstored, read: seen, seen, failure: None, end })
    }

    /// Metric of the certificate's expiry, in seconds since 1970.
    pub(crate) fn expiry(&self) -> Gauge {
        self.expiry.clone()
    }

    /// TLS configuration for the listener.
    pub(crate) fn tls(&self) -> Arc<Tls> {
        Arc::clone(&self.tls)
    }

    /// Stores a newly made certificate. The server must own the data directory. May block.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn store(&mut self) -> anyhow::Result<()> {
        match (&self.source, self.unstored.take()) {
            (Source::SelfSigned(own), Some(made)) => own.store(&made),
            _ => Ok(()),
        }
    }

    /// Replaces the certificate when necessary, for as long as the server runs. Reads the files again when `asked` is
    /// notified.
    pub(crate) async fn follow(self, asked: Arc<Notify>) {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        let mut https = self;
        loop {
            let is_asked = tokio::select! {
                _ = ticks.tick() => false,
                () = asked.notified() => true,
            };
            let looked = tokio::task::spawn_blocking(move || {
                https.look(Timestamp::now(), is_asked);
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

    fn look(&mut self, now: Timestamp, is_asked: bool) {
        let seen = self.source.versions();
        // Operators replace one file after the other. Read both when neither has changed between two checks, or when
        // the operator sends SIGHUP.
        let is_stable = std::mem::replace(&mut self.seen, seen) == seen || is_asked;
        let is_changed = is_stable && seen != self.read;
        if is_changed {
            (self.read, self.failure) = (seen, None);
        }
        let retries = is_asked
            || self
                .failure
                .as_ref()
                .is_some_and(|failure| is_over(RETRY_EVERY, failure.tried, now));
        match &self.source {
            Source::Files { cert, key, .. } => {
                if is_changed || (is_stable && retries) {
                    let read = read(cert, key, now);
                    self.replace(read, now);
                }
                self.log_the_end(now);
            }
            Source::SelfSigned(own)
                if self_signed::is_due(&self.current, now)
                    && (retries || self.failure.is_none()) =>
            {
                let made = own.make(now).map(|(certificate, made)| {
                    self.unstored = Some(made);
                    certificate
                });
                self.replace(made, now);
                if let Err(error) = self.store() {
                    // The next start makes a new certificate.
                    tracing::error!("{error:#}; the new TLS certificate is not stored");
                }
            }
            Source::SelfSigned(_) => {}
        }
    }

    fn replace(&mut self, loaded: anyhow::Result<Certificate>, now: Timestamp) {
        let before = self.failure.take();
        match loaded {
            Ok(certificate) => {
                self.tls.replace(&certificate);
                self.expiry.set(certificate.expires().as_second());
                self.source.log(&certificate);
                (self.current, self.end) = (certificate, (End::Far, now));
            }
            Err(error) => {
                let message = format!("{error:#}");
                let known = before.filter(|before| {
                    before.message == message && !is_over(FAILED_EVERY, before.logged, now)
                });
                if known.is_none() {
                    tracing::error!("{message}; the previous TLS certificate stays in use");
                }
                let logged = known.map_or(now, |known| known.logged);
                self.failure = Some(Failure { message, tried: now, logged });
            }
        }
    }

    fn log_the_end(&mut self, now: Timestamp) {
        let expires = self.current.expires();
        let end = End::of(self.current.lifetime(), expires.duration_since(now));
        let (logged, since) = self.end;
        match end {
            End::Near if logged != end => {
                tracing::warn!(%expires, "the TLS certificate expires soon; renew it");
            }
            End::Past if logged != end || is_over(EXPIRED_EVERY, since, now) => {
                tracing::error!(%expires, "the TLS certificate has expired, and clients refuse it; renew it");
            }
            _ => return,
        }
        self.end = (end, now);
    }
}

/// Whether at least `time` is between `since` and `now`, in either direction: the clock may have been set back.
fn is_over(time: SignedDuration, since: Timestamp, now: Timestamp) -> bool {
    now.duration_since(since).abs() >= time
}

impl Source {
    /// Source of the certificate, if https is served.
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
            (Some(cert), Some(key)) => {
                let host = settings.public_url.as_deref().map(self_signed::host);
                Some(Self::Files { cert: cert.clone(), key: key.clone(), host })
            }
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
            Self::Files { cert, key, .. } => [Identity::of(cert), Identity::of(key)],
            Self::SelfSigned(_) => [None, None],
        }
    }

    fn log(&self, certificate: &Certificate) {
        tracing::info!(
            sha256 = certificate.fingerprint(),
            expires = %certificate.expires(),
            "using a TLS certificate"
        );
        if let Self::Files { host: Some(host), .. } = self
            && !certificate.is_for(host)
        {
            tracing::warn!(
                "the TLS certificate is not for {host}, the host of --public-url; clients refuse it"
            );
        }
    }
}

/// Reads the certificate from two files.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_certificate_is_near_within_a_week_or_a_third_of_its_lifetime() {
        let hours = SignedDuration::from_hours;
        for (lifetime, left, expect) in [
            (90 * 24, 7 * 24, End::Far),
            (90 * 24, 7 * 24 - 1, End::Near),
            (6 * 24, 2 * 24, End::Far),
            (6 * 24, 2 * 24 - 1, End::Near),
            (6 * 24, 0, End::Near),
            (6 * 24, -1, End::Past),
            (90 * 24, -1, End::Past),
        ] {
            assert_eq!(End::of(hours(lifetime), hours(left)), expect, "{left} of {lifetime}");
        }
    }

    #[test]
    fn a_certificate_is_replaced_at_the_second_look_or_when_an_operator_asks() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().to_owned();
        let own = SelfSigned::new(data.clone(), None, std::net::Ipv4Addr::LOCALHOST.into());
        let start = Timestamp::now();
        let store = || {
            let (certificate, made) = own.make(start).unwrap();
            own.store(&made).unwrap();
            certificate.fingerprint()
        };
        store();
        let (cert, key) = (data.join("tls-cert.pem"), data.join("tls-key.pem"));
        let mut https = Https::open(Source::Files { cert, key, host: None }, start).unwrap();
        let second = store();
        https.look(start, false);
        assert_ne!(https.current.fingerprint(), second);
        https.look(start, false);
        assert_eq!(https.current.fingerprint(), second);
        let third = store();
        https.look(start, true);
        assert_eq!(https.current.fingerprint(), third);
    }

    #[test]
    fn a_certificate_that_cannot_be_served_is_tried_again_every_minute() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().to_owned();
        let own = SelfSigned::new(data.clone(), None, std::net::Ipv4Addr::LOCALHOST.into());
        let start = Timestamp::now();
        let store = |at| {
            let (certificate, made) = own.make(at).unwrap();
            own.store(&made).unwrap();
            certificate.fingerprint()
        };
        store(start);
        let (cert, key) = (data.join("tls-cert.pem"), data.join("tls-key.pem"));
        let mut https = Https::open(Source::Files { cert, key, host: None }, start).unwrap();
        // The validity begins a day before the certificate was made.
        let hours = SignedDuration::from_hours;
        let next = store(start + hours(48));
        let secs = SignedDuration::from_secs;
        for (at, is_served) in [
            (hours(0), false),
            (hours(24) - secs(2), false),
            (hours(24) + secs(57), false),
            (hours(24) + secs(58), true),
        ] {
            https.look(start + at, false);
            https.look(start + at, false);
            assert_eq!(https.current.fingerprint() == next, is_served, "{at:?}");
            assert_eq!(https.expiry().get(), https.current.expires().as_second());
        }
    }
}
