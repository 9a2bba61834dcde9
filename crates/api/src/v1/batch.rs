//! Many commands in one request: NDJSON in, one result a line out, both streamed, in order.
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
use feed::{Done, Lifetime, Reply};
use futures_util::Stream;
use hyper::body::Body as _;
use node::{Node, Reservation, SubmitError};
use tokio::time::Sleep;

use crate::error::{ErrorBody, Problem};
use crate::guard::Entry;
use crate::input::{BODY_BYTES_MAX, idempotency_key, require_media_type};
use crate::memory::{RequestMemory, held_until_sent};
use crate::page::push_number;
use crate::routes::Routes;
use crate::state::Edge;

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

/// Run many commands
///
/// One JSON object a line: `{"op":"register","handle":"ada"}` (and `name`, `bio`),
/// `{"op":"follow","user":0,"other":"@bob"}`, `{"op":"unfollow","user":0,"other":1}`,
/// `{"op":"post","user":"@ada","text":"hello"}` (and `idempotency_key`),
/// `{"op":"delete_post","id":"123"}`, `{"op":"befriend","user":0,"other":"@bob"}`,
/// `{"op":"unfriend","user":0,"other":1}`, `{"op":"tell_story","user":"@ada","text":"hello"}` (and
/// `ttl_s`, `idempotency_key`), `{"op":"delete_story","id":"123"}`,
/// `{"op":"view_story","id":"123","user":"@bob"}`, `{"op":"teach","label":"7","bits":...}` (and `set`,
/// `idempotency_key`), `{"op":"forget_sample","id":"123"}`. One result a line, in order:
/// `{"ok":true}`, with `id` for `register`, `post`, `tell_story` and `teach`, or
/// `{"ok":false,"error":...,"message":...}`, with `line` if the line itself is wrong. Later lines see
/// what earlier ones did. Read results while sending.
#[utoipa::path(
    post, path = "/v1/batch", tag = "batch",
    request_body(content = String, content_type = "application/x-ndjson"),
    responses(
        (status = 200, content_type = "application/x-ndjson", body = String),
        (status = 415, description = "`unsupported_media_type`", body = ErrorBody),
    )
)]
pub(crate) async fn batch(
    State(edge): State<Arc<Edge>>,
    request: Request,
) -> Result<Response, Problem> {
    require_media_type(request.headers(), NDJSON)?;
    if idempotency_key(request.headers())?.is_some() {
        return Err(Problem::bad_idempotency_key("the lines of a batch carry their own keys"));
    }
    let results = Results::new(&edge, request.into_body());
    let mut response = Response::new(Body::from_stream(results));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(NDJSON));
    Ok(response)
}

/// The results of a batch as they come.
struct Results {
    node: Node,
    memory: RequestMemory,
    story_life: Lifetime,
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

/// What came of a chunk.
struct Submitted {
    results: Bytes,
    stopped: bool,
}

impl Results {
    fn new(edge: &Edge, body: Body) -> Self {
        Self {
            node: edge.node.clone(),
            memory: edge.memory.clone(),
            story_life: edge.story_life,
            body: Some(body),
            input: Input::new(&edge.memory),
            chunk: Chunk::new(&edge.memory),
            submitted: None,
            patience: None,
        }
    }

    /// Parses what is there, until the chunk is full or the client has sent no more.
    fn fill(&mut self, cx: &mut Context<'_>) {
        while !self.chunk.is_full() {
            if !self.input.parse_into(&mut self.chunk, &self.memory, self.story_life) {
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
                    self.input.parse_last(&mut self.chunk, &self.memory, self.story_life);
                }
            }
        }
    }

    /// Ends a batch whose client sends nothing for too long.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = || Box::pin(tokio::time::sleep(PATIENCE));
        std::task::ready!(self.patience.get_or_insert_with(sleep).as_mut().poll(cx));
        self.body = None;
        self.chunk.fail(Problem::body_too_slow(), self.input.lines + 1);
        Poll::Ready(())
    }
}

