//! View for ranked feeds: recent posts of the public timeline with their counts, the last reactions of users, and the
//! popular posts of each topic.
//!
//! The first reader loads a few posts from the facts. Then a thread loads the others into a new view, groups the users
//! in it, and replaces the first view. Readers apply the effects since the last read, as [`Event`]s made from the
//! facts, and gather candidates under a short read lock. The thread does the same when nobody reads, so that no effects
//! are lost. The writer and the homes neither read nor wait for this view, and a reader waits for another one for at
//! most [`WAIT_MAX`].
//!
//! **Invariant:** every part has a fixed maximum size, which [`Sizes`] derives from the budget. While a view is loaded,
//! the first one takes at most about 2 MiB in addition.
//! **Invariant:** the view decides nothing about visibility: readers check every post that they show.
//!
//! Read `recent`, `reactions`, `topics`, `events`, `loading`, `gather`, `seen`, then `snapshots`.

mod events;
mod gather;
mod languages;
mod loading;
mod reactions;
mod recent;
mod seen;
mod snapshots;
#[cfg(test)]
mod tests;
mod topics;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use commitlog::Position;
use feed::{Facts, PostId, UserId};
use hashbrown::{HashMap, HashSet};
use parking_lot::{Mutex, RwLock};
use rows::Rows;
use smallvec::SmallVec;
use store::unless_unreadable;

