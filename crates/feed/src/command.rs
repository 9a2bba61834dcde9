//! Commands and their results.
//!
//! [`Request`] is what the log stores, as postcard bytes. Variants of [`Command`], [`Done`](crate::Done) and
//! [`Refusal`](crate::Refusal) are stored as their position in the enum: new ones are added at the end, and none is
//! ever removed or moved within a format version.

use rows::Stamp;
use serde::{Deserialize, Serialize};

use crate::accounts::AccountCommand;
use crate::blocks::MuteTime;
use crate::conversations::ConversationUpdate;
use crate::due::Due;
use crate::erase::ErasurePhase;
use crate::feeds::{FeedDefinition, FeedName};
use crate::filters::FilterCommand;
use crate::follows::follow_options::FollowWith;
use crate::handle::Handle;
use crate::ids::{PostId, SampleId, StoryId, UserId, UserRef};
use crate::lists::ListCommand;
use crate::markers::MarkersUpdate;
use crate::media::MediaCommand;
use crate::notifications::NotificationId;
use crate::polls::PollChoices;
use crate::posts::content::Patch;
use crate::posts::draft::Draft;
use crate::reactions::Reaction;
use crate::samples::SampleBits;
use crate::schedule::ScheduleCommand;
use crate::stories::Lifetime;
use crate::tags::Tag;
use crate::text::{Bio, Label, Name, Note, PostText, SetName};
use crate::users::UserEdit;

/// A request to change stored facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Register a user.
    Register {
        /// Handle of the user, unique among all users.
        handle: Handle,
        /// Display name.
        name: Name,
        /// Text of the profile.
        bio: Bio,
    },
    /// Follow a user; if the user is locked, send a follow request instead.
    Follow {
        /// The follower.
        user: UserRef,
        /// The user to follow.
        other: UserRef,
    },
    /// Unfollow a user, or withdraw a follow request.
    Unfollow {
        /// The follower.
        user: UserRef,
        /// The user to unfollow.
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
    /// Post a story, visible to friends until it expires.
    PostStory {
        /// The author.
        author: UserRef,
        /// Text of the story.
        text: PostText,
        /// Time until the story expires.
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
    /// Process some due work. Sent by the node, never by a user.
    DoDue(Due),
    /// Add a labelled drawing to the samples of the recognizer.
    AddSample {
        /// Set of samples to add to; the first sample creates the set.
        set: SetName,
        /// Name of the drawn thing.
        label: Label,
        /// The drawing.
        bits: Box<SampleBits>,
    },
    /// Delete a sample.
    DeleteSample {
        /// The sample.
        sample: SampleId,
    },
    /// Delete a user. Reads hide the user's data at once; [`Command::EraseUser`] removes it.
    DeleteUser {
        /// The user.
        user: UserRef,
    },
    /// Remove some of the rows of a deleted user. Sent by the node, never by a user.
    EraseUser {
        /// The deleted user.
        user: UserId,
        /// Kind of the rows to remove.
        phase: ErasurePhase,
        /// Lower bound of the items of the rows to remove, so that the scan skips rows that earlier commands
        /// removed.
        from: u64,
    },
    /// Follow many users, with follow requests for locked ones. If one follow is refused, none is made.
    FollowMany {
        /// The follower.
        user: UserRef,
        /// The users to follow: at most [`limits::FOLLOW_MANY_MAX`](crate::limits::FOLLOW_MANY_MAX).
        others: Vec<UserRef>,
    },
    /// Change accounts or grants.
    Account(AccountCommand),
    /// Block a user. Ends follows and friendship between the two users, and forbids new ones.
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
        /// Whether to hide notifications by the muted user too.
        mentions: bool,
        /// Duration of the mute; `None` for a mute without end.
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
        /// The changes.
        patch: Box<Patch>,
    },
    /// Add or remove a reaction to a post.
    React {
        /// The user.
        user: UserRef,
        /// The post.
        post: PostId,
        /// Kind of the reaction.
        reaction: Reaction,
        /// Whether to add the reaction; `false` removes it.
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
        /// Id of the notification.
        notification: NotificationId,
    },
    /// Change the profile and settings of a user.
    EditUser(Box<UserEdit>),
    /// Set the read positions of timelines.
    SetMarkers(Box<MarkersUpdate>),
    /// Set a user's note about another user or about themselves.
    SetNote {
        /// The author.
        user: UserRef,
        /// The user described by the note.
        other: UserRef,
        /// New text of the note; an empty text removes the note.
        note: Note,
    },
    /// Accept or reject a follow request.
    AnswerRequest {
        /// The user who received the request.
        user: UserRef,
        /// The user who sent the request.
        other: UserRef,
        /// Whether to accept the request; `false` rejects it.
        accept: bool,
    },
    /// Add or remove a hashtag that a profile shows.
    FeatureTag {
        /// The user.
        user: UserRef,
        /// The hashtag.
        tag: Tag,
        /// Whether to add the hashtag; `false` removes it.
        on: bool,
    },
    /// Change the lists of a user.
    List(Box<ListCommand>),
    /// Add, change or remove pictures.
    Media(MediaCommand),
    /// Change the filters of a user.
    Filter(Box<FilterCommand>),
    /// Follow or unfollow a hashtag.
    FollowTag {
        /// The user.
        user: UserRef,
        /// The hashtag.
        tag: Tag,
        /// Whether to follow it; home then shows public posts with it.
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
    /// Mark a conversation as read, or hide it until it has a new post.
    Conversation(Box<ConversationUpdate>),
    /// Follow a user as [`Command::Follow`] does, and set options of the follow.
    FollowWith(Box<FollowWith>),
    /// Mute or unmute the thread of a post.
    MuteThread {
        /// The user, who gets no notifications from a muted thread.
        user: UserRef,
        /// A post of the thread.
        post: PostId,
        /// Whether to mute the thread; `false` unmutes it.
        on: bool,
    },
    /// Mark a conversation as unread.
    UnreadConversation {
        /// The user.
        user: UserRef,
        /// First post of the conversation.
        first: PostId,
        /// Newest post of the conversation that the user can see.
        last: PostId,
    },
    /// Make a change if a condition holds.
    If(Box<Condition>),
    /// Show an author no longer in ranked feeds, except posts from the home timeline, or show them again.
    NotInterested {
        /// The user.
        user: UserRef,
        /// The author.
        other: UserRef,
        /// Whether the user is not interested in the author; `false` if the user is again.
        on: bool,
    },
    /// Store or delete the definition of a ranked feed.
    SetFeed {
        /// Name of the feed.
        name: FeedName,
        /// The definition; `None` deletes it.
        definition: Option<FeedDefinition>,
    },
}

/// A digest of what readers may see of the record of a post, story or profile. Each edit changes the revision; counts,
/// and names of other users, do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision(pub u64);

/// A change that is refused if a condition does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// The author of the post or story; for any other user it does not exist. `None` accepts every author.
    pub author: Option<UserRef>,
    /// The accepted revisions of the changed thing. `None` accepts every revision.
    pub revisions: Option<Vec<Revision>>,
    /// The change.
    pub change: Conditional,
}

