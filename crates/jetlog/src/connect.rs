//! Connections to NATS servers, and their errors.

use std::error::Error as _;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::context::{Context, ContextBuilder};
use async_nats::{Client, ConnectError, ConnectErrorKind, ConnectOptions, Event, ServerAddr};

use crate::error::JetLogError;

/// Oldest supported version of nats-server: older ones do not sync several appends with one fsync.
const OLDEST: (i64, i64) = (2, 15);
const OLDEST_TEXT: &str = "2.15";
/// Longest wait for the answer to a request.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval of pings; a server that does not answer two of them counts as dead.
const PING_INTERVAL: Duration = Duration::from_secs(1);

/// Addresses, credentials and stream of the log.
#[derive(Clone, Debug)]
pub struct JetLogOptions {
    /// Addresses of servers, separated by commas: `nats://HOST:4222` or `tls://HOST:4222`. `USER:PASSWORD@` may precede
    /// the first host, without percent-encoding.
    pub servers: String,
    /// File of NATS credentials.
    pub credentials: Option<PathBuf>,
    /// PEM file of certificate authorities that are trusted in addition to those of the system. Requires TLS.
    pub tls_ca: Option<PathBuf>,
    /// PEM files of the certificate and key of this node.
    pub tls_identity: Option<(PathBuf, PathBuf)>,
    /// Name of the stream.
    pub stream: String,
    /// Minimum number of replicas of the stream.
    pub replicas: usize,
}

impl JetLogOptions {
    /// Creates options for the stream `roost` with 3 replicas on these servers.
    #[must_use]
    pub fn new(servers: &str) -> Self {
        Self {
            servers: servers.to_owned(),
            credentials: None,
            tls_ca: None,
            tls_identity: None,
            stream: "roost".into(),
            replicas: 3,
        }
    }

    /// Returns the subject of all messages.
    pub(crate) fn subject(&self) -> String {
        format!("{}.groups", self.stream)
    }

    /// Returns the name of the stream of files.
    pub(crate) fn files_stream(&self) -> String {
        format!("{}-files", self.stream)
    }

    /// Returns the prefix of the subjects of all parts of files.
    pub(crate) fn files_subject(&self) -> String {
        format!("{}.files", self.stream)
    }

    /// Returns the subject of requests for files between nodes. No stream stores these requests.
    pub(crate) fn requests_subject(&self) -> String {
        format!("{}.requests", self.stream)
    }

    /// Checks the addresses. Does not connect.
    ///
    /// # Errors
    /// [`JetLogError::Address`]
    pub fn check(&self) -> Result<(), JetLogError> {
        self.addresses().map(drop)
    }

    fn addresses(&self) -> Result<Vec<ServerAddr>, JetLogError> {
        self.servers.split(',').map(|address| parse(address.trim())).collect()
    }
}

fn parse(address: &str) -> Result<ServerAddr, JetLogError> {
    let failed = |reason: &str| {
        // The part before an @ may be a password.
        let address = address.rsplit('@').next().unwrap_or_default().to_owned();
        JetLogError::Address { address, reason: reason.to_owned() }
    };
    if let Some((scheme, _)) = address.split_once("://")
        && !matches!(scheme, "nats" | "tls")
    {
        return Err(failed("it begins with neither nats:// nor tls://"));
    }
    let parsed: ServerAddr = address.parse().map_err(|_| failed("it has no host"))?;
    match parsed.host() {
        "" => Err(failed("it has no host")),
        _ => Ok(parsed),
    }
}

