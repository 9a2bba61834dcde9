//! Formation of groups: computes the cost of waiting changes, refuses those that cost too much, and takes as many as
//! one group may hold.
//!
//! **Invariant:** a group adds at most [`CHANGE_BYTES_MAX`] to memory, in addition to one sweep of keys.

use commitlog::PAYLOAD_BYTES_MAX;
use feed::limits::{
    FILTER_TEXT_BYTES_MAX, FOLLOW_MANY_MAX, HANDLE_CHARS_MAX, KEYWORD_CHANGES_MAX, POST_BYTES_MAX,
};
use kv::{KeyOp, KeyOps, KeyRefusal, KeyRowsMut, OpPlace};
use rows::{CHANGE_BYTES_MAX, CHANGE_ROWS_MAX, Cost, WORK_PER_ROW};
use smallvec::SmallVec;

use super::caught::Applied;
use super::lengths::GroupLengths;
use super::pieces::{Range, TakenOps, Unit, log_pieces, next_unit};
use super::queue::{Part, Queued, Rest, Waiting};
use super::requests::GroupSamples;
use super::shared::has_keys;
use super::{Applier, Output, SWEEP_PAUSE_MS};
use crate::submission::ReadAt;
use crate::submission::entry::{Entry, Origin};
use crate::submission::versions::rules;

/// Maximum number of commands in a group: bounds the time until its first answer.
pub(crate) const GROUP_COMMANDS_MAX: usize = 4_096;
/// Maximum work of a group, unless a single change takes more: about 10 ms. While a group is applied, later changes and
/// reads of several keys wait.
const GROUP_WORK_MAX: usize = 16 << 20;
/// A submission of operations on keys is costly, and waits for a group of costly changes, if its first change takes
/// more work than this.
pub(crate) const PLAIN_WORK_MAX: usize = 128 << 10;
/// Maximum work of a group of costly changes, unless the first of them takes more: about 3 ms. Commands other than
/// operations on keys are costly only above this limit: posts and reactions declare more work than [`PLAIN_WORK_MAX`],
/// and many of them must share a group.
pub(super) const COSTLY_WORK_MAX: usize = 4 << 20;
/// Maximum work of one submission in a group while other submissions wait: about 1 ms.
const SHARE_WORK_MAX: usize = 2 << 20;
/// A submission of short changes with at most this work goes into a group as a whole, because it may carry the changes
/// of many clients.
const WHOLE_WORK_MAX: usize = 8 << 20;
/// Maximum size of a command in the log without its longest texts, in bytes.
const ENTRY_BYTES_MAX: usize = 1_024;
/// Maximum size in the log of a command that has no operations on keys, in bytes. The longest are a post with two long
/// texts, a command that names many users, and an edit of a filter with many keywords.
const REQUEST_BYTES_MAX: usize =
    ENTRY_BYTES_MAX + greatest([2 * POST_BYTES_MAX, FOLLOWED_BYTES_MAX, KEYWORDS_BYTES_MAX]);
/// Maximum size of the handles of the users that one command follows, in bytes. Each handle is stored with a length and
/// a kind.
const FOLLOWED_BYTES_MAX: usize = FOLLOW_MANY_MAX * (HANDLE_CHARS_MAX + 2);
/// Maximum size of the keywords that one command changes, in bytes. Each is stored with its number, lengths and flags.
const KEYWORDS_BYTES_MAX: usize = KEYWORD_CHANGES_MAX * (FILTER_TEXT_BYTES_MAX + 16);

const fn greatest([a, b, c]: [usize; 3]) -> usize {
    let greater = if a > b { a } else { b };
    if greater > c { greater } else { c }
}

/// A shared log must accept messages of at least this length, in bytes. It exceeds the length of any command except
/// operations on keys.
pub(crate) const SHARED_PAYLOAD_MIN: usize = 128 << 10;
/// Maximum size of the operations on keys of one submission, in bytes.
pub(crate) const KEY_OPS_BYTES_MAX: usize = 48 << 20;
/// Initial capacity of a payload, in bytes.
const PAYLOAD_BYTES: usize = 4 << 10;

