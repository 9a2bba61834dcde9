//! Posts and stories as JSON, rendered once and kept as bytes: a page is a concatenation.
//!
//! An entry is current as long as the revisions of its author, and of the user it replies to, are those it
//! was rendered under. The writer raises a user's revision, after the facts have changed, when their name
//! changes, a post of theirs is deleted or edited, or they are deleted: a reply shows whether what it replies
//! to still exists.
//! A reader keeps what it rendered only if no revision was raised since before it read the facts. So an
//! entry that is current never shows a state from before an acknowledged command. The same goes for the
//! names and handles that are kept for rendering.

mod load;
#[cfg(all(test, feature = "loom"))]
mod races;
#[cfg(test)]
#[cfg(not(feature = "loom"))]
mod tests;

use std::sync::atomic::Ordering;

use feed::media::{Media, MediaId};
use feed::stories::StoryRef;
use feed::{Facts, Post, PostId, PostText, StoryId, UserId};
use quick_cache::{OptionsBuilder, Weighter, unsync};
use rows::Rows;

use super::names::{Names, UserNames};
use crate::pictures::pictures_of;
use crate::render;
use crate::sync::{AtomicU32, AtomicU64, Mutex};

/// Authors share revisions where their numbers are equal modulo this: a rare needless rendering in
/// exchange for a table of fixed size.
const REVISIONS: usize = if cfg!(feature = "loom") { 1 } else { 65_536 };
/// Bytes of an entry in addition to its text.
const ENTRY_BYTES: usize = 96;
/// A typical rendered post, for sizing the table.
const TYPICAL_BYTES: usize = 256 + ENTRY_BYTES;
/// Parts of the table, each with a lock that is held while a post is copied out: a page of posts pays
/// for no reference counts.
const SHARDS: usize = if cfg!(feature = "loom") { 1 } else { 64 };

/// Rendered posts and stories within a budget.
pub(crate) struct Rendered {
    items: Vec<Mutex<unsync::Cache<Key, Kept, Bytes>>>,
    bytes_max: u64,
    names: Names,
    revisions: Vec<AtomicU32>,
    /// Number of times that any revision was raised.
    invalidated: AtomicU64,
}

/// Posts and stories have ids of the same kind: who asks for a post must never get a story, which only friends
/// may see, and only while it is live.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Post(u64),
    Story(u64),
}

/// A post or story as JSON, after the users on whose revisions it depends. It is one allocation, because
/// each further pointer costs a page of posts a microsecond. A boost is kept without the boosted post, which has an entry
/// of its own.
type Kept = Box<[u8]>;
/// The author and their revision, the user who is replied to, or whose post is boosted (or the author again), and their
/// revision: four bytes each. Then the id of the boosted post, or 0, in eight, and where [`render::USUAL`] was cut out, or
/// 0, in four: without it a third more posts fit.
const HEAD_BYTES: usize = 28;

/// What was appended.
#[derive(Clone, Copy)]
enum Appended {
    /// All of it.
    Whole,
    /// A boost up to the boosted post, which is missing with the end.
    Boost {
        post: PostId,
        /// The author of that post.
        author: UserId,
    },
}

/// Something to be rendered, and how many revisions had been raised before it was read.
struct Read<T> {
    invalidated: u64,
    item: T,
}

#[derive(Clone)]
struct Bytes;

impl Weighter<Key, Kept> for Bytes {
    fn weight(&self, _: &Key, rendered: &Kept) -> u64 {
        (rendered.len() + ENTRY_BYTES) as u64
    }
}

impl Key {
    fn story(id: StoryId) -> Self {
        if rows::has_bug("show-story-as-post") { Self::Post(id.0) } else { Self::Story(id.0) }
    }
}

