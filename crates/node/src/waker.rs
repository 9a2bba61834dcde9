//! The thread that wakes the watchers of many users: followers of an author, and friends of an author of stories.

use std::time::Duration;

use crate::shared::Shared;

/// How often the thread looks for effects if the writer does not wake it.
const REST: Duration = Duration::from_secs(1);

/// Runs until the node stops.
pub(crate) fn run(shared: &Shared) {
    while !shared.stopped() {
        if !shared.views.wake() {
            std::thread::park_timeout(REST);
        }
    }
}
