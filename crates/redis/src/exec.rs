//! The command EXEC. A transaction is one submission to the node: the versions of the watched keys, the changes, and
//! the keys to read between them.
//!
//! **Invariant:** for a read, the writer only looks up the keys that the command names. The replies are written in this
//! module, from the rows that the writer found. Commands that walk over keys run after the transaction.

use std::cell::Cell;

use kv::{BucketId, KeyAnswer, KeyOp, KeyOps, Watched};
use node::{Found, KeyReplies, READ_BYTES_MAX, ReadAt, ReadRows};
use resp::Protocol;

use super::batch::load_keys;
use super::changes::{answering_row, write_answer};
use super::client::Client;
use super::command::{Kept, Local, Plan, Read, ReplyWriter, Run, Scope, Spec, bytes};
use super::failure::Failure;
use super::keys::database;
use super::memory::Output;
use super::reader::{Given, REPLY_BYTES_MAX, Reader, Stop, is_possible};
use super::session::STEPS_MAX;
use super::transactions::{QUEUE_BYTES_MAX, TOO_LARGE, Transaction, WatchedKeys};
use edge::Length;

/// Size of a reply without its row, in bytes.
const SHORT_REPLY_BYTES: usize = 32;

/// Source of the reply to a queued command.
enum Step {
    /// The next answer of the node; this function writes it.
    Change(ReplyWriter),
    /// The next read of the transaction.
    Read(Placed),
    /// A walk that runs after the transaction.
    Walk(Read, Kept),
    /// A command that runs here, after the transaction.
    Local(Local, Kept),
    /// An error of the command itself.
    Failed(Failure),
}

/// Read, and the number of the operation before which it happens.
struct Placed {
    before: usize,
    spec: &'static Spec,
    read: Read,
    words: Kept,
    bucket: BucketId,
}

/// Transaction ready to be submitted.
struct Planned {
    steps: Vec<Step>,
    changes: KeyOps,
    /// Keys whose rows are in the answers to the changes.
    answering: Vec<(BucketId, Box<[u8]>)>,
    /// Bucket selected for later commands of the transaction.
    bucket: BucketId,
}

/// Executes the transaction.
pub(crate) async fn exec(client: &mut Client) -> Result<(), Failure> {
    let transaction =
        client.transaction.take().ok_or(const { Failure::said("ERR EXEC without MULTI") })?;
    let done = carry_out(client, transaction).await;
    client.end_transaction();
    done
}

async fn carry_out(client: &mut Client, transaction: Transaction) -> Result<(), Failure> {
    let watched = std::mem::take(&mut client.watched);
    if transaction.spoiled {
        return Err(Failure::EXEC_ABORT);
    }
    let mut planned = Planned {
        steps: Vec::with_capacity(transaction.queued.len()),
        changes: KeyOps::default(),
        answering: Vec::new(),
        bucket: client.bucket,
    };
    for (spec, kept) in transaction.queued {
        planned.add(client, spec, kept).await?;
    }
    planned.reserve(client).await?;
    let (node, ops) = (&client.shared.node, planned.operations(&watched));
    let ops = load_keys(&client.shared.reads, node, ops).await?;
    let reads = planned.reads();
    let replies = client.shared.node.submit_keys_waiting(ops, reads).await?;
    match replies.answers.first() {
        Some(KeyAnswer::Skipped) => {
            client.reply().null_array();
            return Ok(());
        }
        // A transaction is refused as a whole.
        Some(KeyAnswer::Refused(refusal)) => return Err((*refusal).into()),
        _ => {}
    }
    reply(client, planned.steps, replies).await;
    Ok(())
}

impl Planned {
    /// Adds a queued command.
    ///
    /// # Errors
    /// If the changes together are too large, or the budget has no room for them.
    async fn add(
        &mut self,
        client: &mut Client,
        spec: &'static Spec,
        kept: Kept,
    ) -> Result<(), Failure> {
        let step = match spec.run {
            Run::Read(read) => self.place(spec, read, kept),
            Run::Walk(read) => Step::Walk(read, kept),
            Run::Change(_) => self.change(client, spec, kept).await?,
            Run::Local(local) => {
                if let ("select", [index]) = (spec.name, &*kept.words()) {
                    self.bucket = database(index).unwrap_or(self.bucket);
                }
                Step::Local(local, kept)
            }
            Run::Wait(_) => unreachable!("such commands run immediately, or not in MULTI"),
        };
        self.steps.push(step);
        // RESTORE adds the unpacked value, which may be much longer than the queued one.
        if self.changes.bytes() > QUEUE_BYTES_MAX {
            return Err(TOO_LARGE);
        }
        if client.memory.changes.cover(self.changes.bytes()) { Ok(()) } else { Err(Failure::BUSY) }
    }

