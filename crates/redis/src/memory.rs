//! Memory of a connection. It is reserved in the budget of all Redis clients.
//!
//! **Invariants:** A buffer that a client can fill grows only after its bytes were reserved. The memory for small
//! commands and replies is reserved when a connection is accepted, so they never wait for memory of other clients.

use budget::{MemoryBudget, Reservation};
use resp::{Encoder, Protocol};

use super::failure::Failure;

/// Memory that every connection reserves when it is accepted, in bytes: its state, the first bytes of its buffers, and
/// the names that its client chose. 16,384 connections reserve 128 MiB.
pub(crate) const CONNECTION_BYTES: usize = 8 << 10;
/// Size of the input buffer, and of the output buffer, within [`CONNECTION_BYTES`].
pub(crate) const BUFFER_BYTES: usize = 2 << 10;
/// Memory of the parser between commands within [`CONNECTION_BYTES`].
pub(crate) const PARSER_BYTES: usize = 1 << 10;
/// Memory of pending changes within [`CONNECTION_BYTES`].
pub(crate) const CHANGE_BYTES: usize = 1_536;
/// Unit of reservations, in bytes. It is large, so that few commands change the shared counter.
const STEP_BYTES: usize = 16 << 10;
/// Maximum number of bytes by which a buffer grows beyond the current need.
const AHEAD_BYTES_MAX: usize = 256 << 10;
/// Size that a reply adds to its text, in bytes.
pub(crate) const HEADER_BYTES: usize = 64;

const _: () = assert!(2 * BUFFER_BYTES + PARSER_BYTES + CHANGE_BYTES < CONNECTION_BYTES);

/// Splits the memory of all Redis clients into two budgets: at most half for connections, and the rest for their
/// buffers. Clients that fill the second budget thus cannot prevent others from connecting.
pub(crate) fn split(bytes: usize, connections_max: u32) -> (MemoryBudget, MemoryBudget) {
    let connections = CONNECTION_BYTES.saturating_mul(connections_max as usize).min(bytes / 2);
    let connections = connections.max(CONNECTION_BYTES);
    (MemoryBudget::new(connections), MemoryBudget::new(bytes.saturating_sub(connections)))
}

/// Reservation of one buffer.
#[derive(Debug)]
pub(crate) struct Held {
    reserved: Reservation,
    included: usize,
}

impl Held {
    /// Creates an empty reservation. The first `included` bytes need no reservation, because they are part of
    /// [`CONNECTION_BYTES`].
    pub(crate) fn new(budget: &MemoryBudget, included: usize) -> Self {
        Self { reserved: budget.empty(), included }
    }

    /// Adjusts the reservation to a buffer of `bytes` bytes. Returns false if the budget has no room, and then changes
    /// nothing.
    pub(crate) fn cover(&mut self, bytes: usize) -> bool {
        let wanted = if bytes <= self.included {
            0
        } else {
            bytes.checked_next_multiple_of(STEP_BYTES).unwrap_or(usize::MAX)
        };
        wanted == self.reserved.bytes() || self.reserved.resize(wanted)
    }

    /// Number of reserved bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.reserved.bytes()
    }
}

/// Makes room for a reply of `bytes` bytes at the end of `out`. `held` is the reservation of `out`. Returns false if
/// the budget has no room, and then changes nothing.
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

/// Unsent replies.
#[derive(Debug)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    held: Held,
}

impl Output {
    /// Creates the empty output of a new connection, whose buffer takes its memory from `budget`.
    pub(crate) fn new(budget: &MemoryBudget) -> Self {
        Self { bytes: Vec::new(), held: Held::new(budget, BUFFER_BYTES) }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Calls [`make_room()`].
    pub(crate) fn make_room(&mut self, bytes: usize) -> bool {
        make_room(&mut self.bytes, &mut self.held, bytes)
    }

    /// Returns a writer of replies. For a reply that may be long, call [`Output::make_room`] first.
    pub(crate) fn encoder(&mut self, protocol: Protocol) -> Encoder<'_> {
        Encoder::new(&mut self.bytes, protocol)
    }

    /// Returns a writer of replies, and the reservation of the buffer.
    pub(crate) fn parts(&mut self, protocol: Protocol) -> (Encoder<'_>, &mut Held) {
        (Encoder::new(&mut self.bytes, protocol), &mut self.held)
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    /// Appends replies that another thread has written.
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

    /// Drops the replies, because all were sent, and frees memory beyond [`BUFFER_BYTES`].
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.shrink();
    }

    /// Frees unused memory.
    pub(crate) fn shrink(&mut self) {
        shrink(&mut self.bytes);
        // Ignore the result. A smaller buffer is always covered. Only small replies may have been written without a
        // reservation; if the budget has no room for them, the next call tries again.
        let _covered = self.held.cover(self.bytes.capacity());
    }
}

/// Frees memory of a buffer if most of it is unused.
pub(crate) fn shrink(buffer: &mut Vec<u8>) {
    if buffer.capacity() > BUFFER_BYTES && buffer.len() < buffer.capacity() / 4 {
        buffer.shrink_to(BUFFER_BYTES);
    }
}

/// Memory of a connection in addition to its buffers.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) budget: MemoryBudget,
    /// Words of the command being executed.
    pub(crate) words: Held,
    /// Pending changes, and the rows in their answers.
    pub(crate) changes: Held,
    /// Commands queued by MULTI.
    pub(crate) queue: Held,
    /// Keys watched with WATCH.
    pub(crate) watched: Held,
    /// Reservation of [`CONNECTION_BYTES`].
    _connection: Reservation,
}

impl Memory {
    /// Creates the memory of a connection that has reserved [`CONNECTION_BYTES`].
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
        assert_eq!(budget.used(), used, "a failed growth has no effect");
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
        assert!(near.append(more).is_err(), "the two copies do not fit");
        drop(near);
        assert_eq!(budget.used(), 0);
    }
}
