//! Tests of clients that do not complete the handshake, or that occupy as much memory as they can.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Arc;

use rustix::process::{Resource, getrlimit, setrlimit};
use tokio_rustls::rustls::ClientConnection;
use tokio_rustls::rustls::pki_types::ServerName;

use super::{Connection, Files, Pair, ask, check_serves, connect, dial, start, trusting};

fn raise_limit_of_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
}

/// The first bytes that a client sends.
fn hello(files: &Files) -> Vec<u8> {
    let name = ServerName::try_from("localhost").unwrap();
    let mut session = ClientConnection::new(trusting(&[&files.cert]), name).unwrap();
    let mut bytes = Vec::new();
    session.write_tls(&mut bytes).unwrap();
    bytes
}

#[test]
fn thousands_of_unfinished_handshakes_keep_nobody_out_and_take_no_connection() {
    raise_limit_of_files();
    let files = Files::new(&Pair::valid());
    let (server, address) = start(&mut files.serve(&["--open", "--max-connections", "16"]));
    let hello = hello(&files);
    let mut served = connect(&trusting(&[&files.cert]), address, "localhost").unwrap();
    assert_eq!(ask(&mut served, "GET", "/v1/users", &[], b"").0, 200);
    let mut open: Vec<TcpStream> = Vec::new();
    for round in 0..10 {
        for number in 0..300 {
            let mut stream = dial(address);
            let sent = [0, 1, hello.len() / 2, hello.len() - 1, hello.len()][number % 5];
            // Ignore the error: the server may have closed this connection in favor of a newer one.
            drop(stream.write_all(&hello[..sent]));
            open.push(stream);
        }
        check_serves(address, &[&files.cert]);
        let (status, _) = ask(&mut served, "GET", "/v1/users", &[], b"");
        assert_eq!(status, 200, "a connection with a request is never closed for them: {round}");
    }
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", server.id().as_raw_nonzero()));
    let descriptors = descriptors.unwrap().count();
    assert!(descriptors < 512 + 16 + 100, "{descriptors} open files");
    drop(open);
}

/// Connects over TLS, and occupies as much memory as a client without a key can: with an incomplete record, and with
/// responses that it does not read.
fn greedy(files: &Files, address: std::net::SocketAddr) -> Connection {
    let mut connection = connect(&trusting(&[&files.cert]), address, "localhost").unwrap();
    let pipelined = "GET /docs HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(20);
    let stream = connection.get_mut();
    stream.sock.set_nonblocking(true).unwrap();
    drop(stream.write_all(pipelined.as_bytes()));
    let record = [&[23, 3, 3, 0x40, 0x00][..], &[7; 0x3fff]].concat();
    drop((&stream.sock).write_all(&record));
    connection
}

#[test]
fn connections_over_tls_stay_within_the_memory_that_is_documented_for_them() {
    const CONNECTIONS: u64 = 1_000;
    raise_limit_of_files();
    let files = Files::new(&Pair::valid());
    let (server, address) = start(&mut files.serve(&["--open", "--max-connections", "1500"]));
    check_serves(address, &[&files.cert]);
    let before = server.peak_memory();
    let config = Arc::clone(&trusting(&[&files.cert]));
    let idle: Vec<Connection> =
        (0..CONNECTIONS).map(|_| connect(&config, address, "localhost").unwrap()).collect();
    let idle_each = server.peak_memory().saturating_sub(before) / CONNECTIONS;
    drop(idle);
    let greedy: Vec<Connection> = (0..CONNECTIONS).map(|_| greedy(&files, address)).collect();
    check_serves(address, &[&files.cert]);
    let each = server.peak_memory().saturating_sub(before) / CONNECTIONS;
    println!("bytes of a connection: {idle_each} idle, {each} at most");
    assert!(each < 112 << 10, "{each} bytes for each connection");
    drop(greedy);
}
