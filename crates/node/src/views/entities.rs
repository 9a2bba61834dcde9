//! Everything that was rendered for clients, in one table: posts and stories of `/v1`, and what the Mastodon API makes.
//!
//! An entity is one allocation: the revisions of what it was made of ([`Subject`]), and its bytes. It is current while these
//! revisions are those from before it was read. The store raises a revision after readers see a change and before the change is
//! acknowledged. So an entity that is current never shows a state from before an acknowledged command.
//!
//! Forms of the same post are entities of their own, because they are made of different things: a favourite changes a status
//! of the Mastodon API, which counts it, and no post of `/v1`.
//!
//! When a user is deleted, counts leave out at once what is removed row by row. So an entity with counts also has how often
//! users were hidden until it was made; if that has changed, its reader checks first whether the users who are being removed
//! concern it, which few rows say.

use std::any::Any;
use std::sync::atomic::Ordering;

use feed::{PostId, StoryId, UserId};
use quick_cache::{DefaultHashBuilder, Lifecycle, OptionsBuilder, Weighter, unsync};
use rows::Subject;
use smallvec::SmallVec;
use store::Revision;
use triomphe::ThinArc;

use super::sync::{AtomicU64, Mutex};

/// Bytes of an entry of the table in addition to the entity.
const ENTRY_BYTES: usize = 80;
/// Bytes of a typical entry, for sizing the table.
const TYPICAL_BYTES: usize = 512;
/// Bytes of a revision in an entity.
const REVISION_BYTES: usize = 6;
/// Most parts of the table, each with a lock that is held while a post is copied out: a page of posts pays
/// for no reference counts.
const SHARDS_MAX: usize = 64;
/// Least bytes of a part: a few of the largest entities.
const SHARD_BYTES_MIN: usize = 64 << 10;

/// The entities within their budget.
pub(crate) struct Entities {
    shards: Vec<Mutex<Shard>>,
    shard_bytes: u64,
}

type Shard = unsync::Cache<EntityKey, Entity, Bytes, DefaultHashBuilder, Evicted>;

/// Whom an entity is of. Each kind has a budget of its own, so that neither pushes out the other; and users, who are fewer and
/// read more often, stay in the caches of a processor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Names and accounts.
    Users,
    /// Posts, statuses and stories.
    Posts,
}

/// The thing that an entity shows, and its form. Posts and stories have ids of the same kind: who asks for a post must never
/// get a story, which only friends may see, and only while it is live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntityKey {
    /// A post as `/v1` shows it; a boost without the boosted post.
    Post(PostId),
    /// A story as `/v1` shows it.
    Story(StoryId),
    /// Handles and names of a block of users.
    Names(u32),
    /// The part of a Mastodon `Status` that is the same for all readers.
    Status(PostId),
    /// A Mastodon `Account`.
    Account(UserId),
    /// The part of a Mastodon `Account` without counts.
    Profile(UserId),
    /// The knowledge that nothing marks posts for this reader.
    Unmarked(UserId),
}

/// A rendered thing.
#[derive(Clone)]
pub struct Entity(ThinArc<Head, u8>);

/// The beginning of an entity. Its revisions and its bytes follow.
struct Head {
    revisions: u8,
    /// Place in the bytes where text is missing that most posts have; 0 if none is.
    cut: u32,
    /// Bytes of `parts`.
    parts_bytes: u32,
    /// The number of times that users were hidden, up to which the entity is known to be right.
    hidings: AtomicU64,
    /// What readers need to know of the entity apart from its bytes.
    parts: Option<Box<dyn Any + Send + Sync>>,
}

/// The revisions of what an entity is made of, each read before its rows, and how often users were hidden until then.
#[derive(Clone, Debug, Default)]
pub struct MadeOf {
    revisions: SmallVec<[Revision; 6]>,
    hidings: u64,
}

/// Source of revisions.
pub(crate) trait Revisions {
    /// The revision of what `subject` says.
    fn revision(&self, subject: Subject) -> Revision;

    /// Whether a revision is the present one.
    fn is_current(&self, revision: Revision) -> bool;
}

impl Revisions for store::Store {
    fn revision(&self, subject: Subject) -> Revision {
        Self::revision(self, subject)
    }

    fn is_current(&self, revision: Revision) -> bool {
        Self::is_current(self, revision)
    }
}

impl Revisions for store::RevisionsCopy {
    fn revision(&self, subject: Subject) -> Revision {
        Self::revision(self, subject)
    }

    fn is_current(&self, revision: Revision) -> bool {
        Self::is_current(self, revision)
    }
}

#[derive(Clone)]
struct Bytes;

