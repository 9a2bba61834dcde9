//! Data that is derived from the facts and kept in memory, so that reads need not queue or access a disk.
//!
//! **Invariant:** a view never holds what the facts could not rebuild; dropping any part of it
//! costs time and changes no answer.

mod followers;
mod homes;
mod known;
mod names;
mod newest;
mod public;
#[cfg(all(test, feature = "loom"))]
mod races;
mod recent;
mod rendered;
mod shard;
mod stories;
mod stream;
#[cfg(test)]
mod tests;
mod timeline;
mod watchers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use feed::{Effect, Facts, PostId, UserId};
use rows::Rows;
use tokio::sync::{Notify, broadcast, watch};

pub(crate) use names::UserNames;
use newest::NewestPosts;
use public::PublicChanges;
pub use public::{PublicChange, PublicChangeKind};
pub(crate) use rendered::Rendered;
use shard::Shard;
pub(crate) use stories::{Shown, Stories};
use stream::Stream;
pub use watchers::Change;
pub(crate) use watchers::News;
use watchers::Watchers;

use crate::sync::{Mutex, MutexGuard};

/// Shards of the home timelines. More make the lock finer and the index larger: each author costs
/// an entry in every shard that has an active follower of theirs.
const SHARDS: usize = 16;
/// Effects not yet consumed by every shard at which no more changes are accepted. Those that were
/// accepted before still come: at most two inboxes of them, whose effects are counted before
/// ([`EFFECTS_PER_COMMAND`](crate::inbox::EFFECTS_PER_COMMAND)). With the default inbox the stream holds at most 262,144
/// effects of 32 bytes, 8 MiB, with the users of direct posts and of boosts besides (4 bytes each), and a read of a
/// timeline that its shard has not reached applies as many: 3 ms.
const BACKLOG_MAX: u64 = 1 << 17;
/// Number of pending effects at which the deliverer is woken even if there are no watchers.
const BACKLOG_WAKE: u64 = 1 << 12;
/// Effects that a shard may lag before its timelines apply the rest by themselves, each when it is read:
/// half of what the stream keeps of what was consumed.
const LAG_MAX: u64 = 1 << 15;
const _: () = assert!(size_of::<Effect>() <= 32 && BACKLOG_WAKE < LAG_MAX && LAG_MAX < BACKLOG_MAX);
/// Steps of catching up that the deliverer does before it lets others have the shard: about 0.1 ms.
const DELIVERER_STEPS: usize = 4_096;

/// Home timelines of active users, the newest posts of all users and stories of each, and both as JSON.
pub(crate) struct Views {
    stream: Stream,
    shards: Vec<Mutex<Shard>>,
    /// The watchers of each shard.
    watchers: Vec<Arc<Watchers>>,
    shard_bytes_max: usize,
    newest: NewestPosts,
    /// The cached data of stories homes.
    pub(crate) stories: Stories,
    /// Posts and stories as JSON.
    pub(crate) rendered: Rendered,
    public: PublicChanges,
    watches: AtomicU64,
    /// Rises with each change of stories or friends.
    story_changes: AtomicU64,
    /// Signals that the backlog is below [`BACKLOG_MAX`] again.
    room: Notify,
    hits: AtomicU64,
    rebuilds: AtomicU64,
}

/// Sizes and counts of the views, for the metrics.
#[derive(Clone, Copy, Debug, Default)]
pub struct ViewSizes {
    /// Users whose home timeline is in memory.
    pub active_timelines: u64,
    /// Estimated bytes of those timelines.
    pub timeline_bytes: u64,
    /// Bytes of rendered posts and stories.
    pub rendered_bytes: u64,
    /// Bytes of the newest posts, and estimated ones of authors' newest stories and of what readers saw.
    pub recent_bytes: u64,
    /// Posts put into timelines since the start.
    pub deliveries: u64,
    /// Timelines dropped to stay within the budget since the start.
    pub evictions: u64,
    /// Home pages answered from memory since the start.
    pub hits: u64,
    /// Timelines gathered from the facts since the start.
    pub rebuilds: u64,
    /// Effects that wait for a slow shard, or are kept for gathering.
    pub stream_effects: u64,
}

