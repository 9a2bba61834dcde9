//! List of the newest posts of all users, from which home timelines and the posts of an author are read without the
//! store.
//!
//! The posts are in one list, ordered by id, in which the posts of each author are linked. A read of a home timeline
//! begins at the newest post of each followed user and repeatedly takes the newest of the next posts, so it touches
//! only the followed users and the posts on the page.
//!
//! The writer appends posts; the oldest leave when the budget is used up. After a start a thread loads earlier posts
//! from the facts, newest first, until the budget is used up: see [`NewestPosts::begin_load`].
//!
//! **Invariant:** every live post with an id of at least `complete_from`, by a user who is not deleted, is in the list
//! once its effect is published; a deleted post is not. Older posts are read from the facts.
//!
//! Timelines follow the list: a [`Position`] records how much of it a timeline has applied. The latest [`Changes`] of
//! posts and of users are under the same lock, so a timeline always has a prefix of the published effects.
//!
//! The list also keeps the [`HomeUsers`] of posts, which decide whose home timelines show a post, so that a home
//! timeline needs no rows for them. They change when an earlier boost ends ([`PostChange::Shown`]).
//!
//! Posts of deleted users may be in the list. No user follows these users, and a read of the posts of one user checks
//! whether that user is deleted.

mod changes;
mod links;
#[cfg(test)]
mod tests;

use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;
use std::sync::atomic::Ordering;

use feed::HomeAuthors;
use feed::Loaded;
use feed::Posted;
use feed::timeline::sees;
use feed::{Effect, HomeUsers, PostChange, PostId, UserId};
use hashbrown::HashMap;
use rows::{Order, Span};

use super::sync::{AtomicU64, RwLock};
use changes::Changes;
pub(super) use links::Entry;
use links::Links;

/// Number of effects that are applied under one lock: 20 µs.
const PIECE: usize = 256;
/// Maximum number of posts that one read visits, in addition to the newest of each author. The writer waits about 0.3
/// ms for a read of so many posts. Older posts are read from the facts.
const STEPS_MAX: usize = 4_096;
/// Number of changes of posts that are kept for timelines; they take 0.5 MiB and the users of boosts. If changes that a
/// timeline lacks are no longer kept, the timeline looks up each of its posts while the writer waits.
const CHANGES_MAX: usize = 16_384;
/// Number of changes of users that are kept for timelines; they take 128 KiB. If changes that a timeline lacks are no
/// longer kept, the timeline is gathered again. Changes of users are kept separately, so that posts that are deleted
/// with their author do not displace them.
const USER_CHANGES_MAX: usize = 4_096;
/// Maximum number of deletions that are recorded while posts are loaded from the facts. If there are more, these posts
/// are read again.
const MISSED_MAX: usize = 1_024;

/// List of the newest posts with its lock and budget.
pub(super) struct NewestPosts {
    bytes_max: usize,
    /// Version of the list, stored (release) while its lock is held. A thread that loads the version (acquire) sees all
    /// changes up to it.
    version: AtomicU64,
    list: RwLock<List>,
}

/// Part of the list that a timeline has applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// Version of the list; rises with every publication.
    version: u64,
    /// Number of posts that were added as the newest.
    posts: u64,
    /// Number of changes of posts.
    changes: u64,
    /// Number of changes of users.
    user_changes: u64,
}

/// State of the list that the lock protects.
pub(super) struct List {
    links: Links,
    version: u64,
    /// Latest changes of posts.
    changes: Changes,
    user_changes: Changes,
    /// Home users of the posts that have any.
    users: HashMap<PostId, HomeUsers>,
    user_bytes: usize,
    /// Whether a loaded post did not fit, so that no more are loaded.
    is_full: bool,
    complete_from: u64,
    steps_max: usize,
    /// Posts outside the list that were deleted since the running load began; `None` if no load runs.
    missed: Option<Vec<PostId>>,
}

impl NewestPosts {
    /// Creates an empty list of at most `bytes`, complete from the post `complete_from` on.
    pub(super) fn new(bytes: usize, complete_from: u64) -> Self {
        let list = List {
            links: Links::new(bytes),
            version: 0,
            changes: Changes::new(CHANGES_MAX),
            user_changes: Changes::new(USER_CHANGES_MAX),
            users: HashMap::new(),
            user_bytes: 0,
            is_full: false,
            complete_from,
            steps_max: STEPS_MAX,
            missed: None,
        };
        Self { bytes_max: bytes, version: AtomicU64::new(0), list: RwLock::new(list) }
    }

