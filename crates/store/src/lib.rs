//! Facts on disk: a materialized view of the log, written asynchronously.
//!
//! A change is written to an **overlay** in memory. A **checkpoint** freezes the overlay, sorts it and
//! passes it to fjall as one ingestion into one keyspace: everything up to one position of the log
//! becomes durable at once, or nothing does. Rows of ephemeral tables go into a separate keyspace
//! just before, so that [`Store::erase`] can erase removed ones from the disk; after a crash they may be
//! newer than the facts by one checkpoint, which the rules allow. Reads look into the active overlay, then
//! into the frozen one while a checkpoint runs, then at the disk, and never wait for a checkpoint.
//!
//! The log is the source of truth. Losing the overlay costs a replay from the position that
//! [`Store::open`] returns, never data.
//!
//! **Invariants:** one [`StoreWriter`] changes rows; at most one [`Checkpoint`] exists; a row in a
//! higher layer hides the same row below it; nothing is written through fjall's journal.

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
mod migrate;
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
pub use revisions::RevisionsCopy;
pub use salvage::{Base, Hole, Salvage, Salvaged};
pub use shared::Store;
pub use snapshot::{EachRow, PutRow, Snapshot, restore};
pub use sort::{Merge, Record, SortedRow, Sorter};
pub use table_check::{TableCheck, TableStep};
pub use verify::{Counted, RowsReport, verify};
pub use writer::StoreWriter;

/// The format that this code writes, and the newest it reads.
///
/// Version 1 has no friends and no stories: it has no ephemeral rows, its totals end before theirs,
/// and counts have 12 bytes.
///
/// Version 2 has no samples and no buckets: its totals end before the fields of buckets.
///
/// Version 3 orders keys by a hash with a public seed. A store of version 1 to 3 is rewritten
/// when it is opened.
///
/// Version 4 has no replies to a post: it has no rows of them, and posts end after the mentions.
///
/// Version 5 has no deleted users: its totals end before their fields. Its rows are those of version 6.
///
/// Version 6 has no packed sets: one row per item, and one bit per owner. Its buckets do not count their expiring keys.
/// A store of version 4 to 6 is rewritten when it is opened.
///
/// Version 7 has no accounts, blocks and mutes: its totals end before theirs, and counts have 16 bytes. Its rows are those
/// of version 8.
///
/// Version 8 has no visibility, warning and language of posts, and no reactions and notifications. Version 9 has no
/// settings of users, whose rows end after the time of registration, and no markers,
/// notes and requests to follow; counts have at most 24 bytes. Version 10 has no rows of hashtags. Version 11 has
/// no rows of lists. Version 12 has no pictures. Version 13 has no filters and no followed hashtags.
/// Version 14 has no polls and no scheduled posts. Version 15 has no earlier versions of posts.
/// Version 16 has no options of follows and no muted threads, and replies do not name the first post of their thread.
/// Version 17 has no rows of boosts by their time, and counts do not say how many posts are not for everybody, nor totals
/// that, how many accounts are disabled, and how often users were hidden. It has no rows of posts in
/// lists and in conversations: `roost repair` adds them.
/// Version 18 has no rows of replies that everybody may see, which are counted, and totals do not say how many accounts wait
/// for approval: `roost repair` adds both.
pub const FORMAT_VERSION: u32 = 19;
