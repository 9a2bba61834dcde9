//! The newest posts of all users, from which homes and lists of an author's posts are read without the
//! store.
//!
//! The posts are in one list in the order of ids, and each author's among them are linked. A home begins at
//! the newest post of each followed user and always takes the newest that is left: it touches the followed
//! users and the posts on the page, and nothing else.
//!
//! The writer appends posts; the oldest leave when the budget is used up. After a start nothing is known of
//! earlier posts. A thread reads them from the facts, newest first, until the budget is used up: see
//! [`NewestPosts::begin_load`].
//!
//! **Invariant:** every live post whose id is at least `complete_from`, by a user who was not deleted, is in
//! the list once its effect is published, and a deleted one is not. Older posts are read from the facts.
//!
//! Timelines follow the list: a [`Position`] says what a timeline has of it. Beside the posts the list has the latest
//! [`Changes`] of posts and those of users, under the same lock: so a timeline always has a prefix of the published effects.
//!
//! The users on whom it depends in whose home a post is ([`HomeUsers`]) are beside the list, so that a home needs no rows
//! for it. They change when an earlier boost ends ([`PostChange::Shown`]).
//!
//! Posts of deleted users may be in the list. No user follows these users, and a read of the posts of one
//! user checks whether that user was deleted.

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

/// Effects that are applied under one lock: 20 µs.
const PIECE: usize = 256;
/// Posts that one read looks at, at most, beside the newest of each author: it keeps the writer waiting for
/// about 0.3 ms. What is further down is read from the facts.
const STEPS_MAX: usize = 4_096;
/// Changes of posts that are kept for timelines: 0.5 MiB, and the users of boosts. A timeline that lacks all of them looks
/// for each among its posts, while the writer waits.
const CHANGES_MAX: usize = 16_384;
/// Changes of users that are kept for timelines: 128 KiB. A timeline that lacks one that is gone is gathered again, so posts
/// that are deleted with their author do not displace them.
const USER_CHANGES_MAX: usize = 4_096;
/// Deletions that are remembered while posts are read from the facts. If there are more, these posts are
/// read again.
const MISSED_MAX: usize = 1_024;

/// See the module.
pub(super) struct NewestPosts {
    bytes_max: usize,
    /// The version of the list, published while its lock is held: who loads it sees, by acquire and release, that nothing
    /// up to it is missing.
    version: AtomicU64,
    list: RwLock<List>,
}

/// The part of the list that a timeline has applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// Rises with everything that is published.
    version: u64,
    /// Number of posts that were added as the newest.
    posts: u64,
    /// Number of changes of posts.
    changes: u64,
    /// Number of changes of users.
    user_changes: u64,
}

/// See the module.
pub(super) struct List {
    links: Links,
    version: u64,
    /// Of posts.
    changes: Changes,
    user_changes: Changes,
    /// Users of the posts of the list that have some.
    users: HashMap<PostId, HomeUsers>,
    user_bytes: usize,
    /// A post did not fit that was loaded: no more are.
    is_full: bool,
    complete_from: u64,
    steps_max: usize,
    /// Posts that were deleted since a load began, if one is under way, and were not in the list.
    missed: Option<Vec<PostId>>,
}

impl NewestPosts {
    /// An empty list that takes at most `bytes`. It is complete from the post `complete_from` on.
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

    /// Applies what a group of commands did. Writer only, in order, once the facts show it.
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

    /// The position of all that is published.
    pub(super) fn position(&self) -> Position {
        self.list.read().position()
    }

    /// Returns what `look` returns for the list as it is at one moment.
    pub(super) fn with<T>(&self, look: impl FnOnce(&List) -> T) -> T {
        look(&self.list.read())
    }

    /// Begins to load older posts: returns the post before which they are to be read from the facts. `None`
    /// if no more are to be loaded. One thread at a time.
    pub(super) fn begin_load(&self) -> Option<PostId> {
        let mut list = self.list.write();
        if list.complete_from == 0 || list.is_full || !list.has_room(self.bytes_max, None) {
            return None;
        }
        list.missed = Some(Vec::new());
        Some(PostId(list.complete_from))
    }

