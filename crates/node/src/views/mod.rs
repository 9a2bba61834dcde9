//! Data that is derived from the facts and kept in memory, so that reads need neither a queue nor a disk.
//!
//! **Invariant:** the facts can rebuild everything in a view; dropping any part of it costs time and changes no answer.
//! **Invariant:** locks are taken in this order: table of timelines, a timeline, the newest posts. A holder of the
//! watchers' lock takes no other lock except that of the effects.
//! **Invariant:** a post costs the writer the same for any number of followers, event streams and consumers of effects.
//!
//! Read `newest`, `timeline`, `user_cache`, `homes`, then `effects`, `watchers` and `wake`. Separate topics are
//! `stories`, `samples`, `keys`, `ranked`, and rendering: `entities`, then `rendered`, `render` and `names`.

mod effects;
mod entities;
mod homes;
pub(crate) mod ids;
pub(crate) mod keys;
mod names;
mod newest;
mod newest_stories;
pub(crate) mod positions;
#[cfg(all(test, feature = "loom"))]
mod races;
pub(crate) mod ranked;
pub(crate) mod render;
mod rendered;
pub(crate) mod samples;
mod stories;
pub(crate) mod sync;
#[cfg(test)]
mod tests;
mod timeline;
mod user_cache;
mod wake;
mod watchers;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use commitlog::Position;
use feed::{
    Act, Effect, Facts, Input, PostChange, PostId, Reaction, StoryChange, UserChange, UserId,
};
use rows::Rows;
use tokio::sync::watch;

pub(crate) use effects::BYTES_MAX as EFFECTS_BYTES_MAX;
use effects::Effects;
pub use effects::Lost;
pub(crate) use entities::Entities;
pub use entities::{Entity, EntityKey, MadeOf};
pub use names::UserNames;
use newest::NewestPosts;
use ranked::Ranked;
pub(crate) use stories::{Shown, Stories};
use timeline::Timeline;
use user_cache::UserCache;
pub use watchers::Change;
pub(crate) use watchers::News;
use watchers::Watchers;

/// Number of counters of mentions; they take 256 KiB. Users whose ids are equal modulo this number share a counter.
const MENTION_COUNTERS: usize = 1 << 16;

/// All views: home timelines, newest posts, stories, rendered entities, watchers and effects.
pub(crate) struct Views {
    /// Home timelines of active users. Each follows `newest`; a follow, mute or block by the user drops the user's
    /// timeline.
    timelines: UserCache<Timeline>,
    newest: NewestPosts,
    /// Data for lists of stories.
    pub(crate) stories: Stories,
    /// Rendered posts, stories and other entities.
    pub(crate) entities: Entities,
    /// Recent posts and reactions for ranked feeds.
    pub(crate) ranked: Ranked,
    watchers: Watchers,
    effects: Effects,
    /// Whether all watchers must be woken, because effects were lost, or because readers may have read a command that
    /// was undone.
    wakes_all: AtomicBool,
    /// Number of times that all watchers were woken.
    wake_overflows: AtomicU64,
    /// Counter that rises with each change of stories or friends.
    story_changes: AtomicU64,
    /// Counters that rise with each mention of some users.
    mention_changes: Vec<AtomicU32>,
    hits: AtomicU64,
    rebuilds: AtomicU64,
}

