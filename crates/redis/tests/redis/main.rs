//! The Redis edge through a real socket, over a real node. One file per group of commands.

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
