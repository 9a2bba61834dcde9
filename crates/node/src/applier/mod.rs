//! The sequencer and applier as a function: submissions go in; groups for the log, answers and effects come
//! out. No thread, no clock, no lock and no file here; a thread runs it ([`crate::writer`]), and the
//! simulator (`dst`) runs it too.
//!
//! Its user repeats two inputs: [`Input::Submit`] with new submissions, and [`Input::Tick`], after each of which a group may
//! be proposed. Once the log has it, [`Applier::apply_group`] applies it, and the groups of others and of earlier processes
//! in the same way.
//!
//! - **Invariant:** the cost of every command is computed before it is proposed. What costs more than
//!   [`feed::limits`] allow is refused, and a group as a whole costs no more than that either, so
//!   applying a group, live or in a replay, has a bound in memory and time.
//! - **Invariant:** stamps are made from the place and time that the log gave a group, never before.
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

/// State of the sequencer and applier. A `T` says where to send an answer.
pub(crate) struct Applier<R, T> {
    rows: HashedRows<R>,
    clock: StampClock,
    /// Submissions that are not in a group yet: plain and costly ones.
    plain: VecDeque<Queued<T>>,
    costly: VecDeque<Queued<T>>,
    /// Whether the next group is one of costly changes.
    costly_next: bool,
    /// Whether costly changes wait for a checkpoint.
    holds_costly: bool,
    /// Whether those of them wait that have long operations.
    holds_long: bool,
    /// The outcomes of the group that is applied.
    outcomes: Outcomes,
    /// In the log or on the way there; not applied.
    proposed: Option<Group<T>>,
    /// Submissions of which a part is applied and a part is not in a group yet.
    partial: Vec<(u64, Partial)>,
    next_id: u64,
    /// Memory of rows that are kept for answers.
    answers: MemoryBudget,
    /// Bytes that samples may take, as [`crate::views::samples::taught_bytes`] counts them.
    taught_bytes_max: usize,
    /// Dead keys are not searched for before this time, in milliseconds since 1970, while there is
    /// something else to do.
    sweep_at_ms: u64,
    /// Whether there may be dead keys, now or later.
    may_sweep: bool,
    /// Whether the last sweep left something.
    sweep_more: bool,
    /// Whether the last sweep found nothing, because the log has an earlier time than this node: another one waits then
    /// even if there is nothing else to do.
    sweep_found_nothing: bool,
    /// Of the groups that count in a log that several nodes share.
    digest: u64,
    /// Longest payload that the log accepts, in bytes.
    payload_bytes_max: usize,
    /// Whether the groups are those of a log that several nodes share.
    is_shared: bool,
    /// The group that is applied, if it is one of such a log.
    shared: Option<SharedGroup>,
    /// Of the nodes that share it.
    statuses: Statuses,
    /// Number of commands whose rules panicked, but for those of a replay.
    failures: u64,
    /// The part of each submission in groups, for the simulator.
    #[cfg(feature = "simulation")]
    pub(crate) taken: Vec<(u64, TakenPart)>,
}

/// An input of the applier.
pub(crate) enum Input<T> {
    /// New submissions.
    Submit(Vec<Submission<T>>),
    /// Nothing; a group may be proposed.
    Tick,
}

/// The next actions of the applier's caller.
pub(crate) struct Output<T> {
    /// The payload of a group, to be appended to the log.
    pub(crate) append: Option<Vec<u8>>,
    /// Answers to send once the effects are published.
    pub(crate) answers: Vec<(T, Answer)>,
    /// Effects for the views, in order.
    pub(crate) effects: Vec<Effect>,
    /// Commands applied, each operation on keys by itself.
    pub(crate) commands: usize,
    /// Work of applying them, in the unit of [`rows::Cost::work`].
    pub(crate) work: usize,
    /// Files of pictures that other nodes added.
    pub(crate) files: Vec<FileHash>,
    /// No node needs the log up to here.
    pub(crate) trim: Option<Position>,
}

/// The answers to a submission so far.
#[derive(Default)]
struct Partial {
    replies: SmallVec<[Reply; 1]>,
    answers: Vec<KeyAnswer>,
    reads: Vec<ReadRows>,
    now_ms: u64,
    /// For the rows among the answers.
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
    /// Continues where `rows` end. Rows kept for answers take at most what `answers` has, and samples
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

    /// Takes one input. `now_ms`, in milliseconds since 1970, decides what is swept; a command is applied
    /// at the time of its group.
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

    /// Whether costly changes wait from now on, and others do not: those would make the next start long.
    pub(crate) fn hold_costly(&mut self, hold: bool) {
        self.holds_costly = hold;
    }

    /// Whether costly changes of [`LONG_BYTES`] wait from now on, and others do not.
    pub(crate) fn hold_long(&mut self, hold: bool) {
        self.holds_long = hold;
    }

    /// For a log that several nodes share, as this node: proposes no group of more than this number of bytes.
    pub(crate) fn share(&mut self, node: NodeId, payload_bytes_max: usize) {
        self.begin_statuses(node);
        self.is_shared = true;
        self.payload_bytes_max = payload_bytes_max.min(PAYLOAD_BYTES_MAX);
    }

    /// Whether a proposed group has no place yet. No other one is proposed then.
    pub(crate) fn awaits_place(&self) -> bool {
        self.proposed.is_some()
    }

    /// The last epoch of a node in a log that several nodes share; 0 if there is none.
    pub(crate) fn last_epoch(&self, node: NodeId) -> u64 {
        producers::last_of(&self.rows.inner, node).epoch
    }

    /// The digest of the outcomes of the last group that was applied; none if that is not known.
    pub(crate) fn last_outcomes(&self) -> Option<u64> {
        Some(self.rows.inner.totals().outcomes).filter(|outcomes| *outcomes != 0)
    }

    /// The digest of the groups that count in a log that several nodes share.
    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    /// Number of commands whose rules panicked, but for those of a replay.
    pub(crate) fn failures(&self) -> u64 {
        self.failures
    }

    /// Ends a replay, whose failures were counted before.
    pub(crate) fn replayed(&mut self) {
        self.failures = 0;
    }

    /// The facts of the feed.
    pub(crate) fn facts(&self) -> feed::Facts<'_, R> {
        feed::Facts::new(&self.rows.inner)
    }

    /// The facts of buckets.
    fn keys(&self) -> kv::Facts<'_, HashedRows<R>> {
        kv::Facts::new(&self.rows)
    }

    /// The rows, for checkpoints: nothing else changes them.
    pub(crate) fn rows_mut(&mut self) -> &mut R {
        &mut self.rows.inner
    }

    /// Whether the proposed group has a part of a submission of [`LONG_BYTES`].
    pub(crate) fn proposes_long(&self) -> bool {
        self.proposed.as_ref().is_some_and(|group| group.has_long)
    }

    /// The time of the last stamp of a group with these entries, in milliseconds since 1970, if the log gives it `time_ms`.
    fn last_ms_of(&self, entries: &[Entry], time_ms: u64) -> u64 {
        let stamps: usize = entries.iter().map(Entry::stamps).sum();
        self.clock.clone().next_run(time_ms, stamps).after(stamps as u64).unix_ms()
    }

    /// Whether keys may wait to be removed, now or later: then a [`Input::Tick`] is due regularly.
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
