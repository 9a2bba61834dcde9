//! Threads: the posts that a post replies to, and the replies to it, both within limits.
//!
//! Ancestors of a post are found through its references. Descendants are walked in **thread order**: a
//! reply, then all replies to it, then the next reply to the same post; replies to one post in ascending
//! order of ids. A deleted post ends the list of ancestors, and its replies are descendants of no post.
//!
//! While the rows of a deleted user are removed, a page of descendants may count replies by them, which
//! do not exist: their number has no bound, so reading on until the page is full has none either.

use rows::{Rows, Span};

use crate::facts::Facts;
use crate::ids::PostId;
use crate::limits::{THREAD_ANCESTORS_MAX, THREAD_DEPTH_MAX};

/// Where in thread order a page begins: after the last of these posts. Each replies to the one before it,
/// the first to the post whose thread is read. Empty for the beginning; at most
/// [`THREAD_DEPTH_MAX`] posts, which may have been deleted.
pub type ThreadPath = Vec<PostId>;

/// Some of the posts below a post.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Descendants {
    /// In thread order.
    pub posts: Vec<PostId>,
    /// The start of the next page, if there is more.
    pub next: Option<ThreadPath>,
}

/// The ancestors of `post`: each replies to the one before it, oldest first. Returns the nearest
/// [`THREAD_ANCESTORS_MAX`] at most.
#[must_use]
pub fn ancestors<R: Rows + ?Sized>(facts: Facts<'_, R>, post: PostId) -> Vec<PostId> {
    let parent = |post: PostId| facts.post(post)?.in_reply_to.filter(|id| facts.has_post(*id));
    let above = std::iter::successors(parent(post), |post| parent(*post));
    let mut found: Vec<_> = above.take(THREAD_ANCESTORS_MAX).collect();
    found.reverse();
    found
}

/// The first `limit` (at least 1) posts below `post`, at most [`THREAD_DEPTH_MAX`] levels, that come after `from` in
/// thread order.
///
/// Costs one read of at most `limit` + 1 rows for each post found and for each level.
#[must_use]
pub fn descendants<R: Rows + ?Sized>(
    facts: Facts<'_, R>,
    post: PostId,
    from: &[PostId],
    limit: usize,
) -> Descendants {
    let mut walk = Walk { facts, limit, path: Vec::new(), posts: Vec::new(), last: Vec::new() };
    let all = walk.below(post, from);
    Descendants { posts: walk.posts, next: (!all).then_some(walk.last) }
}

struct Walk<'a, R: Rows + ?Sized> {
    facts: Facts<'a, R>,
    limit: usize,
    /// From the post whose thread is read (not included) down to the current post.
    path: Vec<PostId>,
    posts: Vec<PostId>,
    /// The path to the last post of the page, once it is found.
    last: ThreadPath,
}

impl<R: Rows + ?Sized> Walk<'_, R> {
    /// Walks the descendants of `post`, the last of the path, that come after `from`; returns whether none
    /// are left.
    fn below(&mut self, post: PostId, from: &[PostId]) -> bool {
        if self.path.len() >= THREAD_DEPTH_MAX {
            return true;
        }
        let mut after = PostId(0);
        if let Some((first, rest)) = from.split_first() {
            after = *first;
            // A post that was deleted since has no descendants.
            if self.facts.is_reply(post, after) && !self.enter(after, rest) {
                return false;
            }
        }
        // One more than fits on the page, to know whether there is more.
        let wanted = self.limit - self.posts.len() + 1;
        let Some(span) = Span::above(after.0, wanted) else { return true };
        for reply in self.facts.replies_to(post, span) {
            if self.posts.len() == self.limit {
                return false;
            }
            self.posts.push(reply);
            if self.posts.len() == self.limit {
                self.last.clone_from(&self.path);
                self.last.push(reply);
            }
            if !self.enter(reply, &[]) {
                return false;
            }
        }
        true
    }

    fn enter(&mut self, post: PostId, from: &[PostId]) -> bool {
        if self.facts.totals().users_erasing > 0 && !self.facts.has_post(post) {
            return true;
        }
        self.path.push(post);
        let all = self.below(post, from);
        self.path.pop();
        all
    }
}
