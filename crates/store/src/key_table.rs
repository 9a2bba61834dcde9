//! Rows of keys in memory: 1,024 hash tables, each with a lock. The first bits of a key's hash select the table. A walk
//! in the order of hashes thus visits one table after the other, each with a thousandth of all rows.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use kv::{KeyRow, Space};
use parking_lot::{RwLock, RwLockReadGuard};

use crate::hash::KeyHasher;
use crate::prefetch::prefetch;

pub(crate) const SHARD_BITS: u32 = 10;
/// Capacity in rows up to which a table is shrunk only if it is empty.
const SPARE_ROWS_MIN: usize = 64;
/// Number of the last shard.
pub(crate) const LAST_SHARD: usize = (1 << SHARD_BITS) - 1;

/// One hash table.
pub(crate) struct KeyShard {
    rows: HashTable<KeyRow>,
    /// Start of the next search for a row to evict.
    hand: usize,
}

/// All hash tables of rows of keys.
pub(crate) struct KeyTable {
    shards: Box<[RwLock<KeyShard>]>,
    hasher: KeyHasher,
}

/// Returns the hash of a row for the hash table of its shard. In a shard, the first bits of all hashes are equal, but a
/// hash table needs first bits that differ (to distinguish rows) and last bits that differ (to find them).
fn place_of(hash: u64) -> u64 {
    hash.rotate_right(7)
}

/// Returns the shard of a hash.
pub(crate) fn shard_of(hash: u64) -> usize {
    (hash >> (u64::BITS - SHARD_BITS)) as usize
}

/// Returns the last hash of a shard.
pub(crate) fn last_of(shard: usize) -> u64 {
    (shard as u64) << (u64::BITS - SHARD_BITS) | u64::MAX >> SHARD_BITS
}

fn is_of(row: &KeyRow, space: Space, key: &[u8]) -> bool {
    row.key() == key && row.space() == space
}

impl KeyTable {
    /// Creates an empty table.
    pub(crate) fn new(hasher: KeyHasher) -> Self {
        let shard = || RwLock::new(KeyShard { rows: HashTable::new(), hand: 0 });
        let shards = std::iter::repeat_with(shard).take(LAST_SHARD + 1).collect();
        Self { shards, hasher }
    }

    fn hash_of(&self, row: &KeyRow) -> u64 {
        self.hasher.hash(row.space(), row.key())
    }

    fn shard(&self, number: usize) -> &RwLock<KeyShard> {
        let Some(shard) = self.shards.get(number) else { unreachable!("ten bits, 1,024 shards") };
        shard
    }

    /// Returns the row of a key whose hash is `hash`.
    pub(crate) fn find(&self, hash: u64, space: Space, key: &[u8]) -> Option<KeyRow> {
        let shard = self.shard(shard_of(hash)).read();
        shard.rows.find(place_of(hash), |row| is_of(row, space, key)).cloned()
    }

    /// Prefetches the row of a key whose hash is `hash`, or a row with the same tag in the table. Returns whether there
    /// is such a row.
    pub(crate) fn prefetch(&self, hash: u64) -> bool {
        let shard = self.shard(shard_of(hash)).read();
        let first = shard.rows.find(place_of(hash), |_| true);
        first.inspect(|row| prefetch(row.address())).is_some()
    }

    /// Adds a row or replaces the existing one. Returns the growth of memory in bytes, and the old row.
    pub(crate) fn put(&self, hash: u64, row: KeyRow) -> (usize, Option<KeyRow>) {
        let mut shard = self.shard(shard_of(hash)).write();
        self.put_in(&mut shard, hash, row)
    }

