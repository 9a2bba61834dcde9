//! What callers ask the writer for, and what they are answered.

use feed::{Reply, Request};
use kv::{BucketId, KeyAnswer, KeyOps, KeyRow};
use smallvec::SmallVec;

use crate::budget::Reservation;

/// What one caller wants changed.
pub(crate) enum Changes {
    /// Commands, applied in order.
    Requests(SmallVec<[Request; 1]>),
    /// Operations on keys, applied in order, and reads between them.
    Keys { ops: KeyOps, reads: Vec<ReadAt> },
}

/// Changes of one caller, and how to answer.
pub(crate) struct Submission<T> {
    pub(crate) changes: Changes,
    pub(crate) ticket: T,
}

/// What a submission came to.
#[derive(Debug)]
pub(crate) enum Answer {
    /// One reply for each command.
    Requests(SmallVec<[Reply; 1]>),
    /// For operations on keys.
    Keys(KeyReplies),
}

/// A read of keys in the middle of a transaction: it sees what the operations before it have done, and
/// nothing of what others do. Not logged.
#[derive(Clone, Debug)]
pub struct ReadAt {
    /// Index of the operation before which it happens; the number of operations means after the last.
    pub before: usize,
    /// Which bucket.
    pub bucket: BucketId,
    /// Which keys.
    pub keys: Vec<Box<[u8]>>,
}

/// What a [`ReadAt`] found.
#[derive(Clone, Debug, Default)]
pub struct ReadRows {
    /// Number of keys in the bucket.
    pub count: u64,
    /// A row or none for each key; `None` if the rows read by the transaction exceed
    /// [`READ_BYTES_MAX`] together, there is no memory for them, or the transaction was refused.
    pub rows: Option<Vec<Option<KeyRow>>>,
}

/// What a submission of operations on keys came to.
#[derive(Debug)]
pub struct KeyReplies {
    /// One for each operation.
    pub answers: Vec<KeyAnswer>,
    /// One for each read, in the order given.
    pub reads: Vec<ReadRows>,
    /// The time of the submission, in milliseconds since 1970, which decided what had expired.
    pub now_ms: u64,
    /// Memory of the rows among the answers, until this is dropped.
    pub held: Vec<Reservation>,
}

/// Most bytes of keys and values that the reads of one transaction return.
pub const READ_BYTES_MAX: usize = 64 << 20;
