//! The sweeper: removes the rows of dead stories within seconds, and has their texts erased from every file
//! in time. It also removes what is left of deleted users: see [`crate::deleted_users`].
//!
//! Reads do not depend on it: a story is in no reply from its expiry on, swept or not. It checks the
//! seconds of expiry that have passed and submits [`Command::SweepStories`] only if it finds something, so
//! a node without dead stories writes nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use feed::limits::{STORY_ROWS, SWEEP_ROWS_MAX, SWEEP_SECONDS_MAX};
use feed::{Command, Done, Facts, Request};
use rows::{Rows as _, Span};
use smallvec::smallvec;

use crate::deleted_users::Progress;
use crate::shared::Shared;
use crate::submission::Submission;

/// Pause between two sweeps.
const PACE: Duration = Duration::from_millis(250);
/// What an earlier process swept, or deleted and did not sweep, is erased this long after the start
/// at the latest.
const FIRST_ERASURE: Duration = Duration::from_secs(60);

/// State of the sweeper's thread.
pub(crate) struct Sweeper {
    shared: Arc<Shared>,
    erase_within: Duration,
    /// When something removed is to be erased, if anything is.
    erase_at: Option<Instant>,
    /// What was last removed of a deleted user, if anything is left.
    erasing: Option<Progress>,
}

impl Sweeper {
    /// Erasure begins after half of `erase_within`, which leaves the other half for its work.
    pub(crate) fn new(shared: Arc<Shared>, erase_within: Duration) -> Self {
        let had_stories = shared.store.totals().sweep_second > 0;
        let erase_at = had_stories.then(|| Instant::now() + FIRST_ERASURE.min(erase_within / 2));
        Self { shared, erase_within, erase_at, erasing: None }
    }

    /// Runs until the node stops.
    pub(crate) fn run(mut self) {
        while !self.shared.stopped.load(Ordering::Acquire) {
            if self.shared.sweep() {
                self.erase_at.get_or_insert_with(|| Instant::now() + self.erase_within / 2);
            }
            if self.erase_at.is_some_and(|at| at <= Instant::now()) {
                self.erase_at = None;
                self.shared.erasure_due.store(true, Ordering::Release);
            }
            if !self.shared.erase_users(&mut self.erasing) {
                std::thread::park_timeout(PACE);
            }
        }
    }
}

impl Shared {
    /// Sweeps everything that is due; returns whether there was anything. Blocks.
    pub(crate) fn sweep(&self) -> bool {
        let now = self.time.now_ms() / 1_000;
        // Set the mark before reading the facts: a deletion that is applied meanwhile sets the mark back.
        let from = self.sweep_from.swap(now, Ordering::AcqRel).min(now);
        if !self.has_dead_stories(from, now) {
            return false;
        }
        let mut swept = 0;
        loop {
            self.read_ahead(now);
            let Some(Done::Swept { stories, more }) = self.submit_now(Command::SweepStories) else {
                // The inbox is full, or the node closes: the next sweep finds the rest.
                self.sweep_from.fetch_min(from, Ordering::AcqRel);
                return swept > 0;
            };
            swept += stories;
            if !more {
                return swept > 0;
            }
        }
    }

    /// Reads what the next sweep will read, so that the writer finds it in the cache of the store: an old
    /// story is only on disk, and all changes would wait while the writer reads it.
    fn read_ahead(&self, now: u64) {
        let facts = Facts::new(&self.store);
        let totals = facts.totals();
        let (mut low, mut left) = (totals.swept_up_to, (SWEEP_ROWS_MAX / STORY_ROWS) as usize);
        for second in (totals.sweep_second..now).take(SWEEP_SECONDS_MAX as usize) {
            let dead = facts.expiring(second, Span { low, limit: left, ..Span::ALL });
            for (story, _) in &dead {
                let views = facts.story(*story).map_or(0, |story| story.looks);
                let limit = views.min(SWEEP_ROWS_MAX) as usize;
                drop(facts.story_views(*story, Span { limit, ..Span::ALL }));
            }
            left -= dead.len();
            if left == 0 {
                return;
            }
            low = 0;
        }
    }

    /// Submits a command of the node itself and returns its result; `None` if the inbox does not accept it.
    pub(crate) fn submit_now(&self, command: Command) -> Option<Done> {
        let (submission, reply) = Submission::of_requests(smallvec![Request::from(command)]);
        self.put(submission).ok()?;
        reply.blocking_recv().ok()?.first()?.outcome.ok()
    }

    fn has_dead_stories(&self, from: u64, now: u64) -> bool {
        let facts = Facts::new(&self.store);
        let one = Span { limit: 1, ..Span::ALL };
        facts.totals().stories > 0
            && (from.max(facts.totals().sweep_second)..now)
                .any(|second| !facts.expiring(second, one).is_empty())
    }
}