use super::effects::Effects;
use events::{Allowance, Counts, Event, Reader, Subjects, first_young};
use gather::Gathered;
pub(crate) use gather::{AtHome, Less, Likers, Taste};
pub(crate) use languages::language_number;
use reactions::{Group, REACTIONS_MAX, Reactions};
use recent::Recents;
pub(crate) use recent::tag_number;
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
/// Maximum number of these effects by one user, so that a user with many changes does not make the view skip those of
/// others.
const WINDOW_EFFECTS_PER_USER_MAX: usize = 64;
/// Maximum number of the newest posts that the first reader loads: few, because other readers wait.
const LOADED_FIRST: usize = 512;
/// Maximum number of posts, of users and of topics in the first view.
const FIRST_VIEW_MAX: usize = 1_024;
/// Maximum number of the newest posts that the thread loads.
const LOADED_MAX: usize = 1 << 16;
/// Number of posts or users after which the thread applies the effects of meanwhile to the view that it loads: at most
/// those of a window.
const LOADED_BETWEEN: usize = 64;
/// Maximum number of events that are applied without releasing the lock of the view.
const APPLIED_AT_ONCE: usize = 64;
/// Maximum time for which a reader waits for another one that loads the first posts or applies effects. After that it
/// reads the view without the last effects.
const WAIT_MAX: Duration = Duration::from_millis(50);
/// Time after which the first young account is searched for again, in milliseconds.
const SEARCHED_AGAIN_MS: u64 = 60_000;
/// Number of users who may change their interest group in a step: 320 per second.
const GROUPED_AT_ONCE: usize = 32;

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
    /// Sizes of the first view, which is kept only until the thread has loaded another one.
    fn of_first_view(self) -> Self {
        let Self { posts, users, topics, .. } = self;
        let max = |size: usize| size.min(FIRST_VIEW_MAX);
        Self { posts: max(posts), users: max(users), topics: max(topics), ..self }
    }

    /// Divides a budget: five sixteenths for posts, a quarter each for users and for snapshots, an eighth for topics, a
    /// sixteenth for reports of what users have seen.
    pub(crate) const fn of(bytes: usize) -> Self {
        Self {
            posts: bytes / 16 * 5 / recent::POST_BYTES_MAX,
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
    /// Whether the thread has replaced the first view.
    is_loaded: AtomicBool,
    /// Number of effects that were skipped since the start.
    skipped: AtomicU64,
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
    /// Newest posts of new authors, oldest first, one of each author, and these authors.
    new_posts: VecDeque<(PostId, UserId)>,
    new_authors: HashSet<UserId>,
}

/// Place of the view in the effects.
#[derive(Default)]
struct Progress {
    /// Position of the last applied effects; `None` before the first posts were loaded.
    position: Option<Position>,
    /// Start of the window, and the effects that may still be read in it.
    window_ms: u64,
    allowance: Allowance,
    /// First account that was registered in the hour before the search.
    young_from: UserId,
    searched_ms: u64,
}

impl Ranked {
    pub(super) fn new(bytes: usize) -> Self {
        let sizes = Sizes::of(bytes);
        let (snapshots, seen) = (Snapshots::new(sizes.snapshot_bytes), Seen::new(sizes.readers));
        Self {
            sizes,
            is_followed: AtomicBool::new(false),
            is_loaded: AtomicBool::new(false),
            skipped: AtomicU64::new(0),
            progress: Mutex::default(),
            view: RwLock::new(View::new(sizes.of_first_view())),
            snapshots,
            seen,
        }
    }

    /// Whether the view has all recent posts. Before that, it has at most the newest few.
    pub(crate) fn is_loaded(&self) -> bool {
        self.is_loaded.load(Ordering::Relaxed)
    }

    /// Number of changes since the start that the view has skipped because there were too many.
    pub(super) fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    /// Whether the caller must start the thread that follows the effects: true for one caller.
    pub(crate) fn begin(&self) -> bool {
        !self.is_followed.load(Ordering::Relaxed) && !self.is_followed.swap(true, Ordering::Relaxed)
    }

    /// Applies all effects so far, and loads the first posts before the first ones. May read the facts.
    pub(super) fn catch_up<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        effects: &Effects,
        now_ms: u64,
    ) {
        let Some(mut progress) = self.progress.try_lock_for(WAIT_MAX) else { return };
        if progress.window_ms.abs_diff(now_ms) >= WINDOW_MS {
            progress.window_ms = now_ms;
            progress.allowance = Allowance::new(WINDOW_EFFECTS_MAX, WINDOW_EFFECTS_PER_USER_MAX);
        }
        if progress.searched_ms.abs_diff(now_ms) >= SEARCHED_AGAIN_MS {
            (progress.searched_ms, progress.young_from) = (now_ms, first_young(facts, now_ms));
        }
        let reader = Reader { facts, young_from: progress.young_from };
        let Progress { position, allowance, .. } = &mut *progress;
        let is_new = position.is_none();
        // Effects after this position that the facts show already are applied again, which changes nothing.
        let position = position.get_or_insert_with(|| effects.end());
        if is_new {
            let max = self.sizes.posts.min(LOADED_FIRST);
            reader.load(PostId(0), max, || false, |event| self.view.write().apply(event));
        }
        follow(&self.view, (&reader, allowance), effects, position, |_| true);
        self.skipped.fetch_add(allowance.take_skipped(), Ordering::Relaxed);
    }

    /// Loads a new view from the facts, groups its users and replaces the present view, unless `is_stopped`. Readers
    /// use the present one meanwhile.
    pub(super) fn load<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        effects: &Effects,
        now_ms: u64,
        is_stopped: impl Fn() -> bool,
    ) {
        let mut position = effects.end();
        let reader = Reader { facts, young_from: first_young(facts, now_ms) };
        let view = RwLock::new(View::new(self.sizes));
        let max = self.sizes.posts.min(LOADED_MAX);
        let mut steps = 0;
        let mut catch_up = |is_applied: fn(&Event) -> bool| {
            let mut allowance = Allowance::new(WINDOW_EFFECTS_MAX, WINDOW_EFFECTS_PER_USER_MAX);
            follow(&view, (&reader, &mut allowance), effects, &mut position, is_applied);
            self.skipped.fetch_add(allowance.take_skipped(), Ordering::Relaxed);
        };
        let mut step = |is_applied: fn(&Event) -> bool| {
            steps += 1;
            if steps % LOADED_BETWEEN == 0 {
                catch_up(is_applied);
            }
            is_stopped()
        };
        let newest = || view.read().posts.newest();
        let apply = |event| view.write().apply(event);
        // Posts are loaded in the order of their ids, so new ones are loaded after the others. The second time, few are
        // left, and the third time almost none, whose effects may wait.
        for _ in 0..2 {
            let is_applied = |event: &Event| !matches!(event, Event::Posted { .. });
            reader.load(newest(), max, || step(is_applied), apply);
        }
        reader.load(newest(), max, &is_stopped, apply);
        loading::find_groups(&view, facts, || step(|_| true));
        catch_up(|_| true);
        if is_stopped() {
            return;
        }
        let mut progress = self.progress.lock();
        // The few effects since then, so that the new view has all that readers have seen in the present one.
        catch_up(|_| true);
        progress.position = Some(position);
        let mut view = view.into_inner();
        std::mem::swap(&mut *self.view.write(), &mut view);
        self.is_loaded.store(true, Ordering::Relaxed);
        // The old view is freed without the lock.
        drop(progress);
    }

    /// Moves the next users to the groups of most of their neighbors, and removes deleted posts from the lists of
    /// groups.
    pub(super) fn group<R: Rows + ?Sized>(&self, facts: Facts<'_, R>, next: &mut usize) {
        let has_removed = self.view.read().topics.has_removed();
        if has_removed {
            self.view.write().topics.sweep_groups();
        }
        for _ in 0..GROUPED_AT_ONCE {
            let user = self.view.read().reactions.at(*next);
            let Some(user) = user else {
                *next = 0;
                return;
            };
            *next += 1;
            if let Some(group) = loading::joined(&self.view, facts, user) {
                self.view.write().join(user, group);
            }
        }
    }

    /// Interest group of a user, for tests.
    #[cfg(test)]
    pub(crate) fn group_of(&self, user: UserId) -> Option<UserId> {
        self.view.read().reactions.group(user).map(|group| group.0)
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

    /// Sets the features of posts, as for a ranking.
    pub(crate) fn describe(&self, candidates: &mut [rank::Candidate], taste: &Taste) {
        self.view.read().describe_all(candidates, taste);
    }

    /// Popular posts with any reaction, the most popular first.
    pub(crate) fn popular(&self) -> Vec<PostId> {
        let view = self.view.read();
        let has_reactions = |popular: &&Popular| {
            let found = view.posts.get(popular.post);
            found.is_some_and(|found| found.counted() != (0, 0) || found.replies > 0)
        };
        let all = view.topics.of(Topic::All).iter().filter(has_reactions);
        all.map(|popular| popular.post).collect()
    }

    /// Numbers of hashtags of popular posts from `since` on by several authors, with these posts: see
    /// [`Topics::popular_tags`].
    pub(crate) fn popular_tags(&self, since: PostId, max: usize) -> Vec<(u32, Vec<PostId>)> {
        self.view.read().topics.popular_tags(since, max)
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
        now_ms: u64,
    ) -> HashMap<PostId, u32> {
        let mut seen = self.seen.counts(user, posts);
        for (post, rankings) in self.snapshots.shown(user, now_ms) {
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

/// Applies the effects after `position`, and sets `position` to the last ones. Of those that need the facts, it skips
/// what exceeds the allowance or has unreadable rows: they are missing in the view until their posts change again.
/// Applies only the events for which `is_applied`.
fn follow<R: Rows + ?Sized>(
    view: &RwLock<View>,
    (reader, allowance): (&Reader<'_, R>, &mut Allowance),
    effects: &Effects,
    position: &mut Position,
    is_applied: impl Fn(&Event) -> bool,
) {
    loop {
        // After lost effects, the next call returns the kept ones.
        let Ok(next) = effects.next(position) else { continue };
        let Some(group) = next else { return };
        let author_of = |post| view.read().posts.get(post).map(|found| found.author);
        let mut of_group = events::Group::new(reader, author_of, allowance);
        let event = |effect| unless_unreadable(|| of_group.event(effect)).flatten();
        let found: Vec<_> = group.iter().filter_map(event).filter(&is_applied).collect();
        let mut found = found.into_iter();
        while found.len() > 0 {
            let mut view = view.write();
            found.by_ref().take(APPLIED_AT_ONCE).for_each(|event| view.apply(event));
        }
    }
}

impl View {
    fn new(sizes: Sizes) -> Self {
        Self {
            posts: Recents::new(sizes.posts),
            reactions: Reactions::new(sizes.users),
            topics: Topics::new(sizes.topics),
            new_posts: VecDeque::new(),
            new_authors: HashSet::new(),
        }
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Posted { post, is_new_author } => {
                let (id, author) = (post.id, post.author);
                self.reactions.add_author(author);
                if self.posts.push(post) && is_new_author {
                    self.add_new((id, author));
                }
                self.topics.forget_before(self.posts.oldest());
                self.raise(id, author);
            }
            Event::Edited { post, subjects: Subjects { tags, language, is_plain } } => {
                if let Some(found) = self.posts.get_mut(post) {
                    (found.tags, found.language, found.is_plain) = (tags, language, is_plain);
                }
            }
            Event::Removed(post) => {
                if let Some(found) = self.posts.get(post) {
                    for topic in Topic::of(found) {
                        self.topics.remove(topic, post);
                    }
                    self.topics.remove_from_groups(post);
                }
                self.remove_new(|(other, _)| other == post);
                self.posts.remove(post);
            }
            Event::Hidden(user) => {
                self.topics.remove_author(user);
                self.remove_new(|(_, author)| author == user);
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

    /// Adds a post of a new author in place of the author's last one.
    fn add_new(&mut self, (post, author): (PostId, UserId)) {
        if !self.new_authors.insert(author) {
            self.new_posts.retain(|(_, other)| *other != author);
        } else if self.new_posts.len() >= NEW_POSTS_MAX
            && let Some((_, oldest)) = self.new_posts.pop_front()
        {
            self.new_authors.remove(&oldest);
        }
        self.new_posts.push_back((post, author));
    }

    fn remove_new(&mut self, is_removed: impl Fn((PostId, UserId)) -> bool) {
        let authors = &mut self.new_authors;
        self.new_posts.retain(|found| {
            let is_kept = !is_removed(*found);
            if !is_kept {
                authors.remove(&found.1);
            }
            is_kept
        });
    }

    /// Moves a user to a group, with the posts to which the user reacted.
    fn join(&mut self, user: UserId, group: Group) {
        if self.reactions.set_group(user, group) {
            let posts: SmallVec<[PostId; REACTIONS_MAX]> = self.reactions.of(user).collect();
            posts.into_iter().for_each(|post| self.raise_in_group(post, user));
        }
    }

    /// Enters all posts in the lists of the groups of their authors and of the users who reacted.
    fn raise_in_groups(&mut self) {
        let authors: Vec<_> = self.posts.iter().map(|post| (post.id, post.author)).collect();
        authors.into_iter().for_each(|(post, author)| self.raise_in_group(post, author));
        let mut place = 0;
        while let Some(user) = self.reactions.at(place) {
            let posts: SmallVec<[PostId; REACTIONS_MAX]> = self.reactions.of(user).collect();
            posts.into_iter().for_each(|post| self.raise_in_group(post, user));
            place += 1;
        }
    }

    fn raise_in_group(&mut self, post: PostId, user: UserId) {
        let Some(found) = self.posts.get(post).filter(|found| found.is_plain) else { return };
        let popular = Popular { post, author: found.author, heat: found.heat() };
        if let Some(group) = self.reactions.group(user) {
            self.topics.raise(Topic::Group(group), popular);
        }
    }

    /// Enters a post in the lists of its topics, and in that of the group of a user who published it or reacted.
    fn raise(&mut self, post: PostId, user: UserId) {
        let Some(found) = self.posts.get(post).filter(|found| found.is_plain) else { return };
        let popular = Popular { post, author: found.author, heat: found.heat() };
        for topic in Topic::of(found) {
            self.topics.raise(topic, popular);
        }
        self.raise_in_group(post, user);
    }
}
