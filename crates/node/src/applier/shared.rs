//! Applying the groups of a log that several nodes share.
//!
//! The cost of a change was computed from facts that may be older than those to which it is applied: another node may
//! have made a value longer. So the cost of operations on keys is computed again, and what has become too large is
//! refused.
//!
//! **Invariant:** what is applied and what is refused depends on nothing but the rows and the log: all nodes agree.

use commitlog::{Arrived, Placed, Position};
use kv::{KeyOps, KeyRowsMut, OpPlace};
use rows::{CHANGE_BYTES_MAX, CHANGE_ROWS_MAX, Cost, WORK_PER_ROW};

use super::lengths::GroupLengths;
use super::pieces::next_unit;
use super::senders::accept;
use super::{Applier, Output};
use crate::entry::Entry;

/// Rows of keys that answers keep until they are sent, in bytes.
pub(crate) const ANSWER_BYTES: usize = 32 << 20;

/// Why a group of a shared log cannot be applied. The node has to stop.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SharedError {
    /// The bytes are not commands, although their checksum is right.
    #[error("group {} of the log cannot be read: a newer version of roost may have written it", position.0)]
    Entry {
        /// Its position.
        position: Position,
        /// The error.
        source: postcard::Error,
    },
    /// A group of this process came back and does not count.
    #[error(
        "group {} of the log is of this node but does not count: another process writes as this node; each node needs a data directory of its own",
        position.0
    )]
    Superseded {
        /// Its position.
        position: Position,
    },
    /// The log gave a group that is older than one that was applied.
    #[error("the log gave group {} after group {}", position.0, last.0)]
    Order {
        /// Its position.
        position: Position,
        /// The position of the later one.
        last: Position,
    },
}

impl<R: KeyRowsMut, T> Applier<R, T> {
    /// Applies the next group of a log that several nodes share, unless it does not count. Before anything is applied, and
    /// after its keys were read into memory, `before` gets the highest time of its stamps, in milliseconds since 1970;
    /// what it returns is held while the group is applied.
    ///
    /// # Errors
    /// [`SharedError`]
    pub(crate) fn apply_shared<G>(
        &mut self,
        group: &Arrived,
        before: impl FnOnce(u64) -> G,
    ) -> Result<Output<T>, SharedError> {
        let (position, time_ms) = (group.position, group.time_ms);
        let mut output = Output::default();
        if !accept(&mut self.rows, &mut self.digest, group)? {
            return match group.is_own {
                true => Err(SharedError::Superseded { position }),
                false => Ok(output),
            };
        }
        self.applied_cost = Some(Cost::default());
        if group.is_own {
            let _held = before(self.last_ms(time_ms));
            self.apply(Placed { position, time_ms }, &mut output);
        } else {
            let entries = read_entries(&group.payload);
            let entries = entries.map_err(|source| SharedError::Entry { position, source })?;
            self.load_keys(&entries);
            let _held = before(self.last_ms_of(&entries, time_ms));
            for entry in entries {
                self.apply_foreign(entry, time_ms, &mut output);
            }
            output.work += output.commands * WORK_PER_ROW;
        }
        self.applied_cost = None;
        Ok(output)
    }

    /// Reads the rows of keys into memory that entries look up.
    fn load_keys(&self, entries: &[Entry]) {
        let facts = self.keys();
        if !facts.has_cold_keys() {
            return;
        }
        for entry in entries {
            let Entry::Kv(ops) = entry else { continue };
            for op in ops.iter() {
                op.each_key(&mut |bucket, key| _ = facts.load_key(bucket, key));
            }
        }
    }

    fn apply_foreign(&mut self, entry: Entry, time_ms: u64, output: &mut Output<T>) {
        if let Entry::Kv(ops) = &entry
            && !self.admits(ops)
        {
            return;
        }
        let stamps = entry.stamps();
        let stamp = self.clock.next_run(time_ms, stamps);
        output.commands += stamps;
        output.work += self.apply_entry(entry, stamp, &mut output.effects);
    }

    /// Whether operations can be applied within the limits of a group, by the facts as they are now. Always, in a log
    /// of one node: the facts are those with which the group was proposed.
    pub(super) fn admits(&mut self, ops: &KeyOps) -> bool {
        let Some(mut sum) = self.applied_cost else { return true };
        if let Some(cost) = ops.known_cost() {
            sum = sum.and(cost);
        } else {
            let lengths = GroupLengths::in_memory_or_not(self.keys());
            let mut place = OpPlace::default();
            while let Some(unit) = next_unit(ops, place, &lengths) {
                sum = sum.and(unit.cost);
                place = unit.after;
            }
        }
        let fits = sum.bytes <= CHANGE_BYTES_MAX
            && sum.rows <= CHANGE_ROWS_MAX
            && sum.answer <= ANSWER_BYTES;
        if fits {
            self.applied_cost = Some(sum);
        }
        fits
    }
}

fn read_entries(mut payload: &[u8]) -> Result<Vec<Entry>, postcard::Error> {
    let mut entries = Vec::new();
    while !payload.is_empty() {
        let (entry, rest) = Entry::read(payload)?;
        entries.push(entry);
        payload = rest;
    }
    Ok(entries)
}
