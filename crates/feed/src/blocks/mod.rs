//! Mutes: their stored numbers and durations. A block has no data.

pub(crate) mod mend;
pub(crate) mod rules;

use serde::{Deserialize, Serialize};

use crate::due::{Due, DueWork};
use crate::ids::UserId;
use crate::limits;
use crate::refusal::Refusal;

/// A mute of one user by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mute {
    /// Whether the mute also hides notifications by the muted user.
    pub mentions: bool,
    /// End of the mute, in milliseconds since 1970; `None` for a mute without end.
    pub ends_ms: Option<u64>,
}

impl Mute {
    /// Due work at the end of this mute of `other` by `user`, if it has an end.
    #[must_use]
    pub fn end_of(self, user: UserId, other: UserId) -> Option<Due> {
        self.ends_ms.map(|ends_ms| DueWork::EndMute { user, other }.at(ends_ms))
    }

    /// Number of the mute's row.
    #[must_use]
    pub fn number(self) -> u64 {
        self.ends_ms.unwrap_or(0) << 1 | u64::from(self.mentions)
    }

    /// Reverses [`Mute::number`].
    #[must_use]
    pub fn of_number(number: u64) -> Self {
        Self { mentions: number & 1 == 1, ends_ms: Some(number >> 1).filter(|ms| *ms > 0) }
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
