//! Decision which groups of a shared log count, and the rows for this decision. In a log of one node all groups count.
//!
//! **Invariant:** the decision and the digest depend only on the rows and the groups of the log up to here and are the
//! same on all nodes.

use commitlog::{Arrived, GroupId, NodeId, Position};
use rows::{NameTable, Rows, RowsMut, Totals, decode, encode};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::SharedError;

/// Last counted group of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Producer {
    pub(crate) epoch: u64,
    pub(crate) number: u64,
    /// Position of the group in the log.
    pub(crate) position: u64,
    /// Digest of all counted groups of the log up to this one.
    pub(crate) digest: u64,
}

/// Returns the digest of the last counted group; 0 if there is none.
pub(crate) fn last_digest(rows: &impl Rows) -> u64 {
    last_counted(rows).map_or(0, |(_, producer)| producer.digest)
}

/// Returns the position and id of the last counted group.
pub(crate) fn last_group(rows: &impl Rows) -> Option<(Position, GroupId)> {
    let (node, Producer { epoch, number, position, .. }) = last_counted(rows)?;
    Some((Position(position), GroupId { node, epoch, number }))
}

fn last_counted(rows: &impl Rows) -> Option<(NodeId, Producer)> {
    let (mut last, mut from) = (None::<(NodeId, Producer)>, Vec::new());
    while let Some(name) = rows.first_name(NameTable::ClusterNode, &from) {
        // Names of other lengths are those of `members`.
        if let Ok(name) = <[u8; 16]>::try_from(&*name) {
            let node = NodeId(u128::from_be_bytes(name));
            let producer = last_of(rows, node);
            if last.is_none_or(|(_, last)| producer.position > last.position) {
                last = Some((node, producer));
            }
        }
        // The search continues at the smallest greater name.
        from = [&name, [0].as_slice()].concat();
    }
    last
}

/// Returns the last counted group of a node.
pub(crate) fn last_of(rows: &impl Rows, node: NodeId) -> Producer {
    let row = rows.name(NameTable::ClusterNode, &node.0.to_be_bytes());
    row.map(|row| decode::<Producer>(&row)).unwrap_or_default()
}

/// Whether a group counts: it has the next number of the current epoch of its node, or number 1 of a later epoch.
///
/// # Errors
/// [`SharedError::Order`]
pub(crate) fn counts(rows: &impl Rows, group: &Arrived) -> Result<bool, SharedError> {
    if group.id == GroupId::ALONE {
        return Ok(true);
    }
    let GroupId { node, epoch, number } = group.id;
    let last = last_of(rows, node);
    let is_next = (epoch, number) == (last.epoch, last.number + 1);
    if !is_next && (epoch <= last.epoch || number != 1) {
        return Ok(false);
    }
    if last.position >= group.position.0 {
        return Err(SharedError::Order { position: group.position, last: Position(last.position) });
    }
    Ok(true)
}

/// Stores a counted group, with the hash of the rows that it changed; returns the digest after it.
pub(crate) fn note(rows: &mut impl RowsMut, digest: u64, group: &Arrived, changes: u64) -> u64 {
    let GroupId { node, epoch, number } = group.id;
    let digest = chained(digest, group, (changes, rows.totals()));
    put(rows, node, Producer { epoch, number, position: group.position.0, digest });
    digest
}

/// Replaces the digest of the last group of `node`, which must be the last counted group of the log.
pub(crate) fn put_digest(rows: &mut impl RowsMut, node: NodeId, digest: u64) {
    let producer = last_of(rows, node);
    put(rows, node, Producer { digest, ..producer });
}

fn put(rows: &mut impl RowsMut, node: NodeId, producer: Producer) {
    rows.put_name(NameTable::ClusterNode, &node.0.to_be_bytes(), Some(encode(&producer)));
}

/// Returns the digest after a group, from the hash of its changed rows and the totals after it.
fn chained(before: u64, group: &Arrived, (changes, totals): (u64, Totals)) -> u64 {
    let mut hash = Xxh3::with_seed(before);
    hash.update(&group.id.node.0.to_le_bytes());
    let GroupId { epoch, number, .. } = group.id;
    for number in [epoch, number, group.position.0, group.time_ms, group.sent_ms, changes] {
        hash.update(&number.to_le_bytes());
    }
    hash.update(&encode(&totals));
    hash.update(&group.payload);
    hash.digest()
}
