//! How long a story is live. A value is within the limits by construction.

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::refusal::Refusal;

/// A duration from one second to seven days, stored in milliseconds.
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

    /// In milliseconds.
    #[must_use]
    pub const fn ms(self) -> u64 {
        self.0
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
}
