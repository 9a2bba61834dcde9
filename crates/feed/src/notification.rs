//! Notifications of a user.
//!
//! A notification has the stamp of its cause. Mentions, and posts by users of whose posts the user is notified, have a row
//! anyway and are not stored again; favourites, boosts, follows, requests to follow, ends of polls, edits of what the
//! user boosted and mentions that an edit added are stored, and so is that another one was dismissed. A notification is shown only as long as its cause
//! exists and the user may see it, and only if the user has not muted the thread of its post.

use rows::Stamp;
use serde::{Deserialize, Serialize};

use crate::ids::{PostId, UserId};
use crate::page::Item;

/// A notification: the [`Stamp`] of the command that caused it; of a mention that is the id of the post, unless an edit of it
/// added the mention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NotificationId(pub u64);

impl NotificationId {
    /// Milliseconds since 1970 at which its cause was accepted.
    #[must_use]
    pub const fn unix_ms(self) -> u64 {
        Stamp(self.0).unix_ms()
    }
}

/// What a user is notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A post mentions the user.
    Mention(PostId),
    /// A post of the user was favourited.
    Favourite(PostId),
    /// A post of the user was boosted.
    Boost(PostId),
    /// The user is followed.
    Follow,
    /// Somebody asks to follow the user.
    FollowRequest,
    /// A poll in a post of the user, or in which the user voted, has ended.
    Poll(PostId),
    /// A user of whose posts the user is notified has published a post.
    Post(PostId),
    /// A post that the user boosted was edited.
    Edit(PostId),
}

/// Kinds of notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    /// See [`Notice::Mention`].
    Mention,
    /// See [`Notice::Favourite`].
    Favourite,
    /// See [`Notice::Boost`].
    Boost,
    /// See [`Notice::Follow`].
    Follow,
    /// See [`Notice::FollowRequest`].
    FollowRequest,
    /// See [`Notice::Poll`].
    Poll,
    /// See [`Notice::Post`].
    Post,
    /// See [`Notice::Edit`].
    Edit,
}

impl Notice {
    /// Its kind.
    #[must_use]
    pub const fn kind(self) -> NoticeKind {
        match self {
            Self::Mention(_) => NoticeKind::Mention,
            Self::Favourite(_) => NoticeKind::Favourite,
            Self::Boost(_) => NoticeKind::Boost,
            Self::Follow => NoticeKind::Follow,
            Self::FollowRequest => NoticeKind::FollowRequest,
            Self::Poll(_) => NoticeKind::Poll,
            Self::Post(_) => NoticeKind::Post,
            Self::Edit(_) => NoticeKind::Edit,
        }
    }

    /// The post that it is about.
    #[must_use]
    pub const fn post(self) -> Option<PostId> {
        match self {
            Self::Mention(post)
            | Self::Favourite(post)
            | Self::Boost(post)
            | Self::Poll(post)
            | Self::Post(post)
            | Self::Edit(post) => Some(post),
            Self::Follow | Self::FollowRequest => None,
        }
    }
}

impl Item for NotificationId {
    fn id(&self) -> u64 {
        self.0
    }
}

impl Item for Notification {
    fn id(&self) -> u64 {
        self.id.0
    }
}

/// A notification that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Its id.
    pub id: NotificationId,
    /// The user who caused it.
    pub actor: UserId,
    /// What it is about.
    pub notice: Notice,
}

/// The row of a notification has its id. That of a mention that an edit added, and the one that says that a mention, or the
/// notification of a post, is dismissed, have the id plus this: they are beside the others, whose number is limited.
pub(crate) const BESIDE: u64 = 1 << 63;

/// In the number of the row of a mention that an edit added, beside the stamp of the edit. Numbers of other mentions are at
/// most the id of an author plus 1.
pub(crate) const MENTION_ADDED: u64 = 1 << 63;

/// The stamp of the edit that added a mention whose row has this number; none if the post had it before.
pub(crate) const fn added_at(number: u64) -> Option<u64> {
    match number & MENTION_ADDED {
        0 => None,
        _ => Some(number & !MENTION_ADDED),
    }
}

/// In the number of the row of the end of a poll, beside the post.
const POLL: u64 = 1 << 63;
/// In the number of the row of an edit, beside the post and [`POLL`]. Ids of posts are below it until 2058: see
/// [`Stored::has_number`].
const EDIT: u64 = 1 << 62;

