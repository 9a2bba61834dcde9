//! Requests to a receiver.
//!
//! **Invariant:** a connection is made only to an address that was checked: the name is looked up once, all its
//! addresses are checked, and one of them is connected to.
//! **Invariant:** a response is read up to a limit, and a redirect is not followed.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use crate::address::{Reach, reach};
use crate::{Options, Webhook};

/// Maximum number of addresses of a name that are tried.
const ADDRESSES_MAX: usize = 4;
/// Maximum number of bytes of the head of a response.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Maximum number of bytes that are read of a response's body. The connection of a longer one is closed.
const RESPONSE_BYTES_MAX: usize = 16 << 10;

/// Reason why a request was not accepted by the receiver.
#[derive(Debug, Error)]
pub enum SendError {
    /// The name cannot be looked up.
    #[error("the host cannot be looked up: {0}")]
    LookUp(io::Error),
    /// The address is private, and the webhook may not call private addresses.
    #[error("{0} is a private address, which needs --allow-private")]
    Private(IpAddr),
    /// The address is for other purposes than servers.
    #[error("{0} is not an address that webhooks may call")]
    Reserved(IpAddr),
    /// The address is public, and the request would not be encrypted.
    #[error("{0} is a public address, which needs https")]
    Unencrypted(IpAddr),
    /// The request is not valid.
    #[error("the request is not valid: {0}")]
    Request(http::Error),
    /// There is no connection.
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    /// The connection was not made in time.
    #[error("cannot connect within {} s", .0.as_secs_f32())]
    ConnectTimeout(Duration),
    /// The connection ended before the response.
    #[error("the connection ended without a response: {0}")]
    Broken(hyper::Error),
    /// The response did not arrive in time.
    #[error("no response within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    /// The receiver has redirected the request.
    #[error("the receiver answered {0}; redirects are not followed")]
    Redirect(u16),
    /// The receiver has not accepted the request.
    #[error("the receiver answered {0}")]
    Status(u16),
}

impl SendError {
    /// Whether the request itself may be the reason: the receiver may have read it, and did not ask for patience.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::Broken(_) | Self::Timeout(_) | Self::Redirect(_) => true,
            Self::Status(status) => !matches!(status, 408 | 429 | 502..=504),
            _ => false,
        }
    }
}

/// Message to a receiver.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// Value of the header `webhook-id`.
    pub(crate) id: String,
    /// JSON.
    pub(crate) body: Bytes,
}

/// Time limits of requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// For looking up the name, connecting and the TLS handshake.
    pub(crate) connect: Duration,
    /// For the request and its response.
    pub(crate) response: Duration,
    /// For an idle connection that is used again.
    pub(crate) idle: Duration,
}

/// Makes the TLS settings for receivers: certificates must be signed by a CA of this system. Reads files.
#[must_use]
pub fn system_tls() -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "cannot read certificate authorities of the system");
    }
    let (added, ignored) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        tracing::warn!(ignored, "no certificate authority is known: https of webhooks fails");
    }
    tls_with(roots)
}

/// Makes the TLS settings for receivers whose certificates are signed by one of these CAs.
#[must_use]
pub fn tls_with(roots: RootCertStore) -> Arc<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()));
    let Ok(builder) = builder.with_safe_default_protocol_versions() else {
        unreachable!("ring has the cipher suites of the default versions");
    };
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

/// Sender of requests to one receiver, with at most one connection.
pub(crate) struct Client {
    tls: Arc<ClientConfig>,
    limits: Limits,
    connection: Option<Connection>,
}

struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
    idle_since: Instant,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Client {
    pub(crate) fn new(tls: Arc<ClientConfig>, limits: Limits) -> Self {
        Self { tls, limits, connection: None }
    }

    pub(crate) fn disconnect(&mut self) {
        self.connection = None;
    }

    /// Sends a message; returns the status of the response, which is 2xx. The body of the response is ignored.
    ///
    /// # Errors
    /// [`SendError`]
    pub(crate) async fn send(
        &mut self,
        webhook: &Webhook,
        message: &Message,
    ) -> Result<u16, SendError> {
        let kept = self.connection.take().filter(|kept| {
            !kept.sender.is_closed() && kept.idle_since.elapsed() < self.limits.idle
        });
        if let Some(kept) = kept {
            match self.send_on(kept, webhook, message).await {
                // The receiver may have closed the idle connection.
                Err(SendError::Broken(_)) => {}
                sent => return sent,
            }
        }
        let limit = self.limits.connect;
        let connecting = timeout(limit, connect(webhook, &self.tls, limit)).await;
        let connection = connecting.unwrap_or(Err(SendError::ConnectTimeout(limit)))?;
        self.send_on(connection, webhook, message).await
    }

    async fn send_on(
        &mut self,
        mut connection: Connection,
        webhook: &Webhook,
        message: &Message,
    ) -> Result<u16, SendError> {
        let request = request(webhook, message).map_err(SendError::Request)?;
        let deadline = Instant::now() + self.limits.response;
        let sent = timeout_at(deadline, async {
            connection.sender.ready().await?;
            connection.sender.send_request(request).await
        });
        let sent = sent.await.map_err(|_| SendError::Timeout(self.limits.response))?;
        let response = sent.map_err(SendError::Broken)?;
        let status = response.status();
        let drained = timeout_at(deadline, drain(response.into_body())).await;
        if drained == Ok(true) {
            connection.idle_since = Instant::now();
            self.connection = Some(connection);
        }
        match status {
            status if status.is_success() => Ok(status.as_u16()),
            status if status.is_redirection() => Err(SendError::Redirect(status.as_u16())),
            status => Err(SendError::Status(StatusCode::as_u16(&status))),
        }
    }
}

/// Reads the body of a response up to a limit; returns whether this was all of it.
async fn drain(mut body: Incoming) -> bool {
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        bytes += frame.data_ref().map_or(0, Bytes::len);
        if bytes > RESPONSE_BYTES_MAX {
            return false;
        }
    }
    true
}

/// Makes a signed request.
fn request(
    webhook: &Webhook,
    Message { id, body }: &Message,
) -> Result<Request<Full<Bytes>>, http::Error> {
    let timestamp = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    Request::post(webhook.url.path_and_query())
        .header(HOST, webhook.url.authority())
        .header(USER_AGENT, "roost")
        .header(CONTENT_TYPE, "application/json")
        .header("webhook-id", id)
        .header("webhook-timestamp", timestamp)
        .header("webhook-signature", webhook.secret.sign(id, timestamp, body))
        .body(Full::new(body.clone()))
}

/// Connects to a receiver whose addresses are allowed.
async fn connect(
    webhook: &Webhook,
    tls: &Arc<ClientConfig>,
    limit: Duration,
) -> Result<Connection, SendError> {
    let deadline = Instant::now() + limit;
    let host = webhook.url.host();
    let found = lookup_host((host, webhook.url.port())).await.map_err(SendError::LookUp)?;
    let found: Vec<SocketAddr> = found.collect();
    found.iter().try_for_each(|address| check(webhook, address.ip()))?;
    let found = found.get(..ADDRESSES_MAX).unwrap_or(&found);
    let stream = connect_to(webhook, found, tls, deadline).await.map_err(|error| match error {
        error if error.kind() == io::ErrorKind::TimedOut => SendError::ConnectTimeout(limit),
        error => SendError::Connect(error),
    })?;
    handshake(stream).await.map_err(SendError::Broken)
}

