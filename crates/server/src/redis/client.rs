//! A client: what its connection remembers from command to command, and how a command is carried out.
//!
//! **Invariant:** replies are in the order of commands. A change is told when its batch is answered, so
//! everything else first waits for the changes before it ([`Client::settle`]).

use std::rc::Rc;
use std::sync::Arc;

use feed::BucketId;
use feed::keys::KeyOp;
use node::Node;
use resp::{Encoder, Protocol};
use tokio::sync::Semaphore;

use super::batch::{Batch, Batches, Earlier};
use super::command::{
    Change, Flag, Kept, Plan, Read, Run, Scope, Spec, Tell, Wait, WordList, Words,
};
use super::failure::Failure;
use super::metrics::{RedisMetrics, Turn};
use super::reader::{Reader, Stop};
use super::registry::{Registered, Registry, Seen};
use super::{buckets, table, transactions};
use crate::Access;

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) node: Node,
    pub(crate) access: Access,
    pub(crate) metrics: RedisMetrics,
    pub(crate) registry: Arc<Registry>,
    /// Permits for reads that may touch a disk.
    pub(crate) blocking: Arc<Semaphore>,
    pub(crate) connections_max: u32,
}

/// See above.
pub(crate) struct Client {
    pub(crate) shared: Arc<Shared>,
    batches: Rc<Batches>,
    pub(crate) registered: Registered,
    pub(crate) protocol: Protocol,
    /// What SELECT and BUCKET USE choose.
    pub(crate) bucket: BucketId,
    pub(crate) authenticated: bool,
    pub(crate) replies: Replies,
    pub(crate) transaction: Option<transactions::Transaction>,
    pub(crate) watched: transactions::WatchedKeys,
    pending: Pending,
    /// Replies that have not been sent.
    pub(crate) output: Vec<u8>,
    /// The connection ends when they have been.
    pub(crate) closing: bool,
    pub(crate) turn: Turn,
    last: &'static str,
}

/// Which replies the client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replies {
    /// All.
    On,
    /// None.
    Off,
    /// All but the one to the next command.
    SkipNext,
}

/// Changes under way, all of them in one batch.
#[derive(Default)]
struct Pending {
    batch: Option<Rc<Batch>>,
    /// Their places in the batch and how they are told; not at all, if the client wants no reply.
    told: Vec<(usize, Option<Tell>)>,
}

impl Client {
    pub(crate) fn new(shared: Arc<Shared>, batches: Rc<Batches>, registered: Registered) -> Self {
        let authenticated = shared.access == Access::Open;
        Self {
            shared,
            batches,
            registered,
            protocol: Protocol::Resp2,
            bucket: BucketId(0),
            authenticated,
            replies: Replies::On,
            transaction: None,
            watched: transactions::WatchedKeys::default(),
            pending: Pending::default(),
            output: Vec::new(),
            closing: false,
            turn: Turn::default(),
            last: "NULL",
        }
    }

