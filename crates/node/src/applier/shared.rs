//! Applying the groups of a log: those that this process has proposed, with answers, and those of other nodes and of
//! earlier processes.
//!
//! In a shared log the cost of a change was computed from facts that may be older than those to which it is applied:
//! another node may have made a value longer. So the cost of operations on keys is computed again, and what has become
//! too large is refused. Samples are counted again in the same way: a group that adds some includes the limit of its
//! node.
//!
//! The time of a group is that of the broker, whose clock may be wrong: a time far ahead of the last stamp is accepted
//! only as far as the clock of the appending node agrees, and never after 2092.
//!
//! **Invariant:** what is applied and what is refused depends only on the rows and the log: all nodes agree.

use commitlog::{Arrived, GroupId, Position};
use feed::Command;
use feed::media::{FileHash, MediaCommand};
use kv::{KeyOps, KeyRowsMut, OpPlace};
use rows::{CHANGE_BYTES_MAX, CHANGE_ROWS_MAX, Cost, Stamp, Totals, WORK_PER_ROW};

use super::caught::Applied;
use super::lengths::GroupLengths;
use super::outcomes::Outcomes;
use super::pieces::next_unit;
use super::producers::{counts, note};
use super::{Applier, Output};
use crate::clock::LATEST_MS;
use crate::directory::divergence::Divergence;
use crate::submission::entry::{Entry, Status};
use crate::views::samples::{TAUGHT_BYTES, taught_bytes};

/// Distance from the last stamp above which a time needs the agreement of two clocks, in milliseconds.
pub(super) const LEAP_MS_MAX: u64 = 60_000;

/// Maximum size of the rows of keys that answers keep until they are sent, in bytes.
pub(crate) const ANSWER_BYTES: usize = 32 << 20;

/// State of the group that is being applied.
pub(super) struct SharedGroup {
    /// Cost of its operations on keys so far.
    cost: Cost,
    /// Maximum size of all samples in bytes, including those that the group deletes. `None` until it is needed.
    samples: Option<usize>,
    /// Maximum size of samples in bytes, by the settings of the node that appended the group.
    sample_bytes_max: usize,
}

/// Reason why a group of the log cannot be applied, so that the node has to stop.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SharedError {
    /// The checksum is right, but the bytes are not commands.
    #[error("group {} of the log cannot be read: a newer version of roost may have written it", position.0)]
    Entry {
        /// Position of the group.
        position: Position,
        /// Decoding error.
        source: postcard::Error,
    },
    /// A group of this process does not count.
    #[error(
        "group {} of the log comes from this node but is out of sequence: another process writes as this node; each node needs its own data directory",
        position.0
    )]
    Superseded {
        /// Position of the group.
        position: Position,
    },
    /// Most other nodes have different rows.
    #[error(
        "the rows of this node differ from those of most other nodes since a group after {} and up to {}: join the cluster again with a new directory",
        after.0,
        position.0
    )]
    Differs {
        /// Last position at which another node had the same digest; 0 if unknown.
        after: Position,
        /// First position at which a node had a different one.
        position: Position,
    },
    /// The log returned a group that is older than an applied one.
    #[error("the log gave group {} after group {}", position.0, last.0)]
    Order {
        /// Position of the group.
        position: Position,
        /// Position of the later group.
        last: Position,
    },
}

impl SharedError {
    /// Returns the range in which the node began to differ from most other nodes, if that is the error.
    pub(crate) fn divergence(&self) -> Option<Divergence> {
        match *self {
            Self::Differs { after, position } => Some(Divergence { after, position }),
            _ => None,
        }
    }
}

impl<R: KeyRowsMut, T> Applier<R, T> {
    /// Applies the next group of the log if it counts. Calls `before` after the group's keys are in memory and before
    /// anything is applied, with the greatest time of its stamps in milliseconds since 1970 and whether it changes
    /// keys; the returned guard is held while the group is applied.
    ///
    /// # Errors
    /// [`SharedError`]
    pub(crate) fn apply_group<G>(
        &mut self,
        group: &Arrived,
        before: impl FnOnce(u64, bool) -> G,
    ) -> Result<Output<T>, SharedError> {
        let position = group.position;
        let time_ms = self.credible_ms(group);
        let mut output = Output::default();
        if !counts(&self.rows.inner, group)? {
            return match group.is_own {
                true => Err(SharedError::Superseded { position }),
                false => Ok(output),
            };
        }
        // The entries are decoded first, so that a group that stops the node changes nothing.
        let entries = match group.is_own {
            true => Vec::new(),
            false => read_entries(&group.payload)
                .map_err(|source| SharedError::Entry { position, source })?,
        };
        // A log of one node needs no digest for comparison, and its costs were computed from the present facts.
        let is_alone = group.id == GroupId::ALONE;
        if !is_alone {
            let sample_bytes_max = if group.is_own { self.taught_bytes_max } else { usize::MAX };
            let cost = Cost::default();
            self.shared = Some(SharedGroup { cost, samples: None, sample_bytes_max });
            self.rows.begin();
        }
        self.outcomes = Outcomes::default();
        let status;
        if group.is_own {
            let entries = self.proposed.as_ref().map_or(&[][..], |group| &group.entries);
            let _held = before(self.last_ms_of(entries, time_ms), has_keys(entries));
            status = status_of(entries);
            self.apply(time_ms, &mut output);
        } else {
            self.load_keys(&entries);
            let _held = before(self.last_ms_of(&entries, time_ms), has_keys(&entries));
            status = status_of(&entries);
            for entry in entries {
                self.apply_foreign(entry, time_ms, &mut output);
            }
            output.work += output.commands * WORK_PER_ROW;
        }
        self.shared = None;
        if is_alone {
            let outcomes = self.outcomes.digest();
            let totals = self.rows.inner.totals();
            self.rows.inner.put_totals(Totals { outcomes, ..totals });
        } else {
            let changes = self.rows.end();
            self.digest = note(&mut self.rows.inner, self.digest, group, changes);
            self.statuses.note(position, self.digest);
        }
        // The status comes last, so that after an error the group is applied completely.
        if let Some(status) = status {
            self.apply_status(group, status, time_ms, &mut output)?;
        }
        Ok(output)
    }

