//! The writer: the one thread that changes anything. It takes what waits, stamps it, puts it into
//! the log as one group, applies it in order, tells the views, and answers.
//!
//! **Invariant:** a reply is sent only when its group is in the log (durable, under policy
//! `always`) and applied.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use feed::{
    Command, Effect, Entry, Facts, Idempotency, Reply, Rows, StampClock, Txn, apply, apply_keys,
};
use parking_lot::Mutex;
use smallvec::SmallVec;
use store::StoreWriter;
use tokio::sync::oneshot;

use crate::checkpoints::Checkpoints;
use crate::fatal::fatal;
use crate::inbox::{Request, Submission, Taken};
use crate::keys::{KeyReplies, Keys, ReadAt};
use crate::log::{LocalLog, Log, PAYLOAD_BYTES_MAX, SyncPoint};
use crate::metrics::Metrics;
use crate::node::Shared;
use crate::options::Durability;

/// Commands in one group: bounds the memory of a group and the time until its first answer.
pub(crate) const GROUP_COMMANDS_MAX: usize = 4_096;
/// What an entry takes in the log besides its longest text.
const ENTRY_BYTES_MAX: usize = 1_024;
/// What a command that is no operation on keys takes in the log.
const REQUEST_BYTES_MAX: usize = feed::limits::POST_BYTES_MAX + ENTRY_BYTES_MAX;
/// Longest operations on keys in one submission, in bytes.
pub(crate) const KEY_OPS_BYTES_MAX: usize = 48 << 20;
const _: () = assert!(GROUP_COMMANDS_MAX * REQUEST_BYTES_MAX <= PAYLOAD_BYTES_MAX);
const _: () = assert!(KEY_OPS_BYTES_MAX + ENTRY_BYTES_MAX <= PAYLOAD_BYTES_MAX);
/// What is kept of a buffer that one long group has made longer.
const KEPT_BYTES: usize = 1 << 20;
/// How long the writer sleeps at most before it looks whether a checkpoint is due.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the writer shares with the thread that syncs the log now and then.
pub(crate) type SyncSlot = Mutex<Option<SyncPoint>>;

/// State of the writer thread.
pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) log: LocalLog,
    pub(crate) rows: StoreWriter,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) clock: StampClock,
    pub(crate) durability: Durability,
    pub(crate) sync_slot: Arc<SyncSlot>,
    pub(crate) deliverer: std::thread::Thread,
}

impl Writer {
    /// Works until the inbox is closed and empty, then takes a last checkpoint.
    pub(crate) fn run(mut self) {
        let mut taken = Vec::new();
        loop {
            match self.shared.inbox.take(&mut taken, PATIENCE) {
                Taken::Work => self.work_off(&mut taken),
                Taken::Idle => self.checkpoints.when_idle(&mut self.rows, &mut self.log),
                Taken::Closed => break,
            }
            if self.shared.erasure_due.swap(false, Ordering::AcqRel) {
                self.checkpoints.want_erasure();
            }
        }
        if let Err(error) = self.log.sync() {
            fatal("the log could not be made durable at shutdown", &error);
        }
        self.checkpoints.last(&mut self.rows, &mut self.log);
    }

    /// Splits what was taken into groups, never inside a submission.
    fn work_off(&mut self, taken: &mut Vec<Submission>) {
        let mut group = Group::default();
        for submission in taken.drain(..) {
            if !group.has_room_for(&submission) {
                self.commit(&mut group);
            }
            group.commands += submission.commands();
            match submission {
                Submission::Requests { requests, reply } => {
                    group.waiting.push(Waiting::Requests { reply, commands: requests.len() });
                    for Request { command, idempotency } in requests {
                        self.add(&mut group, command, idempotency);
                    }
                }
                Submission::Keys { ops, reads, reply } => {
                    group.waiting.push(Waiting::Keys { reply, reads, replies: None });
                    self.add(&mut group, Command::Keys(ops), None);
                }
            }
        }
        self.commit(&mut group);
    }

