//! Tests of the real binary from end to end. Every test starts `roost` as a process on a free port with a temporary
//! directory, sends requests as users do, and ends it as operators do.
//!
//! No test sleeps. Tests wait for output, a response, words on a screen or an exit. The timeout of these waits
//! ([`support::PATIENCE`]) is reached only if the program hangs.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here is the test")]

mod ab;
mod accounts;
mod archive;
mod backup;
mod change_feed;
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
mod webhooks;
mod worst_cases;