/// Connects to one of the servers. Calls `on_connect` each time the connection is restored.
pub(crate) async fn connect(
    options: &JetLogOptions,
    on_connect: impl Fn() + Send + Sync + 'static,
) -> Result<(Client, Context), JetLogError> {
    let addresses = options.addresses()?;
    let named: Vec<String> =
        addresses.iter().map(|address| format!("{}:{}", address.host(), address.port())).collect();
    let on_connect = Arc::new(on_connect);
    let mut with = ConnectOptions::new()
        .name("roost")
        .ping_interval(PING_INTERVAL)
        .connection_timeout(REQUEST_TIMEOUT)
        .request_timeout(Some(REQUEST_TIMEOUT))
        .reconnect_delay_callback(|attempts| {
            Duration::from_millis(20 << attempts.min(6)).min(Duration::from_secs(1))
        })
        .event_callback(move |event| {
            let on_connect = Arc::clone(&on_connect);
            async move {
                match event {
                    Event::Connected => on_connect(),
                    event => tracing::warn!(%event, "the connection with NATS"),
                }
            }
        });
    // The client library does not read user and password from the address. The same user and password are used for all
    // servers.
    if let Some((user, password)) = addresses.iter().find_map(|address| {
        Some((address.username()?.to_owned(), address.password().unwrap_or_default().to_owned()))
    }) {
        with = with.user_and_password(user, password);
    }
    if let Some(file) = &options.credentials {
        let read = with.credentials_file(file).await;
        with = read.map_err(|source| JetLogError::File { file: file.clone(), source })?;
    }
    let certificates =
        options.tls_identity.iter().flat_map(|(certificate, key)| [certificate, key]);
    for file in options.tls_ca.iter().chain(certificates) {
        // Check the file here, because the library reads it later and then does not report which file is wrong.
        let read = tokio::fs::read(file).await;
        read.map_err(|source| JetLogError::File { file: file.clone(), source })?;
    }
    if let Some(file) = &options.tls_ca {
        with = with.add_root_certificates(file.clone()).require_tls(true);
    }
    if let Some((certificate, key)) = &options.tls_identity {
        with = with.add_client_certificate(certificate.clone(), key.clone());
    }
    let client =
        with.connect(addresses).await.map_err(|error| refused(&error, named.join(", ")))?;
    let info = client.server_info();
    if !client.is_server_compatible(OLDEST.0, OLDEST.1, 0) {
        return Err(JetLogError::OldServer { found: info.version, oldest: OLDEST_TEXT });
    }
    let context = ContextBuilder::new().timeout(REQUEST_TIMEOUT).build(client.clone());
    Ok((client, context))
}

fn refused(error: &ConnectError, addresses: String) -> JetLogError {
    let reason = with_causes(error);
    match error.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            JetLogError::Credentials { addresses, reason }
        }
        ConnectErrorKind::Tls => JetLogError::Tls { addresses, reason },
        _ if is_of_tls(error) => JetLogError::Tls { addresses, reason },
        _ => JetLogError::Unreachable { addresses, reason },
    }
}

/// Whether an error of the connection is one of TLS, which reports every refused certificate as invalid data.
fn is_of_tls(error: &ConnectError) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::InvalidData)
}

/// Formats an error and its causes, each once.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_nats_servers() {
        for (servers, expected) in [
            ("nats://a:4222", Ok(vec!["a:4222"])),
            ("nats://a:1,tls://b:2, c", Ok(vec!["a:1", "b:2", "c:4222"])),
            ("nats://user:secret@a", Ok(vec!["a:4222"])),
            ("", Err("`` is")),
            ("nats://a,,b", Err("`` is")),
            ("http://a:4222", Err("`http://a:4222` is")),
            ("nats://:4222", Err("`nats://:4222` is")),
            ("nats://user:secret@a:x", Err("`a:x` is")),
        ] {
            let found = JetLogOptions::new(servers).addresses();
            match (found, expected) {
                (Ok(found), Ok(expected)) => {
                    let found = found.iter().map(|one| format!("{}:{}", one.host(), one.port()));
                    assert_eq!(found.collect::<Vec<_>>(), expected, "{servers}");
                }
                (Err(error), Err(expected)) => {
                    let error = error.to_string();
                    assert!(error.starts_with(expected) && !error.contains("secret"), "{error}");
                }
                (found, _) => panic!("{servers}: {found:?}"),
            }
        }
    }
}
