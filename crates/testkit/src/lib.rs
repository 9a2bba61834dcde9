//! What the tests of several crates share. No product depends on it.

mod memory_rows;

pub use memory_rows::MemoryRows;
