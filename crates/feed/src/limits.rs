//! Every limit on input and pages, in one place. A limit is checked where text becomes a type of
//! [`crate::text`] or where a page is requested, and nowhere else.

/// Most characters of a handle (ASCII, so also bytes).
pub const HANDLE_CHARS_MAX: usize = 30;
/// Most user-perceived characters (grapheme clusters) of a display name.
pub const NAME_CHARS_MAX: usize = 50;
/// Most bytes of a display name.
pub const NAME_BYTES_MAX: usize = 400;
/// Most user-perceived characters of a biography.
pub const BIO_CHARS_MAX: usize = 500;
/// Most bytes of a biography.
pub const BIO_BYTES_MAX: usize = 4_000;
/// Most fields of a profile.
pub const PROFILE_FIELDS_MAX: usize = 4;
/// Most user-perceived characters of the name, and of the value, of a field.
pub const FIELD_CHARS_MAX: usize = 255;
/// Most bytes of each of these.
pub const FIELD_BYTES_MAX: usize = 768;
/// Most user-perceived characters of the text of a post or story, after trimming.
pub const POST_CHARS_MAX: usize = 500;
/// Characters that a URL in such a text counts as, whatever its length: as Mastodon.
pub const URL_CHARS: usize = 23;
/// Longest domain after a name, with its port, in bytes.
pub const DOMAIN_BYTES_MAX: usize = 259;
/// Most bytes of such a text: a grapheme cluster may be long, so a limit on characters is not enough.
pub const POST_BYTES_MAX: usize = 8_000;
/// Most user-perceived characters of a note about a user.
pub const NOTE_CHARS_MAX: usize = 2_000;
/// Most bytes of a note.
pub const NOTE_BYTES_MAX: usize = 8_000;
/// Most notes of one user: 8 MB of texts, which nobody else reads.
pub const NOTES_MAX: u32 = 1_000;
/// Longest tag of a language, in bytes, with the subtags that are cut: the longest that RFC 5646 asks for.
pub const LANGUAGE_BYTES_MAX: usize = 35;
/// Most users that a post mentions: a mention in the text has at least two characters, and the author of the
/// post replied to is always mentioned.
pub const POST_MENTIONS_MAX: usize = POST_CHARS_MAX / 2 + 1;
/// Longest hashtag in lower case, in bytes, without its `#`.
pub const TAG_BYTES_MAX: usize = 200;
/// Most different hashtags of a post that are indexed, each by two rows. Those after them are plain text.
pub const POST_TAGS_MAX: usize = 30;
/// Most hashtags that a profile shows: as Mastodon.
pub const FEATURED_TAGS_MAX: usize = 10;
/// Most hashtags that a user follows. A page of their home is one short read of each.
pub const FOLLOWED_TAGS_MAX: usize = 30;
/// Most user-perceived characters of the title of a list.
pub const LIST_TITLE_CHARS_MAX: usize = 255;
/// Most bytes of the title of a list.
pub const LIST_TITLE_BYTES_MAX: usize = 1_024;
/// Most lists of one user: as Mastodon. An unfollow removes the followed from all of them, two rows of each.
pub const LISTS_MAX: usize = 50;
/// Most members of a list. Its timeline is one short read for each, and to delete it removes two rows of each.
pub const LIST_MEMBERS_MAX: usize = 1_000;
/// Most members that one command adds to a list or removes.
pub const LIST_CHANGED_MAX: usize = 100;
/// Most user-perceived characters of the title of a filter, and of a keyword.
pub const FILTER_TEXT_CHARS_MAX: usize = 100;
/// Most bytes of each of these.
pub const FILTER_TEXT_BYTES_MAX: usize = 400;
/// Most filters of one user, all in one row. Each may be named in each status of a page.
pub const FILTERS_MAX: usize = 50;
/// Most keywords of all filters of one user. Each status of a page is searched for all of them.
pub const FILTER_KEYWORDS_MAX: usize = 100;
/// Most keywords that one command adds to a filter, changes or removes.
pub const KEYWORD_CHANGES_MAX: usize = 2 * FILTER_KEYWORDS_MAX;
/// Most posts of all filters of one user.
pub const FILTERED_POSTS_MAX: usize = 100;
/// Longest time after which a filter expires, in seconds: 10 years.
pub const FILTER_SECS_MAX: u64 = 315_360_000;
/// Most bytes of the row of all filters of a user.
pub const FILTERS_BYTES_MAX: usize = FILTERS_MAX * (FILTER_TEXT_BYTES_MAX + 40)
    + FILTER_KEYWORDS_MAX * (FILTER_TEXT_BYTES_MAX + 16)
    + FILTERED_POSTS_MAX * 20;
