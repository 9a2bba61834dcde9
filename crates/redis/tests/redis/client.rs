//! Test server on a free port, with a node in a temporary directory and a clock that tests set; and a simple client.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use edge::{Access, KeyHash, Scopes};
use node::{Clock, Durability, Node, NodeOptions};
use redis::RedisOptions;
use testkit::redis::{Redis, command};
use testkit::server::Serving;

/// Key of servers that require one.
pub(crate) const KEY: &str = "a-key-for-tests";
/// Initial time of the clock.
pub(crate) const START_MS: u64 = 1_800_000_000_000;

pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    clock: Arc<AtomicU64>,
    // Fields are dropped in this order. The node must be dropped before its directory.
    serving: Serving,
    _node: Node,
    _directory: tempfile::TempDir,
}

impl TestServer {
    /// Starts a server in open mode.
    pub(crate) fn open() -> Self {
        Self::start(Access::Open, |_, _| ())
    }

    /// Starts a server that requires [`KEY`].
    pub(crate) fn with_key() -> Self {
        Self::start(Access::with_keys(vec![KeyHash::new(KEY.as_bytes(), Scopes::ALL)]), |_, _| ())
    }

    pub(crate) fn start(
        access: Access,
        set: impl FnOnce(&mut NodeOptions, &mut RedisOptions),
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(AtomicU64::new(START_MS));
        let mut node_options = NodeOptions::new(directory.path().join("data"));
        node_options.durability = Durability::Never;
        node_options.clock = Clock::from_fn({
            let clock = Arc::clone(&clock);
            move || clock.load(Ordering::SeqCst)
        });
        let mut options = RedisOptions::new(access);
        options.threads = Some(2);
        set(&mut node_options, &mut options);
        let node = Node::open(&node_options).unwrap();
        let serving = Serving::start(1, |listener, stopped| {
            let node = node.clone();
            async move { redis::serve(listener, node, &options, stopped).await }
        });
        let address = serving.address;
        Self { address, clock, serving, _node: node, _directory: directory }
    }

    /// Advances the clock.
    pub(crate) fn pass(&self, ms: u64) {
        self.clock.fetch_add(ms, Ordering::SeqCst);
    }

    /// Shuts down and waits until the server has ended.
    pub(crate) fn stop(&mut self) {
        self.serving.stop();
    }

    pub(crate) fn client(&self) -> Client {
        Client(Redis::new(self.address))
    }
}

/// Client that shows replies as text.
pub(crate) struct Client(pub(crate) Redis);

impl Client {
    /// Sends raw bytes.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.send(bytes);
    }

    /// Waits for the next reply; `None` if the server has closed the connection.
    pub(crate) fn receive(&mut self) -> Option<String> {
        self.0.receive_or_end().map(|reply| reply.to_string())
    }

    /// Sends a command of words and returns its reply.
    pub(crate) fn run(&mut self, words: &[&[u8]]) -> String {
        self.send(&command(words));
        self.receive().unwrap_or_else(|| panic!("closed after {words:?}"))
    }

    /// Sends an inline command.
    pub(crate) fn line(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n").as_bytes());
        self.receive().unwrap_or_else(|| panic!("closed after {line}"))
    }

    /// Sends the lines of a table and compares the replies. An expected reply that ends in `...` is a prefix.
    pub(crate) fn check(&mut self, table: &[(&str, &str)]) {
        for (line, expect) in table {
            let reply = self.line(line);
            let right = match expect.strip_suffix("...") {
                Some(start) => reply.starts_with(start),
                None => reply == *expect,
            };
            assert!(right, "{line}\n  expected {expect}\n  received {reply}");
        }
    }
}
