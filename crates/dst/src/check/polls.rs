//! Comparison of polls and scheduled posts with the model.

use feed::{DueWork, Poll, PollChoices, PollId, PostId, ScheduledId, UserId};

use crate::model::ModelPoll;
use crate::run::Run;

impl Run {
    /// Checks the votes and the scheduled posts of a user who is not deleted.
    pub(super) fn check_polls(&self, user: u32) {
        let (facts, expected) = (self.node().node().facts(), &self.model.feed);
        for ((poll, _), wanted) in expected.votes.iter().filter(|((_, one), _)| *one == user) {
            let found = facts.vote(PollId(*poll), UserId(user));
            let found: Vec<usize> = found.into_iter().flat_map(PollChoices::iter).collect();
            assert_eq!(found, distinct(wanted), "vote of {user} in {poll}");
        }
        let ids = facts.scheduled_of(UserId(user), ScheduledId(0), usize::MAX);
        let wanted = expected.scheduled.range((user, 0)..=(user, u64::MAX));
        let wanted: Vec<_> = wanted.map(|((_, id), post)| (ScheduledId(*id), post)).collect();
        let wanted_ids: Vec<_> = wanted.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, wanted_ids, "scheduled posts of {user}");
        for (id, wanted) in wanted {
            let found = facts.scheduled(UserId(user), id);
            assert_eq!(found.as_ref(), Some(wanted), "scheduled post {} of {user}", id.0);
        }
    }

    /// Checks the polls about whose end the node still has to notify users.
    pub(super) fn check_poll_ends(&self) {
        let facts = self.node().node().facts();
        for (post, ends_ms) in self.model.feed.polls_to_end() {
            let due = DueWork::EndPoll { post: PostId(post) }.at(ends_ms);
            assert!(facts.is_due(due), "the end of the poll of {post} is missing");
        }
    }

    /// Checks the votes in the poll of an existing post.
    pub(super) fn check_poll_of(&self, post: PostId) {
        let expected = &self.model.feed;
        let poll = expected.posts.get(&post.0).and_then(|post| post.poll.as_ref());
        let Some(poll) = poll else { return };
        let votes: Vec<_> = expected.votes.range((poll.id, 0)..=(poll.id, u32::MAX)).collect();
        let mut wanted = [0; 4];
        for (_, chosen) in &votes {
            distinct(chosen).into_iter().for_each(|option| wanted[option] += 1);
        }
        let found = self.node().node().facts().poll_counts(PollId(poll.id));
        assert_eq!((found.voters as usize, found.votes), (votes.len(), wanted), "poll {}", poll.id);
    }
}

fn distinct(options: &[usize]) -> Vec<usize> {
    let mut options = options.to_vec();
    options.sort_unstable();
    options.dedup();
    options
}

pub(super) fn model_poll(poll: &Poll) -> ModelPoll {
    let options = poll.options.as_slice().iter().map(|option| option.as_str().to_owned());
    ModelPoll {
        id: poll.id.0,
        options: options.collect(),
        multiple: poll.multiple,
        hide_totals: poll.hide_totals,
        ends_ms: poll.ends_ms,
    }
}