/// What is stored of a notification; its row has the kind times 2^32, plus the user who caused it. That of the end of a poll
/// has the post, plus [`POLL`], that of an edit also plus [`EDIT`], and that of a mention only plus [`EDIT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// The notification of the post with this id, or of its edit, is dismissed. Its row is [`BESIDE`] others.
    Dismissed,
    /// By this user.
    Favourite(UserId),
    /// By this user.
    Follow(UserId),
    /// By this user.
    FollowRequest(UserId),
    /// By this user.
    Boost(UserId),
    /// In this post.
    Poll(PostId),
    /// Of this post.
    Edit(PostId),
    /// A mention in this post, since its edit with the stamp that is the id of the notification. The row of the mention has that stamp,
    /// too: see [`MENTION_ADDED`]. Its row is [`BESIDE`] others.
    Mention(PostId),
}

/// A row from which a notification follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoticeRow {
    /// A mention that the post has since it was published.
    Mention,
    /// A post by a user of whose posts the viewer is notified.
    Post,
    /// What is stored.
    Stored(Stored),
}

impl NoticeRow {
    /// The kind of its notification, unless that was dismissed.
    pub(crate) const fn kind(self) -> Option<NoticeKind> {
        let stored = match self {
            Self::Mention => return Some(NoticeKind::Mention),
            Self::Post => return Some(NoticeKind::Post),
            Self::Stored(stored) => stored,
        };
        match stored {
            Stored::Dismissed => None,
            Stored::Favourite(_) => Some(NoticeKind::Favourite),
            Stored::Follow(_) => Some(NoticeKind::Follow),
            Stored::FollowRequest(_) => Some(NoticeKind::FollowRequest),
            Stored::Boost(_) => Some(NoticeKind::Boost),
            Stored::Poll(_) => Some(NoticeKind::Poll),
            Stored::Edit(_) => Some(NoticeKind::Edit),
            Stored::Mention(_) => Some(NoticeKind::Mention),
        }
    }
}

impl Stored {
    /// Whether its row is [`BESIDE`] others.
    pub(crate) const fn is_beside(self) -> bool {
        matches!(self, Self::Dismissed | Self::Mention(_))
    }

    pub(crate) const fn number(self) -> u64 {
        match self {
            Self::Dismissed => 0,
            Self::Favourite(actor) => 1 << 32 | actor.0 as u64,
            Self::Follow(actor) => 2 << 32 | actor.0 as u64,
            Self::FollowRequest(actor) => 3 << 32 | actor.0 as u64,
            Self::Boost(actor) => 4 << 32 | actor.0 as u64,
            Self::Poll(post) => POLL | post.0,
            Self::Edit(post) => POLL | EDIT | post.0,
            Self::Mention(post) => EDIT | post.0,
        }
    }

    /// Whether a number says it: an id of a post from 2058 on leaves no room for the kind, and nobody is notified then.
    pub(crate) const fn has_number(self) -> bool {
        match self {
            Self::Poll(post) | Self::Edit(post) | Self::Mention(post) => post.0 & EDIT == 0,
            _ => true,
        }
    }

    /// Reverses [`Stored::number`].
    pub(crate) const fn of_number(number: u64) -> Option<Self> {
        let actor = UserId(number as u32);
        match number >> 32 {
            0 if actor.0 == 0 => Some(Self::Dismissed),
            1 => Some(Self::Favourite(actor)),
            2 => Some(Self::Follow(actor)),
            3 => Some(Self::FollowRequest(actor)),
            4 => Some(Self::Boost(actor)),
            _ if number & (POLL | EDIT) == POLL | EDIT => {
                Some(Self::Edit(PostId(number & !(POLL | EDIT))))
            }
            _ if number & POLL != 0 => Some(Self::Poll(PostId(number & !POLL))),
            _ if number & EDIT != 0 => Some(Self::Mention(PostId(number & !EDIT))),
            _ => None,
        }
    }
}

/// Which notifications of a user are stored and shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inbox {
    /// Number of rows, with those that are not shown any more, without those `BESIDE` them.
    pub stored: u32,
    /// No row has a smaller stamp: so that the oldest is found without walking over those that were removed.
    pub from: u64,
    /// Notifications up to this stamp are not shown.
    pub cleared: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_says_what_is_stored_and_ids_leave_room_for_the_kind() {
        let (user, post) = (UserId(u32::MAX), PostId(EDIT - 1));
        let all = [
            Stored::Dismissed,
            Stored::Favourite(user),
            Stored::Follow(user),
            Stored::FollowRequest(user),
            Stored::Boost(user),
            Stored::Poll(post),
            Stored::Edit(post),
            Stored::Mention(post),
        ];
        for stored in all {
            assert_eq!(Stored::of_number(stored.number()), Some(stored));
        }
        const YEAR_MS: u64 = 31_556_952_000;
        let last_year = (Stamp(EDIT - 1).unix_ms()) / YEAR_MS + 1970;
        assert!(last_year >= 2058, "{last_year}");
        assert!(!Stored::Edit(PostId(EDIT)).has_number() && Stored::Edit(post).has_number());
    }
}