    /// Applies the effects of a group. Called by the writer only, in order, after the facts show them.
    pub(super) fn apply(&self, effects: &[Effect]) {
        let concerns = |effect: &Effect| match effect {
            Effect::Post { change, .. } => *change != PostChange::Edited,
            other => matches!(other, Effect::User { .. }),
        };
        for piece in effects.chunks(PIECE) {
            if !piece.iter().any(concerns) {
                continue;
            }
            let mut list = self.list.write();
            for effect in piece.iter().filter(|effect| concerns(effect)) {
                let Effect::Post { post, author, listed, users, change } = effect else {
                    list.user_changes.push(effect.clone());
                    continue;
                };
                if *change == PostChange::Published {
                    if let Some(users) = users {
                        list.add_users(*post, users);
                    }
                    list.links.push_newest(*author, (*post, *listed));
                    list.keep_within(self.bytes_max);
                    continue;
                }
                match change {
                    PostChange::Shown => list.show((*post, *listed), users.as_ref()),
                    _ => list.remove(*post),
                }
                list.changes.push(effect.clone());
            }
            list.version += 1;
            self.version.store(list.version, Ordering::Release);
        }
    }

    /// Whether nothing was published after `position`. Takes no lock.
    pub(super) fn is_at(&self, position: Position) -> bool {
        self.version.load(Ordering::Acquire) == position.version
    }

    /// Returns the position of everything that is published.
    pub(super) fn position(&self) -> Position {
        self.list.read().position()
    }

    /// Returns the result of `look` for a consistent state of the list.
    pub(super) fn with<T>(&self, look: impl FnOnce(&List) -> T) -> T {
        look(&self.list.read())
    }

    /// Begins to load older posts; returns the post before which they are to be read from the facts, or `None` if no
    /// more are to be loaded. One thread at a time.
    pub(super) fn begin_load(&self) -> Option<PostId> {
        let mut list = self.list.write();
        if list.complete_from == 0 || list.is_full || !list.has_room(self.bytes_max, None) {
            return None;
        }
        list.missed = Some(Vec::new());
        Some(PostId(list.complete_from))
    }

    /// Makes a running load drop the posts that it has read, and read them again. Called by the writer only.
    pub(super) fn abort_load(&self) {
        self.list.write().missed = None;
    }

    /// Adds loaded posts from before `before`, which [`NewestPosts::begin_load`] returned, newest first. `posts` are
    /// all posts down to `next`, or without `next` all there are.
    pub(super) fn end_load(&self, before: PostId, posts: &[Loaded], next: Option<PostId>) {
        let mut list = self.list.write();
        let Some(missed) = list.missed.take() else { return };
        // Otherwise the load is dropped: the oldest posts have left the list meanwhile, or not all deletions are known.
        if list.complete_from != before.0 || missed.len() >= MISSED_MAX {
            return;
        }
        let mut rest = posts.iter().filter(|loaded| !missed.contains(&loaded.posted.0)).peekable();
        while let Some(Loaded { author, posted, users }) = rest.peek() {
            if !list.has_room(self.bytes_max, users.as_ref()) {
                list.is_full = true;
                break;
            }
            rest.next();
            if let Some(users) = users {
                list.add_users(posted.0, users);
            }
            list.links.push_oldest(*author, *posted);
            list.complete_from = posted.0.0;
        }
        if rest.peek().is_none() {
            list.complete_from = next.map_or(0, |next| next.0);
        }
        // The added posts may need more memory for the ends of links.
        list.keep_within(self.bytes_max);
    }

    /// Appends the posts of the home timeline of `reader` within `span`, in its order, as far as the list has them.
    /// Returns the rest of the span, to be read from the facts; its posts follow the appended ones.
    pub(super) fn home(
        &self,
        reader: UserId,
        home: &HomeAuthors,
        span: Span,
        found: &mut Vec<PostId>,
    ) -> Option<Span> {
        let list = self.list.read();
        let select = |Entry { author, post, listed }| {
            let is_author = author == reader || home.has(author);
            let is_allowed = || {
                let users = list.users_of(post);
                users.is_some_and(|users| listed.allows(reader, home, users))
            };
            (is_author && sees(reader, home, author, listed, is_allowed)).then_some(post)
        };
        list.read(home.with(reader), span, select, found)
    }

