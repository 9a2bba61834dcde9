//! Migrates a store of format 1, 2 or 3 to format 4.
//!
//! Format 3 ordered keys by a hash with a public seed, listed keys that expire by that hash, and numbered
//! buckets with 32 bits. All such rows are written again under new tags, in steps, and the last step
//! replaces the description of the store and removes the old rows, all at once. Until then the store is
//! unchanged: a process that ends in between leaves new rows that are never read, and the next start
//! removes them and begins again. Takes as long as rewriting all rows of keys.

use kv::limits::NUMBERED_BUCKETS;
use kv::{Bucket, BucketId, Space};
use rows::{NameTable, SetTable};

use crate::disk::{Disk, Part};
use crate::error::StoreError;
use crate::head::Head;
use crate::layout;

/// Tags of format 3 that are not used any more: keys that expire, buckets, keys.
const OLD_EXPIRING_KEYS: u8 = 0x2a;
const OLD_BUCKETS: u8 = 0x3f;
const OLD_KEYS: u8 = 0x40;
/// The version whose rows these are, with totals of format 6.
const NEXT_VERSION: u32 = 6;
/// Bytes of rows that are sorted in memory at a time.
const PIECE_BYTES: usize = 32 << 20;

type Row = (Vec<u8>, Option<Vec<u8>>);

/// Rewrites the rows that differ; returns the description as it is on disk now.
pub(crate) fn to_version_4(disk: &Disk, mut head: Head) -> Result<Head, StoreError> {
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
            let bucket = Bucket::decode(&bytes);
            let bucket = bucket.ok_or(StoreError::Damaged("a bucket is malformed"))?;
            let name = layout::bucket(BucketId(id.into())).to_vec();
            buckets.push((name, Some(bucket.encode().to_vec())));
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
        for (name, bucket) in &buckets {
            write(name, bucket.as_deref())?;
        }
        remove(disk, &[OLD_BUCKETS], &[OLD_BUCKETS + 1], write)?;
        remove(disk, &[OLD_KEYS], &[OLD_KEYS + 1], write)
    })?;
    tracing::info!("the keys of the store have the order of format version 4 now");
    Ok(head)
}

/// Removes new rows that an earlier attempt left.
fn remove_leftovers(disk: &Disk) -> Result<(), StoreError> {
    let expiries = layout::name(NameTable::KeyExpiry, &[]);
    let expiries_end = layout::names_end(NameTable::KeyExpiry);
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
    write: &mut crate::disk::WriteRow<'_>,
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
