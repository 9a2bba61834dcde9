//! Memory of a connection, reserved in the budget that all Redis clients share.
//!
//! **Invariants:** a buffer that a client can fill grows only after its bytes were reserved. The memory for
//! small commands and replies is reserved when a connection is accepted, so they never wait for memory of
//! other clients.

use budget::{MemoryBudget, Reservation};
use resp::{Encoder, Protocol};

use super::failure::Failure;

/// What every connection reserves when it is accepted: its state, the first bytes of its buffers, and
/// the names that its client chose. 16,384 connections reserve 128 MiB.
pub(crate) const CONNECTION_BYTES: usize = 8 << 10;
/// Bytes of the input buffer, and of the output buffer, that are a part of [`CONNECTION_BYTES`].
pub(crate) const BUFFER_BYTES: usize = 2 << 10;
/// Bytes that the parser keeps from one command to the next, as a part of [`CONNECTION_BYTES`].
pub(crate) const PARSER_BYTES: usize = 1 << 10;
/// Bytes of changes under way that are a part of [`CONNECTION_BYTES`].
pub(crate) const CHANGE_BYTES: usize = 1_536;
/// Reservations are multiples of this, so that few commands touch the counter that all share.
const STEP_BYTES: usize = 16 << 10;
/// A buffer grows by at most as much ahead of need.
const AHEAD_BYTES_MAX: usize = 256 << 10;
/// Bytes that a reply adds to the text in it.
pub(crate) const HEADER_BYTES: usize = 64;

const _: () = assert!(2 * BUFFER_BYTES + PARSER_BYTES + CHANGE_BYTES < CONNECTION_BYTES);

/// Splits the memory of all Redis clients: what their connections reserve, at most half of it, and what
/// their buffers take beyond that. Clients that fill the second part do not keep others from connecting.
pub(crate) fn split(bytes: usize, connections_max: u32) -> (MemoryBudget, MemoryBudget) {
    let connections = CONNECTION_BYTES.saturating_mul(connections_max as usize).min(bytes / 2);
    let connections = connections.max(CONNECTION_BYTES);
    (MemoryBudget::new(connections), MemoryBudget::new(bytes.saturating_sub(connections)))
}

/// One buffer's part of the budget.
#[derive(Debug)]
pub(crate) struct Held {
    reserved: Reservation,
    included: usize,
}

impl Held {
    /// No reservation yet. `included` bytes need no reservation, being part of [`CONNECTION_BYTES`].
    pub(crate) fn new(budget: &MemoryBudget, included: usize) -> Self {
        Self { reserved: budget.empty(), included }
    }

    /// Reserves what a buffer of `bytes` needs, and gives back what it needs no more. False, and
    /// nothing changes, if the budget has not as much left.
    pub(crate) fn cover(&mut self, bytes: usize) -> bool {
        let wanted = if bytes <= self.included {
            0
        } else {
            bytes.checked_next_multiple_of(STEP_BYTES).unwrap_or(usize::MAX)
        };
        wanted == self.reserved.bytes() || self.reserved.resize(wanted)
    }

    /// Bytes reserved.
    pub(crate) fn bytes(&self) -> usize {
        self.reserved.bytes()
    }
}

/// Makes room for a reply of `bytes` at the end of `out`, which `held` covers. False, and nothing
/// changes, if the budget has not as much left.
pub(crate) fn make_room(out: &mut Vec<u8>, held: &mut Held, bytes: usize) -> bool {
    let (len, capacity) = (out.len(), out.capacity());
    let needed = len.saturating_add(bytes).saturating_add(HEADER_BYTES);
    if needed <= capacity {
        return true;
    }
    let ahead = capacity + capacity.clamp(BUFFER_BYTES, AHEAD_BYTES_MAX);
    let first = if capacity == 0 { needed.max(BUFFER_BYTES) } else { needed.max(ahead) };
    let Some(size) = [first, needed].into_iter().find(|size| held.cover(*size)) else {
        return false;
    };
    out.reserve_exact(size - len);
    true
}

/// Replies that have not been sent.
#[derive(Debug)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    held: Held,
}

