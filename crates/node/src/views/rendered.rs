//! Posts and stories as JSON, rendered once and kept as bytes: a page is a concatenation.
//!
//! An entry is current as long as the numbers of changes of what it was made of ([`Subject`]) are those from before it was
//! read: the content of the post and of the post that it replies to or boosts, and the profiles of both authors. The store
//! raises a number after readers see a change and before the change is acknowledged. So an entry that is current never shows
//! a state from before an acknowledged command. The same goes for the names and handles that are kept for rendering.

mod load;
#[cfg(all(test, feature = "loom"))]
mod races;
#[cfg(test)]
#[cfg(not(feature = "loom"))]
mod tests;

use feed::media::{Media, MediaId};
use feed::stories::StoryRef;
use feed::{Facts, Post, PostId, PostText, StoryId, UserId};
use quick_cache::{OptionsBuilder, Weighter, unsync};
use rows::{Rows, Subject};

use super::names::{Names, UserNames};
use crate::pictures::pictures_of;
use crate::render;
use crate::sync::Mutex;

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
}

/// Numbers of changes of rows, as [`Store::revision`](store::Store::revision) counts them.
pub(crate) trait Revisions {
    /// The number of changes of what `subject` says.
    fn revision(&self, subject: Subject) -> u32;
}

impl Revisions for store::Store {
    fn revision(&self, subject: Subject) -> u32 {
        Self::revision(self, subject)
    }
}

impl Revisions for store::RevisionsCopy {
    fn revision(&self, subject: Subject) -> u32 {
        Self::revision(self, subject)
    }
}

/// Posts and stories have ids of the same kind: who asks for a post must never get a story, which only friends
/// may see, and only while it is live.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Post(u64),
    Story(u64),
}

/// A post or story as JSON, after its [`Head`]. It is one allocation, because each further pointer costs a page of posts a
/// microsecond. A boost is kept without the boosted post, which has an entry of its own.
type Kept = Box<[u8]>;

/// The parts of which a post or story was made.
#[derive(Clone, Copy)]
struct Parts {
    author: UserId,
    /// The author of the post that it replies to or boosts; or the author again.
    other: UserId,
    /// The post that it replies to or boosts, if any.
    post: Option<PostId>,
    is_boost: bool,
}

/// The numbers of changes of the parts, from before they were read: of both profiles, and of both contents.
type Numbers = [u32; 4];

/// The beginning of an entry, in numbers of four bytes: the revisions, both users, the two halves of the other post (0 for
/// none), where [`render::USUAL`] was cut out (0 if nowhere, without it a third more posts fit), and 1 for a boost.
const HEAD_WORDS: usize = 10;
const HEAD_BYTES: usize = 4 * HEAD_WORDS;

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

/// Something to be rendered, and the number of changes of its content from before it was read.
struct Read<T> {
    content: u32,
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

    /// The number of changes of the content. That of a story does not change.
    fn content(self, revisions: &impl Revisions) -> u32 {
        match self {
            Self::Post(id) => revisions.revision(Subject::Content(id)),
            Self::Story(_) => 0,
        }
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
        Self { items, bytes_max, names: Names::new(name_bytes) }
    }

    fn shard(&self, key: Key) -> &Mutex<unsync::Cache<Key, Kept, Bytes>> {
        let (Key::Post(id) | Key::Story(id)) = key;
        let spread = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let Some(shard) = self.items.get(spread as usize % SHARDS) else {
            unreachable!("a remainder is within the shards");
        };
        shard
    }

    /// Appends a post if it is kept, or can be rendered from memory: `in_memory` gives a post without
    /// touching a disk. False if not, or if it is a boost of a post by an author of whom `wants` nothing.
    pub(crate) fn try_post(
        &self,
        revisions: &impl Revisions,
        in_memory: impl Fn(PostId) -> Option<Post>,
        id: PostId,
        wants: impl FnOnce(UserId) -> bool,
        out: &mut Vec<u8>,
    ) -> bool {
        // What is not in memory may exist all the same.
        let parent = |id| in_memory(id).map(Some);
        let append = |id: PostId, out: &mut Vec<u8>| {
            let key = Key::Post(id.0);
            self.kept(revisions, key, out).or_else(|| {
                // Pictures are read from rows.
                let read = || in_memory(id).filter(|post| post.media.is_empty());
                let post = Read::new(key.content(revisions), read)?;
                let names = |user| self.names(revisions, user);
                self.render_post(revisions, (id, &post), parent, &[], names, out)
            })
        };
        with_boosted(append, id, wants, out)
    }

