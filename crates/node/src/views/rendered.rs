//! Posts and stories as JSON, rendered once and kept as bytes: a page is a concatenation.
//!
//! An entry is good as long as the revisions of its author, and of the user it replies to, are those it
//! was rendered under. The writer raises a user's revision, after the facts have changed, when their name
//! changes or a post of theirs is deleted or edited: a reply shows whether what it replies to still
//! exists. A reader keeps what it rendered only if no revision was raised since before it read the facts. So
//! what is found current never shows what an acknowledged command had changed before. The same
//! goes for the names and handles that are kept for rendering.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use feed::stories::StoryRef;
use feed::{Facts, Post, PostId, PostText, StoryId, UserId};
use parking_lot::Mutex;
use quick_cache::{OptionsBuilder, Weighter, sync::Cache, unsync};
use rows::Rows;

use crate::render::{self, Person};

/// Authors share revisions where their numbers are equal modulo this: a rare needless rendering in
/// exchange for a table of fixed size.
const REVISIONS: usize = 65_536;
/// What an entry costs besides its text.
const ENTRY_BYTES: usize = 96;
/// A typical rendered post, for sizing the table.
const TYPICAL_BYTES: usize = 256 + ENTRY_BYTES;
/// Parts of the table, each with a lock that is held while a post is copied out: a page of posts pays
/// for no reference counts.
const SHARDS: usize = 64;
/// People whose name and handle are kept at hand.
const PEOPLE: usize = 32_768;

/// Rendered posts and stories within a budget.
pub(crate) struct Rendered {
    /// By id: posts and stories share the numbers.
    items: Vec<Mutex<unsync::Cache<u64, Kept, Bytes>>>,
    people: Cache<UserId, Arc<Known>>,
    revisions: Vec<AtomicU32>,
    /// How often any revision was raised.
    invalidated: AtomicU64,
}

/// A post or story as JSON after those on whose revisions it depends: one allocation, since each step from
/// one to the next costs a page of posts a microsecond.
type Kept = Box<[u8]>;
/// The author and their revision, whoever is replied to (or the author again) and theirs: four bytes each.
const HEAD_BYTES: usize = 16;

struct Known {
    revision: u32,
    person: Person,
}

#[derive(Clone)]
struct Bytes;

impl Weighter<u64, Kept> for Bytes {
    fn weight(&self, _: &u64, rendered: &Kept) -> u64 {
        (rendered.len() + ENTRY_BYTES) as u64
    }
}

impl Rendered {
    /// Keeps at most `bytes`.
    pub(crate) fn new(bytes: usize) -> Self {
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
        Self { items, people: Cache::new(PEOPLE), revisions, invalidated: AtomicU64::new(0) }
    }

    fn shard(&self, id: u64) -> &Mutex<unsync::Cache<u64, Kept, Bytes>> {
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

    /// Whatever was rendered of this author is not current any more.
    pub(crate) fn invalidate(&self, author: UserId) {
        // In this order: who reads the new revision then finds that something was invalidated, and
        // does not keep what it may have rendered from older facts.
        self.invalidated.fetch_add(1, Ordering::AcqRel);
        self.revision_of(author).fetch_add(1, Ordering::AcqRel);
    }

    /// Appends a post if it is at hand, or can be rendered from what is: `in_memory` gives a post
    /// without touching a disk. False if not.
    pub(crate) fn try_post(
        &self,
        in_memory: impl Fn(PostId) -> Option<Post>,
        id: PostId,
        out: &mut Vec<u8>,
    ) -> bool {
        // What is not in memory may exist all the same.
        let exists = |id| in_memory(id).map(|_| true);
        self.kept(id.0, out)
            || self.render_post(id, &in_memory, exists, |user| self.person(user), out)
    }

    /// Appends a post, rendered from the facts if need be; false if there is none.
    pub(crate) fn post<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        id: PostId,
        out: &mut Vec<u8>,
    ) -> bool {
        let person = |user| self.person(user).or_else(|| self.meet(facts, user));
        let exists = |id| Some(facts.has_post(id));
        self.kept(id.0, out) || self.render_post(id, |id| facts.post(id), exists, person, out)
    }

