//! Cached home timeline of one active user: the ids of the newest posts, without gaps, and the authors.
//!
//! Posts are not delivered to timelines. A read of a timeline applies the changes of the list of the newest posts: it
//! tests each post that was added since the last read, or, if there are more such posts than authors, looks up the
//! newest post of each author. So a read costs at most one look-up per author, however many posts there were, and a
//! post costs the same for any number of followers.
//!
//! Every change of the authors drops the timeline: the writer drops it for follows, mutes and blocks of the owner, and
//! a read drops it for deleted and disabled users. A timeline that was removed from the table is stale, because the
//! writer no longer finds it.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::Ordering;

use feed::timeline::sees;
use feed::{
    Effect, HomeAuthors, HomeUsers, Listed, Page, PageOf, PostChange, PostId, UserChange, UserId,
};

use super::newest::{Entry, List, NewestPosts, Position};
use super::sync::{AtomicBool, Mutex};
use super::user_cache::Cached;

/// Number of ids that are kept after trimming: those of the largest page, and a few more that show that there are more
/// posts.
pub(super) const KEPT: usize = feed::limits::PAGE_MAX + 4;

/// Result of reading a page of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The page was appended.
    Page {
        /// Whether there are more posts in the direction of reading.
        more: bool,
        /// Whether the user follows hashtags, so that the home timeline has further posts.
        follows_tags: bool,
    },
    /// The page reaches beyond the kept posts.
    Beyond,
    /// The timeline must be gathered from the facts again.
    Stale,
}

/// Number of authors whose newest post is looked up in the time of testing one post.
const AUTHORS_PER_TEST: usize = 4;

/// Cached home timeline.
pub(super) struct Timeline {
    user: UserId,
    /// Users whose posts the owner's home timeline shows.
    pub(super) home: HomeAuthors,
    /// Whether the owner follows hashtags, whose posts are not included.
    follows_tags: bool,
    /// Whether gathering ended early, so that gathering again would find no more posts.
    ended_early: bool,
    /// Whether the timeline must be gathered from the facts again. The writer sets it before it publishes posts that
    /// the owner may not see, so a thread that has locked the list of posts and sees such a post also sees that the
    /// timeline is stale.
    is_stale: AtomicBool,
    state: Mutex<State>,
}

/// Part of a timeline that reads change.
///
/// **Invariant:** `posts` is ascending and has every post up to `position` that the owner's home timeline shows because
/// of its author and that is not older than the first of `posts`. If `complete`, it has all posts up to `position`.
struct State {
    posts: VecDeque<PostId>,
    complete: bool,
    position: Position,
}

impl Timeline {
    /// Creates a timeline of authors that were read from the facts after `position`, and of the newest page, which was
    /// gathered after the authors were read.
    pub(super) fn new(
        user: UserId,
        (home, follows_tags): (HomeAuthors, bool),
        (gathered, ended_early): (&PageOf<PostId>, bool),
        position: Position,
    ) -> Self {
        // The ids are copied to a list of their exact size, because the gathered list has room for all candidates.
        let posts = gathered.items.iter().rev().copied().collect();
        let state = Mutex::new(State { posts, complete: gathered.next.is_none(), position });
        let is_stale = AtomicBool::new(false);
        Self { user, home, follows_tags, ended_early, is_stale, state }
    }

    /// Whether the timeline must be gathered from the facts again.
    pub(super) fn is_stale(&self) -> bool {
        self.is_stale.load(Ordering::Acquire)
    }

    /// Whether the owner follows hashtags.
    pub(super) fn follows_tags(&self) -> bool {
        self.follows_tags
    }

    fn invalidate(&self) {
        self.is_stale.store(true, Ordering::Release);
    }

    /// Brings the timeline up to date and appends the ids of a page to `out`, newest first.
    pub(super) fn page(&self, newest: &NewestPosts, page: &Page, out: &mut Vec<PostId>) -> Found {
        let mut state = self.state.lock();
        if !newest.is_at(state.position) {
            newest.with(|list| {
                if !self.is_stale() {
                    self.catch_up(&mut state, list);
                }
            });
        }
        if self.is_stale() {
            return Found::Stale;
        }
        match state.page(page, out) {
            Some(more) => Found::Page { more, follows_tags: self.follows_tags },
            // Deletions have left too few posts, and gathering again finds older ones.
            None if !page.is_up && page.below.is_none() && !self.ended_early => Found::Stale,
            None => Found::Beyond,
        }
    }

