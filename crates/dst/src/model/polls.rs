//! Expected polls, votes and scheduled posts.

use feed::limits::{SCHEDULED_MAX, SCHEDULED_MS_MAX, SCHEDULED_MS_MIN};
use feed::media::MediaUse;
use feed::polls::NewPoll;
use feed::schedule::{ScheduleCommand, ScheduleDone, ScheduledPost};
use feed::{Done, Outcome, PollChoices, PostId, Refusal, ScheduledId, UserId, UserRef};

use super::feed::Feed;
use super::ms_of;
use super::notices::{Cause, NOTIFIED_AT_ONCE, next_notified};
use super::posts::ids;

/// Poll of a post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelPoll {
    /// Stamp of the command that set these options.
    pub(crate) id: u64,
    pub(crate) options: Vec<String>,
    pub(crate) multiple: bool,
    pub(crate) hide_totals: bool,
    pub(crate) ends_ms: u64,
}

impl ModelPoll {
    pub(super) fn new(stamp: u64, new: &NewPoll) -> Self {
        let options = new.options.as_slice().iter().map(|option| option.as_str().to_owned());
        Self {
            id: stamp,
            options: options.collect(),
            multiple: new.multiple,
            hide_totals: new.hide_totals,
            ends_ms: ms_of(stamp) + new.time.secs() * 1_000,
        }
    }

    /// Returns the poll after an edit. If the options differ, it is a new poll; an ended poll stays ended.
    pub(super) fn edited(&self, stamp: u64, new: &NewPoll) -> Self {
        let mut next = Self::new(stamp, new);
        if (&next.options, next.multiple) == (&self.options, self.multiple) {
            next.id = self.id;
            if ms_of(stamp) >= self.ends_ms {
                next.ends_ms = self.ends_ms;
            }
        }
        next
    }
}

impl Feed {
    pub(super) fn vote(
        &mut self,
        stamp: u64,
        user: &UserRef,
        post: PostId,
        choices: PollChoices,
    ) -> Outcome {
        let user = self.resolve(user)?;
        let post = self.posts.get(&post.0).filter(|post| self.sees(user, post));
        let post = post.ok_or(Refusal::PollNotFound)?;
        let poll = post.poll.as_ref().ok_or(Refusal::PollNotFound)?;
        let chosen: Vec<usize> = choices.iter().collect();
        let before = self.votes.get(&(poll.id, user));
        let chose = |option: &usize| before.is_some_and(|before| before.contains(option));
        let refusal = if post.author == user {
            Some(Refusal::OwnPoll)
        } else if ms_of(stamp) >= poll.ends_ms {
            Some(Refusal::PollEnded)
        } else if before.is_some() && !poll.multiple || chosen.iter().any(chose) {
            Some(Refusal::AlreadyVoted)
        } else if chosen.iter().any(|option| *option >= poll.options.len()) {
            Some(Refusal::BadChoice)
        } else if chosen.len() > 1 && !poll.multiple {
            Some(Refusal::OneChoice)
        } else {
            None
        };
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        let votes = self.votes.entry((poll.id, user)).or_default();
        votes.extend(chosen);
        votes.sort_unstable();
        Ok(Done::Voted)
    }

    /// Posts of existing users whose polls will end, or have ended but not all users were notified. Each has the end of
    /// its poll.
    pub(crate) fn polls_to_end(&self) -> impl Iterator<Item = (u64, u64)> {
        let polls =
            self.posts.iter().filter_map(|(id, post)| Some((*id, post.poll.as_ref()?.ends_ms)));
        polls.filter(|(id, ends_ms)| self.ended.get(id).is_none_or(|end| *end != (*ends_ms, None)))
    }

