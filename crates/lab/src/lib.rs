//! Experiments that measure which concurrency design scales. The same workload drives several designs of the same
//! system, and their answers must be equal.
//!
//! - A **design** (for example `keys/central.rs`) is written to be read. Its actors are tasks with mailboxes (`actor`).
//! - An [`Experiment`] has a question, designs, parameters, and a plain model that computes the right answers.
//! - A [`trial`] measures one design once, in its own process.
//! - A [`run`] makes the trials of a plan, and stores the raw data ([`record`]).
//! - A [`report`] draws conclusions from the raw data. [`values`] computes the compared quantities, with the statistics
//!   of the crate `stats`.
//!
//! Read `experiment`, `keys/mod.rs`, `trial`, `plan`, `runner`, then `values` and `report/mod.rs`. The folder `peers`
//! has the same designs in Erlang and Java.
//!
//! **Invariant:** all designs of an experiment give the answers of a plain model, or the trial does not count.
//! **Invariant:** the next trial depends only on the settings and the raw data, so an interrupted run can be continued.
//! **Invariant:** a report is a pure function of raw data.
//! **Invariant:** the engine is used only through its public interface.

mod actor;
mod answers;
mod calibration;
mod engine;
mod environment;
mod experiment;
mod feed;
mod keys;
mod launch;
mod measured;
mod parameters;
mod peer;
mod plan;
mod recognizer;
pub mod record;
pub mod report;
mod runner;
mod server;
mod settings;
mod simulator;
mod stories;
pub mod threads;
pub mod trial;
pub mod values;

pub use environment::Environment;
pub use experiment::{Combine, DesignInfo, EXPERIMENTS, Experiment, Parameter, Quantity, THREADS};
pub use launch::Processes;
pub use measured::Measured;
pub use parameters::Parameters;
pub use recognizer::port::serve as serve_port;
pub use runner::{End, Launch, Progress, RunError, run};
pub use settings::{Cell, REPEATS_MAX, Scale, Settings, Skipped, TRIALS_MAX, TRIALS_MIN};