// The longest command fits into the shortest payload, together with the entries that the node adds.
const _: () = assert!(REQUEST_BYTES_MAX + ENTRY_BYTES_MAX <= SHARED_PAYLOAD_MIN);
const _: () = assert!(KEY_OPS_BYTES_MAX + 2 * ENTRY_BYTES_MAX <= PAYLOAD_BYTES_MAX);

/// Commands that share one append.
pub(super) struct Group<T> {
    /// Entries of the payload, in order.
    pub(super) entries: Vec<Entry>,
    /// Submissions that wait for answers, in the order of the entries.
    pub(super) waiting: Vec<Waiting<T>>,
    /// Whether the last entry is a sweep of keys, which belongs to no submission.
    pub(super) sweeps: bool,
    /// Whether the group has a part of a submission of at least [`LONG_BYTES`](super::LONG_BYTES).
    pub(super) has_long: bool,
    /// Number of commands; each operation on keys counts as one.
    pub(super) commands: usize,
    payload: Vec<u8>,
    /// Origin of the group, until it is written before the first entry.
    origin: Option<Origin>,
    cost: Cost,
    /// Maximum length of the payload, in bytes.
    bytes_max: usize,
    /// Work up to which the current submission may fill the group.
    share: usize,
    pub(super) samples: GroupSamples,
}

/// Result of adding a submission to the group.
pub(super) enum Grouped<T> {
    /// The whole submission is in the group.
    All,
    /// The submission has used its share of the group; this is the rest.
    Part(Queued<T>),
    /// The group is full; this is the rest.
    Full(Queued<T>),
    /// The submission is costly, or depends on the results of this group, and waits for a later group.
    Costly(Queued<T>),
}

impl<T> Group<T> {
    fn new(bytes_max: usize, origin: Option<Origin>) -> Self {
        Self {
            bytes_max,
            origin,
            entries: Vec::new(),
            waiting: Vec::new(),
            sweeps: false,
            has_long: false,
            commands: 0,
            payload: Vec::new(),
            cost: Cost::default(),
            share: usize::MAX,
            samples: GroupSamples::default(),
        }
    }

    pub(super) fn has_keys(&self) -> bool {
        has_keys(&self.entries)
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.entries.is_empty()
    }

    /// Whether a change of this cost, with this number of commands and bytes in the log, fits.
    pub(super) fn has_room(&self, cost: &Cost, commands: usize, bytes: usize) -> bool {
        let sum = self.cost.and(*cost);
        let first = self.is_empty() && self.commands == 0;
        self.payload.len() + bytes <= self.bytes_max
            && (first
                || self.commands + commands <= GROUP_COMMANDS_MAX
                    && sum.bytes <= CHANGE_BYTES_MAX
                    && sum.rows <= CHANGE_ROWS_MAX
                    && sum.work <= GROUP_WORK_MAX)
    }

    /// Whether the current submission has used its share.
    pub(super) fn is_shared_out(&self) -> bool {
        self.cost.work >= self.share
    }

    /// Returns the rest of a submission: as [`Grouped::Part`] if it has used its share, else as [`Grouped::Full`].
    pub(super) fn rest(&self, queued: Queued<T>) -> Grouped<T> {
        if self.is_shared_out() { Grouped::Part(queued) } else { Grouped::Full(queued) }
    }

    /// Counts a change whose bytes are added later.
    pub(super) fn count(&mut self, cost: &Cost, commands: usize) {
        self.cost = self.cost.and(*cost);
        self.commands += commands;
    }

    /// Makes an unfinished submission wait for this part, unless the part is empty.
    pub(super) fn wait_for(&mut self, id: u64, part: Part) {
        if !matches!(part, Part::Requests(0)) {
            self.waiting.push(Waiting { id, ticket: None, part });
        }
    }

