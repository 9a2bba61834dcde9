//! View for ranked feeds: recent posts of the public timeline with their counts, the last reactions of users, and the
//! popular posts of each topic.
//!
//! Readers apply the effects since the last read, as [`Event`]s made from the facts, and gather candidates under a short
//! read lock. A thread does the same when nobody reads, so that no effects are lost, and groups users. The writer and
//! the homes neither read nor wait for this view.
//!
//! **Invariant:** every part has a fixed maximum size, which [`Sizes`] derives from the budget.
//! **Invariant:** the view decides nothing about visibility: readers check every post that they show.
//!
//! Read `recent`, `reactions`, `topics`, `events`, `gather`, `seen`, then `snapshots`.

mod events;
mod gather;
mod reactions;
mod recent;
mod seen;
mod snapshots;
#[cfg(test)]
mod tests;
mod topics;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use commitlog::Position;
use feed::{Facts, PostId, UserId};
use hashbrown::{HashMap, HashSet};
use parking_lot::{Mutex, RwLock};
use rows::{Rows, SetTable, Span};

use super::effects::Effects;
use events::{Counts, Event, Reader, Subjects, events, first_young, load};
use gather::Gathered;
pub(crate) use gather::{AtHome, Less, Likers, Taste};
use reactions::Reactions;
use recent::{Recent, Recents};
pub(crate) use recent::{language_number, tag_number};
use seen::Seen;
pub(crate) use snapshots::{Item, Snapshot, Snapshots};
use topics::{Popular, Topic, Topics};

/// Number of the newest posts of new authors that are kept.
const NEW_POSTS_MAX: usize = 256;
/// Time after which more effects may be read, in milliseconds.
const WINDOW_MS: u64 = 100;
/// Maximum number of effects for which the facts are read within a window; the others are skipped. This bounds the work
/// of the view, whatever is written.
const WINDOW_EFFECTS_MAX: usize = 1_024;
/// Maximum number of posts that are loaded when the view begins, newest first.
const LOADED_MAX: usize = 1 << 16;
/// Time after which the first young account is searched for again, in milliseconds.
const SEARCHED_AGAIN_MS: u64 = 60_000;
/// Number of users who may change their interest group in a step: 320 per second.
const GROUPED_AT_ONCE: usize = 32;
/// Maximum number of followed users of each that are read for it.
const NEIGHBORS_READ: usize = 64;

/// Maximum sizes of the parts of the view.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    posts: usize,
    users: usize,
    topics: usize,
    readers: usize,
    snapshot_bytes: usize,
}

impl Sizes {
    /// Divides a budget: five sixteenths for posts, a quarter each for users and for snapshots, an eighth for topics, a
    /// sixteenth for reports of what users have seen.
    pub(crate) const fn of(bytes: usize) -> Self {
        Self {
            posts: bytes / 16 * 5 / size_of::<Recent>(),
            readers: bytes / 16 / seen::READER_BYTES,
            users: bytes / 4 / reactions::USER_BYTES_MAX,
            topics: bytes / 8 / topics::TOPIC_BYTES_MAX,
            snapshot_bytes: bytes / 4,
        }
    }
}

/// The view with its lock, and the snapshots of readers.
pub(crate) struct Ranked {
    sizes: Sizes,
    /// Whether a thread keeps the view current.
    is_followed: AtomicBool,
    progress: Mutex<Progress>,
    view: RwLock<View>,
    snapshots: Snapshots,
    seen: Seen,
}

/// State of the view.
pub(super) struct View {
    posts: Recents,
    reactions: Reactions,
    topics: Topics,
    /// Newest posts of new authors, oldest first.
    new_posts: VecDeque<(PostId, UserId)>,
}

/// Place of the view in the effects.
#[derive(Default)]
struct Progress {
    /// Position of the last applied effects; `None` before the view was loaded.
    position: Option<Position>,
    /// Start of the window, and number of effects that may still be read in it.
    window_ms: u64,
    left: usize,
    /// First account that was registered in the hour before the search.
    young_from: UserId,
    searched_ms: u64,
}

