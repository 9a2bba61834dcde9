//! Records of the change feed, and which effects they come from.

use feed::{Act, Effect, PostChange, Reaction, StoryChange, Tie, UserChange, UserId};
use serde::{Deserialize, Serialize};

/// Meaning of the number of a record, which also has a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Nothing: the change is of the user alone.
    User,
    /// Another user.
    Other,
    /// A post.
    Post,
    /// A story.
    Story,
}

/// Declares the kinds, each with its name, what its number identifies, and whether the feed shows that user, post or
/// story.
macro_rules! kinds {
    ($($kind:ident $name:literal $of:ident $shows:literal $text:literal;)*) => {
        /// Kind of a change. Stored by its position in the enum.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Kind {$(
            #[doc = $text]
            $kind,
        )*}

        impl Kind {
            /// All kinds, in the order of the enum.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// Name of the kind in the API.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name),* }
            }

            /// Returns the meaning of the number of a record of this kind.
            #[must_use]
            pub const fn of(self) -> Of {
                match self { $(Self::$kind => Of::$of),* }
            }

            /// Whether the feed shows the user, post or story with the change.
            #[must_use]
            pub const fn shows(self) -> bool {
                match self { $(Self::$kind => $shows),* }
            }
        }
    };
}

kinds! {
    UserRegistered "user_registered" User true "The user was registered.";
    UserEdited "user_edited" User true "The profile was edited.";
    UserDeleted "user_deleted" User false "The user was deleted, with everything.";
    UserDisabled "user_disabled" User false "The account was disabled, which hides the user.";
    UserEnabled "user_enabled" User true "The account was enabled again.";
    AccountOpened "account_opened" User false "The user got an account.";
    AccountChanged "account_changed" User false "Password, role or state of the account changed.";
    PostPublished "post_published" Post true "A post or boost was published.";
    PostEdited "post_edited" Post true "A post was edited.";
    PostDeleted "post_deleted" Post false "A post or boost was deleted.";
    Favourited "favourited" Post false "The user favourited a post.";
    Unfavourited "unfavourited" Post false "The user removed a favourite.";
    Bookmarked "bookmarked" Post false "The user bookmarked a post.";
    Unbookmarked "unbookmarked" Post false "The user removed a bookmark.";
    Pinned "pinned" Post false "The user pinned a post.";
    Unpinned "unpinned" Post false "The user unpinned a post.";
    Followed "followed" Other false "The user follows another.";
    Unfollowed "unfollowed" Other false "The user no longer follows another.";
    Befriended "befriended" Other false "The two users are friends.";
    Unfriended "unfriended" Other false "The two users are no longer friends.";
    Blocked "blocked" Other false "The user blocks another.";
    Unblocked "unblocked" Other false "The user no longer blocks another.";
    Muted "muted" Other false "The user mutes another.";
    Unmuted "unmuted" Other false "The user no longer mutes another.";
    StoryPosted "story_posted" Story true "A story was posted.";
    StoryEnded "story_ended" Story false "A story expired or was deleted.";
    LessAdded "less_added" Post false "The user wants to see less like a post.";
    LessRemoved "less_removed" Post false "The user no longer wants to see less like a post.";
    NotInterestedAdded "not_interested_added" Other false "The user is not interested in an author.";
    NotInterestedRemoved "not_interested_removed" Other false "The user is interested in an author again.";
}

/// A change: kind and ids. Small, and without any content, which readers take from the facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The kind.
    pub kind: Kind,
    /// User who made the change, or whom it is about; author of the post or story, unless it is a reaction.
    pub user: UserId,
    /// Id of what [`Kind::of`] names; 0 for [`Of::User`].
    pub id: u64,
}

impl Record {
    /// Makes the record of an effect, if the feed has such changes.
    pub(crate) fn of(effect: &Effect) -> Option<Self> {
        let record = |kind, user, id| Some(Self { kind, user, id });
        match *effect {
            Effect::Post { post, author, change, .. } => {
                let kind = match change {
                    PostChange::Published => Kind::PostPublished,
                    PostChange::Edited => Kind::PostEdited,
                    PostChange::Deleted => Kind::PostDeleted,
                    PostChange::Shown => return None,
                };
                record(kind, author, post.0)
            }
            Effect::Follow { user, other, follows } => {
                record(tie(Tie::Follow, follows), user, other.0.into())
            }
            Effect::Story { story, author, change } => {
                let kind = match change {
                    StoryChange::Posted { .. } => Kind::StoryPosted,
                    StoryChange::Gone => Kind::StoryEnded,
                    StoryChange::Viewed { .. } => return None,
                };
                record(kind, author, story.0)
            }
            Effect::User { user, change } => {
                let kind = match change {
                    UserChange::Deleted => Kind::UserDeleted,
                    UserChange::Hidden => Kind::UserDisabled,
                    UserChange::Shown => Kind::UserEnabled,
                };
                record(kind, user, 0)
            }
            Effect::Act { user, act } => match act {
                Act::Registered => record(Kind::UserRegistered, user, 0),
                Act::Edited => record(Kind::UserEdited, user, 0),
                Act::AccountOpened => record(Kind::AccountOpened, user, 0),
                Act::AccountChanged => record(Kind::AccountChanged, user, 0),
                Act::Tied { other, tie: kind, on } => record(tie(kind, on), user, other.0.into()),
                Act::Reacted { post, reaction, on } => record(reacted(reaction, on)?, user, post.0),
            },
            Effect::Mention { .. }
            | Effect::Notified { .. }
            | Effect::Input { .. }
            | Effect::Sample { .. } => None,
        }
    }
}

fn tie(tie: Tie, on: bool) -> Kind {
    match (tie, on) {
        (Tie::Follow, true) => Kind::Followed,
        (Tie::Follow, false) => Kind::Unfollowed,
        (Tie::Friend, true) => Kind::Befriended,
        (Tie::Friend, false) => Kind::Unfriended,
        (Tie::Block, true) => Kind::Blocked,
        (Tie::Block, false) => Kind::Unblocked,
        (Tie::Mute, true) => Kind::Muted,
        (Tie::Mute, false) => Kind::Unmuted,
        (Tie::NotInterested, true) => Kind::NotInterestedAdded,
        (Tie::NotInterested, false) => Kind::NotInterestedRemoved,
    }
}

/// Kind of a reaction; `None` for a boost, which is a post.
fn reacted(reaction: Reaction, on: bool) -> Option<Kind> {
    Some(match (reaction, on) {
        (Reaction::Favourite, true) => Kind::Favourited,
        (Reaction::Favourite, false) => Kind::Unfavourited,
        (Reaction::Bookmark, true) => Kind::Bookmarked,
        (Reaction::Bookmark, false) => Kind::Unbookmarked,
        (Reaction::Pin, true) => Kind::Pinned,
        (Reaction::Pin, false) => Kind::Unpinned,
        (Reaction::Less, true) => Kind::LessAdded,
        (Reaction::Less, false) => Kind::LessRemoved,
        (Reaction::Boost, _) => return None,
    })
}
