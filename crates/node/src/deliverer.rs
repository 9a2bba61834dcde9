//! The deliverer: brings the shards of the views up to date, so that the stream of effects stays short even
//! if no reader does it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::shared::Shared;

/// How long the deliverer sleeps while there is something to deliver, and while there is nothing. A post
/// may wait this long before it reaches timelines that no client reads or watches.
const PAUSE: Duration = Duration::from_millis(2);
const REST: Duration = Duration::from_millis(50);

/// Runs until the node stops. Delivers at once when there are watchers, else after each pause.
pub(crate) fn run(shared: &Shared) {
    let mut pause = REST;
    while !shared.stopped() {
        if !shared.delivery_due.swap(false, Ordering::AcqRel) {
            std::thread::park_timeout(pause);
        }
        pause = if shared.views.deliver() { PAUSE } else { REST };
    }
}
