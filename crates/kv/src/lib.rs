//! Rules of buckets: named maps of keys to values. [`KeyRow`] is a key in memory, [`KeyOp`] an operation on keys,
//! [`KeyOps`] a sequence of operations as the log stores it. [`apply()`] applies them to rows through [`KeyRows`] and
//! [`rows::Rows`].
//!
//! Everything here is a plain sequential function of its arguments: the same operations with the same stamps always
//! make the same rows.
//!
//! The keys of a bucket are in its **space**. Emptying a bucket gives it another, empty space, and swapping two buckets
//! exchanges their spaces: both take no longer for a million keys than for one. Sweeps remove the rows of a space
//! without a bucket; then the space can be used again.
//!
//! Keys are walked in a secret order chosen by the store, not in alphabetical order. A walk continues from a number
//! (the cursor), even if keys were added or removed meanwhile, and returns every key that exists during the whole walk
//! exactly once. As the order is secret, clients cannot construct colliding keys.
//!
//! **Invariant:** the rules use no clock, no randomness, no I/O and no lock, and no data of users and posts.
//! **Invariant:** each operation has a unique stamp, which is the version of the keys that it changed.
//! **Invariant:** no result of a change depends on the order of keys, nor on which rows are in memory.
//!
//! Read `op`, `row`, `key_rows`, then `apply/mod.rs`.

mod answer;
mod apply;
mod bucket;
mod cost;
mod facts;
mod key_rows;
pub mod limits;
mod mend;
mod op;
mod ops;
mod row;
pub mod write;

pub use answer::{KeyAnswer, KeyRefusal};
pub use apply::{Between, apply, is_float};
pub use bucket::{Bucket, BucketId, BucketName, Space};
pub use cost::Lengths;
pub use facts::{Facts, Txn};
pub use key_rows::{CURSOR_STEP, KeyRows, KeyRowsMut, KeyScan, WalkLimit};
pub use mend::Mend;
pub use op::{Expiry, KeyOp, Only, OnlyExpiry, Watched, is_possible_key};
pub use ops::{KeyOps, OpPlace};
pub use row::{KeyParts, KeyRow};
pub use rows::{RefusalClass, Stamp};
pub use serde_bytes::Bytes;
