//! Code shared by the tests of several crates, by `bench` and by `dst`. No product depends on it.
//!
//! A failed expectation panics, because its callers are tests.
//!
//! `disk` and `server` are features, so that tests of small crates build neither the log nor tokio.
//!
//! Similar code exists elsewhere on purpose: `powerloss` works with any process and uses no other crate of this
//! repository; the child servers of `roost/src/running.rs` belong to the product and those of `bench/src/rig.rs` are
//! asynchronous; `edge/src/process.rs` and `sim/src/generator.rs` read the memory of their own process; models for one
//! test are next to it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here is the test")]

mod decoder;
#[cfg(feature = "disk")]
pub mod disk;
pub mod events;
pub mod files;
pub mod http;
pub mod machine;
mod memory_rows;
pub mod nats;
mod picture;
pub mod proc;
pub mod process;
mod random;
pub mod redis;
mod reply;
#[cfg(feature = "server")]
pub mod server;

use std::io::Write as _;
use std::time::Duration;

pub use decoder::{DecodeError, Decoder, ReplyLimits};
pub use memory_rows::MemoryRows;
pub use picture::gif;
pub use random::Random;
pub use reply::Reply;

/// Timeout of every wait in the tests, reached only if something hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Reports a skipped test and the reason. A failure in CI, which sets `ROOST_NO_SKIP`.
pub fn skipped(what: &str) {
    assert!(std::env::var_os("ROOST_NO_SKIP").is_none(), "tests must not be skipped here: {what}");
    // The output of print macros is hidden for a test that passes.
    std::io::stderr().write_all(format!("SKIPPED: {what}\n").as_bytes()).unwrap();
}
