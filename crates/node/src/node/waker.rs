//! Thread that wakes the watchers of users. At most once per second it wakes all of them, with `resync`.

use std::time::{Duration, Instant};

use feed::Facts;

use crate::shared::Shared;

/// Interval at which the thread checks for effects if the writer does not wake it. It is also the minimum time between
/// two wake-ups of all watchers, so that overload and failing commands do not cause more of them.
const INTERVAL: Duration = Duration::from_secs(1);

/// Runs until the node stops.
pub(crate) fn run(shared: &Shared) {
    let mut woken_all = None::<Instant>;
    while !shared.stopped() {
        let has_more = shared.views.wake(Facts::new(&shared.store));
        if woken_all.is_none_or(|at| at.elapsed() >= INTERVAL) && shared.views.wake_all() {
            woken_all = Some(Instant::now());
        }
        if !has_more {
            std::thread::park_timeout(INTERVAL);
        }
    }
}
