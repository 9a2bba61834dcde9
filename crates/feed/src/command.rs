//! Commands and their results.
//!
//! [`Request`] is what the log stores, as postcard bytes. Variants of [`Command`], [`Done`] and
//! [`Refusal`](crate::Refusal) are stored as their position in the enum: new ones are added at the end, and none is
//! ever removed or moved within a format version.

use rows::Stamp;
use serde::{Deserialize, Serialize};

use crate::accounts::AccountCommand;
use crate::conversation::ConversationUpdate;
pub use crate::done::{Done, Outcome, Reply};
use crate::draft::{Draft, Patch};
use crate::due::Due;
use crate::filter::FilterCommand;
use crate::follow_options::FollowWith;
use crate::ids::{PostId, SampleId, StoryId, UserId, UserRef};
use crate::lifetime::{Lifetime, MuteTime};
use crate::list::ListCommand;
use crate::marker::MarkersUpdate;
use crate::media::MediaCommand;
use crate::notification::NotificationId;
use crate::poll::PollChoices;
use crate::reaction::Reaction;
use crate::records::SampleBits;
use crate::remains::Remains;
use crate::schedule::ScheduleCommand;
use crate::settings::UserEdit;
use crate::tag::Tag;
use crate::text::{Bio, Handle, Label, Name, Note, PostText, SetName};

/// A request to change something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Register a user.
    Register {
        /// Unique among all users.
        handle: Handle,
        /// Shown beside posts.
        name: Name,
        /// Shown on the profile.
        bio: Bio,
    },
    /// Follow a user, or ask to if the user is locked.
    Follow {
        /// The follower.
        user: UserRef,
        /// The followed.
        other: UserRef,
    },
    /// Unfollow a user, or take a request to follow back.
    Unfollow {
        /// The follower.
        user: UserRef,
        /// The followed.
        other: UserRef,
    },
    /// Delete a post.
    DeletePost {
        /// The post.
        post: PostId,
    },
    /// Make two users friends.
    Befriend {
        /// One of the two users.
        user: UserRef,
        /// The other user.
        other: UserRef,
    },
    /// Remove a friendship.
    Unfriend {
        /// One of the two users.
        user: UserRef,
        /// The other user.
        other: UserRef,
    },
    /// Post a story, which friends can see until it expires.
    PostStory {
        /// The author.
        author: UserRef,
        /// Its text.
        text: PostText,
        /// Time until it expires.
        life: Lifetime,
    },
    /// Delete a live story.
    DeleteStory {
        /// The story.
        story: StoryId,
    },
    /// Record that `viewer` viewed a live story.
    ViewStory {
        /// The story.
        story: StoryId,
        /// The user who viewed it.
        viewer: UserRef,
    },
    /// Do some of what is due. Sent by the node, never by a user.
    DoDue(Due),
    /// Add a labelled drawing to those that others are compared with.
    AddSample {
        /// The set that it is added to; the first sample creates it.
        set: SetName,
        /// The name of what is drawn.
        label: Label,
        /// The drawing.
        bits: Box<SampleBits>,
    },
    /// Delete a sample.
    DeleteSample {
        /// The sample.
        sample: SampleId,
    },
    /// Delete a user. What they made is hidden from every read at once, and removed by [`Command::EraseUser`].
    DeleteUser {
        /// The user.
        user: UserRef,
    },
    /// Remove some of what is left of a deleted user. Sent by the node, never by a user.
    EraseUser {
        /// The deleted user.
        user: UserId,
        /// The rows to remove.
        remains: Remains,
        /// No such row has a smaller item: so that applying the command does not walk over all rows removed
        /// before.
        from: u64,
    },
    /// Follow many users, or ask those to who are locked: all of them, or none if one is refused.
    FollowMany {
        /// The follower.
        user: UserRef,
        /// The followed: at most [`limits::FOLLOW_MANY_MAX`](crate::limits::FOLLOW_MANY_MAX).
        others: Vec<UserRef>,
    },
    /// Change accounts, or what they grant.
    Account(AccountCommand),
    /// Block a user: ends follows and friendship between the two, and forbids new ones.
    Block {
        /// The user who blocks.
        user: UserRef,
        /// The blocked user.
        other: UserRef,
    },
    /// Unblock a user.
    Unblock {
        /// The user who blocked.
        user: UserRef,
        /// The blocked user.
        other: UserRef,
    },
    /// Mute a user, or change an existing mute.
    Mute {
        /// The user who mutes.
        user: UserRef,
        /// The muted user.
        other: UserRef,
        /// Whether mentions by the muted user are hidden too.
        mentions: bool,
        /// How long it lasts; `None` until it is ended.
        time: Option<MuteTime>,
    },
    /// Unmute a user.
    Unmute {
        /// The user who muted.
        user: UserRef,
        /// The muted user.
        other: UserRef,
    },
    /// Publish a post.
    Publish(Box<Draft>),
    /// Edit a post.
    Edit {
        /// The post.
        post: PostId,
        /// What changes.
        patch: Box<Patch>,
    },
    /// Favourite, bookmark or pin a post, or end that.
    React {
        /// The user.
        user: UserRef,
        /// The post.
        post: PostId,
        /// The kind of the reaction.
        reaction: Reaction,
        /// Whether the user reacts to it from now on.
        on: bool,
    },
    /// Clear all notifications of a user.
    ClearNotifications {
        /// The user.
        user: UserRef,
    },
    /// Dismiss a notification.
    DismissNotification {
        /// The user.
        user: UserRef,
        /// Its id.
        notification: NotificationId,
    },
    /// Change a profile and settings.
    EditUser(Box<UserEdit>),
    /// Set markers.
    SetMarkers(Box<MarkersUpdate>),
    /// Set the note of a user about another one, or about themselves.
    SetNote {
        /// The author.
        user: UserRef,
        /// The user whom it is about.
        other: UserRef,
        /// The new note; an empty one removes it.
        note: Note,
    },
    /// Accept or reject the request of a user to follow.
    AnswerRequest {
        /// The user who is asked.
        user: UserRef,
        /// The user who asks.
        other: UserRef,
        /// Whether `other` follows `user` from now on.
        accept: bool,
    },
    /// Show a hashtag on a profile, or end that.
    FeatureTag {
        /// The user.
        user: UserRef,
        /// The hashtag.
        tag: Tag,
        /// Whether the profile shows it from now on.
        on: bool,
    },
    /// Change the lists of a user.
    List(Box<ListCommand>),
    /// Change pictures.
    Media(MediaCommand),
    /// Change the filters of a user.
    Filter(Box<FilterCommand>),
    /// Follow a hashtag, or end that.
    FollowTag {
        /// The user.
        user: UserRef,
        /// The hashtag.
        tag: Tag,
        /// Whether public posts with it are at home of the user from now on.
        on: bool,
    },
    /// Vote in a poll.
    Vote {
        /// The user.
        user: UserRef,
        /// The post with the poll.
        post: PostId,
        /// The chosen options.
        choices: PollChoices,
    },
    /// Change scheduled posts.
    Schedule(ScheduleCommand),
    /// Record that a conversation was read, or remove it.
    Conversation(Box<ConversationUpdate>),
    /// Follow a user, or ask to if the user is locked, and choose options of the follow.
    FollowWith(Box<FollowWith>),
    /// Mute the thread of a post, or end that.
    MuteThread {
        /// The user who is not notified of the thread.
        user: UserRef,
        /// A post of the thread.
        post: PostId,
        /// Whether the thread is muted from now on.
        on: bool,
    },
    /// Mark a conversation as unread.
    UnreadConversation {
        /// The user.
        user: UserRef,
        /// The first post of the conversation.
        first: PostId,
        /// The newest post of it that the user saw then.
        last: PostId,
    },
}

