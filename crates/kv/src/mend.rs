//! Check and repair of buckets and keys. The repair computes expiries, counts and the owners of spaces from the rows of
//! keys and buckets. Keys whose bucket is lost get a new bucket.
//!
//! The check writes its repairs as it finds faults; a caller that only wants the findings discards the changes. It runs
//! in steps, so that the caller can store the changes between two steps.
//!
//! **Invariant:** if only operations have changed the rows, the check finds nothing.
//! **Invariant:** a second check after a repair finds nothing.

use std::collections::{BTreeMap, BTreeSet};

use rows::{Finding, NameTable, PointTable, SetTable, Stamp, Value, encode, try_decode};

use crate::bucket::{Bucket, BucketId, BucketName, Space};
use crate::facts::{Facts, KeyExpiry, counted};
use crate::key_rows::{KeyRowsMut, KeyScan, WalkLimit};
use crate::limits::NUMBERED_BUCKETS;
use crate::write::expiry_name;

/// Number of rows that one step checks.
const STEP_ROWS: usize = 1_024;

/// Check in progress.
#[derive(Debug, Default)]
pub struct Mend {
    at: At,
    /// Counted content of each space with rows.
    spaces: BTreeMap<Space, Bucket>,
    expiring: u64,
    last_stamp: u64,
}

/// Place from which the next step continues.
#[derive(Debug, Default)]
enum At {
    #[default]
    Begin,
    /// Remaining spaces, and the cursor in the first of them.
    Keys(Vec<Space>, u64),
    Expiries(Vec<u8>),
    Buckets,
    Names(Vec<u8>),
    Totals,
    End,
}

impl Mend {
    /// Checks some rows, and repairs wrong ones. Returns false once all rows are checked.
    pub fn step<R: KeyScan + KeyRowsMut>(
        &mut self,
        rows: &mut R,
        report: &mut dyn FnMut(Finding),
    ) -> bool {
        self.at = match std::mem::take(&mut self.at) {
            At::Begin => At::Keys(rows.spaces(), 0),
            At::Keys(spaces, cursor) => self.keys(rows, spaces, cursor, report),
            At::Expiries(from) => self.expiries(rows, &from, report),
            At::Buckets => self.buckets(rows, report),
            At::Names(from) => names(rows, &from, report),
            At::Totals => self.totals(rows, report),
            At::End => return false,
        };
        true
    }

    fn keys<R: KeyScan + KeyRowsMut>(
        &mut self,
        rows: &mut R,
        mut spaces: Vec<Space>,
        cursor: u64,
        report: &mut dyn FnMut(Finding),
    ) -> At {
        let Some(space) = spaces.first().copied() else { return At::Expiries(Vec::new()) };
        let (found, next) = rows.keys(space, cursor, WalkLimit::rows(STEP_ROWS));
        for row in found {
            let bucket = self.spaces.entry(space).or_insert(Bucket::empty(space));
            *bucket = counted(*bucket, None, Some(&row));
            self.last_stamp = self.last_stamp.max(row.version().0);
            let Some(expires_ms) = row.expires_ms() else { continue };
            let name = expiry_name(expires_ms, space, row.key());
            if rows.name(NameTable::KeyExpiry, &name).is_none() {
                let key = row.key().escape_ascii();
                report(Finding::derived(format!(
                    "key {key} in space {}: its expiry is missing",
                    space.0
                )));
                rows.put_name(NameTable::KeyExpiry, &name, Some(Value::new()));
            }
        }
        match next {
            Some(next) => At::Keys(spaces, next),
            None => {
                spaces.remove(0);
                At::Keys(spaces, 0)
            }
        }
    }

    fn expiries<R: KeyScan + KeyRowsMut>(
        &mut self,
        rows: &mut R,
        from: &[u8],
        report: &mut dyn FnMut(Finding),
    ) -> At {
        let names = rows.first_names(NameTable::KeyExpiry, from, STEP_ROWS);
        for name in &names {
            let expiry = KeyExpiry::read(name);
            let row = expiry.as_ref().and_then(|expiry| rows.key(expiry.space, &expiry.key));
            let expires_ms = row.and_then(|row| row.expires_ms());
            if expires_ms.is_some() && expires_ms == expiry.map(|expiry| expiry.expires_ms) {
                self.expiring += 1;
            } else {
                report(Finding::derived(format!(
                    "KeyExpiry {}: no key expires then",
                    name.escape_ascii()
                )));
                rows.put_name(NameTable::KeyExpiry, name, None);
            }
        }
        match names.last().filter(|_| names.len() >= STEP_ROWS) {
            Some(last) => At::Expiries([last.as_slice(), &[0]].concat()),
            None => At::Buckets,
        }
    }

