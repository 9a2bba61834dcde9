//! The rules of buckets: named maps of keys to values. [`KeyRow`] is a key as it is held in memory,
//! [`KeyOp`] what can be done to keys, [`KeyOps`] many of these as the log keeps them, and [`apply()`] what
//! they do to rows, which are reached through [`KeyRows`] and [`rows::Rows`].
//!
//! Everything here is a plain sequential function of its arguments: the same operations with the same
//! stamps make the same rows, always.
//!
//! A bucket's keys are in its **space**. Emptying a bucket gives it another, empty space, and swapping
//! two exchanges their spaces: both take no longer for a million keys than for one. The rows of a
//! space that no bucket has are removed piece by piece, and then the space is used again.
//!
//! Keys are walked in an order that is the store's own and secret, not that of the alphabet: a walk that
//! began before keys came and went goes on at a number, and meets every key that existed all the while
//! exactly once; and nobody can make keys that share a place.
//!
//! **Invariant:** no clock, no randomness, no I/O and no lock, and nothing of users and posts.

mod answer;
mod apply;
mod bucket;
mod cost;
mod facts;
mod key_rows;
pub mod limits;
mod op;
mod ops;
mod row;

pub use answer::{KeyAnswer, KeyRefusal};
pub use apply::{Between, apply};
pub use bucket::{Bucket, BucketId, BucketName, Space};
pub use cost::Lengths;
pub use facts::{Facts, Txn};
pub use key_rows::{KeyRows, KeyRowsMut, WalkLimit};
pub use op::{Expiry, KeyOp, Only, OnlyExpiry, Watched, is_possible_key};
pub use ops::{KeyOps, OpPlace};
pub use row::{KeyParts, KeyRow};
pub use rows::Stamp;
pub use serde_bytes::Bytes;
