//! Redis edge: access to buckets with RESP2 and RESP3.
//!
//! `SELECT n` selects a numbered bucket, and `BUCKET USE name` a named one. All values are strings. Clients compare
//! replies, error texts and the order of checks, so these are as in Redis 7.0.
//!
//! - [`serve()`] accepts connections and distributes them to threads. `connection` reads and writes bytes and finds
//!   commands. `client` executes them; `changes` executes those that change keys, `exec` transactions.
//! - `table` has the commands by family: `strings`, `values`, `keys`, `expiry`, `scan`, `connection_commands`,
//!   `server`, `transactions`, `buckets`.
//! - `batch` submits the changes of all connections of a thread together.
//! - `memory` reserves the buffers that clients fill, in one budget for all clients.
//!
//! Read `serve`, `connection`, `session`, `client`, `command`, `table`, `changes`, `batch`, then `exec` and `reader`.
//! Comments of commands repeat their syntax on purpose.
//!
//! The edge stores no keys. **Invariants:** A long change is submitted separately from those of other clients. The
//! reply to a change is written after the node has answered. Code that may wait for a disk or take long does not run on
//! a thread of connections. Every buffer that a client can fill is reserved in the budget before it grows.

mod about_commands;
mod batch;
mod buckets;
mod changes;
mod client;
mod command;
mod config;
mod connection;
mod connection_commands;
#[cfg(test)]
mod connection_tests;
mod dump;
mod exec;
mod expiry;
mod failure;
mod glob;
mod info;
mod keys;
mod lcs;
mod memory;
mod metrics;
mod numbers;
mod patience;
mod reader;
mod registry;
mod scan;
mod scopes;
mod serve;
mod server;
mod session;
mod strings;
mod syntax;
mod table;
mod transactions;
#[cfg(test)]
mod turn_tests;
mod values;

pub use metrics::RedisMetrics;
pub use serve::{RedisOptions, serve};
