//! MULTI, EXEC and WATCH. A transaction is one submission to the node: the versions it watched, its
//! changes, and a function that the writer calls between them for its reads.
#![allow(
    dead_code,
    unused_imports,
    reason = "a stopgap until transactions submit their reads as data"
)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use feed::keys::{KeyAnswer, KeyOp, KeyOps, Watched};
use feed::{BucketId, Stamp};
use node::SUBMISSION_COMMANDS_MAX;
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

/// Carries out the transaction.
pub(crate) async fn exec(client: &mut Client) -> Result<(), Failure> {
    let transaction =
        client.transaction.take().ok_or(const { Failure::said("ERR EXEC without MULTI") })?;
    let _ = (transaction.queued.len(), transaction.spoiled, std::mem::take(&mut client.watched));
    Err(Failure::EXEC_ABORT)
}
