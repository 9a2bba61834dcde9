//! Groups of this node that have not come back from the stream. This module only decides what to send next, and when to
//! send everything again.
//!
//! Groups are sent in order, without waiting for the broker's answers. If a group may be lost, all groups that have not
//! come back are sent again, beginning with the oldest. The oldest is then a probe: the others wait until the broker
//! confirms that it has stored the probe. A broker in trouble thus gets one message at a time, and the reason of the
//! trouble is known. A stored group is not sent again before the reader reaches its position, because then the trouble
//! is on the way back or at the node itself.
//!
//! **Invariant:** a group keeps its number and its bytes when it is sent again.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;
use commitlog::{GroupId, NodeId, Position};

use crate::message::{HEADER_BYTES, encode};

/// Maximum size of pending messages in bytes. A longer message is allowed if it is the only one.
pub(crate) const BYTES_MAX: usize = 8 << 20;
/// Maximum number of pending messages. JetStream drops messages of a stream when 10,000 wait.
pub(crate) const GROUPS_MAX: usize = 1_024;
/// Time without a returned group after which all groups are sent again.
const STALLED_AFTER: Duration = Duration::from_secs(1);

/// Next message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Send {
    /// A message that needs no answer.
    Plain(Bytes),
    /// The message of the oldest group. The broker's answer decides what to send next.
    Probe(Bytes),
}

/// Meaning of an arrived group for this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The node's oldest group that had not come back.
    Own,
    /// A group of another node, or a group of this node that does not count.
    Other,
    /// A group of another process with the id of this node.
    Superseded,
}

/// Window of pending groups.
pub(crate) struct Window {
    node: NodeId,
    /// Epoch of the node; `None` until it may append.
    epoch: Option<u64>,
    /// Pending groups with consecutive numbers, oldest first.
    groups: VecDeque<(u64, Bytes)>,
    bytes: usize,
    /// Number of the next group.
    next: u64,
    /// Number of `groups` that were sent since the last restart.
    sent: usize,
    probing: bool,
    /// Position at which the broker has stored the oldest group, if known.
    stored: Option<Position>,
    /// Number of the probe whose answer is pending.
    probe: u64,
    /// Number of the last group that was sent before the last restart. Groups up to it may still overtake others.
    resent_up_to: u64,
    /// Time at which the oldest group was sent, or at which the last returned group arrived.
    progress: Instant,
}

impl Window {
    pub(crate) fn new(node: NodeId, now: Instant) -> Self {
        Self {
            node,
            epoch: None,
            groups: VecDeque::new(),
            bytes: 0,
            next: 1,
            sent: 0,
            probing: false,
            stored: None,
            probe: 0,
            resent_up_to: 0,
            progress: now,
        }
    }

    /// Lets the node append groups of this epoch.
    pub(crate) fn begin(&mut self, epoch: u64) {
        assert!(self.epoch.is_none(), "a log is opened for one epoch");
        self.epoch = Some(epoch);
    }

    /// Whether a payload of this length can be added.
    pub(crate) fn has_room(&self, payload_bytes: usize) -> bool {
        let bytes = self.bytes + HEADER_BYTES + payload_bytes;
        self.groups.is_empty() || self.groups.len() < GROUPS_MAX && bytes <= BYTES_MAX
    }

    /// Returns the number of groups that have not come back.
    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// Adds a group and returns its number.
    ///
    /// # Panics
    /// Before [`Window::begin`].
    pub(crate) fn push(&mut self, payload: &[u8], sent_ms: u64) -> u64 {
        let Some(epoch) = self.epoch else { unreachable!("the epoch has begun") };
        let number = self.next;
        self.next += 1;
        let message = encode(GroupId { node: self.node, epoch, number }, sent_ms, payload);
        self.bytes += message.len();
        self.groups.push_back((number, message));
        number
    }

    /// Returns the next message to send, if any.
    pub(crate) fn next_to_send(&mut self, now: Instant) -> Option<Send> {
        if self.probing && self.sent > 0 {
            return None;
        }
        let (number, message) = self.groups.get(self.sent)?;
        if self.sent == 0 {
            self.progress = now;
        }
        self.sent += 1;
        Some(match self.probing {
            true => {
                self.probe = *number;
                Send::Probe(message.clone())
            }
            false => Send::Plain(message.clone()),
        })
    }

    /// Records that the broker has stored the probe at this position.
    pub(crate) fn probe_stored(&mut self, position: Position) {
        self.probing = false;
        if self.groups.front().is_some_and(|(oldest, _)| *oldest == self.probe) {
            self.stored = Some(position);
        }
    }

    /// Makes all groups be sent again, except the oldest one if the broker has stored it.
    pub(crate) fn restart(&mut self, now: Instant) {
        let sent = self.groups.iter().take(self.sent).next_back();
        self.resent_up_to = sent.map_or(self.resent_up_to, |(number, _)| *number);
        self.sent = usize::from(self.stored.is_some());
        self.probing = !self.groups.is_empty() && self.stored.is_none();
        self.progress = now;
    }

    /// Returns the time at which all groups are sent again unless one comes back. `None` if no group was sent, or the
    /// broker has stored the oldest one.
    pub(crate) fn stalls_at(&self) -> Option<Instant> {
        (self.sent > 0 && self.stored.is_none()).then(|| self.progress + STALLED_AFTER)
    }

    /// Makes all groups be sent again if no group has come back for too long. Returns whether this was so.
    pub(crate) fn restart_if_stalled(&mut self, now: Instant) -> bool {
        let stalled = self.stalls_at().is_some_and(|at| at <= now);
        if stalled {
            self.restart(now);
        }
        stalled
    }

    /// Records a group of the stream, at a position.
    pub(crate) fn arrived(
        &mut self,
        (position, id): (Position, GroupId),
        message: &Bytes,
        now: Instant,
    ) -> Arrival {
        let arrival = self.classify(id, message, now);
        if arrival == Arrival::Own {
            self.stored = None;
        } else if self.stored.is_some_and(|stored| stored <= position) {
            // The group is not at the position that the broker reported.
            self.stored = None;
            self.restart(now);
        }
        arrival
    }

    fn classify(&mut self, id: GroupId, message: &Bytes, now: Instant) -> Arrival {
        let Some(epoch) = self.epoch.filter(|epoch| id.node == self.node && id.epoch >= *epoch)
        else {
            return Arrival::Other;
        };
        if id.epoch > epoch || id.number >= self.next {
            return Arrival::Superseded;
        }
        match self.groups.front() {
            Some((oldest, ours)) if *oldest == id.number => {
                if ours != message {
                    return Arrival::Superseded;
                }
                self.bytes -= message.len();
                self.groups.pop_front();
                // The group has come back, even if it was to be sent again.
                self.sent = self.sent.saturating_sub(1);
                self.probing = false;
                self.progress = now;
                Arrival::Own
            }
            Some((oldest, _)) if id.number > *oldest => {
                // The oldest group was lost, so this later group does not count.
                if id.number > self.resent_up_to {
                    self.restart(now);
                }
                Arrival::Other
            }
            // The message is a duplicate.
            _ => Arrival::Other,
        }
    }
}

#[cfg(test)]
#[path = "tests/window.rs"]
mod tests;
