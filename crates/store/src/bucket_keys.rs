//! Reads of the keys of buckets.
//!
//! The row of a key is searched in the active overlay, the frozen one, the resident rows, and on disk. The first of
//! these that has a row or its removal decides.

use kv::{CURSOR_STEP, KeyRow, Space, WalkLimit, is_possible_key};
use rows::Stamp;

use crate::disk::KeyspaceKind;
use crate::error::{StoreError, unreadable};
use crate::key_table::{last_of, shard_of};
use crate::layout;
use crate::shared::{Layers, Store};

/// Number of rows that one warm-up step reads from disk.
const WARM_ROWS: usize = 1_024;
/// Size of the rows after which a warm-up step ends, in bytes. Beyond the budget, a step needs at most this memory and
/// that of one row of maximum length.
const WARM_BYTES: usize = 4 << 20;

impl Layers {
    fn key(&self, hash: u64, space: Space, key: &[u8]) -> Option<KeyRow> {
        self.find(|layer| layer.keys.find(hash, space, key))
    }
}

impl Store {
    /// Returns the row of a key without reading the disk: `None` if the disk must be read, `Some(None)` if the key does
    /// not exist.
    #[must_use]
    pub fn key_in_memory(&self, space: Space, key: &[u8]) -> Option<Option<KeyRow>> {
        self.cached_key(self.shared().hasher.hash(space, key), space, key)
    }

    fn cached_key(&self, hash: u64, space: Space, key: &[u8]) -> Option<Option<KeyRow>> {
        let shared = self.shared();
        if !is_possible_key(key) {
            // No layer has such a key, and the engine does not accept it.
            return Some(None);
        }
        if let Some(row) = shared.layers.load().key(hash, space, key) {
            return Some(Some(row).filter(|row| !row.is_removed()));
        }
        if let Some(row) = shared.resident.table.find(hash, space, key) {
            row.touch();
            return Some(Some(row).filter(|row| !row.is_removed()));
        }
        shared.resident.is_complete().then_some(None)
    }

    /// Implements [`kv::KeyRows::prefetch_key`].
    pub fn prefetch_key(&self, space: Space, key: &[u8]) {
        let shared = self.shared();
        let hash = shared.hasher.hash(space, key);
        let layers = shared.layers.load();
        let in_layers = layers.find(|layer| layer.keys.prefetch(hash).then_some(()));
        if in_layers.is_none() {
            shared.resident.table.prefetch(hash);
        }
    }

    pub(crate) fn has_cold_keys(&self) -> bool {
        !self.shared().resident.is_complete()
    }

    /// Implements [`kv::KeyRows::load_key`].
    pub(crate) fn load_key(&self, space: Space, key: &[u8]) -> bool {
        let cold = self.key_in_memory(space, key).is_none();
        if cold {
            // Reading the row puts it into memory.
            drop(self.find_key(space, key));
        }
        cold
    }

    pub(crate) fn find_key(&self, space: Space, key: &[u8]) -> Option<KeyRow> {
        let shared = self.shared();
        let hash = shared.hasher.hash(space, key);
        let noted = shared.resident.checkpoints();
        if let Some(row) = self.cached_key(hash, space, key) {
            return row;
        }
        let row = match shared.disk.point(KeyspaceKind::Facts, &layout::key(space, hash, key)) {
            Some(bytes) => decode(space, key, &bytes),
            // Store the absence of a row in memory too.
            None => KeyRow::removed(space, key, Stamp(0)),
        };
        shared.resident.offer(hash, row.clone(), noted);
        Some(row).filter(|row| !row.is_removed())
    }

