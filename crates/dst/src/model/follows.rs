//! Expected follows, and follow requests to locked users.

use std::collections::BTreeSet;

use feed::follow_options::FollowWith;
use feed::limits::FOLLOWING_MAX;
use feed::{Done, Outcome, Refusal, UserRef};

use super::feed::Feed;
use super::notices::Cause;

/// Options of a follow or a follow request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModelOptions {
    pub(crate) hides_boosts: bool,
    /// Stamp of the command that turned on notifications of posts by the other user; `None` if they are off.
    pub(crate) notified_since: Option<u64>,
}

impl Feed {
    pub(super) fn follow(&mut self, stamp: u64, user: &UserRef, other: &UserRef) -> Outcome {
        let pair = self.two(user, other, Refusal::SelfFollow)?;
        self.refuse_blocked(pair)?;
        if self.follows.contains(&pair) {
            return Ok(Done::Followed);
        }
        if !self.requests.contains(&pair)
            && self.followed_or_asked(pair.0) >= FOLLOWING_MAX as usize
        {
            return Err(Refusal::TooManyFollows);
        }
        if self.users[pair.1 as usize].settings.locked {
            if self.requests.insert(pair) {
                self.announce(stamp, pair, Cause::Request);
            }
            return Ok(Done::FollowRequested);
        }
        self.requests.remove(&pair);
        self.follows.insert(pair);
        self.announce(stamp, pair, Cause::Follow);
        Ok(Done::Followed)
    }

    /// Applies a follow with options. A user has at most 500 follows with options, 100 of them with notifications.
    pub(super) fn follow_with(&mut self, stamp: u64, new: &FollowWith) -> Outcome {
        let pair = self.two(&new.user, &new.other, Refusal::SelfFollow)?;
        let before = self.follow_options.get(&pair).copied().unwrap_or_default();
        let mut options = before;
        if let Some(boosts) = new.boosts {
            options.hides_boosts = !boosts;
        }
        match new.notify {
            Some(true) => drop(options.notified_since.get_or_insert(stamp)),
            Some(false) => options.notified_since = None,
            None => {}
        }
        let mut all = self.follow_options.clone();
        all.remove(&pair);
        if options != ModelOptions::default() {
            all.insert(pair, options);
        }
        let of_user = || all.iter().filter(|((user, _), _)| *user == pair.0);
        let notifying = of_user().filter(|(_, options)| options.notified_since.is_some());
        if options != before && (of_user().count() > 500 || notifying.count() > 100) {
            return Err(Refusal::TooManyFollowOptions);
        }
        let done = self.follow(stamp, &new.user, &new.other)?;
        self.follow_options = all;
        Ok(done)
    }

    /// Removes the options of follows and requests that no longer exist.
    pub(super) fn forget_options(&mut self) {
        let (follows, requests) = (&self.follows, &self.requests);
        self.follow_options.retain(|pair, _| follows.contains(pair) || requests.contains(pair));
    }

    /// Whether boosts by `other` are excluded from the timelines of `user`.
    pub(super) fn hides_boosts(&self, user: u32, other: u32) -> bool {
        self.follow_options.get(&(user, other)).is_some_and(|options| options.hides_boosts)
    }

    pub(super) fn follow_many(&mut self, user: &UserRef, others: &[UserRef]) -> Outcome {
        let pairs = others.iter().map(|other| self.two(user, other, Refusal::SelfFollow));
        // An unknown user is refused first, even if the list of others contains the user or is empty.
        self.resolve(user)?;
        others.iter().try_for_each(|other| self.resolve_other(other).map(|_| ()))?;
        let pairs: BTreeSet<_> = pairs.collect::<Result<_, _>>()?;
        pairs.iter().try_for_each(|pair| self.refuse_blocked(*pair))?;
        let is_new =
            |pair: &&(u32, u32)| !self.follows.contains(pair) && !self.requests.contains(pair);
        let new = pairs.iter().filter(is_new).count();
        let user = self.resolve(user)?;
        if self.followed_or_asked(user) + new > FOLLOWING_MAX as usize {
            return Err(Refusal::TooManyFollows);
        }
        for pair in pairs {
            if self.follows.contains(&pair) {
                continue;
            }
            if self.users[pair.1 as usize].settings.locked {
                self.requests.insert(pair);
            } else {
                self.requests.remove(&pair);
                self.follows.insert(pair);
            }
        }
        Ok(Done::Followed)
    }

    pub(super) fn unfollow(&mut self, user: &UserRef, other: &UserRef) -> Outcome {
        let pair = self.two(user, other, Refusal::SelfFollow)?;
        self.follows.remove(&pair);
        self.requests.remove(&pair);
        self.leave_lists();
        self.forget_options();
        Ok(Done::Unfollowed)
    }

    pub(super) fn answer(
        &mut self,
        stamp: u64,
        (user, other): (&UserRef, &UserRef),
        accept: bool,
    ) -> Outcome {
        let (user, other) = self.two(user, other, Refusal::RequestNotFound)?;
        if !self.requests.remove(&(other, user)) {
            return Err(Refusal::RequestNotFound);
        }
        if accept && self.follows.insert((other, user)) {
            self.announce(stamp, (other, user), Cause::Follow);
        }
        self.forget_options();
        Ok(Done::RequestAnswered)
    }

    fn followed_or_asked(&self, user: u32) -> usize {
        let asked = self.requests.range((user, 0)..=(user, u32::MAX));
        self.following(user).count() + asked.count()
    }
}
