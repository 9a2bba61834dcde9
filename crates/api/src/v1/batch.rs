//! Many commands in one request: NDJSON in, one result for each line out, both streamed, in order.
//!
//! Lines are parsed as they arrive. While one chunk of commands is with the node the next is being
//! parsed, and no more than these two are held: a client that does not read its results is not
//! read from. One chunk at a time keeps the order whatever the node's queue does, and whatever
//! arrives meanwhile shares the next write of the log. A client that goes away leaves done what
//! was submitted.
//!
//! **Invariant:** lines, commands and results are reserved before they are held. While there is no memory
//! for more the client is not read from, and a batch that has none at all ends with `overloaded`.

mod line;
mod schema;
mod submit;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use bytes::Bytes;
use feed::Lifetime;
use futures_util::Stream;
use hyper::body::Body as _;
use node::Reservation;
use tokio::time::Sleep;

use crate::error::{ApiError, ErrorBody};
use crate::guard::Entry;
use crate::idempotency;
use crate::input::{BODY_BYTES_MAX, require_media_type};
use crate::memory::RequestMemory;
use crate::routes::Routes;
use crate::state::AppState;
use line::Change;
use schema::{BatchLine, BatchResult};
use submit::{Submitted, submit};

const NDJSON: &str = "application/x-ndjson";
/// Lines of a chunk.
const CHUNK_LINES_MAX: usize = 2_000;
/// Bytes of a chunk's lines at which it is full.
const CHUNK_BYTES: usize = 1 << 20;
/// What a line takes beside two copies of its bytes: a command, its reply and its result.
const LINE_BYTES: usize = 1 << 10;
/// How long a client may send nothing while it has no results to come.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("POST", "/v1/batch", Entry::Plain, batch);
}

/// Make many changes in one request
///
/// One JSON object in each line, whose `op` says which other fields it has. One result in each line, in order.
/// Later lines see what earlier ones did; changes of other requests may come between. Read results while
/// sending: both bodies are streams.
///
/// | `op` | fields | optional |
/// |---|---|---|
/// | `register` | `handle` | `name`, `bio`, `idempotency_key` |
/// | `follow`, `unfollow`, `befriend`, `unfriend` | `user`, `other` | `idempotency_key` |
/// | `post` | `user`, `text` | `idempotency_key` |
/// | `post_story` | `user`, `text` | `ttl_s`, `idempotency_key` |
/// | `view_story` | `user`, `id` | `idempotency_key` |
/// | `add_sample` | `label`, `sample` | `set`, `idempotency_key` |
/// | `delete_post`, `delete_story`, `delete_sample` | `id` | `idempotency_key` |
#[utoipa::path(
    post, path = "/v1/batch", operation_id = "batch", tag = "batch",
    request_body(content = BatchLine, content_type = "application/x-ndjson"),
    responses(
        (status = 200, description = "A result for each line", content_type = "application/x-ndjson", body = BatchResult),
        (status = 422, description = "`idempotency_key_not_supported`: lines have keys of their own", body = ErrorBody),
    )
)]
pub(crate) async fn batch(
    State(state): State<Arc<AppState>>,
    request: Request,
) -> Result<Response, ApiError> {
    require_media_type(request.headers(), NDJSON)?;
    idempotency::refuse(request.headers(), "the lines of a batch have keys of their own")?;
    let results = Results::new(state, request.into_body());
    let mut response = Response::new(Body::from_stream(results));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(NDJSON));
    Ok(response)
}

/// The results of a batch as they come.
struct Results {
    state: Arc<AppState>,
    /// Commands to come; `None` when there are no more.
    body: Option<Body>,
    /// What has arrived and is not parsed yet.
    input: Input,
    /// Parsed, to be submitted next.
    chunk: Chunk,
    submitted: Option<Pin<Box<dyn Future<Output = Submitted> + Send>>>,
    /// Rings when the client sends nothing for too long.
    patience: Option<Pin<Box<Sleep>>>,
}

impl Results {
    fn new(state: Arc<AppState>, body: Body) -> Self {
        let (input, chunk) = (Input::new(&state.memory), Chunk::new(&state.memory));
        Self { state, body: Some(body), input, chunk, submitted: None, patience: None }
    }

    /// Parses what is there, until the chunk is full or the client has sent no more.
    fn fill(&mut self, cx: &mut Context<'_>) {
        while !self.chunk.is_full() {
            let (memory, story_life) = (&self.state.memory, self.state.story_life);
            if !self.input.parse_into(&mut self.chunk, memory, story_life) {
                self.body = None;
            }
            if self.chunk.is_full() {
                return;
            }
            let Some(body) = &mut self.body else { return };
            match Pin::new(body).poll_frame(cx) {
                Poll::Pending => return,
                Poll::Ready(Some(Ok(frame))) => {
                    self.patience = None;
                    self.input.arrived = frame.into_data().unwrap_or_default();
                    self.input.at = 0;
                }
                // A body that breaks off ends the batch like one that ends.
                Poll::Ready(None | Some(Err(_))) => {
                    self.body = None;
                    self.input.parse_last(&mut self.chunk, memory, story_life);
                }
            }
        }
    }

    /// Ends a batch whose client sends nothing for too long.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = || Box::pin(tokio::time::sleep(PATIENCE));
        std::task::ready!(self.patience.get_or_insert_with(sleep).as_mut().poll(cx));
        self.body = None;
        self.chunk.fail(ApiError::body_too_slow(), self.input.lines + 1);
        Poll::Ready(())
    }
}

