//! Changes made by an applied command: input for the views and other consumers. Never stored.
//!
//! The kinds are few and general: a new feature needs no new kind, and a consumer matches those it needs.

use crate::ids::{PostId, SampleId, SampleSetId, StoryId, UserId};
use crate::posts::{HomeUsers, Listed};
use crate::reactions::Reaction;

/// A change made by an applied command. Consumers apply them in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A post or boost changed.
    Post {
        /// The post.
        post: PostId,
        /// Author of the post.
        author: UserId,
        /// Entry of the post in list rows.
        listed: Listed,
        /// Users that decide whose home shows the post, if any. Set when the post is published or shown.
        users: Option<HomeUsers>,
        /// The change.
        change: PostChange,
    },
    /// A post changed that mentions `user`, or mentioned them before.
    Mention {
        /// The post.
        post: PostId,
        /// Author of the post.
        author: UserId,
        /// The user who is or was mentioned.
        user: UserId,
        /// The change as this user sees it: a deletion if they can no longer see the post.
        change: PostChange,
    },
    /// `user` has a new notification other than a mention by a new post.
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
    /// Facts that the reads of `user` depend on changed. Sent once per command and input.
    Input {
        /// The user.
        user: UserId,
        /// The input that changed.
        input: Input,
    },
    /// A story changed.
    Story {
        /// The story.
        story: StoryId,
        /// Author of the story.
        author: UserId,
        /// The change.
        change: StoryChange,
    },
    /// A sample was added or deleted.
    Sample {
        /// Set of the sample.
        set: SampleSetId,
        /// The sample.
        sample: SampleId,
        /// Whether the sample was added; `false` if deleted.
        is_added: bool,
    },
    /// A user and their data became hidden or visible. The data itself has no other effects at once.
    User {
        /// The user.
        user: UserId,
        /// The change.
        change: UserChange,
    },
    /// A user did something that changes no home timeline. Consumers are the change feed and ranked feeds.
    Act {
        /// The user.
        user: UserId,
        /// The act.
        act: Act,
    },
}

/// An act of a user that changes no home timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// The user was registered.
    Registered,
    /// The profile was edited.
    Edited,
    /// The user got an account.
    AccountOpened,
    /// The password, role or state of the account changed.
    AccountChanged,
    /// The user and another are tied now, or no longer.
    Tied {
        /// The other user.
        other: UserId,
        /// The tie.
        tie: Tie,
        /// Whether the tie exists now.
        on: bool,
    },
    /// A reaction other than a boost was added or removed.
    Reacted {
        /// The post.
        post: PostId,
        /// The reaction.
        reaction: Reaction,
        /// Whether the reaction exists now.
        on: bool,
    },
}

/// A relation between two users, in [`Act::Tied`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// One of many users who were followed at once. A single follow is [`Effect::Follow`].
    Follow,
    /// Friendship.
    Friend,
    /// Block of the other user.
    Block,
    /// Mute of the other user.
    Mute,
    /// No interest in the other user's posts.
    NotInterested,
}

impl Effect {
    /// Makes the effect of a tie that exists now, or no longer.
    pub(crate) fn tie(user: UserId, other: UserId, tie: Tie, on: bool) -> Self {
        Self::Act { user, act: Act::Tied { other, tie, on } }
    }
}

/// A change of a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostChange {
    /// The post was published.
    Published,
    /// The boost is now shown in more home timelines, because an earlier boost by another user ended.
    Shown,
    /// The post was edited.
    Edited,
    /// The post was deleted.
    Deleted,
}

/// Facts that a user's reads depend on, in addition to the posts and stories of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Followed users and hashtags. A single follow is [`Effect::Follow`].
    Follows,
    /// Muted and blocked users, and followed users whose boosts are hidden. The expiry of a mute is a change, too.
    Hidden,
    /// Friends of the user.
    Friends,
    /// Filters of the user.
    Filters,
}

/// A change of a story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoryChange {
    /// The story was posted.
    Posted {
        /// Time of its expiry, in milliseconds since 1970.
        expires_ms: u64,
    },
    /// A friend viewed the story for the first time.
    Viewed {
        /// The friend.
        viewer: UserId,
    },
    /// The story was deleted, or swept after its expiry. Sent once for each story.
    Gone,
}

/// A change of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserChange {
    /// The user was deleted.
    Deleted,
    /// The account of the user was disabled.
    Hidden,
    /// The account of the user was enabled.
    Shown,
}
