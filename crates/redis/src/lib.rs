//! Redis edge: access to buckets by RESP2 and RESP3.
//!
//! `SELECT n` selects a numbered bucket, `BUCKET USE name` a named one. Replies, error texts and the order of checks
//! are those of Redis 7.0, because clients match on them; values are strings only.
//!
//! - [`serve()`] accepts connections and distributes them to threads; `connection` reads and writes bytes and finds
//!   commands; `client` executes them, `changes` those that change keys, `exec` transactions.
//! - `table` has the families `strings`, `values`, `keys`, `expiry`, `scan`, `connection_commands`, `server`,
//!   `transactions`, `buckets`.
//! - `batch` submits the changes of a thread's connections to the node together.
//! - `memory` reserves the buffers that clients fill, in one budget for all clients.
//!
//! Read `serve`, `connection`, `session`, `client`, `command`, `table`, `changes`, `batch`, then `exec` and `reader`.
//! Descriptions of commands in the tables repeat their form on purpose.
//!
//! The edge owns no key. **Invariants:** a long change is submitted separately from those of other clients; the reply
//! to a change is written after the node has answered; code that may wait for a disk or take long does not run on a
//! thread of connections; every buffer that a client can fill is reserved in the budget before it grows.

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
