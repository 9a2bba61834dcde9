//! The thread that wakes the watchers of users. It wakes all of them, who then get `resync`, at most once per second.

use std::time::{Duration, Instant};

use feed::Facts;

use crate::shared::Shared;

/// How often the thread looks for effects if the writer does not wake it; and how long it waits between
/// wakings of all watchers, who would otherwise be woken ever again while there is too much to do, or commands fail.
const REST: Duration = Duration::from_secs(1);

/// Runs until the node stops.
pub(crate) fn run(shared: &Shared) {
    let mut woken_all = None::<Instant>;
    while !shared.stopped() {
        let has_more = shared.views.wake(Facts::new(&shared.store));
        if woken_all.is_none_or(|at| at.elapsed() >= REST) && shared.views.wake_all() {
            woken_all = Some(Instant::now());
        }
        if !has_more {
            std::thread::park_timeout(REST);
        }
    }
}