/// Most conversations of a user that are known to be read or removed, all in one row: those that were marked with the newest
/// posts.
pub const CONVERSATION_MARKS_MAX: usize = 400;
/// Most bytes of the marks of a user: two ids and a byte each.
pub const CONVERSATIONS_BYTES_MAX: usize = 24 * CONVERSATION_MARKS_MAX;
/// Most earlier versions of a post that are kept.
pub const VERSIONS_MAX: usize = 100;
/// Most bytes of them: at least two of the greatest length, and hundreds of usual length.
pub const VERSIONS_BYTES_MAX: usize = 48 << 10;
/// Fewest options of a poll.
pub const POLL_OPTIONS_MIN: usize = 2;
/// Most options of a poll: as Mastodon.
pub const POLL_OPTIONS_MAX: usize = 4;
/// Most user-perceived characters of an option: as Mastodon.
pub const POLL_OPTION_CHARS_MAX: usize = 50;
/// Most bytes of an option.
pub const POLL_OPTION_BYTES_MAX: usize = 400;
/// Shortest time after which a poll ends, in seconds: 5 minutes, as Mastodon.
pub const POLL_SECS_MIN: u64 = 300;
/// Longest time after which a poll ends, in seconds: a month, as Mastodon.
pub const POLL_SECS_MAX: u64 = 2_629_746;
/// Most voters whom one command notifies that a poll has ended.
pub const POLL_NOTICES_MAX: usize = 64;
/// Most users whom one command notifies that a post which they boosted was edited.
pub const EDIT_NOTICES_MAX: usize = 64;
/// An edit is not announced if the one before was less than this long ago, in milliseconds: an hour.
pub const EDIT_NOTICES_QUIET_MS: u64 = 3_600_000;
/// Most users of whose posts one user is notified. A page of notifications is one short read for each.
pub const NOTIFYING_MAX: usize = 100;
/// Most follows of one user with options, all in one row.
pub const FOLLOW_OPTIONS_MAX: usize = 500;
/// Most bytes of this row: an id, a byte for each option, and stamps.
pub const FOLLOW_OPTIONS_BYTES_MAX: usize = 7 * FOLLOW_OPTIONS_MAX + 10 * NOTIFYING_MAX + 4;
/// Most threads that one user mutes, all in one row. For one more the one that was muted first is forgotten.
pub const MUTED_THREADS_MAX: usize = 500;
/// Most bytes of this row.
pub const MUTED_THREADS_BYTES_MAX: usize = 10 * MUTED_THREADS_MAX + 4;
/// Most scheduled posts of one user: as Mastodon. The ids of all are read for a new one.
pub const SCHEDULED_MAX: usize = 300;
/// A post is scheduled at least this long ahead, in milliseconds: 5 minutes, as Mastodon.
pub const SCHEDULED_MS_MIN: u64 = 300_000;
/// A post is scheduled at most this long ahead, in milliseconds: 10 years.
pub const SCHEDULED_MS_MAX: u64 = 315_360_000_000;
/// Most pictures of a post: as Mastodon.
pub const POST_MEDIA_MAX: usize = 4;
/// Most user-perceived characters of the description of a picture: as Mastodon.
pub const DESCRIPTION_CHARS_MAX: usize = 1_500;
/// Most bytes of a description.
pub const DESCRIPTION_BYTES_MAX: usize = 6_000;
/// Most pictures of one user that are not attached.
pub const UNATTACHED_MEDIA_MAX: u32 = 64;
/// A picture that is not attached is removed after this time, in milliseconds: a day.
pub const UNATTACHED_MS: u64 = 86_400_000;
/// Most pictures of one user.
pub const USER_MEDIA_MAX: u32 = 100_000;
/// Most bytes of the files of one user: 8 GiB.
pub const USER_MEDIA_BYTES_MAX: u64 = 8 << 30;
/// Shortest life of a story, in seconds.
pub const STORY_SECS_MIN: u64 = 1;
/// Longest life of a story, in seconds: 7 days.
pub const STORY_SECS_MAX: u64 = 604_800;
/// Life of a story if the caller does not give one, in seconds: 24 hours.
pub const STORY_SECS_DEFAULT: u64 = 86_400;
/// Items on a page if the caller does not give one.
pub const PAGE_DEFAULT: usize = 20;
/// Most items on a page.
pub const PAGE_MAX: usize = 100;
/// Most handles that a search for users reads in their order: those of users who are deleted, or whom the reader does not
/// see, are passed over.
pub const SEARCHED_MAX: usize = 4_096;
/// Most users, or hashtags, in a search whose names have a mistake in the query.
pub const SIMILAR_MAX: usize = 10;
/// Most items on a page of mentions.
pub const MENTIONS_PAGE_MAX: usize = 50;
/// Most ancestors of a post that are shown with it: the nearest. Each is one row read.
pub const THREAD_ANCESTORS_MAX: usize = 40;
/// Deepest replies below a post that are shown with it; 1 is a reply to the post itself. A page of them
/// is one short read for each post on it, and one more for each level.
pub const THREAD_DEPTH_MAX: usize = 20;
/// Most users: ids are 32 bits wide and the last one is reserved as a sentinel.
pub const USERS_MAX: u32 = u32::MAX - 1;
/// Most users that one user follows: what Mastodon allows, and above the 5,000 of Twitter. A home that
/// is not in memory costs a row for each, and for posts that are not in memory a short read for each: at the
/// limit 3 ms, or 32 ms. A timeline in memory costs 16 bytes for each, so 120 kB at the
/// limit, and about 1 ms under the lock of its shard to be put in or dropped.
pub const FOLLOWING_MAX: u32 = 7_500;
/// Most users that one command follows.
pub const FOLLOW_MANY_MAX: usize = 1_000;
/// Most friends of one user. A stories home reads the newest stories of each, and a new story wakes at
/// most this many live streams.
pub const FRIENDS_MAX: u32 = 5_000;
/// Most users that one user blocks. Reads look for single blocks, so they cost the same for any number, also for a user
/// whom everybody blocks.
pub const BLOCKS_MAX: u32 = 100_000;
/// Most users that one user mutes. A home that is not in memory reads them all.
pub const MUTES_MAX: u32 = 5_000;
/// Longest time of a mute that ends by itself, in seconds: 10 years.
pub const MUTE_SECS_MAX: u64 = 315_360_000;
/// Most posts of one user that exist at the same time: they are counted in 32 bits.
pub const USER_POSTS_MAX: u32 = u32::MAX - 1;
/// Most posts that a user pins: as Mastodon.
pub const PINS_MAX: usize = 5;
/// A post younger than this, in milliseconds, is not shown again by a boost to followers of its author, and not twice by
/// boosts of several users: a day.
pub const BOOST_RECENT_MS: u64 = 86_400_000;
/// Most earlier boosts that a boost knows. So many users must boost between two whom a reader follows, within a day, for the
/// post to be at home twice.
pub const EARLIER_BOOSTS_MAX: usize = 16;
/// Most notifications of one user that are stored; the oldest are removed for new ones. Mentions are not stored again.
pub const NOTIFICATIONS_MAX: u32 = 1_000;
/// Newest notifications of a user among which a follower is not announced again, when they unfollow and follow again.
pub const FOLLOW_NOTICES_SEEN: usize = 40;
/// A repeated idempotency key is recognized for at least this many whole days.
pub const IDEMPOTENCY_DAYS: u32 = 1;
/// Longest idempotency key, in bytes.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;
/// Most views of a dead story that one command removes, of two rows each: it is applied in much less than a millisecond, so
/// that other commands do not wait long.
pub const STORY_VIEWS_REMOVED: u32 = 256;
/// Most deleted users whose rows are not all removed. A read of a list of users or of counts looks up each of
/// them.
pub const ERASING_USERS_MAX: u32 = 64;
/// Most rows that one command removes of a deleted user, with the counts of other users: at least those of one direct post
/// with the most mentions.
pub const ERASE_ROWS_MAX: usize = 896;
/// Most posts of a disabled account that one command removes from lists, or adds to them again when the account is enabled.
pub const RELISTED_POSTS_MAX: usize = 256;
/// Longest label of a sample, in bytes.
pub const LABEL_BYTES_MAX: usize = 32;
/// Longest name of a set of samples, in characters (ASCII, so also bytes).
pub const SET_NAME_CHARS_MAX: usize = 64;
/// Most sets of samples that were added.
pub const SAMPLE_SETS_MAX: usize = 16;
/// Most samples added to one set. A node holds all samples in memory and has a budget for them.
pub const SET_SAMPLES_MAX: u32 = 1 << 20;
/// Most different labels of the samples added to one set.
pub const SET_LABELS_MAX: u32 = 4_096;