/// Sizes and counts of the views, for the metrics.
#[derive(Clone, Copy, Debug, Default)]
pub struct ViewSizes {
    /// Number of users whose home timeline is in memory.
    pub active_timelines: u64,
    /// Estimated size of these timelines in bytes.
    pub timeline_bytes: u64,
    /// Size of rendered posts, stories, statuses, accounts and of names, in bytes.
    pub rendered_bytes: u64,
    /// Size of the newest posts, and estimated size of authors' newest stories and of seen stories, in bytes.
    pub recent_bytes: u64,
    /// Number of timelines dropped since the start because of the budget.
    pub evictions: u64,
    /// Number of home pages answered from memory since the start.
    pub hits: u64,
    /// Number of timelines gathered from the facts since the start.
    pub rebuilds: u64,
    /// Number of times since the start that all event streams had to read again, because too many changes were pending
    /// or because a command was undone.
    pub wake_overflows: u64,
    /// Number of users with an event stream who are not indexed by author, and so are checked for each post.
    pub unindexed_watchers: u64,
    /// Whether the view for ranked feeds has all recent posts: false before the first read of a ranked feed or of trends.
    pub ranked_loaded: bool,
    /// Number of changes since the start that the view for ranked feeds has skipped because there were too many.
    pub ranked_skipped: u64,
}

impl Views {
    /// Creates empty views with these budgets in bytes. The facts have the groups up to `applied`, and no post from
    /// `first_post` on.
    pub(crate) fn new(
        (timeline_bytes, post_bytes, entity_bytes): (usize, usize, usize),
        (applied, first_post): (Position, PostId),
    ) -> Self {
        let quarter = post_bytes / 4;
        Self {
            timelines: UserCache::new(timeline_bytes),
            newest: NewestPosts::new(quarter, first_post.0),
            stories: Stories::new(quarter / 2),
            entities: Entities::new(2 * quarter + quarter / 4 + entity_bytes),
            ranked: Ranked::new(quarter / 4),
            watchers: Watchers::default(),
            effects: Effects::new(applied),
            wakes_all: AtomicBool::new(false),
            wake_overflows: AtomicU64::new(0),
            story_changes: AtomicU64::new(0),
            mention_changes: (0..MENTION_COUNTERS).map(|_| AtomicU32::new(0)).collect(),
            hits: AtomicU64::new(0),
            rebuilds: AtomicU64::new(0),
        }
    }

    /// Applies the effects of the group at `position`, and with `is_undone` drops what readers may have read of undone
    /// commands. Called by the writer only, after the facts have the group.
    pub(crate) fn publish(&self, position: Position, mut effects: Vec<Effect>, is_undone: bool) {
        // Timelines are dropped first: a timeline must not show a later post to a user who unfollowed its author or was
        // blocked before the post.
        effects.iter().for_each(|effect| self.drop_timelines(effect));
        self.newest.apply(match effects.as_slice() {
            [rest @ .., _] if rows::has_bug("lose-effect") && rest.len() > 5 => rest,
            all => all,
        });
        for effect in &effects {
            if self.stories.apply(effect) {
                self.story_changes.fetch_add(1, Ordering::Release);
            }
            match *effect {
                Effect::Mention { user, change: PostChange::Published, .. } => {
                    self.mention_changes_of(user).fetch_add(1, Ordering::Release);
                }
                Effect::Story { story, change: StoryChange::Gone, .. } => {
                    self.entities.forget(story);
                }
                Effect::User { user, change: UserChange::Deleted } => {
                    self.ranked.seen().forget(user);
                }
                _ => {}
            }
        }
        if is_undone {
            self.forget_undone();
        }
        effects.retain(is_followed);
        self.effects.publish(position, effects);
    }

    /// Drops what readers may have read of an undone command. Rendered entities are invalidated by their revisions.
    fn forget_undone(&self) {
        self.timelines.clear();
        self.stories.clear();
        self.newest.abort_load();
        self.story_changes.fetch_add(1, Ordering::Release);
        self.wakes_all.store(true, Ordering::Release);
    }

    /// Drops the timelines of users whose follows, mutes or hidden users changed; the next read gathers them again.
    fn drop_timelines(&self, effect: &Effect) {
        if let Effect::Follow { user, .. }
        | Effect::Input { user, input: Input::Follows | Input::Hidden } = *effect
        {
            self.timelines.change(user, |_| None);
        }
    }

    /// Returns the effects after a position: see [`Effects::next`].
    pub(crate) fn next_effects(
        &self,
        cursor: &mut Position,
    ) -> Result<Option<Arc<[Effect]>>, Lost> {
        self.effects.next(cursor)
    }

