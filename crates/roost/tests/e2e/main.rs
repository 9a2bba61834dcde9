//! The real binary from end to end: every test starts `roost` as its own process on a free port and a temporary
//! directory, sends requests like users do, and ends it like operators do.
//!
//! No test sleeps: they wait for output, a response, words on a screen or an exit, with a timeout
//! ([`support::PATIENCE`]) that is reached only if the program hangs.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here is the test")]

mod ab;
mod accounts;
mod archive;
mod backup;
mod clock;
mod cluster;
mod command_line;
mod crash;
mod damage;
mod dashboard;
mod deleted_users;
mod disk;
mod documents;
mod export;
mod failures;
mod generated;
mod graph;
mod lab;
mod live;
mod mastodon;
mod named_options;
mod outputs;
mod packaging;
mod pictures;
mod population;
mod power;
mod read_only;
mod recognize;
mod redis;
mod repair;
mod serve;
mod sessions;
mod simulate;
mod support;
mod threads;
mod tls;
mod upkeep;
mod worst_cases;
