//! Migrates a store of an earlier format to the newest.
//!
//! Formats 4 to 6 had a row per item of a list of users, and did not count the expiring keys of each bucket. The lists are
//! packed, the keys are counted, and the description of the store is written with them, all at once. Takes as long
//! as reading the lists twice and all expiries of keys.
//!
//! Format 3 ordered keys by a hash with a public seed, listed keys that expire by that hash, and numbered
//! buckets with 32 bits. All such rows are written again under new tags, in steps, and the last step
//! replaces the description of the store and removes the old rows, all at once. Until then the store is
//! unchanged: a process that ends in between leaves new rows that are never read, and the next start
//! removes them and begins again. Takes as long as rewriting all rows of keys.

use hashbrown::HashMap;
use kv::limits::NUMBERED_BUCKETS;
use kv::{Bucket, BucketId, Space};
use rows::{NameTable, SetTable};

use crate::disk::{Disk, Part};
use crate::error::StoreError;
use crate::hash::KeyHasher;
use crate::head::{Head, PACKED_VERSION, SEED_VERSION};
use crate::layout;
use crate::pack::pack;

/// Tags of format 3 that are not used any more: keys that expire, buckets, keys.
const OLD_EXPIRING_KEYS: u8 = 0x2a;
const OLD_BUCKETS: u8 = 0x3f;
const OLD_KEYS: u8 = 0x40;
/// The version whose rows these are, with totals of format 6.
const NEXT_VERSION: u32 = 6;
/// Bytes of rows that are sorted in memory at a time.
const PIECE_BYTES: usize = 32 << 20;

type Row = (Vec<u8>, Option<Vec<u8>>);

/// Reads the description of a store. A store of an earlier version becomes one of the newest first, with `hasher` for
/// its keys if it has no secret for them yet.
pub(crate) fn read_head(disk: &Disk, bytes: &[u8], hasher: KeyHasher) -> Result<Head, StoreError> {
    let (found, mut head) = Head::read(bytes, hasher)?;
    if found < SEED_VERSION {
        head = to_version_6(disk, head)?;
    }
    if found < PACKED_VERSION {
        to_version_7(disk, &head)?;
    }
    Ok(head)
}

/// Rewrites the rows that differ; returns the description as it is on disk now.
fn to_version_6(disk: &Disk, mut head: Head) -> Result<Head, StoreError> {
    remove_leftovers(disk)?;
    head.totals.keys_expiring = rewrite_keys(disk, &head)?;
    let mut buckets = Vec::new();
    for (name, bytes) in disk.rows(&[OLD_BUCKETS], &[OLD_BUCKETS + 1]) {
        let id = name.get(1..).and_then(|id| id.try_into().ok()).map(u32::from_be_bytes);
        let id = id.ok_or(StoreError::Damaged("a bucket is malformed"))?;
        let made = u64::from(id) + 1 - u64::from(NUMBERED_BUCKETS.min(id + 1));
        head.totals.buckets_made = head.totals.buckets_made.max(made);
        // A deleted bucket has an empty row.
        if !bytes.is_empty() {
            buckets.push((layout::bucket(BucketId(id.into())), bytes));
        }
    }
    disk.ingest(Part::Facts, |write| {
        write(&layout::HEAD, Some(&head.encode_as(NEXT_VERSION)))?;
        remove(disk, &[OLD_EXPIRING_KEYS], &[OLD_EXPIRING_KEYS + 1], write)?;
        // Orphaned spaces are walked from the beginning, in the new order.
        let low = layout::set(SetTable::OrphanedSpaces, 0, 0);
        let high = layout::set(SetTable::OrphanedSpaces, 0, u64::MAX);
        for (name, _) in disk.rows(&low, &high) {
            write(&name, Some(&[]))?;
        }
        buckets.iter().try_for_each(|(name, bucket)| write(name, Some(bucket)))?;
        remove(disk, &[OLD_BUCKETS], &[OLD_BUCKETS + 1], write)?;
        remove(disk, &[OLD_KEYS], &[OLD_KEYS + 1], write)
    })?;
    tracing::info!("rewrote the keys of the store in a secret order");
    Ok(head)
}

/// Packs the lists of users and counts the expiring keys of all buckets.
fn to_version_7(disk: &Disk, head: &Head) -> Result<(), StoreError> {
    let mut buckets = HashMap::new();
    for row in disk.prefix(Part::Facts, &layout::BUCKETS_PREFIX) {
        let (name, bytes) = row?;
        let id = layout::read_bucket(&name).ok_or(StoreError::Damaged("a bucket is malformed"))?;
        add_bucket(&mut buckets, id, &bytes)?;
    }
    count_expiries(disk, &mut buckets)?;
    pack(disk, head, &mut |write| write_buckets(&buckets, write))
}

