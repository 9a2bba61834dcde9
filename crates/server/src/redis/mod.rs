//! The Redis edge: buckets for every client that speaks RESP2 or RESP3.
//!
//! A numbered bucket is what `SELECT n` selects, a named one what `BUCKET USE name` does. What Redis's
//! clients match on (replies, error texts, the order of checks) is that of Redis 7.0; values are
//! strings only.
//!
//! - [`serve()`] accepts connections and deals them to threads; `connection` moves bytes and finds
//!   commands; `client` carries them out.
//! - `table` is made of the families `strings`, `values`, `keys`, `expiry`, `scan`, `connection_commands`,
//!   `server`, `transactions`, `buckets`.
//! - `batch` brings the changes of a thread's connections to the node together.
//!
//! The edge owns no key. **Invariants:** a reply to a change is written after the node has answered;
//! reads wait for nothing but a disk, and not on a thread of connections; nothing grows with what a
//! client leaves unread.

mod about_commands;
mod batch;
mod buckets;
mod client;
mod command;
mod config;
mod connection;
mod connection_commands;
mod dump;
mod expiry;
mod failure;
mod glob;
mod info;
mod keys;
mod lcs;
mod metrics;
mod numbers;
mod reader;
mod registry;
mod scan;
mod serve;
mod server;
mod strings;
mod table;
mod transactions;
mod values;

pub use metrics::RedisMetrics;
pub use serve::serve;
