//! Statuses of the nodes that share a log: their checkpoints, so that the log can be trimmed; their digests, so that a
//! node with different rows is found; and their versions, so that no node proposes what another one cannot apply.
//!
//! A node adds its status to one of its groups about every [`STATUS_EVERY`] groups of the log, even if it has nothing
//! else to write then, and at its start if its version differs from that of its last status. So an idle cluster writes
//! nothing.
//!
//! Digests are compared as long as all live nodes have the same rules, because another release may make different rows
//! of the same commands. When all have the same rules again, the digest restarts.
//!
//! **Invariant:** the row of a status depends on the log alone. Votes and recent digests are in memory only, and change
//! no row.

use std::collections::{BTreeMap, VecDeque};

use commitlog::{Arrived, NodeId, Position};
use kv::KeyRowsMut;

use super::members::{self, Common, Member, Now, SILENT_GROUPS};
use super::{Applier, Output, SharedError, producers};
use crate::submission::entry::Status;
use crate::submission::versions::{COMMANDS, rules};

/// Number of groups of the log after which a node sends its status again.
pub(super) const STATUS_EVERY: u64 = 1_024;
/// Time for which the log keeps groups after all live nodes have them, in milliseconds: joining nodes may need them.
const KEEP_MS: u64 = 3_600_000;
/// Number of recent digests that are kept for comparison: more than arrive while a status is in transit.
const DIGESTS: usize = 16_384;

/// Knowledge of this node about the others, and its own status.
#[derive(Default)]
pub(super) struct Statuses {
    /// Id of this node; `None` in a log of one node.
    node: Option<NodeId>,
    /// Positions of recent counted groups, and the digests after them.
    digests: VecDeque<(u64, u64)>,
    /// Position at which this node last sent its status.
    sent_at: u64,
    /// Whether the last status of this node has other versions than the node, or no status was sent yet.
    is_outdated: bool,
    /// Whether this node has read one of its own statuses from the log. When it reads the next one, the other nodes
    /// have sent statuses too.
    has_returned: bool,
    /// Position of the older of its last two checkpoints.
    checkpoint: u64,
    /// Versions that live nodes have in common, if any has sent a status.
    common: Option<Common>,
    /// Result of the last comparable digest of each other node: its position, and whether it was equal.
    votes: BTreeMap<NodeId, (u64, bool)>,
    /// Last position at which another node had an equal digest, and the first later one with a different digest.
    same_at: u64,
    differs_at: Option<u64>,
    /// Recent times in milliseconds, about one per minute, each with the position up to which the log could then be
    /// trimmed.
    trims: VecDeque<(u64, Position)>,
}

impl Statuses {
    /// Records the digest after a counted group.
    pub(super) fn note(&mut self, position: Position, digest: u64) {
        if self.digests.len() == DIGESTS {
            self.digests.pop_front();
        }
        self.digests.push_back((position.0, digest));
    }

    /// Returns the status to send now, if one is due.
    pub(super) fn due(&mut self) -> Option<Status> {
        if !self.is_due() {
            return None;
        }
        let (position, digest) = self.last();
        (self.sent_at, self.is_outdated) = (position, false);
        let checkpoint = self.checkpoint;
        Some(Status { checkpoint, position, digest, commands: COMMANDS, rules: rules() })
    }

    /// Whether a status is due.
    pub(super) fn is_due(&self) -> bool {
        self.is_outdated || self.last().0 >= self.sent_at + STATUS_EVERY
    }

    /// Returns the position of the last counted group, and the digest after it.
    fn last(&self) -> (u64, u64) {
        self.digests.back().copied().unwrap_or_default()
    }

    fn compare(&mut self, node: NodeId, status: Status) {
        // Statuses of this node itself, also those from before its restart, say nothing about other nodes.
        if self.node == Some(node) || !self.is_comparable(&status) {
            return;
        }
        let at = self.digests.binary_search_by_key(&status.position, |(position, _)| *position);
        let Some((_, ours)) = at.ok().and_then(|at| self.digests.get(at)) else { return };
        let same = *ours == status.digest;
        if same {
            (self.same_at, self.differs_at) = (status.position, None);
        } else {
            self.differs_at.get_or_insert(status.position);
            tracing::error!(%node, position = status.position, "the rows of another node differ");
        }
        self.votes.insert(node, (status.position, same));
    }

    /// Whether the digests of the status and of this node cover the same groups and the same rules.
    fn is_comparable(&self, status: &Status) -> bool {
        let same_rules = |common: Common| common.rules == Some(rules());
        status.rules == rules()
            && self
                .common
                .is_some_and(|common| same_rules(common) && status.position > common.since)
    }

    /// Returns the position up to which the log could be trimmed [`KEEP_MS`] ago. `at` is the position for now.
    fn trimmed_before(&mut self, at: Position, now_ms: u64) -> Option<Position> {
        if self.trims.back().is_none_or(|(then_ms, _)| then_ms + 60_000 <= now_ms) {
            self.trims.push_back((now_ms, at));
        }
        let old = self.trims.iter().take_while(|(then_ms, _)| then_ms + KEEP_MS <= now_ms).count();
        self.trims.drain(..old.saturating_sub(1));
        self.trims.front().filter(|_| old > 0).map(|(_, position)| *position)
    }

