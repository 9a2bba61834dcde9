//! Notifications of users.
//!
//! A notification has the stamp of its cause. Mentions by new posts, and new posts by users whose posts notify the
//! user, already have rows and are not stored again. Notifications of favourites, boosts, quotes, follows, follow
//! requests, ends of polls, edits of boosted or quoted posts, and mentions added by edits are stored, and so are
//! dismissals. A notification is shown while its cause exists, the user may see it, and the user has not muted its
//! thread.

pub(crate) mod cost;
pub(crate) mod facts;
pub(crate) mod mend;
pub(crate) mod rules;
pub(crate) mod shown;

use rows::Stamp;
use serde::{Deserialize, Serialize};

use crate::ids::{PostId, UserId};
use crate::names::names;
use crate::page::Item;

/// Id of a notification: the [`Stamp`] of the command that caused it. For a mention this is the id of the post, unless
/// an edit added the mention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NotificationId(pub u64);

impl NotificationId {
    /// Time of the cause, in milliseconds since 1970.
    #[must_use]
    pub const fn unix_ms(self) -> u64 {
        Stamp(self.0).unix_ms()
    }
}

/// Declares the kinds of notifications, each with its name in `/v1` and its name in the Mastodon API.
macro_rules! notices {
    (@post) => { None };
    (@post $post:ident) => { Some($post) };
    (
        $(
            $(#[$about:meta])+
            $kind:ident $(($post:ident: $of:ty))? = $name:literal, $mastodon:literal;
        )+
    ) => {
        /// Event that a user is notified of.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Notice {
            $($(#[$about])+ $kind $(($of))?,)+
        }

        /// Kind of a notification.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum NoticeKind {
            $($(#[$about])+ $kind,)+
        }

        impl Notice {
            /// Kind of the event.
            #[must_use]
            pub const fn kind(self) -> NoticeKind {
                match self {
                    $(Self::$kind { .. } => NoticeKind::$kind,)+
                }
            }

            /// Post of the event, if any.
            #[must_use]
            pub const fn post(self) -> Option<PostId> {
                match self {
                    $(Self::$kind $(($post))? => notices!(@post $($post)?),)+
                }
            }
        }

        names!(NoticeKind { $($kind = $name),+ });

        impl NoticeKind {
            /// Name in the Mastodon API.
            #[must_use]
            pub const fn mastodon_name(self) -> &'static str {
                match self {
                    $(Self::$kind => $mastodon,)+
                }
            }
        }
    };
}

notices! {
    /// A post mentions the user.
    Mention(post: PostId) = "mention", "mention";
    /// A post of the user was favourited.
    Favourite(post: PostId) = "favourite", "favourite";
    /// A post of the user was boosted.
    Boost(post: PostId) = "boost", "reblog";
    /// Another user follows the user.
    Follow = "follow", "follow";
    /// Another user asks to follow the user, whose account is locked.
    FollowRequest = "follow_request", "follow_request";
    /// A poll in a post of the user, or in which the user voted, has ended.
    Poll(post: PostId) = "poll", "poll";
    /// A user whose posts notify this user has published a post.
    Post(post: PostId) = "post", "status";
    /// A post that the user boosted was edited.
    Edit(post: PostId) = "edit", "update";
    /// This post quotes a post of the user.
    Quote(post: PostId) = "quote", "quote";
    /// The post that this post of the user quotes was edited.
    QuotedUpdate(post: PostId) = "quoted_update", "quoted_update";
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

/// A notification as shown to its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Id of the notification.
    pub id: NotificationId,
    /// User who caused the notification.
    pub actor: UserId,
    /// Event of the notification.
    pub notice: Notice,
}

/// Bit of the ids of rows that do not count towards the limit of stored notifications: mentions added by edits, and
/// dismissals of mentions and of new posts. Other rows have the id of the notification.
pub(crate) const BESIDE: u64 = 1 << 63;

/// Bit of the number of a mention row that an edit added; the other bits are the stamp of the edit. Numbers of other
/// mention rows are at most the id of an author plus 1.
pub(crate) const MENTION_ADDED: u64 = 1 << 63;

/// Stamp of the edit that added the mention whose row has this number; `None` for a mention of the original post.
pub(crate) const fn added_at(number: u64) -> Option<u64> {
    match number & MENTION_ADDED {
        0 => None,
        _ => Some(number & !MENTION_ADDED),
    }
}

/// Bit in the number of the row of an ended poll or of an edit. The number also contains the id of the post.
const POLL: u64 = 1 << 63;
/// Bit in the number of the row of an edit or of a mention. The number also contains the id of the post, which is
/// smaller than the bit until 2058: see [`Stored::has_number`].
const EDIT: u64 = 1 << 62;

/// Content of the row of a notification. The number of the row is the kind times 2^32 plus the user who caused it; for
/// the end of a poll [`POLL`] plus the post, for an edit [`POLL`] and [`EDIT`] plus the post, and for a mention
/// [`EDIT`] plus the post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// Dismissal of the notification of the post or edit with this id. The id of the row has the bit [`BESIDE`].
    Dismissed,
    /// A favourite by this user.
    Favourite(UserId),
    /// A follow by this user.
    Follow(UserId),
    /// A follow request by this user.
    FollowRequest(UserId),
    /// A boost by this user.
    Boost(UserId),
    /// A quote by this user, whose post has the id of the notification.
    Quote(UserId),
    /// The end of the poll of this post.
    Poll(PostId),
    /// An edit of this post, or of the post that this post of the user quotes.
    Edit(PostId),
    /// A mention that an edit added to this post. The stamp of the edit is the id of the notification, and part of the
    /// number of the mention row: see [`MENTION_ADDED`]. The id of the row has the bit [`BESIDE`].
    Mention(PostId),
}

/// A row that causes a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoticeRow {
    /// A mention in the original post.
    Mention,
    /// A new post of a user whose posts notify the viewer.
    Post,
    /// A stored notification.
    Stored(Stored),
}

impl NoticeRow {
    /// Kind of the notification; `None` for a dismissal.
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
            Stored::Quote(_) => Some(NoticeKind::Quote),
            Stored::Edit(_) => Some(NoticeKind::Edit),
            Stored::Mention(_) => Some(NoticeKind::Mention),
        }
    }
}

impl Stored {
    /// Whether the id of its row has the bit [`BESIDE`].
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
            Self::Quote(actor) => 5 << 32 | actor.0 as u64,
            Self::Poll(post) => POLL | post.0,
            Self::Edit(post) => POLL | EDIT | post.0,
            Self::Mention(post) => EDIT | post.0,
        }
    }

    /// Whether the id of the post fits into the number of the row. Ids from 2058 on do not; their notifications are not
    /// stored.
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
            5 => Some(Self::Quote(actor)),
            _ if number & (POLL | EDIT) == POLL | EDIT => {
                Some(Self::Edit(PostId(number & !(POLL | EDIT))))
            }
            _ if number & POLL != 0 => Some(Self::Poll(PostId(number & !POLL))),
            _ if number & EDIT != 0 => Some(Self::Mention(PostId(number & !EDIT))),
            _ => None,
        }
    }
}

/// State of a user's stored notifications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoticeState {
    /// Number of counted rows, including notifications that are not shown any more, without rows with the bit `BESIDE`.
    pub stored: u32,
    /// Lower bound of the stamps of the rows, to find the oldest without a scan of removed rows.
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
            Stored::Quote(user),
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
