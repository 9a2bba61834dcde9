//! The vocabulary: what can be asked for, what can come of it, and what the views must hear.
//!
//! [`Request`] is what the log stores, as postcard bytes. Variants of [`Command`], [`Done`] and [`Refusal`]
//! are told apart by their order: new ones are added at the end, and none is ever removed or moved within a
//! format version.

use rows::Stamp;
use serde::{Deserialize, Serialize};

use crate::ids::{PostId, SampleId, StoryId, UserId};
use crate::lifetime::Lifetime;
use crate::records::SampleBits;
use crate::refusal::Refusal;
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
    PostStory {
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
    AddSample {
        /// To which set; it begins with its first sample.
        set: SetName,
        /// What is drawn.
        label: Label,
        /// The drawing.
        bits: Box<SampleBits>,
    },
    /// Take a sample back.
    DeleteSample {
        /// Which.
        sample: SampleId,
    },
    /// No command has this number: in the log it stands for what is not of the feed.
    Reserved(Never),
    /// Publish a reply to a post.
    Reply {
        /// The author.
        author: UserRef,
        /// Its text.
        text: PostText,
        /// The post replied to.
        parent: PostId,
    },
    /// Change the text of a post.
    EditPost {
        /// The post.
        post: PostId,
        /// The new text.
        text: PostText,
    },
}

/// Has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Never {}

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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    StoryPosted {
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
    SampleAdded {
        /// Which.
        sample: SampleId,
    },
    /// A sample was taken back.
    SampleDeleted,
    /// The text of a post was changed.
    PostEdited,
}
