//! Route next to the API that takes over its connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use api::ApiOptions;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, UPGRADE};
use axum::response::Response;
use axum::routing::get;
use edge::Access;
use hyper_util::rt::TokioIo;
use node::{Node, NodeOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy, split};
use tokio::net::{TcpListener, TcpStream};

/// Number of bytes sent after the upgrade: more than the memory for heads of requests.
const BYTES: usize = 4 << 20;

/// Echoes received bytes, and counts the connections that have ended.
async fn echo(State(ended): State<Arc<AtomicUsize>>, request: Request) -> Response {
    tokio::spawn(async move {
        let upgraded = hyper::upgrade::on(request).await.unwrap();
        let (mut read, mut write) = split(TokioIo::new(upgraded));
        drop(copy(&mut read, &mut write).await);
        // The end is counted before the connection is dropped.
        ended.fetch_add(1, Ordering::SeqCst);
    });
    let response = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
    response.header(CONNECTION, "upgrade").header(UPGRADE, "echo").body(Body::empty()).unwrap()
}

/// Serves `/echo`, and the number of its ended connections as `/ended`.
async fn serve(node: &Node, change: impl FnOnce(&mut ApiOptions)) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let number =
        async |State(ended): State<Arc<AtomicUsize>>| ended.load(Ordering::SeqCst).to_string();
    let router = Router::new().route("/echo", get(echo)).route("/ended", get(number));
    let mut options = ApiOptions::new(Access::Open);
    options.beside = Some(router.with_state(Arc::default()));
    change(&mut options);
    tokio::spawn(api::serve(listener, node.clone(), options, std::future::pending::<()>()));
    address
}

/// Opens a connection and upgrades it.
async fn upgraded(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head =
        b"GET /echo HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";
    stream.write_all(head).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.unwrap());
    }
    assert!(answer.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&answer));
    stream
}

#[tokio::test]
async fn an_upgraded_connection_counts_until_it_ends() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::open(&NodeOptions::new(directory.path())).unwrap();
    let address = serve(&node, |options| options.connections_max = 1).await;
    let mut first = upgraded(address).await;
    let mut second = TcpStream::connect(address).await.unwrap();
    let head = b"GET /ended HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    second.write_all(head).await.unwrap();
    // The server has many turns in which it could serve the second connection.
    for _ in 0..100 {
        first.write_all(b"x").await.unwrap();
        assert_eq!(first.read_u8().await.unwrap(), b'x');
    }
    drop(first);
    let mut answer = String::new();
    second.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("\r\n\r\n1"), "{answer}");
    assert!(answer.contains("x-request-id: "), "also outside the API: {answer}");
    node.close();
}

#[tokio::test]
async fn what_comes_after_an_upgrade_is_no_head_of_a_request() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::open(&NodeOptions::new(directory.path())).unwrap();
    let address = serve(&node, |options| options.request_memory = 1 << 20).await;
    let stream = upgraded(address).await;
    let (mut read, mut write) = stream.into_split();
    let sent = tokio::spawn(async move { write.write_all(&vec![b'x'; BYTES]).await });
    let mut back = vec![0; BYTES];
    read.read_exact(&mut back).await.unwrap();
    assert!(back.iter().all(|byte| *byte == b'x'));
    sent.await.unwrap().unwrap();
    node.close();
}
