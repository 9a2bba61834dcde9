//! State that the threads of a node and its readers share. Only the writer changes it, unless a comment says otherwise.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use feed::{Command, Facts, Handle, PostId, Reply, Request, UserId};
use kv::{BucketId, BucketName};
use parking_lot::RwLock;
use rank::Feeds;
use smallvec::{SmallVec, smallvec};
use store::Store;
use tokio::sync::oneshot;

use crate::changes::Kept;
use crate::checkpoints::archive_progress::ArchiveProgress;
use crate::checkpoints::space::Space;
use crate::clock::Time;
use crate::cluster::exchange::Exchange;
use crate::cluster::{CONFIRMED_WITHIN, Cluster};
use crate::metrics::Metrics;
use crate::pictures::files::MediaFiles;
use crate::pictures::uploads::Uploads;
use crate::submission::Submission;
use crate::submission::inbox::{Inbox, SubmitError, Ticket};
use crate::views::Views;
use crate::views::ids::Ids;
use crate::views::positions::Positions;
use crate::views::samples::SampleSets;

/// Replies to the commands of a submission.
pub(crate) type Replies = SmallVec<[Reply; 1]>;
/// Receiver of the reply to a command of the node itself.
pub(crate) type OwnReply = oneshot::Receiver<Replies>;

/// State that the writer and the readers share.
pub(crate) struct Shared {
    pub(crate) inbox: Inbox,
    pub(crate) views: Views,
    pub(crate) samples: SampleSets,
    pub(crate) store: Store,
    /// Lock that the writer holds while it applies operations on keys, and readers of several keys hold.
    pub(crate) snapshot_lock: RwLock<()>,
    pub(crate) metrics: Arc<Metrics>,
    /// Built-in definitions of ranked feeds, and those of a file.
    pub(crate) feeds: Arc<Feeds>,
    /// Highest stamp whose effects the views have.
    pub(crate) visible_up_to: AtomicU64,
    /// Position up to which all groups are visible to reads, and the waiters for later positions.
    pub(crate) positions: Positions,
    pub(crate) log_bytes: AtomicU64,
    /// Position of the last group whose append has returned. Readers of the log load it (acquire) before they read
    /// groups up to it.
    pub(crate) log_last: AtomicU64,
    /// Directory of the log.
    pub(crate) log_dir: PathBuf,
    /// State of the change feed, if there is one.
    pub(crate) changes: Option<Arc<Kept>>,
    /// Identity of the data directory, see [`crate::directory::identity`]; empty in the simulator.
    pub(crate) identity: String,
    pub(crate) archive: Arc<ArchiveProgress>,
    pub(crate) overlay_bytes: AtomicU64,
    /// Files of pictures.
    pub(crate) media_files: Arc<MediaFiles>,
    /// Maximum size of these files, in bytes.
    pub(crate) media_max: u64,
    /// Exchange of files between the nodes of a cluster; `None` for a log of one node.
    pub(crate) exchange: Option<Arc<Exchange>>,
    /// Pictures that wait to be converted.
    pub(crate) uploads: Uploads,
    pub(crate) handles: Ids<Handle, UserId>,
    pub(crate) bucket_ids: Ids<BucketName, BucketId>,
    pub(crate) time: Time,
    pub(crate) space: Arc<Space>,
    pub(crate) erasure_due: AtomicBool,
    /// Whether texts of stories were removed that files may still contain. The writer sets it before it answers
    /// (release); the sweeper takes it (acquire).
    pub(crate) has_removed_stories: AtomicBool,
    /// Whether a checkpoint is requested as soon as possible.
    pub(crate) checkpoint_due: AtomicBool,
    /// Cluster of the node; `None` for a log of one node.
    pub(crate) cluster: Option<Cluster>,
    pub(crate) stopped: AtomicBool,
    /// Whether the store has everything that was applied, after the writer has ended.
    pub(crate) is_stored: AtomicBool,
}

impl Shared {
    /// Adds a submission to the inbox, unless the inbox or the disk is full.
    pub(crate) fn put(&self, submission: Submission<Ticket>) -> Result<(), SubmitError> {
        self.admit(&submission)?;
        self.inbox.put(submission).map_err(|(error, _)| error)
    }

    /// Returns the time at which a command would be applied now, in milliseconds since 1970: that of the log, which in
    /// a cluster may be earlier than the node's time.
    pub(crate) fn log_ms(&self) -> u64 {
        self.time.now_ms().saturating_sub(self.cluster.as_ref().map_or(0, Cluster::ahead_ms))
    }

    /// Requests that the writer erases removed data.
    pub(crate) fn start_erasure(&self) {
        self.erasure_due.store(true, Ordering::Release);
        self.inbox.wake();
    }

    /// Whether background threads must end.
    pub(crate) fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Reads the newest posts and the names of users into memory, as many as fit, and renders the newest posts, until
    /// `stopped` returns true. Blocks; for a background thread.
    pub(crate) fn warm_posts(&self, stopped: impl Fn() -> bool) {
        let facts = Facts::new(&self.store);
        while !stopped() && self.views.load_posts(facts) {}
        let mut before = Some(UserId(u32::MAX));
        while let Some(user) = before.filter(|_| !stopped()) {
            before = self.views.load_names(&self.store.revisions(), facts, user);
        }
        let mut before = Some(PostId(u64::MAX));
        while let Some(post) = before.filter(|_| !stopped()) {
            before = self.views.render_posts(&self.store.revisions(), facts, post);
        }
    }

    fn admit(&self, submission: &Submission<Ticket>) -> Result<(), SubmitError> {
        if let Some(cluster) = &self.cluster {
            cluster.admit(&submission.changes)?;
        }
        self.admit_if(|| submission.changes.only_remove())
    }

    /// Checks that the disk has room for changes; `only_remove` returns whether they only remove data.
    pub(crate) fn admit_if(&self, only_remove: impl FnOnce() -> bool) -> Result<(), SubmitError> {
        let fits = !self.space.is_full() || !self.space.is_used_up() && only_remove();
        if fits { Ok(()) } else { Err(SubmitError::DiskFull) }
    }

    /// Adds a submission like [`Shared::put`], but waits for room in the inbox; in a cluster only for a limited time.
    pub(crate) async fn put_waiting(
        &self,
        submission: Submission<Ticket>,
    ) -> Result<(), SubmitError> {
        self.admit(&submission)?;
        let put = self.inbox.put_waiting(submission);
        match &self.cluster {
            None => put.await,
            // A caller who stops waiting here drops a submission that was never in the inbox.
            Some(_) => {
                let put = tokio::time::timeout(CONFIRMED_WITHIN, put).await;
                put.unwrap_or(Err(SubmitError::NoLog))
            }
        }
    }

    /// Waits for the reply to an accepted submission; in a cluster only for a limited time.
    pub(crate) async fn reply<T>(&self, reply: oneshot::Receiver<T>) -> Result<T, SubmitError> {
        let reply = match &self.cluster {
            None => reply.await,
            Some(_) => tokio::time::timeout(CONFIRMED_WITHIN, reply)
                .await
                .map_err(|_| SubmitError::Unconfirmed)?,
        };
        reply.map_err(|_| SubmitError::Stopped)
    }

    /// Submits a command of the node itself.
    pub(crate) fn submit_own(&self, command: Command) -> Result<OwnReply, SubmitError> {
        let (submission, reply) = Submission::of_requests(smallvec![Request::from(command)]);
        self.put(submission).map(|()| reply)
    }
}
