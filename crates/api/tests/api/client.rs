//! Server on a free port, with a node in a temporary directory, and a simple client.

use std::net::{SocketAddr, TcpStream};
use std::sync::OnceLock;

use api::ApiOptions;
use edge::{Access, KeyHash, Scopes};
use node::{Durability, Node, NodeOptions};
use serde_json::Value;
pub(crate) use testkit::events::Events;
pub(crate) use testkit::http::Answer;
use testkit::http::{self, at};
use testkit::server::Serving;

/// Application key of servers that need one.
pub(crate) const KEY: &str = "a-key-for-tests";

/// The OpenAPI document.
fn api() -> &'static Value {
    static API: OnceLock<Value> = OnceLock::new();
    API.get_or_init(|| TestServer::open().get("/v1/openapi.json").json())
}

/// Compares an error with the OpenAPI document, if the document has the route.
fn assert_documented(method: &str, path: &str, answer: &Answer) {
    let api = api();
    let given: Vec<_> = path.split('?').next().unwrap().split('/').collect();
    let matches = |template: &str| {
        let template: Vec<_> = template.split('/').collect();
        let same = |(part, given): (&&str, &&str)| {
            if part.starts_with('{') { !given.is_empty() } else { part == given }
        };
        let is_long = template.last() == Some(&"{key}") && given.len() > template.len();
        (is_long || template.len() == given.len()) && template.iter().zip(&given).all(same)
    };
    // A path without parameters is preferred.
    let paths = api["paths"].as_object().unwrap();
    let mut found: Vec<_> = paths.iter().filter(|(template, _)| matches(template)).collect();
    found.sort_by_key(|(template, _)| template.matches('{').count());
    let Some((template, item)) = found.first() else { return };
    let Some(operation) = item.get(method.to_lowercase()) else { return };
    let response = &operation["responses"][answer.status.to_string()];
    let response = match response["$ref"].as_str() {
        Some(reference) => api.pointer(reference.strip_prefix('#').unwrap()).unwrap(),
        None => response,
    };
    let text = response["description"].as_str().unwrap_or_default();
    let code = answer.json()["error"].as_str().unwrap().to_owned();
    assert!(
        text.contains(&format!("`{code}`")),
        "{method} {template} is not documented with {} {code}: {text}",
        answer.status
    );
}

pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) node: Node,
    serving: Serving,
    _directory: tempfile::TempDir,
}

impl TestServer {
    /// Starts a server in open mode.
    pub(crate) fn open() -> Self {
        Self::start(Access::Open, |_, _| ())
    }

    /// Starts a server that needs [`KEY`].
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
        let serving = Serving::start(2, |listener, stopped| {
            api::serve(listener, node.clone(), server_options, stopped)
        });
        Self { address: serving.address, node, serving, _directory: directory }
    }

    /// Shuts down and waits until the server has ended.
    pub(crate) fn stop(&mut self) {
        self.serving.stop();
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.serving.block_on(future)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        http::connect(self.address).unwrap().into_inner()
    }

    /// Sends raw bytes on a new connection, and reads until it closes.
    pub(crate) fn raw(&self, request: &[u8]) -> Answer {
        http::raw(self.address, request)
    }

    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let headers = [&[("Connection", "close")], headers].concat();
        let answer = self.raw(&http::request("localhost", method, path, &headers, body));
        if answer.status >= 400 {
            assert_documented(method, path, &answer);
        }
        answer
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], b"")
    }

    /// Returns the page at a cursor of the list that has a page at `path`.
    pub(crate) fn page(&self, path: &str, cursor: &Value) -> Value {
        self.get(&at(path, cursor.as_str().unwrap())).json()
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
        assert_eq!(self.send("PUT", &path, &[], b"").status, 200);
    }

    /// Path on which the author of a post can change it.
    pub(crate) fn own(&self, post: &str) -> String {
        let post = self.get(&format!("/v1/posts/{post}")).json();
        let [author, post] = [&post["author"]["id"], &post["id"]].map(|id| id.as_str().unwrap());
        format!("/v1/users/{author}/posts/{post}")
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
        let headers = [("Content-Type", "application/x-ndjson")];
        let answer = self.send("POST", "/v1/batch", &headers, lines.as_bytes());
        let text = api()["paths"]["/v1/batch"]["post"]["description"].as_str().unwrap();
        let failed = answer.lines().into_iter().filter(|result| result["ok"] == false);
        for code in failed.map(|result| result["error"].as_str().unwrap().to_owned()) {
            assert!(text.contains(&format!("`{code}`")), "{code} of lines is not documented");
        }
        answer
    }

    /// Texts on a page.
    pub(crate) fn texts(&self, path: &str) -> Vec<String> {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        let items = answer.json()["items"].clone();
        items.as_array().unwrap().iter().map(|p| p["text"].as_str().unwrap().to_owned()).collect()
    }

    /// Totals, to check that nothing was changed.
    pub(crate) fn totals(&self) -> (u32, u64, u64) {
        let totals = self.node.facts().totals();
        (totals.users - totals.users_deleted, totals.posts, totals.follows)
    }

    /// Opens a stream of events.
    pub(crate) fn events(&self, path: &str, last_event_id: Option<&str>) -> Events {
        Events::open(self.address, path, last_event_id)
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