    pub(super) fn log(&mut self, entry: Entry) {
        if let Entry::Feed(request) = &entry {
            if let Some(limit) = self.samples.limit_of(&request.command) {
                self.write(limit);
            }
            self.samples.count(&request.command);
        }
        self.write(entry);
    }

    fn write(&mut self, entry: Entry) {
        if let Some(origin) = self.origin.take() {
            self.write(Entry::Origin(origin));
        }
        let mut payload = std::mem::take(&mut self.payload);
        payload.reserve(PAYLOAD_BYTES);
        self.payload = entry.write(payload);
        self.entries.push(entry);
    }
}

impl<R: KeyRowsMut, T> Applier<R, T> {
    /// Proposes the next group, unless one is pending or nothing waits.
    pub(super) fn propose(&mut self, now_ms: u64, output: &mut Output<T>) {
        if self.proposed.is_some() {
            return;
        }
        // Nodes with a shared log compare digests of rows by their statuses, so their groups have no origin.
        let origin = Origin { rules: rules(), outcomes_before: self.last_outcomes() };
        let origin = (!self.is_shared).then_some(origin);
        // There must be room for a sweep, the limit of samples and the origin.
        let bytes_max = self.payload_bytes_max.saturating_sub(ENTRY_BYTES_MAX);
        let mut group = Group::new(bytes_max, origin);
        group.samples = GroupSamples::new(self.is_shared.then_some(self.taught_bytes_max));
        // Groups of cheap and of costly changes alternate, so a cheap change waits for at most one group of costly
        // ones.
        if std::mem::take(&mut self.costly_next) && !self.holds_costly {
            self.take_costly(&mut group);
        }
        if group.is_empty() {
            self.take_plain(&mut group);
            self.costly_next = true;
        }
        if group.is_empty() && !self.holds_costly {
            // All submissions that `take_plain` took may have turned out to be costly.
            self.take_costly(&mut group);
            self.costly_next = false;
        }
        self.add_sweep(&mut group, now_ms);
        if self.is_shared
            && let Some(status) = self.statuses.due()
        {
            group.write(Entry::Status(status));
        }
        #[cfg(feature = "simulation")]
        self.taken.extend(group.waiting.iter().flat_map(Waiting::taken));
        if group.entries.is_empty() {
            // Nothing is logged, but there may be refusals.
            self.finish(group, None, output);
            return;
        }
        output.append = Some(std::mem::take(&mut group.payload));
        self.proposed = Some(group);
    }

    /// Takes cheap submissions until the group is full. Otherwise stops when every submission in the queue has used its
    /// share, if the group has the end of a submission that is not long.
    fn take_plain(&mut self, group: &mut Group<T>) {
        // Number of submissions at the end of the queue that have had their share.
        let (mut parts, mut has_short) = (0, false);
        while (self.plain.len() > parts || !has_short)
            && let Some(queued) = self.plain.pop_front()
        {
            parts = parts.min(self.plain.len());
            group.share = group.cost.work.saturating_add(SHARE_WORK_MAX);
            let is_long = queued.is_long;
            match self.take(group, queued, false) {
                Grouped::All => has_short |= !is_long,
                Grouped::Costly(queued) => self.costly.push_back(queued),
                // Other submissions come before the rest.
                Grouped::Part(queued) => {
                    self.plain.push_back(queued);
                    parts += 1;
                }
                Grouped::Full(queued) => {
                    self.plain.push_front(queued);
                    break;
                }
            }
        }
    }

    /// Takes at least one costly submission, and more up to their maximum work per group. Skips submissions that are
    /// held.
    fn take_costly(&mut self, group: &mut Group<T>) {
        group.share = COSTLY_WORK_MAX;
        while !group.is_shared_out()
            && let Some(at) = self.next_costly()
            && let Some(queued) = self.costly.remove(at)
        {
            match self.take(group, queued, true) {
                Grouped::All => {}
                Grouped::Full(queued) | Grouped::Part(queued) | Grouped::Costly(queued) => {
                    self.costly.insert(at, queued);
                    break;
                }
            }
        }
    }

