//! Applying groups: proposed ones, with answers, and those of a log that is replayed.

use commitlog::Placed;
use feed::cost::WORK_PER_ROW;
use feed::keys::KeyAnswer;
use feed::{Command, Effect, Entry, Facts, Reply, Request, RowsMut, Stamp, Txn, apply, apply_keys};

use super::group::Group;
use super::queue::{Part, Piece, Waiting};
use super::{Answer, Applier, Output, Partial};
use crate::budget::Reservation;
use crate::keys::{KeyReplies, READ_BYTES_MAX, ReadAt, ReadRows};

/// What replaying a group did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Replayed {
    /// Commands applied, each operation on keys by itself.
    pub(crate) commands: usize,
    /// In the unit of [`feed::Cost::work`].
    pub(crate) work: usize,
}

impl<R: RowsMut, T> Applier<R, T> {
    /// Applies the proposed group.
    pub(super) fn apply(&mut self, placed: Placed, output: &mut Output<T>) {
        let Some(mut group) = self.proposed.take() else {
            unreachable!("only a proposed group is placed")
        };
        self.may_sweep |= group.has_keys();
        let requests = std::mem::take(&mut group.requests);
        output.commands = group.commands;
        self.finish(group, Some((placed.time_ms, requests)), output);
        output.work += output.commands * WORK_PER_ROW;
    }

    /// Applies the requests of a group, if any are logged, and answers those who wait.
    pub(super) fn finish(
        &mut self,
        group: Group<T>,
        logged: Option<(u64, Vec<Request>)>,
        output: &mut Output<T>,
    ) {
        let (time_ms, requests) = logged.unwrap_or_default();
        let mut requests = requests.into_iter();
        let mut next = || match requests.next() {
            Some(request) => request,
            None => unreachable!("whoever waits has a request in the group"),
        };
        for Waiting { id, ticket, part } in group.waiting {
            let mut partial = self.partial_of(id);
            match part {
                Part::Requests(count) => {
                    for _ in 0..count {
                        let (reply, work) = self.apply_one(next(), time_ms, &mut output.effects);
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
                                let reads = std::mem::take(&mut reads);
                                output.work +=
                                    self.apply_ops(&next(), time_ms, reads, &mut partial);
                            }
                            Piece::Refused(count, refusal) => {
                                let answers =
                                    std::iter::repeat_n(KeyAnswer::Refused(refusal), count);
                                partial.answers.extend(answers);
                            }
                        }
                    }
                    // Those of a transaction that was refused.
                    partial.reads.extend(reads.iter().map(|_| ReadRows::default()));
                }
            }
            match ticket {
                Some(ticket) => output.answers.push((ticket, partial.answer())),
                None => self.partial.push((id, partial)),
            }
        }
        if group.sweeps {
            let sweep = next();
            let mut partial = self.partial_of(0);
            output.work += self.apply_ops(&sweep, time_ms, Vec::new(), &mut partial);
            let more = matches!(partial.answers.first(), Some(KeyAnswer::Swept { more: true, .. }));
            self.sweep_more = more;
            if !more {
                self.sweep_at_ms = time_ms + super::SWEEP_PAUSE_MS;
            }
        }
    }

    fn stamp(&mut self, request: &Request, time_ms: u64) -> Stamp {
        self.clock.next_run(time_ms, request.command.stamps())
    }

    fn apply_one(
        &mut self,
        request: Request,
        time_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> (Reply, usize) {
        let stamp = self.stamp(&request, time_ms);
        let mut txn = Txn::new(&mut self.rows);
        let reply = apply(&mut txn, &request.stamped(stamp), effects);
        (reply, txn.work())
    }

    fn apply_ops(
        &mut self,
        request: &Request,
        time_ms: u64,
        reads: Vec<ReadAt>,
        partial: &mut Partial,
    ) -> usize {
        let stamp = self.stamp(request, time_ms);
        let Command::Keys(ops) = &request.command else {
            unreachable!("operations on keys are one command")
        };
        let now_ms = stamp.unix_ms();
        let mut reads = reads.into_iter().peekable();
        let (found, mut held) = (&mut partial.reads, self.answers.empty());
        let mut between = |index: usize, facts: Facts<'_, dyn RowsMut + '_>| {
            while let Some(read) = reads.next_if(|read| read.before <= index) {
                found.push(read_rows(facts, &read, now_ms, &mut held));
            }
        };
        let mut txn = Txn::new(&mut self.rows);
        partial.answers.reserve(ops.len());
        apply_keys(&mut txn, stamp, ops, &mut between, &mut partial.answers);
        let work = txn.work();
        partial.now_ms = now_ms;
        partial.held.push(held);
        work
    }

    /// Applies a group that is read back from the log. Its effects are of no use: views begin empty.
    ///
    /// # Errors
    /// If the bytes are not commands, which the checksum all but excludes.
    pub(crate) fn replay(
        &mut self,
        group: commitlog::Group<'_>,
    ) -> Result<Replayed, postcard::Error> {
        let mut replayed = Replayed::default();
        let mut effects = Vec::new();
        let mut payload = group.payload;
        while !payload.is_empty() {
            let (entry, rest) = match group.time_ms {
                Some(time_ms) => {
                    let (request, rest) = postcard::take_from_bytes::<Request>(payload)?;
                    let stamp = self.stamp(&request, time_ms);
                    (request.stamped(stamp), rest)
                }
                // In format 1 stamps were made before commands were logged.
                None => postcard::take_from_bytes::<Entry>(payload)?,
            };
            replayed.commands += entry.command.stamps();
            self.clock =
                feed::StampClock::new(entry.stamp.after(entry.command.stamps() as u64 - 1));
            let mut txn = Txn::new(&mut self.rows);
            apply(&mut txn, &entry, &mut effects);
            replayed.work += txn.work();
            effects.clear();
            payload = rest;
        }
        replayed.work += replayed.commands * WORK_PER_ROW;
        Ok(replayed)
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

/// Reads within a transaction: a constant number of rows for each key, none of them copied. `held`
/// is what the transaction has read so far.
fn read_rows(
    facts: Facts<'_, dyn RowsMut + '_>,
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
