//! Mutes, and the numbers of their rows.

pub(crate) mod mend;
pub(crate) mod rules;

use crate::due::{Due, DueWork};
use crate::ids::UserId;

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
