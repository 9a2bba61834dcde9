//! Serving of the API and the routes next to it on the connections of [`edge::serve`].

use std::future::Future;
use std::io;
use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};
use edge::request_id::RequestId;
use edge::{Listener, RequestMemory, ServeOptions};
use futures_util::future::{BoxFuture, FutureExt as _};
use node::Node;
use tokio::sync::watch;

use crate::error::ApiError;
use crate::{ApiOptions, routes};

/// Paths of health checks.
const HEALTH_PATHS: [&str; 2] = ["/healthz", "/readyz"];

/// Serves `node` on `listener` until `shutdown` completes. Then stops accepting connections, ends live streams, waits
/// up to 10 seconds for requests in progress, and returns. The node stays open.
///
/// # Errors
/// If the address of the listener cannot be read.
pub fn serve<F>(
    listener: impl Into<Listener>,
    node: Node,
    options: ApiOptions,
    shutdown: F,
) -> BoxFuture<'static, io::Result<()>>
where
    F: Future<Output: Send> + Send + 'static,
{
    serve_boxed(listener.into(), node, options, async { drop(shutdown.await) }.boxed())
}

fn serve_boxed(
    listener: Listener,
    node: Node,
    options: ApiOptions,
    shutdown: BoxFuture<'static, ()>,
) -> BoxFuture<'static, io::Result<()>> {
    let (closing, closed) = watch::channel(false);
    let memory = RequestMemory::new(options.request_memory);
    let serve_options = ServeOptions {
        connections_max: options.connections_max,
        https_only: options.https_only,
        // Only routes of another crate need the addresses of clients.
        proxies: options.beside.is_some().then(|| Arc::new(options.trusted_proxies.clone())),
        memory: memory.clone(),
        health_paths: &HEALTH_PATHS,
        without_address: "/v1/",
        refused,
    };
    let (router, beside) = routes::routes(node, options, closed, memory);
    let until = async {
        tokio::select! {
            () = shutdown => {}
            never = beside => match never {},
        }
    };
    edge::serve(listener, router, serve_options, closing, until.boxed())
}

/// Response to a request for which no connection is free.
fn refused(id: RequestId) -> Response {
    let mut response = ApiError::overloaded().into_response();
    ApiError::finish(&mut response, id.as_str());
    response
}

#[cfg(test)]
mod tests {
    use node::NodeOptions;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::Instant;

    use edge::{Access, HEAD_TIMEOUT};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_does_not_complete_a_request_in_time_is_closed() {
        let directory = tempfile::tempdir().unwrap();
        let node = Node::open(&NodeOptions::new(directory.path())).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let options = ApiOptions::new(Access::Open);
        tokio::spawn(serve(listener, node, options, std::future::pending::<()>()));
        let whole = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
        for request in ["", "GET /healthz HTTP/1.1\r\nHost: loc", whole] {
            let start = Instant::now();
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.unwrap();
            assert_eq!(answer.is_empty(), request != whole, "{request:?}");
            // The paused clock jumps from timer to timer.
            let waited = start.elapsed();
            assert!(
                waited >= HEAD_TIMEOUT - HEAD_TIMEOUT / 6
                    && waited <= HEAD_TIMEOUT + HEAD_TIMEOUT / 3
            );
        }
    }

    #[tokio::test]
    async fn every_response_tells_browsers_to_use_https_alone_if_users_do() {
        for https_only in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            let node = Node::open(&NodeOptions::new(directory.path())).unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let options = ApiOptions { https_only, ..ApiOptions::new(Access::Open) };
            tokio::spawn(serve(listener, node, options, std::future::pending::<()>()));
            for path in ["/healthz", "/nowhere", "/v1/users/ada"] {
                let mut stream = TcpStream::connect(address).await.unwrap();
                let request =
                    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
                stream.write_all(request.as_bytes()).await.unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.unwrap();
                let told = answer.contains("strict-transport-security: max-age=31536000\r\n");
                assert_eq!(told, https_only, "{path}: {answer}");
            }
        }
    }

    /// The test runs on one thread, so that the order of events is deterministic.
    #[tokio::test]
    async fn other_clients_are_served_during_a_long_pipeline() {
        const PIPELINED: usize = 2_000;
        let directory = tempfile::tempdir().unwrap();
        let node = Node::open(&NodeOptions::new(directory.path())).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let options = ApiOptions::new(Access::Open);
        tokio::spawn(serve(listener, node, options, std::future::pending::<()>()));
        let request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let mut stranger = TcpStream::connect(address).await.unwrap();
        stranger.write_all(request).await.unwrap();
        let mut answer = [0; 1_024];
        let length = stranger.read(&mut answer).await.unwrap();

        let (mut reading, mut writing) = TcpStream::connect(address).await.unwrap().into_split();
        let busy = tokio::spawn(async move {
            let (requests, mut answers) = (request.repeat(PIPELINED), vec![0; length * PIPELINED]);
            let (written, read) =
                tokio::join!(writing.write_all(&requests), reading.read_exact(&mut answers));
            written.unwrap();
            read.unwrap();
        });
        let mut answered = 0;
        while !busy.is_finished() {
            stranger.write_all(request).await.unwrap();
            stranger.read_exact(&mut answer[..length]).await.unwrap();
            answered += 1;
        }
        busy.await.unwrap();
        assert!(answered >= 50, "{answered} times");
    }
}
