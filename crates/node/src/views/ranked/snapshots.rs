//! Short-lived snapshots of rankings, so that the pages of a feed neither repeat nor lose posts while a user reads.
//!
//! **Invariant:** a user has at most [`PER_USER_MAX`] snapshots. When the budget is used up, the oldest snapshots of all
//! users are dropped.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use feed::{PostId, UserId};
use hashbrown::HashMap;
use parking_lot::Mutex;
use rank::{Features, Sources};

use super::gather::Likers;

/// Number of snapshots of a user, of all feeds together.
const PER_USER_MAX: usize = 2;
/// Time for which a snapshot is kept, in milliseconds.
const KEPT_MS: u64 = 600_000;

/// A post of a ranking.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) post: PostId,
    pub(crate) score: f32,
    pub(crate) sources: Sources,
    pub(crate) explores: bool,
}

/// A ranking of a feed for a user.
pub(crate) struct Snapshot {
    pub(crate) user: UserId,
    /// Name of the feed.
    pub(crate) feed: Box<str>,
    /// Number that cursors name.
    pub(crate) number: u64,
    pub(crate) made_ms: u64,
    pub(crate) items: Vec<Item>,
    /// Number of items on the pages that were read.
    pub(crate) read: AtomicUsize,
    /// Followed users who reacted, in ascending order of posts.
    pub(crate) likers: Vec<(PostId, Likers)>,
    /// Numbers of the viewer's hashtags.
    pub(crate) tags: Vec<u32>,
    /// Features of the items, if the reader asked for them; otherwise empty.
    pub(crate) features: Vec<Features>,
}

/// Snapshots, oldest first.
pub(crate) struct Snapshots {
    kept: Mutex<Kept>,
    bytes_max: usize,
}

#[derive(Default)]
struct Kept {
    snapshots: VecDeque<Arc<Snapshot>>,
    bytes: usize,
    last: u64,
}

impl Snapshots {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { kept: Mutex::default(), bytes_max }
    }

    /// Keeps a snapshot with a new number.
    pub(crate) fn keep(&self, mut snapshot: Snapshot) -> Arc<Snapshot> {
        let mut kept = self.kept.lock();
        kept.last += 1;
        snapshot.number = kept.last;
        let snapshot = Arc::new(snapshot);
        let (user, expired_ms) = (snapshot.user, snapshot.made_ms.saturating_sub(KEPT_MS));
        let of_user = kept.snapshots.iter().filter(|other| other.user == user).count();
        if of_user >= PER_USER_MAX
            && let Some(place) = kept.snapshots.iter().position(|other| other.user == user)
            && let Some(old) = kept.snapshots.remove(place)
        {
            kept.bytes -= bytes(&old);
        }
        kept.bytes += bytes(&snapshot);
        kept.snapshots.push_back(Arc::clone(&snapshot));
        while kept.bytes > self.bytes_max
            || kept.snapshots.front().is_some_and(|oldest| oldest.made_ms < expired_ms)
        {
            let Some(oldest) = kept.snapshots.pop_front() else { break };
            kept.bytes -= bytes(&oldest);
        }
        snapshot
    }

    /// Posts on the pages that a user has read of the kept snapshots, with the number of the snapshots.
    pub(crate) fn shown(&self, user: UserId) -> HashMap<PostId, u32> {
        let kept = self.kept.lock();
        let of_user: Vec<_> = kept.snapshots.iter().filter(|it| it.user == user).cloned().collect();
        drop(kept);
        let mut shown = HashMap::new();
        for snapshot in of_user {
            for item in snapshot.items.iter().take(snapshot.read.load(Ordering::Relaxed)) {
                *shown.entry(item.post).or_default() += 1;
            }
        }
        shown
    }

    /// Returns a snapshot of a user's feed, if it is still kept.
    pub(crate) fn get(&self, user: UserId, feed: &str, number: u64) -> Option<Arc<Snapshot>> {
        let kept = self.kept.lock();
        let place = kept.snapshots.binary_search_by_key(&number, |other| other.number).ok()?;
        let found = kept.snapshots.get(place)?;
        (found.user == user && *found.feed == *feed).then(|| Arc::clone(found))
    }
}

/// Size of a snapshot in bytes.
fn bytes(Snapshot { feed, items, likers, tags, features, .. }: &Snapshot) -> usize {
    size_of::<Snapshot>()
        + feed.len()
        + size_of_val(items.as_slice())
        + size_of_val(likers.as_slice())
        + size_of_val(tags.as_slice())
        + size_of_val(features.as_slice())
}
