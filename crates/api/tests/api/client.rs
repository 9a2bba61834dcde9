//! A server on a free port with its node in a temporary directory, and a simple client.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use api::ApiOptions;
use edge::{Access, KeyHash, Scopes};
use node::{Durability, Node, NodeOptions};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// The application key of servers that need one.
pub(crate) const KEY: &str = "a-key-for-tests";
/// No answer takes this long unless something is broken.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) node: Node,
    runtime: Runtime,
    serving: Option<(oneshot::Sender<()>, tokio::task::JoinHandle<std::io::Result<()>>)>,
    _directory: tempfile::TempDir,
}

/// A response with its whole body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
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
        set: impl FnOnce(&mut NodeOptions, &mut ApiOptions),
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = NodeOptions::new(directory.path().join("data"));
        options.durability = Durability::Never;
        let mut server_options = ApiOptions::new(access);
        server_options.pages = Some(std::sync::Arc::new(web::Pages::Embedded));
        set(&mut options, &mut server_options);
        let node = Node::open(&options).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let serving = runtime.spawn(api::serve(listener, node.clone(), server_options, stopped));
        Self { address, node, runtime, serving: Some((stop, serving)), _directory: directory }
    }

    /// Shuts down and waits until the server has ended.
    pub(crate) fn stop(&mut self) {
        if let Some((stop, serving)) = self.serving.take() {
            stop.send(()).unwrap();
            self.runtime.block_on(serving).unwrap().unwrap();
        }
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends these bytes on a new connection and reads until it closes.
    pub(crate) fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server may refuse before it has read everything: then writing fails and reading works.
        drop(stream.write_all(request));
        let mut bytes = Vec::new();
        drop(stream.read_to_end(&mut bytes));
        Answer::parse(&bytes)
    }

    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request.push_str("Host: localhost\r\n");
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        self.raw(&[request.as_bytes(), body].concat())
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], b"")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.with_json("POST", path, &[], body)
    }

    pub(crate) fn with_json(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Answer {
        let headers = [&[("Content-Type", "application/json")], headers].concat();
        self.send(method, path, &headers, body.to_string().as_bytes())
    }

    /// Registers users with these handles.
    pub(crate) fn register(&self, handles: &[&str]) {
        for handle in handles {
            let answer = self.post("/v1/users", &serde_json::json!({"handle": handle}));
            assert_eq!(answer.status, 201, "{answer:?}");
        }
    }

    pub(crate) fn follow(&self, user: &str, other: &str) {
        let path = format!("/v1/users/@{user}/following/@{other}");
        assert_eq!(self.send("PUT", &path, &[], b"").status, 204);
    }

    pub(crate) fn befriend(&self, user: &str, other: &str) {
        let path = format!("/v1/users/@{user}/friends/@{other}");
        assert_eq!(self.send("PUT", &path, &[], b"").status, 204);
    }

    /// Creates a story; returns its id.
    pub(crate) fn post_story(&self, user: &str, text: &str, ttl_s: u64) -> String {
        let path = format!("/v1/users/@{user}/stories");
        let answer = self.post(&path, &serde_json::json!({"text": text, "ttl_s": ttl_s}));
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// Publishes a post; returns its id.
    pub(crate) fn publish(&self, user: &str, text: &str) -> String {
        let path = format!("/v1/users/@{user}/posts");
        let answer = self.post(&path, &serde_json::json!({"text": text}));
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn batch(&self, lines: &str) -> Answer {
        self.send(
            "POST",
            "/v1/batch",
            &[("Content-Type", "application/x-ndjson")],
            lines.as_bytes(),
        )
    }

    /// The texts on a page.
    pub(crate) fn texts(&self, path: &str) -> Vec<String> {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        let items = answer.json()["items"].clone();
        items.as_array().unwrap().iter().map(|p| p["text"].as_str().unwrap().to_owned()).collect()
    }

    /// The totals, to check that nothing was changed.
    pub(crate) fn totals(&self) -> (u32, u64, u64) {
        let totals = self.node.facts().totals();
        (totals.users - totals.users_deleted, totals.posts, totals.follows)
    }

    /// Opens a stream of events.
    pub(crate) fn events(&self, path: &str, last_event_id: Option<&str>) -> Events {
        let mut stream = self.connect();
        let resume =
            last_event_id.map_or_else(String::new, |id| format!("Last-Event-ID: {id}\r\n"));
        let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n{resume}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert!(line.contains(" 200 "), "{line}");
        while line != "\r\n" {
            line.clear();
            lines.read_line(&mut line).unwrap();
        }
        let mut events = Events { lines, last_id: String::new() };
        assert_eq!(events.block(), ["retry: 2000", ": connected"]);
        events
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.stop();
            self.node.close();
        }
    }
}

/// A stream of events.
pub(crate) struct Events {
    lines: BufReader<TcpStream>,
    pub(crate) last_id: String,
}

impl Events {
    /// The lines up to the next empty one, without the id, which is stored. Empty at the end.
    fn block(&mut self) -> Vec<String> {
        let mut block = Vec::new();
        loop {
            let mut line = String::new();
            self.lines.read_line(&mut line).unwrap();
            match line.trim_end() {
                "" => return block,
                line => match line.strip_prefix("id: ") {
                    Some(id) => self.last_id = id.to_owned(),
                    None => block.push(line.to_owned()),
                },
            }
        }
    }

    /// The next event: its kind, and its text, or else its id if it has one; `None` when the stream has
    /// ended.
    pub(crate) fn next(&mut self) -> Option<(String, String)> {
        let block = self.block();
        let [event, data] = block.as_slice() else {
            assert!(block.is_empty(), "{block:?}");
            return None;
        };
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        let kind = event.strip_prefix("event: ").unwrap();
        let text = data.get("text").or(data.get("id")).map(|text| text.as_str().unwrap());
        Some((kind.to_owned(), text.unwrap_or_default().to_owned()))
    }
}

impl Answer {
    fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no head: {}", String::from_utf8_lossy(bytes)));
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut answer = Self { status, head, body: bytes[end + 4..].to_vec() };
        if answer.header("transfer-encoding").is_some() {
            answer.body = unchunked(&answer.body);
        }
        answer
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1);
        let mut headers = lines.filter_map(|line| line.split_once(": "));
        headers.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The lines of an NDJSON body.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let lines = self.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    /// Asserts an error with this status and code, as JSON.
    pub(crate) fn assert_error(&self, status: u16, code: &str, what: &str) {
        assert_eq!(self.status, status, "{what}: {self:?}");
        assert_eq!(self.header("content-type"), Some("application/json"), "{what}");
        let body = self.json();
        assert_eq!(body["error"], code, "{what}: {body}");
        assert!(body["message"].as_str().is_some_and(|message| message.len() > 5), "{what}");
        let id = body["request_id"].as_str();
        assert!(id.is_some_and(|id| id.len() == 16), "{what}: {body}");
        assert_eq!(id, self.header("x-request-id"), "{what}");
        assert!(matches!(body.get("field"), None | Some(Value::String(_))), "{what}: {body}");
        let known = 3 + usize::from(body.get("field").is_some());
        assert_eq!(body.as_object().unwrap().len(), known, "{what}: {body}");
    }
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let end = bytes.windows(2).position(|two| two == b"\r\n").unwrap();
        let length = std::str::from_utf8(&bytes[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            return whole;
        }
        whole.extend_from_slice(&bytes[end + 2..][..length]);
        bytes = &bytes[end + 2 + length + 2..];
    }
}
