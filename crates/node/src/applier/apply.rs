//! Application of a group's commands: with answers if this process proposed the group, otherwise without.

use std::{mem, vec};

use feed::{Effect, Refusal, Reply, Request};
use kv::{KeyAnswer, KeyOps, KeyRefusal, KeyRowsMut};
use rows::{Stamp, WORK_PER_ROW, outside_rules};

use super::caught::Applied;
use super::group::{Group, look_ups};
use super::lengths::GroupLengths;
use super::queue::{Part, Piece, Waiting};
use super::spent::COUNTS;
use super::{Applier, Output, Partial};
use crate::submission::entry::Entry;
use crate::submission::{Answer, KeyReplies, READ_BYTES_MAX, ReadAt, ReadRows};
use budget::Reservation;

impl<R: KeyRowsMut, T> Applier<R, T> {
    /// Applies the proposed group.
    pub(super) fn apply(&mut self, time_ms: u64, output: &mut Output<T>) {
        let Some(mut group) = self.proposed.take() else {
            unreachable!("only a proposed group comes back as one of this process")
        };
        self.may_sweep |= group.has_keys();
        let entries = mem::take(&mut group.entries);
        output.commands = group.commands;
        self.finish(group, Some((time_ms, entries)), output);
        output.work += output.commands * WORK_PER_ROW;
    }

    /// Applies the logged entries of a group, and answers the submissions that are complete.
    pub(super) fn finish(
        &mut self,
        group: Group<T>,
        logged: Option<(u64, Vec<Entry>)>,
        output: &mut Output<T>,
    ) {
        let (time_ms, entries) = logged.unwrap_or_default();
        let mut entries = entries.into_iter();
        for Waiting { id, ticket, part } in group.waiting {
            let mut partial = self.partial_of(id);
            match part {
                Part::Requests(count) => {
                    for _ in 0..count {
                        let request = next_request(&mut entries);
                        let (reply, work) = self.apply_one(request, time_ms, &mut output.effects);
                        partial.replies.push(reply);
                        output.work += work;
                    }
                }
                Part::Answered(reply) => partial.replies.push(reply),
                Part::Keys { pieces, mut reads, held } => {
                    partial.is_keys = true;
                    partial.held.push(held);
                    for piece in pieces {
                        match piece {
                            Piece::Logged => {
                                let (ops, reads) = (next_ops(&mut entries), mem::take(&mut reads));
                                output.work += self.apply_ops(&ops, time_ms, reads, &mut partial);
                            }
                            Piece::Refused(count, refusal) => {
                                let answers =
                                    std::iter::repeat_n(KeyAnswer::Refused(refusal), count);
                                partial.answers.extend(answers);
                            }
                        }
                    }
                    // Reads of a refused transaction return nothing.
                    partial.reads.extend(reads.iter().map(|_| ReadRows::default()));
                }
            }
            match ticket {
                Some(ticket) => output.answers.push((ticket, partial.answer())),
                None => self.partial.push((id, partial)),
            }
        }
        if group.sweeps {
            let sweep = next_ops(&mut entries);
            let mut partial = self.partial_of(0);
            output.work += self.apply_ops(&sweep, time_ms, Vec::new(), &mut partial);
            let swept = partial.answers.first();
            let more = matches!(swept, Some(KeyAnswer::Swept { more: true, .. }));
            self.sweep_more = more;
            self.sweep_found_nothing =
                !more && !matches!(swept, Some(KeyAnswer::Swept { rows: 1.., .. }));
            if !more {
                self.sweep_at_ms = time_ms + super::SWEEP_PAUSE_MS;
            }
        }
    }

