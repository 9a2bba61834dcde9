//! Acceptance of connections.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use tokio::net::{TcpListener, TcpStream};

use crate::LineGate;

/// Pause after `accept` has failed, for example because there are no file descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

/// Address of the client of a request, as a request extension: see [`TrustedProxies`](crate::TrustedProxies).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

/// Function that marks the connection of a request as authorized, as a request extension. When there are too many
/// connections, those that are not authorized are closed.
#[derive(Clone)]
pub struct Admission(Arc<dyn Fn() + Send + Sync>);

impl Admission {
    /// Creates the extension; `admit` marks the connection as authorized.
    pub fn new(admit: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(admit))
    }

    /// Marks the connection of a request as authorized. The code that authorizes the request calls this.
    pub fn admit(request: &Request) {
        if let Some(Self(admit)) = request.extensions().get() {
            admit();
        }
    }
}

/// Accepts the next connection of `listener`. Returns the connection and the address of its peer. If accepting fails,
/// tries again, and logs the error at most once per second.
pub async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    static LINES: LineGate = LineGate::new();
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_of_the_peer(&error) => {}
            Err(error) => {
                if let Some(times) = LINES.due() {
                    tracing::warn!(%error, times, "cannot accept connections; trying again");
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Whether the peer disconnected before the connection was accepted.
fn is_of_the_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
