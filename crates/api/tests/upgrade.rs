//! A route beside the API that takes over its connection.

#![allow(clippy::unwrap_used, reason = "what fails here is the test")]

use api::ApiOptions;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, UPGRADE};
use axum::response::Response;
use axum::routing::get;
use edge::Access;
use hyper_util::rt::TokioIo;
use node::{Node, NodeOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy, split};
use tokio::net::{TcpListener, TcpStream};

/// Bytes that are sent after the upgrade: more than the memory for heads of requests.
const BYTES: usize = 4 << 20;

/// Sends back what it receives.
async fn echo(request: Request) -> Response {
    tokio::spawn(async move {
        let upgraded = hyper::upgrade::on(request).await.unwrap();
        let (mut read, mut write) = split(TokioIo::new(upgraded));
        copy(&mut read, &mut write).await
    });
    let response = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
    response.header(CONNECTION, "upgrade").header(UPGRADE, "echo").body(Body::empty()).unwrap()
}

#[tokio::test]
async fn what_comes_after_an_upgrade_is_no_head_of_a_request() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::open(&NodeOptions::new(directory.path())).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut options = ApiOptions::new(Access::Open);
    options.request_memory = 1 << 20;
    options.beside = Some(Router::new().route("/echo", get(echo)));
    tokio::spawn(api::serve(listener, node.clone(), options, std::future::pending::<()>()));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head =
        b"GET /echo HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";
    stream.write_all(head).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.unwrap());
    }
    assert!(answer.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&answer));
    let (mut read, mut write) = stream.into_split();
    let sent = tokio::spawn(async move { write.write_all(&vec![b'x'; BYTES]).await });
    let mut back = vec![0; BYTES];
    read.read_exact(&mut back).await.unwrap();
    assert!(back.iter().all(|byte| *byte == b'x'));
    sent.await.unwrap().unwrap();
    node.close();
}
