//! Sweeper: thread that does scheduled work ([`crate::due`]), and requests in time that texts of removed stories are
//! erased from every file.
//!
//! Replies do not depend on the sweeper: they omit expired stories even if these are not removed yet. A node without
//! due work writes nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use store::unless_unreadable;

use crate::directory::last_run::LastRun;
use crate::due::{self, DueLoop, DueStep, PACE, Received};
use crate::shared::{OwnReply, Shared};

/// Pause after damage on the disk was found.
const PACE_DAMAGED: Duration = Duration::from_secs(60);
/// Pause after the rules have failed at a command.
const PACE_FAILED: Duration = Duration::from_secs(5);
/// Maximum time after the start until data that an earlier process removed is erased. Without stories there is nothing
/// to erase.
const FIRST_ERASURE: Duration = Duration::from_secs(60);

/// State of the sweeper's thread.
pub(crate) struct Sweeper {
    shared: Arc<Shared>,
    erase_within: Duration,
    /// Time at which removed data must be erased, if there is any, by [`crate::Clock`]'s elapsed time.
    erase_at: Option<Duration>,
    due: DueLoop,
}

impl Sweeper {
    /// Creates a sweeper. An erasure begins after half of `erase_within`, so that the other half is left for the
    /// erasure's work.
    pub(crate) fn new(shared: Arc<Shared>, erase_within: Duration) -> Self {
        let first = || shared.time.elapsed() + FIRST_ERASURE.min(erase_within / 2);
        let erase_at = shared.store.had_ephemeral().then(first);
        Self { shared, erase_within, erase_at, due: DueLoop::default() }
    }

    /// Runs until the node stops. Records in `last_run` that it runs.
    pub(crate) fn run(mut self, mut last_run: LastRun) {
        while !self.shared.stopped() {
            last_run.note_when_due(&self.shared.time);
            self.shared.space.check();
            let undone = self.shared.store.undone();
            match unless_unreadable(|| self.step(due::wait)) {
                Some(_) if undone != self.shared.store.undone() => {
                    std::thread::park_timeout(PACE_FAILED);
                }
                Some(DueStep::Sent(_) | DueStep::Waits) => {}
                Some(DueStep::Idle) => std::thread::park_timeout(PACE),
                None => std::thread::park_timeout(PACE_DAMAGED),
            }
        }
        last_run.note(&self.shared.time);
    }

    /// Takes a step of scheduled work, and requests an erasure in time.
    pub(crate) fn step(&mut self, receive: impl Fn(OwnReply) -> Received) -> DueStep {
        let step = self.due.step(&self.shared, receive);
        let now = self.shared.time.elapsed();
        if self.shared.has_removed_stories.swap(false, Ordering::AcqRel) {
            self.erase_at.get_or_insert(now + self.erase_within / 2);
        }
        if self.erase_at.is_some_and(|at| at <= now) {
            self.erase_at = None;
            self.shared.start_erasure();
        }
        step
    }
}
