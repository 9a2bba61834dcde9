//! A server on a free port with its node in a temporary directory and a clock that tests set, and a
//! simple client.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use edge::{Access, KeyHash, Scopes};
use node::{Clock, Durability, Node, NodeOptions};
use redis::RedisOptions;
use testkit::{Decoder, ReplyLimits, Value};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// The key of servers that need one.
pub(crate) const KEY: &str = "a-key-for-tests";
/// The first time of the clock.
pub(crate) const START_MS: u64 = 1_800_000_000_000;
/// No answer takes this long unless something is broken.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    clock: Arc<AtomicU64>,
    runtime: Runtime,
    serving: Option<(oneshot::Sender<()>, tokio::task::JoinHandle<std::io::Result<()>>)>,
    _node: Node,
    _directory: tempfile::TempDir,
}

impl TestServer {
    /// A server in open mode.
    pub(crate) fn open() -> Self {
        Self::start(Access::Open, |_, _| ())
    }

    /// A server that needs [`KEY`].
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
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let serving = runtime.spawn({
            let node = node.clone();
            async move { redis::serve(listener, node, &options, stopped).await }
        });
        let serving = Some((stop, serving));
        Self { address, clock, runtime, serving, _node: node, _directory: directory }
    }

    /// Advances the clock.
    pub(crate) fn pass(&self, ms: u64) {
        self.clock.fetch_add(ms, Ordering::SeqCst);
    }

    /// Shuts down and waits until the server has ended.
    pub(crate) fn stop(&mut self) {
        if let Some((stop, serving)) = self.serving.take() {
            stop.send(()).unwrap();
            self.runtime.block_on(serving).unwrap().unwrap();
        }
    }

    pub(crate) fn client(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let decoder = Decoder::new(ReplyLimits::CLIENT);
        Client { stream, decoder, buffer: Vec::new() }
    }
}

/// The node must not outlive its directory.
impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Sends commands and shows replies as text.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    decoder: Decoder,
    buffer: Vec<u8>,
}

impl Client {
    /// Sends bytes as they are.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The next reply; `None` if the server has closed the connection.
    pub(crate) fn receive(&mut self) -> Option<String> {
        loop {
            let mut rest = self.buffer.as_slice();
            if let Some(reply) = self.decoder.next(&mut rest).unwrap() {
                let shown = show(&reply);
                let after = self.buffer.len() - rest.len();
                self.buffer.drain(..after);
                return Some(shown);
            }
            let mut piece = vec![0; 1 << 16];
            match self.stream.read(&mut piece) {
                Ok(0) => return None,
                Ok(read) => self.buffer.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no reply: {error}"),
            }
        }
    }

    /// Sends a command of words and returns its reply.
    pub(crate) fn run(&mut self, words: &[&[u8]]) -> String {
        self.send(&encoded(words));
        self.receive().unwrap_or_else(|| panic!("closed after {words:?}"))
    }

    /// Sends an inline command.
    pub(crate) fn line(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n").as_bytes());
        self.receive().unwrap_or_else(|| panic!("closed after {line}"))
    }

    /// Runs lines of a table and compares the replies. An expectation that ends in `...` is a beginning.
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

/// A command as clients send it.
pub(crate) fn encoded(words: &[&[u8]]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// A reply as text: `nil`, `5`, `OK`, `"bytes"`, `[a, b]`, `{k: v}`, `-ERR ...`.
pub(crate) fn show(value: &Value<'_>) -> String {
    let list = |values: &[Value<'_>]| values.iter().map(show).collect::<Vec<_>>().join(", ");
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    match value {
        Value::Simple(simple) => text(simple),
        Value::Error(error) => format!("-{}", String::from_utf8_lossy(error)),
        Value::Integer(number) => number.to_string(),
        Value::Bulk(bytes) => format!("\"{}\"", text(bytes)),
        Value::Verbatim(_, bytes) => format!("txt\"{}\"", text(bytes)),
        Value::Null => "nil".to_owned(),
        Value::Array(values) => format!("[{}]", list(values)),
        Value::Set(values) => format!("~[{}]", list(values)),
        Value::Push(values) => format!(">[{}]", list(values)),
        Value::Map(pairs) => {
            let pair =
                |(key, value): &(Value<'_>, Value<'_>)| format!("{}: {}", show(key), show(value));
            format!("{{{}}}", pairs.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
        Value::Double(number) => format!("{number}"),
        Value::Boolean(truth) => format!("#{truth}"),
        Value::BigNumber(digits) => text(digits),
    }
}

impl Client {
    /// The bytes of the next reply, which is a bulk string.
    pub(crate) fn receive_bulk(&mut self) -> Vec<u8> {
        loop {
            let mut rest = self.buffer.as_slice();
            if let Some(reply) = self.decoder.next(&mut rest).unwrap() {
                let Value::Bulk(bytes) = reply else { panic!("{}", show(&reply)) };
                let bytes = bytes.to_vec();
                let after = self.buffer.len() - rest.len();
                self.buffer.drain(..after);
                return bytes;
            }
            let mut piece = vec![0; 1 << 16];
            let read = self.stream.read(&mut piece).unwrap();
            assert!(read > 0, "closed");
            self.buffer.extend_from_slice(&piece[..read]);
        }
    }
}
