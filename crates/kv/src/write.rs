//! Writes of buckets and expiries as rows of tables, without reading rows. Used by operations and imports.

use rows::{NameTable, PointTable, PutRows, encode};

use crate::bucket::{BucketId, BucketName, Space};

/// Adds the expiry of a key of `space`, in milliseconds since 1970, or removes it if `expires` is false.
pub fn key_expiry(
    rows: &mut (impl PutRows + ?Sized),
    expires_ms: u64,
    (space, key): (Space, &[u8]),
    expires: bool,
) {
    let name = expiry_name(expires_ms, space, key);
    rows.put_name(NameTable::KeyExpiry, &name, expires.then(rows::Value::new));
}

/// Sets the bucket of a space; `None` if it has none.
pub fn bucket_of_space(rows: &mut (impl PutRows + ?Sized), space: Space, bucket: Option<BucketId>) {
    let row = bucket.map(|bucket| encode(&bucket));
    rows.put_point(PointTable::BucketOfSpace, space.0.into(), row);
}

/// Sets the bucket with a name; `None` if the name is free.
pub fn bucket_name(
    rows: &mut (impl PutRows + ?Sized),
    name: &BucketName,
    bucket: Option<BucketId>,
) {
    let row = bucket.map(|bucket| encode(&bucket));
    rows.put_name(NameTable::Bucket, name.as_str().as_bytes(), row);
}

/// Name of the row of an expiry.
pub(crate) fn expiry_name(expires_ms: u64, space: Space, key: &[u8]) -> Vec<u8> {
    [&expires_ms.to_be_bytes()[..], &space.0.to_be_bytes(), key].concat()
}
