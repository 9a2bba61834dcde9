//! Threads: the ancestors of a post and the replies below it, both within limits.
//!
//! Ancestors are found through the posts' parents. Descendants are walked in **thread order**: a reply, then all
//! replies to it, then the next reply to the same post; replies to one post in ascending order of ids. A deleted post
//! ends the list of ancestors, and its replies are descendants of no post. A post that is hidden from the viewer, or
//! unwanted, is left out; posts above and below it are not.
//!
//! **Invariant:** replies that are not shown take no place on a page, and no cursor names one. Their number is
//! unbounded: after many of them a page ends at the last post shown, or else at one of the `scan::Borders`, and further
//! hidden replies are not searched for replies below them.

use rows::{Rows, Span, Stamp};

use crate::ids::PostId;
use crate::limits::{THREAD_ANCESTORS_MAX, THREAD_DEPTH_MAX};
use crate::posts::Visibility;
use crate::scan::{Borders, READ_ROWS_MAX, ROWS_MAX};
use crate::visible::Viewer;

/// Maximum number of ancestors that are read, shown or not.
const ANCESTORS_READ_MAX: usize = 512;
/// Cost in rows of searching below a reply that is not shown.
const LOOK_BELOW_ROWS: usize = 4;

/// Start of a page in thread order: after the last of these posts. Each post is below the one before it, with only
/// hidden posts between, and the first is below the post of the thread. Empty for the beginning. At most
/// [`THREAD_DEPTH_MAX`] posts, any of which may be deleted; the last id may be no post.
pub type ThreadPath = Vec<PostId>;

/// A page of the posts below a post.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Descendants {
    /// Posts in thread order.
    pub posts: Vec<PostId>,
    /// Start of the next page, if there are more posts.
    pub next: Option<ThreadPath>,
}

/// Shown ancestors of `post`, oldest first. Each is a reply to the one before it, directly or through hidden posts.
/// Returns the nearest [`THREAD_ANCESTORS_MAX`] at most, among the nearest 512 of all.
#[must_use]
pub fn ancestors<R: Rows + ?Sized>(viewer: &Viewer<'_, R>, post: PostId) -> Vec<PostId> {
    let facts = viewer.facts();
    let mut next = facts.post(post).and_then(|post| post.in_reply_to);
    let mut found = Vec::new();
    for _ in 0..ANCESTORS_READ_MAX {
        let Some((id, above)) = next.and_then(|id| Some((id, facts.post(id)?))) else { break };
        found.extend(viewer.wanted(&above).then_some(id));
        if found.len() == THREAD_ANCESTORS_MAX {
            break;
        }
        next = above.in_reply_to;
    }
    found.reverse();
    found
}

/// Returns the first `limit` (at least 1) posts below `post` that come after `from` in thread order, at most
/// [`THREAD_DEPTH_MAX`] levels deep.
///
/// Reads at most `limit` + 1 rows for each post found and for each level, and up to 4,096 rows of hidden replies, or
/// five times as many if no post is shown among them. Searching below a hidden reply counts as four rows.
#[must_use]
pub fn descendants<R: Rows + ?Sized>(
    viewer: &Viewer<'_, R>,
    post: PostId,
    from: &[PostId],
    limit: usize,
) -> Descendants {
    let (path, posts, last) = (Vec::new(), Vec::new(), Vec::new());
    let mut walk = Walk { viewer, limit, path, posts, hidden: 0, last };
    let all = walk.below(post, &full_path(viewer, post, from));
    Descendants { posts: walk.posts, next: (!all).then_some(walk.last) }
}

/// Completes the path `from` below `post` with the hidden posts on it. Takes a deleted post as a reply to the one
/// before it.
fn full_path<R: Rows + ?Sized>(
    viewer: &Viewer<'_, R>,
    post: PostId,
    from: &[PostId],
) -> ThreadPath {
    let parent = |post: &PostId| viewer.facts().post(*post)?.in_reply_to;
    let (mut path, mut before) = (ThreadPath::new(), post);
    for next in from {
        let above = std::iter::successors(Some(*next), parent).take(THREAD_DEPTH_MAX + 1);
        let mut between: Vec<_> = above.take_while(|above| *above != before).collect();
        let top = between.last().and_then(parent);
        if top != Some(before) {
            between.truncate(1);
        }
        path.extend(between.into_iter().rev());
        before = *next;
    }
    path
}

/// Whether the post exists and is visible and wanted.
fn shows<R: Rows + ?Sized>(viewer: &Viewer<'_, R>, post: PostId) -> bool {
    viewer.facts().post(post).is_some_and(|post| viewer.wanted(&post))
}

