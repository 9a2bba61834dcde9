//! Threads: what a post replies to, and what replies to it, each within a bound.
//!
//! Who is above a post is found by following references up. What is below is walked in **thread order**:
//! a reply, then all that replies to it, then the next reply to the same post; replies to one post by
//! rising id. A deleted post ends the way up, and what replied to it is not below anything any more.

use rows::{Rows, Span};

use crate::facts::Facts;
use crate::ids::PostId;
use crate::limits::{THREAD_ANCESTORS_MAX, THREAD_DEPTH_MAX};

/// Where in thread order a page begins: after the last of these posts, which reply one to the other, the
/// first of them to the post whose thread is read. Empty for the beginning; at most
/// [`THREAD_DEPTH_MAX`]. None of them need exist any more.
pub type ThreadPath = Vec<PostId>;

/// Some of the posts below a post.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Descendants {
    /// In thread order.
    pub posts: Vec<PostId>,
    /// Where the next page begins, if there is more.
    pub next: Option<ThreadPath>,
}

/// The posts that `post` replies to, one to the other, oldest first: the nearest
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
/// Costs a read for each post that is found and each level, of at most `limit` + 1 rows.
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
    /// From the post whose thread it is, itself not included, down to the one at hand.
    path: Vec<PostId>,
    posts: Vec<PostId>,
    /// The path to the last post there is room for, once it is found.
    last: ThreadPath,
}

impl<R: Rows + ?Sized> Walk<'_, R> {
    /// Walks what is below `post`, the last of the path, and comes after `from`; returns whether that
    /// was all of it.
    fn below(&mut self, post: PostId, from: &[PostId]) -> bool {
        if self.path.len() >= THREAD_DEPTH_MAX {
            return true;
        }
        let mut after = PostId(0);
        if let Some((first, rest)) = from.split_first() {
            after = *first;
            // What was deleted meanwhile has nothing below it.
            if self.facts.is_reply(post, after) && !self.enter(after, rest) {
                return false;
            }
        }
        // One more than there is room for, to tell whether there is more.
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
        self.path.push(post);
        let all = self.below(post, from);
        self.path.pop();
        all
    }
}
