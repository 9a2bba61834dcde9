//! The sweeper: removes the rows of dead stories within seconds, and has their texts erased from every file
//! in time. It also ends mutes whose time is over, ends polls and publishes scheduled posts ([`crate::due`]), and removes pictures
//! that are not attached and what is left of deleted users: see [`crate::deleted_users`].
//!
//! Reads do not depend on it: a story is in no reply from its expiry on, swept or not. It checks the
//! seconds of expiry that have passed and submits [`Command::SweepStories`] only if it finds something, so
//! a node without dead stories writes nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use feed::limits::{MUTES_ENDED_MAX, STORY_ROWS, SWEEP_ROWS_MAX, SWEEP_SECONDS_MAX};
use feed::{Command, Done, Facts, Stamp};
use rows::{Rows as _, Span};
use store::unless_unreadable;

use crate::deleted_users::Progress;
use crate::due::DueFrom;
use crate::last_run::LastRun;
use crate::shared::{OwnReply, Replies, Shared};

/// Pause between two sweeps.
const PACE: Duration = Duration::from_millis(250);
/// The same after it has met damage on the disk.
const PACE_DAMAGED: Duration = Duration::from_secs(60);
/// The same after the rules have failed at a command: what fails is tried again at the next sweep.
const PACE_FAILED: Duration = Duration::from_secs(5);
/// What an earlier process swept, or deleted and did not sweep, is erased this long after the start
/// at the latest.
const FIRST_ERASURE: Duration = Duration::from_secs(60);

/// State of the sweeper's thread.
pub(crate) struct Sweeper {
    shared: Arc<Shared>,
    erase_within: Duration,
    /// When something removed is to be erased, if anything is, by [`crate::Clock`]'s elapsed time.
    erase_at: Option<Duration>,
    /// The last removal of rows of a deleted user, if any are left.
    erasing: Progress,
    /// No mute ends before this time, in milliseconds since 1970.
    mutes_from_ms: u64,
    due_from: DueFrom,
    /// The store's number of changes that were taken back, before the last work.
    undone: u64,
}

impl Sweeper {
    /// Erasure begins after half of `erase_within`, which leaves the other half for its work.
    pub(crate) fn new(shared: Arc<Shared>, erase_within: Duration) -> Self {
        let had_stories = shared.store.totals().sweep_second > 0;
        let erase_at =
            had_stories.then(|| shared.time.elapsed() + FIRST_ERASURE.min(erase_within / 2));
        Self {
            shared,
            erase_within,
            erase_at,
            erasing: Progress::default(),
            mutes_from_ms: 0,
            due_from: DueFrom::default(),
            undone: 0,
        }
    }

    /// Runs until the node stops. Notes in `last_run` that it runs.
    pub(crate) fn run(mut self, mut last_run: LastRun) {
        while !self.shared.stopped() {
            last_run.note_when_due(&self.shared.time);
            self.shared.space.check();
            match unless_unreadable(|| self.work()) {
                Some(_) if self.undone != self.shared.store.undone() => {
                    std::thread::park_timeout(PACE_FAILED);
                }
                Some(true) => {}
                Some(false) => std::thread::park_timeout(PACE),
                None => std::thread::park_timeout(PACE_DAMAGED),
            }
        }
        last_run.note(&self.shared.time);
    }

    /// Sweeps stories, and removes something of a deleted user; returns whether there may be more of that.
    fn work(&mut self) -> bool {
        let undone = self.shared.store.undone();
        if undone != std::mem::replace(&mut self.undone, undone) {
            // Rows are back that were missing when the last reads passed them.
            self.shared.sweep_from.store(0, Ordering::Release);
            self.mutes_from_ms = 0;
            self.due_from.begin_again();
            self.erasing.begin_again();
        }
        let swept = self.shared.sweep();
        self.after_sweep(swept);
        self.shared.end_mutes(&mut self.mutes_from_ms);
        self.shared.expire_media();
        let more = self.shared.do_due(&mut self.due_from);
        self.shared.erase_users(&mut self.erasing) || more
    }

    /// Has what was removed erased in time. `swept`: whether a sweep has just removed something.
    pub(crate) fn after_sweep(&mut self, swept: bool) {
        let now = self.shared.time.elapsed();
        if swept {
            self.erase_at.get_or_insert(now + self.erase_within / 2);
        }
        if self.erase_at.is_some_and(|at| at <= now) {
            self.erase_at = None;
            self.shared.start_erasure();
        }
    }
}

