//! Each author's newest posts, so that gathering a timeline asks the store for few of them.
//!
//! The writer appends while it applies; readers fill in authors they miss. **Invariant:** an
//! author's list holds all their standing posts that are not older than its first one.

use feed::facts::older_than;
use feed::timeline::Posted;
use feed::{Order, PostId, Span, UserId};
use hashbrown::HashMap;
use parking_lot::Mutex;

const SHARDS: usize = 64;
/// Posts kept of an author, at least, once they have that many: what gathering asks for first, and
/// a few more.
const KEPT: usize = 10;
const TRIM_AT: usize = 16;
/// Bytes an author costs at most: the list, its entry in the table and slack.
const AUTHOR_BYTES: usize = TRIM_AT * size_of::<Posted>() + 80;

/// Newest posts by author, in shards.
pub(super) struct RecentPosts {
    shards: Vec<Mutex<Shard>>,
    authors_max: usize,
}

#[derive(Default)]
struct Shard {
    authors: HashMap<UserId, Recent>,
    /// Counts changes, so that a reader notices that what it read may be old.
    changes: u64,
}

#[derive(Default)]
struct Recent {
    /// Ascending.
    posts: Vec<Posted>,
    complete: bool,
}

impl RecentPosts {
    /// Keeps at most `bytes` of posts.
    pub(super) fn new(bytes: usize) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { shards, authors_max: (bytes / SHARDS / AUTHOR_BYTES).max(1) }
    }

    fn shard(&self, author: UserId) -> &Mutex<Shard> {
        let Some(shard) = self.shards.get(author.0 as usize % SHARDS) else {
            unreachable!("a remainder is within the shards");
        };
        shard
    }

    /// Takes in a post that is in the facts already. Writer only, in order.
    pub(super) fn push(&self, author: UserId, post: PostId, reply_to: Option<UserId>) {
        let mut shard = self.shard(author).lock();
        shard.changes += 1;
        let Some(recent) = shard.authors.get_mut(&author) else { return };
        if recent.posts.last().is_none_or(|(last, _)| *last < post) {
            recent.posts.push((post, reply_to));
        }
        if recent.posts.len() >= TRIM_AT {
            recent.posts.drain(..recent.posts.len() - KEPT);
            recent.complete = false;
        }
    }

    /// Forgets an author, one of whose posts has gone from the facts. Writer only.
    pub(super) fn forget(&self, author: UserId) {
        let mut shard = self.shard(author).lock();
        shard.changes += 1;
        shard.authors.remove(&author);
    }

    /// Posts of `author` within `span`; `facts` reads them where they are not at hand.
    pub(super) fn read(
        &self,
        author: UserId,
        span: Span,
        facts: impl Fn(Span) -> Vec<Posted>,
    ) -> Vec<Posted> {
        let (known, changes) = {
            let shard = self.shard(author).lock();
            let recent = shard.authors.get(&author);
            if let Some(found) = recent.and_then(|recent| recent.within(span)) {
                return found;
            }
            (recent.is_some(), shard.changes)
        };
        // The list is there but too short, or an older part is wanted: only the facts know.
        if known || span.high != u64::MAX {
            return facts(span);
        }
        let Some(newest) = older_than(None, KEPT) else { return facts(span) };
        let mut posts = facts(newest);
        let complete = posts.len() < KEPT;
        posts.reverse();
        let recent = Recent { posts, complete };
        let found = recent.within(span);
        let mut shard = self.shard(author).lock();
        if shard.changes == changes {
            shard.make_room(self.authors_max);
            shard.authors.insert(author, recent);
        }
        drop(shard);
        found.unwrap_or_else(|| facts(span))
    }
}

impl Shard {
    /// Any author is as good a victim as another: a missed one costs one short scan.
    fn make_room(&mut self, authors_max: usize) {
        while self.authors.len() >= authors_max {
            let Some(victim) = self.authors.keys().next().copied() else { return };
            self.authors.remove(&victim);
        }
    }
}

impl Recent {
    fn within(&self, span: Span) -> Option<Vec<Posted>> {
        let from = self.posts.partition_point(|(post, _)| post.0 < span.low);
        let to = self.posts.partition_point(|(post, _)| post.0 <= span.high).max(from);
        let found = self.posts.get(from..to)?;
        let reaches_back = from > 0 || self.complete;
        match span.order {
            Order::Descending if found.len() >= span.limit || reaches_back => {
                Some(found.iter().rev().take(span.limit).copied().collect())
            }
            Order::Ascending if reaches_back => {
                Some(found.iter().take(span.limit).copied().collect())
            }
            _ => None,
        }
    }
}
