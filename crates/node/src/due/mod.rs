//! The loop for everything that happens because time passes. It reads the first rows of what is due, and sends a command for
//! each: many at once, and then it awaits their replies. Each command does a bounded part of one thing, and the rows say how
//! far it is. One **pass** goes through all that is due and does a part of each, so nothing waits longer than for one part of
//! everything else, however long something takes or however much is due at one time.
//!
//! Its thread is the [sweeper](crate::sweeper). The simulator takes the same steps without one.

mod read_ahead;
#[cfg(test)]
mod tests;

use feed::{Done, Due, Facts, Refusal, Reply, Stamp};

use crate::inbox::SubmitError;
use crate::shared::{OwnReply, Shared};

/// Commands that are sent before their replies are awaited.
const COMMANDS_AT_ONCE: usize = 64;
/// What failed and is not tried again, at most.
const SKIPPED_MAX: usize = 64;

/// State of the loop.
#[derive(Default)]
pub(crate) struct DueLoop {
    /// Nothing is due before this time, in milliseconds since 1970: so no read walks over rows that were removed before.
    from_ms: u64,
    /// What this pass came to last; none at its beginning.
    last: Option<Due>,
    /// Whether this pass has changed something.
    has_changed: bool,
    sent: Vec<(Due, OwnReply)>,
    /// The rules failed at these. They are tried again after a restart, and nothing else waits for them.
    skipped: Vec<Due>,
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
                Ok(reply) => self.note(due, reply),
                Err(reply) => self.sent.push((due, reply)),
            }
        }
        if self.sent.is_empty() { self.send(shared) } else { DueStep::Waits }
    }

    fn note(&mut self, due: Due, reply: Option<Reply>) {
        match reply.map(|reply| reply.outcome) {
            Some(Ok(Done::DueDone)) => self.has_changed = true,
            Some(Err(Refusal::Internal)) if self.skipped.len() < SKIPPED_MAX => {
                self.skipped.push(due);
            }
            // The time in the log is not that far, another node has done it, or the node is closing.
            _ => {}
        }
    }

    fn send(&mut self, shared: &Shared) -> DueStep {
        let undone = shared.store.undone();
        if undone != std::mem::replace(&mut self.undone, undone) {
            // Rows may be back that were missing when the last reads passed them: the next pass finds them.
            self.from_ms = 0;
        }
        let facts = Facts::new(&shared.store);
        // First: what is written after this was read is due after it.
        let last_ms = facts.totals().last_stamp.map_or(0, Stamp::unix_ms);
        let found = facts.first_due(self.from_ms, self.last, COMMANDS_AT_ONCE);
        if self.last.is_none() {
            self.from_ms = found.first().map_or(last_ms, |first| first.at_ms.min(last_ms));
        }
        let now_ms = shared.log_ms();
        let mut is_end = true;
        for due in found.into_iter().take_while(|due| due.at_ms <= now_ms) {
            is_end = false;
            // Before a read that may find damage: the next pass is not to end there again.
            let before = self.last.replace(due);
            if self.skipped.contains(&due) {
                continue;
            }
            match shared.submit_own(read_ahead::command(facts, due)) {
                Ok(reply) => self.sent.push((due, reply)),
                // What only removes something is accepted.
                Err(SubmitError::DiskFull) => {}
                Err(_) => {
                    self.last = before;
                    if self.sent.is_empty() {
                        return DueStep::Idle;
                    }
                    break;
                }
            }
        }
        if is_end {
            self.last = None;
            if !std::mem::take(&mut self.has_changed) {
                return DueStep::Idle;
            }
        }
        DueStep::Sent(self.sent.len())
    }
}
