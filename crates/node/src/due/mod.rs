//! The loop for everything that happens because time passes. It reads the first rows of what is due, and sends a command for
//! each: many at once, and then it awaits their replies. Each command does a bounded part of one thing, and the rows say how
//! far it is. One **pass** goes through all that is due and does a part of each, so nothing waits longer than for one part of
//! everything else, however long something takes or however much is due at one time.
//!
//! Its thread is the [sweeper](crate::due::sweeper). The simulator takes the same steps without one. Read this file, `pass`, then `read_ahead`.

mod pass;
mod read_ahead;
pub(crate) mod sweeper;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::Duration;

use feed::{Done, Due, Facts, Refusal, Reply, Stamp};

use crate::shared::{OwnReply, Shared};
use crate::submission::inbox::SubmitError;

use pass::Pass;

/// Commands that are sent before their replies are awaited: with more of them a group takes so long that the changes of users
/// wait (`runs/2026-11-27-due`).
const COMMANDS_AT_ONCE: usize = 16;
/// Pause after which it looks again for what is due; and after which something is tried again that was not done.
pub(crate) const PACE: Duration = Duration::from_millis(250);
/// Number of rows that are not tried again for a while, at most; others are tried in the next pass, which comes after many
/// commands then.
const DELAYED_MAX: usize = 1_024;

/// State of the loop.
#[derive(Default)]
pub(crate) struct DueLoop {
    pass: Pass,
    /// Whether this pass has changed something.
    has_changed: bool,
    sent: Vec<(Due, OwnReply)>,
    /// Rows that were not done, until when they are not tried again, by [`crate::Clock`]'s elapsed time.
    delayed: HashMap<Due, Duration>,
    is_overtaken: bool,
    /// Whether a row was found that cannot be read.
    is_unreadable: bool,
    /// The store's number of changes that were taken back, when the pass began.
    undone: u64,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DueStep {
    /// Replies have not come yet.
    Waits,
    /// So many commands were sent, and there may be more to do.
    Sent(usize),
    /// Nothing more is due, or the node accepts nothing now.
    Idle,
}

/// The reply to a command, or the receiver if it has not come yet; none if there will be no reply.
pub(crate) type Received = Result<Option<Reply>, OwnReply>;

/// Waits for a reply. Blocks.
pub(crate) fn wait(reply: OwnReply) -> Received {
    Ok(reply.blocking_recv().ok().and_then(|replies| replies.first().copied()))
}

impl DueLoop {
    /// Takes the replies that have come; once all have, sends the next commands. May block.
    pub(crate) fn step(
        &mut self,
        shared: &Shared,
        receive: impl Fn(OwnReply) -> Received,
    ) -> DueStep {
        for (due, reply) in std::mem::take(&mut self.sent) {
            match receive(reply) {
                Ok(reply) => self.note(due, reply, shared.time.elapsed()),
                Err(reply) => self.sent.push((due, reply)),
            }
        }
        if self.sent.is_empty() { self.send(shared) } else { DueStep::Waits }
    }

    /// Whether another loop has done a part of a row that this one was about to do, so that more of it may be left.
    pub(crate) fn is_overtaken(&self) -> bool {
        self.is_overtaken
    }

    fn note(&mut self, due: Due, reply: Option<Reply>, now: Duration) {
        match reply.map(|reply| reply.outcome) {
            Some(Ok(Done::DueDone)) => {
                self.has_changed = true;
                return;
            }
            // The rules fail at it. It is tried again after a restart, and nothing else waits for it.
            Some(Err(Refusal::Internal)) => self.pass.skip(due),
            // The time in the log is not that far, or another loop has done this part since the row was read.
            Some(Ok(Done::NotDue)) => self.is_overtaken = true,
            // The node is closing.
            _ => {}
        }
        self.delay(due, now);
    }

    fn delay(&mut self, due: Due, now: Duration) {
        if self.delayed.len() < DELAYED_MAX {
            self.delayed.insert(due, now + PACE);
        }
    }

    fn send(&mut self, shared: &Shared) -> DueStep {
        let undone = shared.store.undone();
        if undone != std::mem::replace(&mut self.undone, undone) {
            // Rows may be back that were missing when the last reads passed them: the next pass finds them.
            self.pass.restart();
        }
        let facts = Facts::new(&shared.store);
        // First: what is written after this was read is due after it.
        let last_ms = facts.totals().last_stamp.map_or(0, Stamp::unix_ms);
        if self.pass.begin(last_ms) {
            let now = shared.time.elapsed();
            self.delayed.retain(|_, until| *until > now);
        }
        // Each is taken before a read that may find damage: the next step is not to end there again.
        while let Some(due) = self.pass.by_name() {
            if !facts.is_due(due) {
                self.pass.forget(due);
            } else if !self.submit(shared, due) {
                self.pass.retry(due);
                return self.sent();
            }
        }
        if !self.sent.is_empty() {
            return self.sent();
        }
        let (from_ms, last) = (self.pass.from_ms, self.pass.last);
        let found = facts.first_due_or(from_ms, last, COMMANDS_AT_ONCE, |name| {
            if !std::mem::replace(&mut self.is_unreadable, true) {
                tracing::error!(?name, "a row of what is due cannot be read; it is passed over");
            }
        });
        let now_ms = shared.log_ms();
        self.pass.found(&found, now_ms);
        let mut is_end = true;
        for due in found.into_iter().take_while(|due| due.at_ms <= now_ms) {
            is_end = false;
            let before = self.pass.last.replace(due);
            if !self.pass.passes_over(due) && !self.submit(shared, due) {
                self.pass.last = before;
                return self.sent();
            }
        }
        if is_end {
            self.pass.end();
            if !std::mem::take(&mut self.has_changed) {
                // What comes next is after a pause.
                self.delayed.clear();
                return DueStep::Idle;
            }
        }
        DueStep::Sent(self.sent.len())
    }

    /// Sends the command for a row; false if the node accepts none now.
    fn submit(&mut self, shared: &Shared, due: Due) -> bool {
        if self.delayed.contains_key(&due) {
            return true;
        }
        match shared.submit_own(read_ahead::command(Facts::new(&shared.store), due)) {
            Ok(reply) => self.sent.push((due, reply)),
            // What only removes something is accepted.
            Err(SubmitError::DiskFull) => self.delay(due, shared.time.elapsed()),
            Err(_) => return false,
        }
        true
    }

    /// The step that has sent what the node accepted.
    fn sent(&self) -> DueStep {
        match self.sent.len() {
            0 => DueStep::Idle,
            commands => DueStep::Sent(commands),
        }
    }
}