    /// Returns rows in the order of their hashes; see [`kv::KeyRows::keys`].
    pub(crate) fn walk_keys(
        &self,
        space: Space,
        cursor: u64,
        limit: WalkLimit,
    ) -> (Vec<KeyRow>, Option<u64>) {
        let mut found = Vec::new();
        let (mut next, mut left) = (Some(cursor), limit);
        let has_more = |begin: &u64, left: &WalkLimit| {
            left.rows > 0 && left.bytes > 0 && left.visits > 0 && *begin <= limit.up_to
        };
        while let Some(begin) = next.filter(|begin| has_more(begin, &left)) {
            let before = found.len();
            next = self.walk_piece(space, begin, &mut left, &mut found);
            let new = found.get(before..).unwrap_or_default();
            left.rows = left.rows.saturating_sub(new.len());
            left.bytes = left.bytes.saturating_sub(bytes_of(new.iter()));
        }
        (found, next)
    }

    /// Appends some rows, from `from` on. Returns where to continue, if there may be more.
    fn walk_piece(
        &self,
        space: Space,
        from: u64,
        left: &mut WalkLimit,
        found: &mut Vec<KeyRow>,
    ) -> Option<u64> {
        let limit = *left;
        let shared = self.shared();
        let layers = shared.layers.load();
        let mut below = Vec::new();
        let was_complete = !limit.is_small && shared.resident.is_complete();
        let mut visited = 1;
        if was_complete {
            visited += shared.resident.table.collect(shard_of(from), space, from, &mut below);
        }
        // Check again after the look-up, because a row may have been evicted meanwhile.
        let mut end = if was_complete && shared.resident.is_complete() {
            limit.up_to.min(last_of(shard_of(from)))
        } else {
            below.clear();
            self.rows_on_disk(space, from, limit, &mut below)
        };
        let tables = [Some(&layers.active), layers.frozen.as_ref()];
        let mut rows: Vec<(u64, u8, KeyRow)> = Vec::new();
        for shard in shard_of(from)..=shard_of(end) {
            for (rank, table) in (0..).zip(tables.into_iter().flatten()) {
                let mut taken = Vec::new();
                visited += table.keys.collect(shard, space, from, &mut taken);
                rows.extend(taken.into_iter().map(|(hash, row)| (hash, rank, row)));
            }
            if visited >= limit.visits {
                end = end.min(last_of(shard));
                break;
            }
        }
        rows.retain(|(hash, ..)| *hash <= end);
        left.visits = left.visits.saturating_sub(visited);
        below.retain(|(hash, _)| *hash <= end);
        rows.extend(below.into_iter().map(|(hash, row)| (hash, 2, row)));
        rows.sort_unstable_by(|(hash, rank, row), (other_hash, other_rank, other)| {
            (hash, row.key(), rank).cmp(&(other_hash, other.key(), other_rank))
        });
        rows.dedup_by(|(_, _, row), (_, _, above)| row.key() == above.key());
        rows.retain(|(_, _, row)| !row.is_removed());
        let last = last_within(&rows, limit).map_or(end, |last| last.min(end));
        found.extend(rows.into_iter().filter(|(hash, ..)| *hash <= last).map(|(_, _, row)| row));
        last.checked_add(1)
    }

    /// Collects rows on disk from `from` to `limit.up_to`: as many as `limit` allows, and the rest up to the next
    /// cursor. Returns the hash up to which the rows are complete.
    fn rows_on_disk(
        &self,
        space: Space,
        from: u64,
        limit: WalkLimit,
        rows: &mut Vec<(u64, KeyRow)>,
    ) -> u64 {
        let low = layout::key(space, from, &[]);
        let mut bytes = 0;
        for (key, row) in self.shared().disk.rows(&low, &layout::space_end(space)) {
            let Some((space, hash, key)) = layout::read_key(&key) else {
                unreadable(
                    "reading keys",
                    &StoreError::Damaged("the name of a key's row is too short"),
                )
            };
            let full = rows.len() >= limit.rows || bytes >= limit.bytes;
            match rows.last() {
                _ if hash > limit.up_to => break,
                Some((last, _)) if full && before_next_cursor(*last) < hash => {
                    return before_next_cursor(*last);
                }
                _ => {
                    bytes += key.len() + row.len();
                    rows.push((hash, decode(space, key, &row)));
                }
            }
        }
        limit.up_to
    }

