//! Buckets: reading keys, and submitting changes to them.
//!
//! A key is read from memory without waiting for anybody: the overlays and the resident rows of the
//! store. One that is in neither may be on the disk.

use std::time::Duration;

use feed::keys::{Bucket, KeyAnswer, KeyOp, KeyOps, KeyRow};
use feed::{BucketId, BucketName, Facts, Lengths, Rows as _, WalkLimit};
use parking_lot::RwLockReadGuard;
use quick_cache::sync::Cache;
use store::Store;
use tokio::sync::oneshot;

use crate::applier::{KEY_OPS_BYTES_MAX, PLAIN_WORK_MAX};
use crate::budget::Reservation;
use crate::inbox::{Submission, SubmitError};
use crate::node::Node;

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

/// Operations of more bytes than this are not looked through to tell whether memory knows their keys.
const GLANCE_BYTES_MAX: usize = 64 << 10;
/// Buckets whose names are kept at hand.
const NAMES: usize = 65_536;

/// Which bucket had a name when it was last looked up.
pub(crate) struct BucketIds(Cache<BucketName, BucketId>);

impl Default for BucketIds {
    fn default() -> Self {
        Self(Cache::new(NAMES))
    }
}

/// Keeps the writer from changing keys while it lives. To be held for a moment.
pub struct Steady<'a>(#[expect(dead_code, reason = "held, not looked at")] RwLockReadGuard<'a, ()>);

/// Keys as they are at one time.
#[derive(Clone, Copy)]
pub struct Keys<'a> {
    store: &'a Store,
    now_ms: u64,
}

/// What memory knows of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is there.
    Row(KeyRow),
    /// It is not there.
    Absent,
    /// Nothing: it may be on the disk.
    Unknown,
}

impl<'a> Keys<'a> {
    pub(crate) fn at(store: &'a Store, now_ms: u64) -> Self {
        Self { store, now_ms }
    }

    /// The time at which expired keys are told from others, in milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// A bucket that stands. Never waits for a disk.
    #[must_use]
    pub fn bucket(&self, bucket: BucketId) -> Option<Bucket> {
        self.store.bucket(bucket)
    }

    /// A key, if memory knows of it. Never waits for a disk. In a bucket that is gone, all keys are
    /// absent.
    #[must_use]
    pub fn try_row(&self, bucket: BucketId, key: &[u8]) -> Found {
        let Some(bucket) = self.store.bucket(bucket) else { return Found::Absent };
        match self.store.key_in_memory(bucket.space, key) {
            Some(Some(row)) if row.is_live(self.now_ms) => Found::Row(row),
            Some(_) => Found::Absent,
            None => Found::Unknown,
        }
    }

    /// A hint that a key is read soon: its row may be on the way into the processor's cache until then.
    pub fn prefetch(&self, bucket: BucketId, key: &[u8]) {
        if let Some(bucket) = self.store.bucket(bucket) {
            self.store.prefetch_key(bucket.space, key);
        }
    }

    /// A key. May read the disk.
    #[must_use]
    pub fn row(&self, bucket: BucketId, key: &[u8]) -> Option<KeyRow> {
        loop {
            let space = self.store.bucket(bucket)?.space;
            let row = self.store.key(space, key);
            // Emptied while the disk was read, the space may be another bucket's by now.
            if self.store.bucket(bucket)?.space == space {
                return row.filter(|row| row.is_live(self.now_ms));
            }
        }
    }

    /// Live keys from `cursor` on, in the store's own order: at most so many, fewer if they hold more than
    /// 4 MiB, and none if nothing among so many rows is live; and the cursor to go on from, if more may
    /// follow. Whoever goes on until none follows meets every key that existed all the while. The first
    /// cursor is 0. May read the disk.
    #[must_use]
    pub fn walk(
        &self,
        bucket: BucketId,
        cursor: u64,
        at_most: usize,
    ) -> (Vec<KeyRow>, Option<u64>) {
        let Some(bucket) = self.store.bucket(bucket) else { return (Vec::new(), None) };
        let (mut rows, next) = self.store.keys(bucket.space, cursor, WalkLimit::rows(at_most));
        rows.retain(|row| row.is_live(self.now_ms));
        (rows, next)
    }
}

/// As memory has them; what only the disk knows counts as absent.
impl Lengths for Keys<'_> {
    fn value_bytes(&self, bucket: BucketId, key: &[u8]) -> usize {
        if key.is_empty() {
            return 0;
        }
        match self.try_row(bucket, key) {
            Found::Row(row) => row.value().len(),
            Found::Absent | Found::Unknown => 0,
        }
    }

    fn bucket_count(&self) -> usize {
        self.store.bucket_count()
    }
}