/// Hands out what is evicted, to be dropped without the lock.
#[derive(Clone, Default)]
struct Evicted;

impl Lifecycle<EntityKey, Entity> for Evicted {
    type RequestState = SmallVec<[Entity; 2]>;

    fn begin_request(&self) -> Self::RequestState {
        SmallVec::new()
    }

    fn on_evict(&self, evicted: &mut Self::RequestState, _: EntityKey, entity: Entity) {
        evicted.push(entity);
    }
}

impl Weighter<EntityKey, Entity> for Bytes {
    fn weight(&self, _: &EntityKey, Entity(entity): &Entity) -> u64 {
        let bytes = size_of::<Head>() + 2 * size_of::<usize>() + entity.slice.len() + ENTRY_BYTES;
        bytes as u64 + u64::from(entity.header.header.parts_bytes)
    }
}

impl MadeOf {
    pub(crate) fn after(hidings: u64) -> Self {
        Self { hidings, ..Self::default() }
    }

    /// Adds revisions.
    #[must_use]
    pub(crate) fn and(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.revisions.extend(revisions);
        self
    }

    /// What it and another thing are made of together.
    #[must_use]
    pub fn with(self, other: &Self) -> Self {
        self.and(other.revisions.iter().copied())
    }
}

impl Entity {
    /// An entity with these bytes.
    #[must_use]
    pub fn new(made_of: &MadeOf, bytes: &[u8]) -> Self {
        Self::make(made_of, [bytes, &[]], (None, 0), 0)
    }

    /// An entity with `parts`, which take `parts_bytes` in memory.
    #[must_use]
    pub fn with_parts<T: Any + Send + Sync>(
        made_of: &MadeOf,
        bytes: &[u8],
        (parts, parts_bytes): (T, usize),
    ) -> Self {
        Self::make(made_of, [bytes, &[]], (Some(Box::new(parts)), parts_bytes), 0)
    }

    /// A post of `/v1`, without `usual` if its bytes have that.
    pub(super) fn without<T: Any + Send + Sync>(
        usual: &[u8],
        made_of: &MadeOf,
        bytes: &[u8],
        parts: Option<T>,
    ) -> Self {
        let cut = bytes.windows(usual.len()).position(|part| part == usual);
        let (before, rest) = bytes.split_at(cut.unwrap_or(bytes.len()));
        let after = rest.strip_prefix(usual).unwrap_or_default();
        let parts = parts.map(|parts| Box::new(parts) as Box<dyn Any + Send + Sync>);
        Self::make(made_of, [before, after], (parts, size_of::<T>()), cut.unwrap_or_default())
    }

    fn make(
        made_of: &MadeOf,
        [before, after]: [&[u8]; 2],
        (parts, parts_bytes): (Option<Box<dyn Any + Send + Sync>>, usize),
        cut: usize,
    ) -> Self {
        let MadeOf { revisions, hidings } = made_of;
        let Ok(count) = u8::try_from(revisions.len()) else {
            unreachable!("an entity is made of few things");
        };
        let size = revisions.len() * REVISION_BYTES + before.len() + after.len();
        let mut bytes = Vec::with_capacity(size);
        for Revision { place, count } in revisions {
            bytes.extend_from_slice(&place.to_le_bytes());
            bytes.extend_from_slice(&count.to_le_bytes());
        }
        bytes.extend_from_slice(before);
        bytes.extend_from_slice(after);
        let head = Head {
            revisions: count,
            cut: u32::try_from(cut).unwrap_or_default(),
            parts_bytes: u32::try_from(parts_bytes).unwrap_or(u32::MAX),
            hidings: AtomicU64::new(*hidings),
            parts,
        };
        Self(ThinArc::from_header_and_slice(head, &bytes))
    }

    fn head(&self) -> &Head {
        &self.0.header.header
    }

    fn split(&self) -> (&[u8], &[u8]) {
        let length = usize::from(self.head().revisions) * REVISION_BYTES;
        self.0.slice.split_at_checked(length).unwrap_or_default()
    }

