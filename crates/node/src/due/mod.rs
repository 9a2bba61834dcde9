//! Loop for scheduled work. It reads the first due rows, sends commands for several of them at once, and awaits the
//! replies. Each command does a bounded part of one item, and the item's row records the progress. One **pass** does a
//! part of every due item, so an item waits at most for one part of each other item, however long an item takes or
//! however many are due.
//!
//! The thread of the loop is the [sweeper](crate::due::sweeper); the simulator takes the same steps without a thread.
//! Read this file, `pass`, then `read_ahead`.

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

/// Maximum number of commands that are sent before their replies are awaited: more would make a group so long that the
/// changes of users wait (`runs/2026-11-27-due`).
const COMMANDS_AT_ONCE: usize = 16;
/// Pause before the loop checks for due work again, and before failed work is retried.
pub(crate) const PACE: Duration = Duration::from_millis(250);
/// Maximum number of rows whose retry is delayed. Further rows are retried in the next pass, which comes after many
/// commands.
const DELAYED_MAX: usize = 1_024;

/// State of the loop.
#[derive(Default)]
pub(crate) struct DueLoop {
    pass: Pass,
    /// Whether this pass has changed something.
    has_changed: bool,
    sent: Vec<(Due, OwnReply)>,
    /// Rows that were not done, each with the time before which it is not retried, by [`crate::Clock`]'s elapsed time.
    delayed: HashMap<Due, Duration>,
    is_overtaken: bool,
    /// Whether an unreadable row was found.
    is_unreadable: bool,
    /// The store's number of undone commands at the begin of the pass.
    undone: u64,
}

/// Result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DueStep {
    /// Replies are still pending.
    Waits,
    /// Number of commands that were sent; there may be more to do.
    Sent(usize),
    /// No more work is due, or the node accepts no commands now.
    Idle,
}

/// Reply to a command, or the receiver if it is still pending; `None` if there will be no reply.
pub(crate) type Received = Result<Option<Reply>, OwnReply>;

/// Waits for a reply. Blocks.
pub(crate) fn wait(reply: OwnReply) -> Received {
    Ok(reply.blocking_recv().ok().and_then(|replies| replies.first().copied()))
}

impl DueLoop {
    /// Takes the replies that have arrived; when none is pending, sends the next commands. May block.
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

    /// Whether another loop has done work that this loop was about to do. If so, there may be more work.
    pub(crate) fn is_overtaken(&self) -> bool {
        self.is_overtaken
    }

    fn note(&mut self, due: Due, reply: Option<Reply>, now: Duration) {
        match reply.map(|reply| reply.outcome) {
            Some(Ok(Done::DueDone)) => {
                self.has_changed = true;
                return;
            }
            // The rules fail at this row. It is retried only after a restart, so that it delays nothing else.
            Some(Err(Refusal::Internal)) => self.pass.skip(due),
            // The log's time is earlier, or another loop has done this part since the row was read.
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
            // Undone commands may have restored rows, which a new pass finds.
            self.pass.restart();
        }
        let facts = Facts::new(&shared.store);
        // The last stamp is read first, because later writes are due after it.
        let last_ms = facts.totals().last_stamp.map_or(0, Stamp::unix_ms);
        if self.pass.begin(last_ms) {
            let now = shared.time.elapsed();
            self.delayed.retain(|_, until| *until > now);
        }
        // Rows are taken from this list before they are read, so that after damage the next step does not fail at the
        // same row.
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
                // The next pass comes after a pause.
                self.delayed.clear();
                return DueStep::Idle;
            }
        }
        DueStep::Sent(self.sent.len())
    }

    /// Sends the command for a row; returns false if the node accepts none now.
    fn submit(&mut self, shared: &Shared, due: Due) -> bool {
        if self.delayed.contains_key(&due) {
            return true;
        }
        match shared.submit_own(read_ahead::command(Facts::new(&shared.store), due)) {
            Ok(reply) => self.sent.push((due, reply)),
            // Commands that only remove data are accepted.
            Err(SubmitError::DiskFull) => self.delay(due, shared.time.elapsed()),
            Err(_) => return false,
        }
        true
    }

    /// Returns the step for the commands that the node accepted.
    fn sent(&self) -> DueStep {
        match self.sent.len() {
            0 => DueStep::Idle,
            commands => DueStep::Sent(commands),
        }
    }
}
