//! One active user's home timeline: the newest post ids, contiguous to the newest of all.

use std::collections::VecDeque;

use feed::HomeAuthors;
use feed::timeline::sees;
use feed::{Cursor, Effect, HomeUsers, Listed, Page, PageOf, PostId, Posted, UserId};

use super::stream::Stream;
use super::watchers::{CHANGES_MAX, Change};

/// Ids kept after trimming: the largest page, and one after it that shows that there are more.
pub(super) const KEPT: usize = feed::limits::PAGE_MAX + 4;

/// Effects that a timeline has applied by itself.
#[derive(Default)]
pub(super) struct CaughtUp {
    /// Number of posts that were delivered.
    pub(super) delivered: u64,
    /// Changes of the posts that the user has at home, at most [`CHANGES_MAX`].
    pub(super) changes: Vec<Change>,
    /// Whether it must be gathered anew, and has not applied everything.
    pub(super) invalidated: bool,
}

impl CaughtUp {
    fn push(&mut self, change: Change) {
        if self.changes.len() >= CHANGES_MAX {
            self.changes.clear();
            self.changes.push(Change::Missed);
        }
        self.changes.push(change);
    }
}

/// What is known of a page of a cached timeline beside its posts.
pub(super) struct CachedPage {
    /// Whether there are more posts.
    pub(super) more: bool,
    /// Whether the user follows hashtags, so that these are not all posts of home.
    pub(super) follows_tags: bool,
}

/// A cached home timeline.
///
/// **Invariant:** `posts` is ascending and holds every post of home(user) that is there because of its author, and not
/// older than its first one; if `complete`, it holds all of them.
pub(super) struct Timeline {
    /// The owner.
    pub(super) user: UserId,
    /// The users whose posts the owner has at home.
    pub(super) home: HomeAuthors,
    /// Whether the owner follows hashtags, whose posts are not here.
    pub(super) follows_tags: bool,
    /// Whether it was read since the eviction hand last passed it.
    pub(super) touched: bool,
    /// The position in the stream before which it has applied everything, by itself or by being gathered;
    /// its shard may be further.
    pub(super) current: u64,
    posts: VecDeque<PostId>,
    complete: bool,
}

impl Timeline {
    /// A timeline as gathered at `current`: `newest` holds its newest posts, newest first.
    pub(super) fn new(
        user: UserId,
        home: HomeAuthors,
        newest: &PageOf<PostId>,
        current: u64,
    ) -> Self {
        // A list of its own size: the gathered one has room for all that was considered.
        let mut posts = VecDeque::with_capacity(newest.items.len());
        posts.extend(newest.items.iter().rev());
        let complete = !newest.more;
        Self { user, home, follows_tags: false, touched: true, current, posts, complete }
    }

    /// Applies a post by `author`, whom the user follows or is, with its [`HomeUsers`](feed::HomeUsers); false if they do
    /// not see it.
    pub(super) fn deliver(
        &mut self,
        (post, listed): Posted,
        author: UserId,
        users: Option<&HomeUsers>,
    ) -> bool {
        let (user, home) = (self.user, &self.home);
        let is_allowed = || users.is_some_and(|users| listed.allows(user, home, users));
        if !sees(user, home, author, listed, is_allowed) {
            return false;
        }
        match self.posts.back() {
            Some(last) if *last >= post => {
                if let Err(at) = self.posts.binary_search(&post)
                    && (at > 0 || self.complete)
                {
                    self.posts.insert(at, post);
                    self.trim(KEPT);
                }
            }
            _ => {
                // First make room: a full ring then never grows.
                self.trim(KEPT - 1);
                self.posts.push_back(post);
            }
        }
        true
    }

