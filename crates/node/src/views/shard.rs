//! One shard of the home timelines: the active people whose number falls to it, and who among them
//! follows whom.
//!
//! A shard is a function of the effect stream up to its cursor. The deliverer makes it catch up, a
//! bounded number of steps at a time, and readers lend a hand with a few; so a post by somebody with
//! a million followers costs the writer nothing and nobody has to wait until it has reached them all.
//! A read still sees all that was published: the timeline it asks for takes in by itself what the
//! shard has not got to yet.
//!
//! **Invariant:** a timeline has taken in everything before the higher of the shard's cursor and its
//! own position, and nothing behind it except, while a post is on its way, that post.

use feed::{Effect, Page, PostId, UserId};
use hashbrown::HashMap;
use smallvec::SmallVec;
use tokio::sync::watch;

use super::stream::Stream;
use super::timeline::Timeline;

/// A place in a shard's table of timelines.
type Slot = u32;

/// What shards tell the metrics.
#[derive(Default, Clone, Copy)]
pub(super) struct Tally {
    /// Posts put into timelines.
    pub(super) deliveries: u64,
    /// Timelines dropped to stay within the budget.
    pub(super) evictions: u64,
}

/// Those who wait for news of one person.
struct Watcher {
    news: watch::Sender<()>,
    /// Where this person is in the index of story watchers.
    friends: Vec<UserId>,
}

/// Timelines of some people.
#[derive(Default)]
pub(super) struct Shard {
    cursor: u64,
    /// Of the effect at the cursor, if it is on its way: how many followers it has yet to reach, the
    /// first ones in their list. One that leaves the list there is replaced by the last one, who is
    /// reached twice then, which changes nothing.
    left: Option<usize>,
    slots: Vec<Option<Timeline>>,
    free: Vec<Slot>,
    by_user: HashMap<UserId, Slot>,
    /// Author -> slots of the active people who follow them, and the author's own.
    followers: HashMap<UserId, SmallVec<[Slot; 4]>>,
    watchers: HashMap<UserId, Watcher>,
    /// Person -> watchers who are their friends, or were when the watch began or since.
    story_watchers: HashMap<UserId, SmallVec<[UserId; 2]>>,
    bytes: usize,
    hand: usize,
    pub(super) tally: Tally,
}

impl Shard {
    /// The position up to which effects are taken in.
    pub(super) fn cursor(&self) -> u64 {
        self.cursor
    }

    /// How many timelines are kept.
    pub(super) fn active(&self) -> usize {
        self.by_user.len()
    }

    /// Estimated bytes of all timelines.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes in published effects until there are none left or `steps` are done: an effect is one
    /// step, and so is each timeline that it reaches. True if none are left.
    pub(super) fn catch_up(&mut self, stream: &Stream, mut steps: usize) -> bool {
        while self.cursor != stream.head() {
            let Some(piece) = stream.read(self.cursor) else {
                unreachable!("effects stay until every shard has consumed them");
            };
            for effect in piece {
                if steps == 0 || !self.take_in(effect, &mut steps) {
                    return false;
                }
                self.cursor += 1;
                steps = steps.saturating_sub(1);
            }
        }
        true
    }

    /// False if the steps did not suffice.
    fn take_in(&mut self, effect: Effect, steps: &mut usize) -> bool {
        match effect {
            Effect::Posted { post, author, reply_to } => {
                return self
                    .spread(author, steps, |timeline| timeline.deliver(post, author, reply_to));
            }
            Effect::PostDeleted { post, author } => {
                return self.spread(author, steps, |timeline| {
                    timeline.remove(post);
                    false
                });
            }
            Effect::FollowingChanged { user } => {
                if self.timeline(user).is_some_and(|timeline| timeline.current <= self.cursor) {
                    self.drop_timeline(user);
                }
                self.notify(user);
            }
            Effect::Mentioned { user, .. } => self.notify(user),
            Effect::FriendsChanged { user, other, .. } => {
                for (user, other) in [(user, other), (other, user)] {
                    self.watch_stories(user, &[other]);
                    self.notify(user);
                }
            }
            Effect::StoryTold { author, .. } | Effect::StoryGone { author, .. } => {
                for user in self.story_watchers.get(&author).into_iter().flatten() {
                    self.notify(*user);
                }
            }
            Effect::ProfileChanged { .. }
            | Effect::StoryViewed { .. }
            | Effect::Taught { .. }
            | Effect::SampleForgotten { .. } => {}
        }
        true
    }

