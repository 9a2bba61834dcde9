//! Queue of changes for the writer, which takes all of them at once so that one fsync serves them all.
//!
//! **Invariant:** all submissions without a reply, in the inbox or taken from it, are within the bounds.

use std::time::Duration;

use feed::{Reply, Request};
use kv::KeyOps;
use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;
use tokio::sync::{Notify, oneshot};

use super::{Answer, Changes, KeyReplies, ReadAt, Submission};

/// Maximum size of pending operations on keys, in bytes.
pub(crate) const BYTES_MAX: usize = 64 << 20;
/// Maximum size of pending operations on keys that are not short, in bytes. The remaining bytes are for short ones.
const LONG_BYTES_MAX: usize = BYTES_MAX / 4 * 3;
/// Maximum size of a short submission, in bytes.
const SHORT_BYTES: usize = 64 << 10;
/// Recipient of the reply to a submission.
pub(crate) struct Ticket {
    reply_to: ReplyTo,
    size: Size,
}

enum ReplyTo {
    Requests(oneshot::Sender<SmallVec<[Reply; 1]>>),
    Keys(oneshot::Sender<KeyReplies>),
}

/// Size of a pending submission.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Size {
    commands: usize,
    bytes: usize,
}

impl std::ops::AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        self.commands += other.commands;
        self.bytes += other.bytes;
    }
}

impl Ticket {
    /// Returns the size of the submission, for [`Inbox::release`].
    pub(crate) fn size(&self) -> Size {
        self.size
    }

    /// Sends the answer; does nothing if the caller no longer waits.
    pub(crate) fn answer(self, answer: Answer) {
        match (self.reply_to, answer) {
            (ReplyTo::Requests(reply), Answer::Requests(replies)) => drop(reply.send(replies)),
            (ReplyTo::Keys(reply), Answer::Keys(replies)) => drop(reply.send(replies)),
            _ => unreachable!("an answer is of the kind of its submission"),
        }
    }
}

impl Submission<Ticket> {
    /// Creates a submission of commands, and the receiver of their replies.
    pub(crate) fn of_requests(
        requests: SmallVec<[Request; 1]>,
    ) -> (Self, oneshot::Receiver<SmallVec<[Reply; 1]>>) {
        let (reply, replies) = oneshot::channel();
        let size = Size { commands: requests.len(), bytes: 0 };
        let ticket = Ticket { reply_to: ReplyTo::Requests(reply), size };
        (Self { changes: Changes::Requests(requests), ticket }, replies)
    }

    /// Creates a submission of operations on keys, and the receiver of their replies.
    pub(crate) fn of_keys(
        ops: KeyOps,
        reads: Vec<ReadAt>,
    ) -> (Self, oneshot::Receiver<KeyReplies>) {
        let (reply, replies) = oneshot::channel();
        let size = Size { commands: ops.len(), bytes: ops.bytes() };
        let ticket = Ticket { reply_to: ReplyTo::Keys(reply), size };
        (Self { changes: Changes::Keys { ops, reads }, ticket }, replies)
    }
}

/// Reason why a command was not accepted. Except for [`SubmitError::Unconfirmed`], it was not applied and will not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// Too many commands are pending.
    #[error("the server has too many pending changes; try again in a second")]
    Busy,
    /// The disk is full and the change is not a deletion, or even the reserved space is used up.
    #[error("the disk of the server is full; delete data, or free space on the disk")]
    DiskFull,
    /// The log of the cluster cannot be written now.
    #[error(
        "the log of the cluster cannot be written now, and the change was not made; try again in a second"
    )]
    NoLog,
    /// The log of the cluster has not confirmed the change in time. It may still be made.
    #[error("the log of the cluster has not confirmed the change in time; it may still be made")]
    Unconfirmed,
    /// A node of the cluster runs an earlier version, which cannot apply the change.
    #[error(
        "a node of the cluster runs an earlier version that cannot apply this change, so it was not made; update all nodes"
    )]
    Upgrading,
    /// The change depends on an unreadable row.
    #[error("the server cannot read the data for this change: its disk is damaged")]
    Unreadable,
    /// The node is closing.
    #[error("the server is shutting down; try again after the restart")]
    Stopped,
}

/// Result of [`Inbox::take`].
pub(crate) enum Wakeup {
    /// Submissions were moved to the writer.
    Work,
    /// No submission came in time.
    Idle,
    /// The inbox is closed and empty.
    Closed,
}

