//! Tests of the public interface of `node`, in one binary: linking each file takes longer than most tests.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod cluster;
mod damage;
mod due;
mod home;
mod keys;
mod repair;
mod samples;
mod stories;
mod support;
mod transfer;
mod uploads;
mod uploads_power;
