//! Cache of entries about users. Entries are read from the facts, and kept within a budget until the writer changes
//! them.
//!
//! The writer applies a change after the facts show it. A reader that finds no entry reads the facts, and caches the
//! result only if nothing changed meanwhile. **Invariant:** an entry equals the facts, or will equal them once the
//! writer has applied a change that the facts already show. If that change is undone, the entry is dropped.
//!
//! A read takes no lock, because a read of a home timeline reads many entries, and each lock would wait for an access
//! to memory. So entries are immutable: a new entry replaces the old one. A timeline has its own lock for the posts
//! that reads add to it, and is notified when it is removed.
//!
//! Eviction is CLOCK with counters: a read raises the heat of an entry, the hand lowers it as it passes and evicts cold
//! entries. The hand passes at most [`HAND_STEPS_MAX`] entries for a new one; if all of them are hot, the new one is
//! not cached. So a scan of users who are read once does not evict those who are read often, and the work under the
//! lock is bounded.

#[cfg(all(test, feature = "loom"))]
mod races;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use feed::UserId;
use hashbrown::DefaultHashBuilder;
use papaya::{HashMapRef, LocalGuard};

use super::sync::Mutex;

/// Number of shards of the table; one lock per shard guards additions and removals.
const SHARDS: usize = if cfg!(feature = "loom") { 2 } else { 64 };
/// Size of an entry in the table and the ring in addition to the entry itself, in bytes.
const ENTRY_BYTES: usize = 40;
/// Number of counters of changes per shard. A change of a user also invalidates the running reads of users who share
/// the counter.
const COUNTERS: usize = 32;
/// Maximum heat of an entry: further reads are not counted.
const HEAT_MAX: u8 = 3;
/// Maximum number of entries that the hand passes for one new entry: about 3 µs.
const HAND_STEPS_MAX: usize = 64;

/// Entry of the cache.
pub(super) trait Cached {
    /// Returns the maximum size on the heap in bytes.
    fn bytes(&self) -> usize;

    /// Called before the entry is removed; threads that found the entry earlier may still read it.
    fn removed(&self) {}
}

/// Cache of entries by user.
pub(super) struct UserCache<V> {
    users: Table<V>,
    shards: Vec<Mutex<Shard>>,
    shard_bytes_max: usize,
}

type Table<V> = papaya::HashMap<UserId, CacheEntry<V>, DefaultHashBuilder>;
type Pinned<'a, V> = HashMapRef<'a, UserId, CacheEntry<V>, DefaultHashBuilder, LocalGuard<'a>>;

struct CacheEntry<V> {
    /// Number of reads since the hand last passed, up to [`HEAT_MAX`]. Concurrent reads may lose a count.
    heat: AtomicU8,
    /// Index of the entry in the ring of its shard, guarded by the shard's lock.
    place: AtomicU32,
    value: V,
}

/// Read access to entries, which stay in memory while it exists.
pub(super) struct CacheReader<'a, V>(Pinned<'a, V>);

impl<V> CacheReader<'_, V> {
    /// Returns the entry of `user`.
    pub(super) fn get(&self, user: &UserId) -> Option<&V> {
        let entry = self.0.get(user)?;
        let heat = entry.heat.load(Ordering::Relaxed);
        // Hot entries are only read, so that cores do not compete for the cache line.
        if heat < HEAT_MAX {
            entry.heat.store(heat + 1, Ordering::Relaxed);
        }
        Some(&entry.value)
    }
}

#[derive(Default)]
struct Shard {
    /// Users whose entries are in the table.
    ring: Vec<UserId>,
    hand: usize,
    bytes: usize,
    /// Number of entries that were evicted.
    evictions: u64,
    /// Counters of changes, each for several users. A reader compares them to detect that its result may be old.
    changes: [u64; COUNTERS],
}