    /// Applies, to this timeline alone, everything from `from` on. Effects that it has already may come
    /// again: that changes nothing.
    pub(super) fn catch_up(&mut self, stream: &Stream, mut from: u64) -> CaughtUp {
        let mut caught_up = CaughtUp::default();
        while from != stream.head() {
            let Some(piece) = stream.read(from) else {
                caught_up.invalidated = true;
                return caught_up;
            };
            from += piece.len() as u64;
            for effect in piece {
                match effect {
                    Effect::FollowingChanged { user, .. } | Effect::FollowedMany { user }
                        if user == self.user =>
                    {
                        caught_up.invalidated = true;
                        return caught_up;
                    }
                    Effect::MutesChanged { user } | Effect::FollowedTagsChanged { user }
                        if user == self.user =>
                    {
                        caught_up.invalidated = true;
                        return caught_up;
                    }
                    Effect::Blocked { user, other, ended }
                        if user == self.user && ended.following
                            || other == self.user && ended.followed =>
                    {
                        caught_up.invalidated = true;
                        return caught_up;
                    }
                    Effect::UserHidden { hidden: false, .. } => {
                        caught_up.invalidated = true;
                        return caught_up;
                    }
                    Effect::UserDeleted { user } | Effect::UserHidden { user, .. }
                        if self.follows(user) =>
                    {
                        caught_up.invalidated = true;
                        return caught_up;
                    }
                    Effect::Posted { post, author, listed, users }
                    | Effect::BoostShown { post, author, listed, users }
                        if self.follows(author) =>
                    {
                        let delivered = self.deliver((post, listed), author, users.as_ref());
                        caught_up.delivered += u64::from(delivered);
                    }
                    Effect::PostDeleted { post, author, listed }
                        if self.follows(author) && self.delete(post, author, listed) =>
                    {
                        caught_up.push(Change::Deleted(post));
                    }
                    Effect::PostEdited { post, author, listed }
                        if self.follows(author) && self.shows(post, author, listed) =>
                    {
                        caught_up.push(Change::Edited(post));
                    }
                    _ => {}
                }
            }
        }
        self.current = from;
        caught_up
    }

    /// Whether the user has a post at home by `author`, whom they follow or are. Of posts with
    /// [`HomeUsers`](feed::HomeUsers) it finds those that are kept here: who is mentioned is also notified of changes as
    /// such.
    pub(super) fn shows(&self, post: PostId, author: UserId, listed: Listed) -> bool {
        let is_kept = || self.posts.binary_search(&post).is_ok();
        sees(self.user, &self.home, author, listed, is_kept)
    }

    /// Removes a post; returns [`Timeline::shows`] as it was before.
    pub(super) fn delete(&mut self, post: PostId, author: UserId, listed: Listed) -> bool {
        let shown = self.shows(post, author, listed);
        if let Ok(at) = self.posts.binary_search(&post) {
            self.posts.remove(at);
        }
        shown
    }

    /// Whether posts by this user may be in the timeline.
    pub(super) fn follows(&self, author: UserId) -> bool {
        author == self.user || self.home.has(author)
    }

    fn trim(&mut self, kept: usize) {
        if self.posts.len() > kept {
            self.posts.pop_front();
            self.complete = false;
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
            let to = self.posts.len().min(from + page.limit);
            out.extend(self.posts.range(from..to).rev());
            return Some(self.posts.len() > to);
        }
        let end = match page.cursor {
            Cursor::Before(before) => self.posts.partition_point(|post| *post < before),
            _ => self.posts.len(),
        };
        if end <= page.limit && !self.complete {
            return None;
        }
        let from = end.saturating_sub(page.limit);
        out.extend(self.posts.range(from..end).rev());
        Some(from > 0)
    }

    /// Bytes held, with those of the index entries that point here.
    pub(super) fn bytes(&self) -> usize {
        Self::bytes_of(&self.home)
    }

    /// Bytes of a timeline of a user who has these at home.
    pub(super) fn bytes_of(home: &HomeAuthors) -> usize {
        const INDEX_ENTRY_BYTES: usize = 12;
        let authors = (home.users.len() + 1) * (4 + INDEX_ENTRY_BYTES);
        size_of::<Self>() + KEPT * 8 + authors + home.without_boosts.len() * 4
    }
}