    /// Returns the time of a group, in milliseconds since 1970.
    pub(crate) fn credible_ms(&self, group: &Arrived) -> u64 {
        let last_ms = self.rows.inner.totals().last_stamp.map_or(0, Stamp::unix_ms);
        credible_ms(group.time_ms, group.sent_ms, last_ms)
    }

    /// Loads the rows of the keys of entries into memory.
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
        let admitted = match &entry {
            Entry::Kv(ops) => self.admits(ops),
            Entry::Feed(request) => self.admits_sample(&request.command),
            Entry::SampleBytes(bytes_max) => {
                if let Some(group) = &mut self.shared {
                    group.sample_bytes_max = usize::try_from(*bytes_max).unwrap_or(usize::MAX);
                }
                false
            }
            Entry::Status(_) | Entry::Origin(_) => false,
        };
        if !admitted {
            return;
        }
        if let Entry::Feed(request) = &entry {
            output.files.extend(files_of(&request.command));
        }
        let stamps = entry.stamps();
        let stamp = self.clock.next_run(time_ms, stamps);
        output.commands += stamps;
        output.work += self.apply_entry(entry, stamp, &mut output.effects);
    }

    /// Whether the present facts allow the operations within the limits of a group. Always true in a log of one node,
    /// whose facts have not changed since the group was proposed.
    pub(super) fn admits(&mut self, ops: &KeyOps) -> bool {
        self.decide(Applied::Ops(ops), |applier| applier.fits(ops))
    }

    fn fits(&mut self, ops: &KeyOps) -> bool {
        let Some(mut sum) = self.shared.as_ref().map(|group| group.cost) else { return true };
        if let Some(cost) = ops.known_cost() {
            sum = sum.and(cost);
        } else {
            let lengths = GroupLengths::in_memory_or_not(kv::Facts::new(&self.rows));
            let mut place = OpPlace::default();
            while let Some(unit) = next_unit(ops, place, &lengths) {
                sum = sum.and(unit.cost);
                place = unit.after;
            }
        }
        let fits = sum.bytes <= CHANGE_BYTES_MAX
            && sum.rows <= CHANGE_ROWS_MAX
            && sum.answer <= ANSWER_BYTES;
        if let Some(group) = self.shared.as_mut().filter(|_| fits) {
            group.cost = sum;
        }
        fits
    }

    /// Whether a command adds no sample, or the present facts allow it within the limit of the node that appended the
    /// group. Always true in a log of one node.
    pub(super) fn admits_sample(&mut self, command: &Command) -> bool {
        self.decide(Applied::Command(command), |applier| applier.has_memory_for(command))
    }

    fn has_memory_for(&mut self, command: &Command) -> bool {
        let Some(group) = self.shared.as_mut() else { return true };
        if !matches!(command, Command::AddSample { .. }) {
            return true;
        }
        let facts = feed::Facts::new(&self.rows);
        let mut bytes = group.samples.unwrap_or_else(|| taught_bytes(facts));
        if bytes.saturating_add(TAUGHT_BYTES) > group.sample_bytes_max {
            // The group may have added fewer samples than were reserved.
            bytes = taught_bytes(facts);
        }
        let fits = bytes.saturating_add(TAUGHT_BYTES) <= group.sample_bytes_max;
        group.samples = Some(bytes + if fits { TAUGHT_BYTES } else { 0 });
        fits
    }
}

/// Returns the time to apply a group at: the broker received the group at `time_ms`, the clock of the group's node
/// showed `sent_ms` when it appended the group, and the last stamp before the group is from `last_ms`.
pub(super) fn credible_ms(time_ms: u64, sent_ms: u64, last_ms: u64) -> u64 {
    let is_leap = time_ms > last_ms.saturating_add(LEAP_MS_MAX);
    let agreed_ms = if is_leap { time_ms.min(sent_ms.max(last_ms)) } else { time_ms };
    agreed_ms.min(LATEST_MS)
}

/// Returns the files that a command which adds a picture needs.
fn files_of(command: &Command) -> impl Iterator<Item = FileHash> {
    let added = match command {
        Command::Media(MediaCommand::Add(new)) => Some(new),
        _ => None,
    };
    added
        .into_iter()
        .flat_map(|new| [Some(new.original), new.preview])
        .flatten()
        .map(|file| file.hash)
}

pub(super) fn has_keys(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| matches!(entry, Entry::Kv(_)))
}

/// Returns the status in a group, if any.
fn status_of(entries: &[Entry]) -> Option<Status> {
    entries.iter().rev().find_map(|entry| match entry {
        Entry::Status(status) => Some(*status),
        _ => None,
    })
}

/// Decodes the entries of a group; fails if this program cannot apply one of them.
fn read_entries(mut payload: &[u8]) -> Result<Vec<Entry>, postcard::Error> {
    let mut entries = Vec::new();
    while !payload.is_empty() {
        let (entry, rest) = Entry::read(payload)?;
        if let Entry::Kv(ops) = &entry {
            ops.check()?;
        }
        entries.push(entry);
        payload = rest;
    }
    Ok(entries)
}
