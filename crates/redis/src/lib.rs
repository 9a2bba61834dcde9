//! The Redis edge: access to buckets by RESP2 and RESP3.
//!
//! A numbered bucket is what `SELECT n` selects, a named one what `BUCKET USE name` does. What Redis's
//! clients match on (replies, error texts, the order of checks) is that of Redis 7.0; values are
//! strings only.
//!
//! - [`serve()`] accepts connections and deals them to threads; `connection` moves bytes and finds
//!   commands; `client` carries them out, `changes` what changes keys, `exec` transactions.
//! - `table` is made of the families `strings`, `values`, `keys`, `expiry`, `scan`, `connection_commands`,
//!   `server`, `transactions`, `buckets`.
//! - `batch` brings the changes of a thread's connections to the node together.
//! - `memory` reserves what clients fill, in one budget for all of them.
//!
//! The edge owns no key. **Invariants:** a reply to a change is written after the node has answered;
//! what may wait for a disk or take long does not run on a thread of connections; every buffer that a
//! client can fill is reserved in the budget before it grows.

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
