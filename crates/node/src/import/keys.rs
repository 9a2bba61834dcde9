//! Import of buckets and their keys.

use hashbrown::HashMap;
use kv::limits::{BUCKETS_MAX, NUMBERED_BUCKETS, VALUE_BYTES_MAX};
use kv::{
    Bucket, BucketId, BucketName, KeyParts, KeyRefusal, KeyRow, Space, is_possible_key, write,
};
use rows::Totals;
use store::Loader;

use super::Wrong;
use super::ids::Ids;
use crate::export::bytes::from_text;
use crate::export::lines::{Bucket as BucketLine, Key};

/// Buckets that were read, in memory. Each has a space with its number.
pub(super) struct Buckets {
    ids: HashMap<BucketName, BucketId>,
    buckets: Vec<Bucket>,
    keys_expiring: u64,
}

impl Buckets {
    pub(super) fn new() -> Self {
        let buckets = (0..NUMBERED_BUCKETS).map(|number| Bucket::empty(Space(number)));
        Self { ids: HashMap::new(), buckets: buckets.collect(), keys_expiring: 0 }
    }

    pub(super) fn add(&mut self, loader: &mut Loader, line: &BucketLine<'_>) -> Result<(), Wrong> {
        let name = parse(&line.name)?;
        if name.numbered().is_some() || self.ids.contains_key(&name) {
            return Err("this bucket exists already".into());
        }
        if self.buckets.len() >= BUCKETS_MAX {
            return Err(KeyRefusal::TooManyBuckets.into());
        }
        let number = self.buckets.len();
        let (id, space) = (BucketId(number as u64), Space(number as u32));
        write::bucket_name(loader, &name, Some(id));
        write::bucket_of_space(loader, space, Some(id));
        self.ids.insert(name, id);
        self.buckets.push(Bucket::empty(space));
        Ok(())
    }

    pub(super) fn add_key(
        &mut self,
        loader: &mut Loader,
        ids: &mut Ids,
        line: Key<'_>,
    ) -> Result<(), Wrong> {
        let name = parse(&line.bucket)?;
        let id = name.numbered().or_else(|| self.ids.get(&name).copied());
        let bucket = id.and_then(|id| self.buckets.get_mut(usize::try_from(id.0).ok()?));
        let bucket = bucket.ok_or("no earlier line has this bucket")?;
        let key = from_text(line.key, line.key_base64);
        let key = key.ok_or("exactly one of key and key_base64, in base64, is required")?;
        let value = from_text(line.value, line.value_base64);
        let value = value.ok_or("exactly one of value and value_base64, in base64, is required")?;
        if !is_possible_key(&key) {
            return Err(KeyRefusal::BadKey.into());
        }
        if value.len() > VALUE_BYTES_MAX {
            return Err(KeyRefusal::TooLong.into());
        }
        let version = match line.version {
            Some(version) => ids.used(version)?,
            None => ids.at_or_now(None)?,
        };
        let (space, expires_ms) = (bucket.space, line.expires.map(|time| time.0));
        let row = KeyRow::new(KeyParts { space, key: &key, value: &value, expires_ms, version });
        bucket.keys += 1;
        bucket.bytes += row.data_bytes();
        if let Some(expires_ms) = expires_ms {
            self.keys_expiring += 1;
            bucket.count_expiry(expires_ms);
            write::key_expiry(loader, expires_ms, (space, &key), true);
        }
        loader.put_key(&row);
        Ok(())
    }

    /// Writes the buckets and the counts.
    pub(super) fn finish(self, loader: &mut Loader, totals: &mut Totals) {
        let made = self.buckets.len() as u64 - u64::from(NUMBERED_BUCKETS);
        for (id, bucket) in (0..).map(BucketId).zip(self.buckets) {
            loader.put_bucket(id, bucket);
        }
        totals.buckets_made = made;
        totals.spaces = made as u32;
        totals.keys_expiring = self.keys_expiring;
    }
}

fn parse(name: &str) -> Result<BucketName, Wrong> {
    let name = BucketName::parse(name);
    name.ok_or_else(|| "a bucket must have a name of 1 to 64 of a-z, A-Z, 0-9, _ and -".into())
}
