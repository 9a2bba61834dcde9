//! Threads: the posts that a post replies to, and the replies to it, both within limits.
//!
//! Ancestors of a post are found through its references. Descendants are walked in **thread order**: a
//! reply, then all replies to it, then the next reply to the same post; replies to one post in ascending
//! order of ids. A deleted post ends the list of ancestors, and its replies are descendants of no post. For a viewer,
//! a post that is hidden from them or that they do not want is as a deleted one.
//!
//! A page of descendants also counts replies that are hidden from the viewer, and, while the rows of a deleted user are
//! removed, replies by them: their number has no bound, so reading on until the page is full has none either.

use rows::{Rows, Span};

use crate::ids::PostId;
use crate::limits::{THREAD_ANCESTORS_MAX, THREAD_DEPTH_MAX};
use crate::visible::Viewer;

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
pub fn ancestors<R: Rows + ?Sized>(viewer: &Viewer<'_, R>, post: PostId) -> Vec<PostId> {
    let facts = viewer.facts();
    let parent = |post: PostId| facts.post(post)?.in_reply_to.filter(|id| shows(viewer, *id));
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
    viewer: &Viewer<'_, R>,
    post: PostId,
    from: &[PostId],
    limit: usize,
) -> Descendants {
    let (path, posts, last) = (Vec::new(), Vec::new(), Vec::new());
    let mut walk = Walk { viewer, limit, path, posts, found: 0, last };
    let all = walk.below(post, from);
    Descendants { posts: walk.posts, next: (!all).then_some(walk.last) }
}

/// Whether a post exists that the viewer may see and wants.
fn shows<R: Rows + ?Sized>(viewer: &Viewer<'_, R>, post: PostId) -> bool {
    viewer.facts().post(post).is_some_and(|post| viewer.wanted(&post))
}

struct Walk<'v, 'a, R: Rows + ?Sized> {
    viewer: &'v Viewer<'a, R>,
    limit: usize,
    /// From the post whose thread is read (not included) down to the current post.
    path: Vec<PostId>,
    posts: Vec<PostId>,
    /// Number of posts on the page, with those that are not shown.
    found: usize,
    /// The path to the last post of the page, once it is found.
    last: ThreadPath,
}

impl<R: Rows + ?Sized> Walk<'_, '_, R> {
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
            let is_reply = self.viewer.facts().is_reply(post, after);
            if is_reply && shows(self.viewer, after) && !self.enter(after, rest) {
                return false;
            }
        }
        // One more than fits on the page, to know whether there is more.
        let wanted = self.limit - self.found + 1;
        let Some(span) = Span::above(after.0, wanted) else { return true };
        for (reply, is_open) in self.viewer.facts().replies_to(post, span) {
            if self.found == self.limit {
                return false;
            }
            self.found += 1;
            if self.found == self.limit {
                self.last.clone_from(&self.path);
                self.last.push(reply);
            }
            if !self.shows(reply, is_open) {
                continue;
            }
            self.posts.push(reply);
            if !self.enter(reply, &[]) {
                return false;
            }
        }
        true
    }

    /// Whether to show a reply that has a row. Replies exist unless their author was deleted.
    fn shows(&self, reply: PostId, is_open: bool) -> bool {
        let hides_nobody =
            self.viewer.hides_nobody() && self.viewer.facts().totals().users_erasing == 0;
        is_open && hides_nobody || shows(self.viewer, reply)
    }

    fn enter(&mut self, post: PostId, from: &[PostId]) -> bool {
        self.path.push(post);
        let all = self.below(post, from);
        self.path.pop();
        all
    }
}
