//! One active person's home timeline: the newest post ids, contiguous to the newest of all.

use feed::timeline::sees;
use feed::{Cursor, Page, PageOf, PostId, UserId};

/// Ids kept after trimming: a largest page and the one behind it that tells there are more.
pub(super) const KEPT: usize = feed::limits::PAGE_MAX + 4;
/// Ids at which the oldest are trimmed.
const TRIM_AT: usize = KEPT + 8;

/// A cached home timeline.
///
/// **Invariant:** `posts` is ascending and holds every post of home(user) that is not older than
/// its first one; if `complete`, it holds all of them.
pub(super) struct Timeline {
    /// Whose.
    pub(super) user: UserId,
    /// Whom they follow, sorted.
    pub(super) following: Box<[UserId]>,
    /// Whether it was read since the eviction hand came by.
    pub(super) touched: bool,
    posts: Vec<PostId>,
    complete: bool,
}

impl Timeline {
    /// A timeline as gathered: `newest` holds its newest posts, newest first.
    pub(super) fn new(user: UserId, following: Box<[UserId]>, newest: &PageOf<PostId>) -> Self {
        // A list of its own size: the gathered one has room for all that was considered.
        let room = if newest.items.len() < KEPT { newest.items.len() } else { TRIM_AT };
        let mut posts = Vec::with_capacity(room);
        posts.extend(newest.items.iter().rev());
        Self { user, following, touched: true, posts, complete: !newest.more }
    }

    /// Takes in a post by `author`, whom the user follows or is; false if they do not see it.
    pub(super) fn deliver(
        &mut self,
        post: PostId,
        author: UserId,
        reply_to: Option<UserId>,
    ) -> bool {
        if reply_to.is_some() && !sees(self.user, &self.following, author, reply_to) {
            return false;
        }
        match self.posts.last() {
            Some(last) if *last >= post => {
                if let Err(at) = self.posts.binary_search(&post)
                    && (at > 0 || self.complete)
                {
                    self.posts.insert(at, post);
                }
            }
            _ => self.posts.push(post),
        }
        if self.posts.len() >= TRIM_AT {
            self.posts.drain(..self.posts.len() - KEPT);
            self.complete = false;
        }
        true
    }

    /// Takes out a post.
    pub(super) fn remove(&mut self, post: PostId) {
        if let Ok(at) = self.posts.binary_search(&post) {
            self.posts.remove(at);
        }
    }

    /// The ids of a page, appended to `out` newest first, and whether there are more in the
    /// direction of reading. `None` if the answer lies beyond what is kept.
    pub(super) fn page(&self, page: &Page, out: &mut Vec<PostId>) -> Option<bool> {
        if let Cursor::After(after) = page.cursor {
            let from = self.posts.partition_point(|post| *post <= after);
            if from == 0 && !self.complete {
                return None;
            }
            let newer = self.posts.get(from..)?;
            out.extend(newer.iter().take(page.limit).rev());
            return Some(newer.len() > page.limit);
        }
        let end = match page.cursor {
            Cursor::Before(before) => self.posts.partition_point(|post| *post < before),
            _ => self.posts.len(),
        };
        if end <= page.limit && !self.complete {
            return None;
        }
        let older = self.posts.get(..end)?;
        out.extend(older.iter().rev().take(page.limit));
        Some(older.len() > page.limit)
    }

    /// Bytes held, with those of the index entries that point here.
    pub(super) fn bytes(&self) -> usize {
        const INDEX_ENTRY_BYTES: usize = 12;
        size_of::<Self>() + TRIM_AT * 8 + (self.following.len() + 1) * (4 + INDEX_ENTRY_BYTES)
    }
}
