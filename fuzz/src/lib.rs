//! Fuzz targets: each is a function of any bytes that must neither panic nor give an answer that contradicts
//! another one. `tests/replay.rs` gives them the inputs in `corpus/` with every test run; `runner/` is the
//! program that looks for new ones (`cargo xtask fuzz TARGET`).
//!
//! State: the servers of [`http`] and [`redis`], one for all inputs.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here is the test")]

// Parts of the binary and of the Redis server that are private there, under the paths that they expect.
#[allow(dead_code, reason = "parts of a program")]
#[path = "../../crates/roost/src/address.rs"]
mod address;
#[allow(dead_code, reason = "parts of a program")]
#[path = "../../crates/redis/src/glob.rs"]
mod glob;
#[allow(dead_code, reason = "parts of a program")]
#[path = "../../crates/roost/src/logging.rs"]
mod logging;
#[allow(dead_code, reason = "parts of a program")]
#[path = "../../crates/roost/src/memory.rs"]
mod memory;
#[allow(dead_code, reason = "parts of a program")]
#[path = "../../crates/roost/src/settings.rs"]
mod settings;

mod config;
mod drawings;
mod failure;
mod globs;
mod http;
mod log;
mod redis;
mod resp;
mod rows;
mod server;

/// A function of any bytes.
pub type Target = fn(&[u8]);

/// All targets, by name; their inputs are in the folder of that name in `corpus/`.
pub const TARGETS: [(&str, Target); 9] = [
    ("batch", http::batch),
    ("config", config::file),
    ("drawings", drawings::image),
    ("globs", globs::pattern),
    ("http", http::request),
    ("log", log::recovery),
    ("redis", redis::commands),
    ("resp", resp::pieces),
    ("rows", rows::decode),
];

/// The target of this name.
#[must_use]
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().find(|(known, _)| *known == name).map(|(_, target)| *target)
}
