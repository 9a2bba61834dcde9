//! Threads: the posts that a post replies to, and the replies to it, both within limits.
//!
//! Ancestors of a post are found through its references. Descendants are walked in **thread order**: a
//! reply, then all replies to it, then the next reply to the same post; replies to one post in ascending
//! order of ids. A deleted post ends the list of ancestors, and its replies are descendants of no post. A post that is
//! hidden from a viewer, or that they do not want, is left out; what is above and below it is not.
//!
//! **Invariant:** replies that are not shown take no place on a page, and no cursor names one. Their number has no bound:
//! after many of them a page ends at the last post that is shown, or if there is none, at one of the `scan::Borders`, and
//! what is below further ones is not looked for.

use rows::{Rows, Span, Stamp};

use crate::ids::PostId;
use crate::limits::{THREAD_ANCESTORS_MAX, THREAD_DEPTH_MAX};
use crate::post::Visibility;
use crate::scan::{Borders, READ_ROWS_MAX, ROWS_MAX};
use crate::visible::Viewer;

/// Most posts above a post that are read, shown or not.
const ANCESTORS_READ_MAX: usize = 512;
/// Rows as which a look for replies below a post counts that is not shown.
const LOOK_BELOW_ROWS: usize = 4;

/// Where in thread order a page begins: after the last of these posts. Each is below the one before it, with only posts that
/// are not shown between them, and the first is below the post whose thread is read. Empty for the beginning; at most
/// [`THREAD_DEPTH_MAX`] posts, which may have been deleted; the last one may be no post.
pub type ThreadPath = Vec<PostId>;

/// Some of the posts below a post.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Descendants {
    /// In thread order.
    pub posts: Vec<PostId>,
    /// The start of the next page, if there is more.
    pub next: Option<ThreadPath>,
}

/// The ancestors of `post` that are shown: each replies to the one before it, or to one below that which is not shown;
/// oldest first. Returns the nearest [`THREAD_ANCESTORS_MAX`] at most, among the nearest 512 of all.
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

/// The first `limit` (at least 1) posts below `post`, at most [`THREAD_DEPTH_MAX`] levels, that come after `from` in
/// thread order.
///
/// Costs one read of at most `limit` + 1 rows for each post found and for each level, and reads of 4,096 rows of replies
/// that are not shown, or five times as many if there is no post among them. To look below one that is not shown counts as
/// four rows.
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

/// The path `from` below `post` with the posts on it that are not shown. A post that was deleted since is taken for a reply
/// to the one before it.
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

/// Whether a post exists that the viewer may see and wants.
fn shows<R: Rows + ?Sized>(viewer: &Viewer<'_, R>, post: PostId) -> bool {
    viewer.facts().post(post).is_some_and(|post| viewer.wanted(&post))
}

struct Walk<'v, 'a, R: Rows + ?Sized> {
    viewer: &'v Viewer<'a, R>,
    limit: usize,
    /// From the post whose thread is read (not included) down to the current post, each with whether it is shown.
    path: Vec<(PostId, bool)>,
    posts: Vec<PostId>,
    /// Number of replies that are not shown, and four times the number of those of them below which others were looked for.
    hidden: usize,
    /// The path to the last post so far.
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
        // One more than fits on the page, to know whether there is more.
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
                // No cursor names a post that is not shown.
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

    /// Makes the next page begin after this post or id below the path.
    fn end_at(&mut self, end: &[PostId]) {
        let shown = self.path.iter().filter(|(_, is_shown)| *is_shown).map(|(post, _)| post);
        self.last = shown.chain(end).copied().collect();
    }

    /// Walks these replies to the last post of the path; returns whether the page has room for more.
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

    /// Whether a reply that has a row exists: not if its author was deleted.
    fn exists(&self, reply: PostId) -> bool {
        let facts = self.viewer.facts();
        facts.totals().users_erasing == 0 || facts.post(reply).is_some()
    }

    /// Whether to show a reply that has a row. Replies exist unless their author was deleted.
    fn shows(&self, reply: PostId, visibility: Visibility) -> bool {
        let facts = self.viewer.facts();
        let is_addressed = |user| facts.is_mentioned(user, reply) || facts.is_by(user, reply);
        if visibility == Visibility::Direct && !self.viewer.user().is_none_or(is_addressed) {
            return false;
        }
        let totals = facts.totals();
        let is_any_hidden = totals.users_erasing > 0 || totals.accounts_disabled > 0;
        let hides_nobody = self.viewer.hides_nobody() && !is_any_hidden;
        visibility.is_open() && hides_nobody || shows(self.viewer, reply)
    }

    fn enter(&mut self, post: (PostId, bool), from: &[PostId]) -> bool {
        self.path.push(post);
        let all = self.below(post.0, from);
        self.path.pop();
        all
    }
}
