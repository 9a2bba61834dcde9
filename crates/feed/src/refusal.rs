//! The reasons for which a command, or its input, is refused. Stored with idempotency keys: variants are stored as
//! their position in the enum, new ones are added at the end, and none is removed or moved within a
//! format version.

use serde::{Deserialize, Serialize};

use crate::account_refusal::AccountRefusal;
use crate::filter_refusal::FilterRefusal;
use crate::limits;
use crate::media_refusal::MediaRefusal;
use crate::poll_refusal::{PollRefusal, ScheduleRefusal};

/// Why a command changed nothing. Not an error of the system, but for [`Refusal::Internal`]: the caller can correct the request.
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
    /// Another user has the handle.
    #[error("this handle is taken; choose another")]
    HandleTaken,
    /// No such user.
    #[error("there is no such user")]
    UserNotFound,
    /// No such post, or it was deleted.
    #[error("there is no such post")]
    PostNotFound,
    /// A user tried to follow themselves.
    #[error("users cannot follow themselves")]
    SelfFollow,
    /// The idempotency key was used for a different request.
    #[error("this idempotency key was used for a different request; use a new key")]
    KeyReused,
    /// All user ids are used.
    #[error("the server has the maximum number of users")]
    Full,
    /// A user tried to become a friend of themselves.
    #[error("users cannot befriend themselves")]
    SelfFriend,
    /// No such story, or it has expired, or the viewer may not see it.
    #[error("there is no such story")]
    StoryNotFound,
    /// The TTL of a story is too short or too long.
    #[error("a TTL is {} to {} seconds", limits::STORY_SECS_MIN, limits::STORY_SECS_MAX)]
    BadLifetime,
    /// The label of a sample is malformed.
    #[error("a label is 1 to {} bytes without control characters", limits::LABEL_BYTES_MAX)]
    BadLabel,
    /// The name of a set is malformed.
    #[error("a set is 1 to {} characters of a-z, A-Z, 0-9, _ and -", limits::SET_NAME_CHARS_MAX)]
    BadSet,
    /// No such sample, or it was deleted.
    #[error("there is no such sample")]
    SampleNotFound,
    /// The sample is built in.
    #[error("a built-in sample cannot be deleted")]
    SampleBuiltIn,
    /// The set has reached the maximum number of samples.
    #[error("a set has at most {} samples; delete some first", limits::SET_SAMPLES_MAX)]
    SetFull,
    /// The set has reached the maximum number of labels.
    #[error("a set has at most {} labels; use one of them", limits::SET_LABELS_MAX)]
    TooManyLabels,
    /// The number of sets has reached its maximum.
    #[error("there are at most {} sets; empty one of them first", limits::SAMPLE_SETS_MAX)]
    TooManySets,
    /// The user follows the maximum number of users.
    #[error("a user follows at most {} others; unfollow one of them first", limits::FOLLOWING_MAX)]
    TooManyFollows,
    /// One of the two users has the maximum number of friends.
    #[error(
        "a user has at most {} friends, and one of the two users has reached this limit",
        limits::FRIENDS_MAX
    )]
    TooManyFriends,
    /// The user has the maximum number of posts.
    #[error("a user has at most {} posts; delete some first", limits::USER_POSTS_MAX)]
    TooManyPosts,
    /// The post replied to does not exist, or was deleted.
    #[error("the post replied to does not exist or was deleted")]
    ParentNotFound,
    /// The memory for samples is full. Checked before a command is logged, never when it is applied.
    #[error("the server has no memory for more samples; delete some, or raise --sample-memory")]
    SamplesFull,
    /// [`limits::ERASING_USERS_MAX`] deleted users still have rows to remove.
    #[error("the server is still removing data of deleted users; try again in a second")]
    TooManyDeletions,
    /// A command about accounts was refused.
    #[error(transparent)]
    Account(AccountRefusal),
    /// A user tried to block themselves.
    #[error("users cannot block themselves")]
    SelfBlock,
    /// A user tried to mute themselves.
    #[error("users cannot mute themselves")]
    SelfMute,
    /// The user blocks the maximum number of users.
    #[error("a user blocks at most {} others; unblock one of them first", limits::BLOCKS_MAX)]
    TooManyBlocks,
    /// The user mutes the maximum number of users.
    #[error("a user mutes at most {} others; unmute one of them first", limits::MUTES_MAX)]
    TooManyMutes,
    /// The user blocks the other. For whoever is blocked there is no such user.
    #[error("the user blocks the other; unblock the other first")]
    Blocked,
    /// The time of a mute is too short or too long.
    #[error("a mute lasts 1 to {} seconds", limits::MUTE_SECS_MAX)]
    BadMuteTime,
    /// The content warning is malformed.
    #[error(
        "a warning is at most {} characters (at most {} bytes) without control characters",
        limits::POST_CHARS_MAX,
        limits::POST_BYTES_MAX
    )]
    BadWarning,
    /// The language is malformed.
    #[error("a language is a code of 2 or 3 letters")]
    BadLanguage,
    /// A user tried to pin a post of somebody else.
    #[error("users pin only posts of their own")]
    PinNotOwn,
    /// A user tried to pin a direct post.
    #[error("a direct post cannot be pinned")]
    PinDirect,
    /// The user pins the maximum number of posts.
    #[error("a user pins at most {} posts; unpin one of them first", limits::PINS_MAX)]
    TooManyPins,
    /// No such notification, or it was dismissed or cleared.
    #[error("there is no such notification")]
    NotificationNotFound,
    /// A field of a profile is malformed.
    #[error(
        "a field has a name, and name and value are at most {} characters (at most {} bytes) on one line",
        limits::FIELD_CHARS_MAX,
        limits::FIELD_BYTES_MAX
    )]
    BadField,
    /// A profile has too many fields.
    #[error("a profile has at most {} fields", limits::PROFILE_FIELDS_MAX)]
    TooManyFields,
    /// A marker has changed since it was read.
    #[error("the marker was changed by another request; read it and try again")]
    StaleMarker,
    /// A note is malformed.
    #[error(
        "a note is at most {} characters (at most {} bytes) without control characters",
        limits::NOTE_CHARS_MAX,
        limits::NOTE_BYTES_MAX
    )]
    BadNote,
    /// The user has the maximum number of notes.
    #[error(
        "a user has at most {} notes about others; remove one of them first",
        limits::NOTES_MAX
    )]
    TooManyNotes,
    /// The other user does not ask to follow the user.
    #[error("there is no such request to follow")]
    RequestNotFound,
    /// A user tried to boost a post that is not for everybody.
    #[error("only posts that everybody may see can be boosted")]
    BoostNotOpen,
    /// A hashtag is malformed.
    #[error(
        "a hashtag is letters, digits and _ with at least one letter, at most {} bytes",
        limits::TAG_BYTES_MAX
    )]
    BadTag,
    /// The profile shows the maximum number of hashtags.
    #[error(
        "a profile shows at most {} hashtags; remove one of them first",
        limits::FEATURED_TAGS_MAX
    )]
    TooManyTags,
    /// No such list of the user.
    #[error("there is no such list")]
    ListNotFound,
    /// The title of a list is malformed.
    #[error(
        "the title of a list is 1 to {} characters (at most {} bytes) on one line",
        limits::LIST_TITLE_CHARS_MAX,
        limits::LIST_TITLE_BYTES_MAX
    )]
    BadListTitle,
    /// The user has the maximum number of lists.
    #[error("a user has at most {} lists; delete one of them first", limits::LISTS_MAX)]
    TooManyLists,
    /// The list has the maximum number of members.
    #[error("a list has at most {} members; remove one of them first", limits::LIST_MEMBERS_MAX)]
    ListFull,
    /// A user tried to add somebody to a list whom they do not follow.
    #[error("a list has only users whom its owner follows; follow the user first")]
    NotFollowed,
    /// Of commands about pictures.
    #[error(transparent)]
    Media(MediaRefusal),
    /// Of commands about filters.
    #[error(transparent)]
    Filter(FilterRefusal),
    /// The user follows the maximum number of hashtags.
    #[error(
        "a user follows at most {} hashtags; unfollow one of them first",
        limits::FOLLOWED_TAGS_MAX
    )]
    TooManyFollowedTags,
    /// Of commands about polls.
    #[error(transparent)]
    Poll(PollRefusal),
    /// Of commands about scheduled posts.
    #[error(transparent)]
    Schedule(ScheduleRefusal),
    /// The user chose options of the maximum number of follows.
    #[error(
        "a user is notified of posts by at most {} users, and has options of at most {} follows; remove one of them first",
        limits::NOTIFYING_MAX,
        limits::FOLLOW_OPTIONS_MAX
    )]
    TooManyFollowOptions,
    /// The rules have an error: they panicked.
    #[error("the server failed at this change, which was not made, and has logged the cause")]
    Internal,
}

