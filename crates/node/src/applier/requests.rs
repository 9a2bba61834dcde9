//! Adding commands other than operations on keys to a group, and checking before a sample is logged that there is
//! memory for it.
//!
//! **Invariant:** after every group, the samples in the facts fit into the applier's memory for samples. So a start
//! with the same memory can load them. A replay checks nothing: commands in the log were admitted. In a shared log each
//! group is checked again when it is applied: see `shared`.

use feed::{Command, Facts, Refusal, Reply, Request};
use kv::KeyRowsMut;
use rows::Cost;

use super::Applier;
use super::caught::Applied;
use super::group::{COSTLY_WORK_MAX, Group, Grouped};
use super::queue::{Part, Queued, Rest, Waiting};
use crate::submission::entry::{Entry, request_bytes};
use crate::views::samples::{TAUGHT_BYTES, taught_bytes};

/// Reply to a command whose cost could not be computed because the rules panicked.
const INTERNAL: Reply = Reply { outcome: Err(Refusal::Internal), replayed: false };

/// Changes of samples by a group.
#[derive(Default)]
pub(super) struct GroupSamples {
    /// Maximum size of the samples after this group, in bytes, including those that it deletes. `None` until it is
    /// needed.
    bytes: Option<usize>,
    /// Whether the group adds or deletes a sample.
    changes: bool,
    /// Maximum size of samples in bytes, which the group of a shared log records before its first sample.
    limit: Option<usize>,
}

impl GroupSamples {
    pub(super) fn new(limit: Option<usize>) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Returns the entry that must come before a command, if any.
    pub(super) fn limit_of(&mut self, command: &Command) -> Option<Entry> {
        if !matches!(command, Command::AddSample { .. }) {
            return None;
        }
        self.limit.take().map(|bytes| Entry::SampleBytes(bytes as u64))
    }

    /// Counts a command that is added to the group.
    pub(super) fn count(&mut self, command: &Command) {
        match command {
            Command::AddSample { .. } => {
                self.changes = true;
                self.bytes = self.bytes.map(|bytes| bytes + TAUGHT_BYTES);
            }
            Command::DeleteSample { .. } => self.changes = true,
            _ => {}
        }
    }
}

/// Decision about a command for the group.
enum Admission {
    Admitted,
    /// The reply is known without applying the command.
    Answered(Reply),
    /// The command waits for another group: it is costly, or the decision depends on the results of this group.
    Waits,
}

impl<R: KeyRowsMut, T> Applier<R, T> {
    /// Takes as many of the commands as fit. Unless `costly` is true, stops before the first costly command.
    pub(super) fn take_requests(
        &mut self,
        group: &mut Group<T>,
        id: u64,
        ticket: T,
        mut requests: smallvec::IntoIter<[Request; 1]>,
        costly: bool,
    ) -> Grouped<T> {
        let (mut count, mut waits) = (0, false);
        while let Some(request) = requests.as_slice().first() {
            let judged = self.judge(Applied::Command(&request.command), |applier| {
                let cost = request.cost();
                if !costly && cost.work > COSTLY_WORK_MAX {
                    return Some((cost, Admission::Waits));
                }
                let fits =
                    !group.is_shared_out() && group.has_room(&cost, 1, request_bytes(request));
                fits.then(|| (cost, applier.admission(&mut group.samples, request)))
            });
            let failed = (Cost::default(), Admission::Answered(INTERNAL));
            let Some((cost, admission)) = judged.unwrap_or(Some(failed)) else { break };
            if matches!(admission, Admission::Waits) {
                waits = true;
                break;
            }
            let Some(request) = requests.next() else { unreachable!("it was just seen") };
            if let Admission::Answered(reply) = admission {
                // The check itself counts as work.
                group.count(&cost, 0);
                group.wait_for(id, Part::Requests(std::mem::take(&mut count)));
                group.wait_for(id, Part::Answered(reply));
            } else {
                group.count(&cost, 1);
                group.log(Entry::Feed(request));
                count += 1;
            }
        }
        let part = Part::Requests(count);
        if requests.as_slice().is_empty() {
            group.waiting.push(Waiting { id, ticket: Some(ticket), part });
            return Grouped::All;
        }
        group.wait_for(id, part);
        let rest = Queued { id, ticket, rest: Rest::Requests(requests), is_long: true };
        if waits { Grouped::Costly(rest) } else { group.rest(rest) }
    }

    /// Decides whether there is memory for the sample that a command adds. Near the limit, a group has at most one
    /// command that adds a sample, because the results of earlier commands decide about the next one.
    fn admission(&self, group: &mut GroupSamples, request: &Request) -> Admission {
        if !matches!(request.command, Command::AddSample { .. }) {
            return Admission::Admitted;
        }
        let facts = Facts::new(&self.rows);
        let bytes = *group.bytes.get_or_insert_with(|| taught_bytes(facts));
        if bytes.saturating_add(TAUGHT_BYTES) <= self.taught_bytes_max {
            return Admission::Admitted;
        }
        if group.changes {
            return Admission::Waits;
        }
        Admission::Answered(self.answer_without_memory(request))
    }

    /// Returns the reply to a command that adds a sample without memory for it; for a retry, the first result.
    pub(super) fn answer_without_memory(&self, request: &Request) -> Reply {
        let full = Reply { outcome: Err(Refusal::SamplesFull), replayed: false };
        let facts = Facts::new(&self.rows);
        let last = facts.totals().last_stamp;
        let Some((idempotency, last)) = request.idempotency.as_ref().zip(last) else { return full };
        match facts.remembered(idempotency, last) {
            Some((content, outcome)) if content == idempotency.content => {
                Reply { outcome, replayed: true }
            }
            Some(_) => Reply { outcome: Err(Refusal::KeyReused), replayed: false },
            None => full,
        }
    }
}