    /// Assigns a bucket to every space with rows, and corrects the counts of every bucket.
    fn buckets<R: KeyScan + KeyRowsMut>(
        &mut self,
        rows: &mut R,
        report: &mut dyn FnMut(Finding),
    ) -> At {
        let mut totals = rows.totals();
        let buckets = rows.buckets();
        let used =
            buckets.iter().map(|(_, bucket)| bucket.space).chain(self.spaces.keys().copied());
        let spaces = used.map(|space| (space.0 + 1).saturating_sub(NUMBERED_BUCKETS)).max();
        totals.spaces = totals.spaces.max(spaces.unwrap_or_default());
        let made =
            buckets.iter().map(|(id, _)| (id.0 + 1).saturating_sub(NUMBERED_BUCKETS.into())).max();
        totals.buckets_made = totals.buckets_made.max(made.unwrap_or_default());
        if totals != rows.totals() {
            report(Finding::derived(
                "totals: there are more buckets or spaces than counted".to_owned(),
            ));
            rows.put_totals(totals);
        }
        let (mut taken, mut homeless) = (BTreeSet::new(), BTreeSet::new());
        for (id, bucket) in buckets {
            if is_elsewhere(rows, id, bucket) || !taken.insert(bucket.space) {
                homeless.insert(id);
            } else {
                self.count_bucket(rows, id, bucket, report);
            }
        }
        self.unclaimed_spaces(rows, (&mut taken, &mut homeless), report);
        for id in homeless {
            report(Finding::lost(format!(
                "bucket {}: its row is lost, and it has no known keys",
                id.0
            )));
            let space = new_space(rows);
            taken.insert(space);
            put_bucket(rows, id, Bucket::empty(space));
        }
        unused_spaces(rows, &taken, report);
        At::Names(Vec::new())
    }

    fn count_bucket<R: KeyScan + KeyRowsMut>(
        &self,
        rows: &mut R,
        id: BucketId,
        bucket: Bucket,
        report: &mut dyn FnMut(Finding),
    ) {
        let counted = self.spaces.get(&bucket.space).copied();
        let counted = counted.unwrap_or(Bucket::empty(bucket.space));
        if counted != bucket {
            report(match bucket.keys.saturating_sub(counted.keys) {
                0 => {
                    Finding::derived(format!("bucket {}: {bucket:?} instead of {counted:?}", id.0))
                }
                lost => Finding::lost(format!("bucket {}: {lost} of {} keys", id.0, bucket.keys)),
            });
            rows.put_bucket(id, Some(counted));
        }
        let named = bucket_of(rows, bucket.space);
        if named != Some(id) && !(named.is_none() && is_first(id, bucket.space)) {
            report(Finding::derived(format!(
                "BucketOfSpace {}: it belongs to bucket {}",
                bucket.space.0, id.0
            )));
            put_bucket(rows, id, counted);
        }
    }

    /// Assigns a bucket to each space that has rows but no bucket: its former bucket, or a new one.
    fn unclaimed_spaces<R: KeyScan + KeyRowsMut>(
        &self,
        rows: &mut R,
        (taken, homeless): (&mut BTreeSet<Space>, &mut BTreeSet<BucketId>),
        report: &mut dyn FnMut(Finding),
    ) {
        for (space, bucket) in &self.spaces {
            let number = u64::from(space.0);
            if taken.contains(space) || is_listed(rows, SetTable::OrphanedSpaces, *space) {
                continue;
            }
            if is_listed(rows, SetTable::FreeSpaces, *space) {
                report(Finding::derived(format!(
                    "FreeSpaces {number}: it has rows, which are removed"
                )));
                rows.put_member(SetTable::OrphanedSpaces, 0, number, Some(0));
                continue;
            }
            // Use the recorded bucket of the space, unless that bucket has another space.
            let is_free = |id: &BucketId| homeless.contains(id) || rows.bucket(*id).is_none();
            let known = bucket_of(rows, *space).filter(is_free);
            let id = known.unwrap_or_else(|| new_bucket(rows));
            homeless.remove(&id);
            let text = format!(
                "{} keys in space {number}: the row of their bucket is lost; they are in bucket {}",
                bucket.keys, id.0
            );
            report(if known.is_some() { Finding::derived(text) } else { Finding::lost(text) });
            put_bucket(rows, id, *bucket);
            taken.insert(*space);
        }
    }

    fn totals<R: KeyScan + KeyRowsMut>(&self, rows: &mut R, report: &mut dyn FnMut(Finding)) -> At {
        let named = named_buckets(rows);
        for (id, _) in rows.buckets() {
            if id.0 >= u64::from(NUMBERED_BUCKETS) && !named.contains(&id) {
                let name = format!("recovered-{}", id.0);
                report(Finding::lost(format!(
                    "bucket {}: its name is lost; it is {name} now",
                    id.0
                )));
                rows.put_name(NameTable::Bucket, name.as_bytes(), Some(encode(&id)));
            }
        }
        let stored = rows.totals();
        let mut totals = stored;
        totals.keys_expiring = self.expiring;
        if self.last_stamp > 0 {
            totals.last_stamp = stored.last_stamp.max(Some(Stamp(self.last_stamp)));
        }
        if totals != stored {
            report(Finding::derived(format!("totals: {stored:?} instead of {totals:?}")));
            rows.put_totals(totals);
        }
        At::End
    }
}

