//! Redis clients, and the test suite of Redis itself, against the real binary.

mod clients;
mod suite;

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::process::Server;

/// A server with Redis clients' port, and that port.
fn serve(data: &Path) -> (Server, u16) {
    let server = Server::open(data, &["--redis-listen", "127.0.0.1:0"]);
    let address = server.process.said("roost serves redis://127.0.0.1:").unwrap();
    (server, address.parse().unwrap())
}

/// Where `cargo xtask test` puts what it fetches for tests.
fn fetched(name: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    target.join("fetched").join(name)
}

/// What a program said, if it ended well.
fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}