    /// Returns the position of the last group whose effects are published.
    pub(crate) fn effects_end(&self) -> Position {
        self.effects.end()
    }

    /// Applies all effects so far to the view for ranked feeds. May read the facts.
    pub(crate) fn catch_up_ranked<R: Rows + ?Sized>(&self, facts: Facts<'_, R>, now_ms: u64) {
        self.ranked.catch_up(facts, &self.effects, now_ms);
    }

    /// Loads the view for ranked feeds from the facts, unless `is_stopped`. May read the facts.
    pub(crate) fn load_ranked<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        now_ms: u64,
        is_stopped: impl Fn() -> bool,
    ) {
        self.ranked.load(facts, &self.effects, now_ms, is_stopped);
    }

    /// Moves some users to other interest groups, from the place `next` of the table of users on. May read the facts.
    pub(crate) fn group_users<R: Rows + ?Sized>(&self, facts: Facts<'_, R>, next: &mut usize) {
        self.ranked.group(facts, next);
    }

    /// Begins to watch for news for `user`: in the home timeline, in mentions, and among the stories of friends. May
    /// read the facts.
    pub(crate) fn watch<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        user: UserId,
    ) -> watch::Receiver<News> {
        let news = self.watchers.watch(user, &self.effects);
        // The authors are read after the watch has begun, so that it misses no later follow.
        match self.timelines.reader().get(&user) {
            Some(timeline) => self.watchers.watch_posts(user, &timeline.home),
            None => self.watchers.watch_posts(user, &facts.home_authors(user)),
        }
        news
    }

    /// Ends a watch.
    pub(crate) fn unwatch(&self, user: UserId) {
        self.watchers.unwatch(user);
    }

    /// Returns a counter that rises when a story is posted or ends, or when friends change. When a stamp is visible,
    /// the counter includes all changes up to that stamp.
    pub(crate) fn story_changes(&self) -> u64 {
        self.story_changes.load(Ordering::Acquire)
    }

    /// Returns a counter that rises when `user` or a few other users are mentioned. When a stamp is visible, the
    /// counter includes all mentions up to that stamp.
    pub(crate) fn mention_changes(&self, user: UserId) -> u32 {
        self.mention_changes_of(user).load(Ordering::Acquire)
    }

    fn mention_changes_of(&self, user: UserId) -> &AtomicU32 {
        let Some(changes) = self.mention_changes.get(user.0 as usize % MENTION_COUNTERS) else {
            unreachable!("a remainder is within the counters")
        };
        changes
    }

    /// Whether there are watchers.
    pub(crate) fn is_watched(&self) -> bool {
        self.watchers.are_any()
    }

    /// Returns the current sizes.
    pub(crate) fn sizes(&self) -> ViewSizes {
        ViewSizes {
            rendered_bytes: self.entities.bytes(),
            recent_bytes: (self.newest.bytes() + self.stories.bytes()) as u64,
            hits: self.hits.load(Ordering::Relaxed),
            rebuilds: self.rebuilds.load(Ordering::Relaxed),
            active_timelines: self.timelines.len() as u64,
            timeline_bytes: self.timelines.bytes() as u64,
            evictions: self.timelines.evictions(),
            wake_overflows: self.wake_overflows.load(Ordering::Relaxed),
            unindexed_watchers: self.watchers.unindexed() as u64,
            ranked_loaded: self.ranked.is_loaded(),
            ranked_skipped: self.ranked.skipped(),
        }
    }
}

/// Whether effects of this kind are published to consumers.
fn is_followed(effect: &Effect) -> bool {
    match effect {
        Effect::Story { change, .. } => !matches!(change, StoryChange::Viewed { .. }),
        Effect::Act { act: Act::Reacted { reaction, .. }, .. } => *reaction == Reaction::Favourite,
        Effect::Sample { .. } | Effect::Act { .. } => false,
        _ => true,
    }
}