/// A change that may have a condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Conditional {
    /// Edit a post.
    Edit {
        /// The post.
        post: PostId,
        /// The changes.
        patch: Box<Patch>,
    },
    /// Delete a post.
    DeletePost {
        /// The post.
        post: PostId,
    },
    /// Delete a live story.
    DeleteStory {
        /// The story.
        story: StoryId,
    },
    /// Change the profile and settings of a user.
    EditUser(Box<UserEdit>),
    /// Delete a user.
    DeleteUser {
        /// The user.
        user: UserRef,
    },
}

impl From<Conditional> for Command {
    fn from(change: Conditional) -> Self {
        match change {
            Conditional::Edit { post, patch } => Self::Edit { post, patch },
            Conditional::DeletePost { post } => Self::DeletePost { post },
            Conditional::DeleteStory { story } => Self::DeleteStory { story },
            Conditional::EditUser(edit) => Self::EditUser(edit),
            Conditional::DeleteUser { user } => Self::DeleteUser { user },
        }
    }
}

impl Condition {
    /// The change without the condition.
    #[must_use]
    pub fn command(&self) -> Command {
        self.change.clone().into()
    }
}

/// A key under which a command is applied at most once: a retry with the same key returns the first result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idempotency {
    /// Digest of the caller's key and its purpose.
    pub key: [u8; 16],
    /// Digest of the request's content. The same key with different content is refused.
    pub content: [u8; 8],
}

/// A command as stored in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Idempotency key, if the caller sent one.
    pub idempotency: Option<Idempotency>,
    /// The command.
    pub command: Command,
}

impl Command {
    /// Publishes a public, text-only post. As in the 2014 report, a text that begins with a mention is a reply to
    /// that user.
    #[must_use]
    pub fn post(author: UserRef, text: PostText) -> Self {
        Self::Publish(Box::new(Draft { opens_reply: true, ..Draft::new(author, text) }))
    }

    /// Edits a post.
    #[must_use]
    pub fn edit(post: PostId, patch: Patch) -> Self {
        Self::Edit { post, patch: Box::new(patch) }
    }

    /// Whether the command only removes something.
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
            Self::If(condition) => return condition.command().removes(),
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
                | Self::NotInterested { on: false, .. }
                | Self::SetFeed { definition: None, .. }
        )
    }
}

impl Request {
    /// Adds the stamp at which the command is applied.
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
    /// Time of the command, and its position in the order of commands.
    pub stamp: Stamp,
    /// Idempotency key, if the caller sent one.
    pub idempotency: Option<Idempotency>,
    /// The command.
    pub command: Command,
}
