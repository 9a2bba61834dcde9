//! Cache of everything that is rendered for clients: posts and stories of `/v1`, and the entities of the Mastodon API.
//!
//! An entity is one allocation: the revisions of the subjects that it was made of ([`Subject`]), read before their
//! rows, and its bytes. It is current while these revisions have not changed. The store raises a revision after readers
//! see a change and before the change is acknowledged, so a current entity never lacks an acknowledged change.
//!
//! Each form of a post is a separate entity, because its subjects differ: a favourite changes the status of the
//! Mastodon API, which counts it, but no post of `/v1`.
//!
//! Deleting a user changes counts at once, although the user's rows are removed one by one. So an entity with counts
//! also has the value of [`rows::Totals::hidings`] from when it was made. If the value has changed, the reader first
//! reads a few rows to check whether the users that are being removed concern the entity.

use std::any::Any;
use std::sync::atomic::Ordering;

use feed::{PostId, StoryId, UserId};
use quick_cache::{DefaultHashBuilder, Lifecycle, OptionsBuilder, Weighter, unsync};
use rows::Subject;
use smallvec::SmallVec;
use store::Revision;
use triomphe::ThinArc;

use super::sync::{AtomicU64, Mutex};

/// Size of an entry of the table in addition to the entity, in bytes.
const ENTRY_BYTES: usize = 80;
/// Size of a typical entry, for sizing the table, in bytes.
const TYPICAL_BYTES: usize = 512;
/// Size of a revision in an entity, in bytes.
const REVISION_BYTES: usize = 6;
/// Maximum number of shards of the table. Each has a lock that is held while a post is copied out, so that a page of
/// posts needs no reference counts.
const SHARDS_MAX: usize = 64;
/// Minimum size of a shard in bytes: a few of the largest entities.
const SHARD_BYTES_MIN: usize = 64 << 10;

/// Rendered entities within their budget.
pub(crate) struct Entities {
    shards: Vec<Mutex<Shard>>,
    shard_bytes: u64,
}

type Shard = unsync::Cache<EntityKey, Entity, Bytes, DefaultHashBuilder, Evicted>;

/// Kind of an entity. Each kind has its own budget, so that neither kind displaces the other. Users are fewer and read
/// more often, so they stay in the processor's caches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Names and accounts.
    Users,
    /// Posts, statuses and stories.
    Posts,
}

/// Subject and form of an entity. Posts and stories share one kind of id: a request for a post must never get a story,
/// which only friends may see, and only while it is live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntityKey {
    /// Post of `/v1`; a boost without the boosted post.
    Post(PostId),
    /// Story of `/v1`.
    Story(StoryId),
    /// Handles and names of a block of users.
    Names(u32),
    /// Part of a Mastodon `Status` that is the same for all readers.
    Status(PostId),
    /// Mastodon `Account`.
    Account(UserId),
    /// Part of a Mastodon `Account` without counts.
    Profile(UserId),
    /// Record that no filter or muted thread marks posts for this reader.
    Unmarked(UserId),
}

/// Rendered bytes with the revisions of their subjects.
#[derive(Clone)]
pub struct Entity(ThinArc<Head, u8>);

/// Header of an entity, before its revisions and bytes.
struct Head {
    revisions: u8,
    /// Index in the bytes where [`USUAL`](super::render::USUAL) is left out; 0 if it is not.
    cut: u32,
    /// Size of `parts` in bytes.
    parts_bytes: u32,
    /// Greatest value of [`rows::Totals::hidings`] at which the entity is known to be correct.
    hidings: AtomicU64,
    /// Data about the entity that readers need in addition to its bytes.
    parts: Option<Box<dyn Any + Send + Sync>>,
}

/// Revisions of the subjects of an entity, each read before its rows, and the value of [`rows::Totals::hidings`] at
/// that time.
#[derive(Clone, Debug, Default)]
pub struct MadeOf {
    revisions: SmallVec<[Revision; 6]>,
    hidings: u64,
}