/// Connects to the first address that works, in order.
///
/// # Errors
/// The error of the last address.
async fn connect_to(
    webhook: &Webhook,
    found: &[SocketAddr],
    tls: &Arc<ClientConfig>,
    deadline: Instant,
) -> io::Result<Box<dyn Stream>> {
    let mut failed = io::Error::other("the name has no address");
    for (index, address) in (0..).zip(found) {
        // An address that does not answer leaves time for the others.
        let others = u32::try_from(found.len()).unwrap_or(u32::MAX).saturating_sub(index).max(1);
        let share = deadline.saturating_duration_since(Instant::now()) / others;
        let secured = async {
            let stream = TcpStream::connect(address).await?;
            let _ = stream.set_nodelay(true);
            secured(webhook, stream, tls).await
        };
        match timeout(share, secured).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => failed = error,
            Err(_) => failed = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(failed)
}

/// Checks whether a webhook may call an address.
///
/// # Errors
/// If it may not.
fn check(webhook: &Webhook, address: IpAddr) -> Result<(), SendError> {
    match reach(address) {
        Reach::Public if webhook.url.is_https() => Ok(()),
        Reach::Public => Err(SendError::Unencrypted(address)),
        Reach::Private if webhook.allow_private => Ok(()),
        Reach::Private => Err(SendError::Private(address)),
        Reach::Never => Err(SendError::Reserved(address)),
    }
}

async fn secured(
    webhook: &Webhook,
    stream: TcpStream,
    tls: &Arc<ClientConfig>,
) -> io::Result<Box<dyn Stream>> {
    if !webhook.url.is_https() {
        return Ok(Box::new(stream));
    }
    let name = ServerName::try_from(webhook.url.host().to_owned()).map_err(io::Error::other)?;
    Ok(Box::new(TlsConnector::from(Arc::clone(tls)).connect(name, stream).await?))
}

async fn handshake(stream: Box<dyn Stream>) -> hyper::Result<Connection> {
    let mut builder = Builder::new();
    let io = TokioIo::new(stream);
    let (sender, driver) = builder.max_buf_size(HEAD_BYTES_MAX).handshake(io).await?;
    // The error of a connection is that of its request, too.
    let driver = tokio::spawn(async move { drop(driver.await) });
    Ok(Connection { sender, driver, idle_since: Instant::now() })
}

/// Sends a signed message without changes to a receiver; returns the status of the response, which is 2xx.
///
/// # Errors
/// [`SendError`]
pub async fn ping(webhook: &Webhook, tls: Arc<ClientConfig>) -> Result<u16, SendError> {
    let now_ms = crate::now_ms();
    let body = format!("{{\"type\":\"ping\",\"webhook\":\"{}\"}}", webhook.name);
    let message = Message { id: format!("ping_{now_ms}"), body: Bytes::from(body) };
    Client::new(tls, Options::default().limits()).send(webhook, &message).await
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpSocket;

    use super::*;
    use crate::{Secret, Target};

    fn webhook(url: &str, allow_private: bool) -> Webhook {
        Webhook {
            name: "a".to_owned(),
            url: Target::parse(url).unwrap(),
            secret: Secret::generate().unwrap(),
            kinds: Arc::new([]),
            ids_only: false,
            allow_private,
        }
    }

    fn bound() -> (TcpSocket, SocketAddr) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    }

    /// Addresses with their sockets: one that refuses connections, one that drops packets because nobody accepts its
    /// connections, and one that accepts.
    #[tokio::test(start_paused = true)]
    async fn addresses_that_refuse_or_do_not_answer_leave_time_for_the_others() {
        let (refusing, refuses) = bound();
        let (silent, drops) = bound();
        let silent = silent.listen(0).unwrap();
        let _first = TcpStream::connect(drops).await.unwrap();
        let (accepting, accepts) = bound();
        let accepting = accepting.listen(8).unwrap();
        let (webhook, tls) = (webhook("http://a.example", true), tls_with(RootCertStore::empty()));
        for (found, expect) in [
            (&[accepts][..], Ok(())),
            (&[refuses, accepts], Ok(())),
            (&[drops, accepts], Ok(())),
            (&[drops, refuses, drops, accepts], Ok(())),
            (&[drops, refuses], Err(io::ErrorKind::ConnectionRefused)),
            (&[refuses, drops], Err(io::ErrorKind::TimedOut)),
            (&[], Err(io::ErrorKind::Other)),
        ] {
            let deadline = Instant::now() + Duration::from_secs(10);
            let connected = connect_to(&webhook, found, &tls, deadline).await;
            assert_eq!(connected.map(drop).map_err(|error| error.kind()), expect, "{found:?}");
            assert!(Instant::now() <= deadline, "{found:?}");
        }
        drop((refusing, silent, accepting));
    }

    #[test]
    fn private_addresses_need_permission_and_public_ones_https() {
        let (https, http) = ("https://a.example", "http://a.example");
        for (url, allow_private, address, expect) in [
            (https, false, "1.1.1.1", None),
            (https, true, "1.1.1.1", None),
            (http, true, "1.1.1.1", Some("needs https")),
            (https, false, "127.0.0.1", Some("needs --allow-private")),
            (https, false, "::ffff:10.0.0.1", Some("needs --allow-private")),
            (https, true, "10.0.0.1", None),
            (http, true, "::1", None),
            (https, true, "169.254.169.254", Some("not an address")),
            (http, true, "0.0.0.0", Some("not an address")),
        ] {
            let checked = check(&webhook(url, allow_private), address.parse().unwrap());
            let error = checked.err().map(|error| error.to_string()).unwrap_or_default();
            assert_eq!(error.is_empty(), expect.is_none(), "{url} {address}: {error}");
            assert!(error.contains(expect.unwrap_or_default()), "{url} {address}: {error}");
        }
    }
}
