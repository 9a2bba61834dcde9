//! What the servers of all protocols share: who may call, accepting connections, bounded reads that may
//! block, files that are ready to be sent, and what clients may write into the log.
//!
//! **Invariant:** nothing here knows a protocol or the node.

mod accept;
mod access;
pub mod etag;
mod file;
mod line_gate;
pub mod process;
mod reads;

pub use accept::accept;
pub use access::{Access, Grant, KeyHash, KeySet, Scope, Scopes};
pub use file::{FileSource, Lookup, StaticFile};
pub use line_gate::LineGate;
pub use reads::{Abandoned, BlockingReads, Length, ReadError};