impl Rendered {
    /// Keeps at most `bytes`, and names within `name_bytes`.
    pub(crate) fn new(bytes: usize, name_bytes: usize) -> Self {
        let bytes_max = bytes as u64;
        let bytes = bytes / SHARDS;
        let shard = |_| {
            let options = OptionsBuilder::new()
                .estimated_items_capacity((bytes / TYPICAL_BYTES).max(16))
                .weight_capacity(bytes as u64)
                .build();
            let Ok(options) = options else { unreachable!("capacities are set") };
            let (hasher, lifecycle) = Default::default();
            Mutex::new(unsync::Cache::with_options(options, Bytes, hasher, lifecycle))
        };
        let items = (0..SHARDS).map(shard).collect();
        let revisions = (0..REVISIONS).map(|_| AtomicU32::new(0)).collect();
        let (names, invalidated) = (Names::new(name_bytes), AtomicU64::new(0));
        Self { items, bytes_max, names, revisions, invalidated }
    }

    fn shard(&self, key: Key) -> &Mutex<unsync::Cache<Key, Kept, Bytes>> {
        let (Key::Post(id) | Key::Story(id)) = key;
        let spread = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let Some(shard) = self.items.get(spread as usize % SHARDS) else {
            unreachable!("a remainder is within the shards");
        };
        shard
    }

    fn revision(&self, user: UserId) -> u32 {
        self.revision_of(user).load(Ordering::Acquire)
    }

    fn revision_of(&self, user: UserId) -> &AtomicU32 {
        let Some(revision) = self.revisions.get(user.0 as usize % REVISIONS) else {
            unreachable!("a remainder is within the table");
        };
        revision
    }

    /// Invalidates everything that was rendered of this author.
    pub(crate) fn invalidate(&self, author: UserId) {
        // In this order: a reader of the new revision then finds that something was invalidated, and does
        // not keep what it may have rendered from older facts.
        self.invalidated.fetch_add(1, Ordering::AcqRel);
        self.revision_of(author).fetch_add(1, Ordering::AcqRel);
    }

    /// Appends a post if it is kept, or can be rendered from memory: `in_memory` gives a post without
    /// touching a disk. False if not, or if it is a boost of a post by an author of whom `wants` nothing.
    pub(crate) fn try_post(
        &self,
        in_memory: impl Fn(PostId) -> Option<Post>,
        id: PostId,
        wants: impl FnOnce(UserId) -> bool,
        out: &mut Vec<u8>,
    ) -> bool {
        // What is not in memory may exist all the same.
        let parent = |id| in_memory(id).map(Some);
        let append = |id: PostId, out: &mut Vec<u8>| {
            self.kept(Key::Post(id.0), out).or_else(|| {
                // Pictures are read from rows.
                let post = self.read(|| in_memory(id).filter(|post| post.media.is_empty()))?;
                self.render_post(id, &post, parent, &[], |user| self.names(user), out)
            })
        };
        with_boosted(append, id, wants, out)
    }

