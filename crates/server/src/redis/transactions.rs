//! MULTI, EXEC and WATCH. A transaction is one submission to the node: the versions it watched, its
//! changes, and a function that the writer calls between them for its reads.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use feed::keys::{KeyAnswer, KeyOp, KeyOps, Watched};
use feed::{BucketId, Stamp};
use node::{Between, Keys, SUBMISSION_COMMANDS_MAX};
use parking_lot::Mutex;
use resp::{Encoder, Protocol};

use super::client::Client;
use super::command::{
    Flag, Group, Kept, Local, Plan, Read, Run, Scope, Spec, Tell, Wait, WordList, Words, bytes,
};
use super::failure::Failure;
use super::keys::database;
use super::reader::{REPLY_BYTES_MAX, Reader, Stop};

/// Most memory that the queue of a transaction takes.
const QUEUE_BYTES_MAX: usize = 32 << 20;
/// Most bytes of keys that a client watches.
const WATCHED_BYTES_MAX: usize = 8 << 20;
/// What a watched key takes beside its bytes.
const WATCHED_BYTES_EACH: usize = 48;
const TOO_LARGE: Failure = Failure::said("ERR a transaction has at most 4095 changes and 32 MiB");

const fn row_of(
    name: &'static str,
    arity: i16,
    flags: &'static [Flag],
    run: Run,
    (since, summary): (&'static str, &'static str),
) -> Spec {
    let keys = if arity < 0 { (1, -1, 1) } else { (0, 0, 0) };
    Spec { name, arity, flags, keys, group: Group::Transactions, summary, since, run }
}

const NOW: &[Flag] = &[Flag::Unqueued, Flag::Fast, Flag::Loading];

pub(crate) const COMMANDS: &[Spec] = &[
    row_of("multi", 1, NOW, Run::Local(multi), ("1.2.0", "Begins a transaction.")),
    row_of(
        "exec",
        1,
        &[Flag::Unqueued],
        Run::Wait(Wait::Exec),
        ("1.2.0", "Carries out a transaction."),
    ),
    row_of("discard", 1, NOW, Run::Local(discard), ("2.0.0", "Gives up a transaction.")),
    row_of(
        "watch",
        -2,
        NOW,
        Run::Wait(Wait::Watch),
        ("2.2.0", "Lets the transaction fail if a key changes before."),
    ),
    row_of(
        "unwatch",
        1,
        &[Flag::Fast, Flag::Loading],
        Run::Local(unwatch),
        ("2.2.0", "Forgets what was watched."),
    ),
];

/// Keys that a client watches, and their versions when it began to.
#[derive(Default)]
pub(crate) struct WatchedKeys {
    keys: BTreeMap<(BucketId, Box<[u8]>), Option<Stamp>>,
    bytes: usize,
}

/// Commands that wait for EXEC.
#[derive(Default)]
pub(crate) struct Transaction {
    queued: Vec<(&'static Spec, Kept)>,
    changes: usize,
    memory: usize,
    spoiled: bool,
}

impl Transaction {
    /// Commands queued.
    pub(crate) fn len(&self) -> i64 {
        self.queued.len() as i64
    }

    /// A command was refused: EXEC will not carry out the others.
    pub(crate) fn spoil(&mut self) {
        self.spoiled = true;
    }

