//! Timing of live streams: when they read new events, and when they send keep-alive messages.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::ops::Range;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Interval of keep-alive messages.
const KEEP_ALIVE: Range<Duration> = Duration::from_secs(10)..Duration::from_secs(15);
/// Average time between two reads of a stream. One read returns all events that arrived since the last one.
pub const STREAM_PACE: Duration = Duration::from_millis(50);
/// Maximum number of reads without a pause between them, after a longer pause.
const READS_AT_ONCE: u32 = 4;

/// Next action of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// Read new events.
    Read,
    /// Send a keep-alive message.
    KeepAlive,
}

/// Schedule of the reads and keep-alive messages of a stream. On average, a stream reads every [`STREAM_PACE`]; after a
/// longer pause, it reads immediately.
#[derive(Debug)]
pub struct Pulse {
    /// Whether there may be new events to read.
    is_due: bool,
    keep_alive: Instant,
    /// Earliest time of the next read.
    from: Instant,
    /// Time at which the reads so far would have ended if each took [`STREAM_PACE`].
    over: Instant,
    /// Number of consecutive early reads: reads before the post that woke the stream was visible.
    early: u32,
}

impl Pulse {
    /// Creates the schedule of a stream that has not read anything yet.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        let keep_alive = now + random_within(&KEEP_ALIVE);
        Self { is_due: true, keep_alive, from: now, over: now, early: 0 }
    }

    /// Waits for the next action. `changed` completes when there may be new events. Dropping the future loses nothing.
    pub async fn next(&mut self, changed: impl Future<Output = ()>) -> Beat {
        let Self { is_due, keep_alive, .. } = self;
        let read = async {
            if !*is_due {
                changed.await;
                *is_due = true;
            }
        };
        tokio::select! {
            () = read => return Beat::Read,
            () = sleep_until(*keep_alive) => {}
        }
        self.keep_alive = Instant::now() + random_within(&KEEP_ALIVE);
        // Read after every keep-alive message. Reading keeps the timeline in memory, so that deletions and edits wake
        // the stream.
        self.wake();
        Beat::KeepAlive
    }

    /// Records that there may be new events to read.
    pub fn wake(&mut self) {
        self.is_due = true;
    }

    /// Records that the stream has read all events. If `may_be_more` is set, another read is due.
    pub fn caught_up(&mut self, may_be_more: bool) {
        self.is_due = may_be_more;
    }

    /// Waits until the next read is allowed.
    pub async fn turn(&self) {
        sleep_until(self.from).await;
    }

    /// Records a read. The read was early if the post that woke the stream was not visible yet.
    pub fn took_turn(&mut self, now: Instant, was_early: bool) {
        self.early = if was_early { self.early.saturating_add(1) } else { 0 };
        self.over = self.over.max(now) + STREAM_PACE;
        let pause = match self.early {
            0 => Duration::ZERO,
            early => STREAM_PACE.min(Duration::from_millis(1 << early.min(6))),
        };
        self.from = (now + pause).max(self.over - STREAM_PACE * READS_AT_ONCE);
    }
}

/// Returns a random time within `range`, so that streams that wait at the same time do not continue at the same time.
#[must_use]
pub fn random_within(range: &Range<Duration>) -> Duration {
    let random = RandomState::new().build_hasher().finish() as u32;
    let width = range.end.saturating_sub(range.start);
    range.start + width.mul_f64(f64::from(random) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::future::{pending, ready};

    use super::*;

    #[test]
    fn a_stream_reads_at_once_and_in_the_long_run_at_the_pace() {
        let start = Instant::now();
        let (mut pulse, mut now) = (Pulse::new(start), start);
        let mut waits = Vec::new();
        for _ in 0..8 {
            pulse.took_turn(now, false);
            waits.push((pulse.from - now).as_millis());
            now = pulse.from;
        }
        assert_eq!(waits, [0, 0, 0, 0, 50, 50, 50, 50]);
        now += Duration::from_secs(9);
        pulse.took_turn(now, false);
        assert!(pulse.from == now, "after a pause");
    }

    #[test]
    fn who_reads_too_early_reads_again_soon_and_then_less_often() {
        let (mut pulse, mut now) = (Pulse::new(Instant::now()), Instant::now());
        let mut waits = Vec::new();
        for _ in 0..6 {
            pulse.took_turn(now, true);
            waits.push((pulse.from - now).as_millis());
            now = pulse.from;
        }
        assert_eq!(waits[..3], [2, 4, 8]);
        assert!(waits[3..].iter().all(|wait| *wait <= 50), "{waits:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_without_news_sends_keep_alive_messages_and_reads_after_each() {
        let mut pulse = Pulse::new(Instant::now());
        for _ in 0..3 {
            assert_eq!(pulse.next(pending()).await, Beat::Read);
            pulse.caught_up(false);
            let before = Instant::now();
            assert_eq!(pulse.next(pending()).await, Beat::KeepAlive);
            assert!((KEEP_ALIVE.start..=KEEP_ALIVE.end).contains(&before.elapsed()));
        }
        pulse.caught_up(false);
        assert_eq!(pulse.next(ready(())).await, Beat::Read);
        assert_eq!(pulse.next(pending()).await, Beat::Read, "nothing was read yet");
    }

    #[test]
    fn random_times_lie_within_the_range_and_differ() {
        let range = Duration::from_millis(500)..Duration::from_millis(1_500);
        let times: BTreeSet<_> = (0..100).map(|_| random_within(&range)).collect();
        assert!(times.len() > 90);
        assert!(times.iter().all(|time| *time >= range.start && *time <= range.end));
    }
}