impl Views {
    /// Empty views within these budgets, in bytes, of facts that have no post from `first_post` on.
    pub(crate) fn new(timeline_bytes: usize, post_bytes: usize, first_post: PostId) -> Self {
        let quarter = post_bytes / 4;
        let watchers: Vec<Arc<Watchers>> = (0..SHARDS).map(|_| Arc::default()).collect();
        let shard =
            |watchers: &Arc<Watchers>| Mutex::new(Shard::new(Arc::clone(watchers), LAG_MAX));
        Self {
            stream: Stream::default(),
            shards: watchers.iter().map(shard).collect(),
            watchers,
            shard_bytes_max: timeline_bytes / SHARDS,
            newest: NewestPosts::new(quarter, first_post.0),
            stories: Stories::new(quarter / 2),
            rendered: Rendered::new(2 * quarter, quarter / 2),
            public: PublicChanges::new(),
            watches: AtomicU64::new(0),
            story_changes: AtomicU64::new(0),
            room: Notify::new(),
            hits: AtomicU64::new(0),
            rebuilds: AtomicU64::new(0),
        }
    }

    /// Applies what a group of commands did. Writer only; the facts hold it already.
    pub(crate) fn publish(&self, effects: &[Effect]) {
        self.newest.apply(effects);
        for effect in effects {
            match *effect {
                Effect::Mentioned { user, .. } => self.watchers(user).mentioned(user),
                Effect::Notified { user } => self.watchers(user).notified(user),
                Effect::MentionChanged { post, author, user, deleted } => {
                    let change = match deleted {
                        true => Change::MentionDeleted(post, author),
                        false => Change::Edited(post),
                    };
                    self.watchers(user).changed(user, change);
                }
                Effect::FiltersChanged { user } => {
                    self.watchers(user).changed(user, Change::Filters);
                }
                Effect::FriendsChanged { .. }
                | Effect::Blocked { .. }
                | Effect::MutesChanged { .. }
                | Effect::StoryPosted { .. } => {
                    self.stories.apply(effect);
                    self.story_changes.fetch_add(1, Ordering::Release);
                }
                Effect::StoryViewed { .. } => self.stories.apply(effect),
                Effect::StoryGone { story, .. } => {
                    self.stories.apply(effect);
                    self.rendered.forget(story);
                    self.story_changes.fetch_add(1, Ordering::Release);
                }
                Effect::UserHidden { .. } | Effect::UserDeleted { .. } => {
                    self.stories.apply(effect);
                    self.story_changes.fetch_add(1, Ordering::Release);
                }
                // Samples are a separate view.
                Effect::Posted { .. }
                | Effect::PostDeleted { .. }
                | Effect::PostEdited { .. }
                | Effect::BoostShown { .. }
                | Effect::FollowingChanged { .. }
                | Effect::FollowedMany { .. }
                | Effect::FollowedTagsChanged { .. }
                | Effect::SampleAdded { .. }
                | Effect::SampleDeleted { .. } => {}
            }
        }
        let effects = match effects {
            [rest @ .., _] if rows::has_bug("lose-effect") && rest.len() > 5 => rest,
            all => all,
        };
        self.stream.publish(effects.iter().filter(|effect| concerns_shards(effect)).cloned());
        self.public.publish(effects);
    }

    /// Whether a change may be submitted: false while the shards lag too far.
    pub(crate) fn has_room(&self) -> bool {
        self.stream.backlog() < BACKLOG_MAX
    }

    /// Waits until [`Views::has_room`] may be true again.
    pub(crate) async fn room(&self) {
        let room = self.room.notified();
        if !self.has_room() {
            room.await;
        }
    }

    /// Brings every shard up to date until little is left that was published meanwhile; returns
    /// whether there was anything new. The deliverer's work; any thread may do it.
    pub(crate) fn deliver(&self) -> bool {
        let mut news = false;
        loop {
            news |= self.deliver_once();
            if self.stream.backlog() < BACKLOG_WAKE {
                return news;
            }
        }
    }

