//! Accepting connections.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use crate::LineGate;

/// Pause after `accept` failed (out of file descriptors).
const PAUSE: Duration = Duration::from_millis(100);

/// The address of the client of a request, as an extension of it: see [`TrustedProxies`](crate::TrustedProxies).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

/// A connection that is not authorized yet.
pub trait Guest: Send + Sync {
    /// Marks it as authorized.
    fn admit(&self);
}

/// The connection of a request while it is not authorized, as an extension of the request: whoever authorizes the request
/// also admits the connection. Guests are closed when there are too many connections.
#[derive(Clone)]
pub struct GuestConnection(pub Arc<dyn Guest>);

/// The next connection of `listener` and the address of its peer. Errors are logged, at most once per second,
/// and it tries again.
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

/// Whether the peer had disconnected before it was accepted.
fn is_of_the_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
