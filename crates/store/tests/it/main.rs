//! Tests of the public interface of `store`, in one binary: linking each file takes longer than most tests.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod costs;
mod crash;
mod erase;
mod fence;
mod format;
mod layers;
mod model;
mod revisions;
mod sections;
mod snapshot;
mod sweep;
mod tags_size;
