//! Batch of commands in one request: NDJSON in, one result line for each input line out, both streamed and in order.
//!
//! Lines are parsed as they arrive. While the node applies one chunk of commands, the next chunk is parsed. There are
//! at most these two chunks, so the server stops reading from a client that does not read its results. Because one
//! chunk is submitted at a time, the order does not depend on the node's queue. Submitted commands are executed even if
//! the client disconnects.
//!
//! **Invariant:** memory for lines, commands and results is reserved before it is used. While memory is short, the
//! server does not read from the client; a batch that cannot reserve any memory ends with `overloaded`.

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
use budget::Reservation;
use bytes::Bytes;
use edge::request_id::carry_stream;
use edge::{BodyMemory as _, RequestMemory, Share, why_ended};
use feed::UserRef;
use futures_util::Stream;
use hyper::body::Body as _;
use tokio::time::Sleep;

use crate::auth;
use crate::error::ApiError;
use crate::idempotency;
use crate::input::{BODY_BYTES_MAX, require_media_type};
use crate::route::{Route, reference};
use crate::state::AppState;
use crate::unsent::Client;
use crate::v1::{follows, friends, posts, samples, stories, users};
use line::{Change, Defaults};
use schema::{BatchLine, BatchResult};
use submit::{Submitted, submit};

const NDJSON: &str = "application/x-ndjson";
/// Maximum number of lines of a chunk.
const CHUNK_LINES_MAX: usize = 2_000;
/// A chunk is full when its lines have this total size, in bytes.
const CHUNK_BYTES: usize = 1 << 20;
/// Memory that a line needs for its command, its reply and its result, in bytes. Two copies of the line's own bytes are
/// counted in addition.
const LINE_BYTES: usize = 1 << 10;
/// Memory for each item of a list in a line, in bytes. The number of items is counted by the commas of the line.
const ITEM_BYTES: usize = 2 * size_of::<UserRef>();
/// Maximum time without a complete line from the client while no results are pending.
const PATIENCE: Duration = Duration::from_secs(30);

/// Names of the routes that make the same changes as lines of a batch.
const ROUTES_OF_LINES: [&str; 12] = [
    "create_user",
    "follow_user",
    "unfollow_user",
    "befriend_user",
    "unfriend_user",
    "create_post",
    "delete_post",
    "create_story",
    "delete_story",
    "view_story",
    "create_sample",
    "delete_sample",
];

/// Errors of these routes that no line can have. They concern users as clients, pictures and headers.
const NOT_OF_LINES: [&str; 6] = [
    "not_own",
    "too_many_requests",
    "media_not_found",
    "media_attached",
    "too_many_media",
    "precondition_failed",
];

/// Errors that a line with any `op` can have.
const OF_ALL_LINES: [&str; 11] = [
    "bad_request",
    "line_too_long",
    "body_too_slow",
    "unauthorized",
    "internal",
    "damaged",
    "overloaded",
    "stopping",
    "log_unavailable",
    "unconfirmed",
    "disk_full",
];

/// Codes of errors of lines.
fn errors_of_lines() -> Vec<&'static str> {
    let groups = [
        users::routes,
        follows::routes,
        friends::routes,
        posts::routes,
        stories::routes,
        samples::routes,
    ];
    let routes = groups.into_iter().flat_map(|routes| routes()).filter_map(|route| route.about);
    let of_lines: Vec<_> = routes
        .filter(|about| ROUTES_OF_LINES.contains(&about.id))
        .map(|about| about.inputs)
        .collect();
    assert_eq!(of_lines.len(), ROUTES_OF_LINES.len(), "a line has no route of this name");
    let codes = of_lines.into_iter().flat_map(|inputs| {
        let exact = inputs.exact_errors.into_iter().map(|kind| kind.code);
        inputs.errors.into_iter().chain(exact)
    });
    let mut all = OF_ALL_LINES.to_vec();
    for code in codes.filter(|code| !NOT_OF_LINES.contains(code)) {
        if !all.contains(&code) {
            all.push(code);
        }
    }
    all
}

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/v1/batch", batch)
            .named("batch", "Make many changes in one request")
            .text(
                "Each line of the body is a JSON object; `op` determines its other fields. Each \
                 line of the response is the result of the line at the same position. Later \
                 lines see the changes of earlier ones; changes by other requests may come \
                 between. Read results while sending: both bodies are \
                 streams.\n\n| `op` | fields | optional |\n|---|---|---|\n| \
                 `register` | `handle` | `name`, `bio`, `idempotency_key` |\n| `follow`, \
                 `unfollow`, `befriend`, `unfriend` | `user`, `other` | `idempotency_key` |\n| \
                 `follow` | `user`, `others`: 1 to 1,000 | `idempotency_key` |\n| `post` | \
                 `user`, `text` | `in_reply_to_id`, `visibility`, `warning`, `sensitive`, \
                 `language`, `quote_id`, `quote_policy`, `idempotency_key` |\n| `post_story` | `user`, `text` | `ttl_s`, \
                 `idempotency_key` |\n| `view_story`, `delete_post`, `delete_story` | `user`, `id` \
                 | `idempotency_key` |\n| `add_sample` | `label`, `sample` | `set`, \
                 `idempotency_key` |\n| `delete_sample` | `id` | `idempotency_key` |",
            )
            .body(None, vec![(NDJSON, reference::<BatchLine>)])
            .answers_with("A result for each line", NDJSON, reference::<BatchResult>)
            .errors(&["idempotency_key_not_supported"])
            .error(ApiError::too_many_streams())
            .errors_of_lines(&errors_of_lines()),
    ]
}