    /// Returns the index of the first costly submission that is not held. The search is short, because few long
    /// submissions fit into the inbox.
    fn next_costly(&self) -> Option<usize> {
        if self.holds_costly {
            return None;
        }
        self.costly.iter().position(|queued| !self.holds_long || !queued.has_long_bytes())
    }

    /// Whether submissions wait that are not proposed.
    pub(crate) fn has_queue(&self) -> bool {
        !self.plain.is_empty() || !self.costly.is_empty()
    }

    /// Whether there is something to do without new submissions.
    pub(crate) fn has_work(&self) -> bool {
        !self.plain.is_empty()
            || self.next_costly().is_some()
            || self.sweep_more
            || self.is_shared && self.statuses.is_due()
    }

    fn take(&mut self, group: &mut Group<T>, queued: Queued<T>, costly: bool) -> Grouped<T> {
        let (whole, has_long_bytes) = (queued.is_whole(), queued.has_long_bytes());
        let Queued { id, ticket, rest, is_long } = queued;
        match rest {
            Rest::Requests(requests) => self.take_requests(group, id, ticket, requests, costly),
            Rest::Keys { ops, next, reads } => {
                let look_ups = look_ups(&reads);
                if !costly && look_ups.work > PLAIN_WORK_MAX {
                    let rest = Rest::Keys { ops, next, reads };
                    return Grouped::Costly(Queued { id, ticket, rest, is_long });
                }
                let before = (group.cost, group.commands);
                let taken = self.judge(Applied::Ops(&ops), |applier| {
                    applier.take_ops(group, &ops, next, costly || !whole)
                });
                if taken.is_none() {
                    (group.cost, group.commands) = before;
                }
                let failed = || {
                    let pieces = [Range::Refused(ops.len() - next.ops, KeyRefusal::Internal)];
                    let held = self.answers.empty();
                    TakenOps { pieces: pieces.into(), up_to: ops.end(), held }
                };
                let Some(taken) = taken.unwrap_or_else(|| Some(failed())) else {
                    let rest = Rest::Keys { ops, next, reads };
                    return Grouped::Costly(Queued { id, ticket, rest, is_long });
                };
                group.has_long |= has_long_bytes && !taken.pieces.is_empty();
                let pieces = taken.pieces.iter().map(Range::piece).collect();
                let whole = taken.up_to.ops == ops.len();
                // Only a transaction has reads, and it is never divided.
                let (now, later) = if whole { (reads, Vec::new()) } else { (Vec::new(), reads) };
                let part = Part::Keys { pieces, reads: now, held: taken.held };
                let rest = log_pieces(group, ops, &taken.pieces);
                if whole {
                    group.count(&look_ups, 0);
                    group.waiting.push(Waiting { id, ticket: Some(ticket), part });
                    return Grouped::All;
                }
                if !taken.pieces.is_empty() {
                    group.waiting.push(Waiting { id, ticket: None, part });
                }
                let rest = Rest::Keys { ops: rest, next: taken.up_to, reads: later };
                group.rest(Queued { id, ticket, rest, is_long: true })
            }
        }
    }

