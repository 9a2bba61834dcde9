//! The accept loop and the life of a connection.
//!
//! **Invariant:** every open connection holds a permit, so a limit on connections and "wait until
//! all have ended" are the same semaphore.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use node::Node;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tower::Service as _;

use crate::deadline::PolledTimer;
use crate::stall::StallGuard;
use crate::{ServerOptions, http};

/// A request's head must be there so long after the connection or the answer before it.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How often connections are woken to look at that deadline.
const PULSE: Duration = Duration::from_secs(5);
/// A peer must take something of an answer so often.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long connections may finish what is under way at shutdown.
const GRACE: Duration = Duration::from_secs(10);
/// Pause after the operating system refused to hand out a connection (out of descriptors).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Buffer of a connection: bounds a request's head and what is read ahead of a body.
const BUFFER_BYTES_MAX: usize = 64 * 1_024;

/// Serves `node` on `listener` until `shutdown` completes, then takes no more connections, ends
/// live streams, lets requests that are under way finish for up to 10 seconds, and returns. The
/// node stays open.
///
/// # Errors
/// If the listener does not know its address, which means that it is no listener.
pub async fn serve(
    listener: TcpListener,
    node: Node,
    options: ServerOptions,
    shutdown: impl Future,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    let (closing, closed) = watch::channel(false);
    let router = http::routes(node, &options, closed.clone());
    let connections_max = options.connections_max.max(1);
    let permits = Arc::new(Semaphore::new(connections_max as usize));
    tracing::info!(%address, "serving");
    let mut shutdown = pin!(shutdown);
    let mut pulse = tokio::time::interval(PULSE);
    loop {
        let accepted = async {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
                unreachable!("the semaphore is never closed");
            };
            (permit, accept(&listener).await)
        };
        let (permit, stream) = tokio::select! {
            _ = &mut shutdown => break,
            _ = pulse.tick() => {
                closing.send_modify(|_| ());
                continue;
            }
            accepted = accepted => accepted,
        };
        let connection = connection(stream, router.clone(), closed.clone());
        tokio::spawn(async move {
            connection.await;
            drop(permit);
        });
    }
    drop(listener);
    closing.send_replace(true);
    tracing::info!("shutting down");
    // Connections end within the grace; holding every permit means that all of them have.
    drop(permits.acquire_many(connections_max).await);
    Ok(())
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) if is_of_the_peer(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections; trying again");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Whether an error of accepting tells of a peer that went away already.
pub(crate) fn is_of_the_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Serves one connection. `closing` changes at every pulse, and to true at shutdown.
async fn connection(stream: TcpStream, router: Router, mut closing: watch::Receiver<bool>) {
    // Answers are written whole, so nothing is won by waiting for more to send.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let service = service_fn(move |request: hyper::Request<Incoming>| router.clone().call(request));
    let connection = http1::Builder::new()
        .timer(PolledTimer)
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(StallGuard::new(stream, STALL_TIMEOUT)), service);
    let mut connection = pin!(connection);
    let ended = loop {
        tokio::select! {
            ended = connection.as_mut() => break ended,
            // Polling the connection again is all that a pulse is for.
            Ok(()) = closing.changed() => {}
        }
        if *closing.borrow() {
            connection.as_mut().graceful_shutdown();
            break tokio::time::timeout(GRACE, connection).await.unwrap_or(Ok(()));
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}

#[cfg(test)]
mod tests {
    use node::NodeOptions;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::Instant;

    use super::*;
    use crate::Access;

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_does_not_complete_a_request_in_time_is_closed() {
        let directory = tempfile::tempdir().unwrap();
        let node = Node::open(&NodeOptions::new(directory.path())).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let options = ServerOptions::new(Access::Open);
        tokio::spawn(serve(listener, node, options, std::future::pending::<()>()));
        for request in ["", "GET /healthz HTTP/1.1\r\nHost: loc"] {
            let start = Instant::now();
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.unwrap();
            assert_eq!(answer, b"", "{request:?}");
            // The clock is paused and leaps from timer to timer.
            let waited = start.elapsed();
            assert!(waited >= HEAD_TIMEOUT - PULSE && waited <= HEAD_TIMEOUT + 2 * PULSE);
        }
    }
}
