//! Fuzz target of rows of the store and entries of the log: bytes are refused, or decode to a value that survives
//! encoding and decoding.

use std::fmt::Debug;

use feed::{Request, Sample, SampleSet, Story, User};
use kv::{Bucket, KeyOps};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Input: a byte for the kind of record, then its bytes.
pub fn rows(data: &[u8]) {
    let Some((kind, bytes)) = data.split_first() else { return };
    match kind % 7 {
        0 => check::<User>(bytes),
        1 => check::<feed::Post>(bytes),
        2 => check::<Story>(bytes),
        3 => check::<Sample>(bytes),
        4 => check::<SampleSet>(bytes),
        5 => check::<Request>(bytes),
        _ => {
            check::<KeyOps>(bytes);
            let _bucket = Bucket::decode(bytes);
        }
    }
}

fn check<T: Serialize + DeserializeOwned + Debug>(bytes: &[u8]) {
    let Ok(value) = postcard::from_bytes::<T>(bytes) else { return };
    let written = postcard::to_allocvec(&value).unwrap();
    let again: T = postcard::from_bytes(&written).unwrap();
    assert_eq!(format!("{again:?}"), format!("{value:?}"));
}