impl From<PollRefusal> for Refusal {
    fn from(refusal: PollRefusal) -> Self {
        Self::Poll(refusal)
    }
}

impl From<ScheduleRefusal> for Refusal {
    fn from(refusal: ScheduleRefusal) -> Self {
        Self::Schedule(refusal)
    }
}

impl From<MediaRefusal> for Refusal {
    fn from(refusal: MediaRefusal) -> Self {
        Self::Media(refusal)
    }
}

impl From<FilterRefusal> for Refusal {
    fn from(refusal: FilterRefusal) -> Self {
        Self::Filter(refusal)
    }
}

impl From<AccountRefusal> for Refusal {
    fn from(refusal: AccountRefusal) -> Self {
        Self::Account(refusal)
    }
}

impl Refusal {
    /// The stable name of this refusal in replies.
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
            Self::BadLifetime => "bad_ttl",
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
            Self::ParentNotFound => "in_reply_to_not_found",
            Self::SamplesFull => "samples_full",
            Self::TooManyDeletions => "too_many_deletions",
            Self::Account(refusal) => refusal.code(),
            Self::SelfBlock => "self_block",
            Self::SelfMute => "self_mute",
            Self::TooManyBlocks => "too_many_blocks",
            Self::TooManyMutes => "too_many_mutes",
            Self::Blocked => "blocked",
            Self::BadMuteTime => "bad_duration",
            Self::BadWarning => "bad_warning",
            Self::BadLanguage => "bad_language",
            Self::PinNotOwn => "pin_not_own",
            Self::PinDirect => "pin_direct",
            Self::TooManyPins => "too_many_pins",
            Self::NotificationNotFound => "notification_not_found",
            Self::BadField => "bad_field",
            Self::TooManyFields => "too_many_fields",
            Self::StaleMarker => "stale_marker",
            Self::BadNote => "bad_note",
            Self::TooManyNotes => "too_many_notes",
            Self::RequestNotFound => "request_not_found",
            Self::BoostNotOpen => "boost_not_open",
            Self::BadTag => "bad_tag",
            Self::TooManyTags => "too_many_tags",
            Self::ListNotFound => "list_not_found",
            Self::BadListTitle => "bad_title",
            Self::TooManyLists => "too_many_lists",
            Self::ListFull => "list_full",
            Self::NotFollowed => "not_followed",
            Self::Media(refusal) => refusal.code(),
            Self::Filter(refusal) => refusal.code(),
            Self::TooManyFollowedTags => "too_many_followed_tags",
            Self::Poll(refusal) => refusal.code(),
            Self::Schedule(refusal) => refusal.code(),
            Self::TooManyFollowOptions => "too_many_follow_options",
            Self::Internal => "internal",
        }
    }
}
