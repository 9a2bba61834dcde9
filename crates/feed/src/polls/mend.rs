//! Checks polls and scheduled posts: votes by poll and by user must agree, counts and due rows follow from votes and
//! posts, and authors of scheduled posts must exist.

use rows::{NameTable, PointTable, RowsMut, Scan, encode, try_decode};

use crate::due::DueWork;
use crate::ids::{PostId, ScheduledId, UserId, UserRef};
use crate::index;
use crate::media::MediaUse;
use crate::mend::{From, Mend, Rows, at};
use crate::polls::{Poll, PollChoices, PollCounts, PollId};
use crate::schedule::ScheduledPost;
use crate::write;

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

    /// Checks scheduled posts, whose authors and pictures must exist.
    pub(crate) fn scheduled<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        from: &[u8],
    ) -> Option<From> {
        let last_stamp = &mut self.counted.last_stamp;
        step.each_name(NameTable::Scheduled, from, |step, name, value| {
            let found = read_key(name).zip(try_decode::<ScheduledPost>(value));
            let Some(((user, id), post)) = found else { return };
            *last_stamp = (*last_stamp).max(id.0);
            step.one_scheduled((user, id), &post);
        })
    }
}

impl<R: Scan + RowsMut> Rows<'_, R> {
    fn is_voter(&self, user: u64) -> bool {
        self.user(user).is_some_and(|user| !self.is_gone(user))
    }

    fn one_scheduled(&mut self, (user, id): (UserId, ScheduledId), post: &ScheduledPost) {
        let what = format!("scheduled post {} of user {}", at(id.0), user.0);
        let exists = self.user(user.0.into()).is_some_and(|user| !self.is_gone(user));
        if !exists || post.draft.author != UserRef::Id(user) {
            self.lost(format!("{what}: there is no such user"));
            self.remove_scheduled((user, id), post);
            return;
        }
        let is_held = |media: &crate::media::MediaId| {
            let found = self.facts().media(*media);
            found.is_some_and(|found| found.owner == user && found.used == MediaUse::Scheduled(id))
        };
        let media: Vec<_> = post.draft.media.iter().copied().filter(is_held).collect();
        // The pictures of a deleted user may be removed already.
        if media != post.draft.media && !self.is_deleted(user) {
            self.lost(format!("{what}: {} pictures", post.draft.media.len() - media.len()));
            let mut kept = post.clone();
            kept.draft.media = media;
            if kept.draft.check().is_err() {
                self.remove_scheduled((user, id), post);
                return;
            }
            write::scheduled(self.rows, user, id, &kept);
        }
        self.put_index(|| what, index::of_scheduled(user, id, post));
    }

    fn remove_scheduled(&mut self, (user, id): (UserId, ScheduledId), post: &ScheduledPost) {
        self.rows.put_name(NameTable::Scheduled, &write::scheduled_key(user, id), None);
        index::replace(self.rows, &index::of_scheduled(user, id, post), &[]);
    }
}

fn read_key(name: &[u8]) -> Option<(UserId, ScheduledId)> {
    let (user, id) = name.split_first_chunk()?;
    let id = u64::from_be_bytes(id.try_into().ok()?);
    Some((UserId(u32::from_be_bytes(*user)), ScheduledId(id)))
}