pub(crate) async fn batch(
    State(state): State<Arc<AppState>>,
    request: Request,
) -> Result<Response, ApiError> {
    require_media_type(request.headers(), NDJSON)?;
    idempotency::refuse(request.headers(), "set a key on each line of a batch instead")?;
    let share = state.share(request.headers())?;
    let client = auth::grant(&state.access, request.headers()).map(|grant| grant.client());
    let client = (client.unwrap_or_default(), share);
    let results = Results::new(state, client, request.into_body());
    let mut response = Response::new(Body::from_stream(carry_stream(results)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(NDJSON));
    Ok(response)
}

/// The results of a batch as a stream.
struct Results {
    state: Arc<AppState>,
    /// Rest of the body; `None` after its end.
    body: Option<Body>,
    /// Received bytes that are not yet parsed.
    input: Input,
    /// Parsed commands to submit next.
    chunk: Chunk,
    submitted: Option<Pin<Box<dyn Future<Output = Submitted> + Send>>>,
    /// Timer that fires when the client sends no complete line for [`PATIENCE`]. Empty lines do not count.
    patience: Option<Pin<Box<Sleep>>>,
    client: (Client, Share<Client>),
}

impl Results {
    fn new(state: Arc<AppState>, client: (Client, Share<Client>), body: Body) -> Self {
        let (input, chunk) = (Input::new(&state.memory), Chunk::new(&state.memory));
        let body = Some(body);
        Self { state, body, input, chunk, submitted: None, patience: None, client }
    }

    /// Parses received bytes until the chunk is full or no bytes are left.
    fn fill(&mut self, cx: &mut Context<'_>) {
        while !self.chunk.is_full() {
            let (state, memory) = (&self.state, &self.state.memory);
            let defaults = Defaults {
                story_life: state.story_life,
                domain: &state.domain,
                client: self.client.0,
            };
            let lines = self.chunk.lines();
            if !self.input.parse_into(&mut self.chunk, memory, defaults) {
                self.body = None;
            }
            if self.chunk.lines() > lines {
                self.patience = None;
            }
            if self.chunk.is_full() {
                return;
            }
            let Some(body) = &mut self.body else { return };
            match Pin::new(body).poll_frame(cx) {
                Poll::Pending => return,
                Poll::Ready(Some(Ok(frame))) => {
                    self.input.arrived = frame.into_data().unwrap_or_default();
                    self.input.at = 0;
                }
                Poll::Ready(end) => {
                    self.body = None;
                    match end.and_then(|end| why_ended(&end.err()?)) {
                        Some(ended) => {
                            // The permission has ended, so this client gets no further results.
                            self.input = Input::new(memory);
                            self.chunk = Chunk::new(memory);
                            self.chunk.fail(ended.into(), 1);
                        }
                        // An incomplete body ends the batch like a complete one.
                        None => self.input.parse_last(&mut self.chunk, memory, defaults),
                    }
                }
            }
        }
    }

    /// Ends the batch if the client sends no line for [`PATIENCE`].
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = || Box::pin(tokio::time::sleep(PATIENCE));
        std::task::ready!(self.patience.get_or_insert_with(sleep).as_mut().poll(cx));
        self.body = None;
        self.chunk.fail(ApiError::body_too_slow(), self.input.lines + 1);
        Poll::Ready(())
    }
}