    async fn change(
        &mut self,
        client: &mut Client,
        spec: &'static Spec,
        kept: Kept,
    ) -> Result<Step, Failure> {
        let Run::Change(change) = spec.run else { unreachable!("the command is a change") };
        let words = kept.words();
        let plan = {
            let node = &client.shared.node;
            change(&Scope { bucket: self.bucket, now_ms: &|| node.keys().now_ms() }, &words)
        };
        Ok(match plan {
            Ok(Plan::Change(op, writer)) => {
                let answering = answering_row(&op).filter(|(_, key)| is_possible(key));
                self.answering.extend(answering.map(|(bucket, key)| (bucket, key.into())));
                self.changes.push(&op);
                Step::Change(writer)
            }
            Ok(Plan::Restore(restore, writer)) => match client.unpack(restore.payload).await {
                Ok((value, _held)) => {
                    if !client.memory.changes.cover(self.changes.bytes() + value.len()) {
                        return Err(Failure::BUSY);
                    }
                    self.changes.push(&restore.op(&value));
                    Step::Change(writer)
                }
                Err(busy) if busy.is_busy() => return Err(busy),
                Err(failure) => Step::Failed(failure),
            },
            Ok(Plan::Read(read)) => {
                drop(words);
                self.place(spec, read, kept)
            }
            Err(failure) => Step::Failed(failure),
        })
    }

    fn place(&mut self, spec: &'static Spec, read: Read, words: Kept) -> Step {
        // Operation 0 begins the transaction.
        let before = 1 + self.changes.len();
        Step::Read(Placed { before, spec, read, words, bucket: self.bucket })
    }

    /// Reserves memory for the rows in the answers and for the replies. Loads the rows, so that the writer does not
    /// wait for the disk.
    ///
    /// # Errors
    /// If the rows are too long for a reply, or the budget has no room for them.
    async fn reserve(&self, client: &mut Client) -> Result<(), Failure> {
        let answering = self.answering.iter().map(|(bucket, key)| (*bucket, key.clone()));
        let answer_bytes = row_bytes(client, answering.collect()).await?;
        if answer_bytes > REPLY_BYTES_MAX {
            return Err(Failure::REPLY_TOO_LONG.aborts());
        }
        let read = self.reads().into_iter().flat_map(|read| {
            let bucket = read.bucket;
            read.keys.into_iter().map(move |key| (bucket, key))
        });
        let read_bytes = row_bytes(client, read.collect()).await?.min(READ_BYTES_MAX);
        let rows = answer_bytes + read_bytes;
        client.admit(rows + self.steps.len() * SHORT_REPLY_BYTES)?;
        let fits = client.memory.changes.cover(self.changes.bytes() + rows);
        if fits { Ok(()) } else { Err(Failure::BUSY) }
    }

    /// Returns the operations to submit: first the start of the transaction, with the watched keys, then the changes.
    fn operations(&mut self, watched: &WatchedKeys) -> KeyOps {
        let watched = watched.keys.iter().map(|((bucket, key), version)| Watched {
            bucket: *bucket,
            key: bytes(key),
            version: *version,
        });
        let watched = watched.collect();
        let Ok(then) = u32::try_from(self.changes.len()) else {
            unreachable!("a transaction has at most as many changes as a submission")
        };
        let mut ops = KeyOps::default();
        ops.push(&KeyOp::Begin { watched, then });
        ops.append(&mut self.changes);
        ops
    }

    /// Keys to read, each with the number of the operation before which it is read.
    fn reads(&self) -> Vec<ReadAt> {
        let placed = self.steps.iter().filter_map(|step| match step {
            Step::Read(placed) => Some(placed),
            _ => None,
        });
        placed.map(Placed::read_at).collect()
    }
}

impl Placed {
    fn read_at(&self) -> ReadAt {
        let words = self.words.words();
        let keys = self.spec.keys_of(&words).filter(|key| is_possible(key));
        ReadAt { before: self.before, bucket: self.bucket, keys: keys.map(Box::from).collect() }
    }

