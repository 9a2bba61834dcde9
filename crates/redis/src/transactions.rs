//! Commands of transactions, except EXEC: MULTI, WATCH and similar ones.

use std::collections::BTreeMap;

use kv::Stamp;
use kv::{BucketId, KeyRow};
use node::SUBMISSION_COMMANDS_MAX;

use super::client::Client;
use super::command::{Flag, Group, Kept, Run, Spec, Wait, Words};
use super::failure::Failure;
use super::memory::Held;
use super::reader::{
    READ_KEYS_MAX, Reader, Rows, Stop, TOGETHER_KEYS_MAX, TOO_MANY_KEYS, is_possible,
};
use edge::Length;

/// Maximum memory of the queued commands of a transaction, and maximum size of its changes, in bytes.
pub(crate) const QUEUE_BYTES_MAX: usize = 32 << 20;
/// Maximum size of the keys that a client watches, in bytes.
const WATCHED_BYTES_MAX: usize = 8 << 20;
/// Size of a watched key without its name, in bytes.
const WATCHED_BYTES_EACH: usize = 96;
pub(crate) const TOO_LARGE: Failure =
    Failure::said("ERR a transaction has at most 4095 changes and 32 MiB");
const TOO_MANY_READS: Failure = Failure::said("ERR a transaction reads at most 4096 keys");

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
        ("1.2.0", "Executes a transaction."),
    ),
    row_of("discard", 1, NOW, Run::Local(discard), ("2.0.0", "Discards a transaction.")),
    row_of(
        "watch",
        -2,
        NOW,
        Run::Wait(Wait::Watch),
        ("2.2.0", "Makes EXEC fail if a key changes before it."),
    ),
    row_of(
        "unwatch",
        1,
        &[Flag::Fast, Flag::Loading],
        Run::Local(unwatch),
        ("2.2.0", "Stops watching all keys."),
    ),
];

/// Keys that a client watches, and their versions at the time of WATCH.
#[derive(Default)]
pub(crate) struct WatchedKeys {
    pub(crate) keys: BTreeMap<(BucketId, Box<[u8]>), Option<Stamp>>,
    bytes: usize,
}

impl WatchedKeys {
    /// Total size of the watched keys after these keys of a bucket are added, in bytes.
    fn bytes_with(&self, bucket: BucketId, words: &Words<'_>) -> usize {
        // The look-up copies the word. If the word is too long for a key, the copy would take much memory outside of
        // the budget.
        let is_new = |word: &&[u8]| {
            !is_possible(word) || !self.keys.contains_key(&(bucket, Box::from(*word)))
        };
        let mut new: Vec<&[u8]> = words.iter().copied().filter(is_new).collect();
        new.sort_unstable();
        new.dedup();
        self.bytes + new.iter().map(|word| word.len() + WATCHED_BYTES_EACH).sum::<usize>()
    }
}

/// Commands that are queued until EXEC.
#[derive(Default)]
pub(crate) struct Transaction {
    pub(crate) queued: Vec<(&'static Spec, Kept)>,
    changes: usize,
    read_keys: usize,
    memory: usize,
    /// Whether a command was refused. EXEC then fails.
    pub(crate) spoiled: bool,
}

impl Transaction {
    /// Number of queued commands.
    pub(crate) fn len(&self) -> i64 {
        self.queued.len() as i64
    }

    /// Counts a command. Returns the memory of all queued commands, in bytes.
    ///
    /// # Errors
    /// If a limit of the transaction is exceeded.
    fn count(&mut self, spec: &Spec, words: &Words<'_>) -> Result<usize, Failure> {
        match spec.run {
            Run::Change(_) => self.changes += 1,
            Run::Read(_) => self.read_keys += spec.keys_of(words).len(),
            Run::Walk(_) | Run::Local(_) | Run::Wait(_) => {}
        }
        // A growing vector has capacity for at most twice its elements.
        self.memory += Kept::memory_of(words) + 2 * size_of::<(&Spec, Kept)>();
        // The submission has one operation more than the transaction has changes: the one that begins it.
        if self.memory > QUEUE_BYTES_MAX || self.changes >= SUBMISSION_COMMANDS_MAX {
            return Err(TOO_LARGE);
        }
        if self.read_keys > TOGETHER_KEYS_MAX {
            return Err(TOO_MANY_READS);
        }
        Ok(self.memory)
    }
}

impl Client {
    /// Queues a command of a transaction.
    ///
    /// # Errors
    /// If a limit is reached. EXEC then fails.
    pub(crate) fn queue(&mut self, spec: &'static Spec, words: &Words<'_>) -> Result<(), Failure> {
        let Some(transaction) = self.transaction.as_mut().filter(|found| !found.spoiled) else {
            return Ok(());
        };
        let room = transaction.count(spec, words).and_then(|bytes| {
            if self.memory.queue.cover(bytes) { Ok(()) } else { Err(Failure::BUSY) }
        });
        match room {
            Ok(()) => transaction.queued.push((spec, Kept::new(words))),
            Err(_) => self.spoil_transaction(),
        }
        room
    }

