//! Errors of opening a node.

use std::io::ErrorKind;
use std::path::PathBuf;

use commitlog::{ArchiveError, ClusterId, LogError, Position};
use store::StoreError;

use crate::clock::ClockError;
use crate::options::NodeOptions;

/// Reason why a node did not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process uses the directory.
    #[error("another process uses {}; stop it or choose another --data, or, to back up or export a running server, name it with --server", .0.display())]
    InUse(PathBuf),
    /// The directory was copied while a server wrote to it, so its files are from different moments.
    #[error(
        "{path} is a copy of a data directory that was in use or had not been closed: its files may be of different \
         moments. Make backups with roost backup. If the server was certainly not running while it was copied, \
         remove {path}/lock",
        path = .0.display()
    )]
    Copied(PathBuf),
    /// A restore or an import into the directory did not finish.
    #[error(
        "a restore or import into {data} did not finish; run it again: rm -r {data}; roost restore BACKUP --data {data}",
        data = .0.display()
    )]
    RestoreUnfinished(PathBuf),
    /// A restore or an import needs an empty directory.
    #[error("{} is not empty; choose another directory with --data", .0.display())]
    NotEmpty(PathBuf),
    /// The directory belongs to a node of a cluster.
    #[error(
        "{path} belongs to a node of the cluster {cluster}: start it with roost serve --nats nats://HOST:4222, or make it \
         a server of its own with roost cluster leave --data {path}",
        path = data.display()
    )]
    Member {
        /// Data directory.
        data: PathBuf,
        /// Cluster of the directory.
        cluster: ClusterId,
    },
    /// The directory belongs to no cluster.
    #[error(
        "{path} belongs to no cluster: make a new cluster with roost cluster init --experimental --data {path} --nats nats://HOST:4222, or \
         join one with roost cluster join --server URL in another directory, or start it without --nats",
        path = .0.display()
    )]
    NoMember(PathBuf),
    /// The node was not closed cleanly, so the log of the cluster may have changes that the directory lacks.
    #[error(
        "the server of {path} was not closed cleanly: start it once more with roost serve --data {path} --nats \
         nats://HOST:4222 and stop it with SIGTERM. If the log is lost, add --accept-loss: changes after the last \
         checkpoint are lost then",
        path = .0.display()
    )]
    NotClosed(PathBuf),
    /// The node has not fetched all files of pictures.
    #[error(
        "{path} lacks {files} files of pictures that other nodes have: start it once more with roost serve --data {path} \
         --nats nats://HOST:4222, stop it with SIGTERM when `missing_files` in GET /v1/cluster is 0, and try again. If they \
         are lost, add --accept-loss: the pictures keep their descriptions then",
        path = data.display()
    )]
    LacksFiles {
        /// Data directory.
        data: PathBuf,
        /// Number of missing files.
        files: u64,
    },
    /// The rows of the node differ from those of most other nodes.
    #[error(
        "the node of {path} stopped because its rows differ from those of most other nodes since a group after {after} and \
         up to {position}, so it does not start again: join the cluster again with roost cluster join --server \
         URL --data DIR in a new directory, and remove {path}. If no other node is left, roost cluster leave --data \
         {path} --accept-loss makes it a server of its own",
        path = data.display(), after = after.0, position = position.0
    )]
    Diverged {
        /// Data directory.
        data: PathBuf,
        /// Last position at which another node had the same digest; 0 if unknown.
        after: Position,
        /// First position at which another node had a different digest.
        position: Position,
    },
    /// The servers of the log accept only very short messages.
    #[error(
        "the NATS servers accept messages of at most {0} bytes: set max_payload to 8MB in their configuration"
    )]
    ShortMessages(usize),
    /// The operating system reports an error.
    #[error("cannot use {}", .0.display())]
    Directory(PathBuf, #[source] std::io::Error),
    /// The machine's clock is far off.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// Rows that a start needs are damaged. The log names them.
    #[error("rows that are necessary for a start are damaged")]
    Unreadable,
    /// The outcomes of a group under the rules of this program differ from those that another build has acknowledged.
    #[error(
        "the outcomes of group {} of the log differ from those that another build of roost acknowledged: start that build on this \
         directory once and stop it with SIGTERM; a backup or an archive is restored with it. If it is lost, \
         --accept-other-outcomes of roost repair and roost restore applies the log by the rules of this one", .0.0
    )]
    OtherOutcomes(Position),
    /// The log is damaged, newer than this program, or unreadable.
    #[error("the log cannot be used")]
    Log(#[from] LogError),
    /// The archive belongs to another directory, or is damaged.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The store is damaged, newer than this program, or unreadable.
    #[error("the store cannot be used")]
    Store(#[from] StoreError),
    /// The taught samples need more memory than is configured. The value is the required memory in MiB.
    #[error("the added samples need {0} MiB; start with --sample-memory {0}MiB or more")]
    Samples(usize),
}

impl OpenError {
    /// Returns the error of an unreadable row. Reads every file to name the file of the row, if its checksum does not
    /// match.
    pub(crate) fn unreadable(options: &NodeOptions) -> Self {
        store::damaged_table(&options.store_dir()).map_or(Self::Unreadable, Self::Store)
    }

    /// Whether a setting is wrong, so that another start with the same settings fails too.
    #[must_use]
    pub fn is_setting(&self) -> bool {
        match self {
            Self::Member { .. } | Self::NoMember(_) | Self::Samples(_) => true,
            Self::Archive(
                ArchiveError::NotAnArchive(_)
                | ArchiveError::Foreign(_)
                | ArchiveError::Diverged(_),
            ) => true,
            // The path is not a directory, or belongs to another user.
            Self::Directory(_, error) | Self::Archive(ArchiveError::Disk { source: error, .. }) => {
                matches!(
                    error.kind(),
                    ErrorKind::PermissionDenied
                        | ErrorKind::NotADirectory
                        | ErrorKind::AlreadyExists
                )
            }
            _ => false,
        }
    }

    /// Whether a file is damaged or missing, so that a repair or a restore is necessary.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Unreadable => true,
            Self::Log(error) => matches!(
                error,
                LogError::Damaged { .. }
                    | LogError::StartsAfterStore { .. }
                    | LogError::ShorterThanStore { .. }
            ),
            Self::Store(error) => matches!(
                error,
                StoreError::DamagedFile { .. }
                    | StoreError::Missing(_)
                    | StoreError::Damaged(_)
                    | StoreError::Engine(_)
            ),
            _ => false,
        }
    }
}