impl<V: Cached> UserCache<V> {
    /// Creates an empty cache of at most `bytes`.
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            users: papaya::HashMap::default(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            shard_bytes_max: bytes / SHARDS,
        }
    }

    fn shard(&self, user: UserId) -> &Mutex<Shard> {
        let Some(shard) = self.shards.get(user.0 as usize % SHARDS) else {
            unreachable!("a remainder is within the shards");
        };
        shard
    }

    /// Replaces an entry by the result of `apply`, or removes it. Called by the writer only, in order, after the facts
    /// show the change.
    pub(super) fn change(&self, user: UserId, apply: impl FnOnce(&V) -> Option<V>) {
        let mut shard = self.shard(user).lock();
        *shard.changes_of(user) += 1;
        let users = self.users.pin();
        let Some(old) = users.get(&user) else { return };
        let Some(value) = apply(&old.value) else { return shard.remove(&users, user) };
        let heat = old.heat.load(Ordering::Relaxed);
        let (before, after) = (cost(&old.value), cost(&value));
        if shard.bytes - before + after <= self.shard_bytes_max {
            shard.replace(&users, user, old, value);
        } else {
            shard.remove(&users, user);
            if shard.make_room(&users, after, self.shard_bytes_max) {
                shard.add(&users, user, value, heat);
            }
        }
    }

    /// Removes an entry for which `is_useless` is true.
    pub(super) fn evict(&self, user: UserId, is_useless: impl FnOnce(&V) -> bool) {
        let mut shard = self.shard(user).lock();
        let users = self.users.pin();
        if users.get(&user).is_some_and(|entry| is_useless(&entry.value)) {
            shard.remove(&users, user);
        }
    }

    /// Removes all entries. Called by the writer only, in the same order as [`UserCache::change`].
    pub(super) fn clear(&self) {
        let users = self.users.pin();
        for shard in &self.shards {
            let mut shard = shard.lock();
            shard.changes.iter_mut().for_each(|changes| *changes += 1);
            for user in shard.ring.clone() {
                shard.remove(&users, user);
            }
        }
    }

    /// Returns read access to the entries.
    pub(super) fn reader(&self) -> CacheReader<'_, V> {
        CacheReader(self.users.pin())
    }

    /// Returns the result of `look` for the entry of `user`, which is read from the facts if it is not in memory, and
    /// whether the user did not change from before that read until after `look`.
    pub(super) fn get_or_read<T>(
        &self,
        user: UserId,
        read: impl FnOnce() -> V,
        look: impl FnOnce(&V) -> T,
    ) -> (T, bool) {
        if let Some(value) = self.reader().get(&user) {
            return (look(value), true);
        }
        let changes = *self.shard(user).lock().changes_of(user);
        let value = read();
        let found = look(&value);
        let mut shard = self.shard(user).lock();
        let is_current = *shard.changes_of(user) == changes;
        if is_current {
            let users = self.users.pin();
            if let Some(old) = users.get(&user) {
                // Another reader has added the same entry meanwhile.
                old.heat.store(HEAT_MAX, Ordering::Relaxed);
            } else if shard.make_room(&users, cost(&value), self.shard_bytes_max) {
                shard.add(&users, user, value, 0);
            }
        }
        (found, is_current)
    }

    /// Returns the estimated size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().bytes).sum()
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().ring.len()).sum()
    }

    /// Returns the number of evicted entries since the start.
    pub(super) fn evictions(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().evictions).sum()
    }
}

impl Shard {
    /// Returns the counter of the changes of `user`.
    fn changes_of(&mut self, user: UserId) -> &mut u64 {
        let Some(changes) = self.changes.get_mut(user.0 as usize / SHARDS % COUNTERS) else {
            unreachable!("a remainder is within the counters");
        };
        changes
    }

    /// Evicts cold entries until there is room; returns false if the hand has passed too many hot ones.
    fn make_room<V: Cached>(
        &mut self,
        users: &Pinned<'_, V>,
        bytes: usize,
        bytes_max: usize,
    ) -> bool {
        if bytes > bytes_max {
            return false;
        }
        let mut steps = 0;
        while self.bytes + bytes > bytes_max {
            if steps == HAND_STEPS_MAX {
                return false;
            }
            steps += 1;
            if self.hand >= self.ring.len() {
                self.hand = 0;
            }
            let Some(user) = self.ring.get(self.hand).copied() else { return false };
            let Some(entry) = users.get(&user) else {
                unreachable!("every user in the ring has an entry")
            };
            match entry.heat.load(Ordering::Relaxed) {
                // The last entry of the ring takes the free index and is next.
                0 => {
                    self.remove(users, user);
                    self.evictions += 1;
                }
                heat => {
                    entry.heat.store(heat - 1, Ordering::Relaxed);
                    self.hand += 1;
                }
            }
        }
        true
    }

    fn replace<V: Cached>(
        &mut self,
        users: &Pinned<'_, V>,
        user: UserId,
        old: &CacheEntry<V>,
        value: V,
    ) {
        self.bytes = self.bytes - cost(&old.value) + cost(&value);
        let heat = AtomicU8::new(old.heat.load(Ordering::Relaxed));
        let place = AtomicU32::new(old.place.load(Ordering::Relaxed));
        users.insert(user, CacheEntry { heat, place, value });
    }

    fn add<V: Cached>(&mut self, users: &Pinned<'_, V>, user: UserId, value: V, heat: u8) {
        let Ok(place) = u32::try_from(self.ring.len()) else {
            unreachable!("no more entries than users")
        };
        self.bytes += cost(&value);
        self.ring.push(user);
        users.insert(user, CacheEntry { heat: heat.into(), place: place.into(), value });
    }

    fn remove<V: Cached>(&mut self, users: &Pinned<'_, V>, user: UserId) {
        let Some(old) = users.get(&user) else { return };
        old.value.removed();
        users.remove(&user);
        self.bytes -= cost(&old.value);
        let place = old.place.load(Ordering::Relaxed);
        self.ring.swap_remove(place as usize);
        if let Some(moved) = self.ring.get(place as usize).and_then(|moved| users.get(moved)) {
            moved.place.store(place, Ordering::Relaxed);
        }
    }
}

fn cost<V: Cached>(value: &V) -> usize {
    ENTRY_BYTES + size_of::<CacheEntry<V>>() + value.bytes()
}