    /// Has what a load that is under way has read dropped, and read again. Writer only.
    pub(super) fn abort_load(&self) {
        self.list.write().missed = None;
    }

    /// Adds what the facts have before `before`, which [`NewestPosts::begin_load`] returned: all posts from
    /// `next` on, or all there are, newest first.
    pub(super) fn end_load(&self, before: PostId, posts: &[Loaded], next: Option<PostId>) {
        let mut list = self.list.write();
        let Some(missed) = list.missed.take() else { return };
        // Otherwise the oldest posts have left meanwhile, or not all deletions are known.
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
        // Links may have begun that need memory of their own.
        list.keep_within(self.bytes_max);
    }

    /// Appends the posts of home(`reader`) within `span`, in its order, as far as they are here. Returns the part that is left
    /// for the facts, if any: what is in it follows what was appended.
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

    /// Appends an author's posts within `span`, in its order, as far as they are here. Returns the part that
    /// is left for the facts, if any: what is in it follows what was appended.
    pub(super) fn posts_by(
        &self,
        author: UserId,
        span: Span,
        found: &mut Vec<Posted>,
    ) -> Option<Span> {
        let select = |entry: Entry| (entry.author == author).then_some((entry.post, entry.listed));
        self.list.read().read([author].into_iter(), span, select, found)
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.list.read().bytes()
    }
}

impl List {
    /// The position of all that the list has.
    pub(super) fn position(&self) -> Position {
        Position {
            version: self.version,
            posts: self.links.added(),
            changes: self.changes.end(),
            user_changes: self.user_changes.end(),
        }
    }

    /// Whether all posts and changes of posts after `position` are here.
    pub(super) fn has_all_after(&self, position: Position) -> bool {
        let new = self.links.added() - position.posts;
        new <= self.links.len() as u64 && self.changes.has_all_from(position.changes)
    }

    /// Whether all changes of users after `position` are here.
    pub(super) fn has_users_after(&self, position: Position) -> bool {
        self.user_changes.has_all_from(position.user_changes)
    }

    /// The changes after `position` that are here: those of posts, and then those of users, oldest first.
    pub(super) fn changes_after(&self, position: Position) -> impl Iterator<Item = &Effect> {
        self.changes.from(position.changes).chain(self.user_changes.from(position.user_changes))
    }

    /// The places of the posts after `position`, as far as they are here; see [`List::entry`].
    pub(super) fn places_after(&self, position: Position) -> Range<usize> {
        let (end, new) = (self.links.len(), self.links.added() - position.posts);
        end.saturating_sub(usize::try_from(new).unwrap_or(usize::MAX))..end
    }

    /// The posts at these places, oldest first. The author of one that was removed is nobody.
    pub(super) fn entries(&self, places: Range<usize>) -> impl Iterator<Item = Entry> {
        self.links.entries(places)
    }

    /// The users on whom it depends in whose home a post is.
    pub(super) fn users_of(&self, post: PostId) -> Option<&HomeUsers> {
        self.users.get(&post)
    }

    /// Appends what `select` makes of the posts of home(`reader`), newest first, up to `limit`: those from a place on, or
    /// all. Returns whether there are no others.
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

    /// Whether another post with these users is within `bytes_max`.
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

    /// Changes what is known of a boost.
    fn show(&mut self, (post, listed): Posted, users: Option<&HomeUsers>) {
        if self.links.relist((post, listed)) {
            self.remove_users(post);
            users.into_iter().for_each(|users| self.add_users(post, users));
        } else if let Some(missed) = &mut self.missed {
            // What is being loaded may have it as it was, and is read again.
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

    /// Appends what `select` makes of the posts by `authors` within `span`, in its order, up to its limit.
    /// It is also called with posts by others. Returns the part of the span that is left.
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

    /// As [`List::read`], from the places of the newest posts of the authors on.
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
            // Authors who share links come to the same post: it is no step, and never what is left.
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

/// Bytes of these users, with their entry in the table and the vector that it points to, at most.
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