    fn render_post(
        &self,
        id: PostId,
        read: impl Fn(PostId) -> Option<Post>,
        exists: impl Fn(PostId) -> Option<bool>,
        person: impl Fn(UserId) -> Option<Arc<Known>>,
        out: &mut Vec<u8>,
    ) -> bool {
        let known = |user| person(user).map(|known| known.person.clone());
        let write = |post: &Post, out: &mut Vec<u8>| {
            let parent = match post.in_reply_to {
                Some(parent) => exists(parent)?.then_some(parent),
                None => None,
            };
            render::post(id, post, parent, known, out)
        };
        let people = |post: &Post| [post.author, post.reply_to.unwrap_or(post.author)];
        self.render(id.0, || read(id), people, write, out)
    }

    /// Appends a story, but for its end, as [`Rendered::try_post`] does. The story is live: what is
    /// kept of one outlasts it.
    pub(crate) fn try_story(
        &self,
        in_memory: impl Fn(StoryId) -> Option<PostText>,
        told: StoryRef,
        out: &mut Vec<u8>,
    ) -> bool {
        self.kept(told.story.0, out)
            || self.render_story(told, in_memory, |user| self.person(user), out)
    }

    /// Appends a story, but for its end, as [`Rendered::post`] does. The story is live.
    pub(crate) fn story<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        told: StoryRef,
        out: &mut Vec<u8>,
    ) -> bool {
        let person = |user| self.person(user).or_else(|| self.meet(facts, user));
        self.kept(told.story.0, out)
            || self.render_story(told, |story| facts.story_text(story), person, out)
    }

    fn render_story(
        &self,
        told: StoryRef,
        read: impl Fn(StoryId) -> Option<PostText>,
        person: impl Fn(UserId) -> Option<Arc<Known>>,
        out: &mut Vec<u8>,
    ) -> bool {
        let write = |text: &PostText, out: &mut Vec<u8>| {
            render::story(told, &person(told.author)?.person, text, out);
            Some(())
        };
        self.render(told.story.0, || read(told.story), |_| [told.author; 2], write, out)
    }

    /// Forgets a story that is gone.
    pub(super) fn forget(&self, story: StoryId) {
        self.shard(story.0).lock().remove(&story.0);
    }

    fn kept(&self, id: u64, out: &mut Vec<u8>) -> bool {
        let items = self.shard(id).lock();
        let Some(kept) = items.get(&id) else { return false };
        let Some((head, json)) = kept.split_first_chunk::<HEAD_BYTES>() else { return false };
        let (words, _) = head.as_chunks::<4>();
        let current = words.as_chunks::<2>().0.iter().all(|[user, revision]| {
            self.revision(UserId(u32::from_le_bytes(*user))) == u32::from_le_bytes(*revision)
        });
        if current {
            out.extend_from_slice(json);
        }
        current
    }

    /// Renders, appends and keeps something. False if `read` finds nothing or `write` does not know
    /// somebody in it.
    fn render<T>(
        &self,
        id: u64,
        read: impl FnOnce() -> Option<T>,
        people: impl FnOnce(&T) -> [UserId; 2],
        write: impl FnOnce(&T, &mut Vec<u8>) -> Option<()>,
        out: &mut Vec<u8>,
    ) -> bool {
        let invalidated = self.invalidated.load(Ordering::Acquire);
        let Some(item) = read() else { return false };
        let revisions = people(&item).map(|user| (user, self.revision(user)));
        let start = out.len();
        if write(&item, out).is_none() {
            out.truncate(start);
            return false;
        }
        if self.invalidated.load(Ordering::Acquire) == invalidated {
            let json = out.get(start..).unwrap_or_default();
            let mut kept = Vec::with_capacity(HEAD_BYTES + json.len());
            for (user, revision) in revisions {
                kept.extend_from_slice(&user.0.to_le_bytes());
                kept.extend_from_slice(&revision.to_le_bytes());
            }
            kept.extend_from_slice(json);
            self.shard(id).lock().insert(id, kept.into());
        }
        true
    }

    fn person(&self, user: UserId) -> Option<Arc<Known>> {
        self.people.get(&user).filter(|known| known.revision == self.revision(user))
    }

    fn meet<R: Rows + ?Sized>(&self, facts: Facts<'_, R>, user: UserId) -> Option<Arc<Known>> {
        let revision = self.revision(user);
        let person = facts.user(user).map(|user| (user.handle, user.name))?;
        let known = Arc::new(Known { revision, person: Arc::new(person) });
        self.people.insert(user, Arc::clone(&known));
        Some(known)
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        self.items.iter().map(|shard| shard.lock().weight()).sum()
    }
}
