//! The thread that wakes the watchers of users. After it has woken all of them, who then get `resync`, it rests for a second.

use std::time::Duration;

use feed::Facts;

use crate::shared::Shared;
use crate::views::Woken;

/// How often the thread looks for effects if the writer does not wake it; and how long it rests after it has woken all
/// watchers, who would otherwise be woken ever again while there is too much to do, or commands fail.
const REST: Duration = Duration::from_secs(1);

/// Runs until the node stops.
pub(crate) fn run(shared: &Shared) {
    while !shared.stopped() {
        match shared.views.wake(Facts::new(&shared.store)) {
            Woken::Nobody => std::thread::park_timeout(REST),
            Woken::Some => {}
            Woken::All => std::thread::sleep(REST),
        }
    }
}
