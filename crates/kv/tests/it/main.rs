//! Tests of `kv` through its public items, in one binary: linking each file takes longer than most tests.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod keys;
mod mend;