    /// Queues a command.
    ///
    /// # Errors
    /// If there is no room. The transaction is spoiled then.
    pub(crate) fn queue(&mut self, spec: &'static Spec, words: &Words<'_>) -> Result<(), Failure> {
        let bytes: usize = words.iter().map(|word| word.len()).sum();
        let changes = self.changes + usize::from(matches!(spec.run, Run::Change(_)));
        // One operation is what makes them a transaction.
        let room = self.memory + bytes <= QUEUE_BYTES_MAX && changes < SUBMISSION_COMMANDS_MAX;
        if self.spoiled || !room {
            self.spoil();
            self.queued = Vec::new();
            return if room { Ok(()) } else { Err(TOO_LARGE) };
        }
        let kept = Kept::new(words);
        self.memory += kept.memory();
        self.changes = changes;
        self.queued.push((spec, kept));
        Ok(())
    }
}

fn multi(client: &mut Client, _: &Words<'_>) -> Result<(), Failure> {
    if client.transaction.is_some() {
        return Err(Failure::said("ERR MULTI calls can not be nested"));
    }
    client.transaction = Some(Transaction::default());
    client.reply().simple("OK");
    Ok(())
}

fn discard(client: &mut Client, _: &Words<'_>) -> Result<(), Failure> {
    if client.transaction.take().is_none() {
        return Err(Failure::said("ERR DISCARD without MULTI"));
    }
    client.watched = WatchedKeys::default();
    client.reply().simple("OK");
    Ok(())
}

fn unwatch(client: &mut Client, _: &Words<'_>) -> Result<(), Failure> {
    client.watched = WatchedKeys::default();
    client.reply().simple("OK");
    Ok(())
}

/// Notes how keys are now.
pub(crate) async fn watch(client: &mut Client, words: &Words<'_>) -> Result<(), Failure> {
    if client.transaction.is_some() {
        return Err(Failure::said("ERR WATCH inside MULTI is not allowed"));
    }
    let bytes = words.iter().map(|word| word.len() + WATCHED_BYTES_EACH).sum::<usize>();
    if client.watched.bytes + bytes > WATCHED_BYTES_MAX {
        return Err(Failure::said("ERR a client can watch 8 MiB of keys at most"));
    }
    client.watched.bytes += bytes;
    let bucket = client.bucket;
    let found = {
        let keys = client.shared.node.keys();
        Reader::in_memory(&client.shared.node, &keys, bucket).rows(words)
    };
    let rows = match found {
        Ok(rows) => rows,
        Err(Stop::Failed(failure)) => return Err(failure),
        Err(Stop::Elsewhere) => {
            let kept = Kept::new(words);
            let read = move |node: &node::Node| {
                let keys = node.keys();
                Reader::blocking(node, &keys, bucket).rows(&kept.words())
            };
            let Ok(rows) = client.block(read).await? else {
                unreachable!("reads of rows only stop where they must not block")
            };
            rows
        }
    };
    for (key, row) in words.iter().zip(&rows) {
        // Watched twice, the first time counts.
        let version = row.as_ref().map(feed::keys::KeyRow::version);
        client.watched.keys.entry((bucket, (*key).into())).or_insert(version);
    }
    client.reply().simple("OK");
    Ok(())
}

/// What becomes of a queued command.
enum Step {
    /// The next answer of the writer, told so.
    Change(Tell),
    /// The next reply that was written between the changes.
    Read,
    /// Answered here, when it is known that the transaction happened.
    Local(Local, Kept),
    /// It was wrong.
    Failed(Failure),
}

/// A read, and before which operation it takes place.
struct Placed {
    before: usize,
    read: Read,
    words: Kept,
    bucket: BucketId,
}

/// A transaction, ready to be submitted.
struct Planned {
    steps: Vec<Step>,
    changes: KeyOps,
    reads: VecDeque<Placed>,
    /// What later commands work on.
    bucket: BucketId,
}

/// A reply that was written at the writer's, or why it was not.
type Written = Result<Vec<u8>, Failure>;

impl Planned {
    fn new(bucket: BucketId) -> Self {
        Self { steps: Vec::new(), changes: KeyOps::default(), reads: VecDeque::new(), bucket }
    }

    fn add(&mut self, spec: &'static Spec, kept: Kept, now_ms: &dyn Fn() -> u64) {
        let step = match spec.run {
            Run::Read(read) => self.place(read, kept),
            Run::Change(change) => {
                let words = kept.words();
                match change(&Scope { bucket: self.bucket, now_ms }, &words) {
                    Ok(Plan::Change(op, tell)) => self.push(&op, tell),
                    Ok(Plan::Restore(put, tell)) => self.push(&put.op(), tell),
                    Ok(Plan::Read(read)) => {
                        let kept = kept.clone();
                        self.place(read, kept)
                    }
                    Err(failure) => Step::Failed(failure),
                }
            }
            Run::Local(local) => {
                if let ("select", [index]) = (spec.name, &*kept.words()) {
                    self.bucket = database(index).unwrap_or(self.bucket);
                }
                Step::Local(local, kept)
            }
            Run::Wait(_) => unreachable!("these are carried out at once or not at all in MULTI"),
        };
        self.steps.push(step);
    }

