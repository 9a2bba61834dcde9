//! Code shared by the tests of several crates. No product depends on it.

mod memory_rows;
mod reply;

pub use memory_rows::MemoryRows;
pub use reply::{DecodeError, Decoder, ReplyLimits, Value};
