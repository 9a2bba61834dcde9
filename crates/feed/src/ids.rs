//! Identifiers: dense numbers for users, time-ordered 63-bit numbers for posts and stories.

use rows::Stamp;
use serde::{Deserialize, Serialize};

use crate::handle::Handle;

/// Id of a user: the position in the order of registration, from 0. Dense, so tables can be arrays.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct UserId(pub u32);

/// Id of a post: the [`Stamp`] of the command that published it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PostId(pub u64);

/// Id of a story: the [`Stamp`] of the command that posted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StoryId(pub u64);

/// Id of a scheduled post: the [`Stamp`] of the command that scheduled it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ScheduledId(pub u64);

/// Id of a labelled sample: the [`Stamp`] of the command that added it, or the number of a built-in sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SampleId(pub u64);

/// Id of a set of samples in rows: the [`Stamp`] of the command that added its first sample. A set that becomes empty
/// and gets samples again has a new id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SampleSetId(pub u64);

/// Reference to a user in a command. A handle is resolved when the command is applied, so a command may name a user
/// whom an earlier command registers. A handle never gets another owner, so every replay finds the same user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UserRef {
    /// User id.
    Id(UserId),
    /// Handle of the user.
    Handle(Handle),
}

impl PostId {
    /// Time of publication, in milliseconds since 1970.
    #[must_use]
    pub const fn unix_ms(self) -> u64 {
        Stamp(self.0).unix_ms()
    }
}

impl StoryId {
    /// Time of posting, in milliseconds since 1970.
    #[must_use]
    pub const fn unix_ms(self) -> u64 {
        Stamp(self.0).unix_ms()
    }
}

impl SampleId {
    /// Smallest id of an added sample, because no command has a smaller stamp. Built-in samples have smaller ids.
    pub const TAUGHT_MIN: u64 = Stamp::MIN.0;

    /// Whether the sample is built in, so that every server has it.
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

/// Digests parts of a record by FNV-1a. An author who creates two texts with one digest deceives only their own
/// clients.
pub(crate) fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let byte = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    parts.into_iter().flatten().fold(0xcbf2_9ce4_8422_2325, byte)
}

#[cfg(test)]
mod tests {
    use rows::StampClock;

    use super::*;

    #[test]
    fn no_command_gets_the_id_of_a_built_in_sample() {
        let first = StampClock::new(Stamp(0)).next(0);
        assert!(!SampleId(first.0).is_built_in());
    }
}
