//! Tests of the real binary with Redis clients, and with the test suite of Redis.

mod clients;
mod differential;
mod suite;

use std::path::Path;

use crate::support::process::Server;

/// Starts a server for Redis clients. Returns it and the port for these clients.
fn serve(data: &Path) -> (Server, u16) {
    let server = Server::open(data, &["--redis-listen", "127.0.0.1:0"]);
    let address = server.process.said("roost serves redis://127.0.0.1:").unwrap();
    (server, address.parse().unwrap())
}
