//! Writes buckets and expiries as rows of tables, without reading any row, for operations and for an import alike.

use rows::{NameTable, PointTable, PutRows, encode};

use crate::bucket::{BucketId, BucketName, Space};

/// That a key of `space` expires, in milliseconds since 1970; or, without `expires`, that it does not.
pub fn key_expiry(
    rows: &mut (impl PutRows + ?Sized),
    expires_ms: u64,
    (space, key): (Space, &[u8]),
    expires: bool,
) {
    let name = expiry_name(expires_ms, space, key);
    rows.put_name(NameTable::KeyExpiry, &name, expires.then(rows::Value::new));
}

/// The bucket that has a space; `None` if no bucket has it.
pub fn bucket_of_space(rows: &mut (impl PutRows + ?Sized), space: Space, bucket: Option<BucketId>) {
    let row = bucket.map(|bucket| encode(&bucket));
    rows.put_point(PointTable::BucketOfSpace, space.0.into(), row);
}

/// The bucket that has a name; `None` if there is none any more.
pub fn bucket_name(
    rows: &mut (impl PutRows + ?Sized),
    name: &BucketName,
    bucket: Option<BucketId>,
) {
    let row = bucket.map(|bucket| encode(&bucket));
    rows.put_name(NameTable::Bucket, name.as_str().as_bytes(), row);
}

/// The name of the row of an expiry.
pub(crate) fn expiry_name(expires_ms: u64, space: Space, key: &[u8]) -> Vec<u8> {
    [&expires_ms.to_be_bytes()[..], &space.0.to_be_bytes(), key].concat()
}
