//! Table of refusals: the reasons for refusing a command or its input. Stored with idempotency keys as the position in
//! the table: none is removed or moved within a format version, and **a new one goes to the end of the table, whatever
//! its subject**. So the subjects in the comments are only those of the first refusals.

use serde::{Deserialize, Serialize};

use crate::limits;

rows::refusals! {
/// Reason for refusing a command, which then changes nothing. Except for [`Refusal::Internal`], the caller can correct
/// the request.
#[derive(Serialize, Deserialize)]
pub enum Refusal {
    // Users.
    BadHandle = Invalid("handle") "bad_handle":
        "a handle is 1 to {} characters of a-z, 0-9 and _", limits::HANDLE_CHARS_MAX;
    BadName = Invalid("name") "bad_name":
        "a name is at most {} characters on one line", limits::NAME_CHARS_MAX;
    BadBio = Invalid("bio") "bad_bio":
        "a bio is at most {} characters without control characters", limits::BIO_CHARS_MAX;
    BadField = Invalid("fields") "bad_field":
        "a field has a name, and name and value are at most {} characters (at most {} bytes) on one line",
        limits::FIELD_CHARS_MAX, limits::FIELD_BYTES_MAX;
    TooManyFields = Invalid("fields") "too_many_fields":
        "a profile has at most {} fields", limits::PROFILE_FIELDS_MAX;
    HandleTaken = Conflict("handle") "handle_taken": "this handle is taken; choose another";
    UserNotFound = NotFound("user") "user_not_found": "there is no such user";
    OtherNotFound = NotFound("other") "user_not_found": "there is no such user";
    ViewerNotFound = NotFound("viewer") "user_not_found": "there is no such user";
    Full = Full "full": "the server has the maximum number of users";
    TooManyDeletions = Busy "too_many_deletions":
        "the server is still removing data of deleted users; try again in a second";
    KeyReused = Invalid("Idempotency-Key") "idempotency_key_reused":
        "this idempotency key was used for a different request; use a new key";

    // Relations of users.
    SelfFollow = Invalid("other") "self_follow": "users cannot follow themselves";
    SelfFriend = Invalid("other") "self_friend": "users cannot befriend themselves";
    SelfBlock = Invalid("other") "self_block": "users cannot block themselves";
    SelfMute = Invalid("other") "self_mute": "users cannot mute themselves";
    /// The blocked user gets `OtherNotFound` instead.
    Blocked = Invalid("other") "blocked": "the user blocks the other; unblock the other first";
    BadMuteTime = Invalid("ttl_s") "bad_duration":
        "a mute lasts 1 to {} seconds", limits::MUTE_SECS_MAX;
    RequestNotFound = NotFound "request_not_found": "there is no such request to follow";
    TooManyFollows = Invalid "too_many_follows":
        "a user follows at most {} others; unfollow one of them first", limits::FOLLOWING_MAX;
    TooManyFollowOptions = Invalid "too_many_follow_options":
        "a user is notified of posts by at most {} users, and has options of at most {} follows; remove one of them first",
        limits::NOTIFYING_MAX, limits::FOLLOW_OPTIONS_MAX;
    TooManyFriends = Invalid "too_many_friends":
        "a user has at most {} friends, and one of the two users has reached this limit", limits::FRIENDS_MAX;
    TooManyBlocks = Invalid "too_many_blocks":
        "a user blocks at most {} others; unblock one of them first", limits::BLOCKS_MAX;
    TooManyMutes = Invalid "too_many_mutes":
        "a user mutes at most {} others; unmute one of them first", limits::MUTES_MAX;
    BadNote = Invalid("note") "bad_note":
        "a note is at most {} characters (at most {} bytes) without control characters",
        limits::NOTE_CHARS_MAX, limits::NOTE_BYTES_MAX;
    TooManyNotes = Invalid "too_many_notes":
        "a user has at most {} notes about others; remove one of them first", limits::NOTES_MAX;

    // Posts and reactions.
    BadText = Invalid("text") "bad_text":
        "a text is 1 to {} characters (at most {} bytes) without control characters",
        limits::POST_CHARS_MAX, limits::POST_BYTES_MAX;
    BadWarning = Invalid("warning") "bad_warning":
        "a warning is at most {} characters (at most {} bytes) without control characters",
        limits::POST_CHARS_MAX, limits::POST_BYTES_MAX;
    BadLanguage = Invalid("language") "bad_language": "a language is a code of 2 or 3 letters";
    /// Also if the post was deleted or the viewer may not see it.
    PostNotFound = NotFound "post_not_found": "there is no such post";
    ParentNotFound = Invalid("in_reply_to_id") "in_reply_to_not_found":
        "the post replied to does not exist, was deleted, or is hidden from the author";
    TooManyPosts = Invalid "too_many_posts":
        "a user has at most {} posts; delete some first", limits::USER_POSTS_MAX;
    BoostNotOpen = Invalid "boost_not_open": "only posts that everybody may see can be boosted";
    PinNotOwn = Invalid "pin_not_own": "users pin only posts of their own";
    PinDirect = Invalid "pin_direct": "a direct post cannot be pinned";
    TooManyPins = Invalid "too_many_pins":
        "a user pins at most {} posts; unpin one of them first", limits::PINS_MAX;

    // Hashtags.
    BadTag = Invalid("tag") "bad_tag":
        "a hashtag is letters, digits and _ with at least one letter, at most {} bytes", limits::TAG_BYTES_MAX;
    TooManyTags = Invalid "too_many_tags":
        "a profile shows at most {} hashtags; remove one of them first", limits::FEATURED_TAGS_MAX;
    TooManyFollowedTags = Invalid "too_many_followed_tags":
        "a user follows at most {} hashtags; unfollow one of them first", limits::FOLLOWED_TAGS_MAX;

    // Reading.
    /// Also if the notification was dismissed or cleared.
    NotificationNotFound = NotFound "notification_not_found": "there is no such notification";
    StaleMarker = Conflict "stale_marker":
        "the marker was changed by another request; read it and try again";
    ListNotFound = NotFound "list_not_found": "there is no such list";
    BadListTitle = Invalid("title") "bad_title":
        "the title of a list is 1 to {} characters (at most {} bytes) on one line",
        limits::LIST_TITLE_CHARS_MAX, limits::LIST_TITLE_BYTES_MAX;
    TooManyLists = Invalid "too_many_lists":
        "a user has at most {} lists; delete one of them first", limits::LISTS_MAX;
    ListFull = Invalid "list_full":
        "a list has at most {} members; remove one of them first", limits::LIST_MEMBERS_MAX;
    NotFollowed = Invalid "not_followed":
        "a list has only users whom its owner follows; follow the user first";
    /// Also for a missing keyword or filtered post.
    FilterNotFound = NotFound "filter_not_found": "there is no such filter";
    BadFilterText = Invalid "bad_filter_text":
        "the title of a filter, and a keyword, is 1 to {} characters (at most {} bytes) on one line",
        limits::FILTER_TEXT_CHARS_MAX, limits::FILTER_TEXT_BYTES_MAX;
    NoFilterContext = Invalid "no_filter_context":
        "a filter is for at least one of home, notifications, public, thread and account";
    BadFilterTime = Invalid "bad_filter_time":
        "a filter expires after at most {} seconds", limits::FILTER_SECS_MAX;
    TooManyFilters = Invalid "too_many_filters":
        "a user has at most {} filters; delete one of them first", limits::FILTERS_MAX;
    TooManyKeywords = Invalid "too_many_keywords":
        "the filters of a user have at most {} keywords; remove one of them first", limits::FILTER_KEYWORDS_MAX;
    TooManyFilteredPosts = Invalid "too_many_filtered_posts":
        "the filters of a user have at most {} posts; remove one of them first", limits::FILTERED_POSTS_MAX;

    // Pictures.
    /// Also for a picture of another user.
    MediaNotFound = Invalid("media_ids") "media_not_found": "there is no such picture";
    MediaAttached = Invalid("media_ids") "media_attached":
        "the picture is in use; one that is in use cannot be changed or used again";
    TooManyMedia = Invalid("media_ids") "too_many_media":
        "a post has at most {} pictures", limits::POST_MEDIA_MAX;
    TooManyUnattachedMedia = Invalid "too_many_unattached_media":
        "a user has at most {} pictures that no post has; post or delete one of them first",
        limits::UNATTACHED_MEDIA_MAX;
    TooManyMediaOfUser = Invalid "too_many_media_of_user":
        "a user has at most {} pictures, of {} GiB together; delete some of them first",
        limits::USER_MEDIA_MAX, limits::USER_MEDIA_BYTES_MAX >> 30;
    BadDescription = Invalid("description") "bad_description":
        "a description is at most {} characters (at most {} bytes) without control characters",
        limits::DESCRIPTION_CHARS_MAX, limits::DESCRIPTION_BYTES_MAX;
    BadFocus = Invalid("focus") "bad_focus": "a focus is two numbers between -1.0 and 1.0";

    // Polls and scheduled posts.
    /// Also if the user may not see the post.
    PollNotFound = NotFound "poll_not_found": "there is no such poll";
    BadPollOption = Invalid "bad_poll_option":
        "an option of a poll is 1 to {} characters (at most {} bytes) on one line",
        limits::POLL_OPTION_CHARS_MAX, limits::POLL_OPTION_BYTES_MAX;
    BadPollOptions = Invalid "bad_poll_options":
        "a poll has {} to {} different options", limits::POLL_OPTIONS_MIN, limits::POLL_OPTIONS_MAX;
    BadPollTime = Invalid "bad_poll_time":
        "a poll ends after {} to {} seconds", limits::POLL_SECS_MIN, limits::POLL_SECS_MAX;
    PollWithMedia = Invalid "poll_with_media": "a post has a poll or pictures, not both";
    OwnPoll = Invalid "own_poll": "users cannot vote in their own polls";
    PollEnded = Invalid "poll_ended": "the poll has already ended";
    AlreadyVoted = Invalid "already_voted": "you have already voted in this poll";
    BadChoice = Invalid "bad_choice": "choose one of the options of the poll";
    OneChoice = Invalid "one_choice": "choose only one option of this poll";
    ScheduledNotFound = NotFound "scheduled_not_found": "there is no such scheduled post";
    BadScheduledTime = Invalid "bad_scheduled_time":
        "a post is scheduled at least 5 minutes and at most 10 years ahead";
    TooManyScheduled = Invalid "too_many_scheduled":
        "a user has at most {} scheduled posts; cancel one of them first", limits::SCHEDULED_MAX;

    // Stories.
    /// Also if the story has expired or the viewer may not see it.
    StoryNotFound = NotFound "story_not_found": "there is no such story";
    BadLifetime = Invalid("ttl_s") "bad_ttl":
        "a TTL is {} to {} seconds", limits::STORY_SECS_MIN, limits::STORY_SECS_MAX;

    // Samples of the recognizer.
    BadLabel = Invalid("label") "bad_label":
        "a label is 1 to {} bytes without control characters", limits::LABEL_BYTES_MAX;
    BadSet = Invalid("set") "bad_set":
        "a set is 1 to {} characters of a-z, A-Z, 0-9, _ and -", limits::SET_NAME_CHARS_MAX;
    SampleNotFound = NotFound "sample_not_found": "there is no such sample";
    SampleBuiltIn = Conflict "sample_built_in": "a built-in sample cannot be deleted";
    SetFull = Full("set") "set_full":
        "a set has at most {} samples; delete some first", limits::SET_SAMPLES_MAX;
    TooManyLabels = Full("label") "too_many_labels":
        "a set has at most {} labels; use one of them", limits::SET_LABELS_MAX;
    TooManySets = Full("set") "too_many_sets":
        "there are at most {} sets; empty one of them first", limits::SAMPLE_SETS_MAX;
    /// Checked before a command is logged, never when it is applied.
    SamplesFull = Full "samples_full":
        "the server has no memory for more samples; delete some, or raise --sample-memory";

    // Accounts.
    BadEmail = Invalid("email") "bad_email":
        "an e-mail address is NAME@HOST with at most {} bytes", limits::EMAIL_BYTES_MAX;
    /// Not caused by input of clients.
    BadPasswordHash = Invalid "bad_password_hash": "the password hash is malformed";
    EmailTaken = Conflict("email") "email_taken": "this e-mail address is taken";
    NoAccount = Invalid "no_account": "the user has no account";
    HasAccount = Invalid "has_account": "the user has an account already";
    /// The account is pending or disabled.
    AccountNotActive = Invalid "account_not_active": "the account is not active";
    /// The password changed after the caller verified it.
    PasswordChanged = Invalid "password_changed": "the password has changed";
    BadInvite = Invalid("invite_code") "bad_invite":
        "the invite is not valid, or it was used already";
    TooManyInvites = Invalid "too_many_invites":
        "there are {} invites, the maximum; wait until one expires", limits::INVITES_MAX;
    BadAppName = Invalid "bad_app_name":
        "the name of an app is 1 to {} characters on one line", limits::APP_NAME_CHARS_MAX;
    BadRedirectUri = Invalid "bad_redirect_uri":
        "an app has 1 to {} redirect URIs without a fragment, of at most {} bytes: an http or https URL, NAME:// with a \
         name of the app, or a scheme with a dot",
        limits::REDIRECT_URIS_MAX, limits::URI_BYTES_MAX;
    BadWebsite = Invalid "bad_website":
        "a website is an http or https URL of at most {} bytes", limits::URI_BYTES_MAX;
    BadScope = Invalid "bad_scope": "the scope is unknown, or the app has not registered it";
    AppNotFound = NotFound "app_not_found": "there is no such app";
    BadCode = Invalid "bad_code":
        "the authorization code is not valid for this request, or it has expired";
    /// Random secrets never collide.
    SecretUsed = Invalid "secret_used": "the secret is in use";

    /// The rules panicked.
    Internal = Internal "internal":
        "the server failed at this change, which was not made, and has logged the cause";
    TooManyTokens = Invalid "too_many_tokens":
        "applications have at most {} tokens of a user; revoke one of them first", limits::USER_TOKENS_MAX;
    PreconditionFailed = Precondition "precondition_failed":
        "the condition of If-Match or If-None-Match is false; nothing was changed";
    QuotedNotFound = Invalid("quote_id") "quoted_not_found":
        "the post to be quoted does not exist, was deleted, or is hidden from the author";
    QuoteNotAllowed = Invalid("quote_id") "quote_not_allowed": "its author does not allow to quote this post";
    SelfNotInterested = Invalid("other") "self_not_interested":
        "ranked feeds never show a user's own posts";
    TooManyNotInterested = Invalid "too_many_not_interested":
        "a user is not interested in at most {} authors; remove one of them first", limits::NOT_INTERESTED_MAX;
    BadFeedName = Invalid("name") "bad_feed_name":
        "the name of a feed is 1 to {} characters of a-z, 0-9 and -", limits::FEED_NAME_CHARS_MAX;
    FeedTooLong = Invalid "feed_too_long":
        "the definition of a feed has at most {} bytes, with all fields", limits::FEED_BYTES_MAX;
    TooManyFeeds = Full "too_many_feeds":
        "there are at most {} stored feeds; delete one of them first", limits::STORED_FEEDS_MAX;
}
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rows::RefusalClass;

    use super::Refusal;

    /// Positions are stored, so the list may only grow at the end.
    #[test]
    fn every_refusal_keeps_its_position() {
        let expect = "bad_handle(handle) bad_name(name) bad_bio(bio) bad_field(fields) too_many_fields(fields) \
            handle_taken(handle) user_not_found(user) user_not_found(other) user_not_found(viewer) full \
            too_many_deletions idempotency_key_reused(Idempotency-Key) self_follow(other) self_friend(other) \
            self_block(other) self_mute(other) blocked(other) bad_duration(ttl_s) request_not_found \
            too_many_follows too_many_follow_options too_many_friends too_many_blocks too_many_mutes bad_note(note) \
            too_many_notes bad_text(text) bad_warning(warning) bad_language(language) post_not_found \
            in_reply_to_not_found(in_reply_to_id) too_many_posts boost_not_open pin_not_own pin_direct too_many_pins \
            bad_tag(tag) too_many_tags too_many_followed_tags notification_not_found stale_marker list_not_found \
            bad_title(title) too_many_lists list_full not_followed filter_not_found bad_filter_text \
            no_filter_context bad_filter_time too_many_filters too_many_keywords too_many_filtered_posts \
            media_not_found(media_ids) media_attached(media_ids) too_many_media(media_ids) too_many_unattached_media \
            too_many_media_of_user bad_description(description) bad_focus(focus) poll_not_found bad_poll_option \
            bad_poll_options bad_poll_time poll_with_media own_poll poll_ended already_voted bad_choice one_choice \
            scheduled_not_found bad_scheduled_time too_many_scheduled story_not_found bad_ttl(ttl_s) \
            bad_label(label) bad_set(set) sample_not_found sample_built_in set_full(set) too_many_labels(label) \
            too_many_sets(set) samples_full bad_email(email) bad_password_hash email_taken(email) no_account \
            has_account account_not_active password_changed bad_invite(invite_code) too_many_invites bad_app_name \
            bad_redirect_uri bad_website bad_scope app_not_found bad_code secret_used internal \
            too_many_tokens precondition_failed quoted_not_found(quote_id) quote_not_allowed(quote_id) \
            self_not_interested(other) too_many_not_interested bad_feed_name(name) feed_too_long too_many_feeds";
        let field = |refusal: &Refusal| refusal.field().map(|field| format!("({field})"));
        let now: Vec<_> = Refusal::ALL
            .iter()
            .map(|refusal| refusal.code().to_owned() + &field(refusal).unwrap_or_default())
            .collect();
        assert_eq!(now, expect.split(' ').collect::<Vec<_>>());
        for (position, refusal) in Refusal::ALL.iter().enumerate() {
            assert_eq!(*refusal as usize, position, "{refusal:?}");
        }
    }

    #[test]
    fn refusals_with_one_code_differ_in_their_field_alone() {
        let mut by_code = BTreeMap::<&str, (RefusalClass, String)>::new();
        let mut fields = std::collections::BTreeSet::new();
        for refusal in Refusal::ALL {
            let (code, sentence) = (refusal.code(), refusal.to_string());
            assert!(code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{code}");
            assert!(sentence.starts_with(|first: char| first.is_lowercase()), "{sentence}");
            assert!(fields.insert((code, refusal.field())), "{code} is there twice");
            let first = by_code.entry(code).or_insert((refusal.class(), sentence.clone()));
            assert_eq!(*first, (refusal.class(), sentence), "{code}");
        }
    }
}