    /// Reads keys from disk into memory until all are in memory, the budget is used up, or `stopped` returns true.
    /// Blocks; run it on a background thread.
    pub fn warm_keys(&self, stopped: impl Fn() -> bool) {
        let shared = self.shared();
        let mut low = layout::KEYS_PREFIX.to_vec();
        let end: Vec<u8> = layout::KEYS_PREFIX.iter().map(|tag| tag + 1).collect();
        while shared.resident.has_room() && !stopped() {
            let noted = shared.resident.checkpoints();
            let (mut next, mut left) = (None, WARM_BYTES);
            for (name, bytes) in shared.disk.rows(&low, &end).take(WARM_ROWS) {
                if let Some((space, hash, key)) = layout::read_key(&name) {
                    shared.resident.offer(hash, decode(space, key, &bytes), noted);
                }
                left = left.saturating_sub(name.len() + bytes.len());
                next = Some([&name, &[0][..]].concat());
                if left == 0 {
                    break;
                }
            }
            if shared.resident.checkpoints() != noted {
                // A checkpoint has changed the disk meanwhile, so some rows were not added. Read them again.
                continue;
            }
            match next {
                Some(next) => low = next,
                None => return shared.resident.all_offered(),
            }
        }
    }

    /// Returns the memory of the resident rows of keys, in bytes.
    #[must_use]
    pub fn resident_bytes(&self) -> usize {
        self.shared().resident.bytes()
    }
}

fn bytes_of<'a>(rows: impl Iterator<Item = &'a KeyRow>) -> usize {
    rows.map(|row| row.data_bytes() as usize).sum()
}

/// Returns the last hash before the next cursor, so that the next step begins at a cursor.
fn before_next_cursor(hash: u64) -> u64 {
    hash | (CURSOR_STEP - 1)
}

/// Returns the last hash before the cursor after the row that reaches the limit; `None` if no row reaches the limit.
fn last_within(rows: &[(u64, u8, KeyRow)], limit: WalkLimit) -> Option<u64> {
    let mut bytes = 0;
    let reached = rows.iter().enumerate().find(|(at, (_, _, row))| {
        bytes += row.data_bytes() as usize;
        at + 1 >= limit.rows || bytes >= limit.bytes
    });
    reached.map(|(_, (hash, ..))| before_next_cursor(*hash))
}

fn decode(space: Space, key: &[u8], bytes: &[u8]) -> KeyRow {
    layout::decode_key_row(space, key, bytes).unwrap_or_else(|| {
        unreadable("reading a key", &StoreError::Damaged("the row of a key is malformed"))
    })
}

#[cfg(test)]
mod tests {
    use kv::KeyParts;

    use super::*;

    #[test]
    fn a_step_ends_before_a_cursor_with_all_rows_up_to_there() {
        let row = |hash: u64| {
            let (space, key) = (Space(1), hash.to_string());
            let version = Stamp(1);
            let parts =
                KeyParts { space, key: key.as_bytes(), value: b"v", expires_ms: None, version };
            (hash, 0, KeyRow::new(parts))
        };
        let rows: Vec<_> = [0, 2_047, 2_048, 2_050, 4_095, 4_096].map(row).into();
        for (limit, last) in
            [(1, 2_047), (2, 2_047), (3, 4_095), (4, 4_095), (5, 4_095), (6, 6_143)]
        {
            assert_eq!(last_within(&rows, WalkLimit::rows(limit)), Some(last), "{limit} rows");
        }
        assert_eq!(last_within(&rows, WalkLimit::rows(7)), None);
        assert_eq!(before_next_cursor(u64::MAX - 1), u64::MAX, "then nothing follows");
    }
}
