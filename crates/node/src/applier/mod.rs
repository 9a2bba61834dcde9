//! Sequencer and applier as a function: submissions go in; groups for the log, answers and effects come out. It uses no
//! thread, clock, lock or file; a thread runs it ([`crate::writer`]), and so does the simulator (`dst`).
//!
//! The caller repeats two inputs: [`Input::Submit`] with new submissions, and [`Input::Tick`]. After each of them a
//! group may be proposed. [`Applier::apply_group`] applies it after it is in the log, in the same way as groups of
//! other nodes and of earlier processes.
//!
//! - **Invariant:** the cost of every command is computed before it is proposed. Operations on keys whose cost exceeds
//!   [`rows::CHANGE_BYTES_MAX`] or [`rows::CHANGE_ROWS_MAX`] are refused; [`feed::limits`] keeps the costs of all other
//!   commands below these (`costs.rs`, a test of the store). A group has limits too, which only a single change may
//!   exceed. So applying a group, live or in a replay, is bounded in memory and time.
//! - **Invariant:** stamps are made from the position and time that the log gave a group, never earlier.
//! - **Invariant:** every submission is answered exactly once.

mod apply;
mod caught;
mod fault;
mod group;
mod hashed;
mod lengths;
mod members;
mod outcomes;
mod pieces;
mod producers;
mod queue;
mod requests;
mod shared;
mod spent;
mod status;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use commitlog::{NodeId, PAYLOAD_BYTES_MAX, Position};
use feed::media::FileHash;
use feed::{Effect, Reply};
use kv::{KeyAnswer, KeyRowsMut};
use rows::StampClock;
use smallvec::SmallVec;

use crate::submission::entry::Entry;
use crate::submission::{Answer, ReadRows, Submission};
use budget::{MemoryBudget, Reservation};
#[cfg(test)]
pub(crate) use fault::of_thread::TEXT;
#[cfg(feature = "simulation")]
pub use fault::seeded;
use group::Group;
pub(crate) use group::{GROUP_COMMANDS_MAX, KEY_OPS_BYTES_MAX, PLAIN_WORK_MAX, SHARED_PAYLOAD_MIN};
use hashed::HashedRows;
use outcomes::Outcomes;
pub(crate) use producers::last_group;
pub(crate) use queue::LONG_BYTES;
use queue::Queued;
#[cfg(feature = "simulation")]
pub use queue::TakenPart;
use shared::SharedGroup;
pub(crate) use shared::{ANSWER_BYTES, SharedError};
use status::Statuses;

/// Interval at which a busy applier checks whether keys have expired, in milliseconds.
const SWEEP_PAUSE_MS: u64 = 250;

/// State of the sequencer and applier. `T` identifies the recipient of an answer.
pub(crate) struct Applier<R, T> {
    rows: HashedRows<R>,
    clock: StampClock,
    /// Queues of submissions that are not in a group yet: plain and costly ones.
    plain: VecDeque<Queued<T>>,
    costly: VecDeque<Queued<T>>,
    /// Whether the next group is one of costly changes.
    costly_next: bool,
    /// Whether costly changes wait for a checkpoint.
    holds_costly: bool,
    /// Whether costly changes with long operations wait.
    holds_long: bool,
    /// Outcomes of the group that is being applied.
    outcomes: Outcomes,
    /// Proposed group: in the log or on the way there, not applied.
    proposed: Option<Group<T>>,
    /// Submissions that are partly applied and partly not in a group yet.
    partial: Vec<(u64, Partial)>,
    next_id: u64,
    /// Memory of rows that are kept for answers.
    answers: MemoryBudget,
    /// Maximum size of the samples in bytes, as [`crate::views::samples::taught_bytes`] counts them.
    taught_bytes_max: usize,
    /// Time before which a busy applier does not search for dead keys, in milliseconds since 1970.
    sweep_at_ms: u64,
    /// Whether there may be dead keys, now or later.
    may_sweep: bool,
    /// Whether the last sweep left dead keys in place.
    sweep_more: bool,
    /// Whether the last sweep found nothing because the log's time is earlier than this node's: the next one then waits
    /// even if the node is idle.
    sweep_found_nothing: bool,
    /// Digest of all groups of a shared log that count (see `producers.rs`) and are applied.
    digest: u64,
    /// Maximum length of a payload of the log, in bytes.
    payload_bytes_max: usize,
    /// Whether the log is shared by several nodes.
    is_shared: bool,
    /// State of the group of a shared log that is being applied.
    shared: Option<SharedGroup>,
    /// Last statuses of the nodes that share the log.
    statuses: Statuses,
    /// Number of commands whose rules panicked, without those of a replay.
    failures: u64,
    /// Parts of submissions in groups, for the simulator.
    #[cfg(feature = "simulation")]
    pub(crate) taken: Vec<(u64, TakenPart)>,
}

/// Input of the applier.
pub(crate) enum Input<T> {
    /// New submissions.
    Submit(Vec<Submission<T>>),
    /// No submissions; a group may be proposed.
    Tick,
}

/// Next actions of the applier's caller.
pub(crate) struct Output<T> {
    /// Payload of a group, to be appended to the log.
    pub(crate) append: Option<Vec<u8>>,
    /// Answers to send once the effects are published.
    pub(crate) answers: Vec<(T, Answer)>,
    /// Effects for the views, in order.
    pub(crate) effects: Vec<Effect>,
    /// Number of applied commands; each operation on keys counts as one.
    pub(crate) commands: usize,
    /// Work of applying the commands, in the unit of [`rows::Cost::work`].
    pub(crate) work: usize,
    /// Files of pictures that other nodes added.
    pub(crate) files: Vec<FileHash>,
    /// Position up to which no node needs the log.
    pub(crate) trim: Option<Position>,
}