/// Submissions that wait for the writer.
pub(crate) struct Inbox {
    state: Mutex<State>,
    filled: Condvar,
    room: Notify,
    commands_max: usize,
}

#[derive(Default)]
struct State {
    waiting: Vec<Submission<Ticket>>,
    /// Size of everything that is not answered.
    under_way: Size,
    closed: bool,
    /// Whether the writer has work outside the inbox.
    woken: bool,
}

impl Inbox {
    /// Creates an inbox for at most `commands_max` pending commands.
    pub(crate) fn new(commands_max: usize) -> Self {
        Self {
            state: Mutex::default(),
            filled: Condvar::new(),
            room: Notify::new(),
            commands_max: commands_max.max(1),
        }
    }

    /// Adds a submission to the queue. If nothing is pending, even a submission that is larger than the whole inbox is
    /// accepted.
    pub(crate) fn put(
        &self,
        submission: Submission<Ticket>,
    ) -> Result<(), (SubmitError, Box<Submission<Ticket>>)> {
        let mut state = self.state.lock();
        if state.closed {
            return Err((SubmitError::Stopped, Box::new(submission)));
        }
        let idle = state.under_way.commands == 0;
        let mut sum = state.under_way;
        sum += submission.ticket.size;
        let is_short = submission.ticket.size.bytes <= SHORT_BYTES;
        let is_full = sum.commands > self.commands_max
            || sum.bytes > if is_short { BYTES_MAX } else { LONG_BYTES_MAX };
        if is_full && !idle {
            return Err((SubmitError::Busy, Box::new(submission)));
        }
        state.under_way = sum;
        state.waiting.push(submission);
        let first = state.waiting.len() == 1;
        drop(state);
        if first {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Adds a submission like [`Inbox::put`], but waits for room.
    pub(crate) async fn put_waiting(
        &self,
        submission: Submission<Ticket>,
    ) -> Result<(), SubmitError> {
        let mut submission = submission;
        loop {
            let room = self.room.notified();
            match self.put(submission) {
                Ok(()) => return Ok(()),
                Err((SubmitError::Busy, back)) => submission = *back,
                Err((error, _)) => return Err(error),
            }
            room.await;
        }
    }

    /// Moves all submissions to `out`; waits up to `patience` for the first one or for [`Inbox::wake`].
    pub(crate) fn take(&self, out: &mut Vec<Submission<Ticket>>, patience: Duration) -> Wakeup {
        let mut state = self.state.lock();
        if state.waiting.is_empty() && !state.closed && !state.woken {
            self.filled.wait_for(&mut state, patience);
        }
        state.woken = false;
        if state.waiting.is_empty() {
            return if state.closed { Wakeup::Closed } else { Wakeup::Idle };
        }
        std::mem::swap(&mut state.waiting, out);
        Wakeup::Work
    }

    /// Ends the present or next wait of the writer.
    pub(crate) fn wake(&self) {
        let mut state = self.state.lock();
        if !std::mem::replace(&mut state.woken, true) {
            self.filled.notify_one();
        }
    }

    /// Frees the room of submissions that are about to be answered.
    pub(crate) fn release(&self, answered: Size) {
        let mut state = self.state.lock();
        state.under_way.commands -= answered.commands;
        state.under_way.bytes -= answered.bytes;
        drop(state);
        self.room.notify_waiters();
    }

    /// Stops accepting submissions. The queued ones are still applied.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.filled.notify_one();
        self.room.notify_waiters();
    }

    /// Returns the number of pending commands.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().under_way.commands
    }
}

#[cfg(test)]
mod tests {
    use kv::{BucketId, Bytes, KeyOp};

    use super::*;

    #[test]
    fn long_values_leave_room_for_short_ones() {
        let inbox = Inbox::new(1_000);
        let put = |bytes: usize| {
            let (key, value) = (Bytes::new(b"k"), vec![b'v'; bytes]);
            let bytes = Bytes::new(&value);
            let op = KeyOp::SetRange { bucket: BucketId(0), key, offset: 0, bytes };
            let (submission, _reply) = Submission::of_keys([op].into_iter().collect(), Vec::new());
            inbox.put(submission).is_ok()
        };
        let long = (0..64).take_while(|_| put(1 << 20)).count();
        assert_eq!(long, 47);
        assert!(put(1_000), "a short one has room");
    }
}
