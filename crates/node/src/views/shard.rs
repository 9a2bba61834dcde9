//! One shard of the home timelines: the active users whose number falls to it, and whom they follow.
//!
//! A shard is a function of the effect stream up to its cursor. The deliverer makes it catch up, a
//! bounded number of steps at a time, and readers do a few steps each; so a post by a user with a million
//! followers costs the writer nothing, and no read waits until it has reached them all. A read still sees
//! all that was published: the timeline it asks for applies by itself the effects that the shard has not
//! reached yet.
//!
//! A shard that lags too far does not spread the posts up to the head of the stream at all: see [`Gap`].
//! Each post costs one step then, and timelines apply them when they are read.
//!
//! **Invariant:** a timeline has applied everything before its [`Shard::position`], and nothing after it
//! except a post that is being spread.

mod budget;
mod relations;

use std::sync::Arc;

use feed::{Effect, HomeUsers, Page, PostId, Posted, UserId, Visibility};
use hashbrown::HashMap;
use smallvec::SmallVec;

use super::followers::{Followers, Slot};
use super::stream::Stream;
use super::timeline::{CachedPage, Timeline};
use super::watchers::{Change, Watchers};

/// Counters for the metrics.
#[derive(Default, Clone, Copy)]
pub(super) struct Tally {
    /// Posts put into timelines.
    pub(super) deliveries: u64,
    /// Timelines dropped to stay within the budget.
    pub(super) evictions: u64,
}

/// Positions of effects that were not spread to timelines. A timeline that has not applied all before `to`
/// by itself has applied what is before `from`.
#[derive(Clone, Copy)]
struct Gap {
    from: u64,
    to: u64,
}

/// Gaps that are remembered. More make one of the two oldest: then timelines that were not read since apply
/// more effects again than they need to.
const GAPS_MAX: usize = 8;

/// The timelines of some users.
#[derive(Default)]
pub(super) struct Shard {
    cursor: u64,
    /// Of the effect at the cursor, if it is being spread: how many followers it has yet to reach, the
    /// first ones in their list. A follower who is removed there is replaced by the last one, who is then
    /// reached twice, which changes nothing.
    left: Option<usize>,
    lag_max: u64,
    /// Ascending.
    gaps: SmallVec<[Gap; GAPS_MAX]>,
    slots: Vec<Option<Timeline>>,
    free: Vec<Slot>,
    by_user: HashMap<UserId, Slot>,
    /// Author -> slots of the active users who follow them, and the author's own.
    followers: Followers,
    /// The watchers of users of this shard.
    watchers: Arc<Watchers>,
    bytes: usize,
    hand: usize,
    /// Users whose timelines were not admitted, the last one for each remainder of their numbers.
    refused: Vec<UserId>,
    pub(super) tally: Tally,
}

impl Shard {
    /// A shard without timelines, which wakes `watchers`. If it lags the head of the stream by more than
    /// `lag_max` effects, its timelines apply them when they are read.
    pub(super) fn new(watchers: Arc<Watchers>, lag_max: u64) -> Self {
        Self { watchers, lag_max, ..Self::default() }
    }

    /// The position up to which effects are applied.
    pub(super) fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Number of cached timelines.
    pub(super) fn active(&self) -> usize {
        self.by_user.len()
    }

    /// Estimated bytes of all timelines.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Applies published effects until there are none left or `steps` are done: an effect is one step, and
    /// so is each timeline that it reaches. True if none are left.
    pub(super) fn catch_up(&mut self, stream: &Stream, mut steps: usize) -> bool {
        self.skip(stream.head());
        while self.cursor != stream.head() {
            let Some(piece) = stream.read(self.cursor) else {
                unreachable!("effects stay until every shard has consumed them");
            };
            for effect in piece {
                if steps == 0 || !self.apply(effect, &mut steps) {
                    return false;
                }
                self.cursor += 1;
                steps = steps.saturating_sub(1);
            }
        }
        true
    }