/// Answers to a submission so far.
#[derive(Default)]
struct Partial {
    replies: SmallVec<[Reply; 1]>,
    answers: Vec<KeyAnswer>,
    reads: Vec<ReadRows>,
    now_ms: u64,
    /// Memory of the rows among the answers.
    held: Vec<Reservation>,
    is_keys: bool,
}

impl<T> Default for Output<T> {
    fn default() -> Self {
        let (answers, effects, files) = (Vec::new(), Vec::new(), Vec::new());
        Self { append: None, answers, effects, commands: 0, work: 0, files, trim: None }
    }
}

impl<R: KeyRowsMut, T> Applier<R, T> {
    /// Creates an applier on `rows`. Rows kept for answers take at most the memory of `answers`, and samples at most
    /// `taught_bytes_max` bytes.
    pub(crate) fn new(rows: R, answers: MemoryBudget, taught_bytes_max: usize) -> Self {
        let last = rows.totals().last_stamp.unwrap_or(rows::Stamp(0));
        let last = if rows::has_bug("forget-last-stamp") { rows::Stamp(0) } else { last };
        Self {
            digest: producers::last_digest(&rows),
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            is_shared: false,
            shared: None,
            statuses: Statuses::default(),
            failures: 0,
            rows: HashedRows::new(rows),
            clock: StampClock::new(last),
            plain: VecDeque::new(),
            costly: VecDeque::new(),
            costly_next: false,
            outcomes: Outcomes::default(),
            holds_costly: false,
            holds_long: false,
            proposed: None,
            partial: Vec::new(),
            next_id: 0,
            answers,
            taught_bytes_max,
            sweep_at_ms: 0,
            may_sweep: true,
            sweep_more: false,
            sweep_found_nothing: false,
            #[cfg(feature = "simulation")]
            taken: Vec::new(),
        }
    }

    /// Processes one input. `now_ms`, in milliseconds since 1970, decides what is swept; a command is applied at the
    /// time of its group.
    pub(crate) fn step(&mut self, input: Input<T>, now_ms: u64) -> Output<T> {
        let mut output = Output::default();
        match input {
            Input::Submit(submissions) => {
                for submission in submissions {
                    self.next_id += 1;
                    self.plain.push_back(Queued::new(self.next_id, submission));
                }
                self.propose(now_ms, &mut output);
            }
            Input::Tick => self.propose(now_ms, &mut output),
        }
        output
    }

    /// Sets whether costly changes wait, because they would make the next start long. Other changes continue.
    pub(crate) fn hold_costly(&mut self, hold: bool) {
        self.holds_costly = hold;
    }

    /// Sets whether costly changes of at least [`LONG_BYTES`] wait. Other changes continue.
    pub(crate) fn hold_long(&mut self, hold: bool) {
        self.holds_long = hold;
    }

    /// Switches to a shared log with this node as a member; groups have at most `payload_bytes_max` bytes.
    pub(crate) fn share(&mut self, node: NodeId, payload_bytes_max: usize) {
        self.begin_statuses(node);
        self.is_shared = true;
        self.payload_bytes_max = payload_bytes_max.min(PAYLOAD_BYTES_MAX);
    }

    /// Whether a proposed group has no position yet, so that no other one is proposed.
    pub(crate) fn awaits_place(&self) -> bool {
        self.proposed.is_some()
    }

    /// Returns the last epoch of a node in a shared log; 0 if there is none.
    pub(crate) fn last_epoch(&self, node: NodeId) -> u64 {
        producers::last_of(&self.rows.inner, node).epoch
    }

    /// Returns the digest of the outcomes of the last applied group, if known.
    pub(crate) fn last_outcomes(&self) -> Option<u64> {
        Some(self.rows.inner.totals().outcomes).filter(|outcomes| *outcomes != 0)
    }

    /// Returns the digest of all applied groups that count, of a shared log.
    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    /// Returns the number of commands whose rules panicked, without those of a replay.
    pub(crate) fn failures(&self) -> u64 {
        self.failures
    }

    /// Ends a replay. Its failures no longer count: an earlier process has counted them.
    pub(crate) fn replayed(&mut self) {
        self.failures = 0;
    }

    /// Returns the facts of the feed.
    pub(crate) fn facts(&self) -> feed::Facts<'_, R> {
        feed::Facts::new(&self.rows.inner)
    }

    /// Returns the facts of buckets.
    fn keys(&self) -> kv::Facts<'_, HashedRows<R>> {
        kv::Facts::new(&self.rows)
    }

    /// Returns the rows for checkpoints; only the applier changes their contents.
    pub(crate) fn rows_mut(&mut self) -> &mut R {
        &mut self.rows.inner
    }

    /// Whether the proposed group has a part of a submission of at least [`LONG_BYTES`].
    pub(crate) fn proposes_long(&self) -> bool {
        self.proposed.as_ref().is_some_and(|group| group.has_long)
    }

    /// Returns the time of the last stamp of a group with these entries at the log's time `time_ms`, in milliseconds
    /// since 1970.
    fn last_ms_of(&self, entries: &[Entry], time_ms: u64) -> u64 {
        let stamps: usize = entries.iter().map(Entry::stamps).sum();
        self.clock.clone().next_run(time_ms, stamps).after(stamps as u64).unix_ms()
    }

    /// Whether keys may expire, now or later, so that an [`Input::Tick`] is needed regularly.
    pub(crate) fn expects_sweep(&self) -> bool {
        self.may_sweep
    }

    fn partial_of(&mut self, id: u64) -> Partial {
        match self.partial.iter().position(|(of, _)| *of == id) {
            Some(at) => self.partial.swap_remove(at).1,
            None => Partial::default(),
        }
    }
}