    /// Appends a post, rendered from the facts if need be; false if there is none, or if it is a boost of a post by an
    /// author of whom `wants` nothing.
    pub(crate) fn post<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        id: PostId,
        wants: impl FnOnce(UserId) -> bool,
        out: &mut Vec<u8>,
    ) -> bool {
        let names = |user| self.names(user).or_else(|| self.load_user(facts, user));
        let parent = |id| Some(facts.post(id));
        let append = |id: PostId, out: &mut Vec<u8>| {
            self.kept(Key::Post(id.0), out).or_else(|| {
                let post = self.read(|| facts.post(id))?;
                let pictures = pictures_of(facts, &post.item);
                self.render_post(id, &post, parent, &pictures, names, out)
            })
        };
        with_boosted(append, id, wants, out)
    }

    fn render_post(
        &self,
        id: PostId,
        post: &Read<Post>,
        parent: impl Fn(PostId) -> Option<Option<Post>>,
        pictures: &[(MediaId, Media)],
        names: impl Fn(UserId) -> Option<UserNames>,
        out: &mut Vec<u8>,
    ) -> Option<Appended> {
        let other = post.item.boost.as_ref().map(|boost| boost.author).or(post.item.reply_to);
        let boosted = post.item.boost.as_ref().map_or(0, |boost| boost.post.0);
        let depends = ([post.item.author, other.unwrap_or(post.item.author)], boosted);
        let write = |post: &Post, out: &mut Vec<u8>| {
            // A rendering is for all who see the post: some of them may not see a post replied to that is for fewer.
            let parent = match post.in_reply_to {
                Some(id) => parent(id)?
                    .filter(|to| to.visibility.shows_to_all_of(post.visibility))
                    .map(|_| id),
                None => None,
            };
            render::post(id, post, parent, pictures, names, out)
        };
        self.render(Key::Post(id.0), post, depends, write, out)
    }

    /// Appends a story, but for its end, as [`Rendered::try_post`] does. The story is live: a kept
    /// rendering may exist longer than its story.
    pub(crate) fn try_story(
        &self,
        in_memory: impl Fn(StoryId) -> Option<PostText>,
        story: StoryRef,
        out: &mut Vec<u8>,
    ) -> bool {
        let kept = self.kept(Key::story(story.story), out);
        let render = || {
            let text = self.read(|| in_memory(story.story))?;
            self.render_story(story, &text, |user| self.names(user), out)
        };
        kept.or_else(render).is_some()
    }

    /// Appends a story, but for its end, as [`Rendered::post`] does. The story is live.
    pub(crate) fn story<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        story: StoryRef,
        out: &mut Vec<u8>,
    ) -> bool {
        let names = |user| self.names(user).or_else(|| self.load_user(facts, user));
        let kept = self.kept(Key::story(story.story), out);
        let render = || {
            let text = self.read(|| facts.story_text(story.story))?;
            self.render_story(story, &text, names, out)
        };
        kept.or_else(render).is_some()
    }

    fn render_story(
        &self,
        story: StoryRef,
        text: &Read<PostText>,
        names: impl Fn(UserId) -> Option<UserNames>,
        out: &mut Vec<u8>,
    ) -> Option<Appended> {
        let write = |text: &PostText, out: &mut Vec<u8>| {
            render::story(story, &names(story.author)?, text, out);
            Some(())
        };
        self.render(Key::story(story.story), text, ([story.author; 2], 0), write, out)
    }

    /// Removes a story that was deleted or expired.
    pub(super) fn forget(&self, story: StoryId) {
        let key = Key::story(story);
        self.shard(key).lock().remove(&key);
    }

    fn kept(&self, key: Key, out: &mut Vec<u8>) -> Option<Appended> {
        let items = self.shard(key).lock();
        let (head, json) = items.get(&key)?.split_first_chunk::<HEAD_BYTES>()?;
        let (users, rest) = head.split_first_chunk::<16>()?;
        let (boosted, cut) = rest.split_first_chunk::<8>()?;
        let words = users.as_chunks::<4>().0;
        let current = words.as_chunks::<2>().0.iter().all(|[user, revision]| {
            self.revision(UserId(u32::from_le_bytes(*user))) == u32::from_le_bytes(*revision)
        });
        if !current {
            return None;
        }
        let other = words.get(2).copied().map(u32::from_le_bytes).map(UserId)?;
        match u32::from_le_bytes(cut.try_into().ok()?) as usize {
            0 => out.extend_from_slice(json),
            cut => {
                let (before, after) = json.split_at_checked(cut)?;
                out.extend_from_slice(before);
                out.extend_from_slice(render::USUAL);
                out.extend_from_slice(after);
            }
        }
        Some(Appended::of(u64::from_le_bytes(*boosted), other))
    }

    /// Reads something to be rendered.
    fn read<T>(&self, read: impl FnOnce() -> Option<T>) -> Option<Read<T>> {
        let invalidated = self.invalidated.load(Ordering::Acquire);
        read().map(|item| Read { invalidated, item })
    }

    /// Renders, appends and keeps something. None if `write` does not know a user in it. `depends` is the users on whose
    /// revisions it depends, and the id of the boosted post, or 0.
    fn render<T>(
        &self,
        key: Key,
        read: &Read<T>,
        (users, boosted): ([UserId; 2], u64),
        write: impl FnOnce(&T, &mut Vec<u8>) -> Option<()>,
        out: &mut Vec<u8>,
    ) -> Option<Appended> {
        let revisions = users.map(|user| (user, self.revision(user)));
        let start = out.len();
        if write(&read.item, out).is_none() {
            out.truncate(start);
            return None;
        }
        if self.invalidated.load(Ordering::Acquire) == read.invalidated {
            let json = out.get(start..).unwrap_or_default();
            self.shard(key).lock().insert(key, kept_of(revisions, boosted, json));
        }
        let [_, other] = users;
        Some(Appended::of(boosted, other))
    }

    fn names(&self, user: UserId) -> Option<UserNames> {
        self.names.get(user, self.revision(user))
    }

    fn load_user<R: Rows + ?Sized>(&self, facts: Facts<'_, R>, user: UserId) -> Option<UserNames> {
        let revision = self.revision(user);
        // Deleted users are still mentioned.
        let stored = facts.stored_user(user)?;
        Some(self.names.add(user, revision, &stored.handle, &stored.name))
    }

    /// Whether more than a quarter of the budget of posts and stories is unused.
    fn has_room(&self) -> bool {
        self.item_bytes() < self.bytes_max / 4 * 3
    }

    fn item_bytes(&self) -> u64 {
        self.items.iter().map(|shard| shard.lock().weight()).sum()
    }

    /// Bytes held, with those of names.
    pub(crate) fn bytes(&self) -> u64 {
        self.item_bytes() + self.names.bytes()
    }
}