    /// Leaves what is before `head` to each timeline, if that is too much to spread: then a post by a user
    /// with very many followers costs one step instead of one for each.
    fn skip(&mut self, head: u64) {
        if head - self.cursor <= self.lag_max || self.is_in_gap() {
            return;
        }
        let is_full = self.gaps.len() == GAPS_MAX;
        if let [first, second, ..] = self.gaps.as_mut_slice()
            && is_full
        {
            second.from = first.from;
            self.gaps.remove(0);
        }
        self.gaps.push(Gap { from: self.cursor, to: head });
        self.left = None;
        // Deliveries that would wake them do not happen. Reading ends the gap for their timeline.
        if let Some(watchers) = self.watchers.any() {
            watchers.notify_all();
        }
    }

    fn is_in_gap(&self) -> bool {
        self.gaps.last().is_some_and(|gap| self.cursor < gap.to)
    }

    /// The position before which a timeline has applied everything.
    fn position(&self, timeline: &Timeline) -> u64 {
        let gap = self.gaps.iter().find(|gap| timeline.current < gap.to);
        timeline.current.max(gap.map_or(self.cursor, |gap| gap.from))
    }

    /// False if the steps did not suffice.
    fn apply(&mut self, effect: Effect, steps: &mut usize) -> bool {
        match effect {
            Effect::Posted { post, author, listed, users: Some(to) }
                if listed.visibility() == Visibility::Direct =>
            {
                *steps = steps.saturating_sub(to.len());
                for user in to.iter().copied().chain([author]) {
                    self.deliver_direct(user, (post, listed), author, &to);
                }
            }
            Effect::Posted { post, author, listed, users }
            | Effect::BoostShown { post, author, listed, users } => {
                return self.spread(author, steps, None, |timeline| {
                    timeline.deliver((post, listed), author, users.as_ref())
                });
            }
            Effect::PostDeleted { post, author, listed } => {
                return self.spread(author, steps, Some(Change::Deleted(post)), |timeline| {
                    timeline.delete(post, author, listed)
                });
            }
            Effect::PostEdited { post, author, listed } => {
                return self.spread(author, steps, Some(Change::Edited(post)), |timeline| {
                    timeline.shows(post, author, listed)
                });
            }
            Effect::FollowedMany { user } => self.follows_changed(user),
            Effect::FollowingChanged { user, other, follows } => {
                let change = if follows { Change::Followed } else { Change::Unfollowed };
                self.follow_changed(user, change(other));
            }
            Effect::Blocked { user, other, ended } => self.blocked(user, other, ended),
            Effect::MutesChanged { user } | Effect::FollowedTagsChanged { user } => {
                self.follow_changed(user, Change::Missed);
            }
            Effect::FriendsChanged { user, other, friends } => {
                self.friends_changed(user, other, friends);
            }
            Effect::StoryPosted { author, .. } | Effect::StoryGone { author, .. } => {
                let woken = self.watchers.any().map_or(0, |table| table.notify_friends(author));
                *steps = steps.saturating_sub(woken);
            }
            Effect::UserDeleted { user } | Effect::UserHidden { user, hidden: true } => {
                return self.forget(user, steps);
            }
            Effect::UserHidden { hidden: false, .. } => return self.forget_all(steps),
            // Not in the stream.
            Effect::Mentioned { .. }
            | Effect::Notified { .. }
            | Effect::MentionChanged { .. }
            | Effect::FiltersChanged { .. }
            | Effect::StoryViewed { .. }
            | Effect::SampleAdded { .. }
            | Effect::SampleDeleted { .. } => {}
        }
        true
    }

    /// Drops the timeline of `user`, who follows or mutes others than before, and wakes the watchers with `change`.
    fn follow_changed(&mut self, user: UserId, change: Change) {
        self.follows_changed(user);
        if let Some(watchers) = self.watchers.any() {
            watchers.changed(user, change);
        }
    }

