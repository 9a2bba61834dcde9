//! A mute, and the number of its row.

/// A mute of one user by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mute {
    /// Whether mentions by the muted user are hidden too.
    pub mentions: bool,
    /// When it ends by itself, in milliseconds since 1970.
    pub ends_ms: Option<u64>,
}

impl Mute {
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
