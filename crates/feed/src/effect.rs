//! The changes that an applied command made, as input for the views and for whatever else follows them. Never stored.
//!
//! There are few kinds, so that a consumer looks at those that it needs and a new feature needs no new one.

use crate::ids::{PostId, SampleId, SampleSetId, StoryId, UserId};
use crate::post::{HomeUsers, Listed};

/// A change made by an applied command. Consumers apply them in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A post or boost changed.
    Post {
        /// The post.
        post: PostId,
        /// Its author.
        author: UserId,
        /// Entry of the post in list rows.
        listed: Listed,
        /// The users on whom it depends in whose home it is, if it does. Known when it is published or shown.
        users: Option<HomeUsers>,
        /// The change.
        change: PostChange,
    },
    /// A post changed that mentions `user`, or did before.
    Mention {
        /// The post.
        post: PostId,
        /// Its author.
        author: UserId,
        /// The user who is or was mentioned.
        user: UserId,
        /// The change as far as the user sees it: a post that they see no more is deleted.
        change: PostChange,
    },
    /// `user` has a new notification that is not of a new post that mentions them.
    Notified {
        /// The user.
        user: UserId,
    },
    /// `user` followed or unfollowed `other`.
    Follow {
        /// The follower.
        user: UserId,
        /// The user followed or unfollowed.
        other: UserId,
        /// Whether `user` follows `other` now.
        follows: bool,
    },
    /// Something changed on which the reads of `user` depend. It has one effect however much of it changed.
    Input {
        /// The user.
        user: UserId,
        /// The part that changed.
        input: Input,
    },
    /// A story changed.
    Story {
        /// The story.
        story: StoryId,
        /// Its author.
        author: UserId,
        /// The change.
        change: StoryChange,
    },
    /// A sample was added or deleted.
    Sample {
        /// The set that it was added to or deleted from.
        set: SampleSetId,
        /// The sample.
        sample: SampleId,
        /// Whether it was added.
        is_added: bool,
    },
    /// A user, and all that they made, is visible to others or not. What they made gets no other effect at once.
    User {
        /// The user.
        user: UserId,
        /// The change.
        change: UserChange,
    },
}

/// A change of a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostChange {
    /// It was published.
    Published,
    /// It is a boost that is at home of more users: an earlier one by somebody else has ended.
    Shown,
    /// It was edited.
    Edited,
    /// It was deleted.
    Deleted,
}

/// Facts on which the reads of a user depend, beside the posts and stories of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The users and hashtags that they follow. A single follow is [`Effect::Follow`].
    Follows,
    /// The users whom they mute or block, and those whose boosts they hide. A mute may also end by itself.
    Hidden,
    /// Their friends.
    Friends,
    /// Their filters.
    Filters,
}

/// A change of a story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoryChange {
    /// It was posted.
    Posted {
        /// When it expires, in milliseconds since 1970.
        expires_ms: u64,
    },
    /// A friend viewed it for the first time.
    Viewed {
        /// The friend.
        viewer: UserId,
    },
    /// It was deleted, or swept after its expiry; sent once for each story.
    Gone,
}

/// A change of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserChange {
    /// They were deleted.
    Deleted,
    /// Their account was disabled.
    Hidden,
    /// Their account was enabled.
    Shown,
}
