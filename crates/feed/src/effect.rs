//! What an applied command changed, as the views are to know it. Never stored.

use crate::ids::{PostId, SampleId, SampleSetId, StoryId, UserId};

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
        /// Whom it replied to, if it was a reply.
        reply_to: Option<UserId>,
    },
    /// The text of a post has changed.
    PostEdited {
        /// The post.
        post: PostId,
        /// Its author.
        author: UserId,
        /// Whom it replies to, if it is a reply.
        reply_to: Option<UserId>,
    },
    /// A post that mentions `user`, or did before, was deleted or has another text.
    MentionChanged {
        /// The post.
        post: PostId,
        /// Who is or was mentioned.
        user: UserId,
        /// Whether the post was deleted.
        deleted: bool,
    },
    /// Whom `user` follows has changed.
    FollowingChanged {
        /// The follower.
        user: UserId,
        /// Who is followed, or is not any more.
        other: UserId,
        /// Whether `user` follows `other` now.
        follows: bool,
    },
    /// The name beside this person's posts has changed.
    ProfileChanged {
        /// Who.
        user: UserId,
    },
    /// `user` and `other` became friends, or ceased to be.
    FriendsChanged {
        /// One.
        user: UserId,
        /// The other.
        other: UserId,
        /// Whether they are friends now.
        friends: bool,
    },
    /// A story appeared.
    StoryPosted {
        /// Which.
        story: StoryId,
        /// By whom.
        author: UserId,
        /// When it vanishes, in milliseconds since 1970.
        expires_ms: u64,
    },
    /// A story was deleted, or swept after its expiry; said once.
    StoryGone {
        /// Which.
        story: StoryId,
        /// By whom it was.
        author: UserId,
    },
    /// A sample was added.
    SampleAdded {
        /// To which set.
        set: SampleSetId,
        /// Which.
        sample: SampleId,
    },
    /// A sample is gone.
    SampleDeleted {
        /// From which set.
        set: SampleSetId,
        /// Which.
        sample: SampleId,
    },
    /// A friend saw a story for the first time.
    StoryViewed {
        /// Which.
        story: StoryId,
        /// Who.
        viewer: UserId,
    },
}
