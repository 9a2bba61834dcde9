//! Submission of a chunk to the node, and its result lines.

use std::sync::Arc;

use bytes::Bytes;
use edge::held_bytes;
use feed::{Command, Done, Reply};
use node::SubmitError;

use super::Chunk;
use super::line::Change;
use crate::error::ApiError;
use crate::page::push_number;
use crate::state::AppState;

/// Results of a chunk.
pub(super) struct Submitted {
    pub(super) results: Bytes,
    /// Whether the node has stopped accepting commands.
    pub(super) stopped: bool,
}

/// Submits the commands of a chunk, in order, and waits for their results.
pub(super) async fn submit(state: Arc<AppState>, chunk: Chunk) -> Submitted {
    let lines = chunk.lines();
    let follows_many = |change: &Change| matches!(change.command, Command::FollowMany { .. });
    let mut many = chunk.changes.iter().map(follows_many).collect::<Vec<_>>().into_iter();
    let mut run = Run { state: &state, requests: Vec::new(), replies: Vec::new(), stopped: false };
    for change in chunk.changes {
        run.take(change).await;
    }
    run.flush().await;
    let (stopped, mut replies) = (run.stopped, run.replies.into_iter());
    let mut failures = chunk.failures.into_iter().peekable();
    let mut out = Vec::with_capacity(lines * 32);
    for place in 0..lines {
        if let Some((_, number, error)) = failures.next_if(|(at, _, _)| *at == place) {
            write_failure(&error, Some(number), &mut out);
            continue;
        }
        let Some(reply) = replies.next() else { unreachable!("every command has a reply") };
        let of_many = many.next().unwrap_or_default();
        match reply.and_then(|reply| reply.outcome.map_err(ApiError::from)) {
            Ok(done) => write_done(&done, &mut out),
            // A line that follows several users names them in `others`, not in `other`.
            Err(error) if of_many && error.field.as_deref() == Some("other") => {
                write_failure(&error.at("others"), None, &mut out);
            }
            Err(error) => write_failure(&error, None, &mut out),
        }
    }
    Submitted { results: held_bytes(out, chunk.held), stopped }
}

/// Commands of a chunk that are being submitted.
struct Run<'a> {
    state: &'a AppState,
    /// Commands to submit together.
    requests: Vec<node::Request>,
    /// Replies to all earlier commands.
    replies: Vec<Result<Reply, ApiError>>,
    stopped: bool,
}

impl Run<'_> {
    async fn take(&mut self, Change { mut command, key }: Change) {
        let mut idempotency = None;
        if let Some(key) = key {
            if !self.state.try_resolve_users(&mut command) {
                // An earlier line may register the users that this line names.
                self.flush().await;
                if let Err(error) = self.state.resolve_users(&mut command).await {
                    self.replies.push(Err(error));
                    return;
                }
            }
            idempotency = Some(key.digest(&command));
        }
        self.requests.push(node::Request { command, idempotency });
    }

    /// Submits the collected commands, and waits for their replies.
    async fn flush(&mut self) {
        let requests = std::mem::take(&mut self.requests);
        if requests.is_empty() {
            return;
        }
        if self.state.node.is_disk_full() {
            // On a full disk, each line is submitted separately, because lines that remove something are still
            // accepted.
            for request in requests {
                self.submit(vec![request]).await;
            }
        } else {
            self.submit(requests).await;
        }
    }

    async fn submit(&mut self, requests: Vec<node::Request>) {
        let commands = requests.len();
        match self.state.node.submit_all(requests).await {
            Ok(replies) => self.replies.extend(replies.into_iter().map(Ok)),
            Err(error) => {
                self.stopped |= error != SubmitError::DiskFull;
                self.replies.extend((0..commands).map(|_| Err(error.into())));
            }
        }
    }
}

fn write_done(done: &Done, out: &mut Vec<u8>) {
    match done {
        Done::Registered(user) => write_id(user.0.into(), out),
        Done::Posted(post) => write_id(post.0, out),
        Done::StoryPosted { story, .. } => write_id(story.0, out),
        Done::SampleAdded { sample } => write_id(sample.0, out),
        _ => out.extend_from_slice(b"{\"ok\":true}\n"),
    }
}

fn write_id(id: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"ok\":true,\"id\":\"");
    push_number(id, out);
    out.extend_from_slice(b"\"}\n");
}

fn write_failure(error: &ApiError, line: Option<u64>, out: &mut Vec<u8>) {
    error.log("");
    let error = error.to_json("");
    out.extend_from_slice(b"{\"ok\":false,");
    // The fields of the error, without the braces of the object.
    out.extend_from_slice(error.get(1..error.len() - 1).unwrap_or_default());
    if let Some(line) = line {
        out.extend_from_slice(b",\"line\":");
        push_number(line, out);
    }
    out.extend_from_slice(b"}\n");
}