    /// Chooses operations from `from` on, as many as fit. Returns `None` if the first of them is costly and
    /// `admit_costly` is false.
    fn take_ops(
        &self,
        group: &mut Group<T>,
        ops: &KeyOps,
        from: OpPlace,
        admit_costly: bool,
    ) -> Option<TakenOps> {
        if let Some(taken) = self.take_all(group, ops, from) {
            return Some(taken);
        }
        let lengths = GroupLengths::new(self.keys(), group.cost.longest);
        let mut taken =
            TakenOps { pieces: SmallVec::new(), up_to: from, held: self.answers.empty() };
        let mut bytes = ENTRY_BYTES_MAX;
        while let Some(Unit { cost, after, possible }) = next_unit(ops, taken.up_to, &lengths) {
            if !admit_costly && taken.up_to == from && cost.work > PLAIN_WORK_MAX {
                return None;
            }
            let count = after.ops - taken.up_to.ops;
            let mut refusal = self.refusal(&cost, possible);
            // No message of the log can hold the change.
            if ENTRY_BYTES_MAX + ops.bytes_between(taken.up_to, after) > group.bytes_max {
                refusal = refusal.or(Some(KeyRefusal::TooLarge));
            }
            if refusal == Some(KeyRefusal::TooLarge) && group.commands > 0 {
                // This cost is only an upper bound, because earlier changes of the group may have left long values. In
                // the next group it is exact.
                break;
            }
            if refusal.is_none() {
                let bytes = bytes + ops.bytes_between(taken.up_to, after);
                if group.is_shared_out() || !group.has_room(&cost, count, bytes) {
                    break;
                }
                // Memory is reserved last, so that changes that wait for the next group hold none.
                if !taken.held.resize(taken.held.bytes() + cost.answer) {
                    if group.commands > 0 {
                        // At the next group, other answers may hold less memory, and the longest value may be shorter.
                        break;
                    }
                    refusal = Some(KeyRefusal::Busy);
                }
            }
            if let Some(refusal) = refusal {
                taken.pieces.push(Range::Refused(count, refusal));
                // Every piece is a separate entry.
                bytes += ENTRY_BYTES_MAX;
            } else {
                bytes += ops.bytes_between(taken.up_to, after);
                group.count(&cost, count);
                match taken.pieces.last_mut() {
                    Some(Range::Logged(_, end)) => *end = after,
                    _ => taken.pieces.push(Range::Logged(taken.up_to, after)),
                }
            }
            taken.up_to = after;
        }
        Some(taken)
    }

    /// Returns the reason why a change can never be made, if there is one.
    fn refusal(&self, cost: &Cost, possible: bool) -> Option<KeyRefusal> {
        let too_large = cost.bytes > CHANGE_BYTES_MAX
            || cost.rows > CHANGE_ROWS_MAX
            || cost.answer > self.answers.limit();
        match (possible, too_large) {
            (false, _) => Some(KeyRefusal::BadKey),
            (true, true) => Some(KeyRefusal::TooLarge),
            (true, false) => None,
        }
    }

    /// Takes all operations at once if they fit and their cost is known without checking each: most submissions are
    /// many short changes.
    fn take_all(&self, group: &mut Group<T>, ops: &KeyOps, from: OpPlace) -> Option<TakenOps> {
        let cost = ops.known_cost().filter(|cost| cost.work <= WHOLE_WORK_MAX)?;
        let (whole, bytes) = (from.ops == 0, ENTRY_BYTES_MAX + ops.bytes());
        let fits = group.has_room(&cost, ops.len(), bytes);
        if !whole || ops.is_empty() || !fits || self.keys().has_cold_keys() {
            return None;
        }
        group.count(&cost, ops.len());
        let pieces = [Range::Logged(from, ops.end())].into();
        Some(TakenOps { pieces, up_to: ops.end(), held: self.answers.empty() })
    }

    /// Adds a sweep if keys have expired or lost their bucket. The group always has room for it.
    fn add_sweep(&mut self, group: &mut Group<T>, now_ms: u64) {
        let idle = group.entries.is_empty();
        let waits = now_ms < self.sweep_at_ms && (!idle || self.sweep_found_nothing);
        if !self.may_sweep || waits {
            return;
        }
        if self.keys().has_dead_keys(now_ms) {
            let ops: KeyOps = [KeyOp::Sweep].into_iter().collect();
            group.log(Entry::Kv(ops));
            group.sweeps = true;
            group.commands += 1;
        } else {
            self.sweep_at_ms = now_ms + SWEEP_PAUSE_MS;
            self.may_sweep = self.keys().totals().keys_expiring > 0;
        }
    }
}

/// Returns the cost of looking up the keys that a transaction reads.
pub(super) fn look_ups(reads: &[ReadAt]) -> Cost {
    let keys: usize = reads.iter().map(|read| read.keys.len()).sum();
    Cost { work: keys * WORK_PER_ROW, ..Cost::default() }
}