impl Node {
    /// Keys as they are now.
    #[must_use]
    pub fn keys(&self) -> Keys<'_> {
        Keys::at(&self.shared.store, self.shared.time.now_ms())
    }

    /// Keys as they are now, at the latest time that anybody was told: for callers who have just read the
    /// clock ([`Node::keys`]). What expired for somebody has expired here, and what the writer did later is
    /// no older than this time.
    #[must_use]
    pub fn keys_at_last_time(&self) -> Keys<'_> {
        Keys::at(&self.shared.store, self.shared.time.last_ms())
    }

    /// Keeps the writer from changing keys, so that what is read of several belongs together. To be held
    /// for a moment, and not while reading the disk.
    #[must_use]
    pub fn steady(&self) -> Steady<'_> {
        Steady(self.shared.steady.read())
    }

    /// The same, if the writer lets it within so long.
    #[must_use]
    pub fn try_steady(&self, patience: Duration) -> Option<Steady<'_>> {
        self.shared.steady.try_read_for(patience).map(Steady)
    }

    /// The bucket of this name, if memory knows of one. Never waits for a disk.
    #[must_use]
    pub fn try_bucket_named(&self, name: &BucketName) -> Option<BucketId> {
        let known = || self.shared.bucket_ids.0.get(name);
        // An id is never another bucket's; it may be one that was deleted since.
        name.numbered().or_else(known).filter(|id| self.shared.store.bucket(*id).is_some())
    }

    /// The bucket of this name. May read the disk.
    #[must_use]
    pub fn bucket_named(&self, name: &BucketName) -> Option<BucketId> {
        let id = Facts::new(&self.shared.store).bucket_named(name)?;
        self.shared.bucket_ids.0.insert(name.clone(), id);
        Some(id)
    }

    /// Buckets that were made, in the order of their names, after `after`: at most `limit`. May read
    /// the disk.
    #[must_use]
    pub fn buckets_after(&self, after: Option<&str>, limit: usize) -> Vec<(BucketName, BucketId)> {
        let facts = Facts::new(&self.shared.store);
        // The very next name there could be.
        let mut from = after.map_or_else(Vec::new, |name| [name.as_bytes(), &[0]].concat());
        let next = std::iter::from_fn(|| {
            let (name, id) = facts.first_bucket_from(&from)?;
            from = [name.as_str().as_bytes(), &[0]].concat();
            Some((name, id))
        });
        next.take(limit).collect()
    }

    /// Submits operations that are applied in this order, and waits until they are durable, under the
    /// node's policy, and applied. A transaction, which begins with [`KeyOp::Begin`](feed::keys::KeyOp),
    /// is applied with nothing of others in between. `reads` belong to a submission that is one
    /// transaction, and are in the order of their places.
    ///
    /// The writer reads what memory does not know of them from disk, while everybody's changes wait: if they
    /// [may need the disk](Node::may_need_disk), [load](Node::load_keys) them before.
    ///
    /// # Errors
    /// [`SubmitError`]; none of the operations has happened then.
    ///
    /// # Panics
    /// If the operations take more than 48 MiB.
    pub async fn submit_keys(
        &self,
        ops: KeyOps,
        reads: Vec<ReadAt>,
    ) -> Result<KeyReplies, SubmitError> {
        let (submission, replies) = keys_submission(ops, reads);
        self.shared.put(submission)?;
        replies.await.map_err(|_| SubmitError::Stopped)
    }

    /// Whether a change takes long, as far as memory shows: it waits for those of everybody else, and
    /// is better submitted apart from others.
    #[must_use]
    pub fn takes_long(&self, op: &KeyOp<'_>) -> bool {
        let cost = op.known_cost().unwrap_or_else(|| op.cost(&self.keys()));
        cost.work > PLAIN_WORK_MAX
    }

    /// Whether operations may look up keys that only the disk knows. Never waits for a disk.
    #[must_use]
    pub fn may_need_disk(&self, ops: &KeyOps) -> bool {
        if !Facts::new(&self.shared.store).has_cold_keys() {
            return false;
        }
        let keys = self.keys();
        let mut unknown = ops.bytes() > GLANCE_BYTES_MAX;
        let mut ops = ops.iter();
        while let Some(op) = ops.next().filter(|_| !unknown) {
            op.each_key(&mut |bucket, key| {
                unknown = unknown || keys.try_row(bucket, key) == Found::Unknown;
            });
        }
        unknown
    }

    /// Brings what operations look up into memory, so that the writer need not read it from disk; also that
    /// a key does not exist. May block.
    pub fn load_keys(&self, ops: &KeyOps) {
        let facts = Facts::new(&self.shared.store);
        for op in ops.iter() {
            op.each_key(&mut |bucket, key| {
                let _was_cold = facts.load_key(bucket, key);
            });
        }
    }

    /// As [`Node::submit_keys`], but waits for room instead of reporting [`SubmitError::Busy`]: for
    /// callers of which there are few, each with a bound of its own.
    ///
    /// # Errors
    /// [`SubmitError::Stopped`]; none of the operations has happened then.
    ///
    /// # Panics
    /// If the operations take more than 48 MiB.
    pub async fn submit_keys_waiting(
        &self,
        ops: KeyOps,
        reads: Vec<ReadAt>,
    ) -> Result<KeyReplies, SubmitError> {
        let (submission, replies) = keys_submission(ops, reads);
        self.shared.put_waiting(submission).await?;
        replies.await.map_err(|_| SubmitError::Stopped)
    }
}

fn keys_submission(ops: KeyOps, reads: Vec<ReadAt>) -> (Submission, oneshot::Receiver<KeyReplies>) {
    assert!(ops.bytes() <= KEY_OPS_BYTES_MAX, "a submission fits one group of the log");
    Submission::of_keys(ops, reads)
}
