//! Where commands wait for the writer: bounded, taken out all at once so that one fsync serves them
//! all.

use std::time::Duration;

use feed::keys::KeyOps;
use feed::{Command, Idempotency, Reply};
use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;
use tokio::sync::{Notify, oneshot};

use crate::keys::{KeyReplies, ReadAt};

/// Bytes of operations on keys that may wait.
const BYTES_MAX: usize = 64 << 20;

/// A command with what makes it happen at most once.
#[derive(Clone, Debug)]
pub struct Request {
    /// What.
    pub command: Command,
    /// At most once, if given.
    pub idempotency: Option<Idempotency>,
}

impl From<Command> for Request {
    fn from(command: Command) -> Self {
        Self { command, idempotency: None }
    }
}

/// Changes of one caller, applied in order and answered together.
pub(crate) enum Submission {
    /// Commands one by one.
    Requests { requests: SmallVec<[Request; 1]>, reply: oneshot::Sender<SmallVec<[Reply; 1]>> },
    /// One command that changes keys.
    Keys { ops: KeyOps, reads: Vec<ReadAt>, reply: oneshot::Sender<KeyReplies> },
}

impl Submission {
    pub(crate) fn commands(&self) -> usize {
        match self {
            Self::Requests { requests, .. } => requests.len(),
            Self::Keys { ops, .. } => ops.len(),
        }
    }

    /// Bytes of what has no small bound of its own.
    fn bytes(&self) -> usize {
        match self {
            Self::Requests { .. } => 0,
            Self::Keys { ops, .. } => ops.bytes(),
        }
    }
}

/// Why a command was not taken in. It has not happened and will not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// Too many commands wait already.
    #[error("the server has too many changes waiting; try again in a second")]
    Busy,
    /// The node is closing.
    #[error("the server is shutting down; try again when it is back")]
    Stopped,
}

/// What the writer finds.
pub(crate) enum Taken {
    /// Submissions were moved to the writer.
    Work,
    /// Nothing came in time.
    Idle,
    /// Nothing is left and nothing will come.
    Closed,
}

/// Commands that wait.
pub(crate) struct Inbox {
    state: Mutex<State>,
    filled: Condvar,
    room: Notify,
    commands_max: usize,
}

#[derive(Default)]
struct State {
    waiting: Vec<Submission>,
    commands: usize,
    bytes: usize,
    closed: bool,
}

impl Inbox {
    /// Holds at most `commands_max` commands.
    pub(crate) fn new(commands_max: usize) -> Self {
        Self {
            state: Mutex::default(),
            filled: Condvar::new(),
            room: Notify::new(),
            commands_max: commands_max.max(1),
        }
    }

    /// Puts a submission in line. One larger than the whole inbox is taken when the inbox is empty.
    pub(crate) fn put(&self, submission: Submission) -> Result<(), (SubmitError, Submission)> {
        let mut state = self.state.lock();
        if state.closed {
            return Err((SubmitError::Stopped, submission));
        }
        let commands = state.commands + submission.commands();
        let bytes = state.bytes + submission.bytes();
        if (commands > self.commands_max || bytes > BYTES_MAX) && !state.waiting.is_empty() {
            return Err((SubmitError::Busy, submission));
        }
        (state.commands, state.bytes) = (commands, bytes);
        state.waiting.push(submission);
        let first = state.waiting.len() == 1;
        drop(state);
        if first {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// As [`Inbox::put`], but waits for room.
    pub(crate) async fn put_waiting(&self, submission: Submission) -> Result<(), SubmitError> {
        let mut submission = submission;
        loop {
            let room = self.room.notified();
            match self.put(submission) {
                Ok(()) => return Ok(()),
                Err((SubmitError::Stopped, _)) => return Err(SubmitError::Stopped),
                Err((SubmitError::Busy, back)) => submission = back,
            }
            room.await;
        }
    }

    /// Moves everything that waits to `out`; waits up to `patience` for the first.
    pub(crate) fn take(&self, out: &mut Vec<Submission>, patience: Duration) -> Taken {
        let mut state = self.state.lock();
        if state.waiting.is_empty() && !state.closed {
            self.filled.wait_for(&mut state, patience);
        }
        if state.waiting.is_empty() {
            return if state.closed { Taken::Closed } else { Taken::Idle };
        }
        std::mem::swap(&mut state.waiting, out);
        (state.commands, state.bytes) = (0, 0);
        drop(state);
        self.room.notify_waiters();
        Taken::Work
    }

    /// Takes no more. What waits is still worked off.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.filled.notify_one();
        self.room.notify_waiters();
    }

    /// How many commands wait.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().commands
    }
}
