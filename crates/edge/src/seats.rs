//! Open connections, and the choice of those to close when the limit is reached.
//!
//! A connection is a guest until it is authorized: by a valid key, by a user's token, or in open mode by any accepted
//! request. When the limit is reached, each new connection replaces the oldest guest. If there is no guest, it replaces
//! the connection that has been idle for the longest time. So clients without a key, however many, cannot block clients
//! with a key, and idle connections block no client.
//!
//! Some connections are reserved for health checks. While all others are in use, a new connection becomes a reserved
//! one. If it sends another request than a health check, it gets a regular permit, if one is free. A new reserved
//! connection replaces the oldest reserved one.
//!
//! **Invariant:** an authorized connection with a request in progress is not closed for another one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit};

/// All open connections.
pub(crate) struct Seats {
    state: Mutex<State>,
    /// Time from which the times in this structure are counted.
    start: Instant,
}

impl Default for Seats {
    fn default() -> Self {
        Self { state: Mutex::default(), start: Instant::now() }
    }
}

#[derive(Default)]
struct State {
    next: u64,
    /// Guests in order of age, without connections that are being closed.
    guests: BTreeMap<u64, Arc<Seat>>,
    admitted: BTreeMap<u64, Arc<Seat>>,
    reserved: BTreeMap<u64, Arc<Seat>>,
}

/// Open connection.
pub(crate) struct Seat {
    number: u64,
    seats: Arc<Seats>,
    admitted: AtomicBool,
    /// Whether the connection is reserved for health checks.
    reserved: AtomicBool,
    permit: Mutex<Option<OwnedSemaphorePermit>>,
    /// Number of requests in progress. A request is in progress from its first byte until its response is sent.
    busy: AtomicU32,
    /// End of the last request, in milliseconds.
    idle_since: AtomicU64,
    /// Number of received bytes of a request's head.
    head: AtomicUsize,
    closing: Notify,
}

/// Guard of a connection, for every protocol. It is dropped with the stream of the connection; then it removes the
/// connection from the list and returns its permit.
pub(crate) struct SeatGuard {
    pub(crate) seat: Arc<Seat>,
}

impl Seats {
    pub(crate) fn take(
        self: &Arc<Self>,
        permit: OwnedSemaphorePermit,
        is_reserved: bool,
    ) -> SeatGuard {
        let mut state = self.state.lock();
        let seat = Arc::new(Seat {
            number: state.next,
            seats: Arc::clone(self),
            admitted: AtomicBool::new(false),
            reserved: AtomicBool::new(is_reserved),
            permit: Mutex::new(Some(permit)),
            busy: AtomicU32::new(0),
            idle_since: AtomicU64::new(self.now_ms()),
            head: AtomicUsize::new(0),
            closing: Notify::new(),
        });
        state.next += 1;
        let list = if is_reserved { &mut state.reserved } else { &mut state.guests };
        list.insert(seat.number, Arc::clone(&seat));
        SeatGuard { seat }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Closes the oldest reserved connection.
    pub(crate) fn make_reserved_room(&self) {
        if let Some((_, oldest)) = self.state.lock().reserved.pop_first() {
            oldest.closing.notify_one();
        }
    }

    /// Closes the oldest guest; if there is none, closes the connection that has been idle for the longest time.
    /// Returns whether one was closed.
    pub(crate) fn make_room(&self) -> bool {
        let mut state = self.state.lock();
        let closed = state.guests.pop_first().or_else(|| {
            let idle = state.admitted.values().filter(|seat| seat.is_idle());
            let number = idle.min_by_key(|seat| seat.idle_since.load(Ordering::Relaxed))?.number;
            state.admitted.remove_entry(&number)
        });
        closed.inspect(|(_, seat)| seat.closing.notify_one()).is_some()
    }
}

impl Seat {
    pub(crate) fn is_admitted(&self) -> bool {
        self.admitted.load(Ordering::Relaxed)
    }

    pub(crate) fn is_reserved(&self) -> bool {
        self.reserved.load(Ordering::Relaxed)
    }

    /// Turns a reserved connection into a regular one.
    pub(crate) fn promote(&self, permit: OwnedSemaphorePermit) {
        *self.permit.lock() = Some(permit);
        self.reserved.store(false, Ordering::Relaxed);
        let mut state = self.seats.state.lock();
        // If it is not in the list, the connection is being closed anyway.
        if let Some(seat) = state.reserved.remove(&self.number) {
            state.guests.insert(self.number, seat);
        }
    }

    /// Completes when the connection must be closed so that another one gets its place.
    pub(crate) async fn closing(&self) {
        self.closing.notified().await;
    }

    /// Marks the start of a request. The request is in progress until the result is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        self.busy.fetch_add(1, Ordering::Relaxed);
        self.head.store(0, Ordering::Relaxed);
        Busy(Arc::clone(self))
    }

