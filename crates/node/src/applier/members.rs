//! Nodes with a shared log: a row with the last status of each, and what follows from all of them: the position up to
//! which the log is no longer needed, and what the live nodes have in common.
//!
//! **Invariant:** all of this depends only on the log up to here and is the same on all nodes.

use commitlog::{NodeId, Position};
use rows::{NameTable, Rows, RowsMut, decode, encode};
use serde::{Deserialize, Serialize};

use super::status::STATUS_EVERY;
use crate::submission::entry::Status;

/// Number of groups that stay in the log, for nodes that join, although the checkpoints of all nodes include them.
const MARGIN: u64 = 65_536;
/// Time after which the log is trimmed without regard to a node that sends no status, in milliseconds of the log: a
/// week.
const AWAY_MS: u64 = 7 * 86_400_000;
/// Time after which the versions of a node that sends no status do not count, in milliseconds of the log: an hour.
const SILENT_MS: u64 = 3_600_000;
/// Minimum number of groups without a status before a node counts as away or silent: three statuses, because an idle
/// cluster sends none.
pub(super) const SILENT_GROUPS: u64 = 3 * STATUS_EVERY;
/// Last byte of the name of a member's row; rows of [`super::producers`] lack it.
const MEMBER: u8 = 2;
/// Name of the row of [`Common`].
const COMMON: &[u8] = &[3];

/// Last status of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Member {
    /// Position up to which the node needs no group.
    pub(super) checkpoint: u64,
    /// Position and time of the status's group, in milliseconds since 1970.
    pub(super) position: u64,
    pub(super) at_ms: u64,
    /// Versions of the node's commands and rules, see [`crate::submission::versions`].
    pub(super) commands: u32,
    pub(super) rules: u64,
}

/// Versions that the live nodes have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Common {
    /// Version of commands that all of them can apply.
    pub(super) commands: u32,
    /// Rules of all of them, if they are the same.
    pub(super) rules: Option<u64>,
    /// Position of the group since which this holds.
    pub(super) since: u64,
}

/// Position of the log, and its time in milliseconds since 1970.
#[derive(Clone, Copy)]
pub(super) struct Now {
    pub(super) position: u64,
    pub(super) ms: u64,
}

impl Now {
    /// Whether a node has sent no status for `for_ms` milliseconds and for [`SILENT_GROUPS`] groups.
    fn misses(self, member: &Member, for_ms: u64) -> bool {
        let is_late = member.at_ms.saturating_add(for_ms) <= self.ms;
        is_late && member.position.saturating_add(SILENT_GROUPS) <= self.position
    }
}

fn name_of(node: NodeId) -> Vec<u8> {
    [&node.0.to_be_bytes()[..], &[MEMBER]].concat()
}

/// Returns the last status of a node.
pub(super) fn member(rows: &impl Rows, node: NodeId) -> Option<Member> {
    rows.name(NameTable::ClusterNode, &name_of(node)).map(|row| decode(&row))
}

/// Stores the status of a node.
pub(super) fn put(rows: &mut impl RowsMut, node: NodeId, status: Status, now: Now) {
    let Status { checkpoint, commands, rules, .. } = status;
    let member = Member { checkpoint, position: now.position, at_ms: now.ms, commands, rules };
    rows.put_name(NameTable::ClusterNode, &name_of(node), Some(encode(&member)));
}

/// Returns the nodes that have sent a status within `for_ms`.
fn live_members(rows: &impl Rows, now: Now, for_ms: u64) -> Vec<Member> {
    let (mut all, mut from) = (Vec::new(), Vec::new());
    while let Some(name) = rows.first_name(NameTable::ClusterNode, &from) {
        let is_member = name.len() == 17 && name.last() == Some(&MEMBER);
        let row = rows.name(NameTable::ClusterNode, &name).filter(|_| is_member);
        all.extend(row.map(|row| decode::<Member>(&row)));
        // The search continues at the smallest greater name.
        from = [&name, [0].as_slice()].concat();
    }
    all.retain(|member| !now.misses(member, for_ms));
    all
}

