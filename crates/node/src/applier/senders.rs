//! Which groups of a log that several nodes share count, and what the facts remember of them.
//!
//! **Invariant:** the decision and the digest depend on nothing but the rows and the groups of the log up to here: they
//! are the same on all nodes.

use commitlog::{Arrived, GroupId, NodeId, Position};
use rows::{NameTable, Rows, RowsMut, decode, encode};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::SharedError;

/// The last group of a node that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sender {
    pub(crate) epoch: u64,
    pub(crate) number: u64,
    /// Its position in the log.
    pub(crate) position: u64,
    /// Of all groups of the log that count, up to this one.
    pub(crate) digest: u64,
}

/// The digest of the last group that counts; 0 if there is none.
pub(crate) fn last_digest(rows: &impl Rows) -> u64 {
    let (mut last, mut from) = (Sender::default(), Vec::new());
    while let Some(name) = rows.first_name(NameTable::Sender, &from) {
        let sender = rows.name(NameTable::Sender, &name).map(|row| decode::<Sender>(&row));
        last = sender.filter(|sender| sender.position > last.position).unwrap_or(last);
        // The next possible name.
        from = [&name, [0].as_slice()].concat();
    }
    last.digest
}

/// The last group of a node that counts.
pub(crate) fn last(rows: &impl Rows, node: NodeId) -> Sender {
    let row = rows.name(NameTable::Sender, &node.0.to_be_bytes());
    row.map(|row| decode::<Sender>(&row)).unwrap_or_default()
}

/// Whether a group counts: it has the next number of the current epoch of its node, or number 1 of a later epoch. Takes
/// note of it then, and changes `digest`.
///
/// # Errors
/// [`SharedError::Order`]
pub(crate) fn accept(
    rows: &mut impl RowsMut,
    digest: &mut u64,
    group: &Arrived,
) -> Result<bool, SharedError> {
    let GroupId { node, epoch, number } = group.id;
    let last = last(rows, node);
    let is_next = (epoch, number) == (last.epoch, last.number + 1);
    if !is_next && (epoch <= last.epoch || number != 1) {
        return Ok(false);
    }
    if last.position >= group.position.0 {
        return Err(SharedError::Order { position: group.position, last: Position(last.position) });
    }
    *digest = chained(*digest, group);
    let sender = Sender { epoch, number, position: group.position.0, digest: *digest };
    rows.put_name(NameTable::Sender, &node.0.to_be_bytes(), Some(encode(&sender)));
    Ok(true)
}

/// The digest after a group.
fn chained(before: u64, group: &Arrived) -> u64 {
    let mut hash = Xxh3::with_seed(before);
    hash.update(&group.id.node.0.to_le_bytes());
    for number in [group.id.epoch, group.id.number, group.position.0, group.time_ms] {
        hash.update(&number.to_le_bytes());
    }
    hash.update(&group.payload);
    hash.digest()
}