/// The seconds since 1970 that a sweep looks at: nothing was left of those before `from`, and those from
/// `now` on have not passed.
#[derive(Clone, Copy)]
pub(crate) struct SweptSeconds {
    from: u64,
    now: u64,
}

impl Shared {
    /// Has the writer erase what was removed.
    pub(crate) fn start_erasure(&self) {
        self.erasure_due.store(true, Ordering::Release);
        self.inbox.wake();
    }

    /// Sweeps everything that is due; returns whether there was anything. Blocks.
    pub(crate) fn sweep(&self) -> bool {
        let Some(seconds) = self.sweep_due() else { return false };
        let mut swept = 0;
        loop {
            let done = self.submit_sweep(seconds).and_then(|reply| reply.blocking_recv().ok());
            let Some((stories, more)) = self.swept(seconds, done.as_ref()) else {
                return swept > 0;
            };
            swept += stories;
            if !more {
                return swept > 0;
            }
        }
    }

    /// Whether a sweep is due.
    pub(crate) fn sweep_due(&self) -> Option<SweptSeconds> {
        let now = self.sweep_ms() / 1_000;
        // Set the mark before reading the facts: a deletion that is applied meanwhile sets the mark back.
        let from = self.sweep_from.swap(now, Ordering::AcqRel).min(now);
        self.has_dead_stories(from, now).then_some(SweptSeconds { from, now })
    }

    /// Submits one sweep; `None` if the inbox does not accept it.
    pub(crate) fn submit_sweep(&self, seconds: SweptSeconds) -> Option<OwnReply> {
        self.read_ahead(seconds.now);
        self.submit_own(Command::SweepStories)
    }

    /// Takes the reply to one sweep, if there is one: the number of stories removed, and whether there are
    /// more. `None` if the inbox was full, or the node closes: the next sweep finds the rest.
    pub(crate) fn swept(
        &self,
        seconds: SweptSeconds,
        done: Option<&Replies>,
    ) -> Option<(u32, bool)> {
        let outcome = done.and_then(|replies| replies.first()?.outcome.ok());
        if let Some(Done::Swept { stories, more }) = outcome {
            return Some((stories, more));
        }
        self.sweep_from.fetch_min(seconds.from, Ordering::AcqRel);
        None
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
                let views = facts.story(*story).map_or(0, |story| story.views);
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

    /// Ends mutes until none is left whose time is over. `from_ms`: no mute ends before. Blocks.
    pub(crate) fn end_mutes(&self, from_ms: &mut u64) {
        while let Some(reply) = self.submit_mute_ends(from_ms) {
            let ended =
                reply.blocking_recv().ok().and_then(|replies| replies.first()?.outcome.ok());
            // If none: the time in the log is not that far, or the node is closing.
            if !matches!(ended, Some(Done::MutesEnded { mutes: 1.. })) {
                return;
            }
        }
    }

    /// Submits the end of some mutes; `None` if none is due, or the inbox does not accept it.
    pub(crate) fn submit_mute_ends(&self, from_ms: &mut u64) -> Option<OwnReply> {
        let facts = Facts::new(&self.store);
        let totals = facts.totals();
        if totals.mutes == 0 {
            return None;
        }
        let now_ms = self.sweep_ms();
        let ends = facts.first_mute_ends(*from_ms, MUTES_ENDED_MAX);
        let (first_ms, ..) = *ends.first().filter(|(ends_ms, ..)| *ends_ms <= now_ms)?;
        // A mute that is made later ends after the last stamp.
        *from_ms = first_ms.min(totals.last_stamp.map_or(0, Stamp::unix_ms));
        let due = ends.into_iter().filter(|(ends_ms, ..)| *ends_ms <= now_ms);
        let mutes = due.map(|(_, user, other)| (user, other)).collect();
        self.submit_own(Command::EndMutes { mutes })
    }

    fn has_dead_stories(&self, from: u64, now: u64) -> bool {
        let facts = Facts::new(&self.store);
        let one = Span { limit: 1, ..Span::ALL };
        facts.totals().stories > 0
            && (from.max(facts.totals().sweep_second)..now)
                .any(|second| !facts.expiring(second, one).is_empty())
    }
}
