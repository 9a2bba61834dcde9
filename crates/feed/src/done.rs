//! The results of commands. Variants of [`Done`] are stored as those of [`Command`](crate::Command) are.

use serde::{Deserialize, Serialize};

use crate::accounts::AccountDone;
use crate::filter::{FilterId, FilterPartId};
use crate::ids::{PostId, SampleId, StoryId, UserId};
use crate::list::ListId;
use crate::media::MediaDone;
use crate::refusal::Refusal;
use crate::schedule::ScheduleDone;

/// The result of a command.
pub type Outcome = Result<Done, Refusal>;

/// The answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The result.
    pub outcome: Outcome,
    /// Whether an earlier command with the same idempotency key gave this outcome.
    pub replayed: bool,
}

/// The result of an applied command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Done {
    /// A user was registered.
    Registered(UserId),
    /// A profile was changed.
    Edited(UserId),
    /// The user follows the other; the follow may have existed before.
    Followed,
    /// The user does not follow the other; the follow may never have existed.
    Unfollowed,
    /// A post was published.
    Posted(PostId),
    /// A post was deleted.
    Deleted,
    /// The two users are friends; they may have been friends before.
    Befriended,
    /// The two users are not friends; they may never have been friends.
    Unfriended,
    /// A story was posted.
    StoryPosted {
        /// The story.
        story: StoryId,
        /// When it expires, in milliseconds since 1970: from then on no user can see it.
        expires_ms: u64,
    },
    /// A story was deleted.
    StoryDeleted,
    /// The story was viewed; the user may have viewed it before.
    StoryViewed,
    /// Some of what was due was done.
    DueDone,
    /// It is not due, or nothing of it is left.
    NotDue,
    /// A sample was added.
    SampleAdded {
        /// The sample.
        sample: SampleId,
    },
    /// A sample was deleted.
    SampleDeleted,
    /// The text of a post was changed.
    PostEdited,
    /// A user was deleted.
    UserDeleted,
    /// The result of a command about accounts.
    Account(AccountDone),
    /// The user blocks the other; they may have done so before.
    Blocked,
    /// The user does not block the other; they may never have done so.
    Unblocked,
    /// The user mutes the other.
    Muted,
    /// The user does not mute the other; they may never have done so.
    Unmuted,
    /// The user reacts to the post, or does not any more; that may have been so before.
    Reacted,
    /// All notifications of the user were cleared.
    NotificationsCleared,
    /// The notification was dismissed.
    NotificationDismissed,
    /// The markers are set.
    MarkersSet,
    /// The note is what it shall be.
    NoteSet,
    /// The user asks to follow the other, who is locked; they may have asked before.
    FollowRequested,
    /// The request is answered, and does not exist any more.
    RequestAnswered,
    /// The profile shows the hashtag, or not, as asked; that may have been so before.
    TagFeatured,
    /// The list was created, or is what it shall be.
    ListSaved(ListId),
    /// The list was deleted.
    ListDeleted,
    /// The users are members of the list, or not, as asked.
    ListMembersChanged,
    /// The result of a command about pictures.
    Media(MediaDone),
    /// The filter was created, or is what it shall be.
    FilterSaved(FilterId),
    /// The filter was deleted.
    FilterDeleted,
    /// The filter has the keyword, or the post.
    FilterPartSaved(FilterPartId),
    /// The user follows the hashtag, or not, as asked; that may have been so before.
    TagFollowed,
    /// The vote is counted.
    Voted,
    /// The result of a command about scheduled posts.
    Schedule(ScheduleDone),
    /// The conversation was read, or removed, as asked; or later posts of it had been before.
    ConversationUpdated,
    /// The thread is muted, or not, as asked; that may have been so before.
    ThreadMuted,
}