    /// Does `deliver` with the timelines of those who follow `author`; false if the steps did not
    /// suffice. `deliver` tells whether that is news.
    fn spread(
        &mut self,
        author: UserId,
        steps: &mut usize,
        deliver: impl Fn(&mut Timeline) -> bool,
    ) -> bool {
        let followers = self.followers.get(&author).map(SmallVec::as_slice).unwrap_or_default();
        let end = self.left.take().unwrap_or(usize::MAX).min(followers.len());
        let start = end.saturating_sub(*steps);
        *steps -= end - start;
        for slot in followers.get(start..end).unwrap_or_default() {
            let Some(Some(timeline)) = self.slots.get_mut(*slot as usize) else { continue };
            if timeline.current <= self.cursor && deliver(timeline) {
                self.tally.deliveries += 1;
                if !self.watchers.is_empty()
                    && let Some(watcher) = self.watchers.get(&timeline.user)
                {
                    watcher.news.send_replace(());
                }
            }
        }
        self.left = (start > 0).then_some(start);
        start == 0
    }

    fn notify(&self, user: UserId) {
        if let Some(watcher) = self.watchers.get(&user) {
            watcher.news.send_replace(());
        }
    }

    /// Whether the person's timeline is kept.
    pub(super) fn is_active(&self, user: UserId) -> bool {
        self.by_user.contains_key(&user)
    }

    fn timeline(&self, user: UserId) -> Option<&Timeline> {
        self.slots.get(*self.by_user.get(&user)? as usize)?.as_ref()
    }

    /// A page of an active person's timeline with all that was published; see [`Timeline::page`].
    pub(super) fn page(
        &mut self,
        stream: &Stream,
        user: UserId,
        page: &Page,
        out: &mut Vec<PostId>,
    ) -> Option<bool> {
        let slot = *self.by_user.get(&user)?;
        let timeline = self.slots.get_mut(slot as usize)?.as_mut()?;
        let from = timeline.current.max(self.cursor);
        let Some(delivered) = timeline.catch_up(stream, from) else {
            self.drop_timeline(user);
            return None;
        };
        timeline.touched = true;
        let more = timeline.page(page, out);
        if delivered > 0 {
            self.tally.deliveries += delivered;
            self.notify(user);
        }
        more
    }

    /// Puts a timeline in, in place of the person's earlier one, and evicts others while the shard
    /// holds more than `bytes_max`. False, and nothing put in, if it is out of date in a way that
    /// only gathering it anew mends.
    pub(super) fn insert(
        &mut self,
        stream: &Stream,
        mut timeline: Timeline,
        bytes_max: usize,
    ) -> bool {
        if timeline.catch_up(stream, timeline.current).is_none() {
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
            self.followers.entry(author).or_default().push(slot);
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
        for author in authors(&timeline) {
            let Some(followers) = self.followers.get_mut(&author) else { continue };
            if let Some(at) = followers.iter().position(|other| *other == slot) {
                followers.swap_remove(at);
            }
            if followers.is_empty() {
                self.followers.remove(&author);
            }
        }
    }

    /// Second chance: the hand passes over timelines that were read since it last came by, over
    /// watched ones and over `newest`.
    fn evict(&mut self, newest: UserId, bytes_max: usize) {
        let mut steps = 2 * self.slots.len();
        while self.bytes > bytes_max && steps > 0 {
            steps -= 1;
            self.hand = if self.hand + 1 < self.slots.len() { self.hand + 1 } else { 0 };
            let Some(Some(timeline)) = self.slots.get_mut(self.hand) else { continue };
            let user = timeline.user;
            if std::mem::take(&mut timeline.touched)
                || user == newest
                || self.watchers.contains_key(&user)
            {
                continue;
            }
            self.drop_timeline(user);
            self.tally.evictions += 1;
        }
    }

    /// Hears of anything new for `user`.
    pub(super) fn watch(&mut self, user: UserId) -> watch::Receiver<()> {
        let watcher = || Watcher { news: watch::Sender::new(()), friends: Vec::new() };
        self.watchers.entry(user).or_insert_with(watcher).news.subscribe()
    }

    /// Has `user`, if anybody waits for their news, hear of the stories of these people too.
    pub(super) fn watch_stories(&mut self, user: UserId, friends: &[UserId]) {
        let Some(watcher) = self.watchers.get_mut(&user) else { return };
        for friend in friends {
            let heard_by = self.story_watchers.entry(*friend).or_default();
            if !heard_by.contains(&user) {
                heard_by.push(user);
                watcher.friends.push(*friend);
            }
        }
    }

    /// Forgets the channel of `user` if nobody listens any more.
    pub(super) fn unwatch(&mut self, user: UserId) {
        if self.watchers.get(&user).is_none_or(|watcher| watcher.news.receiver_count() > 0) {
            return;
        }
        let friends = self.watchers.remove(&user).map(|watcher| watcher.friends);
        for friend in friends.unwrap_or_default() {
            let Some(heard_by) = self.story_watchers.get_mut(&friend) else { continue };
            heard_by.retain(|watcher| *watcher != user);
            if heard_by.is_empty() {
                self.story_watchers.remove(&friend);
            }
        }
    }
}

fn authors(timeline: &Timeline) -> impl Iterator<Item = UserId> + '_ {
    timeline.following.iter().copied().chain([timeline.user])
}