/// Reports spaces that are listed as orphaned or free although a bucket uses them.
fn unused_spaces<R: KeyScan + KeyRowsMut>(
    rows: &mut R,
    taken: &BTreeSet<Space>,
    report: &mut dyn FnMut(Finding),
) {
    for table in [SetTable::OrphanedSpaces, SetTable::FreeSpaces] {
        let listed = rows.members(table, 0, rows::Span::ALL);
        for (number, _) in listed {
            let space = u32::try_from(number).map(Space);
            let is_orphaned = table == SetTable::FreeSpaces
                && rows.member(SetTable::OrphanedSpaces, 0, number).is_some();
            let is_free = space.is_ok_and(|space| {
                !taken.contains(&space)
                    && space.0 < rows.totals().spaces.saturating_add(NUMBERED_BUCKETS)
            });
            if !is_free || is_orphaned {
                report(Finding::derived(format!("{table:?} {number}: the space is in use")));
                rows.put_member(table, 0, number, None);
            }
        }
    }
}

/// Whether the space of a bucket is wrong: the space is listed as unused, or the bucket looks as if its row were lost
/// and the space belongs to another bucket.
fn is_elsewhere<R: KeyScan>(rows: &R, id: BucketId, bucket: Bucket) -> bool {
    let is_default = bucket == Bucket::empty(bucket.space) && is_first(id, bucket.space);
    is_listed(rows, SetTable::OrphanedSpaces, bucket.space)
        || is_listed(rows, SetTable::FreeSpaces, bucket.space)
        || (is_default && bucket_of(rows, bucket.space).is_some_and(|other| other != id))
}

/// Whether a space is the initial space of a numbered bucket.
fn is_first(id: BucketId, space: Space) -> bool {
    id.0 == u64::from(space.0) && id.0 < u64::from(NUMBERED_BUCKETS)
}

fn is_listed<R: KeyScan>(rows: &R, table: SetTable, space: Space) -> bool {
    rows.member(table, 0, space.0.into()).is_some()
}

/// Recorded bucket of a space.
fn bucket_of<R: KeyScan>(rows: &R, space: Space) -> Option<BucketId> {
    rows.point(PointTable::BucketOfSpace, space.0.into()).and_then(|row| try_decode(&row))
}

/// Checks names of buckets: each must belong to an existing bucket.
fn names<R: KeyScan + KeyRowsMut>(
    rows: &mut R,
    from: &[u8],
    report: &mut dyn FnMut(Finding),
) -> At {
    let names = rows.first_names(NameTable::Bucket, from, STEP_ROWS);
    for name in &names {
        let id = rows.name(NameTable::Bucket, name).and_then(|row| try_decode::<BucketId>(&row));
        let parsed = std::str::from_utf8(name).ok().and_then(BucketName::parse);
        let is_name = parsed.is_some_and(|name| name.numbered().is_none());
        if !is_name || id.is_none_or(|id| rows.bucket(id).is_none()) {
            report(Finding::lost(format!(
                "bucket {}: its row and its keys are lost",
                name.escape_ascii()
            )));
            rows.put_name(NameTable::Bucket, name, None);
        }
    }
    match names.last().filter(|_| names.len() >= STEP_ROWS) {
        Some(last) => At::Names([last.as_slice(), &[0]].concat()),
        None => At::Totals,
    }
}

fn named_buckets<R: KeyScan>(rows: &R) -> BTreeSet<BucketId> {
    let (mut from, mut named) = (Vec::new(), BTreeSet::new());
    while let Some((name, id)) = Facts::new(rows).first_bucket_from(&from) {
        named.insert(id);
        from = [name.as_str().as_bytes(), &[0]].concat();
    }
    named
}

fn new_space<R: KeyScan + KeyRowsMut>(rows: &mut R) -> Space {
    let mut totals = rows.totals();
    let space = Space(totals.spaces.saturating_add(NUMBERED_BUCKETS));
    totals.spaces += 1;
    rows.put_totals(totals);
    space
}

fn new_bucket<R: KeyScan + KeyRowsMut>(rows: &mut R) -> BucketId {
    let mut totals = rows.totals();
    let id = BucketId(totals.buckets_made + u64::from(NUMBERED_BUCKETS));
    totals.buckets_made += 1;
    rows.put_totals(totals);
    id
}

fn put_bucket<R: KeyScan + KeyRowsMut>(rows: &mut R, id: BucketId, bucket: Bucket) {
    let mut totals = rows.totals();
    let made = (id.0 + 1).saturating_sub(NUMBERED_BUCKETS.into());
    if totals.buckets_made < made {
        totals.buckets_made = made;
        rows.put_totals(totals);
    }
    rows.put_point(PointTable::BucketOfSpace, bucket.space.0.into(), Some(encode(&id)));
    rows.put_bucket(id, Some(bucket));
}