impl Ranked {
    pub(super) fn new(bytes: usize) -> Self {
        let sizes = Sizes::of(bytes);
        let (snapshots, seen) = (Snapshots::new(sizes.snapshot_bytes), Seen::new(sizes.readers));
        let (is_followed, view) = (AtomicBool::new(false), RwLock::new(View::new(sizes)));
        Self { sizes, is_followed, progress: Mutex::default(), view, snapshots, seen }
    }

    /// Whether the caller must start the thread that follows the effects: true for one caller.
    pub(crate) fn begin(&self) -> bool {
        !self.is_followed.load(Ordering::Relaxed) && !self.is_followed.swap(true, Ordering::Relaxed)
    }

    /// Applies all effects so far, and loads the view before the first ones. May read the facts.
    pub(super) fn catch_up<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        effects: &Effects,
        now_ms: u64,
    ) {
        let mut progress = self.progress.lock();
        if progress.window_ms.abs_diff(now_ms) >= WINDOW_MS {
            (progress.window_ms, progress.left) = (now_ms, WINDOW_EFFECTS_MAX);
        }
        if progress.searched_ms.abs_diff(now_ms) >= SEARCHED_AGAIN_MS {
            (progress.searched_ms, progress.young_from) = (now_ms, first_young(facts, now_ms));
        }
        if progress.position.is_none() {
            self.load(facts, effects, &mut progress);
        }
        let Progress { position: Some(position), left, young_from, .. } = &mut *progress else {
            return;
        };
        let reader = Reader { facts, young_from: *young_from };
        loop {
            // Effects that are lost or skipped are missing in the view until their posts change again.
            let Ok(next) = effects.next(position) else { continue };
            let Some(group) = next else { return };
            let author_of = |post| self.view.read().posts.get(post).map(|found| found.author);
            let found = events(&reader, &group, author_of, left);
            if !found.is_empty() {
                let mut view = self.view.write();
                found.into_iter().for_each(|event| view.apply(event));
            }
            if *left == 0 {
                *position = effects.end();
                return;
            }
        }
    }

    fn load<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        effects: &Effects,
        progress: &mut Progress,
    ) {
        // Effects after this position that the facts show already are applied again, which changes nothing.
        progress.position = Some(effects.end());
        let mut view = View::new(self.sizes);
        let max = self.sizes.posts.min(LOADED_MAX);
        load(facts, max, progress.young_from, |event| view.apply(event));
        *self.view.write() = view;
    }

    /// Moves the next users to the group of most of their neighbors: followed users, and authors of posts to which they
    /// reacted. Groups are the labels of an asynchronous label propagation, which follows changes of the graph.
    pub(super) fn group<R: Rows + ?Sized>(&self, facts: Facts<'_, R>, next: &mut usize) {
        for _ in 0..GROUPED_AT_ONCE {
            let user = self.view.read().reactions.at(*next);
            let Some(user) = user else {
                *next = 0;
                return;
            };
            *next += 1;
            let span = Span { limit: NEIGHBORS_READ, ..Span::ALL };
            let followed = facts.users_in(SetTable::Following, user, span);
            let view = self.view.read();
            let liked = view.reactions.of(user).filter_map(|post| view.posts.get(post));
            let neighbors = followed.into_iter().chain(liked.map(|post| post.author));
            let group = view.reactions.joined(user, neighbors);
            drop(view);
            if let Some(group) = group {
                self.view.write().reactions.set_group(user, group);
            }
        }
    }

    /// Authors of the recent public posts among these posts; `None` for the other posts.
    pub(crate) fn authors(&self, posts: &[PostId]) -> Vec<(PostId, Option<UserId>)> {
        let view = self.view.read();
        let author = |post| view.posts.get(post).map(|found| found.author);
        posts.iter().map(|post| (*post, author(*post))).collect()
    }

    /// Reads the subjects of the recent posts among those of which a viewer wants to see less.
    pub(crate) fn less(&self, posts: HashSet<PostId>) -> Less {
        let view = self.view.read();
        let recent: Vec<_> = posts.iter().filter_map(|post| view.posts.get(*post)).collect();
        Less {
            authors: recent.iter().map(|post| post.author).collect(),
            tags: recent.iter().flat_map(|post| post.tags()).collect(),
            older: posts.iter().copied().filter(|post| view.posts.get(*post).is_none()).collect(),
            posts,
        }
    }

    /// Gathers the candidates of a feed.
    pub(crate) fn gather(&self, feed: &rank::Feed, taste: &Taste) -> Gathered {
        self.view.read().gather(feed, taste)
    }

    /// Popular posts with any reaction, the most popular first.
    pub(crate) fn popular(&self) -> Vec<PostId> {
        let view = self.view.read();
        let has_reactions = |popular: &&Popular| {
            let found = view.posts.get(popular.post);
            found.is_some_and(|found| found.counted() != (0, 0) || found.replies > 0)
        };
        let all = view.topics.of(Topic::All).iter().filter(has_reactions);
        let mut popular: Vec<_> = all.copied().collect();
        popular.sort_unstable_by(|a, b| b.heat.total_cmp(&a.heat).then(b.post.cmp(&a.post)));
        popular.into_iter().map(|popular| popular.post).collect()
    }

    /// Reports of posts that users have seen.
    pub(crate) fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Number of times that a user has seen each of these posts, without posts that were not seen: the greater of the
    /// number of reports by clients and of the kept rankings in which the user has read a page with the post.
    pub(crate) fn seen_by(
        &self,
        user: UserId,
        posts: impl Iterator<Item = PostId>,
    ) -> HashMap<PostId, u32> {
        let mut seen = self.seen.counts(user, posts);
        for (post, rankings) in self.snapshots.shown(user) {
            let count = seen.entry(post).or_default();
            *count = rankings.max(*count);
        }
        seen
    }

    /// Snapshots of the feeds that users are reading.
    pub(crate) fn snapshots(&self) -> &Snapshots {
        &self.snapshots
    }
}

