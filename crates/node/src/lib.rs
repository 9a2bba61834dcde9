//! A roost node without its network protocols: one log, one writer, many readers.
//!
//! - The writer thread takes the submissions from the inbox, computes their cost, logs them (`commitlog`), applies them
//!   to the store's rows by the rules of `feed` and `kv`, and publishes the effects. Its decisions are made in
//!   `applier`, which uses no thread, clock or file.
//! - Effects update the views (home timelines, rendered posts, newest posts, samples) before the reply. Consumers
//!   (event streams) follow the effects later, from a position.
//! - The sweeper runs scheduled work and erases removed stories from the disk.
//! - The change feed (`changes`) is a log of what applied commands changed, for other systems.
//! - Reads go to the views and to the store, never through the writer.
//!
//! Each folder is one mechanism; the header of its `mod.rs` describes it and gives the reading order. Start with
//! `submission`, `applier`, `writer`, `views`, then `node`, which assembles them and contains the reads. Background
//! work is in `due`, `checkpoints`, `backup` (with the archive) and `scrub`; `shared` holds the state that all threads
//! share, `pictures` the files of pictures. `cluster` is for nodes that share a log. `directory` manages the other
//! files of the data directory; `recovery`, `export` and `import` are commands on a data directory.
//!
//! **Invariant:** only [`Node::submit`] and the other `submit` functions change a node. An import makes a directory
//! that no node has opened.
//! **Invariant:** no read queues after a write; reads and writes share only locks that are held briefly. Functions
//! whose names begin with `try_` do not wait for a disk.
//! **Invariant:** dependencies between files have no cycle; a folder counts as one file.
//! **Invariant:** this crate starts no async runtime: it uses tokio's channels and notifications only.

mod applier;
mod backup;
pub mod changes;
mod checkpoints;
mod clock;
mod cluster;
mod directory;
mod due;
mod export;
mod fatal;
mod import;
mod metrics;
pub mod news;
mod node;
mod options;
mod pictures;
mod progress;
mod recovery;
mod scrub;
mod secret;
mod shared;
mod submission;
mod threads;
mod views;
mod writer;

#[cfg(feature = "simulation")]
pub use applier::{TakenPart, seeded};
pub use backup::archive::{ArchiveReport, archive_stopped, is_archive, verify_archive};
pub use backup::last_backup::note_backup;
pub use backup::{Backup, NodeBackupError};
pub use clock::{Clock, ClockError};
pub use cluster::ClusterStatus;
pub use cluster::exchange::EXCHANGE_MEMORY;
pub use commitlog::{ARCHIVE_MEMORY, Applied, ClusterId, Log, LogError, NodeId, Position};
pub use directory::open_error::OpenError;
pub use export::counts::TransferCounts;
pub use export::lines::SetBack;
pub use export::{ExportError, export};
pub use feed::Request;
pub use import::{ImportError, import};
pub use metrics::Metrics;
pub use node::{
    FIXED_MEMORY, Node, RankedPage, RankedPlace, RankedPost, Reason, SUBMISSION_COMMANDS_MAX,
    Sizes, Watch,
};
#[cfg(feature = "simulation")]
pub use node::{Logged, PendingKeys, PendingRequests, SimulatedNode, SimulationError};
pub use options::{ArchiveOptions, Durability, NodeOptions};
pub use pictures::check::FilesReport;
pub use pictures::converter::{CONVERT, CONVERTER_ENVIRONMENT, CONVERTER_MEMORY};
pub use pictures::files::FileError;
pub use pictures::uploads::{UPLOAD_MEMORY, Upload, UploadError};
pub use pictures::{picture_file, picture_path};
pub use progress::OpenProgress;
pub use rank::{Feeds, FeedsError};
pub use recovery::cluster_dir::{init_cluster, leave_cluster, mark_member};
pub use recovery::repair::{RepairError, Repaired, repair};
pub use recovery::restore::{RestoreOptions, Restored, restore};
pub use recovery::verify::{DataReport, verify};
pub use rows::{Subject, is_of_rules};
pub use secret::Secret;
pub use store::{Store, Unreadable};
pub use submission::idempotency::IdempotencyKey;
pub use submission::inbox::SubmitError;
pub use submission::{KeyReplies, READ_BYTES_MAX, ReadAt, ReadRows};
pub use views::keys::{Found, Keys, SnapshotLock};
pub use views::samples::{SAMPLE_MEMORY_MIN, TooManySnapshots};
pub use views::{Change, Entity, EntityKey, Lost, MadeOf, UserNames, ViewSizes};