    /// Drops the timeline of `user`, unless it was gathered since; watchers read it again.
    fn follows_changed(&mut self, user: UserId) {
        if self.timeline(user).is_some_and(|timeline| timeline.current <= self.cursor) {
            self.drop_timeline(user);
        } else if let Some(watchers) = self.watchers.any() {
            watchers.missed(user);
        }
    }

    /// Drops the timelines of those who follow a deleted user, and the user's own: they are gathered again
    /// when they are read. False if the steps did not suffice.
    fn forget(&mut self, user: UserId, steps: &mut usize) -> bool {
        while let Some(slot) = self.followers.of(user).last().copied() {
            let timeline = self.slots.get(slot as usize).and_then(Option::as_ref);
            let Some(timeline) = timeline else {
                unreachable!("followers are listed while their timelines are kept")
            };
            if *steps == 0 {
                return false;
            }
            let (follower, authors) = (timeline.user, timeline.home.users.len());
            *steps = steps.saturating_sub(1 + authors);
            self.drop_timeline(follower);
            if let Some(watchers) = self.watchers.any() {
                watchers.notify(follower);
            }
        }
        if let Some(watchers) = self.watchers.any() {
            watchers.notify(user);
            *steps = steps.saturating_sub(watchers.notify_friends(user));
        }
        true
    }

    /// Drops all timelines: who follows a user that is shown again no timeline says. Only operators do it. False if the steps
    /// did not suffice.
    fn forget_all(&mut self, steps: &mut usize) -> bool {
        let is_older = |user: &UserId| {
            self.timeline(*user).is_some_and(|timeline| timeline.current <= self.cursor)
        };
        let users = self.by_user.keys().copied().filter(is_older).take(*steps);
        let users: Vec<UserId> = users.collect();
        let is_last = users.len() < *steps;
        *steps -= users.len();
        users.into_iter().for_each(|user| self.drop_timeline(user));
        is_last
    }

    /// Delivers a direct post to the user, if their timeline is here and has not applied it by itself.
    fn deliver_direct(&mut self, user: UserId, posted: Posted, author: UserId, to: &HomeUsers) {
        let Some(slot) = self.by_user.get(&user) else { return };
        let Some(Some(timeline)) = self.slots.get_mut(*slot as usize) else { return };
        let whole_from = self.gaps.last().map_or(0, |gap| gap.to);
        let is_due = (whole_from..=self.cursor).contains(&timeline.current);
        if is_due && timeline.follows(author) && timeline.deliver(posted, author, Some(to)) {
            self.tally.deliveries += 1;
            if let Some(watchers) = self.watchers.any() {
                watchers.notify(user);
            }
        }
    }

    /// Does `deliver` with the timelines of those who follow `author`; false if the steps did not
    /// suffice. `deliver` returns whether that is news: a new post if `change` is `None`, else that change.
    fn spread(
        &mut self,
        author: UserId,
        steps: &mut usize,
        change: Option<Change>,
        deliver: impl Fn(&mut Timeline) -> bool,
    ) -> bool {
        if self.is_in_gap() {
            return true;
        }
        let whole_from = self.gaps.last().map_or(0, |gap| gap.to);
        let followers = self.followers.of(author);
        let end = self.left.take().unwrap_or(usize::MAX).min(followers.len());
        let start = end.saturating_sub(*steps);
        *steps -= end - start;
        let watchers = if start < end { self.watchers.any() } else { None };
        for slot in followers.get(start..end).unwrap_or_default() {
            let Some(Some(timeline)) = self.slots.get_mut(*slot as usize) else { continue };
            let is_due = (whole_from..=self.cursor).contains(&timeline.current);
            if !is_due || !deliver(timeline) {
                continue;
            }
            self.tally.deliveries += u64::from(change.is_none());
            match (&watchers, change) {
                (None, _) => {}
                (Some(watchers), None) => watchers.notify(timeline.user),
                (Some(watchers), Some(change)) => watchers.changed(timeline.user, change),
            }
        }
        self.left = (start > 0).then_some(start);
        start == 0
    }

