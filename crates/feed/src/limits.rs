//! All limits on input and pages. A limit is checked only where text becomes a type of [`crate::text`], or where a page
//! is requested.

/// Maximum number of characters of a handle (ASCII, so also bytes).
pub const HANDLE_CHARS_MAX: usize = 30;
/// Maximum number of user-perceived characters (grapheme clusters) of a display name.
pub const NAME_CHARS_MAX: usize = 50;
/// Maximum size of a display name, in bytes.
pub const NAME_BYTES_MAX: usize = 400;
/// Maximum number of user-perceived characters of a biography.
pub const BIO_CHARS_MAX: usize = 500;
/// Maximum size of a biography, in bytes.
pub const BIO_BYTES_MAX: usize = 4_000;
/// Maximum number of fields of a profile.
pub const PROFILE_FIELDS_MAX: usize = 4;
/// Maximum number of user-perceived characters of the name or the value of a profile field.
pub const FIELD_CHARS_MAX: usize = 255;
/// Maximum size of the name or the value of a profile field, in bytes.
pub const FIELD_BYTES_MAX: usize = 768;
/// Maximum number of user-perceived characters of the text of a post or story, after trimming.
pub const POST_CHARS_MAX: usize = 500;
/// Number of characters that a URL of any length in a post or story counts as, as in Mastodon.
pub const URL_CHARS: usize = 23;
/// Longest domain of a mention with its port, in bytes.
pub const DOMAIN_BYTES_MAX: usize = 259;
/// Maximum size of the text of a post or story, in bytes. Needed in addition to the limit on characters: a grapheme
/// cluster may be long.
pub const POST_BYTES_MAX: usize = 8_000;
/// Maximum number of user-perceived characters of a note about a user.
pub const NOTE_CHARS_MAX: usize = 2_000;
/// Maximum size of a note, in bytes.
pub const NOTE_BYTES_MAX: usize = 8_000;
/// Maximum number of notes of one user: 8 MB of texts that only this user reads.
pub const NOTES_MAX: u32 = 1_000;
/// Longest accepted language tag, in bytes, including the subtags that are cut off: RFC 5646 recommends room for 35.
pub const LANGUAGE_BYTES_MAX: usize = 35;
/// Maximum number of mentions of a post: a mention in the text has at least two characters, and one more mention is
/// that of the author of the parent post.
pub const POST_MENTIONS_MAX: usize = POST_CHARS_MAX / 2 + 1;
/// Longest hashtag in lower case, in bytes, without its `#`.
pub const TAG_BYTES_MAX: usize = 200;
/// Maximum number of distinct hashtags of a post that are indexed, with two rows each. Later ones are plain text.
pub const POST_TAGS_MAX: usize = 30;
/// Maximum number of hashtags that a profile shows, as in Mastodon.
pub const FEATURED_TAGS_MAX: usize = 10;
/// Maximum number of hashtags that a user follows. A page of home reads a few posts of each.
pub const FOLLOWED_TAGS_MAX: usize = 30;
/// Maximum number of user-perceived characters of the title of a list.
pub const LIST_TITLE_CHARS_MAX: usize = 255;
/// Maximum size of the title of a list, in bytes.
pub const LIST_TITLE_BYTES_MAX: usize = 1_024;
/// Maximum number of lists of one user, as in Mastodon. An unfollow removes two rows from each of them.
pub const LISTS_MAX: usize = 50;
/// Maximum number of members of a list. A page of its timeline does a short read for each member, and deleting the list
/// removes two rows for each.
pub const LIST_MEMBERS_MAX: usize = 1_000;
/// Maximum number of members that one command adds to or removes from a list.
pub const LIST_CHANGED_MAX: usize = 100;
/// Maximum number of user-perceived characters of the title or a keyword of a filter.
pub const FILTER_TEXT_CHARS_MAX: usize = 100;
/// Maximum size of the title or a keyword of a filter, in bytes.
pub const FILTER_TEXT_BYTES_MAX: usize = 400;
/// Maximum number of filters of one user, stored in one row. Each status of a page may name all of them.
pub const FILTERS_MAX: usize = 50;
/// Maximum number of keywords in all filters of one user. Each status of a page is searched for all of them.
pub const FILTER_KEYWORDS_MAX: usize = 100;
/// Maximum number of keywords that one command adds, changes or removes.
pub const KEYWORD_CHANGES_MAX: usize = 2 * FILTER_KEYWORDS_MAX;
/// Maximum number of posts in all filters of one user.
pub const FILTERED_POSTS_MAX: usize = 100;
/// Longest time until a filter expires, in seconds: 10 years.
pub const FILTER_SECS_MAX: u64 = 315_360_000;
/// Maximum size of the row of a user's filters, in bytes.
pub const FILTERS_BYTES_MAX: usize = FILTERS_MAX * (FILTER_TEXT_BYTES_MAX + 40)
    + FILTER_KEYWORDS_MAX * (FILTER_TEXT_BYTES_MAX + 16)
    + FILTERED_POSTS_MAX * 20;
