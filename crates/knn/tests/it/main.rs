//! Tests of the public interface of `knn`, in one binary: linking each file takes longer than most tests.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod bits;
mod drawings;
mod samples;
mod search;