    fn deliver_once(&self) -> bool {
        let (mut consumed, mut news) = (u64::MAX, false);
        for shard in &self.shards {
            loop {
                let mut shard = shard.lock();
                let before = shard.cursor();
                let done = shard.catch_up(&self.stream, DELIVERER_STEPS);
                news |= !done || shard.cursor() > before;
                if done {
                    consumed = consumed.min(shard.cursor());
                    break;
                }
                // Readers who wait for the shard come first.
                MutexGuard::unlock_fair(shard);
            }
        }
        self.stream.trim(consumed);
        if self.has_room() {
            self.room.notify_waiters();
        }
        news
    }

    fn watchers(&self, user: UserId) -> &Watchers {
        let Some(watchers) = self.watchers.get(user.0 as usize % SHARDS) else {
            unreachable!("a remainder is within the shards");
        };
        watchers
    }

    fn shard(&self, user: UserId) -> &Mutex<Shard> {
        let Some(shard) = self.shards.get(user.0 as usize % SHARDS) else {
            unreachable!("a remainder is within the shards");
        };
        shard
    }

    /// Waits for anything new for `user`: at home, in mentions, and among the stories of friends. May
    /// read the facts.
    pub(crate) fn watch<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        user: UserId,
    ) -> watch::Receiver<News> {
        self.watches.fetch_add(1, Ordering::Relaxed);
        let news = self.watchers(user).watch(user);
        // Read after the watch began, so that no new friend is missed.
        let friends = facts.friends_all(user);
        self.watchers(user).watch_stories(user, &friends);
        news
    }

    /// Changes of public posts from now on.
    pub(crate) fn public_changes(&self) -> broadcast::Receiver<PublicChange> {
        self.public.subscribe()
    }

    /// Ends a watch.
    pub(crate) fn unwatch(&self, user: UserId) {
        self.watches.fetch_sub(1, Ordering::Relaxed);
        self.watchers(user).unwatch(user);
    }

    /// A counter that rises when any story is posted or gone, or friends change. When a stamp is visible,
    /// it includes all changes up to that stamp.
    pub(crate) fn story_changes(&self) -> u64 {
        self.story_changes.load(Ordering::Acquire)
    }

    /// Whether there are watchers. If not, delivery is not urgent: a read catches up first.
    pub(crate) fn is_watched(&self) -> bool {
        self.watches.load(Ordering::Relaxed) > 0
    }

    /// Whether the deliverer should be woken: there are watchers, or there is much to deliver.
    pub(crate) fn is_delivery_urgent(&self) -> bool {
        self.is_watched() || self.stream.backlog() > BACKLOG_WAKE
    }

    /// Current sizes.
    pub(crate) fn sizes(&self) -> ViewSizes {
        let mut sizes = ViewSizes {
            rendered_bytes: self.rendered.bytes(),
            recent_bytes: (self.newest.bytes() + self.stories.bytes()) as u64,
            hits: self.hits.load(Ordering::Relaxed),
            rebuilds: self.rebuilds.load(Ordering::Relaxed),
            stream_effects: self.stream.len() as u64,
            ..ViewSizes::default()
        };
        for shard in &self.shards {
            let shard = shard.lock();
            sizes.active_timelines += shard.active() as u64;
            sizes.timeline_bytes += shard.bytes() as u64;
            sizes.deliveries += shard.tally.deliveries;
            sizes.evictions += shard.tally.evictions;
        }
        sizes
    }
}

/// Whether an effect is to reach the shards. A mention does not: it wakes the watchers at once, so that a
/// post adds one effect to the stream however many it mentions.
fn concerns_shards(effect: &Effect) -> bool {
    match effect {
        Effect::Posted { .. }
        | Effect::BoostShown { .. }
        | Effect::PostDeleted { .. }
        | Effect::PostEdited { .. }
        | Effect::FollowingChanged { .. }
        | Effect::FollowedMany { .. }
        | Effect::FriendsChanged { .. }
        | Effect::Blocked { .. }
        | Effect::MutesChanged { .. }
        | Effect::FollowedTagsChanged { .. }
        | Effect::StoryPosted { .. }
        | Effect::StoryGone { .. }
        | Effect::UserHidden { .. }
        | Effect::UserDeleted { .. } => true,
        Effect::Mentioned { .. }
        | Effect::Notified { .. }
        | Effect::MentionChanged { .. }
        | Effect::FiltersChanged { .. }
        | Effect::StoryViewed { .. }
        | Effect::SampleAdded { .. }
        | Effect::SampleDeleted { .. } => false,
    }
}