/// Maximum number of conversations that a user has marked as read or removed, stored in one row. Those with the newest
/// posts are kept.
pub const CONVERSATION_MARKS_MAX: usize = 400;
/// Maximum size of a user's marks of conversations, in bytes: two ids and a byte each.
pub const CONVERSATIONS_BYTES_MAX: usize = 24 * CONVERSATION_MARKS_MAX;
/// Maximum number of stored earlier versions of a post.
pub const VERSIONS_MAX: usize = 100;
/// Maximum size of the stored earlier versions of a post, in bytes: enough for two versions of the maximum length.
pub const VERSIONS_BYTES_MAX: usize = 48 << 10;
/// Minimum number of options of a poll.
pub const POLL_OPTIONS_MIN: usize = 2;
/// Maximum number of options of a poll, as in Mastodon.
pub const POLL_OPTIONS_MAX: usize = 4;
/// Maximum number of user-perceived characters of a poll option, as in Mastodon.
pub const POLL_OPTION_CHARS_MAX: usize = 50;
/// Maximum size of a poll option, in bytes.
pub const POLL_OPTION_BYTES_MAX: usize = 400;
/// Shortest duration of a poll, in seconds: 5 minutes, as in Mastodon.
pub const POLL_SECS_MIN: u64 = 300;
/// Longest duration of a poll, in seconds: a month, as in Mastodon.
pub const POLL_SECS_MAX: u64 = 2_629_746;
/// Maximum number of voters that one command notifies of the end of a poll.
pub const POLL_NOTICES_MAX: usize = 64;
/// Maximum number of users whom one command notifies of an edit of a post.
pub const EDIT_NOTICES_MAX: usize = 64;
/// Maximum number of quotes of an edited post whose authors are notified: the newest. Each command reads them all.
pub const EDIT_NOTICES_QUOTES: usize = 1_000;
/// Time after an edit of a post in which a further edit starts no notifications, in milliseconds: an hour.
pub const EDIT_NOTICES_QUIET_MS: u64 = 3_600_000;
/// Maximum number of users whose new posts notify one user. A page of notifications does a short read for each.
pub const NOTIFYING_MAX: usize = 100;
/// Maximum number of follows with options of one user, stored in one row.
pub const FOLLOW_OPTIONS_MAX: usize = 500;
/// Maximum size of the row of a user's follow options, in bytes: an id, a byte for each option, and stamps.
pub const FOLLOW_OPTIONS_BYTES_MAX: usize = 7 * FOLLOW_OPTIONS_MAX + 10 * NOTIFYING_MAX + 4;
/// Maximum number of muted threads of one user, stored in one row. Muting another replaces the earliest mute.
pub const MUTED_THREADS_MAX: usize = 500;
/// Maximum size of the row of a user's muted threads, in bytes.
pub const MUTED_THREADS_BYTES_MAX: usize = 10 * MUTED_THREADS_MAX + 4;
/// Maximum number of scheduled posts of one user, as in Mastodon. Scheduling a post reads the ids of all.
pub const SCHEDULED_MAX: usize = 300;
/// Shortest time ahead to schedule a post for, in milliseconds: 5 minutes, as in Mastodon.
pub const SCHEDULED_MS_MIN: u64 = 300_000;
/// Longest time ahead to schedule a post for, in milliseconds: 10 years.
pub const SCHEDULED_MS_MAX: u64 = 315_360_000_000;
/// Maximum number of pictures of a post, as in Mastodon.
pub const POST_MEDIA_MAX: usize = 4;
/// Maximum number of user-perceived characters of the description of a picture, as in Mastodon.
pub const DESCRIPTION_CHARS_MAX: usize = 1_500;
/// Maximum size of the description of a picture, in bytes.
pub const DESCRIPTION_BYTES_MAX: usize = 6_000;
/// Maximum number of unattached pictures of one user.
pub const UNATTACHED_MEDIA_MAX: u32 = 64;
/// Time after which an unattached picture is removed, in milliseconds: a day.
pub const UNATTACHED_MS: u64 = 86_400_000;
/// Maximum number of pictures of one user.
pub const USER_MEDIA_MAX: u32 = 100_000;
/// Maximum size of the picture files of one user, in bytes: 8 GiB.
pub const USER_MEDIA_BYTES_MAX: u64 = 8 << 30;
/// Shortest lifetime of a story, in seconds.
pub const STORY_SECS_MIN: u64 = 1;
/// Longest lifetime of a story, in seconds: 7 days.
pub const STORY_SECS_MAX: u64 = 604_800;
/// Default lifetime of a story, in seconds: 24 hours.
pub const STORY_SECS_DEFAULT: u64 = 86_400;
/// Default number of items on a page.
pub const PAGE_DEFAULT: usize = 20;
/// Maximum number of items on a page.
pub const PAGE_MAX: usize = 100;
/// Maximum number of handles that a search for users reads. The limit includes handles that are skipped because their
/// users are deleted or hidden from the reader.
pub const SEARCHED_MAX: usize = 4_096;
/// Maximum number of users or hashtags that a search finds by approximate names.
pub const SIMILAR_MAX: usize = 10;
/// Maximum number of items on a page of mentions.
pub const MENTIONS_PAGE_MAX: usize = 50;
/// Maximum number of ancestors of a post on the page of its thread: the nearest. Each costs one row read.
pub const THREAD_ANCESTORS_MAX: usize = 40;
/// Depth of replies below a post on the page of its thread; 1 is a reply to the post itself. A page does a short read
/// for each post on it and one for each level.
pub const THREAD_DEPTH_MAX: usize = 20;
/// Maximum number of users: ids have 32 bits, and the last one is a reserved sentinel.
pub const USERS_MAX: u32 = u32::MAX - 1;
/// Maximum number of users that one user follows: as in Mastodon, and above the 5,000 of Twitter. Building a home
/// timeline that is not in memory reads a row for each followed user, and does a short read for each whose posts are
/// not in memory: 3 ms and 32 ms at the limit. A timeline in memory takes 16 bytes for each, 120 kB at the limit;
/// inserting or dropping it holds its shard's lock for about 1 ms.
pub const FOLLOWING_MAX: u32 = 7_500;
/// Maximum number of users that one command follows.
pub const FOLLOW_MANY_MAX: usize = 1_000;
/// Maximum number of friends of one user. A page of stories reads the newest stories of each friend, and a new story
/// wakes at most this many live streams.
pub const FRIENDS_MAX: u32 = 5_000;
/// Maximum number of users that one user blocks. Reads look up single blocks, so their cost depends neither on the
/// number of users that a user blocks nor on the number of users that block this user.
pub const BLOCKS_MAX: u32 = 100_000;
/// Maximum number of users that one user mutes. Building a home timeline that is not in memory reads all of them.
pub const MUTES_MAX: u32 = 5_000;
/// Maximum number of authors in whom one user is not interested. Each page of a ranked feed reads all of them.
pub const NOT_INTERESTED_MAX: u32 = 1_000;
/// Longest duration of a mute that expires, in seconds: 10 years.
pub const MUTE_SECS_MAX: u64 = 315_360_000;
/// Maximum number of posts of one user that exist at the same time: their count has 32 bits.
pub const USER_POSTS_MAX: u32 = u32::MAX - 1;
/// Maximum number of pinned posts of one user, as in Mastodon.
pub const PINS_MAX: usize = 5;
/// Time that counts as recent for boosts, in milliseconds: a day. A boost does not show a recent post again to
/// followers of its author, nor a post that another user at home has boosted recently.
pub const BOOST_RECENT_MS: u64 = 86_400_000;
/// Maximum number of earlier boosts that a boost records. A home timeline shows a post twice only if, within a day,
/// this many other users boost it between the boosts by two users whom the reader follows.
pub const EARLIER_BOOSTS_MAX: usize = 16;
/// Maximum number of stored notifications of one user; new ones replace the oldest. Mentions by new posts are not
/// stored.
pub const NOTIFICATIONS_MAX: u32 = 1_000;
/// Newest notifications of a user that are searched to avoid a second notification by a follower who follows again.
pub const FOLLOW_NOTICES_SEEN: usize = 40;
/// Minimum number of whole days for which a repeated idempotency key is recognized.
pub const IDEMPOTENCY_DAYS: u32 = 1;
/// Longest idempotency key, in bytes.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;
/// Maximum number of views of an expired or deleted story that one command removes, with two rows each: much less than
/// a millisecond of work, so that other commands do not wait long.
pub const STORY_VIEWS_REMOVED: u32 = 256;
/// Maximum number of deleted users whose rows are not yet all removed. A read of a list of users or of counts looks up
/// each of them.
pub const ERASING_USERS_MAX: u32 = 64;
/// Maximum number of a deleted user's rows that one command removes, including counts of other users: at least the
/// number for one direct post with the most mentions.
pub const ERASE_ROWS_MAX: usize = 896;
/// Maximum number of posts of a disabled account that one command removes from lists, or restores when the account is
/// enabled.
pub const RELISTED_POSTS_MAX: usize = 256;
/// Longest label of a sample, in bytes.
pub const LABEL_BYTES_MAX: usize = 32;
/// Longest name of a set of samples, in characters (ASCII, so also bytes).
pub const SET_NAME_CHARS_MAX: usize = 64;
/// Longest name of a ranked feed, in characters (ASCII, so also bytes).
pub const FEED_NAME_CHARS_MAX: usize = 32;
/// Maximum size of a stored definition of a ranked feed, in bytes.
pub const FEED_BYTES_MAX: usize = 2_048;
/// Maximum number of stored definitions of ranked feeds.
pub const STORED_FEEDS_MAX: usize = 32;
/// Maximum number of sets of added samples.
pub const SAMPLE_SETS_MAX: usize = 16;
/// Maximum number of samples added to one set. A node holds all samples in memory, within a budget.
pub const SET_SAMPLES_MAX: u32 = 1 << 20;
/// Maximum number of distinct labels of the samples added to one set.
pub const SET_LABELS_MAX: u32 = 4_096;