/// Buckets by their spaces.
type Buckets = HashMap<Space, (BucketId, Bucket)>;

fn add_bucket(buckets: &mut Buckets, id: BucketId, bytes: &[u8]) -> Result<(), StoreError> {
    let bucket = Bucket::decode_without_expiries(bytes);
    let bucket = bucket.ok_or(StoreError::Damaged("a bucket is malformed"))?;
    buckets.insert(bucket.space, (id, bucket));
    Ok(())
}

/// Counts what expires in each bucket. An expiry in a space without a bucket belongs to none.
fn count_expiries(disk: &Disk, buckets: &mut Buckets) -> Result<(), StoreError> {
    let (first, end) = layout::names_under(NameTable::KeyExpiry, &[], &[]);
    for (name, _) in disk.rows(&first, &end) {
        let (expires_ms, space) =
            read_expiry(&name).ok_or(StoreError::Damaged("the expiry of a key is malformed"))?;
        if let Some((_, bucket)) = buckets.get_mut(&space) {
            bucket.count_expiry(expires_ms);
        }
    }
    Ok(())
}

/// In the order of their names, as an ingestion needs them.
fn write_buckets(buckets: &Buckets, write: &mut layout::WriteRow<'_>) -> Result<(), StoreError> {
    let mut buckets: Vec<_> = buckets.values().collect();
    buckets.sort_unstable_by_key(|(id, _)| *id);
    buckets.iter().try_for_each(|(id, bucket)| write(&layout::bucket(*id), Some(&bucket.encode())))
}

/// Removes new rows that an earlier attempt left.
fn remove_leftovers(disk: &Disk) -> Result<(), StoreError> {
    let (expiries, expiries_end) = layout::names_under(NameTable::KeyExpiry, &[], &[]);
    let keys_end = layout::KEYS_PREFIX.map(|tag| tag + 1);
    let ranges =
        [(expiries.as_slice(), expiries_end.as_slice()), (&layout::KEYS_PREFIX, &keys_end)];
    if ranges.iter().all(|(from, end)| disk.first_key(from, end).is_none()) {
        return Ok(());
    }
    disk.ingest(Part::Facts, |write| {
        ranges.iter().try_for_each(|(from, end)| remove(disk, from, end, write))
    })
}

fn remove(
    disk: &Disk,
    from: &[u8],
    end: &[u8],
    write: &mut layout::WriteRow<'_>,
) -> Result<(), StoreError> {
    disk.rows(from, end).try_for_each(|(name, _)| write(&name, None))
}

/// Writes the rows of all keys in their new order, with their expiries; returns how many expire.
fn rewrite_keys(disk: &Disk, head: &Head) -> Result<u64, StoreError> {
    let mut expiring = 0;
    let mut piece: Vec<Row> = Vec::new();
    let mut bytes = 0;
    for (name, row) in disk.rows(&[OLD_KEYS], &[OLD_KEYS + 1]) {
        let malformed = || StoreError::Damaged("the row of a key is malformed");
        let (space, _, key) = layout::read_key(&name).ok_or_else(malformed)?;
        let decoded = layout::decode_key_row(space, key, &row).ok_or_else(malformed)?;
        if let Some(expires_ms) = decoded.expires_ms() {
            expiring += 1;
            piece.push((
                layout::name(NameTable::KeyExpiry, &expiry(expires_ms, space, key)),
                Some(vec![]),
            ));
        }
        let hash = head.hasher.hash(space, key);
        bytes += name.len() + row.len();
        piece.push((layout::key(space, hash, key), Some(row.to_vec())));
        if bytes > PIECE_BYTES {
            ingest(disk, &mut piece)?;
            bytes = 0;
        }
    }
    ingest(disk, &mut piece)?;
    Ok(expiring)
}

fn expiry(expires_ms: u64, space: Space, key: &[u8]) -> Vec<u8> {
    [&expires_ms.to_be_bytes()[..], &space.0.to_be_bytes(), key].concat()
}

/// When a key expires, and its space.
fn read_expiry(name: &[u8]) -> Option<(u64, Space)> {
    let (expires_ms, rest) = name.get(1..)?.split_first_chunk()?;
    let (space, _) = rest.split_first_chunk()?;
    Some((u64::from_be_bytes(*expires_ms), Space(u32::from_be_bytes(*space))))
}

fn ingest(disk: &Disk, piece: &mut Vec<Row>) -> Result<(), StoreError> {
    if piece.is_empty() {
        return Ok(());
    }
    piece.sort_unstable();
    let rows = std::mem::take(piece);
    disk.ingest(Part::Facts, |write| {
        rows.iter().try_for_each(|(name, row)| write(name, row.as_deref()))
    })
}