    /// The bytes, which are JSON or a part of it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.split().1
    }

    /// The parts, if they are of this type.
    #[must_use]
    pub fn parts<T: Any>(&self) -> Option<&T> {
        self.head().parts.as_ref()?.downcast_ref()
    }

    fn revisions(&self) -> impl Iterator<Item = Revision> {
        let revisions = self.split().0.as_chunks::<REVISION_BYTES>().0;
        revisions.iter().map(|[a, b, count @ ..]| Revision {
            place: u16::from_le_bytes([*a, *b]),
            count: u32::from_le_bytes(*count),
        })
    }

    /// What it was made of.
    #[must_use]
    pub fn made_of(&self) -> MadeOf {
        MadeOf::after(self.head().hidings.load(Ordering::Acquire)).and(self.revisions())
    }

    pub(super) fn is_current(&self, revisions: &impl Revisions) -> bool {
        self.revisions().all(|revision| revisions.is_current(revision))
    }

    /// Whether it is right after users were hidden so many times: if that is not known, `is_unconcerned` says whether none
    /// of them concerns it. The number alone matters: what it says of was read before it was stored.
    pub(crate) fn is_right_after(
        &self,
        hidings: u64,
        is_unconcerned: impl FnOnce(&Self) -> bool,
    ) -> bool {
        let known = &self.head().hidings;
        if known.load(Ordering::Acquire) == hidings {
            return true;
        }
        let is_right = is_unconcerned(self);
        if is_right {
            known.fetch_max(hidings, Ordering::AcqRel);
        }
        is_right
    }

    /// Appends the bytes, with `usual` where it is missing.
    pub(super) fn append(&self, usual: &[u8], out: &mut Vec<u8>) {
        let bytes = self.bytes();
        match self.head().cut {
            0 => out.extend_from_slice(bytes),
            cut => {
                let (before, after) = bytes.split_at_checked(cut as usize).unwrap_or_default();
                out.extend_from_slice(before);
                out.extend_from_slice(usual);
                out.extend_from_slice(after);
            }
        }
    }
}

impl Entities {
    /// Keeps at most `bytes`.
    pub(crate) fn new(bytes: usize) -> Self {
        let shards = (bytes / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        let bytes = bytes / shards;
        let shard = |_| {
            let options = OptionsBuilder::new()
                .estimated_items_capacity((bytes / TYPICAL_BYTES).max(16))
                .weight_capacity(bytes as u64)
                .build();
            let Ok(options) = options else { unreachable!("capacities are set") };
            Mutex::new(Shard::with_options(options, Bytes, Default::default(), Evicted))
        };
        Self { shards: (0..shards).map(shard).collect(), shard_bytes: bytes as u64 }
    }

    fn shard(&self, key: EntityKey) -> &Mutex<Shard> {
        let (id, kind) = match key {
            EntityKey::Post(PostId(id))
            | EntityKey::Status(PostId(id))
            | EntityKey::Story(StoryId(id)) => (id, Kind::Posts),
            EntityKey::Names(id)
            | EntityKey::Account(UserId(id))
            | EntityKey::Profile(UserId(id))
            | EntityKey::Unmarked(UserId(id)) => (id.into(), Kind::Users),
        };
        let spread = (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        let shards = self.shards_of(kind);
        let Some(shard) = shards.get(spread % shards.len()) else {
            unreachable!("a remainder is within the shards");
        };
        shard
    }

    /// A quarter is of users. A small table has one part for both.
    fn shards_of(&self, kind: Kind) -> &[Mutex<Shard>] {
        let (users, posts) = self.shards.split_at(self.shards.len() / 4);
        if kind == Kind::Users && !users.is_empty() { users } else { posts }
    }

    /// What `read` finds in an entity. Other readers of the same part of the table wait meanwhile.
    pub(super) fn read<T>(
        &self,
        key: EntityKey,
        read: impl FnOnce(&Entity) -> Option<T>,
    ) -> Option<T> {
        read(self.shard(key).lock().get(&key)?)
    }

    /// An entity that is current.
    pub(crate) fn get(&self, key: EntityKey, revisions: &impl Revisions) -> Option<Entity> {
        // Compared without the lock.
        self.read(key, |entity| Some(entity.clone())).filter(|entity| entity.is_current(revisions))
    }

    pub(crate) fn keep(&self, key: EntityKey, entity: Entity) {
        let evicted = self.shard(key).lock().insert_with_lifecycle(key, entity);
        drop(evicted);
    }

    /// Removes a story that was deleted or expired.
    pub(super) fn forget(&self, story: StoryId) {
        let key = EntityKey::story(story);
        self.shard(key).lock().remove(&key);
    }

    /// Whether what is of users, or what is of posts, uses less than this part of its budget.
    pub(super) fn has_room(&self, kind: Kind, part: f64) -> bool {
        let shards = self.shards_of(kind);
        let used: u64 = shards.iter().map(|shard| shard.lock().weight()).sum();
        let budget = self.shard_bytes * shards.len() as u64;
        (used as f64) < budget as f64 * part
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().weight()).sum()
    }
}

impl EntityKey {
    pub(super) fn story(id: StoryId) -> Self {
        if rows::has_bug("show-story-as-post") { Self::Post(PostId(id.0)) } else { Self::Story(id) }
    }
}
