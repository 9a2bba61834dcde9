//! All buckets, in memory, and reads of their keys over the layers.
//!
//! A key's row is looked for in the active overlay, in the frozen one, among the resident rows, and on
//! disk; the first that knows of it is right.

use feed::keys::{Bucket, KeyRow, key_hash};
use feed::limits::NUMBERED_BUCKETS;
use feed::{BucketId, Space};

use crate::disk::{Disk, Part};
use crate::error::{StoreError, fatal};
use crate::key_table::{KeyTable, shard_of};
use crate::keys;
use crate::store::{Layers, Store};

/// Rows read from disk by one step of warming up.
const WARM_ROWS: usize = 1_024;

/// Buckets by id. Those that are numbered are there from the beginning.
pub(crate) struct Buckets(Vec<Option<Bucket>>);

impl Buckets {
    pub(crate) fn read(disk: &Disk) -> Result<Self, StoreError> {
        let mut buckets =
            Self((0..NUMBERED_BUCKETS).map(Space).map(Bucket::empty).map(Some).collect());
        for row in disk.prefix(Part::Facts, &keys::BUCKETS_PREFIX) {
            let (key, bytes) = row?;
            let bucket = Bucket::decode(&bytes);
            let (Some(id), true) = (keys::read_bucket(&key), bucket.is_some() || bytes.is_empty())
            else {
                return Err(StoreError::Damaged("a bucket is malformed"));
            };
            buckets.put(id, bucket);
        }
        Ok(buckets)
    }

    pub(crate) fn find(&self, id: BucketId) -> Option<Bucket> {
        self.0.get(id.0 as usize).copied().flatten()
    }

    pub(crate) fn made(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn put(&mut self, id: BucketId, bucket: Option<Bucket>) {
        let place = id.0 as usize;
        if place >= self.0.len() {
            self.0.resize(place + 1, None);
        }
        if let Some(old) = self.0.get_mut(place) {
            *old = bucket;
        }
    }
}

impl Layers {
    fn key(&self, hash: u64, space: Space, key: &[u8]) -> Option<KeyRow> {
        self.find(|layer| layer.keys.find(hash, space, key))
    }
}

impl Store {
    /// The row of a key if it can be told without the disk: `Some(None)` if there is none.
    #[must_use]
    pub fn key_in_memory(&self, space: Space, key: &[u8]) -> Option<Option<KeyRow>> {
        self.known_key(key_hash(space, key), space, key)
    }

    fn known_key(&self, hash: u64, space: Space, key: &[u8]) -> Option<Option<KeyRow>> {
        let shared = self.shared();
        if let Some(row) = shared.layers.load().key(hash, space, key) {
            return Some(Some(row).filter(|row| !row.is_removed()));
        }
        if let Some(row) = shared.resident.table.find(hash, space, key) {
            row.touch();
            return Some(Some(row));
        }
        shared.resident.is_complete().then_some(None)
    }

    pub(crate) fn find_key(&self, space: Space, key: &[u8]) -> Option<KeyRow> {
        let shared = self.shared();
        let hash = key_hash(space, key);
        let noted = shared.resident.checkpoints();
        if let Some(known) = self.known_key(hash, space, key) {
            return known;
        }
        let bytes = shared.disk.point(Part::Facts, &keys::key(space, hash, key))?;
        let row = decode(space, key, &bytes);
        shared.resident.offer(hash, row.clone(), noted);
        Some(row)
    }

    /// Rows in the order of their hashes; see [`feed::Rows::keys`].
    pub(crate) fn walk_keys(&self, space: Space, from: u64, at_least: usize) -> Vec<KeyRow> {
        let mut found = Vec::new();
        let mut from = Some(from);
        while let Some(begin) = from.filter(|_| found.len() < at_least) {
            from = self.walk_piece(space, begin, at_least - found.len(), &mut found);
        }
        found
    }

