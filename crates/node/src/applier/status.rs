//! What nodes say of themselves in a log that they share: how far their checkpoints are, so that the log can be trimmed,
//! and their digest, so that a node whose facts differ is found.
//!
//! A node adds its status to a group of its own about every [`STATUS_EVERY`] groups of the log, also if it has nothing
//! else to say then. So an idle cluster writes nothing.
//!
//! **Invariant:** the row of a status depends on the log alone. Votes and recent digests are in memory only, and change no
//! row.

use std::collections::{BTreeMap, VecDeque};

use commitlog::{Arrived, NodeId, Position};
use kv::KeyRowsMut;
use rows::{NameTable, Rows, decode, encode};
use serde::{Deserialize, Serialize};

use super::{Applier, Output, SharedError};
use crate::entry::Status;

/// Groups of the log after which a node says its status again.
const STATUS_EVERY: u64 = 1_024;
/// Groups of the log for which the digest of a node counts: three statuses.
const VOTES_FOR: u64 = 3 * STATUS_EVERY;
/// The log keeps what any live node lacked so long ago, in milliseconds, for nodes that are about to join.
const KEEP_MS: u64 = 3_600_000;
/// Recent digests that are kept to compare: more than arrive while a status is under way.
const DIGESTS: usize = 16_384;
/// Groups that stay in the log before those that all nodes have in checkpoints, for nodes that are about to join.
const MARGIN: u64 = 65_536;
/// The log does not wait for a node that has said nothing for this long, in milliseconds of the log: a week.
const AWAY_MS: u64 = 7 * 86_400_000;
/// The last byte of the name of a row with a status; a row without it is one of [`super::senders`].
const MARK: u8 = 1;

/// The row of a node.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Said {
    checkpoint: u64,
    /// The time of the group, in milliseconds since 1970.
    at_ms: u64,
}

/// What this node knows of others, and has said itself.
#[derive(Default)]
pub(super) struct Statuses {
    /// The position of the last group that counts, and the digests after recent ones.
    digests: VecDeque<(u64, u64)>,
    /// Where this node said its status last.
    said_at: u64,
    /// Whether a status of this node has come back: when the next one does, the others have said theirs, too.
    has_said: bool,
    /// Position of the older of its last two checkpoints.
    checkpoint: u64,
    /// Whether the last digest of another node that could be compared was the same, and its position.
    votes: BTreeMap<NodeId, (u64, bool)>,
    /// Up to where the log could be trimmed at recent times, in milliseconds, about one for each minute.
    trims: VecDeque<(u64, Position)>,
}

impl Statuses {
    /// Takes note of the digest after a group that counts.
    pub(super) fn note(&mut self, position: Position, digest: u64) {
        if self.digests.len() == DIGESTS {
            self.digests.pop_front();
        }
        self.digests.push_back((position.0, digest));
    }

    /// The status to say now, if it is time.
    pub(super) fn due(&mut self) -> Option<Status> {
        let (position, digest) = *self.digests.back()?;
        if position < self.said_at + STATUS_EVERY {
            return None;
        }
        self.said_at = position;
        Some(Status { checkpoint: self.checkpoint, position, digest })
    }

    /// Whether a status is due.
    pub(super) fn is_due(&self) -> bool {
        self.digests.back().is_some_and(|(position, _)| *position >= self.said_at + STATUS_EVERY)
    }

    fn compare(&mut self, node: NodeId, status: Status) {
        let at = self.digests.binary_search_by_key(&status.position, |(position, _)| *position);
        let Some((_, ours)) = at.ok().and_then(|at| self.digests.get(at)) else { return };
        let same = *ours == status.digest;
        if !same {
            tracing::error!(%node, position = status.position, "another node has other facts");
        }
        self.votes.insert(node, (status.position, same));
    }

    /// Up to where the log could be trimmed [`KEEP_MS`] ago, if it can be up to `at` now.
    fn trimmed_before(&mut self, at: Position, now_ms: u64) -> Option<Position> {
        if self.trims.back().is_none_or(|(then_ms, _)| then_ms + 60_000 <= now_ms) {
            self.trims.push_back((now_ms, at));
        }
        let old = self.trims.iter().take_while(|(then_ms, _)| then_ms + KEEP_MS <= now_ms).count();
        self.trims.drain(..old.saturating_sub(1));
        self.trims.front().filter(|_| old > 0).map(|(_, position)| *position)
    }

    /// Called when a status of this node has come back: whether more nodes have other facts than the same.
    fn is_outvoted(&mut self) -> bool {
        // Nodes that have stopped, which may have another name since, do not count.
        let last = self.digests.back().map_or(0, |(position, _)| *position);
        self.votes.retain(|_, (position, _)| *position + VOTES_FOR >= last);
        let same = self.votes.values().filter(|(_, same)| *same).count();
        let is_heard = std::mem::replace(&mut self.has_said, true);
        is_heard && self.votes.len() - same > same
    }
}

impl<R: KeyRowsMut, T> Applier<R, T> {
    /// This node needs no group up to here any more.
    pub(crate) fn set_checkpoint(&mut self, position: Position) {
        self.statuses.checkpoint = position.0;
    }

