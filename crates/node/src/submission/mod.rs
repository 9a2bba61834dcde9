//! Submissions to the writer, and its replies.
//!
//! Read this file, `inbox` (the queue before the writer), `entry` (the form in the log), then `versions` of commands.

pub(crate) mod entry;
pub(crate) mod idempotency;
pub(crate) mod inbox;
pub(crate) mod versions;

use feed::{Reply, Request};
use kv::{BucketId, KeyAnswer, KeyOps, KeyRow};
use smallvec::SmallVec;

use budget::Reservation;

/// Changes of one submission.
pub(crate) enum Changes {
    /// Commands, applied in order.
    Requests(SmallVec<[Request; 1]>),
    /// Operations on keys, applied in order, and reads between them.
    Keys { ops: KeyOps, reads: Vec<ReadAt> },
}

impl Changes {
    /// Whether the changes only remove data: they are accepted even if the disk is full.
    pub(crate) fn only_remove(&self) -> bool {
        match self {
            Self::Requests(requests) => requests.iter().all(|request| request.command.removes()),
            Self::Keys { ops, .. } => ops.iter().all(|op| op.removes()),
        }
    }
}

/// Changes of one caller, and the recipient of the answer.
pub(crate) struct Submission<T> {
    pub(crate) changes: Changes,
    pub(crate) ticket: T,
}

/// Answer to a submission.
#[derive(Debug)]
pub(crate) enum Answer {
    /// One reply per command.
    Requests(SmallVec<[Reply; 1]>),
    /// Replies to operations on keys.
    Keys(KeyReplies),
}

/// Read of keys within a transaction: it sees the results of the earlier operations, and no changes of other
/// submissions. Not logged.
#[derive(Clone, Debug)]
pub struct ReadAt {
    /// Index of the operation before which the read happens. The number of operations means after the last one.
    pub before: usize,
    /// Bucket of the keys.
    pub bucket: BucketId,
    /// Keys to read.
    pub keys: Vec<Box<[u8]>>,
}

/// Result of a [`ReadAt`].
#[derive(Clone, Debug, Default)]
pub struct ReadRows {
    /// Number of keys in the bucket.
    pub count: u64,
    /// Row of each key, if it exists. `None` if the rows read by the transaction exceed [`READ_BYTES_MAX`] together,
    /// there is no memory for them, or the transaction was refused.
    pub rows: Option<Vec<Option<KeyRow>>>,
}

/// Answer to a submission of operations on keys.
#[derive(Debug)]
pub struct KeyReplies {
    /// One answer per operation.
    pub answers: Vec<KeyAnswer>,
    /// One result per read, in the given order.
    pub reads: Vec<ReadRows>,
    /// Time of the submission, in milliseconds since 1970, which decided what had expired.
    pub now_ms: u64,
    /// Memory reserved for the rows among the answers until this is dropped.
    pub held: Vec<Reservation>,
}

/// Maximum size of the keys and values that the reads of one transaction return, in bytes.
pub const READ_BYTES_MAX: usize = 64 << 20;