impl View {
    fn new(sizes: Sizes) -> Self {
        Self {
            posts: Recents::new(sizes.posts),
            reactions: Reactions::new(sizes.users),
            topics: Topics::new(sizes.topics),
            new_posts: VecDeque::new(),
        }
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Posted { post, is_new_author } => {
                let (id, author) = (post.id, post.author);
                self.reactions.add_author(author);
                if self.posts.push(post) && is_new_author {
                    self.new_posts.retain(|(_, other)| *other != author);
                    if self.new_posts.len() >= NEW_POSTS_MAX {
                        self.new_posts.pop_front();
                    }
                    self.new_posts.push_back((id, author));
                }
                self.raise(id, author);
            }
            Event::Edited { post, subjects: Subjects { tags, language, is_plain } } => {
                if let Some(found) = self.posts.get_mut(post) {
                    (found.tags, found.language, found.is_plain) = (tags, language, is_plain);
                }
            }
            Event::Removed(post) => {
                if let Some(found) = self.posts.get(post) {
                    let group = self.reactions.group(found.author).map(Topic::Group);
                    for topic in Topic::of(found).chain(group) {
                        self.topics.remove(topic, post);
                    }
                }
                self.new_posts.retain(|(other, _)| *other != post);
                self.posts.remove(post);
            }
            Event::Hidden(user) => {
                self.topics.remove_author(user);
                self.new_posts.retain(|(_, author)| *author != user);
            }
            Event::Replied { post, replies } => {
                if let Some(found) = self.posts.get_mut(post) {
                    found.replies = replies;
                    let author = found.author;
                    self.raise(post, author);
                }
            }
            Event::Reacted { user, post, is_added, counts } => {
                let Some(found) = self.posts.get_mut(post) else { return };
                let Counts { favourites, boosts, young } = counts;
                (found.favourites, found.boosts, found.young) = (favourites, boosts, young);
                match is_added {
                    true => self.reactions.add(user, post),
                    false => self.reactions.remove(user, post),
                }
                self.raise(post, user);
            }
        }
    }

    /// Enters a post in the lists of its topics, and in that of the group of a user who published it or reacted.
    fn raise(&mut self, post: PostId, user: UserId) {
        let Some(found) = self.posts.get(post).filter(|found| found.is_plain) else { return };
        let popular = Popular { post, author: found.author, heat: found.heat() };
        let group = self.reactions.group(user).map(Topic::Group);
        for topic in Topic::of(found).chain(group) {
            self.topics.raise(topic, popular);
        }
    }
}