    /// Whether the owner's home timeline shows a post. Returns `or_else` if that depends on unknown [`HomeUsers`].
    pub(super) fn shows<'a>(
        &self,
        author: UserId,
        listed: Listed,
        users: impl FnOnce() -> Option<&'a HomeUsers>,
        or_else: bool,
    ) -> bool {
        let is_allowed =
            || users().map_or(or_else, |users| listed.allows(self.user, &self.home, users));
        self.has(author) && sees(self.user, &self.home, author, listed, is_allowed)
    }

    /// Whether posts by this user may be in the timeline.
    fn has(&self, author: UserId) -> bool {
        author == self.user || self.home.has(author)
    }

    fn catch_up(&self, state: &mut State, list: &List) {
        let from = mem::replace(&mut state.position, list.position());
        if !list.has_users_after(from) {
            return self.invalidate();
        }
        // Whether posts or changes that this timeline lacks are no longer kept.
        let is_behind = !list.has_all_after(from);
        let new = list.places_after(from);
        if is_behind {
            (state.posts, state.complete) = (VecDeque::new(), true);
            self.merge(state, list, None);
        } else if AUTHORS_PER_TEST * new.len() <= 1 + self.home.users.len() {
            for entry in list.entries(new) {
                let is_new = || state.posts.back().is_none_or(|last| *last < entry.post);
                if self.shows_entry(list, entry) && is_new() {
                    state.push(entry.post);
                }
            }
        } else {
            self.merge(state, list, Some(new.start));
        }
        // Changes are applied after posts, because the list has the posts in the state after all these changes.
        for change in list.changes_after(from) {
            self.apply(state, change);
        }
    }

    fn shows_entry(&self, list: &List, Entry { post, author, listed }: Entry) -> bool {
        self.shows(author, listed, || list.users_of(post), false)
    }

    /// Adds the posts from `place` on, or all posts, found by their authors.
    fn merge(&self, state: &mut State, list: &List, place: Option<usize>) {
        let select = |entry: Entry| self.shows_entry(list, entry).then_some(entry.post);
        let (reader, mut found) = ((self.user, &self.home), Vec::new());
        // If there are more posts than fit, posts between these and the earlier ones may be missing.
        if !list.newest_from(place, reader, KEPT, select, &mut found) {
            (state.posts, state.complete) = (VecDeque::new(), false);
            if found.len() < KEPT {
                return self.invalidate();
            }
        }
        let last = state.posts.back().copied();
        let new = found.iter().rev().filter(|post| last.is_none_or(|last| last < **post));
        new.for_each(|post| state.push(*post));
    }

    /// Applies a change of posts or users; applying it twice has no effect.
    fn apply(&self, state: &mut State, change: &Effect) {
        match change {
            Effect::Post { post, change: PostChange::Deleted, .. } => {
                if let Ok(at) = state.posts.binary_search(post) {
                    state.posts.remove(at);
                }
            }
            Effect::Post { post, author, listed, users, .. } => {
                if self.shows(*author, *listed, || users.as_ref(), false)
                    && let Err(at) = state.posts.binary_search(post)
                    && (at > 0 || state.complete)
                {
                    state.posts.insert(at, *post);
                    state.trim();
                }
            }
            // A timeline does not know whether its owner follows a user that is shown again, so it becomes stale.
            Effect::User { user, change } if *change == UserChange::Shown || self.has(*user) => {
                self.invalidate();
            }
            _ => {}
        }
    }

    /// Returns the estimated size in bytes of a timeline with these authors.
    fn bytes_of(home: &HomeAuthors) -> usize {
        KEPT * size_of::<PostId>()
            + (home.users.len() + home.without_boosts.len()) * size_of::<UserId>()
    }
}

impl Cached for Timeline {
    fn bytes(&self) -> usize {
        Self::bytes_of(&self.home)
    }

    fn removed(&self) {
        self.invalidate();
    }
}

impl State {
    /// Adds a post that is newer than all others.
    fn push(&mut self, post: PostId) {
        if self.posts.len() >= KEPT {
            self.posts.pop_front();
            self.complete = false;
        } else if self.posts.len() == self.posts.capacity() {
            // The list grows once to its final size.
            self.posts.reserve_exact(KEPT - self.posts.len());
        }
        self.posts.push_back(post);
    }

    fn trim(&mut self) {
        if self.posts.len() > KEPT {
            self.posts.pop_front();
            self.complete = false;
        }
    }

    /// Appends the ids of a page newest first; returns whether there are more in the direction of reading. `None` if
    /// the page reaches beyond the kept posts.
    fn page(&self, page: &Page, out: &mut Vec<PostId>) -> Option<bool> {
        let end = page
            .below
            .map_or(self.posts.len(), |below| self.posts.partition_point(|post| post.0 < below));
        let start = page
            .above
            .map_or(0, |above| self.posts.partition_point(|post| post.0 <= above).min(end));
        let is_beyond = start == 0 && !self.complete && (page.is_up || end <= page.limit);
        if is_beyond {
            return None;
        }
        let (from, to) = match page.is_up {
            true => (start, end.min(start.saturating_add(page.limit))),
            false => (start.max(end.saturating_sub(page.limit)), end),
        };
        out.extend(self.posts.range(from..to).rev());
        Some(from > start || to < end)
    }
}