impl Results {
    /// Ends a batch for which there is no memory at all.
    fn give_up(&mut self) {
        self.chunk.fail(ApiError::overloaded(), self.input.lines + 1);
        self.body = None;
        self.input = Input::new(&self.state.memory);
    }
}

impl Stream for Results {
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            self.fill(cx);
            if self.submitted.is_none() && self.chunk.is_empty() && self.chunk.starved {
                self.give_up();
            }
            if self.submitted.is_none() && !self.chunk.is_empty() {
                let next = Chunk::new(&self.state.memory);
                let chunk = std::mem::replace(&mut self.chunk, next);
                self.submitted = Some(Box::pin(submit(Arc::clone(&self.state), chunk)));
            }
            if let Some(submitted) = &mut self.submitted {
                let done = std::task::ready!(submitted.as_mut().poll(cx));
                self.submitted = None;
                // What the chunk before held is there again, but for its results.
                self.chunk.starved = false;
                if done.stopped {
                    self.body = None;
                    self.input = Input::new(&self.state.memory);
                    self.chunk = Chunk::new(&self.state.memory);
                }
                return Poll::Ready(Some(Ok(done.results)));
            }
            if self.body.is_none() {
                return Poll::Ready(None);
            }
            std::task::ready!(self.wait(cx));
        }
    }
}

/// Bytes of the body that are not parsed yet.
struct Input {
    /// At most what a connection reads at once.
    arrived: Bytes,
    /// Up to here `arrived` is parsed.
    at: usize,
    /// The beginning of a line whose end has not arrived.
    begun: Vec<u8>,
    /// What that takes.
    held: Reservation,
    /// Lines ended so far, empty ones included.
    lines: u64,
}

impl Input {
    fn new(memory: &RequestMemory) -> Self {
        Self { arrived: Bytes::new(), at: 0, begun: Vec::new(), held: memory.empty(), lines: 0 }
    }

    /// Parses whole lines until the chunk is full. False if a line is too long to go on.
    fn parse_into(
        &mut self,
        chunk: &mut Chunk,
        memory: &RequestMemory,
        story_life: Lifetime,
    ) -> bool {
        let arrived = self.arrived.clone();
        let mut rest = arrived.get(self.at..).unwrap_or_default();
        while !chunk.is_full() && !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest);
            let (line, after) = rest.split_at(end.unwrap_or(rest.len()));
            let length = self.begun.len() + line.len();
            if length > BODY_BYTES_MAX {
                chunk.fail(ApiError::line_too_long(BODY_BYTES_MAX), self.lines + 1);
                *self = Self::new(memory);
                return false;
            }
            let held = match end {
                Some(_) => chunk.hold(length, memory),
                None => memory.grow(&mut self.held, length).is_ok(),
            };
            if !held {
                chunk.starved = true;
                break;
            }
            rest = after.get(1..).unwrap_or_default();
            self.lines += u64::from(end.is_some());
            if end.is_some() && self.begun.is_empty() {
                chunk.take(line, self.lines, story_life);
                continue;
            }
            self.begun.extend_from_slice(line);
            if end.is_some() {
                chunk.take(&self.begun, self.lines, story_life);
                self.begun = Vec::new();
                self.held = memory.empty();
            }
        }
        self.at = arrived.len() - rest.len();
        true
    }

    /// Parses the last line if it lacks its end.
    fn parse_last(&mut self, chunk: &mut Chunk, memory: &RequestMemory, story_life: Lifetime) {
        if chunk.hold(self.begun.len(), memory) {
            chunk.take(&self.begun, self.lines + 1, story_life);
        } else {
            chunk.fail(ApiError::overloaded(), self.lines + 1);
        }
        *self = Self::new(memory);
    }
}

/// Commands that are submitted together, and the lines among them that are none.
struct Chunk {
    changes: Vec<Change>,
    /// Each with its place among all lines of the chunk and its number in the batch.
    failures: Vec<(usize, u64, ApiError)>,
    bytes: usize,
    held: Reservation,
    /// There was no memory for a further line.
    starved: bool,
}

impl Chunk {
    fn new(memory: &RequestMemory) -> Self {
        let (changes, failures) = (Vec::new(), Vec::new());
        Self { changes, failures, bytes: 0, held: memory.empty(), starved: false }
    }

    /// Reserves what a line of so many bytes takes; false if there is no memory for it.
    fn hold(&mut self, bytes: usize, memory: &RequestMemory) -> bool {
        let bytes = self.held.bytes() + LINE_BYTES + 2 * bytes;
        memory.grow(&mut self.held, bytes).is_ok()
    }

    fn lines(&self) -> usize {
        self.changes.len() + self.failures.len()
    }

    fn is_empty(&self) -> bool {
        self.lines() == 0
    }

    fn is_full(&self) -> bool {
        self.lines() >= CHUNK_LINES_MAX || self.bytes >= CHUNK_BYTES || self.starved
    }

    /// Takes a line; an empty one is nothing.
    fn take(&mut self, line: &[u8], number: u64, story_life: Lifetime) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        self.bytes += line.len();
        match line::parse(line, story_life) {
            Ok(change) => self.changes.push(change),
            Err(error) => self.fail(error, number),
        }
    }

    fn fail(&mut self, error: ApiError, number: u64) {
        self.failures.push((self.lines(), number, error));
    }
}