    fn add(&mut self, group: &mut Group, command: Command, idempotency: Option<Idempotency>) {
        let stamps = command.stamps();
        let stamp = self.clock.next_run(self.shared.time.now_ms(), stamps);
        self.shared.time.at_least(stamp.after(stamps as u64 - 1).unix_ms());
        group.add(Entry { stamp, idempotency, command });
    }

    fn commit(&mut self, group: &mut Group) {
        if group.entries.is_empty() {
            group.answer(&[]);
            return;
        }
        self.log(&group.payload);
        let metrics = &self.shared.metrics;
        metrics.group_commands.observe(group.commands as f64);
        metrics.commands.inc_by(group.commands as u64);
        let mut replies = Vec::new();
        let mut effects: Vec<Effect> = Vec::new();
        self.apply(group, &mut replies, &mut effects);
        if !effects.is_empty() {
            self.note_dead_stories(group, &effects);
            self.shared.samples.take_in(Facts::new(&self.rows), &effects);
            self.shared.views.publish(&effects);
            // Waking a thread costs more than applying a command, so the deliverer is woken for
            // watchers only, and comes by itself otherwise.
            if self.shared.views.is_watched()
                && !self.shared.delivery_due.swap(true, Ordering::AcqRel)
            {
                self.deliverer.unpark();
            }
        }
        // After the views have been told, before anybody is answered.
        if let Some(last) = group.entries.last() {
            self.shared.settled.store(last.stamp.0, Ordering::Release);
        }
        group.answer(&replies);
        self.checkpoints.when_due(&mut self.rows, &mut self.log, group.commands);
        let overlay_bytes = self.rows.overlay_bytes() as u64;
        self.shared.overlay_bytes.store(overlay_bytes, Ordering::Relaxed);
        group.clear();
    }

    fn apply(&mut self, group: &mut Group, replies: &mut Vec<Reply>, effects: &mut Vec<Effect>) {
        let with_keys = group.waiting.iter().any(|waiting| matches!(waiting, Waiting::Keys { .. }));
        let _steady = with_keys.then(|| self.shared.steady.write());
        let store = &self.shared.store;
        let mut txn = Txn::new(&mut self.rows);
        let mut entries = group.entries.iter();
        for waiting in &mut group.waiting {
            match waiting {
                Waiting::Requests { commands, .. } => {
                    let entries = entries.by_ref().take(*commands);
                    replies.extend(entries.map(|entry| apply(&mut txn, entry, effects)));
                }
                Waiting::Keys { reads, replies, .. } => {
                    let Some(Entry { stamp, command: Command::Keys(ops), .. }) = entries.next()
                    else {
                        unreachable!("who waits for keys has submitted operations on keys")
                    };
                    let keys = Keys::at(store, stamp.unix_ms());
                    let mut pending = reads.drain(..).peekable();
                    let (mut found, mut bytes) = (Vec::new(), 0);
                    let mut between = |index| {
                        while let Some(read) = pending.next_if(|read| read.before <= index) {
                            found.push(keys.read_at(&read, &mut bytes));
                        }
                    };
                    let mut answers = Vec::with_capacity(ops.len());
                    apply_keys(&mut txn, *stamp, ops, &mut between, &mut answers);
                    let now_ms = stamp.unix_ms();
                    *replies = Some(KeyReplies { answers, reads: found, now_ms });
                }
            }
        }
    }

    /// A deleted story waits for the sweep at the second of its deletion, where the sweeper may have
    /// looked before.
    fn note_dead_stories(&self, group: &Group, effects: &[Effect]) {
        let gone = effects.iter().any(|effect| matches!(effect, Effect::StoryGone { .. }));
        if let Some(first) = group.entries.first().filter(|_| gone) {
            self.shared.sweep_from.fetch_min(first.stamp.unix_second(), Ordering::AcqRel);
        }
    }