    fn put_in(&self, shard: &mut KeyShard, hash: u64, row: KeyRow) -> (usize, Option<KeyRow>) {
        let grown = row.memory_bytes();
        let same = |old: &KeyRow| is_of(old, row.space(), row.key());
        let before = shard.rows.allocation_size();
        let old = match shard.rows.entry(place_of(hash), same, |row| place_of(self.hash_of(row))) {
            Entry::Occupied(mut entry) => Some(std::mem::replace(entry.get_mut(), row)),
            Entry::Vacant(entry) => {
                entry.insert(row);
                None
            }
        };
        // The table may grow even if a row is replaced, because it makes room before it searches for the old row.
        (grown + shard.rows.allocation_size() - before, old)
    }

    /// Adds a row unless one exists. If it was added, returns the growth of memory in bytes.
    pub(crate) fn put_absent(
        &self,
        hash: u64,
        row: KeyRow,
        still: impl FnOnce() -> bool,
    ) -> Option<usize> {
        let mut shard = self.shard(shard_of(hash)).write();
        let found = shard.rows.find(place_of(hash), |old| is_of(old, row.space(), row.key()));
        if found.is_some() || !still() {
            return None;
        }
        Some(self.put_in(&mut shard, hash, row).0)
    }

    /// Removes a row; returns the freed memory in bytes.
    pub(crate) fn remove(&self, hash: u64, space: Space, key: &[u8]) -> usize {
        let mut shard = self.shard(shard_of(hash)).write();
        let found = shard.rows.find_entry(place_of(hash), |row| is_of(row, space, key));
        let Some(removed) = found.ok().map(|entry| entry.remove().0) else { return 0 };
        removed.memory_bytes() + self.shrink(&mut shard)
    }

    /// Removes a row of the shard that was not read since it was last considered for eviction. Returns the number of
    /// freed bytes; `None` if the shard is empty.
    pub(crate) fn evict_from(&self, number: usize) -> Option<usize> {
        let mut shard = self.shard(number & LAST_SHARD).write();
        let shard = &mut *shard;
        if shard.rows.is_empty() {
            return None;
        }
        let places = shard.rows.num_buckets();
        // Try twice: in the first round, all rows may have been read recently.
        for _ in 0..2 * places {
            let place = shard.hand % places;
            shard.hand = place + 1;
            if shard.rows.get_bucket(place).is_some_and(|row| !row.take_used())
                && let Ok(entry) = shard.rows.get_bucket_entry(place)
            {
                let freed = entry.remove().0.memory_bytes();
                return Some(freed + self.shrink(shard));
            }
        }
        None
    }

    /// Shrinks the table if it has much fewer rows than capacity. Returns the number of freed bytes.
    fn shrink(&self, shard: &mut KeyShard) -> usize {
        let is_small = shard.rows.capacity() < SPARE_ROWS_MIN && !shard.rows.is_empty();
        if is_small || shard.rows.len() > shard.rows.capacity() / 4 {
            return 0;
        }
        let before = shard.rows.allocation_size();
        let fewer = 2 * shard.rows.len();
        shard.rows.shrink_to(fewer, |row| place_of(self.hash_of(row)));
        before - shard.rows.allocation_size()
    }

    /// Appends the rows of `space` in one shard whose hash is at least `from`, with their hashes. Returns the number of
    /// examined rows.
    pub(crate) fn collect(
        &self,
        number: usize,
        space: Space,
        from: u64,
        found: &mut Vec<(u64, KeyRow)>,
    ) -> usize {
        let shard = self.shard(number).read();
        let rows = shard.rows.iter().filter(|row| row.space() == space);
        let hashed = rows.map(|row| (self.hash_of(row), row));
        found.extend(
            hashed.filter(|(hash, _)| *hash >= from).map(|(hash, row)| (hash, row.clone())),
        );
        shard.rows.len()
    }

