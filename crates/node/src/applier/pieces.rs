//! The operations of a submission that go into a group: one by one, or a transaction as a whole.

use feed::keys::{KeyOp, KeyOps, KeyRefusal, OpPlace};
use feed::{Command, Cost, Request, Rows};
use smallvec::SmallVec;

use super::group::Group;
use super::lengths::GroupLengths;
use super::queue::Piece;
use crate::budget::Reservation;

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

/// Logs pieces of `ops`; returns them, if they are needed again.
pub(super) fn log_pieces<T>(group: &mut Group<T>, ops: KeyOps, pieces: &[Range]) -> KeyOps {
    if let [Range::Logged(from, to)] = pieces
        && to.ops - from.ops == ops.len()
    {
        group.log(Request::from(Command::Keys(ops)));
        return KeyOps::default();
    }
    for piece in pieces {
        if let Range::Logged(from, to) = piece {
            group.log(Request::from(Command::Keys(ops.between(*from, *to))));
        }
    }
    ops
}

/// Whether all keys that may be written between two places can be keys.
pub(super) fn writes_possible_keys(ops: &KeyOps, from: OpPlace, to: OpPlace) -> bool {
    let mut place = from;
    while place.ops < to.ops
        && let Some((op, next)) = ops.next(place)
    {
        if !op.writes_possible_keys() {
            return false;
        }
        place = next;
    }
    true
}

/// The cost of the operation or transaction after `place`, and the place after that.
pub(super) fn unit_cost<R: Rows>(
    ops: &KeyOps,
    place: OpPlace,
    lengths: &GroupLengths<'_, R>,
) -> Option<(Cost, OpPlace)> {
    let (op, mut after) = ops.next(place)?;
    let mut cost = lengths.cost(&op);
    let then = if let KeyOp::Begin { then, .. } = op { then } else { 0 };
    for _ in 0..then {
        let Some((op, next)) = ops.next(after) else { break };
        cost = cost.and(lengths.cost(&op));
        after = next;
    }
    Some((cost, after))
}
