//! Everything that happens because time passes. All of it is in one table, in the order of time, and [`Command::DoDue`] does it: the
//! node reads the first rows and sends a command for each, until no row is left.
//!
//! A command does a bounded part of the work, and its row says how far it is. So a command that several nodes send, or one
//! sends twice, does nothing once the work is done.
//!
//! **Invariant:** a command writes no row with a time before that of its own stamp. So whoever has read the rows up to the last
//! stamp finds later ones after it.
//!
//! **Invariant:** a row exists as long as there is work, and the records that it is about say its time.
//!
//! [`Command::DoDue`]: crate::Command::DoDue

use rows::{Stamp, Value, encode, try_decode};
use serde::{Deserialize, Serialize};

use crate::accounts::GrantId;
use crate::ids::{PostId, ScheduledId, StoryId, UserId};
use crate::media::MediaId;
use crate::poll::{Poll, PollId};

/// Work that is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Due {
    /// When it is due, in milliseconds since 1970.
    pub at_ms: u64,
    /// The work.
    pub work: DueWork,
}

/// The work to be done. Stored as the position in the enum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DueWork {
    /// Remove a story that expires then, or was deleted then.
    RemoveStory {
        /// The story.
        story: StoryId,
    },
    /// End the mute of `other` by `user`.
    EndMute {
        /// The user who mutes.
        user: UserId,
        /// The user who is muted.
        other: UserId,
    },
    /// Notify the author and the voters of the end of the poll of a post. The row has the first user who may be a voter that
    /// is not notified, and 0 if not even the author is.
    EndPoll {
        /// The post with the poll.
        post: PostId,
    },
    /// Publish a scheduled post.
    Publish {
        /// Its author.
        user: UserId,
        /// The scheduled post.
        id: ScheduledId,
    },
    /// Remove a picture that is not attached.
    RemoveMedia {
        /// The picture.
        media: MediaId,
    },
    /// Notify those who boosted a post of its last edit. The row has the first user who may be one that is not notified.
    NotifyOfEdit {
        /// The post.
        post: PostId,
    },
    /// Remove the reactions to a deleted post. The row has the first item that may be left.
    SweepReactions {
        /// The post.
        post: PostId,
    },
    /// Remove the votes of a poll that no post has any more. The row has the first user of whom one may be left.
    SweepVotes {
        /// The poll.
        poll: PollId,
    },
    /// Remove the posts of a user from lists with posts of many users, or add them again: what the state of the account
    /// demands. The row has the first post that may be left.
    Relist {
        /// The user.
        user: UserId,
    },
    /// Remove the rows of a deleted user. The row has their kind, and the first that may be left; nothing if all are. Done by
    /// [`Command::EraseUser`].
    ///
    /// [`Command::EraseUser`]: crate::Command::EraseUser
    Erase {
        /// The user.
        user: UserId,
    },
    /// Remove a grant, or the used code of one, that expires then.
    ExpireGrant {
        /// The grant.
        grant: GrantId,
    },
}

impl DueWork {
    /// Whether it only removes something.
    #[must_use]
    pub const fn removes(self) -> bool {
        match self {
            Self::EndPoll { .. } | Self::Publish { .. } | Self::NotifyOfEdit { .. } => false,
            Self::RemoveStory { .. }
            | Self::EndMute { .. }
            | Self::RemoveMedia { .. }
            | Self::SweepReactions { .. }
            | Self::SweepVotes { .. }
            // Adds again what there was before.
            | Self::Relist { .. }
            | Self::Erase { .. }
            | Self::ExpireGrant { .. } => true,
        }
    }

    /// This work at a time in milliseconds since 1970.
    #[must_use]
    pub const fn at(self, at_ms: u64) -> Due {
        Due { at_ms, work: self }
    }

    /// This work at the time of a stamp.
    #[must_use]
    pub const fn since(self, stamp: Stamp) -> Due {
        self.at(stamp.unix_ms())
    }
}

impl Due {
    /// The name of its row.
    pub(crate) fn name(&self) -> Value {
        let mut name = Value::from_slice(&self.at_ms.to_be_bytes());
        name.extend_from_slice(&encode(&self.work));
        name
    }

    /// Reverses [`Due::name`]; none if the bytes are no such name.
    pub(crate) fn of_name(name: &[u8]) -> Option<Self> {
        let (at_ms, work) = name.split_first_chunk()?;
        let due = try_decode::<DueWork>(work)?.at(u64::from_be_bytes(*at_ms));
        (*due.name() == *name).then_some(due)
    }
}

impl Poll {
    /// Its end as the poll of a post.
    #[must_use]
    pub const fn end_of(&self, post: PostId) -> Due {
        DueWork::EndPoll { post }.at(self.ends_ms)
    }
}