impl Results {
    /// Ends a batch that cannot reserve any memory.
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
                self.patience = None;
                // The memory of the previous chunk is free again, except for its results, so the next chunk may get
                // memory.
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

/// Received bytes of the body that are not yet parsed.
struct Input {
    /// Bytes of one read of the connection.
    arrived: Bytes,
    /// Number of bytes of `arrived` that are parsed.
    at: usize,
    /// The beginning of a line whose end has not arrived.
    begun: Vec<u8>,
    /// Memory reserved for `begun`.
    held: Reservation,
    /// Number of complete lines so far, including empty ones.
    lines: u64,
}

impl Input {
    fn new(memory: &RequestMemory) -> Self {
        Self { arrived: Bytes::new(), at: 0, begun: Vec::new(), held: memory.empty(), lines: 0 }
    }

    /// Parses whole lines until the chunk is full. Returns false if a line is too long.
    fn parse_into(
        &mut self,
        chunk: &mut Chunk,
        memory: &RequestMemory,
        defaults: Defaults<'_>,
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
            if end.is_some() && self.begun.is_empty() && line.trim_ascii().is_empty() {
                // No memory is reserved for an empty line: many empty lines would hold much memory without any
                // progress.
                (self.lines, rest) = (self.lines + 1, after.get(1..).unwrap_or_default());
                continue;
            }
            let held = match end {
                Some(_) => chunk.hold(length, items(&self.begun) + items(line), memory),
                None => memory.grow(&mut self.held, length).is_ok(),
            };
            if !held {
                chunk.starved = true;
                break;
            }
            rest = after.get(1..).unwrap_or_default();
            self.lines += u64::from(end.is_some());
            if end.is_some() && self.begun.is_empty() {
                chunk.take(line, self.lines, defaults);
                continue;
            }
            self.begun.extend_from_slice(line);
            if end.is_some() {
                chunk.take(&self.begun, self.lines, defaults);
                self.begun = Vec::new();
                self.held = memory.empty();
            }
        }
        self.at = arrived.len() - rest.len();
        true
    }

    /// Parses the last line if it has no line end.
    fn parse_last(&mut self, chunk: &mut Chunk, memory: &RequestMemory, defaults: Defaults<'_>) {
        if self.begun.is_empty() {
            return;
        }
        if chunk.hold(self.begun.len(), items(&self.begun), memory) {
            chunk.take(&self.begun, self.lines + 1, defaults);
        } else {
            chunk.fail(ApiError::overloaded(), self.lines + 1);
        }
        *self = Self::new(memory);
    }
}

/// Upper bound of the number of list items of a line, minus one.
fn items(line: &[u8]) -> usize {
    memchr::memchr_iter(b',', line).count()
}

/// Commands to submit together, and the errors of invalid lines among them.
struct Chunk {
    changes: Vec<Change>,
    /// Index in the chunk, line number in the batch, and error of each invalid line.
    failures: Vec<(usize, u64, ApiError)>,
    bytes: usize,
    held: Reservation,
    /// Whether memory was too short for another line.
    starved: bool,
}

impl Chunk {
    fn new(memory: &RequestMemory) -> Self {
        let (changes, failures) = (Vec::new(), Vec::new());
        Self { changes, failures, bytes: 0, held: memory.empty(), starved: false }
    }

    /// Reserves memory for a line of `bytes` bytes and `items` list items. Returns false if memory is short.
    fn hold(&mut self, bytes: usize, items: usize, memory: &RequestMemory) -> bool {
        let bytes = self.held.bytes() + LINE_BYTES + 2 * bytes + items * ITEM_BYTES;
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

    /// Adds a line; an empty one is ignored.
    fn take(&mut self, line: &[u8], number: u64, defaults: Defaults<'_>) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        self.bytes += line.len();
        match line::parse(line, defaults) {
            Ok(change) => self.changes.push(change),
            Err(error) => self.fail(error, number),
        }
    }

    fn fail(&mut self, error: ApiError, number: u64) {
        self.failures.push((self.lines(), number, error));
    }
}