    /// Appends an author's posts within `span`, in its order, as far as the list has them. Returns the rest of the
    /// span, to be read from the facts; its posts follow the appended ones.
    pub(super) fn posts_by(
        &self,
        author: UserId,
        span: Span,
        found: &mut Vec<Posted>,
    ) -> Option<Span> {
        let select = |entry: Entry| (entry.author == author).then_some((entry.post, entry.listed));
        self.list.read().read([author].into_iter(), span, select, found)
    }

    /// Returns the size of the list in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.list.read().bytes()
    }
}

impl List {
    /// Returns the position of the end of the list.
    pub(super) fn position(&self) -> Position {
        Position {
            version: self.version,
            posts: self.links.added(),
            changes: self.changes.end(),
            user_changes: self.user_changes.end(),
        }
    }

    /// Whether all posts and changes of posts after `position` are kept.
    pub(super) fn has_all_after(&self, position: Position) -> bool {
        let new = self.links.added() - position.posts;
        new <= self.links.len() as u64 && self.changes.has_all_from(position.changes)
    }

    /// Whether all changes of users after `position` are kept.
    pub(super) fn has_users_after(&self, position: Position) -> bool {
        self.user_changes.has_all_from(position.user_changes)
    }

    /// Returns the kept changes after `position`: those of posts, then those of users, each oldest first.
    pub(super) fn changes_after(&self, position: Position) -> impl Iterator<Item = &Effect> {
        self.changes.from(position.changes).chain(self.user_changes.from(position.user_changes))
    }

    /// Returns the indices of the kept posts after `position`, for [`List::entry`].
    pub(super) fn places_after(&self, position: Position) -> Range<usize> {
        let (end, new) = (self.links.len(), self.links.added() - position.posts);
        end.saturating_sub(usize::try_from(new).unwrap_or(usize::MAX))..end
    }

    /// Returns the posts at these indices, oldest first. The author of a removed post is an id that no user has.
    pub(super) fn entries(&self, places: Range<usize>) -> impl Iterator<Item = Entry> {
        self.links.entries(places)
    }

    /// Returns the users that decide whose home timelines show a post.
    pub(super) fn users_of(&self, post: PostId) -> Option<&HomeUsers> {
        self.users.get(&post)
    }

    /// Appends the results of `select` for the posts of the home timeline of `reader`, newest first, up to `limit`: for
    /// all posts, or those from an index on. Returns whether there are no other posts.
    pub(super) fn newest_from(
        &self,
        place: Option<usize>,
        (reader, home): (UserId, &HomeAuthors),
        limit: usize,
        select: impl Fn(Entry) -> Option<PostId>,
        found: &mut Vec<PostId>,
    ) -> bool {
        let (from, mut newest) = (place.unwrap_or(0), Vec::new());
        self.links.newest_from(from, &home.users, &mut newest);
        self.links.newest_from(from, &[reader], &mut newest);
        let low = place.map_or(0, |place| self.links.entry(place).post.0);
        let span = Span { low, high: u64::MAX, limit, order: Order::Descending };
        self.read_down(newest, span, select, found).is_none() && found.len() < limit
    }

    fn keep_within(&mut self, bytes_max: usize) {
        while self.bytes() > bytes_max
            && let Some(post) = self.links.pop_oldest()
        {
            self.remove_users(post);
            if !rows::has_bug("forget-old-posts") {
                self.complete_from = post.0 + 1;
            }
        }
    }

    fn bytes(&self) -> usize {
        self.links.bytes() + self.user_bytes
    }

    /// Whether another post with these users fits into `bytes_max`.
    fn has_room(&self, bytes_max: usize, users: Option<&HomeUsers>) -> bool {
        let others = self.user_bytes + users.map_or(0, user_bytes);
        self.links.has_room(bytes_max.saturating_sub(others))
    }

    fn add_users(&mut self, post: PostId, users: &HomeUsers) {
        if self.users.insert(post, HomeUsers::clone(users)).is_none() {
            self.user_bytes += user_bytes(users);
        }
    }

    fn remove_users(&mut self, post: PostId) {
        if !self.users.is_empty()
            && let Some(users) = self.users.remove(&post)
        {
            self.user_bytes -= user_bytes(&users);
        }
    }

