//! The order in which what is left of a deleted user is removed.

use serde::{Deserialize, Serialize};

/// What can be left of a deleted user; [`Remains::next`] is the order in which it is removed. Stored as the position
/// in the enum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Remains {
    /// Their posts, with the mentions in them.
    Posts,
    /// Their stories, which are deleted. The sweep removes them.
    Stories,
    /// Their follows of other users.
    Following,
    /// The follows of other users of them.
    Followers,
    /// Their friendships.
    Friends,
    /// Mentions of them in posts of other users.
    Mentions,
    /// Their views of stories of other users. Ephemeral.
    Views,
    /// Only the rows that say that something is left.
    Nothing,
    /// What they granted to apps and browsers. Removed before [`Self::Nothing`], as those below.
    Grants,
    /// Their blocks of other users.
    Blocks,
    /// The blocks of other users of them.
    BlockedBy,
    /// Their mutes of other users.
    Mutes,
    /// The mutes of other users of them.
    MutedBy,
    /// Posts that they favourited.
    Favourites,
    /// Posts that they bookmarked.
    Bookmarks,
    /// Posts that they pinned.
    Pins,
    /// Their notifications.
    Notifications,
    /// Their notes about users.
    Notes,
    /// The notes of users about them.
    NotedBy,
    /// The requests of users to follow them.
    FollowRequests,
    /// Their requests to follow users.
    Requested,
    /// Their lists, with the members: removed before the follows of these.
    Lists,
    /// Their pictures: those that no post has.
    Media,
    /// Their votes in polls.
    Votes,
    /// Their scheduled posts, without the pictures.
    Scheduled,
}

impl Remains {
    /// The kind of rows to remove after these.
    #[must_use]
    pub const fn next(self) -> Self {
        match self {
            Self::Posts => Self::Stories,
            Self::Stories => Self::Lists,
            Self::Lists => Self::Following,
            Self::Following => Self::Followers,
            Self::Followers => Self::Friends,
            Self::Friends => Self::Mentions,
            Self::Mentions => Self::Views,
            Self::Views => Self::Grants,
            Self::Grants => Self::Blocks,
            Self::Blocks => Self::BlockedBy,
            Self::BlockedBy => Self::Mutes,
            Self::Mutes => Self::MutedBy,
            Self::MutedBy => Self::Favourites,
            Self::Favourites => Self::Bookmarks,
            Self::Bookmarks => Self::Pins,
            Self::Pins => Self::Notifications,
            Self::Notifications => Self::Notes,
            Self::Notes => Self::NotedBy,
            Self::NotedBy => Self::FollowRequests,
            Self::FollowRequests => Self::Requested,
            Self::Requested => Self::Votes,
            Self::Votes => Self::Scheduled,
            Self::Scheduled => Self::Media,
            Self::Media | Self::Nothing => Self::Nothing,
        }
    }

    /// Number of kinds that are removed after these.
    #[must_use]
    pub const fn kinds_after(self) -> usize {
        let (mut kinds, mut remains) = (0, self);
        while !matches!(remains, Self::Nothing) {
            (kinds, remains) = (kinds + 1, remains.next());
        }
        kinds
    }
}
