//! A node without threads, for the simulator (crate `dst`), which chooses the order of events. Each function is one
//! step of a thread of a running node and runs the same code.

use std::sync::Arc;
use std::time::Duration;

use commitlog::{Log, LogError, Position};
use feed::{Reply, Request};
use kv::KeyOps;
use parking_lot::Mutex;
use smallvec::SmallVec;
use store::{MemoryDisk, Store};
use tokio::sync::oneshot::{self, Receiver};

use super::open::Parts;
use super::{Node, Threads};
use crate::applier::TakenPart;
use crate::directory::open_error::OpenError;
use crate::due::DueStep;
use crate::due::sweeper::Sweeper;
use crate::options::NodeOptions;
use crate::submission::entry::Entry;
use crate::submission::inbox::SubmitError;
use crate::submission::{KeyReplies, ReadAt, Submission};
use crate::threads::Background;
use crate::threads::queue::Queue;
use crate::writer::Writer;

/// Error that would end the process of a running node.
pub type SimulationError = Box<dyn std::error::Error + Send + Sync>;
/// Receives the replies to commands.
pub type PendingRequests = Receiver<SmallVec<[Reply; 1]>>;
/// Receives the replies to operations on keys.
pub type PendingKeys = Receiver<KeyReplies>;

/// Entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Logged {
    /// A command of the feed.
    Feed(Request),
    /// Operations on keys.
    Keys(KeyOps),
}

impl Logged {
    /// Decodes the entries of a group.
    ///
    /// # Panics
    /// If the payload is invalid.
    #[must_use]
    pub fn read_all(mut payload: &[u8]) -> Vec<Self> {
        let mut entries = Vec::new();
        while !payload.is_empty() {
            let Ok((entry, rest)) = Entry::read(payload) else {
                panic!("a payload consists of entries")
            };
            match entry {
                Entry::Feed(request) => entries.push(Self::Feed(request)),
                Entry::Kv(ops) => entries.push(Self::Keys(ops)),
                Entry::Origin(_) => {}
                Entry::SampleBytes(_) | Entry::Status(_) => unreachable!("its log is its own"),
            }
            payload = rest;
        }
        entries
    }
}

/// A node and the state that its threads own.
pub struct SimulatedNode {
    node: Node,
    writer: Writer,
    sweeper: Sweeper,
    jobs: Queue,
    /// Number of submissions that the inbox has accepted.
    submitted: u64,
}

impl SimulatedNode {
    /// Opens a node like [`Node::open`], on rows in memory and on the log that `open_log` opens. A new store orders
    /// keys by `seed`.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(
        options: &NodeOptions,
        rows: &MemoryDisk,
        seed: [u8; 16],
        open_log: impl FnOnce(Position) -> Result<Box<dyn Log>, LogError>,
    ) -> Result<Self, OpenError> {
        let store = Store::open_in_memory(rows.clone(), options.store(), seed)?;
        let log = open_log(Position(store.1))?;
        let jobs = Queue::default();
        let background = Background::Queue(jobs.clone());
        let beside = (String::new(), background, None);
        let Parts { shared, writer, .. } = Parts::recover(options, store, log, beside)?;
        let sweeper = Sweeper::new(Arc::clone(&shared), options.erase_within);
        let threads =
            Threads { shared: Arc::clone(&shared), writer: None, others: Vec::new(), lock: None };
        let node = Node { shared, threads: Arc::new(Mutex::new(threads)) };
        Ok(Self { node, writer, sweeper, jobs, submitted: 0 })
    }

    /// Returns the node, for reads.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Returns the last position of the log.
    #[must_use]
    pub fn log_last(&self) -> Position {
        self.writer.log.delivered()
    }

    /// Submits commands; a later [`SimulatedNode::turn`] applies them. Returns the number of the submission.
    ///
    /// # Errors
    /// [`SubmitError`]; none of the commands is applied then.
    pub fn submit(
        &mut self,
        requests: Vec<Request>,
    ) -> Result<(u64, PendingRequests), SubmitError> {
        let (submission, reply) = Submission::of_requests(requests.into());
        self.node.shared.put(submission)?;
        self.submitted += 1;
        Ok((self.submitted, reply))
    }

    /// Submits operations on keys like [`Node::submit_keys`]. Returns the number of the submission.
    ///
    /// # Errors
    /// [`SubmitError`]; none of the operations is applied then.
    pub fn submit_keys(
        &mut self,
        ops: KeyOps,
        reads: Vec<ReadAt>,
    ) -> Result<(u64, PendingKeys), SubmitError> {
        let (submission, reply) = Submission::of_keys(ops, reads);
        self.node.shared.put(submission)?;
        self.submitted += 1;
        Ok((self.submitted, reply))
    }

    /// Runs one turn of the writer. Returns the parts of submissions that its groups took, in the order of their
    /// entries.
    ///
    /// # Errors
    /// If the disk fails: the process would end.
    pub fn turn(&mut self) -> Result<Vec<(u64, TakenPart)>, SimulationError> {
        self.writer.turn(Duration::ZERO)?;
        Ok(std::mem::take(&mut self.writer.applier.taken))
    }

    /// Runs one step of the sweeper: at a wake-up, or with the replies to its commands.
    pub fn do_due(&mut self) {
        let step = self.sweeper.step(|mut reply| match reply.try_recv() {
            Err(oneshot::error::TryRecvError::Empty) => Err(reply),
            done => Ok(done.ok().and_then(|replies| replies.first().copied())),
        });
        if let DueStep::Sent(commands) = step {
            self.submitted += commands as u64;
        }
    }

    /// Runs a checkpoint or an erasure that was started; returns false if there is none.
    ///
    /// # Errors
    /// If the disk fails: the process would end.
    pub fn run_job(&mut self) -> Result<bool, SimulationError> {
        Ok(self.jobs.run_one()?)
    }

    /// Syncs the log like the thread of [`Interval`](crate::Durability::Interval) on a wake-up.
    ///
    /// # Errors
    /// If the disk fails: the process would end.
    pub fn sync(&mut self) -> Result<(), SimulationError> {
        let point = self.writer.sync_slot.lock().take();
        point.map_or(Ok(()), |point| point.sync())?;
        Ok(())
    }

    /// Does the whole work of the thread that reads keys into memory after the start.
    pub fn warm_keys(&self) {
        self.node.shared.store.warm_keys(|| false);
    }

    /// Does the whole work of the thread that reads posts into memory after the start.
    pub fn warm_posts(&self) {
        self.node.shared.warm_posts(|| false);
    }

    /// Closes the node like [`Node::close`].
    ///
    /// # Errors
    /// If the disk fails.
    pub fn close(mut self) -> Result<(), SimulationError> {
        self.node.shared.inbox.close();
        while self.writer.turn(Duration::ZERO)? {}
        self.writer.end()?;
        Ok(())
    }
}
