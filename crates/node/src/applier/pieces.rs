//! Operations of a submission that go into a group: one by one, or a transaction as a whole.

use kv::{KeyOp, KeyOps, KeyRefusal, KeyRows, OpPlace};
use rows::Cost;
use smallvec::SmallVec;

use super::group::Group;
use super::lengths::GroupLengths;
use super::queue::Piece;
use crate::submission::entry::Entry;
use budget::Reservation;

/// Operations of one submission that go into one group.
pub(super) struct TakenOps {
    pub(super) pieces: SmallVec<[Range; 1]>,
    pub(super) up_to: OpPlace,
    pub(super) held: Reservation,
}

/// Consecutive operations that are logged or refused.
pub(super) enum Range {
    Logged(OpPlace, OpPlace),
    Refused(usize, KeyRefusal),
}

impl Range {
    pub(super) fn piece(&self) -> Piece {
        match self {
            Self::Logged(..) => Piece::Logged,
            Self::Refused(count, refusal) => Piece::Refused(*count, *refusal),
        }
    }
}

/// Adds pieces of `ops` to the group. Returns `ops`, or no operations if the only piece was all of them.
pub(super) fn log_pieces<T>(group: &mut Group<T>, ops: KeyOps, pieces: &[Range]) -> KeyOps {
    if let [Range::Logged(from, to)] = pieces
        && to.ops - from.ops == ops.len()
    {
        group.log(Entry::Kv(ops));
        return KeyOps::default();
    }
    for piece in pieces {
        if let Range::Logged(from, to) = piece {
            group.log(Entry::Kv(ops.between(*from, *to)));
        }
    }
    ops
}

/// An operation, or a transaction as a whole.
pub(super) struct Unit {
    pub(super) cost: Cost,
    /// Position after the unit.
    pub(super) after: OpPlace,
    /// Whether all keys that the unit may write are valid keys.
    pub(super) possible: bool,
}

/// Returns the unit after `place`.
pub(super) fn next_unit<R: KeyRows>(
    ops: &KeyOps,
    place: OpPlace,
    lengths: &GroupLengths<'_, R>,
) -> Option<Unit> {
    let (op, after) = ops.next(place)?;
    let mut unit = Unit { cost: lengths.cost(&op), after, possible: op.writes_possible_keys() };
    let then = if let KeyOp::Begin { then, .. } = op { then } else { 0 };
    for _ in 0..then {
        let Some((op, after)) = ops.next(unit.after) else { break };
        unit.cost = unit.cost.and(lengths.cost(&op));
        unit.after = after;
        unit.possible &= op.writes_possible_keys();
    }
    Some(unit)
}
