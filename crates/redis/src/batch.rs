//! Pending changes of all connections of a thread.
//!
//! Changes are added to the **open batch**. The first addition wakes a task. The task lets every ready connection of
//! the thread have its turn, and then submits the batch: for a thousand connections with one change each, the writer
//! gets one message.
//!
//! **Invariant:** a connection has pending changes in one batch only, so the order of batches does not matter.

use std::cell::{OnceCell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use kv::{KeyOp, KeyOps};
use node::{KeyReplies, Node, SUBMISSION_COMMANDS_MAX, SubmitError};
use tokio::sync::Notify;

use super::metrics::RedisMetrics;
use edge::{BlockingReads, ReadError};

/// Size at which a batch is closed, in bytes. The last operation may exceed it.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// Changes that are submitted together.
#[derive(Default)]
pub(crate) struct Batch {
    answers: OnceCell<Result<KeyReplies, SubmitError>>,
    waiting: RefCell<Vec<Waker>>,
}

impl Batch {
    /// Waits for the answers to all changes.
    pub(crate) async fn answered(&self) -> &Result<KeyReplies, SubmitError> {
        poll_fn(|cx| {
            if self.answers.get().is_none() {
                self.waiting.borrow_mut().push(cx.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
        let Some(answers) = self.answers.get() else { unreachable!("the batch was answered") };
        answers
    }

    fn answer(&self, answers: Result<KeyReplies, SubmitError>) {
        assert!(self.answers.set(answers).is_ok(), "a batch is answered once");
        self.waiting.take().into_iter().for_each(Waker::wake);
    }
}

/// Open batch of a thread.
pub(crate) struct Batches {
    node: Node,
    reads: BlockingReads,
    metrics: RedisMetrics,
    open: RefCell<(KeyOps, Rc<Batch>)>,
    filled: Notify,
}

/// Error of an addition that must wait: the connection has changes in an earlier batch.
#[derive(Debug)]
pub(crate) struct Earlier;

impl Batches {
    /// Creates an empty open batch.
    pub(crate) fn new(node: Node, reads: BlockingReads, metrics: RedisMetrics) -> Self {
        let open = RefCell::default();
        Self { node, reads, metrics, open, filled: Notify::new() }
    }

    /// Adds a change of a connection. `mine` is the batch of the connection's pending changes. Returns the batch of the
    /// change, and its place in the batch.
    ///
    /// # Errors
    /// [`Earlier`]. The change was then not added.
    pub(crate) fn add(
        &self,
        op: &KeyOp<'_>,
        mine: Option<&Rc<Batch>>,
    ) -> Result<(Rc<Batch>, usize), Earlier> {
        let full = {
            let (ops, _) = &*self.open.borrow();
            ops.len() >= SUBMISSION_COMMANDS_MAX || ops.bytes() >= BATCH_BYTES_MAX
        };
        if full {
            self.submit_open();
        }
        let (ops, batch) = &mut *self.open.borrow_mut();
        if mine.is_some_and(|mine| !Rc::ptr_eq(mine, batch)) {
            return Err(Earlier);
        }
        if ops.is_empty() {
            self.filled.notify_one();
        }
        let at = ops.len();
        ops.push(op);
        Ok((Rc::clone(batch), at))
    }

    /// Submits the open batch whenever it has changes; never returns. Runs on the thread of the batch.
    pub(crate) async fn submit_when_ready(self: Rc<Self>) {
        loop {
            self.filled.notified().await;
            // Let the ready connections run first, so that they add their changes.
            tokio::task::yield_now().await;
            self.submit_open();
        }
    }

    /// Submits the open batch and starts another one.
    fn submit_open(&self) {
        let (ops, batch) = self.open.take();
        if ops.is_empty() {
            return;
        }
        self.submit(ops, batch);
    }

    /// Submits a change in a separate batch, because it takes long and other changes must not wait for it.
    pub(crate) fn submit_alone(&self, ops: KeyOps) -> Rc<Batch> {
        let batch = Rc::new(Batch::default());
        self.submit(ops, Rc::clone(&batch));
        batch
    }

    fn submit(&self, ops: KeyOps, batch: Rc<Batch>) {
        self.metrics.count_batch(ops.len());
        let (node, reads) = (self.node.clone(), self.reads.clone());
        // The number of waiting changes is bounded, because a waiting connection is not read.
        tokio::task::spawn_local(async move {
            batch.answer(match load_keys(&reads, &node, ops).await {
                Ok(ops) => node.submit_keys_waiting(ops, Vec::new()).await,
                Err(ReadError::Overloaded) => Err(SubmitError::Busy),
                Err(ReadError::Panicked(_)) => Err(SubmitError::Unreadable),
            });
        });
    }
}

/// Loads the rows that operations look up, if some may be only on disk. Otherwise the writer would have to read the
/// disk, and all other changes would wait.
///
/// # Errors
/// [`ReadError`]. The operations must then not be submitted.
pub(crate) async fn load_keys(
    reads: &BlockingReads,
    node: &Node,
    ops: KeyOps,
) -> Result<KeyOps, ReadError> {
    if !node.may_need_disk(&ops) {
        return Ok(ops);
    }
    let node = node.clone();
    let load = move || {
        node.load_keys(&ops);
        ops
    };
    reads.run(load).await
}
