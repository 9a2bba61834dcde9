//! Results of commands. Variants of [`Done`] are stored by their position, as in [`Command`](crate::Command).

use serde::{Deserialize, Serialize};

use crate::accounts::AccountDone;
use crate::filters::{FilterId, FilterPartId};
use crate::ids::{PostId, SampleId, StoryId, UserId};
use crate::lists::ListId;
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
    /// Whether the outcome is that of an earlier command with the same idempotency key.
    pub replayed: bool,
}

/// The result of a successful command.
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
        /// Time of expiry, in milliseconds since 1970. No user can see the story from then on.
        expires_ms: u64,
    },
    /// A story was deleted.
    StoryDeleted,
    /// The story was viewed; the user may have viewed it before.
    StoryViewed,
    /// Some due work was done.
    DueDone,
    /// The work is not due, or already done.
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
    /// The user blocks the other; the block may have existed before.
    Blocked,
    /// The user does not block the other; the block may never have existed.
    Unblocked,
    /// The user mutes the other.
    Muted,
    /// The user does not mute the other; the mute may never have existed.
    Unmuted,
    /// The reaction was added or removed, or already in the wanted state.
    Reacted,
    /// All notifications of the user were cleared.
    NotificationsCleared,
    /// The notification was dismissed.
    NotificationDismissed,
    /// The markers were set.
    MarkersSet,
    /// The note was set or removed.
    NoteSet,
    /// The user asks the other, who is locked, for a follow; the request may have existed before.
    FollowRequested,
    /// The follow request was accepted or rejected.
    RequestAnswered,
    /// The hashtag was added to or removed from the profile, or already in the wanted state.
    TagFeatured,
    /// The list was created or changed.
    ListSaved(ListId),
    /// The list was deleted.
    ListDeleted,
    /// The members were added to or removed from the list.
    ListMembersChanged,
    /// The result of a command about pictures.
    Media(MediaDone),
    /// The filter was created or changed.
    FilterSaved(FilterId),
    /// The filter was deleted.
    FilterDeleted,
    /// The filter has the keyword or post.
    FilterPartSaved(FilterPartId),
    /// The hashtag was followed or unfollowed, or already in the wanted state.
    TagFollowed,
    /// The vote was counted.
    Voted,
    /// The result of a command about scheduled posts.
    Schedule(ScheduleDone),
    /// The conversation was marked as read or unread, or removed; the marks may be unchanged.
    ConversationUpdated,
    /// The thread was muted or unmuted, or already in the wanted state.
    ThreadMuted,
    /// The user's interest in an author was changed, or already in the wanted state.
    InterestSet,
    /// The definition of a feed was stored or deleted, or did not exist.
    FeedSet,
}
