//! A roost node without its edges: one log, one writer, many readers.
//!
//! - The writer thread takes what waits in the inbox, costs it, logs it (`commitlog`), applies it to the
//!   store's rows by the rules of `feed`, and publishes the effects. What it decides is a function,
//!   `applier`.
//! - The views (home timelines, rendered posts, newest posts by author, samples) consume the effects.
//! - The sweeper has dead stories removed, and erased from the disk.
//! - Reads go to the views and to the store, never through the writer.
//!
//! **Invariant:** there is no second path to a change than [`Node::submit`] and its siblings.

mod applier;
mod budget;
mod checkpoints;
mod clock;
mod context;
mod deliverer;
mod entry;
mod fatal;
mod inbox;
mod keys;
mod metrics;
mod node;
mod options;
mod render;
mod samples;
mod shared;
mod submission;
mod sweeper;
mod threads;
mod views;
mod writer;

pub use budget::{MemoryBudget, Reservation};
pub use clock::Clock;
pub use feed::Request;
pub use inbox::SubmitError;
pub use keys::{Found, Keys, SnapshotLock};
pub use metrics::Metrics;
pub use node::{Node, OpenError, PageEnds, SUBMISSION_COMMANDS_MAX, Sizes, Watch};
pub use options::{Durability, FIXED_MEMORY, NodeOptions, SAMPLE_MEMORY_MIN};
pub use samples::TooManySnapshots;
pub use submission::{KeyReplies, READ_BYTES_MAX, ReadAt, ReadRows};
pub use views::{Change, ViewSizes};
