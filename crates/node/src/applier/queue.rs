//! Submissions that are not, or only partly, in a group yet.

use feed::{Reply, Request};
use kv::{KeyOps, OpPlace};
use smallvec::SmallVec;

use crate::submission::{Changes, ReadAt, Submission};
use budget::Reservation;

/// Operations on keys are long from this size on, in bytes. While long operations are written, all other changes wait
/// for the disk.
pub(crate) const LONG_BYTES: usize = 1 << 20;

/// A submission on its way into groups.
pub(super) struct Queued<T> {
    /// Identifies submissions whose answers are incomplete.
    pub(super) id: u64,
    pub(super) ticket: T,
    pub(super) rest: Rest,
    /// Whether an earlier group had no room for the rest.
    pub(super) is_long: bool,
}

/// Commands that are not in a group yet.
pub(super) enum Rest {
    Requests(smallvec::IntoIter<[Request; 1]>),
    Keys {
        ops: KeyOps,
        /// Position of the first operation that is not in a group.
        next: OpPlace,
        reads: Vec<ReadAt>,
    },
}

impl<T> Queued<T> {
    pub(super) fn new(id: u64, Submission { changes, ticket }: Submission<T>) -> Self {
        let rest = match changes {
            Changes::Requests(requests) => Rest::Requests(requests.into_iter()),
            Changes::Keys { ops, reads } => Rest::Keys { ops, next: OpPlace::default(), reads },
        };
        Self { id, ticket, rest, is_long: false }
    }

    /// Whether its operations take at least [`LONG_BYTES`] together.
    pub(super) fn has_long_bytes(&self) -> bool {
        match &self.rest {
            Rest::Requests(_) => false,
            Rest::Keys { ops, .. } => ops.bytes() >= LONG_BYTES,
        }
    }

    /// Whether no part of it is in a group.
    pub(super) fn is_whole(&self) -> bool {
        match &self.rest {
            Rest::Requests(_) => true,
            Rest::Keys { next, .. } => next.ops == 0,
        }
    }
}

/// Part of a submission that a group has taken: the submission waits for the group.
pub(super) struct Waiting<T> {
    pub(super) id: u64,
    /// Recipient of the reply, if this is the last part.
    pub(super) ticket: Option<T>,
    pub(super) part: Part,
}

/// Content of a part.
pub(super) enum Part {
    /// Number of commands, each an entry.
    Requests(usize),
    /// A command that is not logged.
    Answered(Reply),
    /// Operations on keys.
    Keys {
        pieces: SmallVec<[Piece; 1]>,
        reads: Vec<ReadAt>,
        /// Memory of the rows that their answers may keep.
        held: Reservation,
    },
}

/// Consecutive operations on keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Operations in the log, as one command.
    Logged,
    /// Number of operations that were refused before the log, and the reason.
    Refused(usize, kv::KeyRefusal),
}

/// Part of a submission that a group took.
#[cfg(feature = "simulation")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenPart {
    /// Number of commands, each an entry.
    Requests(usize),
    /// A command that is not logged.
    Answered,
    /// Entry of operations on keys.
    Ops,
    /// Number of operations on keys that are not logged.
    RefusedOps(usize),
}

#[cfg(feature = "simulation")]
impl<T> Waiting<T> {
    /// Returns its parts in the group, each with the number of the submission, from 1.
    pub(super) fn taken(&self) -> Vec<(u64, TakenPart)> {
        let parts = match &self.part {
            Part::Requests(count) => vec![TakenPart::Requests(*count)],
            Part::Answered(_) => vec![TakenPart::Answered],
            Part::Keys { pieces, .. } => pieces
                .iter()
                .map(|piece| match piece {
                    Piece::Logged => TakenPart::Ops,
                    Piece::Refused(count, _) => TakenPart::RefusedOps(*count),
                })
                .collect(),
        };
        parts.into_iter().map(|part| (self.id, part)).collect()
    }
}
