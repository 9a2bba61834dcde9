//! Servers to connect to: addresses, the name in the `Host` header, and TLS.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use super::Dial;

/// Server to load, or several nodes of a cluster. Each new connection goes to the next node that accepts it. Clones
/// share this order and the TLS settings.
#[derive(Clone)]
pub struct Target {
    servers: Arc<[Server]>,
    /// Number of connections opened so far.
    opened: Arc<AtomicUsize>,
}

#[derive(Clone)]
struct Server {
    address: SocketAddr,
    authority: String,
    tls: Option<Tls>,
}

/// The TLS settings of connections.
#[derive(Clone)]
struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

/// Error of the TLS setup.
#[derive(Debug, Error)]
pub enum TlsError {
    /// The name of the server cannot be in a certificate.
    #[error("{0:?} is not a valid server name")]
    Name(String),
    /// The file of certificates cannot be read.
    #[error("no certificates in PEM form: {0}")]
    File(String),
    /// This system has no CA certificates.
    #[error("this system has no CA certificates; set --ca")]
    NoRoots,
    /// The TLS library cannot be set up.
    #[error("TLS: {0}")]
    Setup(String),
}

impl Target {
    /// Creates a target for a server at `address`. `authority` is the value of the `Host` header: a name or address,
    /// with the port.
    pub fn new(address: SocketAddr, authority: &str) -> Target {
        Target::of(vec![Server { address, authority: authority.to_owned(), tls: None }])
    }

    /// Uses TLS for the server. The server's certificate must be for `name` and signed by a CA in the PEM file `roots`,
    /// or by a CA of this system if `roots` is `None`.
    ///
    /// # Errors
    /// If there are no CA certificates, or `name` is not a valid server name.
    pub fn over_tls(self, name: &str, roots: Option<&Path>) -> Result<Target, TlsError> {
        let server = ServerName::try_from(name.to_owned());
        let server = server.map_err(|_| TlsError::Name(name.to_owned()))?;
        let mut config =
            ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .map_err(|error| TlsError::Setup(error.to_string()))?
                .with_root_certificates(roots_of(roots)?)
                .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let tls = Tls { connector: TlsConnector::from(Arc::new(config)), name: server };
        let servers = self.servers.iter();
        Ok(Target::of(servers.map(|server| Server { tls: Some(tls.clone()), ..server.clone() })))
    }

    /// Creates a target for a cluster of these nodes.
    pub fn cluster(nodes: &[Target]) -> Target {
        Target::of(nodes.iter().flat_map(|node| node.servers.iter().cloned()))
    }

    /// Targets with one node each.
    pub fn nodes(&self) -> impl Iterator<Item = Target> {
        self.servers.iter().map(|server| Target::of([server.clone()]))
    }

    /// Whether all connections use TLS or loopback, so that nobody else can read them.
    pub fn is_confidential(&self) -> bool {
        let mut servers = self.servers.iter();
        servers.all(|server| server.tls.is_some() || server.address.ip().is_loopback())
    }

    /// Whether the target has several nodes.
    pub fn is_cluster(&self) -> bool {
        self.servers.len() > 1
    }

    /// Value of the `Host` header: the first node's name, as with a load balancer.
    pub fn authority(&self) -> &str {
        self.servers.first().map_or("", |server| &server.authority)
    }

    fn of(servers: impl IntoIterator<Item = Server>) -> Target {
        Target { servers: servers.into_iter().collect(), opened: Arc::default() }
    }
}

/// The CA certificates of a file, or of this system.
fn roots_of(file: Option<&Path>) -> Result<RootCertStore, TlsError> {
    let certificates = match file {
        Some(file) => CertificateDer::pem_file_iter(file)
            .and_then(Iterator::collect)
            .map_err(|error| TlsError::File(error.to_string()))?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    let mut roots = RootCertStore::empty();
    // Skip invalid certificates, which a system may have.
    let (added, _) = roots.add_parsable_certificates(certificates);
    match file {
        Some(_) if added == 0 => Err(TlsError::File("the file contains none".to_owned())),
        None if added == 0 => Err(TlsError::NoRoots),
        _ => Ok(roots),
    }
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Target {
        Target::new(address, &address.to_string())
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, Server { address, authority, tls }) in self.servers.iter().enumerate() {
            let separator = if place == 0 { "" } else { ", " };
            let scheme = if tls.is_some() { "https" } else { "http" };
            write!(f, "{separator}{scheme}://{authority} ({address})")?;
        }
        Ok(())
    }
}

impl Dial for Target {
    type Stream = TargetStream;

    async fn dial(&self) -> io::Result<TargetStream> {
        let next = self.opened.fetch_add(1, Ordering::Relaxed);
        let mut failed = io::Error::other("there is no server");
        for place in next..next + self.servers.len() {
            let Some(server) = self.servers.get(place % self.servers.len()) else { break };
            match server.dial().await {
                Ok(stream) => return Ok(stream),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

impl Server {
    async fn dial(&self) -> io::Result<TargetStream> {
        let stream = self.address.dial().await?;
        match &self.tls {
            None => Ok(TargetStream::Plain(stream)),
            Some(Tls { connector, name }) => {
                let stream = connector.connect(name.clone(), stream).await?;
                Ok(TargetStream::Tls(Box::new(stream)))
            }
        }
    }
}

/// A connection to a [`Target`].
#[derive(Debug)]
pub enum TargetStream {
    /// Plain TCP.
    Plain(TcpStream),
    /// TLS.
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for TargetStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            TargetStream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            TargetStream::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for TargetStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            TargetStream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            TargetStream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            TargetStream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            TargetStream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            TargetStream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            TargetStream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