    fn push(&mut self, op: &KeyOp<'_>, tell: Tell) -> Step {
        self.changes.push(op);
        Step::Change(tell)
    }

    fn place(&mut self, read: Read, words: Kept) -> Step {
        // Operation 0 is the beginning of the transaction.
        let before = 1 + self.changes.len();
        self.reads.push_back(Placed { before, read, words, bucket: self.bucket });
        Step::Read
    }

    /// The operations: the beginning with what was watched, and the changes.
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
}

/// Writes the replies of `reads` when their turn comes, to where they are expected.
fn between(
    mut reads: VecDeque<Placed>,
    protocol: Protocol,
    written: Arc<Mutex<VecDeque<Written>>>,
) -> Between {
    let mut total = 0;
    Box::new(move |index: usize, keys: &Keys<'_>| {
        while let Some(placed) = reads.pop_front_if(|placed| placed.before <= index) {
            let mut out = Vec::new();
            let reader = Reader::at_the_writer(keys, placed.bucket);
            let words: WordList<'_> = placed.words.words();
            let reply = match (placed.read)(&reader, &words, &mut Encoder::new(&mut out, protocol))
            {
                Ok(()) if total + out.len() <= REPLY_BYTES_MAX => Ok(out),
                Ok(()) => Err(Failure::REPLY_TOO_LONG),
                Err(Stop::Failed(failure)) => Err(failure),
                Err(Stop::Elsewhere) => unreachable!("the writer may block"),
            };
            total += reply.as_ref().map_or(0, Vec::len);
            written.lock().push_back(reply);
        }
    })
}

/// Carries out the transaction.
pub(crate) async fn exec(client: &mut Client) -> Result<(), Failure> {
    let transaction =
        client.transaction.take().ok_or(const { Failure::said("ERR EXEC without MULTI") })?;
    let watched = std::mem::take(&mut client.watched);
    if transaction.spoiled {
        return Err(Failure::EXEC_ABORT);
    }
    let node = client.shared.node.clone();
    let mut planned = Planned::new(client.bucket);
    for (spec, kept) in transaction.queued {
        planned.add(spec, kept, &|| node.keys().now_ms());
        // What RESTORE unpacks may be far longer than what was queued.
        if planned.changes.bytes() > QUEUE_BYTES_MAX {
            return Err(TOO_LARGE);
        }
    }
    let ops = planned.operations(&watched);
    let written = Arc::new(Mutex::new(VecDeque::new()));
    let between = between(planned.reads, client.protocol, Arc::clone(&written));
    let answers = node.submit_keys(ops, Some(between)).await;
    let answers = answers.map_err(|error| Failure::of(format!("ERR {error}")))?;
    let mut answers = answers.iter();
    if answers.next() == Some(&KeyAnswer::Skipped) {
        client.reply().null_array();
        return Ok(());
    }
    client.reply().array(planned.steps.len());
    for step in planned.steps {
        let told = match step {
            Step::Change(tell) => {
                let Some(answer) = answers.next() else {
                    unreachable!("every operation is answered")
                };
                tell(answer, &mut client.reply());
                Ok(())
            }
            Step::Read => {
                let Some(reply) = written.lock().pop_front() else {
                    unreachable!("every read has had its turn")
                };
                reply.map(|reply| client.output.extend_from_slice(&reply))
            }
            Step::Local(local, kept) => local(client, &kept.words()),
            Step::Failed(failure) => Err(failure),
        };
        if let Err(failure) = told {
            client.reply().error(failure);
        }
    }
    Ok(())
}
