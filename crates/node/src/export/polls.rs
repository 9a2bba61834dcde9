//! Export of votes and scheduled posts.

use std::io::{self, Write};

use feed::{PollId, ScheduledId};

use super::lines::Line;
use super::poll_lines::{Scheduled, Vote};
use super::{Export, STRIDE, existing};

impl<W: Write> Export<'_, W> {
    /// Writes the votes in the poll of the preceding post.
    pub(super) fn votes(&mut self, poll: PollId) -> io::Result<()> {
        let mut from = Some(0);
        while let Some(first) = from {
            let votes = self.facts().poll_votes(poll, first, STRIDE);
            let last = votes.last().filter(|_| votes.len() >= STRIDE);
            from = last.map(|(user, _)| u64::from(user.0) + 1);
            for (user, choices) in votes {
                if !self.facts().is_being_erased(user) {
                    self.counts.votes += 1;
                    let choices = choices.iter().collect();
                    self.out.line(&Line::Vote(Vote { user: user.into(), choices }))?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn scheduled(&mut self) -> io::Result<()> {
        let facts = feed::Facts::new(self.store);
        for user in existing(facts) {
            for id in facts.scheduled_of(user, ScheduledId(0), usize::MAX) {
                if let Some(post) = facts.scheduled(user, id) {
                    self.counts.scheduled += 1;
                    let line = Scheduled::new(facts, (user, id), &post);
                    self.counts.pictures += line.media.len() as u64;
                    self.out.line(&Line::Scheduled(Box::new(line)))?;
                }
            }
        }
        Ok(())
    }
}