    /// Notifies some users about the end of a poll: first its author, then voters in the order of their ids.
    pub(super) fn end_poll(&mut self, stamp: u64, post: PostId, ends_ms: u64) {
        let Some(found) = self.posts.get(&post.0) else { return };
        let Some(poll) = found.poll.clone() else { return };
        let author = found.author;
        if poll.ends_ms != ends_ms {
            return;
        }
        let (author_first, from) = match self.ended.get(&post.0) {
            Some((at, from)) if *at == ends_ms => (None, *from),
            _ => (Some(author), Some(0)),
        };
        let Some(from) = from else { return };
        let voters = self.votes.range((poll.id, from)..=(poll.id, u32::MAX));
        let voters: Vec<u32> = voters.map(|((_, user), _)| *user).take(NOTIFIED_AT_ONCE).collect();
        self.ended.insert(post.0, (ends_ms, next_notified(&voters)));
        for user in author_first.into_iter().chain(voters) {
            if self.posts.get(&post.0).is_some_and(|found| self.sees(user, found)) {
                self.notify(user, stamp, (author, Cause::Poll(post.0)));
            }
        }
    }

    /// Removes votes in polls of posts that no longer exist. No read shows such votes.
    pub(super) fn forget_votes(&mut self) {
        let polls = self.posts.values().filter_map(|post| Some(post.poll.as_ref()?.id));
        let polls: std::collections::BTreeSet<u64> = polls.collect();
        self.votes.retain(|(poll, _), _| polls.contains(poll));
    }

    pub(super) fn change_schedule(&mut self, stamp: u64, command: &ScheduleCommand) -> Outcome {
        let is_ahead = |due_ms: u64| {
            (SCHEDULED_MS_MIN..=SCHEDULED_MS_MAX).contains(&due_ms.wrapping_sub(ms_of(stamp)))
        };
        let done = match command {
            ScheduleCommand::Create(new) => {
                if !is_ahead(new.due_ms) {
                    return Err(Refusal::BadScheduledTime);
                }
                let (author, _) = self.check_new(&new.draft, &[])?;
                let of_user = self.scheduled.range((author, 0)..=(author, u64::MAX));
                if of_user.count() >= SCHEDULED_MAX {
                    return Err(Refusal::TooManyScheduled);
                }
                for id in ids(&new.draft.content.media) {
                    if let Some(media) = self.media.get_mut(&id) {
                        media.used = MediaUse::Scheduled(ScheduledId(stamp));
                    }
                }
                let mut post = (**new).clone();
                post.draft.author = UserRef::Id(UserId(author));
                self.scheduled.insert((author, stamp), post);
                ScheduleDone::Saved(ScheduledId(stamp))
            }
            ScheduleCommand::Move { user, id, due_ms } => {
                let user = self.resolve(user)?;
                let found = self.scheduled.get_mut(&(user, id.0));
                let found = found.ok_or(Refusal::ScheduledNotFound)?;
                if !is_ahead(*due_ms) {
                    return Err(Refusal::BadScheduledTime);
                }
                found.due_ms = *due_ms;
                ScheduleDone::Saved(*id)
            }
            ScheduleCommand::Cancel { user, id } => {
                let user = self.resolve(user)?;
                let found = self.scheduled.remove(&(user, id.0));
                self.release(stamp, &found.ok_or(Refusal::ScheduledNotFound)?);
                ScheduleDone::Cancelled
            }
        };
        Ok(Done::Schedule(done))
    }

    /// Publishes a scheduled post that is due. Returns its id.
    pub(super) fn publish_due(
        &mut self,
        stamp: u64,
        (user, id): (UserId, ScheduledId),
        due_ms: u64,
    ) {
        let key = (user.0, id.0);
        let found = self.scheduled.get(&key).filter(|post| post.due_ms == due_ms);
        let Some(due) = found.cloned() else { return };
        self.scheduled.remove(&key);
        let is_active = self.accounts.is_active_or_none(user.0);
        if !is_active || self.publish(stamp, &due.draft, &ids(&due.draft.content.media)).is_err() {
            self.release(stamp, &due);
        }
    }

    fn release(&mut self, stamp: u64, post: &ScheduledPost) {
        let media = ids(&post.draft.content.media);
        self.detach(stamp, &media);
        let is_held = |used: MediaUse| matches!(used, MediaUse::Scheduled(_));
        self.media.retain(|id, found| !media.contains(id) || !is_held(found.used));
    }
}