/// A key under which a command is applied at most once: a retry with it returns the first result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idempotency {
    /// Digest of the caller's key and of its purpose.
    pub key: [u8; 16],
    /// Digest of the request's content: the same key with another content is refused.
    pub content: [u8; 8],
}

/// A command as the log keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The idempotency key, if the caller sent one.
    pub idempotency: Option<Idempotency>,
    /// The command.
    pub command: Command,
}

impl Command {
    /// Publishes a public, text-only post by the rule of the 2014 report: a text that begins with a mention is a reply to that
    /// user.
    #[must_use]
    pub fn post(author: UserRef, text: PostText) -> Self {
        Self::Publish(Box::new(Draft { opens_reply: true, ..Draft::new(author, text) }))
    }

    /// Edits a post.
    #[must_use]
    pub fn edit(post: PostId, patch: Patch) -> Self {
        Self::Edit { post, patch: Box::new(patch) }
    }

    /// Whether it only removes something.
    #[must_use]
    pub fn removes(&self) -> bool {
        match self {
            Self::Account(command) => return command.removes(),
            Self::Media(command) => return command.removes(),
            Self::Filter(command) => return command.removes(),
            Self::Schedule(command) => return command.removes(),
            Self::SetNote { note, .. } => return note.as_str().is_empty(),
            Self::List(command) => return command.change.removes(),
            Self::DoDue(due) => return due.work.removes(),
            _ => {}
        }
        matches!(
            self,
            Self::Unfollow { .. }
                | Self::DeletePost { .. }
                | Self::Unfriend { .. }
                | Self::DeleteStory { .. }
                | Self::DeleteSample { .. }
                | Self::DeleteUser { .. }
                | Self::EraseUser { .. }
                | Self::Unblock { .. }
                | Self::Unmute { .. }
                | Self::React { on: false, .. }
                | Self::ClearNotifications { .. }
                | Self::AnswerRequest { accept: false, .. }
                | Self::FeatureTag { on: false, .. }
                | Self::FollowTag { on: false, .. }
                | Self::MuteThread { on: false, .. }
        )
    }
}

impl Request {
    /// With the stamp it is applied at.
    #[must_use]
    pub fn stamped(self, stamp: Stamp) -> StampedCommand {
        StampedCommand { stamp, idempotency: self.idempotency, command: self.command }
    }
}

impl From<Command> for Request {
    fn from(command: Command) -> Self {
        Self { idempotency: None, command }
    }
}

/// A command with its stamp, ready to be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StampedCommand {
    /// The time of the command, and its position in the order of commands.
    pub stamp: Stamp,
    /// The idempotency key, if the caller sent one.
    pub idempotency: Option<Idempotency>,
    /// The command.
    pub command: Command,
}