    /// Writes a reply.
    pub(crate) fn reply(&mut self) -> Encoder<'_> {
        Encoder::new(&mut self.output, self.protocol)
    }

    /// Carries out a command.
    pub(crate) async fn carry_out(&mut self, command: resp::Command<'_>) {
        if command.is_http() {
            self.closing = true;
            return;
        }
        let words: WordList<'_> = command.arguments().collect();
        let silent = self.replies != Replies::On;
        let spec = self.admit(command.name(), &words);
        if let Ok(Spec { run: Run::Change(change), .. }) = spec
            && self.transaction.is_none()
        {
            let planned = self.change(*change, &words, silent).await;
            return self.end(planned, silent, None).await;
        }
        self.settle().await;
        let start = self.output.len();
        let done = match spec {
            Ok(spec) => self.run(spec, &words).await,
            Err(failure) => Err(failure),
        };
        self.end(done, silent, Some(start)).await;
    }

    /// Tells a failure, and takes back what a client that wants no reply would get.
    async fn end(&mut self, done: Result<(), Failure>, silent: bool, start: Option<usize>) {
        if let Err(failure) = done {
            self.settle().await;
            if !silent {
                self.reply().error(failure);
            }
        }
        if let Some(start) = start.filter(|_| silent && self.replies != Replies::On) {
            self.output.truncate(start);
        }
        if silent && self.replies == Replies::SkipNext {
            self.replies = Replies::On;
        }
    }

    /// The command, if the client may give it now.
    fn admit(&mut self, name: &[u8], words: &Words<'_>) -> Result<&'static Spec, Failure> {
        let admitted = self.check(name, words);
        match admitted {
            Ok(spec) => {
                self.last = spec.name;
                if let Some(count) = self.turn.commands.get_mut(spec.group as usize) {
                    *count += 1;
                }
                Ok(spec)
            }
            Err(failure) => Err(self.reject(name, failure)),
        }
    }

    fn check(&self, name: &[u8], words: &Words<'_>) -> Result<&'static Spec, Failure> {
        let spec = table::find(name).ok_or_else(|| Failure::unknown_command(name, words))?;
        spec.check_arity(words.len())?;
        if !self.authenticated && !spec.has(Flag::NoAuth) {
            return Err(Failure::NO_AUTH);
        }
        if self.transaction.is_some() && spec.has(Flag::NoMulti) {
            return Err(Failure::NOT_IN_MULTI);
        }
        Ok(spec)
    }

    /// A command that was not admitted spoils the transaction.
    fn reject(&mut self, name: &[u8], failure: Failure) -> Failure {
        if name.eq_ignore_ascii_case(b"exec") && self.transaction.take().is_some() {
            self.watched = transactions::WatchedKeys::default();
            return failure.aborts();
        }
        if let Some(transaction) = &mut self.transaction {
            transaction.spoil();
        }
        failure
    }

    async fn run(&mut self, spec: &'static Spec, words: &Words<'_>) -> Result<(), Failure> {
        if let Some(transaction) = &mut self.transaction
            && !spec.has(Flag::Unqueued)
        {
            transaction.queue(spec, words)?;
            self.reply().simple("QUEUED");
            return Ok(());
        }
        match spec.run {
            Run::Read(read) => self.read(read, words).await,
            Run::Local(local) => local(self, words),
            Run::Wait(Wait::Exec) => transactions::exec(self).await,
            Run::Wait(Wait::Watch) => transactions::watch(self, words).await,
            Run::Wait(Wait::Bucket) => buckets::bucket(self, words).await,
            Run::Change(_) => unreachable!("changes outside of transactions go their own way"),
        }
    }

    /// Makes a change, and adds it to the open batch.
    async fn change(
        &mut self,
        change: Change,
        words: &Words<'_>,
        silent: bool,
    ) -> Result<(), Failure> {
        let plan = {
            let node = &self.shared.node;
            change(&Scope { bucket: self.bucket, now_ms: &|| node.keys().now_ms() }, words)?
        };
        match plan {
            Plan::Change(op, tell) => self.add(&op, Some(tell).filter(|_| !silent)).await,
            Plan::Restore(put, tell) => self.add(&put.op(), Some(tell).filter(|_| !silent)).await,
            Plan::Read(read) => {
                self.settle().await;
                let start = self.output.len();
                self.read(read, words).await?;
                if silent {
                    self.output.truncate(start);
                }
            }
        }
        Ok(())
    }

    /// Adds a change to the open batch.
    pub(crate) async fn add(&mut self, op: &KeyOp<'_>, tell: Option<Tell>) {
        loop {
            match self.batches.add(op, self.pending.batch.as_ref()) {
                Ok((batch, at)) => {
                    self.pending.told.push((at, tell));
                    self.pending.batch = Some(batch);
                    return;
                }
                Err(Earlier) => self.settle().await,
            }
        }
    }

    /// Waits for the changes under way and tells them.
    pub(crate) async fn settle(&mut self) {
        let Some(batch) = self.pending.batch.take() else { return };
        let answers = batch.answered().await;
        for (at, tell) in self.pending.told.drain(..) {
            let Some(tell) = tell else { continue };
            let mut reply = Encoder::new(&mut self.output, self.protocol);
            match answers {
                Ok(answers) => match answers.get(at) {
                    Some(answer) => tell(answer, &mut reply),
                    None => unreachable!("every operation is answered"),
                },
                Err(error) => reply.error(format_args!("ERR {error}")),
            }
        }
    }

    /// Evaluates a read: from memory if that is enough.
    pub(crate) async fn read(&mut self, read: Read, words: &Words<'_>) -> Result<(), Failure> {
        let start = self.output.len();
        let stopped = {
            let keys = self.shared.node.keys();
            let reader = Reader::in_memory(&self.shared.node, &keys, self.bucket);
            read(&reader, words, &mut Encoder::new(&mut self.output, self.protocol))
        };
        let Err(stop) = stopped else { return Ok(()) };
        self.output.truncate(start);
        match stop {
            Stop::Failed(failure) => Err(failure),
            Stop::Elsewhere => {
                let (kept, bucket, protocol) = (Kept::new(words), self.bucket, self.protocol);
                let reply = self
                    .block(move |node| {
                        let mut out = Vec::new();
                        let keys = node.keys();
                        let reader = Reader::blocking(node, &keys, bucket);
                        match read(&reader, &kept.words(), &mut Encoder::new(&mut out, protocol)) {
                            Ok(()) => Ok(out),
                            Err(Stop::Failed(failure)) => Err(failure),
                            Err(Stop::Elsewhere) => unreachable!("blocking is allowed here"),
                        }
                    })
                    .await??;
                self.output.extend_from_slice(&reply);
                Ok(())
            }
        }
    }

    /// Does something where blocking is allowed.
    pub(crate) async fn block<T: Send + 'static>(
        &self,
        what: impl FnOnce(&Node) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let Ok(turn) = Arc::clone(&self.shared.blocking).acquire_owned().await else {
            unreachable!("the semaphore is never closed");
        };
        let node = self.shared.node.clone();
        let done = tokio::task::spawn_blocking(move || {
            // Held by the work itself: it goes on when the client goes away.
            let _turn = turn;
            what(&node)
        });
        done.await.map_err(|error| {
            tracing::error!(%error, "a read failed");
            Failure::INTERNAL
        })
    }

    /// Tells others what happened in this turn.
    pub(crate) fn end_turn(&mut self) {
        self.shared.metrics.take(&mut self.turn);
        let queued = self.transaction.as_ref().map_or(-1, transactions::Transaction::len);
        self.registered.entry.saw(Seen {
            uptime_s: self.shared.registry.uptime_s(),
            database: self.bucket.0,
            protocol: if self.protocol == Protocol::Resp2 { 2 } else { 3 },
            queued,
            last: self.last,
        });
    }
}
