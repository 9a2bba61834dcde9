//! The deliverer: brings the shards of the views up to date, so that the stream of effects stays short
//! though nobody reads.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::shared::Shared;

/// How long the deliverer rests while there is something to deliver, and while there is nothing:
/// so long a post may wait for timelines that nobody reads or watches.
const PAUSE: Duration = Duration::from_millis(2);
const REST: Duration = Duration::from_millis(50);

/// Works until the node stops: at once when somebody watches, else now and then.
pub(crate) fn run(shared: &Shared) {
    let mut pause = REST;
    while !shared.stopped.load(Ordering::Acquire) {
        if !shared.delivery_due.swap(false, Ordering::AcqRel) {
            std::thread::park_timeout(pause);
        }
        pause = if shared.views.deliver() { PAUSE } else { REST };
    }
}
