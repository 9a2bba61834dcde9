//! A log that several nodes share: a group gets its place when it comes back, among those of other nodes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::{Log, LogError, Position, SharedFiles};

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
}

/// How far a node has applied a shared log when it opens it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The position of the last group that was applied.
    pub position: Position,
    /// The position and id of the last one that counted: the log must still have it there, or it is not the same log.
    pub counted: Option<(Position, GroupId)>,
}

/// What the servers of a shared log said last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The last position of the log then.
    pub position: Position,
    /// How long ago it was.
    pub ago: Duration,
}

/// A group that a shared log gives to each of its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Its position.
    pub position: Position,
    /// The time that the log gave it, in milliseconds since 1970.
    pub time_ms: u64,
    /// The time of the node when it appended it, as it said; [`Self::time_ms`] if no node did.
    pub sent_ms: u64,
    /// Who appended it. [`GroupId::NONE`] if it is none, and then it has no payload.
    pub id: GroupId,
    /// Whether it is the oldest group of this log that had not come back. A duplicate is not.
    pub is_own: bool,
    /// The payload as it was appended.
    pub payload: Bytes,
}

/// A log that several nodes share, while it is opened: a node first takes what the log has already. [`Log::last`] is
/// the position of the last group that was taken.
pub trait SharedLog: Log {
    /// The node that appends.
    fn node(&self) -> NodeId;

    /// The position of the last group when it was opened.
    fn last_at_open(&self) -> Position;

    /// The longest payload that it accepts, in bytes.
    fn payload_bytes_max(&self) -> usize;

    /// The next group, of this node or another one, if it is here. Does not wait. An error poisons the log.
    fn next(&mut self) -> Result<Option<Arrived>, LogError>;

    /// As [`SharedLog::next`], but waits up to `wait` for a group.
    fn next_within(&mut self, wait: Duration) -> Result<Option<Arrived>, LogError>;

    /// Lets this node append, in an epoch that must be greater than all of it before. From then on `wake` is called
    /// after each group, or error, that [`SharedLog::next`] can give.
    fn begin(&mut self, epoch: u64, wake: Box<dyn Fn() + Send + Sync>);

    /// Whether the log cannot be trusted with changes now. It may pass.
    fn refuses_changes(&self) -> bool;

    /// No node needs the groups up to here: the log may drop them, at any time.
    fn trim(&mut self, up_to: Position);

    /// The last position that the log is known to have.
    fn end(&self) -> Heard;

    /// By which the nodes give each other files.
    fn files(&self) -> Arc<dyn SharedFiles>;
}

/// Identifies the nodes that share a log: 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClusterId(pub u128);

impl std::fmt::Display for ClusterId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