    /// Returns all rows, in the order that they have on disk.
    pub(crate) fn sorted(&self) -> Vec<(u64, KeyRow)> {
        let shards: Vec<RwLockReadGuard<'_, KeyShard>> =
            self.shards.iter().map(RwLock::read).collect();
        let rows = shards.iter().flat_map(|shard| shard.rows.iter());
        let mut rows: Vec<_> = rows.map(|row| (self.hash_of(row), row.clone())).collect();
        rows.sort_unstable_by(|(hash, row), (other_hash, other)| {
            (row.space(), hash, row.key()).cmp(&(other.space(), other_hash, other.key()))
        });
        rows
    }
}

#[cfg(test)]
mod tests {
    use kv::KeyParts;
    use rows::Stamp;

    use super::*;

    fn row(key: &str) -> KeyRow {
        let (space, value) = (Space(1), &b"v"[..]);
        let version = Stamp(1);
        KeyRow::new(KeyParts { space, key: key.as_bytes(), value, expires_ms: None, version })
    }

    #[test]
    fn what_was_read_is_evicted_after_what_was_not() {
        let hasher = KeyHasher::new([7; 16]);
        let table = KeyTable::new(hasher);
        let mut keys: Vec<String> = Vec::new();
        for number in 0.. {
            let key = number.to_string();
            let hash = hasher.hash(Space(1), key.as_bytes());
            if shard_of(hash) == 5 {
                table.put(hash, row(&key));
                keys.push(key);
            }
            if keys.len() == 20 {
                break;
            }
        }
        let find = |key: &String| {
            let hash = hasher.hash(Space(1), key.as_bytes());
            table.find(hash, Space(1), key.as_bytes())
        };
        for key in &keys {
            assert!(find(key).is_some_and(|row| row.take_used()), "a new row counts as read");
        }
        let (read, unread) = keys.split_at(8);
        for key in read {
            find(key).into_iter().for_each(|row| row.touch());
        }
        for _ in 0..unread.len() {
            assert!(table.evict_from(5).is_some());
        }
        assert!(read.iter().all(|key| find(key).is_some()));
        assert!(unread.iter().all(|key| find(key).is_none()));
        for _ in read {
            assert!(table.evict_from(5).is_some());
        }
        assert!(table.evict_from(5).is_none(), "nothing is left");
    }

    #[test]
    fn what_grows_and_shrinks_adds_up_to_the_memory_of_all_rows_and_tables() {
        let hasher = KeyHasher::new([7; 16]);
        let table = KeyTable::new(hasher);
        let keys = (0..).map(|number: u32| number.to_string());
        let hashed = keys.map(|key| (hasher.hash(Space(1), key.as_bytes()), key));
        let of_one_shard: Vec<_> =
            hashed.filter(|(hash, _)| shard_of(*hash) == 5).take(300).collect();
        let mut bytes = 0;
        let check = |bytes: usize| {
            let shard = table.shard(5).read();
            let rows: usize = shard.rows.iter().map(KeyRow::memory_bytes).sum();
            assert_eq!(bytes, rows + shard.rows.allocation_size());
        };
        for (hash, key) in &of_one_shard {
            // The second round replaces each row, at every size of the table.
            for _ in 0..2 {
                let (grown, old) = table.put(*hash, row(key));
                let shrunk = old.as_ref().map_or(0, KeyRow::memory_bytes);
                bytes = bytes + grown - shrunk;
                check(bytes);
            }
        }
        for (hash, key) in &of_one_shard {
            bytes -= table.remove(*hash, Space(1), key.as_bytes());
            check(bytes);
        }
        assert_eq!(bytes, 0);
    }

    #[test]
    fn a_prefetch_finds_the_row_and_changes_nothing() {
        let hasher = KeyHasher::new([7; 16]);
        let table = KeyTable::new(hasher);
        let hash = hasher.hash(Space(1), b"key");
        assert!(!table.prefetch(hash));
        table.put(hash, row("key"));
        assert!(table.find(hash, Space(1), b"key").is_some_and(|row| row.take_used()));
        assert!(table.prefetch(hash));
        assert!(table.evict_from(shard_of(hash)).is_some(), "a prefetch does not count as a read");
    }
}