    /// Whether more nodes have different facts than equal ones. Called when this node has read a status of its own from
    /// the log.
    fn is_outvoted(&mut self) -> bool {
        // Nodes that have stopped do not count: they may have restarted under another id.
        let (last, _) = self.last();
        self.votes.retain(|_, (position, _)| *position + SILENT_GROUPS >= last);
        let same = self.votes.values().filter(|(_, same)| *same).count();
        let had_returned = std::mem::replace(&mut self.has_returned, true);
        had_returned && self.votes.len() - same > same
    }
}

impl<R: KeyRowsMut, T> Applier<R, T> {
    /// Begins to share a log as `node`.
    pub(super) fn begin_statuses(&mut self, node: NodeId) {
        let rows = &self.rows.inner;
        let member = members::member(rows, node);
        let statuses = &mut self.statuses;
        let is_current = |member: &Member| (member.commands, member.rules) == (COMMANDS, rules());
        statuses.node = Some(node);
        statuses.is_outdated = !member.as_ref().is_some_and(is_current);
        statuses.sent_at = member.map_or(0, |member| member.position);
        statuses.common = members::common(rows);
        if let Some((position, _)) = producers::last_group(rows) {
            statuses.note(position, self.digest);
        }
    }

    /// Sets the position up to which this node needs no group.
    pub(crate) fn set_checkpoint(&mut self, position: Position) {
        self.statuses.checkpoint = position.0;
    }

    /// Returns the version of commands that all live nodes can apply, by their last statuses.
    pub(crate) fn common_commands(&self) -> u32 {
        self.statuses.common.map_or(COMMANDS, |common| common.commands)
    }

    /// Applies the status in a group at `time_ms`, after the group's other entries.
    ///
    /// # Errors
    /// [`SharedError::Differs`] if this node has sent its status and most others have different rows.
    pub(super) fn apply_status(
        &mut self,
        group: &Arrived,
        status: Status,
        time_ms: u64,
        output: &mut Output<T>,
    ) -> Result<(), SharedError> {
        let (node, rows) = (group.id.node, &mut self.rows.inner);
        let now = Now { position: group.position.0, ms: time_ms };
        members::put(rows, node, status, now);
        if let Some(common) = members::update_common(rows, now) {
            tracing::info!(
                commands = common.commands,
                same = common.rules.is_some(),
                "the nodes have new common versions"
            );
            self.statuses.common = Some(common);
            // Until here, nodes with other rules may have had other digests, so the digest restarts.
            self.digest = 0;
            producers::put_digest(rows, node, self.digest);
        }
        if !group.is_own {
            self.statuses.compare(node, status);
            return Ok(());
        }
        let trimmed = members::trimmed(rows, now);
        output.trim = trimmed.and_then(|at| self.statuses.trimmed_before(at, time_ms));
        let Statuses { same_at, differs_at, .. } = self.statuses;
        match differs_at.filter(|_| self.statuses.is_outvoted()) {
            Some(at) => {
                Err(SharedError::Differs { after: Position(same_at), position: Position(at) })
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the statuses of a node of three that have the same rules.
    fn statuses() -> Statuses {
        let common = Common { commands: COMMANDS, rules: Some(rules()), since: 1 };
        Statuses { common: Some(common), ..Statuses::default() }
    }

    fn status(position: u64, digest: u64) -> Status {
        Status { checkpoint: 0, position, digest, commands: COMMANDS, rules: rules() }
    }

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
            let mut statuses = statuses();
            statuses.note(Position(5), 50);
            statuses.note(Position(7), 70);
            for (node, same) in votes.iter().enumerate() {
                let node = NodeId(node as u128);
                statuses.compare(node, status(7, if *same { 70 } else { 71 }));
                // There was no counted group, or it is forgotten.
                statuses.compare(node, status(6, 99));
            }
            assert!(!statuses.is_outvoted(), "others may not have sent theirs");
            assert_eq!(statuses.is_outvoted(), outvoted, "{votes:?}");
        }
    }

    #[test]
    fn nodes_that_send_no_status_any_more_have_no_vote() {
        let mut statuses = statuses();
        statuses.note(Position(5), 50);
        for stopped in [1, 2] {
            statuses.compare(NodeId(stopped), status(5, 51));
        }
        assert!(!statuses.is_outvoted() && statuses.is_outvoted());
        let later = 6 + SILENT_GROUPS;
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

    /// Another release may make different rows of the same log, and digests before `since` began at another group.
    #[test]
    fn only_digests_of_the_same_rules_are_compared() {
        let with = |change: &dyn Fn(&mut Statuses, &mut Status)| {
            let (mut statuses, mut other) = (statuses(), status(7, 71));
            statuses.note(Position(7), 70);
            change(&mut statuses, &mut other);
            statuses.compare(NodeId(2), other);
            statuses.votes.len()
        };
        assert_eq!(with(&|_, _| ()), 1);
        assert_eq!(with(&|_, other| other.rules += 1), 0);
        assert_eq!(with(&|statuses, _| statuses.node = Some(NodeId(2))), 0, "it is itself");
        assert_eq!(with(&|statuses, _| statuses.common = None), 0);
        for (rules, since, compared) in
            [(Some(rules()), 6, 1), (Some(rules()), 7, 0), (Some(9), 6, 0), (None, 6, 0)]
        {
            let common = Common { commands: 9, rules, since };
            assert_eq!(with(&|statuses, _| statuses.common = Some(common)), compared, "{common:?}");
        }
    }
}