    /// Writes the reply to a read, from the rows that the transaction has read.
    fn evaluate(
        &self,
        found: &ReadRows,
        now_ms: u64,
        may_take_long: bool,
        (output, protocol): (&mut Output, Protocol),
    ) -> Result<(), Stop> {
        let rows = found.rows.as_deref().ok_or(Failure::REPLY_TOO_LONG)?;
        let words = self.words.words();
        let given = Given {
            keys: self.spec.keys_of(&words).filter(|key| is_possible(key)).collect(),
            rows,
            count: found.count,
            now_ms,
            may_take_long,
            next: Cell::new(0),
        };
        let (mut reply, held) = output.parts(protocol);
        let reader = Reader::given(&given, self.bucket, held);
        (self.read)(&reader, &words, &mut reply)
    }
}

/// Total size of the values of keys, in bytes. Loads values that are not in memory.
async fn row_bytes(client: &Client, keys: Vec<(BucketId, Box<[u8]>)>) -> Result<usize, Failure> {
    let (mut known, mut unknown) = (0, Vec::new());
    {
        let memory = client.shared.node.keys();
        for (bucket, key) in keys {
            match memory.try_row(bucket, &key) {
                Found::Row(row) => known += row.value().len(),
                Found::Absent => {}
                Found::Unknown => unknown.push((bucket, key)),
            }
        }
    }
    if unknown.is_empty() {
        return Ok(known);
    }
    let read = client.block(Length::Quick, move |node, _| {
        let keys = node.keys();
        let length = |(bucket, key): &(BucketId, Box<[u8]>)| {
            keys.row(*bucket, key).map_or(0, |row| row.value().len())
        };
        unknown.iter().map(length).sum::<usize>()
    });
    Ok(known + read.await?)
}

/// Writes the replies of all steps.
async fn reply(client: &mut Client, steps: Vec<Step>, replies: KeyReplies) {
    // Hold the memory of the rows until all replies are written.
    let KeyReplies { answers, reads, now_ms, held: _held } = replies;
    let (mut answers, mut reads) = (answers.iter().skip(1), reads.into_iter());
    let start = client.output.len();
    client.reply().array(steps.len());
    for (at, step) in steps.into_iter().enumerate() {
        if at % STEPS_MAX == STEPS_MAX - 1 {
            tokio::task::yield_now().await;
        }
        let before = client.output.len();
        let changes = matches!(step, Step::Change(_));
        let mut done = match step {
            Step::Change(writer) => {
                let Some(answer) = answers.next() else {
                    unreachable!("every operation is answered")
                };
                write_answer(answer, writer, &mut client.output, client.protocol);
                Ok(())
            }
            Step::Read(placed) => {
                let Some(found) = reads.next() else { unreachable!("every read is answered") };
                reply_to_read(client, placed, found, now_ms).await
            }
            Step::Walk(read, kept) => client.read(read, &kept.words()).await,
            Step::Local(local, kept) => local(client, &kept.words()),
            Step::Failed(failure) => Err(failure),
        };
        if client.output.len() - start > REPLY_BYTES_MAX {
            done = Err(if changes { Failure::NO_REPLY } else { Failure::REPLY_TOO_LONG });
        }
        if let Err(failure) = done {
            client.output.truncate(before);
            failure.log(&client.registered.entry, "exec");
            client.reply().error(failure);
        }
    }
}

async fn reply_to_read(
    client: &mut Client,
    placed: Placed,
    found: ReadRows,
    now_ms: u64,
) -> Result<(), Failure> {
    let (start, protocol) = (client.output.len(), client.protocol);
    let here = (&mut client.output, protocol);
    match placed.evaluate(&found, now_ms, false, here) {
        Ok(()) => return Ok(()),
        Err(Stop::Failed(failure)) => return Err(failure),
        Err(Stop::Disk) => unreachable!("the rows were given"),
        Err(Stop::Long) => client.output.truncate(start),
    }
    let mut output = Output::new(&client.memory.budget);
    let evaluate =
        move || placed.evaluate(&found, now_ms, true, (&mut output, protocol)).map(|()| output);
    match client.block(Length::Long, move |_, _| evaluate()).await? {
        Ok(reply) => client.output.append(reply),
        Err(Stop::Failed(failure)) => Err(failure),
        Err(Stop::Disk | Stop::Long) => {
            unreachable!("the rows were given, and the read may be long")
        }
    }
}
