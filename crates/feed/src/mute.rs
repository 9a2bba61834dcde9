//! A mute, and the number of its row.

use crate::due::{Due, DueWork};
use crate::ids::UserId;

/// A mute of one user by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mute {
    /// Whether mentions by the muted user are hidden too.
    pub mentions: bool,
    /// When it ends by itself, in milliseconds since 1970.
    pub ends_ms: Option<u64>,
}

impl Mute {
    /// Its end as the mute of `other` by `user`, if it ends by itself.
    #[must_use]
    pub fn end_of(self, user: UserId, other: UserId) -> Option<Due> {
        self.ends_ms.map(|ends_ms| DueWork::EndMute { user, other }.at(ends_ms))
    }

    /// The number of its row.
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