    /// Makes the transaction fail, because a command was refused, and drops its commands.
    pub(crate) fn spoil_transaction(&mut self) {
        if let Some(transaction) = &mut self.transaction {
            transaction.spoiled = true;
            transaction.queued = Vec::new();
        }
        self.memory.queue.cover(0);
    }

    /// Drops the transaction and the watched keys, with their memory.
    pub(crate) fn end_transaction(&mut self) {
        self.transaction = None;
        self.memory.queue.cover(0);
        self.memory.changes.cover(0);
        self.end_watch();
    }

    fn end_watch(&mut self) {
        self.watched = WatchedKeys::default();
        self.memory.watched.cover(0);
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
    if client.transaction.is_none() {
        return Err(Failure::said("ERR DISCARD without MULTI"));
    }
    client.end_transaction();
    client.reply().simple("OK");
    Ok(())
}

fn unwatch(client: &mut Client, _: &Words<'_>) -> Result<(), Failure> {
    client.end_watch();
    client.reply().simple("OK");
    Ok(())
}

/// Records the current versions of keys.
pub(crate) async fn watch(client: &mut Client, words: &Words<'_>) -> Result<(), Failure> {
    if client.transaction.is_some() {
        return Err(Failure::said("ERR WATCH inside MULTI is not allowed"));
    }
    if words.len() > READ_KEYS_MAX {
        return Err(TOO_MANY_KEYS);
    }
    let bucket = client.bucket;
    let bytes = client.watched.bytes_with(bucket, words);
    if bytes > WATCHED_BYTES_MAX {
        return Err(Failure::said("ERR a client can watch at most 8 MiB of keys"));
    }
    if !client.memory.watched.cover(bytes) {
        return Err(Failure::BUSY);
    }
    let rows = match current_rows(client, words).await {
        Ok(rows) => rows,
        Err(failure) => {
            client.memory.watched.cover(client.watched.bytes);
            return Err(failure);
        }
    };
    client.watched.bytes = bytes;
    for (key, row) in words.iter().zip(&rows) {
        // If a key is watched twice, its first version counts.
        let version = row.as_ref().map(KeyRow::version);
        client.watched.keys.entry((bucket, (*key).into())).or_insert(version);
    }
    client.reply().simple("OK");
    Ok(())
}

/// Returns the current rows of keys. Reads only memory if that suffices.
async fn current_rows(client: &mut Client, words: &Words<'_>) -> Result<Rows, Failure> {
    let bucket = client.bucket;
    let found = {
        let keys = client.shared.node.keys();
        let (_, held) = client.output.parts(client.protocol);
        Reader::in_memory(&client.shared.node, &keys, bucket, held).rows(words)
    };
    match found {
        Ok(rows) => Ok(rows),
        Err(Stop::Failed(failure)) => Err(failure),
        Err(Stop::Disk | Stop::Long) => {
            let kept = Kept::new(words);
            let mut held = Held::new(&client.memory.budget, 0);
            let read = client.block(Length::Long, move |node, abandoned| {
                let (keys, length) = (node.keys(), Length::Long);
                let reader = Reader::blocking(node, &keys, bucket, length, abandoned, &mut held);
                reader.rows(&kept.words())
            });
            let Ok(rows) = read.await? else {
                unreachable!("reads of rows only stop where they must not block")
            };
            Ok(rows)
        }
    }
}