    /// Appends some rows from `from` on, and tells where to go on, if there may be more.
    fn walk_piece(
        &self,
        space: Space,
        from: u64,
        wanted: usize,
        found: &mut Vec<KeyRow>,
    ) -> Option<u64> {
        let shared = self.shared();
        let layers = shared.layers.load();
        let mut below = Vec::new();
        let was_complete = shared.resident.is_complete();
        if was_complete {
            shared.resident.table.collect(shard_of(from), space, from, &mut below);
        }
        // Asked again behind the look: a row may have been dropped meanwhile.
        let end = if was_complete && shared.resident.is_complete() {
            from | u64::MAX >> shard_bits()
        } else {
            below.clear();
            self.rows_on_disk(space, from, wanted, &mut below)
        };
        let mut rows: Vec<(u64, u8, KeyRow)> = Vec::new();
        let mut take_in = |rank: u8, table: &KeyTable| {
            let mut taken = Vec::new();
            for shard in shard_of(from)..=shard_of(end) {
                table.collect(shard, space, from, &mut taken);
            }
            let within = taken.into_iter().filter(|(hash, _)| *hash <= end);
            rows.extend(within.map(|(hash, row)| (hash, rank, row)));
        };
        take_in(0, &layers.active.keys);
        if let Some(frozen) = &layers.frozen {
            take_in(1, &frozen.keys);
        }
        rows.extend(below.into_iter().map(|(hash, row)| (hash, 2, row)));
        rows.sort_unstable_by(|(hash, rank, row), (other_hash, other_rank, other)| {
            (hash, row.key(), rank).cmp(&(other_hash, other.key(), other_rank))
        });
        rows.dedup_by(|(_, _, row), (_, _, above)| row.key() == above.key());
        rows.retain(|(_, _, row)| !row.is_removed());
        let next = match rows.get(wanted.saturating_sub(1)).map(|(hash, _, _)| *hash) {
            Some(last) => {
                rows.retain(|(hash, _, _)| *hash <= last);
                last
            }
            None => end,
        };
        found.extend(rows.into_iter().map(|(_, _, row)| row));
        next.checked_add(1)
    }

    /// Collects rows on disk from `from` on, at least `wanted` and all with the last one's hash; tells
    /// up to which hash these are all.
    fn rows_on_disk(
        &self,
        space: Space,
        from: u64,
        wanted: usize,
        rows: &mut Vec<(u64, KeyRow)>,
    ) -> u64 {
        let low = keys::key(space, from, &[]);
        for (key, bytes) in self.shared().disk.rows(&low, &keys::space_end(space)) {
            let Some((space, hash, key)) = keys::read_key(&key) else {
                fatal("reading keys", &StoreError::Damaged("the name of a key's row is too short"))
            };
            match rows.last() {
                Some((last, _)) if rows.len() >= wanted && *last != hash => return *last,
                _ => rows.push((hash, decode(space, key, &bytes))),
            }
        }
        u64::MAX
    }

    /// Reads keys from disk into memory until all are there, the budget is used up, or `stopped` says
    /// so. Blocks; for a background thread.
    pub fn warm_keys(&self, stopped: impl Fn() -> bool) {
        let shared = self.shared();
        let mut low = keys::KEYS_PREFIX.to_vec();
        let end: Vec<u8> = keys::KEYS_PREFIX.iter().map(|tag| tag + 1).collect();
        while shared.resident.has_room() && !stopped() {
            let noted = shared.resident.checkpoints();
            let rows: Vec<_> = shared.disk.rows(&low, &end).take(WARM_ROWS).collect();
            for (name, bytes) in &rows {
                if let Some((space, hash, key)) = keys::read_key(name) {
                    shared.resident.offer(hash, decode(space, key, bytes), noted);
                }
            }
            if shared.resident.checkpoints() != noted {
                // A checkpoint changed the disk meanwhile, and some were not taken: once more.
                continue;
            }
            match rows.last() {
                Some((name, _)) if rows.len() == WARM_ROWS => {
                    low = name.to_vec();
                    low.push(0);
                }
                _ => return shared.resident.all_offered(),
            }
        }
    }

    /// Bytes of memory that resident rows of keys take.
    #[must_use]
    pub fn resident_bytes(&self) -> usize {
        self.shared().resident.bytes()
    }
}

fn shard_bits() -> u32 {
    (crate::key_table::LAST_SHARD + 1).trailing_zeros()
}

fn decode(space: Space, key: &[u8], bytes: &[u8]) -> KeyRow {
    keys::decode_key_row(space, key, bytes).unwrap_or_else(|| {
        fatal("reading a key", &StoreError::Damaged("the row of a key is malformed"))
    })
}
