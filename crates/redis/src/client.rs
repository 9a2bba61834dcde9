//! Client: the state of a connection between commands, and the execution of its commands.
//!
//! **Invariant:** replies are in the order of commands. The reply to a change is written when its batch is answered.
//! All other commands therefore first wait for the changes before them ([`Client::flush_changes`]).

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use budget::{MemoryBudget, Reservation};
use kv::BucketId;
use node::{Keys, Node};
use resp::{Encoder, Protocol};

use super::batch::Batches;
use super::changes::Pending;
use super::command::{Flag, Kept, Read, Run, Spec, Wait, WordList, Words};
use super::connection_commands::is_about_replies;
use super::failure::Failure;
use super::memory::{Memory, Output};
use super::metrics::{RedisMetrics, Turn};
use super::reader::{LookUps, Reader, Stop};
use super::registry::{Registered, Registry, Seen};
use super::{buckets, exec, scopes, table, transactions};
use edge::{Abandoned, Access, BlockingReads, Grant, Length};

/// Maximum number of words of a command that need no reservation.
const WORDS_FREE: usize = 16;
/// Memory per word of the command being executed, in bytes: the word's position in the parser and in the client, and a
/// row or a pair of a change.
const WORD_BYTES: usize = 64;
/// Space that is reserved for a reply before every command, in bytes, so that a short reply never grows the buffer.
const SHORT_REPLY_BYTES: usize = 1_024;
/// Maximum memory for a transaction that an idle client may hold, in bytes. A client that holds more is disconnected
/// after a long time without input.
const IDLE_BYTES_MAX: usize = 64 << 10;

/// State shared by all connections.
pub(crate) struct Shared {
    pub(crate) node: Node,
    pub(crate) access: Access,
    pub(crate) metrics: RedisMetrics,
    pub(crate) registry: Arc<Registry>,
    /// Runner of reads that may need a disk or take long.
    pub(crate) reads: BlockingReads,
    /// Budget of connections.
    pub(crate) connections: MemoryBudget,
    /// Budget of input and unsent output, in addition to the memory of connections.
    pub(crate) budget: MemoryBudget,
    pub(crate) connections_max: u32,
}

/// State of a connection between commands.
pub(crate) struct Client {
    pub(crate) shared: Arc<Shared>,
    pub(crate) batches: Rc<Batches>,
    pub(crate) registered: Registered,
    pub(crate) protocol: Protocol,
    /// Bucket selected with SELECT or BUCKET USE.
    pub(crate) bucket: BucketId,
    /// Grant of the client; `None` before it has presented a key.
    pub(crate) grant: Option<Grant>,
    pub(crate) replies: Replies,
    pub(crate) transaction: Option<transactions::Transaction>,
    pub(crate) watched: transactions::WatchedKeys,
    pub(crate) pending: Pending,
    /// Unsent replies.
    pub(crate) output: Output,
    pub(crate) memory: Memory,
    /// Whether the connection ends once all replies are sent.
    pub(crate) closing: bool,
    /// Whether the clock was read in this turn, and since the last wait.
    clock_read: Cell<bool>,
    /// Number of steps of work in this turn, in addition to one per command.
    pub(crate) work: usize,
    pub(crate) turn: Turn,
    pub(crate) last: &'static str,
}

/// Replies that the client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replies {
    /// Every reply.
    On,
    /// No replies.
    Off,
    /// Every reply except the one to the next command.
    SkipNext,
}

impl Client {
    /// Creates a client. `connection` is the reserved memory of its connection.
    pub(crate) fn new(
        shared: Arc<Shared>,
        batches: Rc<Batches>,
        registered: Registered,
        connection: Reservation,
    ) -> Self {
        let grant = shared.access.without_key();
        let output = Output::new(&shared.budget);
        let memory = Memory::new(&shared.budget, connection);
        Self {
            shared,
            batches,
            registered,
            protocol: Protocol::Resp2,
            bucket: BucketId(0),
            grant,
            replies: Replies::On,
            transaction: None,
            watched: transactions::WatchedKeys::default(),
            pending: Pending::default(),
            output,
            memory,
            closing: false,
            clock_read: Cell::new(false),
            work: 0,
            turn: Turn::default(),
            last: "NULL",
        }
    }

