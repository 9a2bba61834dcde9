//! Facts on disk: a materialized view of the log, written asynchronously.
//!
//! A change is written to an **overlay** in memory. A **checkpoint** freezes the overlay, sorts it and passes it to
//! fjall as one ingestion into one keyspace, so that everything up to a position of the log becomes durable at once, or
//! nothing does. Rows of ephemeral tables go into a separate keyspace just before, so that [`Store::erase`] can erase
//! removed rows from the disk. After a crash, they may be newer than the facts by one checkpoint, which the rules
//! allow. Reads look into the active overlay, then (while a checkpoint runs) into the frozen one, then at the disk.
//! They never wait for a checkpoint.
//!
//! The log is the source of truth. If the overlay is lost, no data is lost: the log is replayed from the position that
//! [`Store::open`] returns.
//!
//! **Invariants:** One [`StoreWriter`] changes rows. At most one [`Checkpoint`] exists. A row in a higher layer hides
//! the same row in lower layers. Nothing is written to fjall's journal.
//! **Invariant:** a read of a damaged row returns no error but unwinds its thread with [`Unreadable`]. In a request,
//! the caller converts this to an error response; in the writer, it ends the process.
//! **Invariant:** this crate does not use tokio. Keys are ordered by a secret hash (`hash`), so clients cannot
//! construct keys that collide.
//!
//! Read `shared`, `open`, `store`, `writer`, `overlay`, `merge`, `checkpoint`, then `disk`. For packed sets, read
//! `packed`, `owners`, `sets` and `fold`; for keys of buckets, `key_table`, `resident` and `bucket_keys`. `verify` and
//! `salvage` read damaged stores, and `load` creates new ones.

mod bucket_keys;
mod buckets;
mod checkpoint;
mod count;
mod counts;
mod describe;
mod disk;
mod error;
mod flipped;
mod fold;
mod hash;
mod head;
mod items;
mod key_table;
mod keyspace;
mod layout;
mod load;
mod manifest;
#[cfg(feature = "simulation")]
mod memory;
#[cfg(feature = "simulation")]
mod memory_rows;
mod merge;
mod open;
mod overlay;
mod owners;
mod pack;
mod packed;
mod prefetch;
mod resident;
mod revisions;
mod salvage;
mod scan;
mod sections;
mod sets;
mod shared;
mod snapshot;
mod sort;
mod store;
mod table_check;
mod undo;
mod verify;
mod writer;

pub use checkpoint::{Checkpoint, CheckpointStats};
pub use disk::damaged_table;
#[cfg(feature = "simulation")]
pub use error::panic_when_fatal;
pub use error::{StoreError, Unreadable, fatal, unless_unreadable, unreadable_reads};
pub use load::{EachSet, Loader};
#[cfg(feature = "simulation")]
pub use memory::{Gate, MemoryDisk};
#[cfg(feature = "simulation")]
pub use memory_rows::MemoryRow;
pub use open::StoreOptions;
pub use revisions::{Revision, RevisionsCopy};
pub use salvage::{Base, Hole, Salvage, Salvaged};
pub use shared::Store;
pub use snapshot::{EachRow, PutRow, Snapshot, restore};
pub use sort::{Merge, Record, SortedRow, Sorter};
pub use table_check::{TableCheck, TableStep};
pub use verify::{Counted, RowsReport, verify};
pub use writer::StoreWriter;

/// Format that this code writes; it is also the newest format that it reads. The feature `next-format` simulates a
/// build that adds a table and a field of the totals.
pub const FORMAT_VERSION: u32 = if cfg!(feature = "next-format") { 2 } else { 1 };
