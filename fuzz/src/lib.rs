//! Fuzz targets: each is a function of any bytes that must neither panic nor return contradicting results.
//! `tests/replay.rs` runs them on the inputs in `corpus/` in every test run; `runner/` is the program that searches for
//! new inputs (`cargo xtask fuzz TARGET`).
//!
//! State: the servers of `http`, `mastodon` and `redis`, one for all inputs.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here is the test")]

// Private parts of the binary and of the Redis server, under the paths that they expect.
#[allow(dead_code, reason = "parts of a program")]
#[path = "../../crates/roost/src/address.rs"]
mod address;
#[allow(dead_code, reason = "parts of a program")]
#[path = "../../crates/redis/src/glob.rs"]
mod glob;
#[allow(dead_code, reason = "parts of a program")]
#[path = "../../crates/roost/src/memory.rs"]
mod memory;
#[allow(dead_code, unused_imports, reason = "parts of a program")]
#[path = "../../crates/roost/src/settings.rs"]
mod settings;

mod config;
mod drawings;
mod failure;
mod globs;
mod http;
mod log;
mod mastodon;
mod redis;
mod resp;
mod rows;
mod server;

/// The targets. Each program of `runner/` uses one, so that it contains no code of the others: libFuzzer examines all
/// code after every input.
pub mod targets {
    pub use crate::config::config;
    pub use crate::drawings::drawings;
    pub use crate::globs::globs;
    pub use crate::http::{batch, http};
    pub use crate::log::log;
    pub use crate::mastodon::mastodon;
    pub use crate::redis::redis;
    pub use crate::resp::resp;
    pub use crate::rows::rows;
}

/// A function of any bytes.
pub type Target = fn(&[u8]);

/// All targets, by name; their inputs are in the folder of that name in `corpus/`.
pub const TARGETS: [(&str, Target); 10] = [
    ("batch", targets::batch),
    ("config", targets::config),
    ("drawings", targets::drawings),
    ("globs", targets::globs),
    ("http", targets::http),
    ("log", targets::log),
    ("mastodon", targets::mastodon),
    ("redis", targets::redis),
    ("resp", targets::resp),
    ("rows", targets::rows),
];
