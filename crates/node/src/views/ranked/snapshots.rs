//! Short-lived snapshots of rankings, so that the pages of a feed neither repeat nor lose posts while a user reads.
//!
//! **Invariant:** a user has at most two snapshots, so a user who reloads displaces only their own. When the budget is
//! used up, the snapshots of the user who has waited longest are dropped; a user who made or read a ranking meanwhile
//! waits again. So all operations take a constant time on average.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use feed::{PostId, UserId};
use hashbrown::HashMap;
use parking_lot::Mutex;
use rank::{RANKED_MAX, Sources};

use super::gather::Likers;

/// Time for which a snapshot is kept, in milliseconds.
const KEPT_MS: u64 = 600_000;
/// Size of a snapshot in bytes without its lists: with its places in the tables.
const SNAPSHOT_BYTES: usize = size_of::<Snapshot>() + 64;
const _: () = assert!(RANKED_MAX <= 1 << 8, "a place is a byte");

/// A post of a ranking.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) post: PostId,
    pub(crate) sources: Sources,
    pub(crate) explores: bool,
    /// Followed users who reacted.
    pub(crate) likers: Option<Likers>,
    /// User whose boost was in the home timeline.
    pub(crate) booster: Option<UserId>,
}

/// A ranking of a feed for a user.
pub(crate) struct Snapshot {
    pub(crate) user: UserId,
    /// Name of the feed.
    feed: Box<str>,
    /// Number that cursors name.
    pub(crate) number: u64,
    made_ms: u64,
    /// Number of items on the pages that were read.
    read: AtomicUsize,
    /// Time of the last request for a page.
    asked_ms: AtomicU64,
    posts: Box<[PostId]>,
    /// Sources of each post, and whether it was chosen for exploration.
    origins: Box<[(Sources, bool)]>,
    /// Places of the posts to which followed users reacted, ascending, and these users.
    liked: Box<[u8]>,
    likers: Box<[Likers]>,
    /// Places of the posts that were boosted in the home timeline, ascending, and who boosted them.
    boosters: Box<[(u8, UserId)]>,
    /// Numbers of the viewer's hashtags.
    tags: Box<[u32]>,
}

impl Snapshot {
    /// Creates a snapshot of at most [`RANKED_MAX`] items.
    pub(crate) fn new(
        user: UserId,
        feed: &str,
        (items, tags): (&[Item], Box<[u32]>),
        now_ms: u64,
    ) -> Self {
        let places = || (0..=u8::MAX).zip(items);
        let liked = places().filter_map(|(place, item)| Some((place, item.likers?)));
        let (liked, likers): (Vec<_>, Vec<_>) = liked.unzip();
        let boosters = places().filter_map(|(place, item)| Some((place, item.booster?)));
        Self {
            user,
            feed: feed.into(),
            number: 0,
            made_ms: now_ms,
            read: AtomicUsize::new(0),
            asked_ms: AtomicU64::new(now_ms),
            posts: items.iter().map(|item| item.post).collect(),
            origins: items.iter().map(|item| (item.sources, item.explores)).collect(),
            liked: liked.into(),
            likers: likers.into(),
            boosters: boosters.collect(),
            tags,
        }
    }

    /// Number of posts.
    pub(crate) fn len(&self) -> usize {
        self.posts.len()
    }

    /// Post at a place.
    pub(crate) fn item(&self, place: usize) -> Option<Item> {
        let (post, (sources, explores)) = (*self.posts.get(place)?, *self.origins.get(place)?);
        let place = u8::try_from(place).ok()?;
        let likers = self.liked.binary_search(&place).ok().and_then(|at| self.likers.get(at));
        let booster = self.boosters.binary_search_by_key(&place, |(place, _)| *place).ok();
        let booster = booster.and_then(|at| self.boosters.get(at)).map(|(_, user)| *user);
        Some(Item { post, sources, explores, likers: likers.copied(), booster })
    }

    /// Whether the viewer follows or uses the hashtag with this number.
    pub(crate) fn has_tag(&self, number: u32) -> bool {
        self.tags.contains(&number)
    }

    /// Notes that the first `count` items were on pages that the user has read.
    pub(crate) fn has_read(&self, count: usize) {
        self.read.fetch_max(count, Ordering::Relaxed);
    }

    fn bytes(&self) -> usize {
        SNAPSHOT_BYTES
            + self.feed.len()
            + size_of_val(&*self.posts)
            + size_of_val(&*self.origins)
            + size_of_val(&*self.liked)
            + size_of_val(&*self.likers)
            + size_of_val(&*self.boosters)
            + size_of_val(&*self.tags)
    }

    fn is_expired(&self, now_ms: u64) -> bool {
        self.made_ms + KEPT_MS < now_ms
    }
}

/// Snapshots of all users.
pub(crate) struct Snapshots {
    kept: Mutex<Kept>,
    bytes_max: usize,
}

#[derive(Default)]
struct Kept {
    users: HashMap<UserId, OfUser>,
    /// Each user of the table once, in the order in which their snapshots are dropped.
    queue: VecDeque<UserId>,
    bytes: usize,
    last: u64,
}

/// Snapshots of a user.
struct OfUser {
    newest: Arc<Snapshot>,
    older: Option<Arc<Snapshot>>,
    /// Whether the user made or read a ranking after the place in the queue was taken.
    waits_again: bool,
}

