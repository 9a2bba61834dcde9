//! Facts on disk: a materialised view of the log, written behind.
//!
//! A change lands in an **overlay** in memory. A **checkpoint** freezes the overlay, sorts it and
//! hands it to fjall as one ingestion into one keyspace: everything up to one position of the log
//! becomes durable at once, or nothing does. Rows of ephemeral tables go into a keyspace of their own
//! just before, so that [`Store::erase`] can rid the disk of removed ones; after a crash they may be
//! ahead of the facts by one checkpoint, which the rules allow for. Reads ask the active overlay, then the frozen one while
//! a checkpoint is under way, then the disk, and never wait for a checkpoint to be prepared.
//!
//! The log owns the truth. Losing the overlay costs a replay from the position that
//! [`Store::open`] returns, never data.
//!
//! **Invariants:** one [`StoreWriter`] changes rows; at most one [`Checkpoint`] exists; a row in a
//! higher layer hides the same row below it; nothing is written through fjall's journal.

mod buckets;
mod checkpoint;
mod disk;
mod error;
mod hash;
mod head;
mod items;
mod key_table;
mod layout;
mod merge;
mod migrate;
mod overlay;
mod owners;
mod prefetch;
mod resident;
mod store;
mod writer;

pub use checkpoint::{Checkpoint, CheckpointStats};
pub use error::{StoreError, fatal};
pub use store::{Store, StoreOptions};
pub use writer::StoreWriter;

/// The format that this code writes, and the newest it reads.
///
/// Version 1 knew no friends and no stories: it has no ephemeral rows, its totals end before theirs,
/// and counts have 12 bytes.
///
/// Version 2 knew no samples and no buckets: its totals end before what was added for buckets.
///
/// Version 3 ordered keys by a hash that everybody could compute. A store of version 1 to 3 is rewritten
/// when it is opened.
///
/// Version 4 knew no replies to a post: it has no rows of them, and posts end after whom they mention. Its
/// rows are those of version 5; the first checkpoint makes it one.
pub const FORMAT_VERSION: u32 = 5;
