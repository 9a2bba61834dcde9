//! The Redis edge with a real socket and a real node. Each group of commands has a file.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here is the test")]

mod access;
mod bad_input;
mod buckets;
mod client;
mod connection;
mod expiry;
mod keys;
mod model;
mod strings;
mod transactions;
mod worst_cases;