    /// Whether the user's timeline is kept.
    pub(super) fn is_active(&self, user: UserId) -> bool {
        self.by_user.contains_key(&user)
    }

    fn timeline(&self, user: UserId) -> Option<&Timeline> {
        self.slots.get(*self.by_user.get(&user)? as usize)?.as_ref()
    }

    /// A page of an active user's timeline with all that was published; see [`Timeline::page`].
    pub(super) fn page(
        &mut self,
        stream: &Stream,
        user: UserId,
        page: &Page,
        out: &mut Vec<PostId>,
    ) -> Option<CachedPage> {
        let slot = *self.by_user.get(&user)?;
        let from = self.position(self.timeline(user)?);
        let timeline = self.slots.get_mut(slot as usize)?.as_mut()?;
        let caught_up = timeline.catch_up(stream, from);
        timeline.touched = true;
        let is_news = caught_up.delivered > 0 || !caught_up.changes.is_empty();
        self.tally.deliveries += caught_up.delivered;
        if is_news && let Some(watchers) = self.watchers.any() {
            watchers.notify(user);
            caught_up.changes.iter().for_each(|change| watchers.changed(user, *change));
        }
        if caught_up.invalidated {
            self.drop_timeline(user);
            if let Some(watchers) = self.watchers.any() {
                watchers.notify(user);
            }
            return None;
        }
        let timeline = self.timeline(user)?;
        let follows_tags = timeline.follows_tags;
        timeline.page(page, out).map(|more| CachedPage { more, follows_tags })
    }

    /// Puts a timeline in, in place of the user's earlier one, and evicts others while the shard holds more
    /// than `bytes_max`. False, and nothing put in, if it is out of date and must be gathered anew.
    pub(super) fn insert(
        &mut self,
        stream: &Stream,
        mut timeline: Timeline,
        bytes_max: usize,
    ) -> bool {
        // Watchers have [`Change::Missed`], and read again after this.
        if timeline.catch_up(stream, timeline.current).invalidated {
            return false;
        }
        self.drop_timeline(timeline.user);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            Slot::try_from(self.slots.len() - 1).unwrap_or_else(|_| unreachable!("2^32 timelines"))
        });
        self.bytes += timeline.bytes();
        self.by_user.insert(timeline.user, slot);
        for author in authors(&timeline) {
            self.followers.add(author, slot);
        }
        let user = timeline.user;
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = Some(timeline);
        }
        self.evict(user, bytes_max);
        true
    }

    fn drop_timeline(&mut self, user: UserId) {
        let Some(slot) = self.by_user.remove(&user) else { return };
        let Some(timeline) = self.slots.get_mut(slot as usize).and_then(Option::take) else {
            unreachable!("every user in the table has a timeline");
        };
        self.free.push(slot);
        self.bytes -= timeline.bytes();
        if let Some(watchers) = self.watchers.any() {
            watchers.missed(user);
        }
        for author in authors(&timeline) {
            self.followers.remove(author, slot);
        }
    }
}

#[cfg(test)]
impl Shard {
    /// Every timeline is listed once for each author, and nothing else is.
    pub(super) fn check(&self) {
        let mut listed = 0;
        for (slot, timeline) in self.slots.iter().enumerate() {
            for author in timeline.iter().flat_map(authors) {
                assert!(self.followers.of(author).contains(&(slot as Slot)));
                listed += 1;
            }
        }
        assert_eq!(self.followers.len(), listed);
    }
}

fn authors(timeline: &Timeline) -> impl Iterator<Item = UserId> + '_ {
    timeline.home.users.iter().copied().chain([timeline.user])
}