impl Results {
    /// Ends a batch for which there is no memory at all.
    fn give_up(&mut self) {
        self.chunk.fail(Problem::overloaded(), self.input.lines + 1);
        self.body = None;
        self.input = Input::new(&self.memory);
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
                let next = Chunk::new(&self.memory);
                let chunk = std::mem::replace(&mut self.chunk, next);
                self.submitted = Some(Box::pin(submit(self.node.clone(), chunk)));
            }
            if let Some(submitted) = &mut self.submitted {
                let done = std::task::ready!(submitted.as_mut().poll(cx));
                self.submitted = None;
                // What the chunk before held is there again, but for its results.
                self.chunk.starved = false;
                if done.stopped {
                    self.body = None;
                    self.input = Input::new(&self.memory);
                    self.chunk = Chunk::new(&self.memory);
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
                chunk.fail(Problem::line_too_long(BODY_BYTES_MAX), self.lines + 1);
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
            chunk.fail(Problem::overloaded(), self.lines + 1);
        }
        *self = Self::new(memory);
    }
}

/// Commands that are submitted together, and the lines among them that are none.
struct Chunk {
    requests: Vec<node::Request>,
    /// Each with its place among all lines of the chunk and its number in the batch.
    failures: Vec<(usize, u64, Problem)>,
    bytes: usize,
    held: Reservation,
    /// There was no memory for a further line.
    starved: bool,
}

impl Chunk {
    fn new(memory: &RequestMemory) -> Self {
        let (requests, failures) = (Vec::new(), Vec::new());
        Self { requests, failures, bytes: 0, held: memory.empty(), starved: false }
    }

    /// Reserves what a line of so many bytes takes; false if there is no memory for it.
    fn hold(&mut self, bytes: usize, memory: &RequestMemory) -> bool {
        let bytes = self.held.bytes() + LINE_BYTES + 2 * bytes;
        memory.grow(&mut self.held, bytes).is_ok()
    }

    fn lines(&self) -> usize {
        self.requests.len() + self.failures.len()
    }

    fn is_empty(&self) -> bool {
        self.lines() == 0
    }

    fn is_full(&self) -> bool {
        self.lines() >= CHUNK_LINES_MAX || self.bytes >= CHUNK_BYTES || self.starved
    }

    /// Takes in a line; an empty one is nothing.
    fn take(&mut self, line: &[u8], number: u64, story_life: Lifetime) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        self.bytes += line.len();
        match line::parse(line, story_life) {
            Ok(request) => self.requests.push(request),
            Err(problem) => self.fail(problem, number),
        }
    }

    fn fail(&mut self, problem: Problem, number: u64) {
        self.failures.push((self.lines(), number, problem));
    }
}

async fn submit(node: Node, chunk: Chunk) -> Submitted {
    let (lines, commands) = (chunk.lines(), chunk.requests.len());
    let replies = match commands {
        0 => Ok(Vec::new()),
        _ => node.submit_all_waiting(chunk.requests).await,
    };
    let stopped = replies.is_err();
    let mut replies = replies.map(Vec::into_iter);
    let mut failures = chunk.failures.into_iter().peekable();
    let mut out = Vec::with_capacity(lines * 32);
    for place in 0..lines {
        match failures.next_if(|(at, _, _)| *at == place) {
            Some((_, number, problem)) => write_failure(&problem, Some(number), &mut out),
            None => write_reply(&mut replies, &mut out),
        }
    }
    Submitted { results: held_until_sent(out, chunk.held), stopped }
}

fn write_reply(replies: &mut Result<std::vec::IntoIter<Reply>, SubmitError>, out: &mut Vec<u8>) {
    let reply = match replies {
        Ok(replies) => match replies.next() {
            Some(reply) => reply,
            None => unreachable!("the node answers every command"),
        },
        Err(error) => return write_failure(&Problem::from(*error), None, out),
    };
    match reply.outcome {
        Ok(Done::Registered(user)) => write_id(user.0.into(), out),
        Ok(Done::Posted(post)) => write_id(post.0, out),
        Ok(Done::StoryTold { story, .. }) => write_id(story.0, out),
        Ok(Done::Taught { sample }) => write_id(sample.0, out),
        Ok(_) => out.extend_from_slice(b"{\"ok\":true}\n"),
        Err(refusal) => write_failure(&refusal.into(), None, out),
    }
}

fn write_id(id: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"ok\":true,\"id\":\"");
    push_number(id, out);
    out.extend_from_slice(b"\"}\n");
}

fn write_failure(problem: &Problem, line: Option<u64>, out: &mut Vec<u8>) {
    let error = problem.to_json();
    out.extend_from_slice(b"{\"ok\":false,");
    // The rest of an object, without its braces.
    out.extend_from_slice(error.get(1..error.len() - 1).unwrap_or_default());
    if let Some(line) = line {
        out.extend_from_slice(b",\"line\":");
        push_number(line, out);
    }
    out.extend_from_slice(b"}\n");
}