    /// Updates the entry of a boost.
    fn show(&mut self, (post, listed): Posted, users: Option<&HomeUsers>) {
        if self.links.relist((post, listed)) {
            self.remove_users(post);
            users.into_iter().for_each(|users| self.add_users(post, users));
        } else if let Some(missed) = &mut self.missed {
            // The running load may have read the old state of the post, so it must read again.
            missed.resize(MISSED_MAX, post);
        }
    }

    fn remove(&mut self, post: PostId) {
        self.remove_users(post);
        if !self.links.remove(post)
            && let Some(missed) = &mut self.missed
            && missed.len() < MISSED_MAX
        {
            missed.push(post);
        }
    }

    /// Appends the results of `select` for the posts by `authors` within `span`, in its order, up to its limit.
    /// `select` is also called with posts by other authors. Returns the rest of the span.
    fn read<T>(
        &self,
        authors: impl Iterator<Item = UserId>,
        span: Span,
        select: impl Fn(Entry) -> Option<T>,
        found: &mut Vec<T>,
    ) -> Option<Span> {
        match span.order {
            _ if span.limit == 0 => None,
            Order::Descending if span.high < self.complete_from => Some(span),
            Order::Descending => {
                let newest = authors.filter_map(|author| self.links.newest(author)).collect();
                self.read_down(newest, span, select, found)
            }
            Order::Ascending if span.low < self.complete_from => Some(span),
            Order::Ascending => self.read_up(authors, span, select, found),
        }
    }

    /// Reads in descending order like [`List::read`], from the indices of the authors' newest posts.
    fn read_down<T>(
        &self,
        newest: Vec<usize>,
        span: Span,
        select: impl Fn(Entry) -> Option<T>,
        found: &mut Vec<T>,
    ) -> Option<Span> {
        let mut next = BinaryHeap::from(newest);
        let (mut left, mut steps, mut before) = (span.limit, 0, None);
        while let Some(mut top) = next.peek_mut() {
            let place = *top;
            // If authors share links, the same post is found twice. Only the first time counts as a step.
            if before == Some(place) {
                PeekMut::pop(top);
                continue;
            }
            let entry = self.links.entry(place);
            let post = entry.post;
            if post.0 < span.low {
                return None;
            }
            if steps == self.steps_max {
                return Some(Span { high: post.0.min(span.high), limit: left, ..span });
            }
            steps += 1;
            before = Some(place);
            match self.links.older(place) {
                Some(older) => *top = older,
                None => drop(PeekMut::pop(top)),
            }
            if post.0 > span.high {
                continue;
            }
            if let Some(item) = select(entry) {
                found.push(item);
                left -= 1;
                if left == 0 {
                    return None;
                }
            }
        }
        let older = self.complete_from.checked_sub(1).filter(|older| *older >= span.low)?;
        Some(Span { high: older.min(span.high), limit: left, ..span })
    }

    fn read_up<T>(
        &self,
        authors: impl Iterator<Item = UserId>,
        span: Span,
        select: impl Fn(Entry) -> Option<T>,
        found: &mut Vec<T>,
    ) -> Option<Span> {
        let mut within = Vec::new();
        let mut steps = 0;
        for author in authors {
            let mut next = self.links.newest(author);
            while let Some(place) = next
                && self.links.entry(place).post.0 >= span.low
            {
                if steps == self.steps_max {
                    return Some(span);
                }
                steps += 1;
                within.push(place);
                next = self.links.older(place);
            }
        }
        within.sort_unstable();
        within.dedup();
        let posts = within.into_iter().map(|place| self.links.entry(place));
        let posts = posts.take_while(|entry| entry.post.0 <= span.high);
        found.extend(posts.filter_map(select).take(span.limit));
        None
    }
}

/// Returns the maximum size of these users with their entry in the table and the vector, in bytes.
fn user_bytes(users: &HomeUsers) -> usize {
    const ENTRY_BYTES: usize = 96;
    ENTRY_BYTES + users.len() * size_of::<UserId>()
}

/// Sizes that are smaller in tests.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Small {
    pub(super) changes_max: usize,
    pub(super) steps_max: usize,
}

#[cfg(test)]
impl Small {
    pub(super) const NOT: Self = Self { changes_max: CHANGES_MAX, steps_max: STEPS_MAX };
}

#[cfg(test)]
impl NewestPosts {
    pub(super) fn make_small(&self, Small { changes_max, steps_max }: Small) {
        let mut list = self.list.write();
        list.steps_max = steps_max;
        list.changes = Changes::new(changes_max);
        list.user_changes = Changes::new(changes_max);
    }
}
