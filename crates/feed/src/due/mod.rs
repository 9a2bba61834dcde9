//! Work that happens because time passes. One table holds all of it in the order of time. The node reads the first rows
//! and sends a [`Command::DoDue`] for each, until no row is left.
//!
//! A command does a bounded part of the work and stores its progress in the row. So a command that is sent twice, or by
//! several nodes, does nothing once the work is done.
//!
//! **Invariant:** a command writes no row with a time before its own stamp. So a reader that has read the rows up to
//! the last stamp misses none by continuing from there.
//!
//! **Invariant:** a row exists as long as there is work, and its time follows from the record that the work is about.
//!
//! [`Command::DoDue`]: crate::Command::DoDue

pub(crate) mod facts;
pub(crate) mod mend;
pub(crate) mod rules;

use rows::{Stamp, Value, encode, try_decode};
use serde::{Deserialize, Serialize};

use crate::accounts::GrantId;
use crate::ids::{PostId, ScheduledId, StoryId, UserId};
use crate::media::MediaId;
use crate::polls::{Poll, PollId};

/// Work that is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Due {
    /// Due time, in milliseconds since 1970.
    pub at_ms: u64,
    /// The work.
    pub work: DueWork,
}

/// Kind and object of due work. Stored as the position in the enum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DueWork {
    /// Remove a story at its expiry or deletion.
    RemoveStory {
        /// The story.
        story: StoryId,
    },
    /// End the mute of `other` by `user`.
    EndMute {
        /// The user who mutes.
        user: UserId,
        /// The muted user.
        other: UserId,
    },
    /// Notify the author and the voters of the end of a poll. The row stores the first user who may be a voter to
    /// notify, or 0 if the author is not yet notified.
    EndPoll {
        /// The post with the poll.
        post: PostId,
    },
    /// Publish a scheduled post.
    Publish {
        /// Author of the scheduled post.
        user: UserId,
        /// The scheduled post.
        id: ScheduledId,
    },
    /// Remove an unattached picture.
    RemoveMedia {
        /// The picture.
        media: MediaId,
    },
    /// Notify the boosters of a post of its last edit. The row stores the first user who may be a booster to notify.
    NotifyOfEdit {
        /// The post.
        post: PostId,
    },
    /// Remove the reactions to a deleted post. The row stores the first item that may be left.
    SweepReactions {
        /// The post.
        post: PostId,
    },
    /// Remove the votes of a poll that no post has any more. The row stores the first user whose vote may be left.
    SweepVotes {
        /// The poll.
        poll: PollId,
    },
    /// Remove the posts of a user from lists shared by many authors, or add them again, as the state of the account
    /// requires. The row stores the first post that may be left.
    Relist {
        /// The user.
        user: UserId,
    },
    /// Remove the rows of a deleted user with [`Command::EraseUser`]. The row stores the phase and the first item that
    /// may be left; it is empty before the first step.
    ///
    /// [`Command::EraseUser`]: crate::Command::EraseUser
    Erase {
        /// The user.
        user: UserId,
    },
    /// Remove an expired grant, or its expired code.
    ExpireGrant {
        /// The grant.
        grant: GrantId,
    },
}

impl DueWork {
    /// Whether the work only removes something.
    #[must_use]
    pub const fn removes(self) -> bool {
        match self {
            Self::EndPoll { .. } | Self::Publish { .. } | Self::NotifyOfEdit { .. } => false,
            Self::RemoveStory { .. }
            | Self::EndMute { .. }
            | Self::RemoveMedia { .. }
            | Self::SweepReactions { .. }
            | Self::SweepVotes { .. }
            // Relisting may add rows, but only rows that existed before.
            | Self::Relist { .. }
            | Self::Erase { .. }
            | Self::ExpireGrant { .. } => true,
        }
    }

    /// Makes the work due at a time in milliseconds since 1970.
    #[must_use]
    pub const fn at(self, at_ms: u64) -> Due {
        Due { at_ms, work: self }
    }

    /// Makes the work due at the time of a stamp.
    #[must_use]
    pub const fn since(self, stamp: Stamp) -> Due {
        self.at(stamp.unix_ms())
    }
}

impl Due {
    /// Encodes the name of its row.
    pub(crate) fn name(&self) -> Value {
        let mut name = Value::from_slice(&self.at_ms.to_be_bytes());
        name.extend_from_slice(&encode(&self.work));
        name
    }

    /// Reverses [`Due::name`]; `None` if the bytes are not such a name.
    pub(crate) fn of_name(name: &[u8]) -> Option<Self> {
        let (at_ms, work) = name.split_first_chunk()?;
        let due = try_decode::<DueWork>(work)?.at(u64::from_be_bytes(*at_ms));
        (*due.name() == *name).then_some(due)
    }
}

impl Poll {
    /// Due work at the end of this poll, which belongs to `post`.
    #[must_use]
    pub const fn end_of(&self, post: PostId) -> Due {
        DueWork::EndPoll { post }.at(self.ends_ms)
    }
}