impl OfUser {
    fn all(&self) -> impl Iterator<Item = &Arc<Snapshot>> {
        [Some(&self.newest), self.older.as_ref()].into_iter().flatten()
    }
}

impl Snapshots {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { kept: Mutex::default(), bytes_max }
    }

    /// Keeps a snapshot with a new number.
    pub(crate) fn keep(&self, mut snapshot: Snapshot) -> Arc<Snapshot> {
        // Declared before the guard, so that snapshots are freed after the lock is released.
        let mut dropped = Vec::new();
        let mut guard = self.kept.lock();
        let kept = &mut *guard;
        kept.last += 1;
        snapshot.number = kept.last;
        let snapshot = Arc::new(snapshot);
        dropped.extend(kept.add(&snapshot));
        while let Some(user) = kept.queue.front().copied() {
            let is_full = kept.bytes > self.bytes_max;
            let Some(of) = kept.users.get_mut(&user) else { break };
            let is_expired = of.newest.is_expired(snapshot.made_ms);
            if !is_full && !is_expired {
                break;
            }
            kept.queue.pop_front();
            if std::mem::take(&mut of.waits_again) && !is_expired {
                kept.queue.push_back(user);
            } else if let Some(of) = kept.users.remove(&user) {
                kept.bytes -= of.all().map(|it| it.bytes()).sum::<usize>();
                dropped.extend(of.older);
                dropped.push(of.newest);
            }
        }
        drop(guard);
        snapshot
    }

    /// Posts on the pages that a user has read of the kept snapshots, with the number of the snapshots.
    pub(crate) fn shown(&self, user: UserId, now_ms: u64) -> HashMap<PostId, u32> {
        let kept = self.kept.lock();
        let of_user = kept.users.get(&user).map(|of| (Arc::clone(&of.newest), of.older.clone()));
        drop(kept);
        let mut shown = HashMap::new();
        let of_user = of_user.into_iter().flat_map(|(newest, older)| [Some(newest), older]);
        for snapshot in of_user.flatten().filter(|it| !it.is_expired(now_ms)) {
            for post in snapshot.posts.iter().take(snapshot.read.load(Ordering::Relaxed)) {
                *shown.entry(*post).or_default() += 1;
            }
        }
        shown
    }

    /// Returns the number of a kept ranking of a user's feed that has the post, and the index of the next post. Of two rankings with the post, it is the one in which the user has read a page with the post, or the
    /// newer one.
    pub(crate) fn place_after(
        &self,
        user: UserId,
        feed: &str,
        post: PostId,
        now_ms: u64,
    ) -> Option<(u64, usize)> {
        let kept = self.kept.lock();
        let of_feed = kept.users.get(&user)?.all();
        let of_feed = of_feed.filter(|it| *it.feed == *feed && !it.is_expired(now_ms));
        let places = of_feed.filter_map(|it| {
            let place = it.posts.iter().position(|other| *other == post)?;
            let is_read = place < it.read.load(Ordering::Relaxed);
            Some((is_read, it.number, place + 1))
        });
        places.max().map(|(_, number, place)| (number, place))
    }

    /// Whether a user has a kept ranking of a feed of which a page was requested after `since_ms`.
    pub(crate) fn has_since(&self, user: UserId, feed: &str, since_ms: u64) -> bool {
        let kept = self.kept.lock();
        let mut all = kept.users.get(&user).into_iter().flat_map(OfUser::all);
        all.any(|it| *it.feed == *feed && it.asked_ms.load(Ordering::Relaxed) > since_ms)
    }

    /// Whether a ranking of a user is kept, for tests.
    #[cfg(test)]
    pub(super) fn has(&self, user: UserId) -> bool {
        self.kept.lock().users.contains_key(&user)
    }

    /// Returns a snapshot of a user's feed, if it is still kept.
    pub(crate) fn get(
        &self,
        user: UserId,
        feed: &str,
        number: u64,
        now_ms: u64,
    ) -> Option<Arc<Snapshot>> {
        let mut kept = self.kept.lock();
        let of = kept.users.get_mut(&user)?;
        let found = of.all().find(|it| it.number == number).map(Arc::clone)?;
        let found = Some(found).filter(|it| *it.feed == *feed && !it.is_expired(now_ms))?;
        found.asked_ms.fetch_max(now_ms, Ordering::Relaxed);
        of.waits_again = true;
        Some(found)
    }
}

impl Kept {
    /// Adds a snapshot; returns the one of the user that it replaces.
    fn add(&mut self, snapshot: &Arc<Snapshot>) -> Option<Arc<Snapshot>> {
        self.bytes += snapshot.bytes();
        let Some(of) = self.users.get_mut(&snapshot.user) else {
            let of = OfUser { newest: Arc::clone(snapshot), older: None, waits_again: false };
            self.users.insert(snapshot.user, of);
            self.queue.push_back(snapshot.user);
            return None;
        };
        let older = std::mem::replace(&mut of.newest, Arc::clone(snapshot));
        let dropped = of.older.replace(older);
        of.waits_again = true;
        self.bytes -= dropped.as_ref().map_or(0, |it| it.bytes());
        dropped
    }
}
