//! Tests of the public interface of `stats`, in one binary: linking each file takes longer than most tests.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod coverage;
mod reference;