    /// Returns a writer for a short reply. For a reply that may be long, call [`Client::admit`] first.
    pub(crate) fn reply(&mut self) -> Encoder<'_> {
        self.output.encoder(self.protocol)
    }

    /// Memory of all clients, in bytes.
    pub(crate) fn memory_of_all(&self) -> usize {
        self.shared.connections.used() + self.shared.budget.used()
    }

    /// Whether the client holds so little memory between commands that it may stay idle without a time limit.
    pub(crate) fn holds_little(&self) -> bool {
        self.memory.queue.bytes() + self.memory.watched.bytes() <= IDLE_BYTES_MAX
    }

    /// Makes room for a reply of `bytes` bytes.
    ///
    /// # Errors
    /// If the budget has no room for it.
    pub(crate) fn admit(&mut self, bytes: usize) -> Result<(), Failure> {
        if self.output.make_room(bytes) { Ok(()) } else { Err(Failure::BUSY) }
    }

    /// Whether there is room for the reply to another short command.
    pub(crate) fn has_room(&mut self) -> bool {
        self.output.make_room(SHORT_REPLY_BYTES)
    }

    /// Whether the client has presented a key that is still valid, or needs none.
    pub(crate) fn authenticated(&self) -> bool {
        self.grant.is_some()
    }

    /// Updates the client's permissions, because its key may have been revoked. If the scopes have changed, a queued
    /// transaction is not executed.
    pub(crate) fn renew_grant(&mut self) {
        let renewed = self.grant.and_then(|grant| self.shared.access.renew(&grant));
        if renewed.map(|grant| grant.scopes()) != self.grant.map(|grant| grant.scopes())
            && self.transaction.is_some()
        {
            self.spoil_transaction();
        }
        self.grant = renewed;
    }

    /// Executes a command.
    pub(crate) async fn carry_out(&mut self, command: resp::Command<'_>) {
        if command.is_http() {
            self.closing = true;
            return;
        }
        let words = command.arguments().len();
        // Count each word as a step, because it may be a key to look up.
        self.work += words;
        let covered = words <= WORDS_FREE || self.memory.words.cover(words * WORD_BYTES);
        let words: WordList<'_> =
            command.arguments().take(if covered { words } else { 0 }).collect();
        let silent = self.replies != Replies::On;
        let spec = if covered {
            self.admit_command(command.name(), &words)
        } else {
            Err(self.reject(command.name(), Failure::BUSY))
        };
        if let Ok(Spec { run: Run::Change(change), .. }) = spec
            && self.transaction.is_none()
        {
            let planned = self.change(*change, &words, silent).await;
            self.end(planned, silent, None).await;
        } else {
            self.flush_changes().await;
            let start = self.output.len();
            let done = match spec {
                Ok(spec) => self.run(spec, &words).await,
                Err(failure) => Err(failure),
            };
            self.end(done, silent, Some(start)).await;
        }
        if words.len() > WORDS_FREE {
            drop(words);
            self.memory.words.cover(0);
        }
    }

    /// Writes an error, if any. Removes the reply if the client wants none.
    async fn end(&mut self, done: Result<(), Failure>, silent: bool, start: Option<usize>) {
        if let Err(failure) = done {
            self.flush_changes().await;
            failure.log(&self.registered.entry, self.last);
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

    /// Looks up a command, and checks that the client may send it now.
    fn admit_command(&mut self, name: &[u8], words: &Words<'_>) -> Result<&'static Spec, Failure> {
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
        if !spec.has(Flag::NoAuth) {
            let grant = self.grant.ok_or(Failure::NO_AUTH)?;
            if !grant.allows_all(scopes::needed(spec, words)) {
                return Err(Failure::no_permission(spec.name));
            }
        }
        let in_multi = self.transaction.is_some();
        if in_multi && (spec.has(Flag::NoMulti) || is_about_replies(spec, words)) {
            return Err(Failure::NOT_IN_MULTI);
        }
        Ok(spec)
    }

    /// Makes the transaction fail, because a command was refused.
    fn reject(&mut self, name: &[u8], failure: Failure) -> Failure {
        // Even outside of a transaction, EXEC ends the watching of keys.
        if name.eq_ignore_ascii_case(b"exec") {
            self.end_transaction();
            return failure.aborts();
        }
        if self.transaction.is_some() {
            self.spoil_transaction();
        }
        failure
    }

    async fn run(&mut self, spec: &'static Spec, words: &Words<'_>) -> Result<(), Failure> {
        if self.transaction.is_some() && !spec.has(Flag::Unqueued) {
            self.queue(spec, words)?;
            self.reply().simple("QUEUED");
            return Ok(());
        }
        match spec.run {
            Run::Read(read) | Run::Walk(read) => self.read(read, words).await,
            Run::Local(local) => local(self, words),
            Run::Wait(Wait::Exec) => {
                let done = exec::exec(self).await;
                self.waited();
                done
            }
            Run::Wait(Wait::Watch) => transactions::watch(self, words).await,
            Run::Wait(Wait::Bucket) => buckets::bucket(self, words).await,
            Run::Change(_) => unreachable!("changes outside of transactions are handled earlier"),
        }
    }

    /// Runs a read. Reads only memory if that suffices.
    pub(crate) async fn read(&mut self, read: Read, words: &Words<'_>) -> Result<(), Failure> {
        let start = self.output.len();
        let stopped = {
            let node = &self.shared.node;
            let keys = keys(node, &self.clock_read);
            let (mut reply, held) = self.output.parts(self.protocol);
            let reader = Reader::in_memory(node, &keys, self.bucket, held);
            read(&reader, words, &mut reply).map(|()| reader.looked_up())
        };
        let stop = match stopped {
            Ok(looked_up) => {
                self.turn.count_look_ups(looked_up);
                return Ok(());
            }
            Err(stop) => stop,
        };
        self.output.truncate(start);
        let length = match stop {
            Stop::Failed(failure) => return Err(failure),
            Stop::Disk => Length::Quick,
            Stop::Long => Length::Long,
        };
        let mut stopped = self.read_elsewhere(read, words, length).await?;
        if let Err(Stop::Long) = stopped {
            // The data was not in memory, which makes this a long read.
            stopped = self.read_elsewhere(read, words, Length::Long).await?;
        }
        match stopped {
            Ok((reply, looked_up)) => {
                self.turn.count_look_ups(looked_up);
                self.output.append(reply)
            }
            Err(Stop::Failed(failure)) => Err(failure),
            Err(Stop::Disk | Stop::Long) => unreachable!("both are allowed in the long lane"),
        }
    }

    /// Runs a read where blocking is allowed.
    async fn read_elsewhere(
        &mut self,
        read: Read,
        words: &Words<'_>,
        length: Length,
    ) -> Result<Result<(Output, LookUps), Stop>, Failure> {
        if !self.memory.words.cover(words.len() * WORD_BYTES + Kept::memory_of(words)) {
            return Err(Failure::BUSY);
        }
        let (kept, bucket, protocol) = (Kept::new(words), self.bucket, self.protocol);
        let mut output = Output::new(&self.memory.budget);
        let done = self.block(length, move |node, abandoned| {
            let keys = node.keys();
            let (mut reply, held) = output.parts(protocol);
            let reader = Reader::blocking(node, &keys, bucket, length, abandoned, held);
            read(&reader, &kept.words(), &mut reply)?;
            let looked_up = reader.looked_up();
            Ok((output, looked_up))
        });
        let done = done.await;
        self.memory.words.cover(words.len() * WORD_BYTES);
        done
    }

    /// Keys at the current time.
    pub(crate) fn keys(&self) -> Keys<'_> {
        keys(&self.shared.node, &self.clock_read)
    }

    /// Makes the next read use the current time.
    pub(crate) fn waited(&self) {
        self.clock_read.set(false);
    }

    /// Runs a function that may block.
    pub(crate) async fn block<T: Send + 'static>(
        &self,
        length: Length,
        what: impl FnOnce(&Node, &Abandoned) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let (node, connection_id) = (self.shared.node.clone(), self.registered.entry.id);
        let read = move |abandoned: &Abandoned| {
            let _span = tracing::error_span!("redis", connection_id).entered();
            what(&node, abandoned)
        };
        let done = self.shared.reads.run_in(length, read).await;
        self.waited();
        Ok(done?)
    }

    /// Updates the registry and the metrics at the end of a turn, and frees memory.
    pub(crate) fn end_turn(&mut self) {
        self.work = 0;
        self.waited();
        self.shared.metrics.take(&mut self.turn);
        let queued = self.transaction.as_ref().map_or(-1, transactions::Transaction::len);
        self.registered.entry.saw(Seen {
            uptime_s: self.shared.registry.uptime_s(),
            database: self.bucket.0,
            protocol: if self.protocol == Protocol::Resp2 { 2 } else { 3 },
            queued,
            authenticated: self.authenticated(),
            last: self.last,
        });
    }
}

/// Returns the keys at the current time. The clock is read once for all reads until the next wait, because their
/// commands arrived before.
fn keys<'n>(node: &'n Node, clock_read: &Cell<bool>) -> Keys<'n> {
    if clock_read.replace(true) { node.keys_at_last_time() } else { node.keys() }
}
