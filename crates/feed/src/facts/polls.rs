//! Facts about polls: votes by poll and by user, how they are counted, and which polls are about to end.
//!
//! A vote changes three rows, however many there are, and a read of a poll is one row. The votes of a poll that no post
//! has any more are removed later, in pieces.
//!
//! **Invariant:** the poll of a post that is stored counts its votes.

use rows::{NameTable, PointTable, Rows, SetTable, Span, decode};

use super::{Facts, Txn};
use crate::ids::{PostId, UserId};
use crate::limits;
use crate::poll::{Poll, PollChoices, PollCounts, PollId};
use crate::write;

/// Rows of a vote: of its poll, and of its user.
pub(crate) const VOTE_ROWS: usize = 2;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// What `user` chose in a poll, if they voted.
    #[must_use]
    pub fn vote(&self, poll: PollId, user: UserId) -> Option<PollChoices> {
        let number = self.rows.member(SetTable::PollVotes, poll.0, user.0.into())?;
        PollChoices::of_number(number)
    }

    /// Votes of a poll, without those of deleted users.
    #[must_use]
    pub fn poll_counts(&self, poll: PollId) -> PollCounts {
        let mut counts = self.stored_poll_counts(poll);
        if counts.voters > 0 {
            for choices in self.erasing().into_iter().filter_map(|user| self.vote(poll, user)) {
                // What is removed meanwhile may be counted in neither.
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

    /// The users from `from` on who voted in a poll, in ascending order of ids, and what they chose: at most `limit`. Some
    /// may be deleted.
    #[must_use]
    pub fn poll_votes(&self, poll: PollId, from: u64, limit: usize) -> Vec<(UserId, PollChoices)> {
        let span = Span { low: from, limit, ..Span::ALL };
        let rows = self.rows.members(SetTable::PollVotes, poll.0, span).into_iter();
        rows.filter_map(|(user, number)| {
            Some((super::user_id(user)?, PollChoices::of_number(number)?))
        })
        .collect()
    }

    /// The polls from `from` on in which a user voted, in ascending order of ids: at most `limit`.
    #[must_use]
    pub fn votes_of(&self, user: UserId, from: PollId, limit: usize) -> Vec<PollId> {
        let span = Span { low: from.0, limit, ..Span::ALL };
        let rows = self.rows.members(SetTable::Votes, user.0.into(), span);
        rows.into_iter().map(|(poll, _)| PollId(poll)).collect()
    }

    /// The first polls that end at `from_ms` or later, in milliseconds since 1970, or have ended and whose voters are not
    /// all notified, each with the time of its end: at most `limit`.
    #[must_use]
    pub fn first_poll_ends(&self, from_ms: u64, limit: usize) -> Vec<(u64, PostId)> {
        let names = self.rows.first_names(NameTable::PollEnd, &from_ms.to_be_bytes(), limit);
        names.iter().filter_map(|name| write::read_poll_end(name)).collect()
    }

    /// Who is notified next that a poll has ended: none if all are; within it none if nobody is, not even the author.
    pub(crate) fn poll_end(&self, post: PostId, poll: &Poll) -> Option<Option<u64>> {
        let row = self.rows.name(NameTable::PollEnd, &write::poll_end_key(poll.ends_ms, post))?;
        Some(if row.is_empty() { None } else { rows::try_decode(&row) })
    }

    /// Whom the next command about the end of a poll notifies, besides its author.
    #[must_use]
    pub fn notified_next(&self, post: PostId) -> Vec<UserId> {
        let found = self.stored_post(post).and_then(|found| found.poll);
        let next = found.and_then(|poll| Some((self.poll_end(post, &poll)?, poll.id)));
        let Some((next, poll)) = next else { return Vec::new() };
        let votes = self.poll_votes(poll, next.unwrap_or(0), limits::POLL_NOTICES_MAX);
        votes.into_iter().map(|(user, _)| user).collect()
    }

    /// The first poll that no post has any more, from `from` on, whose votes are not all removed.
    #[must_use]
    pub fn swept_poll(&self, from: PollId) -> Option<PollId> {
        let span = Span { low: from.0, limit: 1, ..Span::ALL };
        let rows = self.rows.members(SetTable::SweptPosts, 1, span);
        rows.first().map(|(poll, _)| PollId(*poll))
    }

    pub(crate) fn is_swept_poll(&self, poll: PollId) -> bool {
        self.rows.member(SetTable::SweptPosts, 1, poll.0).is_some()
    }
}

impl Txn<'_> {
    /// Stores a vote for options that the user has not chosen `before`, and counts it.
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

    /// Stores that the poll of a post ends, and that nobody is notified of it.
    pub(crate) fn put_poll_end(&mut self, post: PostId, poll: &Poll) {
        write::poll_end(self.rows, (post, poll.ends_ms), Some(None));
    }

    /// Stores up to whom users are notified that a poll has ended; without `next`, that all are.
    pub(crate) fn notified_of_end(&mut self, post: PostId, poll: &Poll, next: Option<u64>) {
        write::poll_end(self.rows, (post, poll.ends_ms), next.map(Some));
    }

    /// What a post had before an edit is another poll, or ends at another time.
    pub(crate) fn replace_poll(&mut self, post: PostId, old: Option<&Poll>, new: Option<&Poll>) {
        let end = |poll: &Poll| (poll.id, poll.ends_ms);
        if old.map(end) == new.map(end) {
            return;
        }
        if let Some(old) = old {
            write::poll_end(self.rows, (post, old.ends_ms), None);
            if new.is_none_or(|new| new.id != old.id) {
                self.forget_votes(old.id);
            }
        }
        new.into_iter().for_each(|new| self.put_poll_end(post, new));
    }

    /// Removes the poll of a post that is deleted.
    pub(super) fn remove_poll(&mut self, post: PostId, poll: &Poll) {
        self.replace_poll(post, Some(poll), None);
    }

    /// Leaves the votes of a poll to [`Txn::sweep_votes`].
    fn forget_votes(&mut self, poll: PollId) {
        self.rows.put_point(PointTable::PollCounts, poll.0, None);
        let one = Span { limit: 1, ..Span::ALL };
        if !self.rows.members(SetTable::PollVotes, poll.0, one).is_empty() {
            self.rows.put_member(SetTable::SweptPosts, 1, poll.0, Some(0));
        }
    }

    /// Removes votes of a poll that no post has any more, from that of the user `from` on, with at most `rows` rows.
    pub(crate) fn sweep_votes(&mut self, poll: PollId, from: u64, rows: usize) {
        let span = Span { low: from, limit: rows / VOTE_ROWS, ..Span::ALL };
        let found = self.rows.members(SetTable::PollVotes, poll.0, span);
        for (user, _) in &found {
            self.rows.put_member(SetTable::PollVotes, poll.0, *user, None);
            self.rows.put_member(SetTable::Votes, *user, poll.0, None);
        }
        if found.len() < span.limit {
            self.rows.put_member(SetTable::SweptPosts, 1, poll.0, None);
        }
    }

    /// Removes the vote of a deleted user, and counts it if the poll exists.
    pub(crate) fn erase_vote(&mut self, poll: PollId, user: UserId) {
        let Some(choices) = self.facts().vote(poll, user) else { return };
        write::vote(self.rows, poll, user, None);
        if self.facts().stored_poll_counts(poll).voters > 0 {
            self.change_counts(poll, |counts| counts.remove(choices));
        }
    }

    fn change_counts(&mut self, poll: PollId, change: impl FnOnce(&mut PollCounts)) {
        let mut counts = self.facts().stored_poll_counts(poll);
        change(&mut counts);
        write::poll_counts(self.rows, poll, &counts);
    }
}