    /// Applies the status in a group at `time_ms`.
    ///
    /// # Errors
    /// [`SharedError::Differs`], if this node has said its status and is alone with its facts.
    pub(super) fn apply_status(
        &mut self,
        group: &Arrived,
        status: Status,
        time_ms: u64,
        output: &mut Output<T>,
    ) -> Result<(), SharedError> {
        let node = group.id.node;
        let said = Said { checkpoint: status.checkpoint, at_ms: time_ms };
        let name = [&node.0.to_be_bytes()[..], &[MARK]].concat();
        self.rows.put_name(NameTable::Sender, &name, Some(encode(&said)));
        if !group.is_own {
            self.statuses.compare(node, status);
            return Ok(());
        }
        output.trim =
            trimmed(&self.rows, time_ms).and_then(|at| self.statuses.trimmed_before(at, time_ms));
        match self.statuses.is_outvoted() {
            true => Err(SharedError::Differs { position: Position(status.position) }),
            false => Ok(()),
        }
    }
}

/// Up to where no node needs the log, with a margin.
fn trimmed(rows: &impl Rows, now_ms: u64) -> Option<Position> {
    let (mut least, mut from) = (None::<u64>, Vec::new());
    while let Some(name) = rows.first_name(NameTable::Sender, &from) {
        let is_status = name.len() == 17 && name.last() == Some(&MARK);
        let row = rows.name(NameTable::Sender, &name).filter(|_| is_status);
        let said = row.map(|row| decode::<Said>(&row));
        if let Some(said) = said.filter(|said| said.at_ms.saturating_add(AWAY_MS) > now_ms) {
            least = Some(least.map_or(said.checkpoint, |least| least.min(said.checkpoint)));
        }
        // The next possible name.
        from = [&name, [0].as_slice()].concat();
    }
    least.and_then(|least| least.checked_sub(MARGIN)).map(Position)
}

#[cfg(test)]
mod tests {
    use rows::PutRows as _;
    use testkit::MemoryRows;

    use super::*;

    #[test]
    fn a_node_is_outvoted_if_more_nodes_differ_than_agree() {
        for (votes, outvoted) in [
            (&[][..], false),
            (&[true], false),
            (&[false], true),
            (&[true, false], false),
            (&[false, false], true),
            (&[true, false, false], true),
        ] {
            let mut statuses = Statuses::default();
            statuses.note(Position(5), 50);
            statuses.note(Position(7), 70);
            for (node, same) in votes.iter().enumerate() {
                let status = |position, digest| Status { checkpoint: 0, position, digest };
                let node = NodeId(node as u128);
                statuses.compare(node, status(7, if *same { 70 } else { 71 }));
                // There was no group that counts, or it is forgotten.
                statuses.compare(node, status(6, 99));
            }
            assert!(!statuses.is_outvoted(), "others may not have said theirs");
            assert_eq!(statuses.is_outvoted(), outvoted, "{votes:?}");
        }
    }

    #[test]
    fn nodes_that_say_nothing_any_more_have_no_vote() {
        let mut statuses = Statuses::default();
        let status = |position, digest| Status { checkpoint: 0, position, digest };
        statuses.note(Position(5), 50);
        for stopped in [1, 2] {
            statuses.compare(NodeId(stopped), status(5, 51));
        }
        assert!(!statuses.is_outvoted() && statuses.is_outvoted());
        let later = 6 + VOTES_FOR;
        statuses.note(Position(later), 70);
        statuses.compare(NodeId(3), status(later, 70));
        assert!(!statuses.is_outvoted());
        assert_eq!(statuses.votes.len(), 1);
    }

    #[test]
    fn what_was_needed_an_hour_ago_is_kept() {
        let mut statuses = Statuses::default();
        let mut at = |position, now_ms| {
            statuses.trimmed_before(Position(position), now_ms).map(|position| position.0)
        };
        assert_eq!(at(10, 1_000), None);
        assert_eq!(at(20, 2_000), None, "less than a minute later");
        assert_eq!(at(30, 70_000), None);
        assert_eq!(at(40, KEEP_MS + 1_000), Some(10));
        assert_eq!(at(50, KEEP_MS + 69_000), Some(10));
        assert_eq!(at(60, KEEP_MS + 70_000), Some(30));
        assert_eq!(at(70, 9 * KEEP_MS), Some(50), "60 came less than a minute after that");
        assert!(statuses.trims.len() < 4);
    }

    #[test]
    fn the_log_is_trimmed_to_what_no_live_node_needs() {
        let mut rows = MemoryRows::default();
        assert_eq!(trimmed(&rows, AWAY_MS), None);
        for (node, checkpoint, at_ms, expected) in [
            (1, MARGIN - 1, 10, None),
            (1, MARGIN + 100, 10, Some(100)),
            (2, MARGIN + 70, 20, Some(70)),
            (3, MARGIN + 90, 20, Some(70)),
            // Now the first two have been away for too long.
            (3, MARGIN + 95, AWAY_MS + 20, Some(95)),
        ] {
            let name = [&u128::to_be_bytes(node)[..], &[MARK]].concat();
            let said = Said { checkpoint, at_ms };
            rows.put_name(NameTable::Sender, &name, Some(encode(&said)));
            // A row of another kind.
            rows.put_name(NameTable::Sender, &name[..16], Some(encode(&[7_u8; 32])));
            assert_eq!(trimmed(&rows, at_ms).map(|at| at.0), expected, "{node} {checkpoint}");
        }
    }
}
