//! Reading keys of buckets, and submitting changes to them.

use std::time::Duration;

use kv::{BucketId, BucketName, Facts, KeyOp, KeyOps, KeyRows as _};
use store::Store;
use tokio::sync::oneshot;

use super::Node;
use crate::applier::{KEY_OPS_BYTES_MAX, PLAIN_WORK_MAX};
use crate::submission::inbox::{SubmitError, Ticket};
use crate::submission::{KeyReplies, ReadAt, Submission};
use crate::views::keys::{Found, Keys, SnapshotLock};

/// Size of operations, in bytes, above which [`Node::may_need_disk`] does not check each key.
const CHECKED_BYTES_MAX: usize = 64 << 10;

impl Node {
    /// Returns the facts of buckets. May block.
    #[must_use]
    pub fn key_facts(&self) -> Facts<'_, Store> {
        Facts::new(&self.shared.store)
    }

    /// Returns the keys at the present time.
    #[must_use]
    pub fn keys(&self) -> Keys<'_> {
        Keys::at(&self.shared.store, self.shared.time.now_ms())
    }

    /// Returns the keys at the latest time that any reader has got from [`Node::keys`], for callers who have just read
    /// the clock. A key that has expired for some reader is expired here too, and later changes have at least this
    /// time.
    #[must_use]
    pub fn keys_at_last_time(&self) -> Keys<'_> {
        Keys::at(&self.shared.store, self.shared.time.last_ms())
    }

    /// Locks out the writer's changes to keys, so that several keys can be read in one consistent state. Hold the lock
    /// only briefly, and not while reading the disk.
    #[must_use]
    pub fn snapshot_lock(&self) -> SnapshotLock<'_> {
        SnapshotLock::hold(&self.shared.snapshot_lock)
    }

    /// Takes [`Node::snapshot_lock`], waiting at most `patience`; `None` if the writer holds it longer.
    #[must_use]
    pub fn try_snapshot_lock(&self, patience: Duration) -> Option<SnapshotLock<'_>> {
        SnapshotLock::try_hold(&self.shared.snapshot_lock, patience)
    }

    /// Returns the id of a bucket if it is in memory. Never waits for a disk.
    #[must_use]
    pub fn try_bucket_named(&self, name: &BucketName) -> Option<BucketId> {
        let known = || self.shared.bucket_ids.get(&self.shared.store, name);
        // A cached bucket may have been deleted.
        name.numbered().or_else(known).filter(|id| self.shared.store.bucket(*id).is_some())
    }

    /// Returns the id of a bucket. May read the disk.
    #[must_use]
    pub fn bucket_named(&self, name: &BucketName) -> Option<BucketId> {
        let read = || self.key_facts().bucket_named(name);
        self.shared.bucket_ids.read(&self.shared.store, name, read)
    }

    /// Returns up to `limit` created buckets after the name `after`, sorted by name. May read the disk.
    #[must_use]
    pub fn buckets_after(&self, after: Option<&str>, limit: usize) -> Vec<(BucketName, BucketId)> {
        let facts = self.key_facts();
        // The smallest name greater than `after`.
        let mut from = after.map_or_else(Vec::new, |name| [name.as_bytes(), &[0]].concat());
        let next = std::iter::from_fn(|| {
            let (name, id) = facts.first_bucket_from(&from)?;
            from = [name.as_str().as_bytes(), &[0]].concat();
            Some((name, id))
        });
        next.take(limit).collect()
    }

    /// Submits operations that are applied in this order, and waits until they are applied, and durable under the
    /// node's policy. A transaction, which begins with [`KeyOp::Begin`](kv::KeyOp), is applied as a unit, without
    /// operations of other callers in between. Only a submission of a single transaction may have `reads`, sorted by
    /// [`ReadAt::before`].
    ///
    /// The writer reads missing keys from disk, and all other changes wait meanwhile. So if the operations [may need
    /// the disk](Node::may_need_disk), first [load](Node::load_keys) their keys.
    ///
    /// # Errors
    /// [`SubmitError`]
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
        self.shared.reply(replies).await
    }

    /// Checks that the disk has room for a change.
    ///
    /// # Errors
    /// [`SubmitError::DiskFull`]
    pub fn admit(&self, op: &KeyOp<'_>) -> Result<(), SubmitError> {
        self.shared.admit_if(|| op.removes())
    }

    /// Whether a change is long, judged by the keys in memory. Long changes wait until no other changes are pending, so
    /// submit them separately.
    #[must_use]
    pub fn takes_long(&self, op: &KeyOp<'_>) -> bool {
        let cost = op.known_cost().unwrap_or_else(|| op.cost(&self.keys()));
        cost.work > PLAIN_WORK_MAX
    }

    /// Whether the operations may read keys from disk. Never waits for a disk.
    #[must_use]
    pub fn may_need_disk(&self, ops: &KeyOps) -> bool {
        if !self.key_facts().has_cold_keys() {
            return false;
        }
        let keys = self.keys();
        let mut unknown = ops.bytes() > CHECKED_BYTES_MAX;
        let mut ops = ops.iter();
        while let Some(op) = ops.next().filter(|_| !unknown) {
            op.each_key(&mut |bucket, key| {
                unknown = unknown || keys.try_row(bucket, key) == Found::Unknown;
            });
        }
        unknown
    }

    /// Loads the keys of the operations into memory, also the fact that a key does not exist, so that the writer need
    /// not read the disk. May block.
    pub fn load_keys(&self, ops: &KeyOps) {
        let facts = self.key_facts();
        for op in ops.iter() {
            op.each_key(&mut |bucket, key| {
                let _was_cold = facts.load_key(bucket, key);
            });
        }
    }

    /// Submits operations like [`Node::submit_keys`], but waits for room instead of returning [`SubmitError::Busy`].
    /// Only for a small number of callers that each limit how much they submit.
    ///
    /// # Errors
    /// [`SubmitError::Stopped`] and [`SubmitError::Unconfirmed`]
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
        self.shared.reply(replies).await
    }
}

fn keys_submission(
    ops: KeyOps,
    reads: Vec<ReadAt>,
) -> (Submission<Ticket>, oneshot::Receiver<KeyReplies>) {
    assert!(ops.bytes() <= KEY_OPS_BYTES_MAX, "a submission fits one group of the log");
    Submission::of_keys(ops, reads)
}
