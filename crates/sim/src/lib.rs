//! A load simulator for feed servers: it generates a population and its load, and sends the load with a small HTTP
//! client.
//!
//! Everything depends on a seed: the same seed makes the same users, follows, actions and texts. The crate uses only
//! HTTP and nothing of the server's code, so it can drive any server with the same routes.
//!
//! Read `population` (`plan`, `deal`, `steer`), `workload`, `scenario`, `api`, `client`, `run`, then `simulate` and
//! `capacity`; `feeds` evaluates ranked feeds. A [`watch::Watcher`] displays a run; `report` writes a page with `charts`.
//!
//! **Invariant:** follows are discarded after loading, and the memory of a watcher is bounded for runs of any length.

pub mod capacity;
pub mod client;
pub mod feeds;
pub mod hgrm;
pub mod population;
pub mod report;
pub mod simulate;
pub mod slo;
pub mod summary;
pub mod texts;
pub mod watch;
pub mod workload;

mod api;
mod generator;
mod joined;
mod options;
mod players;
mod progress;
mod run;
mod scenario;

pub use charts::units;
pub use options::{ApiOptions, Credential, Drive, MastodonOptions, SimulateOptions};
pub use population::Population;
pub use simulate::{SimError, Simulation, simulate};
pub use slo::{Measures, Slo};
pub use summary::Summary;
pub use workload::{Drawings, KeyLoad, StoryLoad, Ycsb};
