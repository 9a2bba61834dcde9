//! One shard of the home timelines: the active people whose number falls to it, and who among them
//! follows whom.
//!
//! A shard is a function of the effect stream up to its cursor. It catches up when somebody reads
//! from it and when the deliverer comes by, whoever is first; so a post by somebody with a million
//! followers costs the writer nothing, and a read never sees less than was published.

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

/// Timelines of some people.
#[derive(Default)]
pub(super) struct Shard {
    cursor: u64,
    slots: Vec<Option<Timeline>>,
    free: Vec<Slot>,
    by_user: HashMap<UserId, Slot>,
    /// Author -> slots of the active people who follow them, and the author's own.
    followers: HashMap<UserId, SmallVec<[Slot; 4]>>,
    watchers: HashMap<UserId, watch::Sender<()>>,
    bytes: usize,
    hand: usize,
    pub(super) tally: Tally,
    effects: Vec<Effect>,
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

    /// Takes in all published effects.
    pub(super) fn catch_up(&mut self, stream: &Stream) {
        if self.cursor == stream.head() {
            return;
        }
        let mut effects = std::mem::take(&mut self.effects);
        let Some(head) = stream.read(self.cursor, &mut effects) else {
            unreachable!("effects stay until every shard has consumed them");
        };
        for effect in effects.drain(..) {
            self.take_in(effect);
        }
        // One huge burst must not hold its memory for ever.
        effects.shrink_to(4_096);
        self.effects = effects;
        self.cursor = head;
    }

    fn take_in(&mut self, effect: Effect) {
        match effect {
            Effect::Posted { post, author, reply_to } => self.deliver(post, author, reply_to),
            Effect::PostDeleted { post, author } => {
                for slot in self.followers.get(&author).into_iter().flatten() {
                    if let Some(Some(timeline)) = self.slots.get_mut(*slot as usize) {
                        timeline.remove(post);
                    }
                }
            }
            Effect::FollowingChanged { user } => {
                self.drop_timeline(user);
                self.notify(user);
            }
            Effect::Mentioned { user, .. } => self.notify(user),
            Effect::ProfileChanged { .. } => {}
        }
    }

    fn deliver(&mut self, post: PostId, author: UserId, reply_to: Option<UserId>) {
        let Some(followers) = self.followers.get(&author) else { return };
        for slot in followers {
            let Some(Some(timeline)) = self.slots.get_mut(*slot as usize) else { continue };
            if timeline.deliver(post, author, reply_to) {
                self.tally.deliveries += 1;
                if !self.watchers.is_empty()
                    && let Some(watcher) = self.watchers.get(&timeline.user)
                {
                    watcher.send_replace(());
                }
            }
        }
    }

    fn notify(&self, user: UserId) {
        if let Some(watcher) = self.watchers.get(&user) {
            watcher.send_replace(());
        }
    }

    /// Whether the person's timeline is kept.
    pub(super) fn is_active(&self, user: UserId) -> bool {
        self.by_user.contains_key(&user)
    }

    /// A page of an active person's timeline; see [`Timeline::page`].
    pub(super) fn page(
        &mut self,
        user: UserId,
        page: &Page,
        out: &mut Vec<PostId>,
    ) -> Option<bool> {
        let slot = *self.by_user.get(&user)?;
        let timeline = self.slots.get_mut(slot as usize)?.as_mut()?;
        timeline.touched = true;
        timeline.page(page, out)
    }

    /// Puts a timeline in, in place of the person's earlier one, and evicts others while the shard
    /// holds more than `bytes_max`.
    pub(super) fn insert(&mut self, timeline: Timeline, bytes_max: usize) {
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
        self.watchers.entry(user).or_insert_with(|| watch::Sender::new(())).subscribe()
    }

    /// Forgets the channel of `user` if nobody listens any more.
    pub(super) fn unwatch(&mut self, user: UserId) {
        if self.watchers.get(&user).is_some_and(|watcher| watcher.receiver_count() == 0) {
            self.watchers.remove(&user);
        }
    }
}

fn authors(timeline: &Timeline) -> impl Iterator<Item = UserId> + '_ {
    timeline.following.iter().copied().chain([timeline.user])
}