    /// Appends a post, rendered from the facts if need be; false if there is none, or if it is a boost of a post by an
    /// author of whom `wants` nothing.
    pub(crate) fn post<R: Rows + ?Sized>(
        &self,
        revisions: &impl Revisions,
        facts: Facts<'_, R>,
        id: PostId,
        wants: impl FnOnce(UserId) -> bool,
        out: &mut Vec<u8>,
    ) -> bool {
        let names = |user| self.names_of(revisions, facts, user);
        let parent = |id| Some(facts.post(id));
        let append = |id: PostId, out: &mut Vec<u8>| {
            let key = Key::Post(id.0);
            self.kept(revisions, key, out).or_else(|| {
                let post = Read::new(key.content(revisions), || facts.post(id))?;
                let pictures = pictures_of(facts, &post.item);
                self.render_post(revisions, (id, &post), parent, &pictures, names, out)
            })
        };
        with_boosted(append, id, wants, out)
    }

    fn render_post(
        &self,
        revisions: &impl Revisions,
        (id, post): (PostId, &Read<Post>),
        parent: impl Fn(PostId) -> Option<Option<Post>>,
        pictures: &[(MediaId, Media)],
        names: impl Fn(UserId) -> Option<UserNames>,
        out: &mut Vec<u8>,
    ) -> Option<Appended> {
        let Post { author, boost, reply_to, in_reply_to, .. } = &post.item;
        let boost = boost.as_ref();
        let parts = Parts {
            author: *author,
            other: boost.map(|boost| boost.author).or(*reply_to).unwrap_or(*author),
            post: boost.map(|boost| boost.post).or(*in_reply_to),
            is_boost: boost.is_some(),
        };
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
        self.render(revisions, (Key::Post(id.0), post, parts), write, out)
    }

    /// Appends a story, but for its end, as [`Rendered::try_post`] does. The story is live: a kept
    /// rendering may exist longer than its story.
    pub(crate) fn try_story(
        &self,
        revisions: &impl Revisions,
        in_memory: impl Fn(StoryId) -> Option<PostText>,
        story: StoryRef,
        out: &mut Vec<u8>,
    ) -> bool {
        let kept = self.kept(revisions, Key::story(story.story), out);
        let render = || {
            let text = Read::new(0, || in_memory(story.story))?;
            let names = |user| self.names(revisions, user);
            self.render_story(revisions, (story, &text), names, out)
        };
        kept.or_else(render).is_some()
    }

    /// Appends a story, but for its end, as [`Rendered::post`] does. The story is live.
    pub(crate) fn story<R: Rows + ?Sized>(
        &self,
        revisions: &impl Revisions,
        facts: Facts<'_, R>,
        story: StoryRef,
        out: &mut Vec<u8>,
    ) -> bool {
        let names = |user| self.names_of(revisions, facts, user);
        let kept = self.kept(revisions, Key::story(story.story), out);
        let render = || {
            let text = Read::new(0, || facts.story_text(story.story))?;
            self.render_story(revisions, (story, &text), names, out)
        };
        kept.or_else(render).is_some()
    }

    fn render_story(
        &self,
        revisions: &impl Revisions,
        (story, text): (StoryRef, &Read<PostText>),
        names: impl Fn(UserId) -> Option<UserNames>,
        out: &mut Vec<u8>,
    ) -> Option<Appended> {
        let write = |text: &PostText, out: &mut Vec<u8>| {
            render::story(story, &names(story.author)?, text, out);
            Some(())
        };
        let parts =
            Parts { author: story.author, other: story.author, post: None, is_boost: false };
        self.render(revisions, (Key::story(story.story), text, parts), write, out)
    }

    /// Removes a story that was deleted or expired.
    pub(super) fn forget(&self, story: StoryId) {
        let key = Key::story(story);
        self.shard(key).lock().remove(&key);
    }

