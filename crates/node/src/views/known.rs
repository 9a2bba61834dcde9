//! What was read from the facts about people, kept within a budget until the writer says otherwise.
//!
//! The writer takes a change in once the facts show it. A reader who misses an entry reads the facts
//! and keeps what it read only if nothing changed meanwhile. **Invariant:** an entry says what the
//! facts say, or what they will say when a change that they show already is taken in.
//!
//! Looking takes no lock, since a home looks at many entries and each lock would wait for the last
//! one's memory. So entries do not change: a new one takes the place of the old.

use feed::UserId;
use hashbrown::{DefaultHashBuilder, HashSet};
use papaya::{HashMapRef, LocalGuard};
use parking_lot::Mutex;

/// Parts of the table, each of whose entries are put in and taken out under one lock.
const SHARDS: usize = 64;
/// What an entry costs in the table besides what it holds.
const ENTRY_BYTES: usize = 40;

/// Something that is kept about a person.
pub(super) trait Held {
    /// Bytes that it takes on the heap, at most.
    fn bytes(&self) -> usize;
}

/// Entries by person.
pub(super) struct Known<V> {
    people: papaya::HashMap<UserId, V, DefaultHashBuilder>,
    shards: Vec<Mutex<Shard>>,
    shard_bytes_max: usize,
}

/// A look at entries, which stay where they are as long as it lasts.
pub(super) type Look<'a, V> = HashMapRef<'a, UserId, V, DefaultHashBuilder, LocalGuard<'a>>;

#[derive(Default)]
struct Shard {
    /// Whose entries are there.
    people: HashSet<UserId>,
    bytes: usize,
    /// Counts changes, so that a reader notices that what it read may be old.
    changes: u64,
}

impl<V: Held> Known<V> {
    /// Keeps at most `bytes`.
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            people: papaya::HashMap::default(),
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

    /// Puts what `take_in` makes of an entry in its place, or forgets it. Writer only, in order, once
    /// the facts show the change.
    pub(super) fn change(&self, user: UserId, take_in: impl FnOnce(&V) -> Option<V>) {
        let mut shard = self.shard(user).lock();
        shard.changes += 1;
        if !shard.people.contains(&user) {
            return;
        }
        let people = self.people.pin();
        match people.get(&user).and_then(take_in) {
            Some(entry) => shard.put(&people, user, entry),
            None => shard.remove(&people, user),
        }
    }

    /// Looks at what is known.
    pub(super) fn look(&self) -> Look<'_, V> {
        self.people.pin()
    }

    /// What `look` finds in the entry of `user`, which is read from the facts if it is not there.
    pub(super) fn look_or_read<T>(
        &self,
        user: UserId,
        read: impl FnOnce() -> V,
        look: impl FnOnce(&V) -> T,
    ) -> T {
        if let Some(known) = self.look().get(&user) {
            return look(known);
        }
        let changes = self.shard(user).lock().changes;
        let entry = read();
        let found = look(&entry);
        let mut shard = self.shard(user).lock();
        if shard.changes == changes {
            let people = self.people.pin();
            if shard.make_room(&people, cost(&entry), self.shard_bytes_max) {
                shard.put(&people, user, entry);
            }
        }
        found
    }

    /// Estimated bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().bytes).sum()
    }
}

impl Shard {
    /// Anybody is as good a victim as another, since reading them again is cheap.
    fn make_room<V: Held>(&mut self, people: &Look<'_, V>, bytes: usize, bytes_max: usize) -> bool {
        while self.bytes + bytes > bytes_max {
            let Some(victim) = self.people.iter().next().copied() else { return false };
            self.remove(people, victim);
        }
        true
    }

    fn put<V: Held>(&mut self, people: &Look<'_, V>, user: UserId, entry: V) {
        self.bytes += cost(&entry);
        self.people.insert(user);
        if let Some(old) = people.insert(user, entry) {
            self.bytes -= cost(old);
        }
    }

    fn remove<V: Held>(&mut self, people: &Look<'_, V>, user: UserId) {
        self.people.remove(&user);
        if let Some(old) = people.remove(&user) {
            self.bytes -= cost(old);
        }
    }
}

fn cost<V: Held>(entry: &V) -> usize {
    ENTRY_BYTES + size_of::<V>() + entry.bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Held for u32 {
        fn bytes(&self) -> usize {
            20
        }
    }

    const COST: usize = ENTRY_BYTES + size_of::<u32>() + 20;
    const ADA: UserId = UserId(7);

    #[test]
    fn what_was_read_while_it_changed_is_used_once_and_not_kept() {
        let known = Known::new(1_000_000);
        let read_meanwhile = || {
            known.change(ADA, |entry| Some(*entry));
            1
        };
        assert_eq!(known.look_or_read(ADA, read_meanwhile, |entry| *entry), 1);
        assert_eq!(known.look().get(&ADA).copied(), None);
        assert_eq!(known.look_or_read(ADA, || 2, |entry| *entry), 2);
        assert_eq!(known.look_or_read(ADA, || 3, |entry| *entry), 2, "now it is known");
    }

    #[test]
    fn changes_are_taken_in_or_the_entry_is_forgotten() {
        let known = Known::new(1_000_000);
        known.look_or_read(ADA, || 1, |_| ());
        known.change(ADA, |entry| Some(entry + 4));
        assert_eq!(known.look().get(&ADA).copied(), Some(5));
        known.change(ADA, |_| None);
        assert_eq!(known.look().get(&ADA).copied(), None);
        assert_eq!(known.bytes(), 0);
    }

    #[test]
    fn the_budget_holds_whoever_is_read() {
        let known = Known::new(SHARDS * (3 * COST + COST / 2));
        for user in (0..10_000).map(UserId) {
            assert_eq!(known.look_or_read(user, || user.0, |entry| *entry), user.0);
        }
        assert_eq!(known.bytes(), SHARDS * 3 * COST, "three a shard");
        let none = Known::new(SHARDS * (COST - 1));
        assert_eq!(none.look_or_read(ADA, || 1, |entry| *entry), 1);
        assert_eq!(none.bytes(), 0, "an entry that fits in no shard is not kept");
    }
}
