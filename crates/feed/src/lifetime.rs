//! Durations of stories and mutes. A value is within the limits by construction.

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::refusal::Refusal;

/// Lifetime of a story: one second to seven days, stored in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lifetime(u64);

impl Lifetime {
    /// Checks a number of seconds.
    ///
    /// # Errors
    /// [`Refusal::BadLifetime`] if it is not 1 to 604,800.
    pub fn from_secs(secs: u64) -> Result<Self, Refusal> {
        if (limits::STORY_SECS_MIN..=limits::STORY_SECS_MAX).contains(&secs) {
            Ok(Self(secs * 1_000))
        } else {
            Err(Refusal::BadLifetime)
        }
    }

    /// Lifetime in milliseconds.
    #[must_use]
    pub const fn ms(self) -> u64 {
        self.0
    }
}

/// Duration of a mute that expires: one second to ten years, stored in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MuteTime(u64);

impl MuteTime {
    /// Checks a number of seconds.
    ///
    /// # Errors
    /// [`Refusal::BadMuteTime`] if it is not 1 to 315,360,000 (10 years).
    pub fn from_secs(secs: u64) -> Result<Self, Refusal> {
        if (1..=limits::MUTE_SECS_MAX).contains(&secs) {
            Ok(Self(secs))
        } else {
            Err(Refusal::BadMuteTime)
        }
    }

    /// Duration in milliseconds.
    #[must_use]
    pub const fn ms(self) -> u64 {
        self.0 * 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_one_second_to_seven_days() {
        for (secs, expect_ms) in [
            (0, None),
            (1, Some(1_000)),
            (86_400, Some(86_400_000)),
            (604_800, Some(604_800_000)),
            (604_801, None),
            (u64::MAX, None),
        ] {
            assert_eq!(Lifetime::from_secs(secs).ok().map(Lifetime::ms), expect_ms, "{secs} s");
        }
    }

    #[test]
    fn a_mute_ends_after_one_second_to_ten_years() {
        for (secs, expect_ms) in [
            (0, None),
            (1, Some(1_000)),
            (315_360_000, Some(315_360_000_000)),
            (315_360_001, None),
            (u64::MAX, None),
        ] {
            assert_eq!(MuteTime::from_secs(secs).ok().map(MuteTime::ms), expect_ms, "{secs} s");
        }
    }
}
