//! What was read from the facts about people, kept within a budget until the writer says otherwise.
//!
//! The writer takes a change in once the facts show it. A reader who misses an entry reads the facts
//! and keeps what it read only if nothing changed meanwhile. **Invariant:** an entry says what the
//! facts say, or what they will say when a change that they show already is taken in.

use feed::UserId;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use parking_lot::Mutex;

const SHARDS: usize = 64;
/// What an entry costs in the table besides what it holds.
const ENTRY_BYTES: usize = 80;

/// Something that is kept about a person.
pub(super) trait Held {
    /// Bytes that it takes on the heap, at most.
    fn bytes(&self) -> usize;
}

/// Entries by person, in shards.
pub(super) struct Known<V> {
    shards: Vec<Mutex<Shard<V>>>,
    shard_bytes_max: usize,
}

struct Shard<V> {
    people: HashMap<UserId, V>,
    bytes: usize,
    /// Counts changes, so that a reader notices that what it read may be old.
    changes: u64,
}

impl<V: Held> Known<V> {
    /// Keeps at most `bytes`.
    pub(super) fn new(bytes: usize) -> Self {
        let shard = |_| Mutex::new(Shard { people: HashMap::new(), bytes: 0, changes: 0 });
        Self { shards: (0..SHARDS).map(shard).collect(), shard_bytes_max: bytes / SHARDS }
    }

    fn shard(&self, user: UserId) -> &Mutex<Shard<V>> {
        let Some(shard) = self.shards.get(user.0 as usize % SHARDS) else {
            unreachable!("a remainder is within the shards");
        };
        shard
    }

    /// Has what is known of `user` changed, or forgotten if `take_in` returns false. Writer only, in
    /// order, once the facts show the change.
    pub(super) fn change(&self, user: UserId, take_in: impl FnOnce(&mut V) -> bool) {
        let mut shard = self.shard(user).lock();
        shard.changes += 1;
        let Shard { people, bytes, .. } = &mut *shard;
        let Entry::Occupied(mut entry) = people.entry(user) else { return };
        *bytes -= cost(entry.get());
        if take_in(entry.get_mut()) {
            *bytes += cost(entry.get());
        } else {
            entry.remove();
        }
    }

    /// Looks at what is known of `user`.
    pub(super) fn look<T>(&self, user: UserId, look: impl FnOnce(&V) -> T) -> Option<T> {
        self.shard(user).lock().people.get(&user).map(look)
    }

    /// As [`Known::look`]; what is not known is read from the facts first.
    pub(super) fn look_or_read<T>(
        &self,
        user: UserId,
        read: impl FnOnce() -> V,
        look: impl FnOnce(&V) -> T,
    ) -> T {
        let changes = {
            let shard = self.shard(user).lock();
            if let Some(known) = shard.people.get(&user) {
                return look(known);
            }
            shard.changes
        };
        let entry = read();
        let found = look(&entry);
        let mut shard = self.shard(user).lock();
        if shard.changes == changes {
            shard.insert(user, entry, self.shard_bytes_max);
        }
        found
    }

    /// Estimated bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().bytes).sum()
    }
}

impl<V: Held> Shard<V> {
    /// Makes room first: anybody is as good a victim as another, since reading them again is cheap.
    fn insert(&mut self, user: UserId, entry: V, bytes_max: usize) {
        let needed = cost(&entry);
        while self.bytes + needed > bytes_max {
            let Some(victim) = self.people.keys().next().copied() else { return };
            self.remove(victim);
        }
        self.remove(user);
        self.people.insert(user, entry);
        self.bytes += needed;
    }

    fn remove(&mut self, user: UserId) {
        if let Some(gone) = self.people.remove(&user) {
            self.bytes -= cost(&gone);
        }
    }
}

fn cost<V: Held>(entry: &V) -> usize {
    ENTRY_BYTES + entry.bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Held for u32 {
        fn bytes(&self) -> usize {
            20
        }
    }

    const ADA: UserId = UserId(7);

    #[test]
    fn what_was_read_while_it_changed_is_used_once_and_not_kept() {
        let known = Known::new(1_000_000);
        let read_meanwhile = || {
            known.change(ADA, |_| true);
            1
        };
        assert_eq!(known.look_or_read(ADA, read_meanwhile, |entry| *entry), 1);
        assert_eq!(known.look(ADA, |entry| *entry), None);
        assert_eq!(known.look_or_read(ADA, || 2, |entry| *entry), 2);
        assert_eq!(known.look_or_read(ADA, || 3, |entry| *entry), 2, "now it is known");
    }

    #[test]
    fn changes_are_taken_in_or_the_entry_is_forgotten() {
        let known = Known::new(1_000_000);
        known.look_or_read(ADA, || 1, |_| ());
        known.change(ADA, |entry| {
            *entry = 5;
            true
        });
        assert_eq!(known.look(ADA, |entry| *entry), Some(5));
        known.change(ADA, |_| false);
        assert_eq!(known.look(ADA, |entry| *entry), None);
        assert_eq!(known.bytes(), 0);
    }

    #[test]
    fn the_budget_holds_whoever_is_read() {
        let known = Known::new(SHARDS * 350);
        for user in (0..10_000).map(UserId) {
            assert_eq!(known.look_or_read(user, || user.0, |entry| *entry), user.0);
        }
        assert_eq!(known.bytes(), SHARDS * 300, "three of 100 bytes a shard");
        let none = Known::new(SHARDS * 99);
        assert_eq!(none.look_or_read(ADA, || 1, |entry| *entry), 1);
        assert_eq!(none.bytes(), 0, "an entry that fits in no shard is not kept");
    }
}
