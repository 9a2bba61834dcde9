//! Waiting until the group at a position is applied and visible to reads. A group wakes only those who wait for it or
//! an earlier one.

use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::Ordering;

use commitlog::Position;
use tokio::sync::oneshot;

use super::sync::{AtomicU64, Mutex, fence};

/// Position of the last visible group, and its waiters.
pub(crate) struct Positions {
    reached: AtomicU64,
    /// Lowest position that has a waiter. The writer takes the lock only when it has reached this position.
    lowest: AtomicU64,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// Waiters by position and a unique number. Dropping a sender wakes the waiter.
    by_position: BTreeMap<(Position, u64), oneshot::Sender<()>>,
    numbers: u64,
}

/// Guard that removes a waiter when it is dropped.
struct Waiter<'a> {
    positions: &'a Positions,
    key: (Position, u64),
}

impl Positions {
    /// Creates positions for a state in which the group at `reached` is applied.
    pub(crate) fn new(reached: Position) -> Self {
        let (reached, lowest) = (AtomicU64::new(reached.0), AtomicU64::new(u64::MAX));
        Self { reached, lowest, waiting: Mutex::default() }
    }

    /// Wakes the waiters for the group at `position` and for earlier groups. Called by the writer only, after reads see
    /// the group.
    pub(crate) fn reach(&self, position: Position) {
        self.reached.store(position.0, Ordering::Release);
        // Either this call sees the waiter, or the waiter sees the position, because both threads store before they
        // load.
        fence(Ordering::SeqCst);
        if self.lowest.load(Ordering::Relaxed) > position.0 {
            return;
        }
        let mut waiting = self.waiting.lock();
        let later = waiting.by_position.split_off(&(Position(position.0 + 1), 0));
        let woken = mem::replace(&mut waiting.by_position, later);
        self.set_lowest(&waiting);
        drop(waiting);
        drop(woken);
    }

    /// Waits until the group at `position` is applied.
    pub(crate) async fn reached(&self, position: Position) {
        let (held, woken) = oneshot::channel();
        let _waiter = self.add(position, held);
        fence(Ordering::SeqCst);
        if self.reached.load(Ordering::Acquire) < position.0 {
            // An error means that the sender was dropped because the position is reached.
            drop(woken.await);
        }
    }

    fn add(&self, position: Position, held: oneshot::Sender<()>) -> Waiter<'_> {
        let mut waiting = self.waiting.lock();
        waiting.numbers += 1;
        let key = (position, waiting.numbers);
        waiting.by_position.insert(key, held);
        self.set_lowest(&waiting);
        Waiter { positions: self, key }
    }

    fn set_lowest(&self, waiting: &Waiting) {
        let first = waiting.by_position.keys().next();
        self.lowest.store(first.map_or(u64::MAX, |(position, _)| position.0), Ordering::Relaxed);
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut waiting = self.positions.waiting.lock();
        if waiting.by_position.remove(&self.key).is_some() {
            self.positions.set_lowest(&waiting);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake, Waker};

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn is_ready(future: Pin<&mut impl Future<Output = ()>>, wakes: &Arc<Wakes>) -> bool {
        future.poll(&mut Context::from_waker(&Waker::from(Arc::clone(wakes)))).is_ready()
    }

    #[cfg(not(feature = "loom"))]
    #[test]
    fn a_group_wakes_those_who_wait_for_it_and_nobody_else() {
        let positions = Positions::new(Position(4));
        let wakes = [(); 4].map(|()| Arc::new(Wakes::default()));
        let waits = [3, 5, 6, 9].map(|at| Box::pin(positions.reached(Position(at))));
        let [mut past, mut next, mut later, mut last] = waits;
        assert!(is_ready(past.as_mut(), &wakes[0]));
        assert!(!is_ready(next.as_mut(), &wakes[1]) && !is_ready(later.as_mut(), &wakes[2]));
        assert!(!is_ready(last.as_mut(), &wakes[3]));
        let woken = || wakes.each_ref().map(|wakes| wakes.0.load(Ordering::Relaxed));
        positions.reach(Position(5));
        assert_eq!(woken(), [0, 1, 0, 0]);
        assert!(is_ready(next.as_mut(), &wakes[1]) && !is_ready(later.as_mut(), &wakes[2]));
        positions.reach(Position(8));
        assert_eq!(woken(), [0, 1, 1, 0]);
        // A dropped waiter leaves nothing.
        drop(last);
        assert!(positions.waiting.lock().by_position.is_empty());
        assert_eq!(positions.lowest.load(Ordering::Relaxed), u64::MAX);
        positions.reach(Position(9));
        assert_eq!(woken(), [0, 1, 1, 0]);
        assert!(is_ready(pin!(positions.reached(Position(9))), &wakes[3]));
    }

    #[cfg(feature = "loom")]
    #[test]
    fn whoever_begins_to_wait_while_a_position_is_reached_is_woken_in_all_races() {
        loom::model(|| {
            let positions = Arc::new(Positions::new(Position(1)));
            let writer = {
                let positions = Arc::clone(&positions);
                loom::thread::spawn(move || positions.reach(Position(2)))
            };
            let wakes = Arc::new(Wakes::default());
            let mut reached = pin!(positions.reached(Position(2)));
            let is_reached = is_ready(reached.as_mut(), &wakes);
            writer.join().unwrap();
            assert!(is_reached || wakes.0.load(Ordering::Relaxed) == 1);
        });
    }
}
