//! Fuzz target of Redis commands, which are executed: every reply is complete, and none is an internal error.

use std::net::SocketAddr;
use std::sync::LazyLock;

use edge::Access;
use redis::RedisOptions;
use testkit::redis::{Redis, Reply, command};

use crate::server;

/// Maximum number of commands of an input.
const COMMANDS_MAX: usize = 64;
/// Text that the server echoes. Its echo shows that all earlier replies have been sent.
const MARK: &[u8] = b"that-was-all";

static ADDRESS: LazyLock<SocketAddr> = LazyLock::new(|| {
    let mut options = RedisOptions::new(Access::Open);
    options.threads = Some(1);
    let listener = server::RUNTIME.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    server::RUNTIME.spawn(async move {
        redis::serve(listener, server::node(), &options, std::future::pending::<()>()).await
    });
    address
});

/// Input: a command on each line, with spaces between its words.
pub fn redis(data: &[u8]) {
    let mut bytes = command(&[b"FLUSHALL"]);
    for line in data.split(|byte| *byte == b'\n').take(COMMANDS_MAX) {
        let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        bytes.extend(command(&words));
    }
    // Make sure that the last reply is neither part of a transaction nor suppressed.
    for last in [&[b"DISCARD".as_slice()][..], &[b"CLIENT", b"REPLY", b"ON"], &[b"PING", MARK]] {
        bytes.extend(command(last));
    }
    let mut redis = Redis::new(*ADDRESS);
    // Ignore the error: a server that has closed the connection reads no more.
    drop(redis.try_send(&bytes));
    while let Some(reply) = redis.receive_or_end() {
        let text = format!("{reply:?}");
        assert!(!text.contains("internal error"), "{text}");
        if reply == Reply::Bulk(Some(MARK.to_vec())) {
            return;
        }
    }
}
