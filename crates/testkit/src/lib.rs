//! Code shared by the tests of several crates, by `bench` and by `dst`. No product crate depends on it.
//!
//! Functions panic if an expectation is not met, because their callers are tests.
//!
//! The modules `disk` and `server` are features, so that tests of small crates do not build the log and tokio.
//!
//! Some code elsewhere is similar on purpose. `powerloss` works with any process and uses no other crate of this
//! repository. The child servers of `roost/src/running.rs` belong to the product, and those of `bench/src/rig.rs` are
//! asynchronous. `edge/src/process.rs` and `sim/src/generator.rs` read the memory of their own process. A model that
//! only one test needs is in the same crate as the test.

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

/// Maximum duration of every wait in the tests. It is reached only if something hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Reports a skipped test and the reason. In CI, which sets `ROOST_NO_SKIP`, a skipped test is a failure.
pub fn skipped(what: &str) {
    assert!(std::env::var_os("ROOST_NO_SKIP").is_none(), "tests must not be skipped here: {what}");
    // Write to the stream directly: a passing test does not show the output of print macros.
    std::io::stderr().write_all(format!("SKIPPED: {what}\n").as_bytes()).unwrap();
}
