//! Tests of the public interface of `commitlog`, in one binary: linking each file takes longer than most tests.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod archive;
mod log;
mod reader;
mod salvage;
