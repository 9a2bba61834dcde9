//! The vocabulary: what can be asked for, what can come of it, and what the views must hear.
//!
//! [`Entry`] is what the log stores, as postcard bytes. Variants of [`Command`], [`Done`] and
//! [`Refusal`] are told apart by their order: new ones are added at the end, and none is ever
//! removed or moved within a format version.

use serde::{Deserialize, Serialize};

use crate::ids::{PostId, Stamp, UserId};
use crate::limits;
use crate::text::{Bio, Handle, Name, PostText};

/// A person as a caller names them. Handles never change hands, so resolving one while applying is
/// as deterministic as an id, and a command may name somebody registered by the command before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UserRef {
    /// By number.
    Id(UserId),
    /// By handle.
    Handle(Handle),
}

/// A request to change something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Make a person.
    Register {
        /// Unique among all people.
        handle: Handle,
        /// Shown beside posts.
        name: Name,
        /// Shown on the profile.
        bio: Bio,
    },
    /// Change a profile; `None` leaves a field as it is.
    EditProfile {
        /// Whose.
        user: UserRef,
        /// New name.
        name: Option<Name>,
        /// New biography.
        bio: Option<Bio>,
    },
    /// `user` follows `other` from now on.
    Follow {
        /// The follower.
        user: UserRef,
        /// The followed.
        other: UserRef,
    },
    /// `user` follows `other` no more.
    Unfollow {
        /// The follower.
        user: UserRef,
        /// The followed.
        other: UserRef,
    },
    /// Publish a post.
    Post {
        /// Who writes.
        author: UserRef,
        /// What.
        text: PostText,
    },
    /// Take a post back.
    DeletePost {
        /// Which.
        post: PostId,
    },
}

/// A key under which a command happens at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idempotency {
    /// Digest of the caller's key and of what it is for.
    pub key: [u8; 16],
    /// Digest of the request's content: the same key with another content is refused.
    pub content: [u8; 8],
}

/// A stamped command as the log keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When, and as which.
    pub stamp: Stamp,
    /// At most once, if given.
    pub idempotency: Option<Idempotency>,
    /// What.
    pub command: Command,
}

/// What came of a command.
pub type Outcome = Result<Done, Refusal>;

/// The answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// What came of it.
    pub outcome: Outcome,
    /// Whether an earlier command with the same idempotency key gave this outcome.
    pub replayed: bool,
}

/// What a command did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Done {
    /// A person was made.
    Registered(UserId),
    /// A profile was changed.
    Edited(UserId),
    /// The follow stands, newly or already.
    Followed,
    /// The follow does not stand, any more or ever.
    Unfollowed,
    /// A post was published.
    Posted(PostId),
    /// A post was taken back.
    Deleted,
}

/// Why a command changed nothing. Not an error of the system: the caller can put it right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// The handle is malformed.
    #[error("a handle is 1 to {} characters of a-z, 0-9 and _", limits::HANDLE_CHARS_MAX)]
    BadHandle,
    /// The name is malformed.
    #[error("a name is at most {} characters on one line", limits::NAME_CHARS_MAX)]
    BadName,
    /// The biography is malformed.
    #[error("a bio is at most {} characters without control characters", limits::BIO_CHARS_MAX)]
    BadBio,
    /// The text of a post is malformed.
    #[error(
        "a post is 1 to {} characters (at most {} bytes) without control characters",
        limits::POST_CHARS_MAX,
        limits::POST_BYTES_MAX
    )]
    BadText,
    /// Somebody has the handle.
    #[error("this handle is taken; choose another")]
    HandleTaken,
    /// No such person.
    #[error("there is no such user")]
    UserNotFound,
    /// No such post, or no more.
    #[error("there is no such post")]
    PostNotFound,
    /// Following oneself.
    #[error("nobody can follow themselves")]
    SelfFollow,
    /// The idempotency key was used for something else.
    #[error("this idempotency key was used for a different request; use a new key")]
    KeyReused,
    /// Ids are used up.
    #[error("this server cannot hold more users")]
    Full,
}

impl Refusal {
    /// The stable name of this refusal in answers.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::BadHandle => "bad_handle",
            Self::BadName => "bad_name",
            Self::BadBio => "bad_bio",
            Self::BadText => "bad_text",
            Self::HandleTaken => "handle_taken",
            Self::UserNotFound => "user_not_found",
            Self::PostNotFound => "post_not_found",
            Self::SelfFollow => "self_follow",
            Self::KeyReused => "idempotency_key_reused",
            Self::Full => "full",
        }
    }
}

/// What the views must hear of an applied command, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A post appeared.
    Posted {
        /// Which.
        post: PostId,
        /// By whom.
        author: UserId,
        /// Whom it replies to, if it is a reply.
        reply_to: Option<UserId>,
    },
    /// `user` was mentioned.
    Mentioned {
        /// Where.
        post: PostId,
        /// Who.
        user: UserId,
    },
    /// A post is gone.
    PostDeleted {
        /// Which.
        post: PostId,
        /// By whom it was.
        author: UserId,
    },
    /// Whom `user` follows has changed.
    FollowingChanged {
        /// The follower.
        user: UserId,
    },
    /// The name beside this person's posts has changed.
    ProfileChanged {
        /// Who.
        user: UserId,
    },
}
