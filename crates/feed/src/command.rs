//! The vocabulary: what can be asked for, what can come of it, and what the views must hear.
//!
//! [`Request`] is what the log stores, as postcard bytes ([`Entry`] in logs of format 1). Variants of [`Command`], [`Done`] and
//! [`Refusal`] are told apart by their order: new ones are added at the end, and none is ever
//! removed or moved within a format version.

use serde::{Deserialize, Serialize};

pub use crate::effect::Effect;
use crate::ids::{PostId, SampleId, Stamp, StoryId, UserId};
use crate::keys::KeyOps;
use crate::lifetime::Lifetime;
use crate::limits;
use crate::records::SampleBits;
use crate::text::{Bio, Handle, Label, Name, PostText, SetName};

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
    /// `user` and `other` are friends from now on.
    Befriend {
        /// One.
        user: UserRef,
        /// The other.
        other: UserRef,
    },
    /// `user` and `other` are friends no more.
    Unfriend {
        /// One.
        user: UserRef,
        /// The other.
        other: UserRef,
    },
    /// Tell friends a story that vanishes.
    TellStory {
        /// Who tells.
        author: UserRef,
        /// What.
        text: PostText,
        /// For how long.
        life: Lifetime,
    },
    /// Take a live story back.
    DeleteStory {
        /// Which.
        story: StoryId,
    },
    /// `viewer` looks at a live story.
    ViewStory {
        /// Which.
        story: StoryId,
        /// Who.
        viewer: UserRef,
    },
    /// Remove rows of stories that expired or were deleted. The node asks, not a person.
    SweepStories,
    /// Add a labelled drawing to those that others are compared with.
    Teach {
        /// To which set; it begins with its first sample.
        set: SetName,
        /// What is drawn.
        label: Label,
        /// The drawing.
        bits: Box<SampleBits>,
    },
    /// Take a sample back.
    ForgetSample {
        /// Which.
        sample: SampleId,
    },
    /// Change keys of buckets. Takes as many stamps as there are operations.
    Keys(KeyOps),
}

impl Command {
    /// How many stamps it takes.
    #[must_use]
    pub fn stamps(&self) -> usize {
        if let Self::Keys(ops) = self { ops.stamps() } else { 1 }
    }
}

/// A key under which a command happens at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idempotency {
    /// Digest of the caller's key and of what it is for.
    pub key: [u8; 16],
    /// Digest of the request's content: the same key with another content is refused.
    pub content: [u8; 8],
}

/// A command as the log keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// At most once, if given.
    pub idempotency: Option<Idempotency>,
    /// What.
    pub command: Command,
}

impl Request {
    /// With the stamp it is applied at.
    #[must_use]
    pub fn stamped(self, stamp: Stamp) -> Entry {
        Entry { stamp, idempotency: self.idempotency, command: self.command }
    }
}

impl From<Command> for Request {
    fn from(command: Command) -> Self {
        Self { idempotency: None, command }
    }
}

/// A command with its stamp, ready to be applied.
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
    /// The friendship stands, newly or already.
    Befriended,
    /// The friendship does not stand, any more or ever.
    Unfriended,
    /// A story was told.
    StoryTold {
        /// Which.
        story: StoryId,
        /// When it vanishes, in milliseconds since 1970: from then on nobody sees it.
        expires_ms: u64,
    },
    /// A story was taken back.
    StoryDeleted,
    /// The story was seen, newly or already.
    StoryViewed,
    /// Rows of stories were removed.
    Swept {
        /// Stories whose last row is gone now.
        stories: u32,
        /// Whether more waits: ask again soon.
        more: bool,
    },
    /// A sample was added.
    Taught {
        /// Which.
        sample: SampleId,
    },
    /// A sample was taken back.
    SampleForgotten,
    /// Operations on keys were applied; what came of each is told apart from this.
    KeysApplied,
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
    /// The text of a post or story is malformed.
    #[error(
        "a text is 1 to {} characters (at most {} bytes) without control characters",
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
    /// Befriending oneself.
    #[error("nobody can be a friend of themselves")]
    SelfFriend,
    /// No such story, no more, or not for these eyes.
    #[error("there is no such story")]
    StoryNotFound,
    /// The life of a story is too short or too long.
    #[error("a story lives {} to {} seconds", limits::STORY_SECS_MIN, limits::STORY_SECS_MAX)]
    BadLifetime,
    /// The label of a sample is malformed.
    #[error("a label is 1 to {} bytes without control characters", limits::LABEL_BYTES_MAX)]
    BadLabel,
    /// The name of a set is malformed.
    #[error("a set is 1 to {} characters of a-z, A-Z, 0-9, _ and -", limits::SET_NAME_CHARS_MAX)]
    BadSet,
    /// No such sample, or no more.
    #[error("there is no such sample")]
    SampleNotFound,
    /// The id is of one of those samples that every server has.
    #[error("this is the id of a built-in sample, which stays; only taught ones can be deleted")]
    SampleBuiltIn,
    /// The set has all the samples it can have.
    #[error("a set has at most {} samples; delete some first", limits::SET_SAMPLES_MAX)]
    SetFull,
    /// The set has all the labels it can have.
    #[error("a set has at most {} labels; use one of them", limits::SET_LABELS_MAX)]
    TooManyLabels,
    /// There are all the sets there can be.
    #[error("there are at most {} sets; empty one of them first", limits::SAMPLE_SETS_MAX)]
    TooManySets,
    /// The user follows as many as anybody can.
    #[error("a user follows at most {} others; unfollow one of them first", limits::FOLLOWING_MAX)]
    TooManyFollows,
    /// One of the two has as many friends as anybody can.
    #[error(
        "a user has at most {} friends, and one of these two has them; remove one first",
        limits::FRIENDS_MAX
    )]
    TooManyFriends,
    /// The user has as many posts as anybody can.
    #[error("a user has at most {} posts; delete some first", limits::USER_POSTS_MAX)]
    TooManyPosts,
    /// There is no memory for another sample. Decided before a command is logged, never when it is applied.
    #[error("the server has no memory for more samples; delete some, or raise its --sample-memory")]
    SamplesFull,
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
            Self::SelfFriend => "self_friend",
            Self::StoryNotFound => "story_not_found",
            Self::BadLifetime => "bad_lifetime",
            Self::BadLabel => "bad_label",
            Self::BadSet => "bad_set",
            Self::SampleNotFound => "sample_not_found",
            Self::SampleBuiltIn => "sample_built_in",
            Self::SetFull => "set_full",
            Self::TooManyLabels => "too_many_labels",
            Self::TooManySets => "too_many_sets",
            Self::TooManyFollows => "too_many_follows",
            Self::TooManyFriends => "too_many_friends",
            Self::TooManyPosts => "too_many_posts",
            Self::SamplesFull => "samples_full",
        }
    }
}