impl Output {
    /// The replies of a new connection.
    pub(crate) fn new(budget: &MemoryBudget) -> Self {
        Self { bytes: Vec::new(), held: Held::new(budget, BUFFER_BYTES) }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// See [`make_room()`].
    pub(crate) fn make_room(&mut self, bytes: usize) -> bool {
        make_room(&mut self.bytes, &mut self.held, bytes)
    }

    /// Writes replies. Those that may be long need [`Output::make_room`] before.
    pub(crate) fn encoder(&mut self, protocol: Protocol) -> Encoder<'_> {
        Encoder::new(&mut self.bytes, protocol)
    }

    /// The same, and what covers the buffer.
    pub(crate) fn parts(&mut self, protocol: Protocol) -> (Encoder<'_>, &mut Held) {
        (Encoder::new(&mut self.bytes, protocol), &mut self.held)
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    /// Adds replies that were written elsewhere.
    ///
    /// # Errors
    /// If the budget has no room for them.
    pub(crate) fn append(&mut self, other: Self) -> Result<(), Failure> {
        if self.bytes.is_empty() {
            *self = other;
            return Ok(());
        }
        if !self.make_room(other.bytes.len()) {
            return Err(Failure::BUSY);
        }
        self.bytes.extend_from_slice(&other.bytes);
        Ok(())
    }

    /// Everything was sent. Memory beyond [`BUFFER_BYTES`] is given back.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.shrink();
    }

    /// Gives back memory that is not needed.
    pub(crate) fn shrink(&mut self) {
        shrink(&mut self.bytes);
        // Shrinking always succeeds. Small replies may have been written without a reservation; if the
        // budget has no memory for them, the reservation is tried again next time.
        let _covered = self.held.cover(self.bytes.capacity());
    }
}

/// Gives memory of a buffer back if most of it is unused.
pub(crate) fn shrink(buffer: &mut Vec<u8>) {
    if buffer.capacity() > BUFFER_BYTES && buffer.len() < buffer.capacity() / 4 {
        buffer.shrink_to(BUFFER_BYTES);
    }
}

/// The memory of a connection in addition to its buffers.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) budget: MemoryBudget,
    /// Words of the command that is carried out.
    pub(crate) words: Held,
    /// Changes under way, and the rows that they answer with.
    pub(crate) changes: Held,
    /// Commands queued by MULTI.
    pub(crate) queue: Held,
    /// Keys that WATCH named.
    pub(crate) watched: Held,
    /// [`CONNECTION_BYTES`].
    _connection: Reservation,
}

impl Memory {
    /// Of a connection that has reserved [`CONNECTION_BYTES`].
    pub(crate) fn new(budget: &MemoryBudget, connection: Reservation) -> Self {
        Self {
            budget: budget.clone(),
            words: Held::new(budget, 0),
            changes: Held::new(budget, CHANGE_BYTES),
            queue: Held::new(budget, 0),
            watched: Held::new(budget, 0),
            _connection: connection,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_written_only_when_its_bytes_are_reserved() {
        let budget = MemoryBudget::new(100 << 10);
        let mut output = Output::new(&budget);
        assert!(output.make_room(BUFFER_BYTES - HEADER_BYTES));
        assert_eq!(budget.used(), 0, "the first bytes belong to the connection");
        output.encoder(Protocol::Resp2).bulk(&[b'x'; 1_000]);
        assert!(output.make_room(60 << 10) && budget.used() >= 61 << 10);
        let used = budget.used();
        assert!(!output.make_room(100 << 10));
        assert_eq!(budget.used(), used, "what does not fit changes nothing");
        assert!(output.bytes.capacity() <= used);
        output.clear();
        assert_eq!((budget.used(), output.bytes.capacity()), (0, BUFFER_BYTES));
    }

    #[test]
    fn appended_replies_keep_their_reservation() {
        let budget = MemoryBudget::new(100 << 10);
        let (mut near, mut far) = (Output::new(&budget), Output::new(&budget));
        assert!(far.make_room(40 << 10));
        far.encoder(Protocol::Resp2).bulk(&[b'x'; 40 << 10]);
        let used = budget.used();
        assert!(near.append(far).is_ok() && budget.used() == used && near.len() > 40 << 10);
        let mut more = Output::new(&budget);
        assert!(more.make_room(30 << 10));
        more.encoder(Protocol::Resp2).bulk(&[b'x'; 30 << 10]);
        assert!(near.append(more).is_err(), "both copies do not fit");
        drop(near);
        assert_eq!(budget.used(), 0);
    }
}