    /// Records that the connection has left HTTP, so its bytes no longer belong to heads.
    pub(crate) fn leave_http(&self) {
        self.busy.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts received bytes. Returns the size of the current head; `None` while a request is in progress, because the
    /// bytes then belong to its body.
    pub(crate) fn arrived(&self, bytes: usize) -> Option<usize> {
        if self.busy.load(Ordering::Relaxed) > 0 {
            return None;
        }
        Some(self.head.fetch_add(bytes, Ordering::Relaxed) + bytes)
    }

    fn is_idle(&self) -> bool {
        self.busy.load(Ordering::Relaxed) == 0
    }

    /// Marks the connection as authorized.
    pub(crate) fn admit(&self) {
        if !self.admitted.swap(true, Ordering::Relaxed) {
            let mut state = self.seats.state.lock();
            // If it is not in the list, the connection is being closed.
            if let Some(seat) = state.guests.remove(&self.number) {
                state.admitted.insert(self.number, seat);
            }
        }
    }
}

impl Drop for SeatGuard {
    fn drop(&mut self) {
        let mut state = self.seat.seats.state.lock();
        state.guests.remove(&self.seat.number);
        state.admitted.remove(&self.seat.number);
        state.reserved.remove(&self.seat.number);
        drop(state);
        drop(self.seat.permit.lock().take());
    }
}

/// Request in progress.
pub(crate) struct Busy(Arc<Seat>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.idle_since.store(self.0.seats.now_ms(), Ordering::Relaxed);
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use tokio::sync::Semaphore;

    use super::*;

    fn permit() -> OwnedSemaphorePermit {
        Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap()
    }

    fn is_closing(taken: &SeatGuard) -> bool {
        let closing = pin!(taken.seat.closing());
        closing.poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    #[test]
    fn the_oldest_guest_is_closed_first_and_then_idle_connections() {
        let seats = Arc::new(Seats::default());
        let all: Vec<SeatGuard> = (0..5).map(|_| seats.take(permit(), false)).collect();
        all[0].seat.admit();
        all[2].seat.admit();
        let under_way = all[2].seat.begin();
        for goes in [1, 3, 4] {
            seats.make_room();
            let closing: Vec<usize> = (0..5).filter(|at| is_closing(&all[*at])).collect();
            assert_eq!(closing, [goes]);
        }
        assert!(seats.make_room() && is_closing(&all[0]) && !is_closing(&all[2]));
        assert!(!seats.make_room(), "its request is in progress");
        drop(under_way);
        assert!(seats.make_room() && is_closing(&all[2]));
    }

    #[test]
    fn of_idle_connections_the_one_that_is_idle_for_the_longest_time_is_closed() {
        let seats = Arc::new(Seats::default());
        let all: Vec<SeatGuard> = (0..4).map(|_| seats.take(permit(), false)).collect();
        all.iter().for_each(|taken| taken.seat.admit());
        for (at, ended_ms) in [(2, 7_001), (0, 7_002), (3, 7_004), (1, 9_000)] {
            all[at].seat.idle_since.store(ended_ms, Ordering::Relaxed);
        }
        for goes in [2, 0, 3, 1] {
            assert!(seats.make_room());
            let closing: Vec<usize> = (0..4).filter(|at| is_closing(&all[*at])).collect();
            assert_eq!(closing, [goes]);
        }
        assert!(!seats.make_room());
    }

    #[test]
    fn the_oldest_reserved_connection_is_closed_unless_it_became_another() {
        let (seats, reserved) = (Arc::new(Seats::default()), Arc::new(Semaphore::new(3)));
        let take = |_| seats.take(Arc::clone(&reserved).try_acquire_owned().unwrap(), true);
        let all: Vec<SeatGuard> = (0..3).map(take).collect();
        assert!(!seats.make_room(), "authorized connections are no guests");
        all[0].seat.promote(permit());
        assert_eq!(reserved.available_permits(), 1);
        seats.make_reserved_room();
        assert!(is_closing(&all[1]) && !is_closing(&all[0]) && !is_closing(&all[2]));
        assert!(seats.make_room());
        assert!(is_closing(&all[0]), "it is a guest");
        drop(all);
        assert_eq!(reserved.available_permits(), 3);
    }

    #[test]
    fn dropped_connections_are_removed() {
        let seats = Arc::new(Seats::default());
        let [guest, admitted, reserved] =
            [false, false, true].map(|is_reserved| seats.take(permit(), is_reserved));
        admitted.seat.admit();
        drop((guest, admitted, reserved));
        let state = seats.state.lock();
        assert!(state.guests.is_empty() && state.admitted.is_empty() && state.reserved.is_empty());
    }
}