/// Returns the position up to which no node needs the log, less the margin.
pub(super) fn trimmed(rows: &impl Rows, now: Now) -> Option<Position> {
    let least = live_members(rows, now, AWAY_MS).iter().map(|member| member.checkpoint).min()?;
    least.checked_sub(MARGIN).map(Position)
}

/// Returns the versions that the live nodes had in common at the last status of any node.
pub(super) fn common(rows: &impl Rows) -> Option<Common> {
    rows.name(NameTable::ClusterNode, COMMON).map(|row| decode(&row))
}

/// Recomputes the versions that the live nodes have in common; returns them if they have changed.
pub(super) fn update_common(rows: &mut impl RowsMut, now: Now) -> Option<Common> {
    let live = live_members(rows, now, SILENT_MS);
    let commands = live.iter().map(|member| member.commands).min()?;
    let rules = live.first().map(|member| member.rules);
    let rules = rules.filter(|rules| live.iter().all(|member| member.rules == *rules));
    let before = common(rows);
    if before.is_some_and(|before| (before.commands, before.rules) == (commands, rules)) {
        return None;
    }
    let common = Common { commands, rules, since: now.position };
    rows.put_name(NameTable::ClusterNode, COMMON, Some(encode(&common)));
    Some(common)
}

#[cfg(test)]
mod tests {
    use testkit::MemoryRows;

    use super::*;

    fn status(checkpoint: u64, commands: u32, rules: u64) -> Status {
        Status { checkpoint, position: 0, digest: 0, commands, rules }
    }

    #[test]
    fn the_log_is_trimmed_to_what_no_live_node_needs() {
        let mut rows = MemoryRows::default();
        assert_eq!(trimmed(&rows, Now { position: 0, ms: AWAY_MS }), None);
        for (node, checkpoint, position, ms, expected) in [
            (1, MARGIN - 1, 0, 10, None),
            (1, MARGIN + 100, 0, 10, Some(100)),
            (2, MARGIN + 70, 0, 20, Some(70)),
            (3, MARGIN + 90, 0, 20, Some(70)),
            // A week without groups.
            (3, MARGIN + 95, SILENT_GROUPS - 1, AWAY_MS + 20, Some(70)),
            // Now the first two have been away for too long.
            (3, MARGIN + 96, SILENT_GROUPS, AWAY_MS + 20, Some(96)),
        ] {
            let now = Now { position, ms };
            put(&mut rows, NodeId(node), status(checkpoint, 1, 1), now);
            // A row of another kind.
            let name = u128::to_be_bytes(node);
            rows::PutRows::put_name(
                &mut rows,
                NameTable::ClusterNode,
                &name,
                Some(encode(&[7_u8; 32])),
            );
            assert_eq!(trimmed(&rows, now).map(|at| at.0), expected, "{node} {checkpoint}");
        }
    }

    /// Updates three nodes one by one; the third one is replaced.
    #[test]
    fn nodes_have_in_common_what_the_live_ones_all_have() {
        let mut rows = MemoryRows::default();
        let later = SILENT_GROUPS + 2;
        for (node, commands, rules, position, ms, expected) in [
            (1, 4, 40, 1, 1, Some((4, Some(40)))),
            (2, 4, 40, 2, 1, None),
            (3, 4, 40, 2, 1, None),
            (1, 5, 50, 3, 2, Some((4, None))),
            (1, 5, 50, 4, 2, None),
            (2, 5, 50, 5, 2, None),
            (1, 5, 50, later - 1, SILENT_MS + 1, None),
            (2, 5, 50, later, SILENT_MS, None),
            (2, 5, 50, later, SILENT_MS + 1, Some((5, Some(50)))),
            (4, 3, 50, later + 1, SILENT_MS + 1, Some((3, Some(50)))),
        ] {
            let now = Now { position, ms };
            put(&mut rows, NodeId(node), status(0, commands, rules), now);
            let expected =
                expected.map(|(commands, rules)| Common { commands, rules, since: position });
            assert_eq!(update_common(&mut rows, now), expected, "{node} at {position}");
            assert!(expected.is_none() || common(&rows) == expected);
        }
    }
}