/// Longest e-mail address, in bytes, as in RFC 5321.
pub const EMAIL_BYTES_MAX: usize = 254;
/// Longest hash of a password, in bytes. A PHC string of argon2id has about 100.
pub const PASSWORD_HASH_BYTES_MAX: usize = 256;
/// Maximum number of user-perceived characters of the name of an app.
pub const APP_NAME_CHARS_MAX: usize = 60;
/// Maximum size of the name of an app, in bytes.
pub const APP_NAME_BYTES_MAX: usize = 400;
/// Longest redirect URI or website of an app, in bytes.
pub const URI_BYTES_MAX: usize = 2_000;
/// Maximum number of redirect URIs of an app.
pub const REDIRECT_URIS_MAX: usize = 8;
/// Maximum number of apps without a grant of a user. Registering another replaces the one that was registered first. An
/// app has at most 18 kB, so anonymous clients can fill at most 300 MB of the disk.
pub const UNUSED_APPS_MAX: u32 = 16_384;
/// Maximum number of sessions, codes and app tokens of one user, not counting minted tokens. Another one ends the
/// oldest.
pub const USER_GRANTS_MAX: usize = 100;
/// Maximum number of unexpired tokens of one user that applications have minted.
pub const USER_TOKENS_MAX: usize = 32;
/// Longest lifetime of a minted token, in seconds: 90 days.
pub const TOKEN_SECS_MAX: u32 = 7_776_000;
/// Maximum number of tokens that an app holds for itself, without a user. Issuing another ends the oldest.
pub const APP_GRANTS_MAX: usize = 8;
/// Maximum number of unused apps that are removed when an app is registered. Two, because a registration adds one, and
/// others become unused when grants end.
pub const UNUSED_APPS_REMOVED: usize = 2;
/// Lifetime of an authorization code, in seconds: the longest that RFC 6749 recommends.
pub const CODE_SECS: u64 = 600;
/// Lifetime of a browser session, in seconds: 30 days.
pub const SESSION_SECS: u64 = 2_592_000;
/// Maximum number of invites. Creating one looks up all of them.
pub const INVITES_MAX: usize = 256;
/// Maximum number of sign-ups with one invite.
pub const INVITE_USES_MAX: u32 = 10_000;

const _: () = assert!(PAGE_DEFAULT <= MENTIONS_PAGE_MAX && MENTIONS_PAGE_MAX <= PAGE_MAX);
const _: () = assert!(0 < STORY_SECS_MIN && STORY_SECS_MIN <= STORY_SECS_DEFAULT);
const _: () = assert!(STORY_SECS_DEFAULT <= STORY_SECS_MAX);
const _: () = assert!(0 < POLL_OPTIONS_MIN && POLL_OPTIONS_MIN <= POLL_OPTIONS_MAX);
const _: () = assert!(POLL_SECS_MIN <= POLL_SECS_MAX && SCHEDULED_MS_MIN <= SCHEDULED_MS_MAX);
const _: () = assert!(POLL_OPTION_CHARS_MAX <= POLL_OPTION_BYTES_MAX);
const _: () = assert!(POST_CHARS_MAX <= POST_BYTES_MAX && NAME_CHARS_MAX <= NAME_BYTES_MAX);
const _: () = assert!(FIELD_CHARS_MAX <= FIELD_BYTES_MAX && NOTE_CHARS_MAX <= NOTE_BYTES_MAX);
