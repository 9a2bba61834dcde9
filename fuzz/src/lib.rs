//! Fuzz targets. Each is a function of any bytes, which must neither panic nor return contradicting results. Every test
//! run replays the inputs in `corpus/` (`tests/replay.rs`). The program in `runner/` searches for new inputs (`cargo
//! xtask fuzz TARGET`).
//!
//! State: one server for each of `http`, `mastodon` and `redis`, which all inputs share.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here is the test")]

// Private modules of the binary and of the Redis server, at the paths that they expect.
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

/// The targets. Each program of `runner/` uses only one, so that it does not contain the code of the others: after
/// every input, libFuzzer examines all code of the program.
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

/// Function of any bytes.
pub type Target = fn(&[u8]);

/// All targets by name. The inputs of a target are in the folder of that name in `corpus/`.
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