struct Walk<'v, 'a, R: Rows + ?Sized> {
    viewer: &'v Viewer<'a, R>,
    limit: usize,
    /// Posts from the root of the walk (excluded) down to the current post, each with whether it is shown.
    path: Vec<(PostId, bool)>,
    posts: Vec<PostId>,
    /// Number of hidden replies, plus four for each of them that was searched below.
    hidden: usize,
    /// Path to the last post found.
    last: ThreadPath,
}

impl<R: Rows + ?Sized> Walk<'_, '_, R> {
    /// Walks the descendants of `post`, the end of the path, that come after `from`. Returns whether the walk is
    /// complete.
    fn below(&mut self, post: PostId, from: &[PostId]) -> bool {
        if self.path.len() >= THREAD_DEPTH_MAX {
            return true;
        }
        let mut after = PostId(0);
        if let Some((first, rest)) = from.split_first() {
            after = *first;
            // A deleted post has no descendants.
            if self.viewer.facts().is_reply(post, after) && self.exists(after) {
                let is_shown = shows(self.viewer, after);
                if !self.enter((after, is_shown), rest) {
                    return false;
                }
                if is_shown && self.hidden >= ROWS_MAX && self.posts.is_empty() {
                    self.end_at(&[after, PostId(Stamp::MAX.0)]);
                    return false;
                }
            }
        }
        // One more item than fits on the page is read, to see whether there are more.
        let mut rest = Span::above(after.0, self.limit - self.posts.len() + 1);
        let (mut borders, mut hidden_max) = (Borders::new(), ROWS_MAX);
        while let Some(span) = rest {
            let replies = self.viewer.facts().replies_to(post, span);
            let last = replies.last().filter(|_| replies.len() >= span.limit);
            rest = last.and_then(|(reply, _)| span.beyond(reply.0, READ_ROWS_MAX));
            if !self.read(replies) {
                return false;
            }
            if self.hidden >= hidden_max
                && let Some(span) = rest
            {
                if !self.posts.is_empty() {
                    return false;
                }
                // A cursor must not name a hidden post.
                if self.path.iter().any(|(_, is_shown)| !is_shown) {
                    return true;
                }
                rest = Some(borders.shorten(span));
                hidden_max = self.hidden + ROWS_MAX;
            }
        }
        let Some(border) = borders.end() else { return true };
        if self.posts.is_empty() {
            self.end_at(&[PostId(border)]);
        }
        false
    }

    /// Makes the next page start after `end`, which continues the path.
    fn end_at(&mut self, end: &[PostId]) {
        let shown = self.path.iter().filter(|(_, is_shown)| *is_shown).map(|(post, _)| post);
        self.last = shown.chain(end).copied().collect();
    }

    /// Walks these replies to the end of the path. Returns whether the page has room for more.
    fn read(&mut self, replies: Vec<(PostId, Visibility)>) -> bool {
        for (reply, visibility) in replies {
            let is_shown = self.shows(reply, visibility);
            if !is_shown {
                self.hidden += 1;
                if self.hidden >= ROWS_MAX || !self.exists(reply) {
                    continue;
                }
                self.hidden += LOOK_BELOW_ROWS;
            } else if self.posts.len() == self.limit {
                return false;
            } else {
                self.posts.push(reply);
                self.end_at(&[reply]);
            }
            if !self.enter((reply, is_shown), &[]) {
                return false;
            }
        }
        true
    }

    /// Whether the reply of a row exists. Only replies of deleted users do not.
    fn exists(&self, reply: PostId) -> bool {
        let facts = self.viewer.facts();
        facts.totals().users_erasing == 0 || facts.post(reply).is_some()
    }

    /// Whether to show the reply of a row.
    fn shows(&self, reply: PostId, visibility: Visibility) -> bool {
        let facts = self.viewer.facts();
        let is_addressed = |user| facts.is_mentioned(user, reply) || facts.is_by(user, reply);
        if visibility == Visibility::Direct && !self.viewer.user().is_none_or(is_addressed) {
            return false;
        }
        let totals = facts.totals();
        let is_any_hidden = totals.users_erasing > 0 || totals.accounts_disabled > 0;
        let has_no_blocks_or_mutes = self.viewer.has_no_blocks_or_mutes() && !is_any_hidden;
        visibility.is_open() && has_no_blocks_or_mutes || shows(self.viewer, reply)
    }

    fn enter(&mut self, post: (PostId, bool), from: &[PostId]) -> bool {
        self.path.push(post);
        let all = self.below(post.0, from);
        self.path.pop();
        all
    }
}
