//! What the threads of a node and its readers share. Only the writer changes it, unless a comment says
//! otherwise.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use feed::{Handle, UserId};
use kv::{BucketId, BucketName};
use parking_lot::RwLock;
use quick_cache::sync::Cache;
use store::Store;

use crate::clock::Time;
use crate::inbox::{Inbox, SubmitError, Ticket};
use crate::metrics::Metrics;
use crate::samples::SampleSets;
use crate::submission::Submission;
use crate::views::Views;

/// Number of handles that are remembered, and of names of buckets.
pub(crate) const NAMES: usize = 65_536;

/// What the writer, the deliverer and the readers share.
pub(crate) struct Shared {
    pub(crate) inbox: Inbox,
    pub(crate) views: Views,
    pub(crate) samples: SampleSets,
    pub(crate) store: Store,
    /// Held by the writer while it applies operations on keys, and by readers of several keys.
    pub(crate) snapshot_lock: RwLock<()>,
    pub(crate) metrics: Arc<Metrics>,
    /// The highest stamp whose effects the views have.
    pub(crate) visible_up_to: AtomicU64,
    pub(crate) log_bytes: AtomicU64,
    /// Position of the last group whose append has returned. A group up to it is read only after this was
    /// loaded: release and acquire.
    pub(crate) log_last: AtomicU64,
    /// The directory of the log.
    pub(crate) log_dir: PathBuf,
    pub(crate) overlay_bytes: AtomicU64,
    pub(crate) delivery_due: AtomicBool,
    /// Users by handle. An entry never changes, so nothing is ever invalidated.
    pub(crate) handles: Cache<Handle, UserId>,
    /// Buckets by name, as they were at the last look-up.
    pub(crate) bucket_ids: Cache<BucketName, BucketId>,
    pub(crate) time: Time,
    /// Before this second since 1970 the sweeper has found nothing left to sweep.
    pub(crate) sweep_from: AtomicU64,
    pub(crate) erasure_due: AtomicBool,
    pub(crate) stopped: AtomicBool,
}

impl Shared {
    /// Adds a submission to the inbox, unless there is no room for it or for its effects in the views.
    pub(crate) fn put(&self, submission: Submission<Ticket>) -> Result<(), SubmitError> {
        if submission.has_effects() && !self.views.has_room() {
            return Err(SubmitError::Busy);
        }
        self.inbox.put(submission).map_err(|(error, _)| error)
    }

    /// As [`Shared::put`], but waits for room.
    pub(crate) async fn put_waiting(
        &self,
        submission: Submission<Ticket>,
    ) -> Result<(), SubmitError> {
        while submission.has_effects() && !self.views.has_room() {
            self.views.room().await;
        }
        self.inbox.put_waiting(submission).await
    }
}