impl Appended {
    fn of(boosted: u64, author: UserId) -> Self {
        match boosted {
            0 => Self::Whole,
            post => Self::Boost { post: PostId(post), author },
        }
    }
}

/// An entry.
fn kept_of(revisions: [(UserId, u32); 2], boosted: u64, json: &[u8]) -> Kept {
    let usual = json.windows(render::USUAL.len()).position(|part| part == render::USUAL);
    let cut = usual.unwrap_or_default();
    let rest = if usual.is_some() { cut + render::USUAL.len() } else { 0 };
    let mut kept = Vec::with_capacity(HEAD_BYTES + cut + json.len() - rest);
    for (user, revision) in revisions {
        kept.extend_from_slice(&user.0.to_le_bytes());
        kept.extend_from_slice(&revision.to_le_bytes());
    }
    kept.extend_from_slice(&boosted.to_le_bytes());
    kept.extend_from_slice(&u32::try_from(cut).unwrap_or_default().to_le_bytes());
    kept.extend_from_slice(json.get(..cut).unwrap_or_default());
    kept.extend_from_slice(json.get(rest..).unwrap_or_default());
    kept.into()
}

/// Appends a post with `append`, and if it is a boost, the boosted post in it. False, and nothing appended, if one of
/// these is not found, or if `wants` nothing of the author of the boosted post.
fn with_boosted(
    append: impl Fn(PostId, &mut Vec<u8>) -> Option<Appended>,
    id: PostId,
    wants: impl FnOnce(UserId) -> bool,
    out: &mut Vec<u8>,
) -> bool {
    let start = out.len();
    match append(id, out) {
        None => false,
        Some(Appended::Whole) => true,
        Some(Appended::Boost { post, author }) => {
            // What is boosted is no boost itself.
            let is_whole = wants(author) && matches!(append(post, out), Some(Appended::Whole));
            if is_whole {
                out.push(b'}');
            } else {
                out.truncate(start);
            }
            is_whole
        }
    }
}
