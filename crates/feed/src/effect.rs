//! The changes that an applied command made, as input for the views. Never stored.

use crate::ids::{PostId, SampleId, SampleSetId, StoryId, UserId};
use crate::post::{HomeUsers, Listed};

/// The relations of two users that end when one of them blocks the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// The user who blocks followed the other.
    pub following: bool,
    /// The blocked user followed the one who blocks.
    pub followed: bool,
    /// They were friends.
    pub friends: bool,
}

/// A change made by an applied command, which the views apply in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A post was published, or boosted.
    Posted {
        /// The post.
        post: PostId,
        /// Its author.
        author: UserId,
        /// Entry of the post in list rows.
        listed: Listed,
        /// The users on whom it depends in whose home it is, if it does. They change by [`Effect::BoostShown`] alone.
        users: Option<HomeUsers>,
    },
    /// A boost is at home of more users: an earlier one by somebody else has ended.
    BoostShown {
        /// The boost.
        post: PostId,
        /// User who boosted.
        author: UserId,
        /// Entry of the post in list rows.
        listed: Listed,
        /// The users on whom it depends in whose home it is, if it does.
        users: Option<HomeUsers>,
    },
    /// `user` was mentioned.
    Mentioned {
        /// The post that mentions the user.
        post: PostId,
        /// The user mentioned.
        user: UserId,
    },
    /// A post was deleted.
    PostDeleted {
        /// The post.
        post: PostId,
        /// Its author.
        author: UserId,
        /// What lists knew about it.
        listed: Listed,
    },
    /// A post was edited.
    PostEdited {
        /// The post.
        post: PostId,
        /// Its author.
        author: UserId,
        /// Entry of the post in list rows.
        listed: Listed,
    },
    /// A post that mentions `user`, or did before, was deleted or edited.
    MentionChanged {
        /// The post.
        post: PostId,
        /// Its author.
        author: UserId,
        /// The user who is or was mentioned.
        user: UserId,
        /// Whether the post was deleted, or the user sees it no more.
        deleted: bool,
    },
    /// `user` followed or unfollowed `other`.
    FollowingChanged {
        /// The follower.
        user: UserId,
        /// The user followed or unfollowed.
        other: UserId,
        /// Whether `user` follows `other` now.
        follows: bool,
    },
    /// `user` followed others, all at once. One effect however many: views have room for one for each
    /// command.
    FollowedMany {
        /// The follower.
        user: UserId,
    },
    /// `user` and `other` became friends, or are friends no longer.
    FriendsChanged {
        /// One of the two users.
        user: UserId,
        /// The other user.
        other: UserId,
        /// Whether they are friends now.
        friends: bool,
    },
    /// A story was posted.
    StoryPosted {
        /// The story.
        story: StoryId,
        /// Its author.
        author: UserId,
        /// When it expires, in milliseconds since 1970.
        expires_ms: u64,
    },
    /// A story was deleted, or swept after its expiry; sent once for each story.
    StoryGone {
        /// The story.
        story: StoryId,
        /// Its author.
        author: UserId,
    },
    /// A sample was added.
    SampleAdded {
        /// The set it was added to.
        set: SampleSetId,
        /// The sample.
        sample: SampleId,
    },
    /// A sample was deleted.
    SampleDeleted {
        /// The set it was deleted from.
        set: SampleSetId,
        /// The sample.
        sample: SampleId,
    },
    /// A friend viewed a story for the first time.
    StoryViewed {
        /// The story.
        story: StoryId,
        /// The friend who viewed it.
        viewer: UserId,
    },
    /// `user` blocked `other`.
    Blocked {
        /// The user who blocked.
        user: UserId,
        /// The blocked user.
        other: UserId,
        /// The relations that ended with it.
        ended: Ended,
    },
    /// `user` muted or unmuted another user, or a mute has ended, or boosts by whom they follow are hidden or not.
    MutesChanged {
        /// The user who mutes.
        user: UserId,
    },
    /// `user` followed or unfollowed a hashtag.
    FollowedTagsChanged {
        /// The user.
        user: UserId,
    },
    /// `user` has a new notification that is no mention.
    Notified {
        /// The user.
        user: UserId,
    },
    /// A user was deleted, and all they made is hidden. Most of it gets no other effect.
    UserDeleted {
        /// The user.
        user: UserId,
    },
    /// The account of a user was disabled, and all they made is hidden from others; or it was enabled.
    UserHidden {
        /// The user.
        user: UserId,
        /// Whether they are hidden now.
        hidden: bool,
    },
    /// `user` changed their filters.
    FiltersChanged {
        /// The user.
        user: UserId,
    },
}
