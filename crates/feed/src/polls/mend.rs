//! Checks polls: votes by poll and by user must agree, and counts and due rows follow from votes and posts.

use rows::{PointTable, RowsMut, Scan, encode};

use crate::due::DueWork;
use crate::ids::PostId;
use crate::index;
use crate::mend::{Mend, Rows};
use crate::polls::{Poll, PollChoices, PollCounts, PollId};

impl Mend {
    /// Records the poll of a post.
    pub(crate) fn poll_of_post(&mut self, key: u64, poll: &Poll) {
        if poll.id.0 != key {
            self.polls.insert(poll.id.0);
        }
        self.counted.last_stamp = self.counted.last_stamp.max(poll.id.0);
    }

    pub(crate) fn has_poll<R: Scan + RowsMut>(&self, step: &Rows<'_, R>, poll: u64) -> bool {
        let of_post = || step.facts().stored_post(PostId(poll)).and_then(|post| post.poll);
        self.polls.contains(&poll) || of_post().is_some_and(|found| found.id.0 == poll)
    }

    /// Checks a vote in the list of its user.
    pub(crate) fn vote_of_user<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        (owner, poll, number): (u64, u64, u64),
    ) {
        let is_vote = step.is_voter(owner) && PollChoices::of_number(number).is_some();
        let rows = index::of_vote(PollId(poll), owner, number);
        let may_be = is_vote && self.has_poll(step, poll);
        step.put_other(rows, may_be);
    }

    /// Checks a vote in the list of its poll.
    pub(crate) fn vote_of_poll<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        (poll, user, number): (u64, u64, u64),
    ) {
        let rows = index::of_vote(PollId(poll), user, number);
        if !step.is_voter(user) || PollChoices::of_number(number).is_none() {
            step.derived(format!("PollVotes {poll}, {user}: the vote is invalid"));
            index::set(step.rows, rows, false);
            return;
        }
        step.put_index(|| format!("PollVotes {poll}, {user}"), rows);
        if !self.has_poll(step, poll) {
            if step.put_pending(DueWork::SweepVotes { poll: PollId(poll) }) {
                step.derived(format!("PollVotes {poll}: no post has the poll"));
            }
        } else if step.rows.point(PointTable::PollCounts, poll).is_none() {
            self.poll_counts(step, poll);
        }
    }

    /// Checks the counts of a poll.
    pub(crate) fn poll_counts<R: Scan + RowsMut>(&mut self, step: &mut Rows<'_, R>, poll: u64) {
        let mut counts = PollCounts::default();
        if self.has_poll(step, poll) {
            for (_, choices) in step.facts().poll_votes(PollId(poll), 0, usize::MAX) {
                counts.add(choices, true);
            }
        }
        let row = (counts.voters > 0).then(|| encode(&counts));
        if step.put(PointTable::PollCounts, poll, row) {
            step.derived(format!("PollCounts {poll}: {} users voted", counts.voters));
        }
    }
}

impl<R: Scan + RowsMut> Rows<'_, R> {
    fn is_voter(&self, user: u64) -> bool {
        self.user(user).is_some_and(|user| !self.is_erased(user))
    }
}
