//! Posts and stories as JSON, rendered once and kept as bytes: a page is a concatenation.
//!
//! An entry is current as long as the revisions of its author, and of the user it replies to, are those it
//! was rendered under. The writer raises a user's revision, after the facts have changed, when their name
//! changes, a post of theirs is deleted or edited, or they are deleted: a reply shows whether what it replies
//! to still exists.
//! A reader keeps what it rendered only if no revision was raised since before it read the facts. So an
//! entry that is current never shows a state from before an acknowledged command. The same goes for the
//! names and handles that are kept for rendering.

#[cfg(all(test, feature = "loom"))]
mod races;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use feed::stories::StoryRef;
use feed::{Facts, Post, PostId, PostText, StoryId, UserId};
use quick_cache::{OptionsBuilder, Weighter, sync::Cache, unsync};
use rows::Rows;

use crate::render::{self, UserNames};
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
/// Number of users whose name and handle are kept in memory.
const USERS: usize = 32_768;

/// Rendered posts and stories within a budget.
pub(crate) struct Rendered {
    items: Vec<Mutex<unsync::Cache<Key, Kept, Bytes>>>,
    bytes_max: u64,
    users: Cache<UserId, Arc<NamedUser>>,
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
/// revision: four bytes each. Then the id of the boosted post, or 0, in eight.
const HEAD_BYTES: usize = 24;

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

struct NamedUser {
    revision: u32,
    names: UserNames,
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
    /// Keeps at most `bytes`.
    pub(crate) fn new(bytes: usize) -> Self {
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
        let (users, invalidated) = (Cache::new(USERS), AtomicU64::new(0));
        Self { items, bytes_max, users, revisions, invalidated }
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
            self.kept(Key::Post(id.0), out)
                .or_else(|| self.render_post(id, &in_memory, parent, |user| self.names(user), out))
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
            self.kept(Key::Post(id.0), out)
                .or_else(|| self.render_post(id, |id| facts.post(id), parent, names, out))
        };
        with_boosted(append, id, wants, out)
    }

    fn render_post(
        &self,
        id: PostId,
        read: impl Fn(PostId) -> Option<Post>,
        parent: impl Fn(PostId) -> Option<Option<Post>>,
        names: impl Fn(UserId) -> Option<Arc<NamedUser>>,
        out: &mut Vec<u8>,
    ) -> Option<Appended> {
        let known = |user| names(user).map(|known| known.names.clone());
        let write = |post: &Post, out: &mut Vec<u8>| {
            // A rendering is for all who see the post: some of them may not see a post replied to that is for fewer.
            let parent = match post.in_reply_to {
                Some(id) => parent(id)?
                    .filter(|to| to.visibility.shows_to_all_of(post.visibility))
                    .map(|_| id),
                None => None,
            };
            render::post(id, post, parent, known, out)
        };
        let depends = |post: &Post| {
            let other = post.boost.as_ref().map(|boost| boost.author).or(post.reply_to);
            let boosted = post.boost.as_ref().map_or(0, |boost| boost.post.0);
            ([post.author, other.unwrap_or(post.author)], boosted)
        };
        self.render(Key::Post(id.0), || read(id), depends, write, out)
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
        kept.or_else(|| self.render_story(story, in_memory, |user| self.names(user), out)).is_some()
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
        let read = |story| facts.story_text(story);
        kept.or_else(|| self.render_story(story, read, names, out)).is_some()
    }

    fn render_story(
        &self,
        story: StoryRef,
        read: impl Fn(StoryId) -> Option<PostText>,
        names: impl Fn(UserId) -> Option<Arc<NamedUser>>,
        out: &mut Vec<u8>,
    ) -> Option<Appended> {
        let write = |text: &PostText, out: &mut Vec<u8>| {
            render::story(story, &names(story.author)?.names, text, out);
            Some(())
        };
        let key = Key::story(story.story);
        self.render(key, || read(story.story), |_| ([story.author; 2], 0), write, out)
    }

    /// Removes a story that was deleted or expired.
    pub(super) fn forget(&self, story: StoryId) {
        let key = Key::story(story);
        self.shard(key).lock().remove(&key);
    }

    fn kept(&self, key: Key, out: &mut Vec<u8>) -> Option<Appended> {
        let items = self.shard(key).lock();
        let (head, json) = items.get(&key)?.split_first_chunk::<HEAD_BYTES>()?;
        let (users, boosted) = head.split_first_chunk::<16>()?;
        let words = users.as_chunks::<4>().0;
        let current = words.as_chunks::<2>().0.iter().all(|[user, revision]| {
            self.revision(UserId(u32::from_le_bytes(*user))) == u32::from_le_bytes(*revision)
        });
        if !current {
            return None;
        }
        out.extend_from_slice(json);
        let other = words.get(2).copied().map(u32::from_le_bytes).map(UserId)?;
        Some(Appended::of(u64::from_le_bytes(boosted.try_into().ok()?), other))
    }

    /// Renders, appends and keeps something. None if `read` finds nothing or `write` does not know a user
    /// in it. `depends` returns the users on whose revisions it depends, and the id of the boosted post, or 0.
    fn render<T>(
        &self,
        key: Key,
        read: impl FnOnce() -> Option<T>,
        depends: impl FnOnce(&T) -> ([UserId; 2], u64),
        write: impl FnOnce(&T, &mut Vec<u8>) -> Option<()>,
        out: &mut Vec<u8>,
    ) -> Option<Appended> {
        let invalidated = self.invalidated.load(Ordering::Acquire);
        let item = read()?;
        let (users, boosted) = depends(&item);
        let revisions = users.map(|user| (user, self.revision(user)));
        let start = out.len();
        if write(&item, out).is_none() {
            out.truncate(start);
            return None;
        }
        if self.invalidated.load(Ordering::Acquire) == invalidated {
            let json = out.get(start..).unwrap_or_default();
            let mut kept = Vec::with_capacity(HEAD_BYTES + json.len());
            for (user, revision) in revisions {
                kept.extend_from_slice(&user.0.to_le_bytes());
                kept.extend_from_slice(&revision.to_le_bytes());
            }
            kept.extend_from_slice(&boosted.to_le_bytes());
            kept.extend_from_slice(json);
            self.shard(key).lock().insert(key, kept.into());
        }
        let [_, other] = users;
        Some(Appended::of(boosted, other))
    }

    fn names(&self, user: UserId) -> Option<Arc<NamedUser>> {
        self.users.get(&user).filter(|known| known.revision == self.revision(user))
    }

    fn load_user<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        user: UserId,
    ) -> Option<Arc<NamedUser>> {
        let revision = self.revision(user);
        // Deleted users are still mentioned.
        let names = facts.stored_user(user).map(|user| (user.handle, user.name))?;
        let known = Arc::new(NamedUser { revision, names: Arc::new(names) });
        self.users.insert(user, Arc::clone(&known));
        Some(known)
    }

    /// Whether more than a quarter of the budget is unused.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes() < self.bytes_max / 4 * 3
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        self.items.iter().map(|shard| shard.lock().weight()).sum()
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
