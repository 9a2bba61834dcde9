//! Identifiers: dense numbers for people, time-ordered 63-bit numbers for posts, stories and stamps.

use serde::{Deserialize, Serialize};

/// A person: their place in the order of registration, from 0. Dense, so tables can be arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UserId(pub u32);

/// A post: the [`Stamp`] of the command that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PostId(pub u64);

/// A story: the [`Stamp`] of the command that told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StoryId(pub u64);

/// A labelled sample: the [`Stamp`] of the command that taught it, or the number of one that is built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SampleId(pub u64);

/// A set of samples as rows know it: the [`Stamp`] of the command that taught its first sample. A set
/// that was empty in between is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SampleSetId(pub u64);

/// A bucket: its place in the order of making, from 0; never reused. The first
/// [`NUMBERED_BUCKETS`](crate::limits::NUMBERED_BUCKETS) are always there and are named after their
/// numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BucketId(pub u32);

/// Where the keys of a bucket lie until it is emptied; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Space(pub u32);

/// When and as which a command was accepted: 41 bits of milliseconds since [`EPOCH_MS`], 10 bits of
/// node, 12 bits of sequence. Unique and never reused; fits a signed 64-bit number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Stamp(pub u64);

/// 2024-01-01T00:00:00Z in milliseconds since 1970. The 41 bits last until 2093.
pub const EPOCH_MS: u64 = 1_704_067_200_000;
const NODE_BITS: u32 = 10;
const SEQUENCE_BITS: u32 = 12;
const SEQUENCE_MASK: u64 = (1 << SEQUENCE_BITS) - 1;
const TIME_SHIFT: u32 = NODE_BITS + SEQUENCE_BITS;
/// Largest stamp: 63 bits.
pub const STAMP_MAX: Stamp = Stamp(i64::MAX as u64);

impl Stamp {
    /// Milliseconds since 1970 at which the command was stamped.
    #[must_use]
    pub const fn unix_ms(self) -> u64 {
        (self.0 >> TIME_SHIFT) + EPOCH_MS
    }

    /// The stamp that comes `count` stamps later in a run of the same node.
    #[must_use]
    pub const fn after(self, count: u64) -> Self {
        let sequence = (self.0 & SEQUENCE_MASK) + count;
        let milliseconds = sequence >> SEQUENCE_BITS << TIME_SHIFT;
        Self((self.0 & !SEQUENCE_MASK) + milliseconds + (sequence & SEQUENCE_MASK))
    }

    /// Whole days since 1970.
    #[must_use]
    pub const fn unix_day(self) -> u32 {
        (self.unix_ms() / 86_400_000) as u32
    }

    /// Whole seconds since 1970.
    #[must_use]
    pub const fn unix_second(self) -> u64 {
        self.unix_ms() / 1_000
    }
}

impl PostId {
    /// Milliseconds since 1970 at which the post was accepted.
    #[must_use]
    pub const fn unix_ms(self) -> u64 {
        Stamp(self.0).unix_ms()
    }
}

impl StoryId {
    /// Milliseconds since 1970 at which the story was told.
    #[must_use]
    pub const fn unix_ms(self) -> u64 {
        Stamp(self.0).unix_ms()
    }
}

impl SampleId {
    /// Below this, which no command is stamped with, are the ids of samples that are built in.
    pub const TAUGHT_MIN: u64 = 1 << TIME_SHIFT;

    /// Whether it is the id of a sample that every server has.
    #[must_use]
    pub const fn is_built_in(self) -> bool {
        self.0 < Self::TAUGHT_MIN
    }
}

impl From<PostId> for u64 {
    fn from(PostId(number): PostId) -> Self {
        number
    }
}

impl From<StoryId> for u64 {
    fn from(StoryId(number): StoryId) -> Self {
        number
    }
}

/// Gives out stamps that only ever rise, whatever the clock does.
///
/// When the clock stands still or steps back the sequence counts on, and runs over into the next
/// millisecond when it is used up: a stamp may then lie ahead of the clock, but never behind an
/// earlier stamp.
#[derive(Debug, Clone)]
pub struct StampClock {
    node: u64,
    last: Stamp,
}

impl StampClock {
    /// A clock of node `node` (0 to 1023) that continues behind `last`, the highest stamp in use.
    #[must_use]
    pub fn new(node: u16, last: Stamp) -> Self {
        assert!(u32::from(node) < 1 << NODE_BITS, "a node number has 10 bits");
        Self { node: u64::from(node), last }
    }

    /// The next stamp, `now_ms` being the clock's milliseconds since 1970.
    pub fn next(&mut self, now_ms: u64) -> Stamp {
        let last_time = self.last.0 >> TIME_SHIFT;
        let last_sequence = self.last.0 & SEQUENCE_MASK;
        let now = now_ms.saturating_sub(EPOCH_MS);
        let stamp =
            |time, sequence| Stamp(time << TIME_SHIFT | self.node << SEQUENCE_BITS | sequence);
        // The last stamp may be another node's: then its sequence says nothing about ours.
        let following = stamp(last_time, last_sequence + 1);
        let next = if now > last_time {
            stamp(now, 0)
        } else if last_sequence + 1 < 1 << SEQUENCE_BITS && following > self.last {
            following
        } else {
            stamp(last_time + 1, 0)
        };
        assert!(next > self.last && next <= STAMP_MAX, "stamps rise and fit 63 bits");
        self.last = next;
        next
    }

    /// The first of `count` stamps, all of them taken; [`Stamp::after`] tells the others.
    pub fn next_run(&mut self, now_ms: u64, count: usize) -> Stamp {
        let first = self.next(now_ms);
        self.last = first.after((count as u64).saturating_sub(1));
        assert!(self.last <= STAMP_MAX, "stamps fit 63 bits");
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_rise_while_the_clock_steps_back_stands_still_and_leaps() {
        let mut clock = StampClock::new(3, Stamp(0));
        let mut last = Stamp(0);
        for now in [5, 5, 4, 0, 9, 9, 1_000_000, 2].map(|ms| EPOCH_MS + ms) {
            for _ in 0..5_000 {
                let next = clock.next(now);
                assert!(next > last);
                last = next;
            }
        }
    }

    #[test]
    fn runs_of_stamps_rise_and_do_not_overlap() {
        let mut clock = StampClock::new(3, Stamp(0));
        let mut last = Stamp(0);
        for count in [1, 2, 4_095, 4_096, 1, 20_000, 1, 1, 4_097, 7].into_iter().cycle().take(100) {
            let first = clock.next_run(EPOCH_MS + 5, count);
            for stamp in (0..count as u64).map(|index| first.after(index)) {
                assert!(stamp > last);
                assert_eq!(stamp.0 >> SEQUENCE_BITS & 1_023, 3, "of the same node");
                last = stamp;
            }
        }
    }

    #[test]
    fn a_stamp_tells_the_time_of_the_clock() {
        let now = EPOCH_MS + 123_456_789;
        assert_eq!(StampClock::new(0, Stamp(0)).next(now).unix_ms(), now);
    }

    #[test]
    fn a_new_clock_continues_behind_the_last_stamp() {
        let last = StampClock::new(1023, Stamp(0)).next(EPOCH_MS + 50);
        assert!(StampClock::new(0, last).next(EPOCH_MS + 10) > last);
    }
}
