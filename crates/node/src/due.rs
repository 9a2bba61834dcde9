//! Ends polls whose time has come, publishes scheduled posts that are due, and notifies of edits, on the thread of the
//! sweeper.
//!
//! Each command concerns one poll or one post, and compares its time with its own stamp, so a command that several nodes
//! send, or one sends twice, does nothing the second time. Many are sent at once, and then their replies are awaited. Those at
//! which the rules failed are not sent again before a restart.

use feed::poll::{PollCommand, PollDone};
use feed::schedule::{ScheduleCommand, ScheduleDone};
use feed::{Command, Done, Facts, Refusal, Stamp, Viewer};

use crate::shared::{OwnReply, Shared};

/// Commands that are sent before their replies are awaited.
const COMMANDS_AT_ONCE: usize = 64;
/// Commands that failed and are not sent again, at most.
const SKIPPED_MAX: usize = 64;
/// Times that so many are sent before stories are swept again.
const ROUNDS_AT_ONCE: usize = 16;

/// No poll ends, and no post is due, before these times, in milliseconds since 1970: so no read walks over rows that were
/// removed before.
#[derive(Default)]
pub(crate) struct DueFrom {
    polls_ms: u64,
    posts_ms: u64,
    /// The stamp of the first edit of which not all are notified.
    edits: u64,
    /// The commands that were sent last.
    sent: Vec<Command>,
    /// The rules failed at these.
    skipped: Vec<Command>,
}

impl DueFrom {
    /// Reads from the beginning again. What is skipped stays so.
    pub(crate) fn begin_again(&mut self) {
        (self.polls_ms, self.posts_ms, self.edits) = (0, 0, 0);
    }
}

impl Shared {
    /// Ends some polls, publishes some posts and notifies of some edits; returns whether there may be more of them. Blocks.
    pub(crate) fn do_due(&self, from: &mut DueFrom) -> bool {
        for _ in 0..ROUNDS_AT_ONCE {
            let replies = self.submit_due(from);
            let mut changes = false;
            for (reply, command) in replies.into_iter().zip(std::mem::take(&mut from.sent)) {
                let replies = reply.blocking_recv().ok();
                match replies.and_then(|replies| Some(replies.first()?.outcome)) {
                    Some(Ok(done)) => changes |= is_change(done),
                    Some(Err(Refusal::Internal)) if from.skipped.len() < SKIPPED_MAX => {
                        from.skipped.push(command);
                    }
                    _ => {}
                }
            }
            // If nothing: the time in the log is not that far, or the node is closing.
            if !changes {
                return false;
            }
        }
        true
    }

    /// Submits the ends of some polls, the publication of some posts, and notices of some edits: those that are due, and that
    /// the inbox accepts.
    pub(crate) fn submit_due(&self, from: &mut DueFrom) -> Vec<OwnReply> {
        let (facts, now_ms) = (Facts::new(&self.store), self.sweep_ms());
        // One that is made later is due after the last stamp.
        let last = facts.totals().last_stamp.unwrap_or(Stamp(0));
        let last_ms = last.unix_ms();
        let mut commands = Vec::new();
        let limit = COMMANDS_AT_ONCE + from.skipped.len();
        let ends = facts.first_poll_ends(from.polls_ms, limit);
        from.polls_ms = ends.first().map_or(last_ms, |(ends_ms, _)| last_ms.min(*ends_ms));
        for (_, post) in ends.into_iter().take_while(|(ends_ms, _)| *ends_ms <= now_ms) {
            // The writer would wait for the disk.
            for voter in facts.notified_next(post) {
                let _ = facts.inbox(voter);
            }
            commands.push(Command::Poll(PollCommand::End { post }));
        }
        let due = facts.first_due(from.posts_ms, limit);
        from.posts_ms = due.first().map_or(last_ms, |(due_ms, ..)| last_ms.min(*due_ms));
        for (_, user, id) in due.into_iter().take_while(|(due_ms, ..)| *due_ms <= now_ms) {
            drop(facts.scheduled(user, id));
            commands.push(Command::Schedule(ScheduleCommand::Publish { user, id }));
        }
        let edits = facts.first_edit_notices(from.edits, limit);
        from.edits = edits.first().map_or(last.0, |(edit, _)| last.0.min(edit.0));
        for (edit, post) in edits {
            for user in facts.edit_notified_next(post) {
                let _ = facts.inbox(user);
                // Blocks and mutes.
                let _ = Viewer::new(facts, Some(user)).notified(post);
            }
            commands.push(Command::NotifyOfEdit { edit, post });
        }
        commands.retain(|command| !from.skipped.contains(command));
        from.sent.clone_from(&commands);
        commands.into_iter().map_while(|command| self.submit_own(command)).collect()
    }
}

fn is_change(done: Done) -> bool {
    matches!(
        done,
        Done::Poll(PollDone::Ended { .. })
            | Done::Schedule(ScheduleDone::Published)
            | Done::EditNotified
    )
}
