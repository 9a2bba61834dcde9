//! Groups that a log returns, and their origin. A group has a position only when it is returned; in a shared log,
//! groups of other nodes are in between.

use std::time::Duration;

use bytes::Bytes;

use crate::Position;

/// Permanent id of a node: the identity of its data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u128);

impl std::fmt::Display for NodeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Origin of a group in a log that several nodes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId {
    /// Node that appended the group.
    pub node: NodeId,
    /// Epoch: a number that increases with each start of the node.
    pub epoch: u64,
    /// Number of the group in the epoch, from 1.
    pub number: u64,
}

impl GroupId {
    /// Id of a message that another program wrote to the log. No group has this id.
    pub const NONE: Self = Self { node: NodeId(0), epoch: 0, number: 0 };
    /// Id of every group in a log of one node. Such a log neither loses, repeats nor reorders groups, so they need no
    /// ids of their own.
    pub const ALONE: Self = Self { node: NodeId(0), epoch: 0, number: 1 };
}

/// Position up to which a node has applied a shared log, when the node opens the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Position of the last applied group.
    pub position: Position,
    /// Position and id of the last group that counted. If the log has no such group at this position, it is another
    /// log.
    pub counted: Option<(Position, GroupId)>,
}

/// End of a shared log, as its servers reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEnd {
    /// Last position of the log when it was reported.
    pub position: Position,
    /// Time since the report.
    pub ago: Duration,
}

/// Group that a log returns; a shared log returns it to each node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Position of the group.
    pub position: Position,
    /// Time that the log gave the group, in milliseconds since 1970.
    pub time_ms: u64,
    /// Time of the appending node by its own clock; [`Self::time_ms`] if no node appended the message.
    pub sent_ms: u64,
    /// Origin of the group: [`GroupId::NONE`] for a message of another program, which has no payload;
    /// [`GroupId::ALONE`] in a log of one node.
    pub id: GroupId,
    /// Whether this group is the oldest one of this process that had not been returned. False for a duplicate.
    pub is_own: bool,
    /// Appended payload.
    pub payload: Bytes,
}

/// Id of the nodes that share a log: 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClusterId(pub u128);

impl std::fmt::Display for ClusterId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
