//! Groups as they come out of a log, and who appended them: a group gets its place when it comes back, in a log that several nodes
//! share among those of others.

use std::time::Duration;

use bytes::Bytes;

use crate::Position;

/// Identifies a node for ever: the identity of its data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u128);

impl std::fmt::Display for NodeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Who appended a group to a log that several nodes share, and as which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId {
    /// The node.
    pub node: NodeId,
    /// Greater at each start of the node.
    pub epoch: u64,
    /// Counts the groups of an epoch from 1.
    pub number: u64,
}

impl GroupId {
    /// Of a message in the log that is no group, because another program wrote it: no group has this id.
    pub const NONE: Self = Self { node: NodeId(0), epoch: 0, number: 0 };
    /// The id of each group in a log of one node, where nothing is lost, sent twice or reordered on its way.
    pub const ALONE: Self = Self { node: NodeId(0), epoch: 0, number: 1 };
}

/// How far a node has applied a shared log when it opens it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The position of the last group that was applied.
    pub position: Position,
    /// The position and id of the last one that counted: the log must still have it there, or it is not the same log.
    pub counted: Option<(Position, GroupId)>,
}

/// The end of a log, as its servers reported it last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEnd {
    /// The last position of the log then.
    pub position: Position,
    /// How long ago it was.
    pub ago: Duration,
}

/// A group that a log gives back, if several nodes share it to each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Its position.
    pub position: Position,
    /// The time that the log gave it, in milliseconds since 1970.
    pub time_ms: u64,
    /// The time of the node when it appended it, as it said; [`Self::time_ms`] if no node did.
    pub sent_ms: u64,
    /// The node that appended it, and its number there. [`GroupId::NONE`] if it is none, and then it has no payload; [`GroupId::ALONE`] in a log of one
    /// node.
    pub id: GroupId,
    /// Whether it is the oldest group that this process has appended and that had not come back. A duplicate is not.
    pub is_own: bool,
    /// The payload as it was appended.
    pub payload: Bytes,
}

/// Identifies the nodes that share a log: 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClusterId(pub u128);

impl std::fmt::Display for ClusterId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