    fn apply_one(
        &mut self,
        request: Request,
        time_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> (Reply, usize) {
        if !self.admits_sample(&request.command) {
            return (self.answer_without_memory(&request), 0);
        }
        let stamp = self.clock.next(time_ms);
        self.apply_request(request, stamp, effects)
    }

    /// Applies a command; also returns its work.
    fn apply_request(
        &mut self,
        request: Request,
        stamp: Stamp,
        effects: &mut Vec<Effect>,
    ) -> (Reply, usize) {
        let declared = COUNTS.then(|| request.cost());
        self.rows.spent.reset();
        let (command, before) = (request.stamped(stamp), effects.len());
        let done = self.by_rules(Applied::Command(&command.command), stamp, |rows| {
            let mut txn = feed::Txn::new(rows);
            let reply = feed::apply(&mut txn, &command, effects);
            (reply, txn.work())
        });
        if let (Some(declared), Some((_, work))) = (&declared, &done) {
            let name = Applied::Command(&command.command).name();
            self.rows.spent.check(&name, declared, *work);
        }
        let done = done.unwrap_or_else(|| {
            effects.truncate(before);
            (Reply { outcome: Err(Refusal::Internal), replayed: false }, 0)
        });
        self.outcomes.command(&done.0.outcome);
        done
    }

    fn apply_ops(
        &mut self,
        ops: &KeyOps,
        time_ms: u64,
        reads: Vec<ReadAt>,
        partial: &mut Partial,
    ) -> usize {
        if !self.admits(ops) {
            let refused = KeyAnswer::Refused(KeyRefusal::Busy);
            partial.answers.extend(std::iter::repeat_n(refused, ops.len()));
            partial.reads.extend(reads.iter().map(|_| ReadRows::default()));
            partial.now_ms = time_ms;
            return 0;
        }
        let stamp = self.clock.next_run(time_ms, ops.stamps());
        self.apply_ops_at(ops, stamp, reads, partial)
    }

    /// Applies operations; also returns their work.
    fn apply_ops_at(
        &mut self,
        ops: &KeyOps,
        stamp: Stamp,
        reads: Vec<ReadAt>,
        partial: &mut Partial,
    ) -> usize {
        let now_ms = stamp.unix_ms();
        let mut held = self.answers.empty();
        let (answered, found) = (partial.answers.len(), partial.reads.len());
        let reads_wanted = reads.len();
        let declared = COUNTS.then(|| {
            let lengths = GroupLengths::in_memory_or_not(kv::Facts::new(&self.rows));
            ops.iter().fold(look_ups(&reads), |cost, op| cost.and(lengths.cost(&op)))
        });
        self.rows.spent.reset();
        let work = self.by_rules(Applied::Ops(ops), stamp, |rows| {
            let mut reads = reads.into_iter().peekable();
            let mut between = |index: usize, facts: kv::Facts<'_, dyn KeyRowsMut + '_>| {
                while let Some(read) = reads.next_if(|read| read.before <= index) {
                    // Only this node executes the reads. A panic in a read must not undo changes that the other nodes
                    // keep.
                    let rows = outside_rules(|| read_rows(facts, &read, now_ms, &mut held));
                    partial.reads.push(rows);
                }
            };
            let mut txn = kv::Txn::new(rows);
            partial.answers.reserve(ops.len());
            kv::apply(&mut txn, stamp, ops, &mut between, &mut partial.answers);
            txn.work()
        });
        if let (Some(declared), Some(work)) = (&declared, work) {
            self.rows.spent.check(&Applied::Ops(ops).name(), declared, work);
        }
        if work.is_none() {
            let failed = KeyAnswer::Refused(KeyRefusal::Internal);
            partial.answers.truncate(answered);
            partial.answers.extend(std::iter::repeat_n(failed, ops.len()));
            partial.reads.resize_with(found, ReadRows::default);
            partial.reads.resize_with(found + reads_wanted, ReadRows::default);
        }
        let answers = partial.answers.get(answered..).unwrap_or_default();
        self.outcomes.operations(answers);
        partial.now_ms = now_ms;
        partial.held.push(held);
        work.unwrap_or_default()
    }

    /// Applies an entry that has no recipient of answers on this node; returns its work.
    pub(super) fn apply_entry(
        &mut self,
        entry: Entry,
        stamp: Stamp,
        effects: &mut Vec<Effect>,
    ) -> usize {
        match entry {
            Entry::Feed(request) => self.apply_request(request, stamp, effects).1,
            Entry::SampleBytes(_) | Entry::Status(_) | Entry::Origin(_) => 0,
            Entry::Kv(ops) => {
                // The operations may set keys that expire.
                self.may_sweep = true;
                self.apply_ops_at(&ops, stamp, Vec::new(), &mut Partial::default())
            }
        }
    }
}

impl Partial {
    fn answer(self) -> Answer {
        if !self.is_keys {
            return Answer::Requests(self.replies);
        }
        let Self { answers, reads, now_ms, held, .. } = self;
        Answer::Keys(KeyReplies { answers, reads, now_ms, held })
    }
}

fn next_request(entries: &mut vec::IntoIter<Entry>) -> Request {
    let Some(Entry::Feed(request)) = entries.find(is_submitted) else {
        unreachable!("each command that waits has an entry in the group")
    };
    request
}

/// Whether the entry was submitted, not generated by the node for the other nodes.
fn is_submitted(entry: &Entry) -> bool {
    !matches!(entry, Entry::SampleBytes(_) | Entry::Status(_) | Entry::Origin(_))
}

fn next_ops(entries: &mut vec::IntoIter<Entry>) -> KeyOps {
    let Some(Entry::Kv(ops)) = entries.find(is_submitted) else {
        unreachable!("operations on keys that wait have an entry in the group")
    };
    ops
}

/// Reads the rows of keys within a transaction, without copying them. `held` reserves the memory of all rows that the
/// transaction has read so far.
fn read_rows(
    facts: kv::Facts<'_, dyn KeyRowsMut + '_>,
    read: &ReadAt,
    now_ms: u64,
    held: &mut Reservation,
) -> ReadRows {
    let Some(bucket) = facts.bucket(read.bucket) else {
        return ReadRows { count: 0, rows: Some(vec![None; read.keys.len()]) };
    };
    let mut rows = Vec::with_capacity(read.keys.len());
    for key in &read.keys {
        let row = facts.key(bucket.space, key).filter(|row| row.is_live(now_ms));
        let bytes = held.bytes() + row.as_ref().map_or(0, |row| row.data_bytes() as usize);
        if bytes > READ_BYTES_MAX || !held.resize(bytes) {
            return ReadRows { count: bucket.keys, rows: None };
        }
        rows.push(row);
    }
    ReadRows { count: bucket.keys, rows: Some(rows) }
}