    fn kept(&self, revisions: &impl Revisions, key: Key, out: &mut Vec<u8>) -> Option<Appended> {
        let items = self.shard(key).lock();
        let (head, json) = items.get(&key)?.split_first_chunk::<HEAD_BYTES>()?;
        let (parts, numbers, cut) = Parts::decode(head);
        if parts.numbers(revisions, key.content(revisions)) != numbers {
            return None;
        }
        match cut {
            0 => out.extend_from_slice(json),
            cut => {
                let (before, after) = json.split_at_checked(cut)?;
                out.extend_from_slice(before);
                out.extend_from_slice(render::USUAL);
                out.extend_from_slice(after);
            }
        }
        Some(parts.appended())
    }

    /// Renders, appends and keeps something. None if `write` does not know a user in it.
    fn render<T>(
        &self,
        revisions: &impl Revisions,
        (key, read, parts): (Key, &Read<T>, Parts),
        write: impl FnOnce(&T, &mut Vec<u8>) -> Option<()>,
        out: &mut Vec<u8>,
    ) -> Option<Appended> {
        // Before names and the other post are read.
        let numbers = parts.numbers(revisions, read.content);
        let start = out.len();
        if write(&read.item, out).is_none() {
            out.truncate(start);
            return None;
        }
        let json = out.get(start..).unwrap_or_default();
        self.shard(key).lock().insert(key, kept_of(parts, numbers, json));
        Some(parts.appended())
    }

    fn names(&self, revisions: &impl Revisions, user: UserId) -> Option<UserNames> {
        self.names.get(user, revisions.revision(Subject::Profile(user.0.into())))
    }

    /// The names of a user, read from the facts if need be.
    fn names_of<R: Rows + ?Sized>(
        &self,
        revisions: &impl Revisions,
        facts: Facts<'_, R>,
        user: UserId,
    ) -> Option<UserNames> {
        let revision = revisions.revision(Subject::Profile(user.0.into()));
        self.names.get(user, revision).or_else(|| {
            // Deleted users are still mentioned.
            let stored = facts.stored_user(user)?;
            Some(self.names.add(user, revision, &stored.handle, &stored.name))
        })
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

impl<T> Read<T> {
    fn new(content: u32, read: impl FnOnce() -> Option<T>) -> Option<Self> {
        read().map(|item| Self { content, item })
    }
}

impl Parts {
    /// The numbers of changes now, but for that of the content.
    fn numbers(&self, revisions: &impl Revisions, content: u32) -> Numbers {
        let profile = |user: UserId| revisions.revision(Subject::Profile(user.0.into()));
        let author = profile(self.author);
        let other = if self.other == self.author { author } else { profile(self.other) };
        let post = self.post.map_or(0, |post| revisions.revision(Subject::Content(post.0)));
        [author, other, content, post]
    }

    fn appended(&self) -> Appended {
        match self.post.filter(|_| self.is_boost) {
            None => Appended::Whole,
            Some(post) => Appended::Boost { post, author: self.other },
        }
    }

    fn encode(&self, [a, b, c, d]: Numbers, cut: usize) -> [u32; HEAD_WORDS] {
        let post = self.post.map_or(0, |post| post.0);
        let cut = u32::try_from(cut).unwrap_or_default();
        let (low, high) = (post as u32, (post >> 32) as u32);
        [a, b, c, d, self.author.0, self.other.0, low, high, cut, self.is_boost.into()]
    }

    fn decode(head: &[u8; HEAD_BYTES]) -> (Self, Numbers, usize) {
        let words = head.as_chunks::<4>().0;
        let mut words = words.iter().map(|word| u32::from_le_bytes(*word));
        let mut next = || words.next().unwrap_or_default();
        let numbers = [next(), next(), next(), next()];
        let (author, other) = (UserId(next()), UserId(next()));
        let post = u64::from(next()) | u64::from(next()) << 32;
        let cut = next() as usize;
        let post = (post > 0).then_some(PostId(post));
        (Self { author, other, post, is_boost: next() > 0 }, numbers, cut)
    }
}

/// An entry.
fn kept_of(parts: Parts, numbers: Numbers, json: &[u8]) -> Kept {
    let usual = json.windows(render::USUAL.len()).position(|part| part == render::USUAL);
    let cut = usual.unwrap_or_default();
    let rest = if usual.is_some() { cut + render::USUAL.len() } else { 0 };
    let mut kept = Vec::with_capacity(HEAD_BYTES + cut + json.len() - rest);
    kept.extend(parts.encode(numbers, cut).iter().flat_map(|word| word.to_le_bytes()));
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
