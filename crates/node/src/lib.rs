//! A roost node without its network protocols: one log, one writer, many readers.
//!
//! - The writer thread takes the submissions in the inbox, computes their cost, logs them (`commitlog`),
//!   applies them to the store's rows by the rules of `feed` and `kv`, and publishes the effects. Its
//!   decisions are made by `applier`, which uses no thread, clock or file.
//! - The views (home timelines, rendered posts, newest posts, samples) are changed by the effects before the reply.
//!   Consumers (event streams) follow the effects later, from a position.
//! - The sweeper does what is due because time passes, and erases removed stories from the disk.
//! - Reads go to the views and to the store, never through the writer.
//!
//! Read `submission`, `entry`, `inbox`, `applier/mod.rs`, `writer`, `writer/arrivals`, `shared`, then `views/mod.rs` and
//! `node/reads`. The other threads are `checkpoints`, `sweeper` (with `due`), `waker`, `scrub` and
//! `archive`. `backup`, `restore`, `export`, `import`, `repair` and `verify` are commands on data directories;
//! `uploads`, `converter` and `media_files` handle pictures; `cluster`, `membership`, `exchange`, `lacking` and
//! `divergence` are for nodes that share a log.
//!
//! **Invariant:** changes are made only by [`Node::submit`] and the other `submit` functions. An import makes a directory
//! that no node has opened yet.
//! **Invariant:** no read queues after a write; both share only locks that are held briefly. Functions whose names begin
//! with `try_` do not wait for a disk.
//! **Invariant:** dependencies between files have no cycle; a folder counts as one file.
//! **Invariant:** no async runtime is started here: tokio is used for channels and notifications.

mod applier;
mod archive;
mod archive_progress;
mod backup;
mod budget;
mod checkpoints;
mod clock;
mod cluster;
mod cluster_dir;
mod context;
mod converter;
mod divergence;
mod due;
mod entry;
mod exchange;
mod export;
mod fatal;
mod identity;
mod ids;
mod import;
mod inbox;
mod keys;
mod lacking;
mod last_backup;
mod last_run;
mod lock;
mod media_check;
mod media_files;
mod membership;
mod metrics;
mod mirror;
mod node;
mod open_error;
mod options;
mod pictures;
mod positions;
mod progress;
mod render;
mod repair;
mod restore;
mod samples;
mod scrub;
mod shared;
mod space;
mod submission;
mod sweeper;
mod sync;
mod threads;
mod uploads;
mod verify;
mod versions;
mod views;
mod waker;
mod writer;

#[cfg(feature = "simulation")]
pub use applier::{TakenPart, seeded};
pub use archive::{ArchiveReport, archive_stopped, is_archive, verify_archive};
pub use backup::{Backup, NodeBackupError};
pub use budget::{MemoryBudget, Reservation};
pub use clock::{Clock, ClockError};
pub use cluster::ClusterStatus;
pub use cluster_dir::{init_cluster, leave_cluster, mark_member};
pub use commitlog::{Applied, ClusterId, Log, LogError, NodeId, Position};
pub use converter::{CONVERT, CONVERTER_ENVIRONMENT, CONVERTER_MEMORY};
pub use exchange::EXCHANGE_MEMORY;
pub use export::counts::TransferCounts;
pub use export::lines::SetBack;
pub use export::{ExportError, export};
pub use feed::Request;
pub use import::{ImportError, import};
pub use inbox::SubmitError;
pub use keys::{Found, Keys, SnapshotLock};
pub use last_backup::note_backup;
pub use media_check::FilesReport;
pub use media_files::FileError;
pub use metrics::Metrics;
#[cfg(feature = "simulation")]
pub use node::{Logged, PendingKeys, PendingRequests, SimulatedNode, SimulationError};
pub use node::{Node, PageEnds, SUBMISSION_COMMANDS_MAX, Sizes, Watch};
pub use open_error::OpenError;
pub use options::{
    ARCHIVE_MEMORY, ArchiveOptions, Durability, FIXED_MEMORY, NodeOptions, SAMPLE_MEMORY_MIN,
};
pub use pictures::{picture_file, picture_path};
pub use progress::OpenProgress;
pub use repair::{RepairError, Repaired, repair};
pub use restore::{RestoreOptions, Restored, restore};
pub use rows::{Subject, is_of_rules};
pub use samples::TooManySnapshots;
pub use store::{Store, Unreadable};
pub use submission::{KeyReplies, READ_BYTES_MAX, ReadAt, ReadRows};
pub use uploads::{UPLOAD_MEMORY, Upload, UploadError};
pub use verify::{DataReport, verify};
pub use views::{Change, Entity, EntityKey, Lost, MadeOf, ViewSizes};