    fn log(&mut self, payload: &[u8]) {
        if let Err(error) = self.log.append(payload) {
            fatal("the log could not be written", &error);
        }
        match self.durability {
            Durability::Always => {
                let start = Instant::now();
                if let Err(error) = self.log.sync() {
                    fatal("the log could not be made durable", &error);
                }
                Metrics::observe(&self.shared.metrics.fsync, start.elapsed());
            }
            Durability::Interval(_) => *self.sync_slot.lock() = Some(self.log.sync_point()),
            Durability::Never => {}
        }
        self.shared.log_bytes.store(self.log.size(), Ordering::Relaxed);
    }
}

/// Commands on their way into the log together.
#[derive(Default)]
struct Group {
    entries: Vec<Entry>,
    /// Operations on keys count one by one.
    commands: usize,
    payload: Vec<u8>,
    waiting: Vec<Waiting>,
}

/// Who waits for an answer, in the order of the entries.
enum Waiting {
    Requests { reply: oneshot::Sender<SmallVec<[Reply; 1]>>, commands: usize },
    Keys { reply: oneshot::Sender<KeyReplies>, reads: Vec<ReadAt>, replies: Option<KeyReplies> },
}

impl Group {
    fn has_room_for(&self, submission: &Submission) -> bool {
        let bytes_max = match submission {
            Submission::Requests { requests, .. } => requests.len() * REQUEST_BYTES_MAX,
            Submission::Keys { ops, .. } => ops.bytes() + ENTRY_BYTES_MAX,
        };
        self.entries.is_empty()
            || self.commands + submission.commands() <= GROUP_COMMANDS_MAX
                && self.payload.len() + bytes_max <= PAYLOAD_BYTES_MAX
    }

    fn add(&mut self, entry: Entry) {
        let payload = std::mem::take(&mut self.payload);
        self.payload = match postcard::to_extend(&entry, payload) {
            Ok(payload) => payload,
            Err(error) => unreachable!("an entry serialises into memory: {error}"),
        };
        self.entries.push(entry);
    }

    /// Hands out the replies; a caller who has gone away gets none.
    fn answer(&mut self, replies: &[Reply]) {
        let mut replies = replies.iter().copied();
        for waiting in self.waiting.drain(..) {
            match waiting {
                Waiting::Requests { reply, commands } => {
                    drop(reply.send(replies.by_ref().take(commands).collect()));
                }
                Waiting::Keys { reply, replies, .. } => {
                    drop(replies.map(|replies| reply.send(replies)));
                }
            }
        }
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.payload.clear();
        self.payload.shrink_to(KEPT_BYTES);
        self.commands = 0;
    }
}

/// Applies a group read back from the log.
///
/// # Errors
/// If the bytes are not entries, which the checksum all but excludes.
pub(crate) fn replay(rows: &mut StoreWriter, mut payload: &[u8]) -> Result<usize, postcard::Error> {
    let mut effects = Vec::new();
    let mut commands = 0;
    while !payload.is_empty() {
        let (entry, rest) = postcard::take_from_bytes::<Entry>(payload)?;
        apply(&mut Txn::new(rows), &entry, &mut effects);
        effects.clear();
        payload = rest;
        commands += 1;
    }
    Ok(commands)
}

/// A clock that continues where the facts end.
pub(crate) fn clock_behind(rows: &StoreWriter) -> StampClock {
    StampClock::new(0, rows.totals().last_stamp.unwrap_or(feed::Stamp(0)))
}

/// Makes the log durable every `interval` until `stop` says so.
pub(crate) fn sync_now_and_then(
    slot: &SyncSlot,
    interval: Duration,
    stopped: &AtomicBool,
    metrics: &Metrics,
) {
    while !stopped.load(Ordering::Acquire) {
        std::thread::park_timeout(interval);
        let Some(point) = slot.lock().take() else { continue };
        let start = Instant::now();
        if let Err(error) = point.sync() {
            fatal("the log could not be made durable", &error);
        }
        Metrics::observe(&metrics.fsync, start.elapsed());
    }
}
