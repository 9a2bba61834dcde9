//! Facts about polls: votes by poll and by user, their counts, and voters to notify.
//!
//! A vote changes three rows, and a read of a poll reads one row, regardless of the number of votes. The votes of a
//! poll that no post has any more are removed later, in steps.
//!
//! **Invariant:** the stored counts of the poll of a stored post equal its votes.

use rows::{PointTable, Rows, SetTable, Span, decode};

use crate::due::DueWork;
use crate::facts::{Facts, Txn, user_id};
use crate::ids::{PostId, UserId};
use crate::index::{self, VOTE_ROWS};
use crate::limits;
use crate::polls::{PollChoices, PollCounts, PollId};
use crate::write;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Options chosen by `user`, if they voted.
    #[must_use]
    pub fn vote(&self, poll: PollId, user: UserId) -> Option<PollChoices> {
        let number = self.rows.member(SetTable::PollVotes, poll.0, user.0.into())?;
        PollChoices::of_number(number)
    }

    /// Counts of a poll, without votes of deleted users.
    #[must_use]
    pub fn poll_counts(&self, poll: PollId) -> PollCounts {
        let mut counts = self.stored_poll_counts(poll);
        if counts.voters > 0 {
            for choices in self.erasing().into_iter().filter_map(|user| self.vote(poll, user)) {
                // A vote removed meanwhile may be uncounted already.
                counts.voters = counts.voters.saturating_sub(1);
                for option in choices.iter() {
                    if let Some(votes) = counts.votes.get_mut(option) {
                        *votes = votes.saturating_sub(1);
                    }
                }
            }
        }
        counts
    }

    pub(crate) fn stored_poll_counts(&self, poll: PollId) -> PollCounts {
        let row = self.rows.point(PointTable::PollCounts, poll.0);
        row.map_or_else(PollCounts::default, |row| decode(&row))
    }

    /// Voters of a poll with their choices, from the user `from` on in ascending order of ids: at most `limit`. Some
    /// may be deleted.
    #[must_use]
    pub fn poll_votes(&self, poll: PollId, from: u64, limit: usize) -> Vec<(UserId, PollChoices)> {
        let span = Span { low: from, limit, ..Span::ALL };
        let rows = self.rows.members(SetTable::PollVotes, poll.0, span).into_iter();
        rows.filter_map(|(user, number)| Some((user_id(user)?, PollChoices::of_number(number)?)))
            .collect()
    }

    /// Polls in which a user voted, from `from` on in ascending order of ids: at most `limit`.
    #[must_use]
    pub fn votes_of(&self, user: UserId, from: PollId, limit: usize) -> Vec<PollId> {
        let span = Span { low: from.0, limit, ..Span::ALL };
        let rows = self.rows.members(SetTable::Votes, user.0.into(), span);
        rows.into_iter().map(|(poll, _)| PollId(poll)).collect()
    }

    /// Voters of a post's poll from the user `from` on, as many as one command notifies of its end.
    #[must_use]
    pub fn notified_of_end(&self, post: PostId, from: u64) -> Vec<UserId> {
        let Some(poll) = self.stored_post(post).and_then(|found| found.poll) else {
            return Vec::new();
        };
        let votes = self.poll_votes(poll.id, from, limits::POLL_NOTICES_MAX);
        votes.into_iter().map(|(user, _)| user).collect()
    }
}

impl Txn<'_> {
    /// Stores and counts a vote. `before` has the user's earlier choices, and `choices` the additional ones.
    pub(crate) fn put_vote(
        &mut self,
        poll: PollId,
        user: UserId,
        before: Option<PollChoices>,
        choices: PollChoices,
    ) {
        let all = before.map_or(choices, |before| before.and(choices));
        write::vote(self.rows, poll, user, Some(all));
        self.change_counts(poll, |counts| counts.add(choices, before.is_none()));
    }

    /// Removes the counts of a poll, and schedules the removal of its votes: see [`Txn::sweep_votes`].
    pub(crate) fn forget_votes(&mut self, poll: PollId) {
        self.rows.put_point(PointTable::PollCounts, poll.0, None);
        let one = Span { limit: 1, ..Span::ALL };
        if !self.rows.members(SetTable::PollVotes, poll.0, one).is_empty() {
            self.put_due_now(DueWork::SweepVotes { poll });
        }
    }

    /// Removes votes of a poll that no post has any more, from the user `from` on, with at most `rows` rows. Returns
    /// the first user whose vote may be left, if any.
    pub(crate) fn sweep_votes(&mut self, poll: PollId, from: u64, rows: usize) -> Option<u64> {
        let span = Span { low: from, limit: rows / VOTE_ROWS, ..Span::ALL };
        let found = self.rows.members(SetTable::PollVotes, poll.0, span);
        for (user, _) in &found {
            index::set(self.rows, index::of_vote(poll, *user, 0), false);
        }
        found.last().filter(|_| found.len() >= span.limit).map(|(user, _)| user + 1)
    }

    /// Removes the vote of a deleted user, and uncounts it if the poll exists.
    pub(crate) fn erase_vote(&mut self, poll: PollId, user: UserId) {
        let Some(choices) = self.facts().vote(poll, user) else { return };
        write::vote(self.rows, poll, user, None);
        let is_counted = self.facts().stored_poll_counts(poll).voters > 0;
        if is_counted && !rows::has_bug("count-deleted-voters") {
            self.change_counts(poll, |counts| counts.remove(choices));
        }
    }

    fn change_counts(&mut self, poll: PollId, change: impl FnOnce(&mut PollCounts)) {
        let mut counts = self.facts().stored_poll_counts(poll);
        change(&mut counts);
        write::poll_counts(self.rows, poll, &counts);
    }
}
