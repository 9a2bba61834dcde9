//! The writer: the one thread that changes anything. It takes what waits, stamps it, puts it into
//! the log as one group, applies it in order, tells the views, and answers.
//!
//! **Invariant:** a reply is sent only when its group is in the log (durable, under policy
//! `always`) and applied.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use feed::{Effect, Entry, Facts, Reply, Rows, StampClock, Txn, apply};
use parking_lot::Mutex;
use smallvec::SmallVec;
use store::StoreWriter;

use crate::checkpoints::Checkpoints;
use crate::fatal::fatal;
use crate::inbox::{Submission, Taken};
use crate::log::{LocalLog, Log, PAYLOAD_BYTES_MAX, SyncPoint};
use crate::metrics::Metrics;
use crate::node::{Durability, Shared};

/// Commands in one group: bounds the memory of a group and the time until its first answer.
pub(crate) const GROUP_COMMANDS_MAX: usize = 4_096;
/// What an entry takes in the log besides its longest text.
const ENTRY_BYTES_MAX: usize = 1_024;
const _: () = assert!(
    GROUP_COMMANDS_MAX * (feed::limits::POST_BYTES_MAX + ENTRY_BYTES_MAX) <= PAYLOAD_BYTES_MAX
);
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
            let commands = submission.requests.len();
            if !group.entries.is_empty() && group.entries.len() + commands > GROUP_COMMANDS_MAX {
                self.commit(&mut group);
            }
            group.replies.push((submission.reply, commands));
            for request in submission.requests {
                let stamp = self.clock.next(self.shared.time.now_ms());
                self.shared.time.at_least(stamp.unix_ms());
                let entry =
                    Entry { stamp, idempotency: request.idempotency, command: request.command };
                group.add(entry);
            }
        }
        self.commit(&mut group);
    }

    fn commit(&mut self, group: &mut Group) {
        if group.entries.is_empty() {
            group.answer(&[]);
            return;
        }
        self.log(&group.payload);
        let metrics = &self.shared.metrics;
        metrics.group_commands.observe(group.entries.len() as f64);
        metrics.commands.inc_by(group.entries.len() as u64);
        let mut outcomes = Vec::with_capacity(group.entries.len());
        let mut effects: Vec<Effect> = Vec::new();
        let mut txn = Txn::new(&mut self.rows);
        for entry in &group.entries {
            outcomes.push(apply(&mut txn, entry, &mut effects));
        }
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
        group.answer(&outcomes);
        self.checkpoints.when_due(&mut self.rows, &mut self.log, group.entries.len());
        let overlay_bytes = self.rows.overlay_bytes() as u64;
        self.shared.overlay_bytes.store(overlay_bytes, Ordering::Relaxed);
        group.clear();
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
    payload: Vec<u8>,
    replies: Vec<(tokio::sync::oneshot::Sender<SmallVec<[Reply; 1]>>, usize)>,
}

impl Group {
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
        for (sender, commands) in self.replies.drain(..) {
            drop(sender.send(replies.by_ref().take(commands).collect()));
        }
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.payload.clear();
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
