//! Ends polls whose time has come, publishes scheduled posts that are due, and notifies of edits, on the thread of the
//! sweeper.
//!
//! Each command concerns one poll or one post, and compares its time with its own stamp, so a command that several nodes
//! send, or one sends twice, does nothing the second time. Many are sent at once, and then their replies are awaited.

use feed::poll::{PollCommand, PollDone};
use feed::schedule::{ScheduleCommand, ScheduleDone};
use feed::{Command, Done, Facts, Stamp, Viewer};

use crate::shared::{OwnReply, Shared};

/// Commands that are sent before their replies are awaited.
const COMMANDS_AT_ONCE: usize = 64;
/// Times that so many are sent before stories are swept again.
const ROUNDS_AT_ONCE: usize = 16;

/// No poll ends, and no post is due, before these times, in milliseconds since 1970: so no read walks over rows that were
/// removed before.
#[derive(Clone, Copy, Default)]
pub(crate) struct DueFrom {
    polls_ms: u64,
    posts_ms: u64,
    /// The stamp of the first edit of which not all are notified.
    edits: u64,
}

impl Shared {
    /// Ends some polls, publishes some posts and notifies of some edits; returns whether there may be more of them. Blocks.
    pub(crate) fn do_due(&self, from: &mut DueFrom) -> bool {
        for _ in 0..ROUNDS_AT_ONCE {
            let replies = self.submit_due(from).into_iter();
            let done = replies.filter_map(|reply| reply.blocking_recv().ok());
            let changed = done.filter(|replies| {
                let outcome = replies.first().and_then(|reply| reply.outcome.ok());
                outcome.is_some_and(is_change)
            });
            // If none: the time in the log is not that far, or the node is closing.
            if changed.count() == 0 {
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
        let ends = facts.first_poll_ends(from.polls_ms, COMMANDS_AT_ONCE);
        from.polls_ms = ends.first().map_or(last_ms, |(ends_ms, _)| last_ms.min(*ends_ms));
        for (_, post) in ends.into_iter().take_while(|(ends_ms, _)| *ends_ms <= now_ms) {
            // The writer would wait for the disk.
            for voter in facts.notified_next(post) {
                let _ = facts.inbox(voter);
            }
            commands.push(Command::Poll(PollCommand::End { post }));
        }
        let due = facts.first_due(from.posts_ms, COMMANDS_AT_ONCE);
        from.posts_ms = due.first().map_or(last_ms, |(due_ms, ..)| last_ms.min(*due_ms));
        for (_, user, id) in due.into_iter().take_while(|(due_ms, ..)| *due_ms <= now_ms) {
            drop(facts.scheduled(user, id));
            commands.push(Command::Schedule(ScheduleCommand::Publish { user, id }));
        }
        let edits = facts.first_edit_notices(from.edits, COMMANDS_AT_ONCE);
        from.edits = edits.first().map_or(last.0, |(edit, _)| last.0.min(edit.0));
        for (edit, post) in edits {
            for user in facts.edit_notified_next(post) {
                let _ = facts.inbox(user);
                // Blocks and mutes.
                let _ = Viewer::new(facts, Some(user)).notified(post);
            }
            commands.push(Command::NotifyOfEdit { edit, post });
        }
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
