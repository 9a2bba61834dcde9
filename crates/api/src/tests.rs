//! Tests that need private access: handlers while shared resources are exhausted.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use edge::{Access, BlockingReads, RequestMemory};
use http_body_util::BodyExt as _;
use node::{Node, NodeOptions};
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::ServiceExt as _;

use crate::metrics::HttpMetrics;
use crate::routes::routes_of;
use crate::state::AppState;
use crate::{ApiOptions, Origins};

struct Inside {
    node: Node,
    state: Arc<AppState>,
    router: Router,
    _directory: tempfile::TempDir,
}

impl Inside {
    fn new(set: impl FnOnce(&mut ApiOptions)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let node = Node::open(&NodeOptions::new(directory.path().join("data"))).unwrap();
        let mut options = ApiOptions::new(Access::Open);
        set(&mut options);
        let metrics = Arc::new(HttpMetrics::default());
        let memory = RequestMemory::new(options.request_memory);
        let (_, closing) = watch::channel(false);
        let state = Arc::new(AppState::new(node.clone(), options, closing, memory, &metrics));
        let router = routes_of(Arc::clone(&state), (None, None, Origins::default()), &metrics);
        Self { node, state, router, _directory: directory }
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> Response {
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        let request = request.header("content-type", "application/json");
        let request = request.body(Body::from(body.to_string())).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn status(&self, method: &str, path: &str, body: &Value) -> u16 {
        self.ask(method, path, body).await.status().as_u16()
    }
}

async fn json_of(response: Response) -> Value {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap()
}

/// Fills a pool of one read, and its queue, with reads that last until the sender is dropped.
async fn fill(state: &Arc<AppState>) -> std::sync::mpsc::Sender<()> {
    let (release, held) = std::sync::mpsc::channel::<()>();
    let (started, running) = tokio::sync::oneshot::channel();
    let first = Arc::clone(state);
    tokio::spawn(async move {
        let read = move || {
            started.send(()).unwrap();
            _ = held.recv();
        };
        first.reads.run(read).await
    });
    running.await.unwrap();
    // Queues reads until one is refused.
    loop {
        let waiting = Arc::clone(state);
        let refused = tokio::spawn(async move { waiting.reads.run(|| ()).await.is_err() });
        tokio::task::yield_now().await;
        if refused.is_finished() && refused.await.unwrap() {
            return release;
        }
    }
}

#[tokio::test]
async fn a_completed_change_is_reported_however_many_reads_are_queued() {
    let server = Inside::new(|options| options.reads = BlockingReads::new(1));
    assert_eq!(server.status("POST", "/v1/users", &json!({"handle": "ada"})).await, 201);
    let release = fill(&server.state).await;
    let read = server.ask("GET", "/v1/users/0", &Value::Null).await;
    assert_eq!(read.status(), 503, "other reads are refused now");
    let search = server.ask("GET", "/v1/users?search=a", &Value::Null).await;
    assert_eq!(search.status(), 200, "reads of many rows have a separate lane");
    for (method, path, body, status) in [
        ("POST", "/v1/users", json!({"handle": "bob", "name": "Bob"}), 201),
        ("PATCH", "/v1/users/@bob", json!({"bio": "changed"}), 200),
        ("PUT", "/v1/users/@ada/following/@bob", Value::Null, 200),
        ("PUT", "/v1/users/@ada/friends/@bob", Value::Null, 204),
        ("POST", "/v1/users/@ada/posts", json!({"text": "hello @bob"}), 201),
        ("POST", "/v1/users/@ada/stories", json!({"text": "hello"}), 201),
        ("POST", "/v1/samples", json!({"label": "x", "sample": "0".repeat(256)}), 201),
        ("PUT", "/v1/buckets/drafts", Value::Null, 204),
        ("PUT", "/v1/buckets/drafts", Value::Null, 204),
        ("PUT", "/v1/buckets/0/keys/k", Value::Null, 204),
        ("DELETE", "/v1/buckets/0/keys/k", Value::Null, 204),
    ] {
        let answer = server.ask(method, path, &body).await;
        assert_eq!(answer.status(), status, "{method} {path}");
    }
    let totals = server.node.facts().totals();
    assert_eq!((totals.users, totals.posts, totals.follows), (2, 1, 1), "each happened once");
    drop(release);
    let posts = "/v1/users/@ada/posts";
    let mut page = server.ask("GET", posts, &Value::Null).await;
    while page.status() == 503 {
        tokio::task::yield_now().await;
        page = server.ask("GET", posts, &Value::Null).await;
    }
    assert_eq!(json_of(page).await["items"][0]["text"], "hello @bob");
    server.node.close();
}

/// Sends a batch of `times` pieces, one every `secs` seconds.
async fn batch_of(server: &Inside, piece: &'static str, secs: u64, times: usize) -> Vec<u8> {
    let pieces = futures_util::stream::unfold(0, move |sent| async move {
        tokio::time::sleep(std::time::Duration::from_secs(secs)).await;
        (sent < times).then(|| (Ok::<_, std::convert::Infallible>(piece), sent + 1))
    });
    let request = Request::post("/v1/batch").header("host", "localhost");
    let request = request.header("content-type", "application/x-ndjson");
    let request = request.body(Body::from_stream(pieces)).unwrap();
    let response = server.router.clone().oneshot(request).await.unwrap();
    response.into_body().collect().await.unwrap().to_bytes().into()
}

#[tokio::test(start_paused = true)]
async fn a_batch_ends_that_sends_bytes_and_no_lines() {
    let server = Inside::new(|_| ());
    for piece in [" ", "\n", " \n", "{"] {
        let results = batch_of(&server, piece, 9, usize::MAX).await;
        let results = String::from_utf8(results).unwrap();
        assert!(results.contains("body_too_slow"), "{piece:?}: {results}");
    }
    let line = "{\"op\":\"delete_post\",\"user\":1,\"id\":\"1\"}\n";
    let results = String::from_utf8(batch_of(&server, line, 25, 8).await).unwrap();
    assert_eq!(results.matches("user_not_found").count(), 8, "{results}");
}