/// Source of revisions.
pub(crate) trait Revisions {
    /// Returns the revision of `subject`.
    fn revision(&self, subject: Subject) -> Revision;

    /// Whether the revision is the present one.
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

/// Collects evicted entities, so that they are dropped after the lock is released.
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

    /// Adds the revisions of `other`.
    #[must_use]
    pub fn with(self, other: &Self) -> Self {
        self.and(other.revisions.iter().copied())
    }
}

impl Entity {
    /// Creates an entity of these bytes.
    #[must_use]
    pub fn new(made_of: &MadeOf, bytes: &[u8]) -> Self {
        Self::make(made_of, [bytes, &[]], (None, 0), 0)
    }

    /// Creates an entity with `parts`, which take `parts_bytes` in memory.
    #[must_use]
    pub fn with_parts<T: Any + Send + Sync>(
        made_of: &MadeOf,
        bytes: &[u8],
        (parts, parts_bytes): (T, usize),
    ) -> Self {
        Self::make(made_of, [bytes, &[]], (Some(Box::new(parts)), parts_bytes), 0)
    }

    /// Creates a post of `/v1`, leaving out `usual` if its bytes contain that.
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

    /// Returns the bytes: JSON or a part of it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.split().1
    }

    /// Returns the parts if they are of type `T`.
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

    /// Returns the revisions and the value of [`rows::Totals::hidings`] of this entity.
    #[must_use]
    pub fn made_of(&self) -> MadeOf {
        MadeOf::after(self.head().hidings.load(Ordering::Acquire)).and(self.revisions())
    }

    pub(super) fn is_current(&self, revisions: &impl Revisions) -> bool {
        self.revisions().all(|revision| revisions.is_current(revision))
    }

    /// Whether the entity is correct at this value of [`rows::Totals::hidings`]. If that is unknown, `is_unconcerned`
    /// decides whether the hidden users leave the entity unchanged. The atomic needs no lock: the rows that the number
    /// describes were read before it was stored.
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

    /// Appends the bytes, inserting `usual` where it was left out.
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
    /// Creates a cache of at most `bytes`.
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

    /// Returns the shards of a kind. A quarter is for users; a table with one shard uses it for both.
    fn shards_of(&self, kind: Kind) -> &[Mutex<Shard>] {
        let (users, posts) = self.shards.split_at(self.shards.len() / 4);
        if kind == Kind::Users && !users.is_empty() { users } else { posts }
    }

    /// Returns the result of `read` for an entity. Other readers of its shard wait meanwhile.
    pub(super) fn read<T>(
        &self,
        key: EntityKey,
        read: impl FnOnce(&Entity) -> Option<T>,
    ) -> Option<T> {
        read(self.shard(key).lock().get(&key)?)
    }

    /// Returns an entity if it is current.
    pub(crate) fn get(&self, key: EntityKey, revisions: &impl Revisions) -> Option<Entity> {
        // Revisions are compared without the lock.
        self.read(key, |entity| Some(entity.clone())).filter(|entity| entity.is_current(revisions))
    }

    pub(crate) fn keep(&self, key: EntityKey, entity: Entity) {
        let evicted = self.shard(key).lock().insert_with_lifecycle(key, entity);
        drop(evicted);
    }

    /// Removes a story that was deleted or has expired.
    pub(super) fn forget(&self, story: StoryId) {
        let key = EntityKey::story(story);
        self.shard(key).lock().remove(&key);
    }

    /// Whether entities of this kind use less than this fraction of their budget.
    pub(super) fn has_room(&self, kind: Kind, part: f64) -> bool {
        let shards = self.shards_of(kind);
        let used: u64 = shards.iter().map(|shard| shard.lock().weight()).sum();
        let budget = self.shard_bytes * shards.len() as u64;
        (used as f64) < budget as f64 * part
    }

    /// Returns the size of all entities in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().weight()).sum()
    }
}

impl EntityKey {
    pub(super) fn story(id: StoryId) -> Self {
        if rows::has_bug("show-story-as-post") { Self::Post(PostId(id.0)) } else { Self::Story(id) }
    }
}
