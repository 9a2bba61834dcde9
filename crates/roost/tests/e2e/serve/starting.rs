//! Tests of the time between the start of the process and its first request.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::PATIENCE;
use crate::support::http::Client;
use crate::support::process::{Process, Server, serve};

/// Server whose start does not end, because a file of its store is a pipe into which nothing is written.
fn endless(data: &Path) -> Process {
    Server::open(data, &[]).stop();
    let version = data.join("store/facts/version");
    std::fs::remove_file(&version).unwrap();
    assert!(Command::new("mkfifo").arg(version).status().unwrap().success());
    Process::start(&mut serve(data, &["--open", "--redis-listen", "127.0.0.1:0"]))
}

/// Addresses of a starting server for HTTP and for Redis clients.
fn addresses(process: &Process) -> (SocketAddr, SocketAddr) {
    let line = process.logged("\"message\":\"starting\"").expect("it logs where it listens");
    let line: Value = serde_json::from_str(&line).unwrap();
    let address = |name: &str| line[name].as_str().unwrap().parse().unwrap();
    (address("http"), address("redis"))
}

#[test]
fn a_server_that_starts_says_so_and_obeys_sigterm() {
    let data = tempfile::tempdir().unwrap();
    let process = endless(data.path());
    let (http, redis) = addresses(&process);
    assert_eq!(Client::new(http, None).get("/healthz").expect(200).json()["ok"], true);
    for path in ["/readyz", "/v1/users", "/metrics"] {
        let answer = Client::new(http, None).get(path).expect(503);
        assert_eq!(answer.json()["error"], "starting", "{path}");
        assert!(answer.header("retry-after").is_some(), "{path}");
    }
    let mut redis = TcpStream::connect(redis).unwrap();
    redis.set_read_timeout(Some(PATIENCE)).unwrap();
    redis.write_all(b"PING\r\n").unwrap();
    let mut text = [0; 9];
    redis.read_exact(&mut text).unwrap();
    assert_eq!(&text, b"-LOADING ");
    process.signal(Signal::TERM);
    let ended = process.ended();
    assert_eq!(ended.status.code(), Some(0), "{ended:#?}");
    assert!(ended.out.is_empty() && ended.err.contains("stopped during the start"), "{ended:#?}");
}

#[test]
fn clients_that_send_nothing_keep_nobody_from_an_answer() {
    let data = tempfile::tempdir().unwrap();
    let process = endless(data.path());
    let (http, _) = addresses(&process);
    let silent: Vec<_> = (0..200).map(|_| TcpStream::connect(http).unwrap()).collect();
    Client::new(http, None).get("/healthz").expect(200);
    drop(silent);
}

#[test]
fn the_service_manager_is_notified_of_start_and_stop() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let next = || {
        let mut message = [0; 1_024];
        let bytes = manager.recv(&mut message).unwrap();
        String::from_utf8_lossy(&message[..bytes]).into_owned()
    };
    let mut command = serve(&data.path().join("data"), &["--open"]);
    let server = Server::start(command.env("NOTIFY_SOCKET", &path));
    assert!(next().lines().any(|line| line == "READY=1"));
    server.client().get("/readyz").expect(200);
    server.stop();
    assert!(next().lines().any(|line| line == "STOPPING=1"));
}