/// Longest e-mail address, in bytes: that of RFC 5321.
pub const EMAIL_BYTES_MAX: usize = 254;
/// Longest hash of a password, in bytes. A PHC string of argon2id has about 100.
pub const PASSWORD_HASH_BYTES_MAX: usize = 256;
/// Most user-perceived characters of the name of an app.
pub const APP_NAME_CHARS_MAX: usize = 60;
/// Most bytes of the name of an app.
pub const APP_NAME_BYTES_MAX: usize = 400;
/// Longest redirect URI or website of an app, in bytes.
pub const URI_BYTES_MAX: usize = 2_000;
/// Most redirect URIs of an app.
pub const REDIRECT_URIS_MAX: usize = 8;
/// Most apps that act for no user. The one registered first is removed for the next: 16,384 of at most 18 kB, so at
/// most 300 MB on disk that anybody can fill.
pub const UNUSED_APPS_MAX: u32 = 16_384;
/// Most grants of one user but for minted tokens: sessions, codes and tokens of apps. The oldest ends when there is one more.
pub const USER_GRANTS_MAX: usize = 100;
/// Most tokens of one user that applications have minted and that have not expired.
pub const USER_TOKENS_MAX: usize = 32;
/// Longest life of such a token, in seconds: 90 days.
pub const TOKEN_SECS_MAX: u32 = 7_776_000;
/// Most tokens of an app itself. The oldest ends when there is one more.
pub const APP_GRANTS_MAX: usize = 8;
/// Most unused apps that are removed for a new one: two, because apps also become unused when a grant ends.
pub const UNUSED_APPS_REMOVED: usize = 2;
/// Life of an authorization code, in seconds: the most that RFC 6749 recommends.
pub const CODE_SECS: u64 = 600;
/// Life of the session of a browser, in seconds: 30 days.
pub const SESSION_SECS: u64 = 2_592_000;
/// Most invites. All of them are looked up to create one.
pub const INVITES_MAX: usize = 256;
/// Most sign-ups with one invite.
pub const INVITE_USES_MAX: u32 = 10_000;

const _: () = assert!(PAGE_DEFAULT <= MENTIONS_PAGE_MAX && MENTIONS_PAGE_MAX <= PAGE_MAX);
const _: () = assert!(0 < STORY_SECS_MIN && STORY_SECS_MIN <= STORY_SECS_DEFAULT);
const _: () = assert!(STORY_SECS_DEFAULT <= STORY_SECS_MAX);
const _: () = assert!(0 < POLL_OPTIONS_MIN && POLL_OPTIONS_MIN <= POLL_OPTIONS_MAX);
const _: () = assert!(POLL_SECS_MIN <= POLL_SECS_MAX && SCHEDULED_MS_MIN <= SCHEDULED_MS_MAX);
const _: () = assert!(POLL_OPTION_CHARS_MAX <= POLL_OPTION_BYTES_MAX);
const _: () = assert!(POST_CHARS_MAX <= POST_BYTES_MAX && NAME_CHARS_MAX <= NAME_BYTES_MAX);
const _: () = assert!(FIELD_CHARS_MAX <= FIELD_BYTES_MAX && NOTE_CHARS_MAX <= NOTE_BYTES_MAX);
