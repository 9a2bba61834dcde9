//! All tables. The declaration of a table has the content of its rows, their tag on disk, how they are stored, words
//! for operators, the treatment by an export, and the [`Subject`] of its rows or `nothing`.
//!
//! There are three kinds of tables. Points map a number to bytes. Sets map (owner, item) to a small number, and are
//! read as ranges of an owner's items. Names map bytes to bytes, in order.
//!
//! The rows of an **ephemeral** table must be erased from every disk soon after they are removed, so a store has
//! separate files for such tables. After a crash, a store may have applied more of the log to ephemeral tables than to
//! the others.
//! **Invariant:** the outcome of a command, the totals, and the rows of other tables never depend on ephemeral rows.
//!
//! **Invariant:** tags are part of the format of stores. Each tag belongs to one table, of any kind, and has no
//! structure. It is never reused and never changes its meaning. A new table is the last line of its kind and gets the
//! next free tag; of the store, only the format version changes.

use crate::subject::Subject;

/// Storage of the rows of a table.
#[derive(Clone, Copy)]
enum Kept {
    /// Separate files, from which removed rows are erased soon.
    Ephemeral,
    /// Many items of an owner in one row. Owners are users, who are numbered without gaps.
    Packed,
    /// Array indexed by owner. Owners are users, who are numbered without gaps, and most of them have items.
    Dense,
}

const fn has(kept: &[Kept], wanted: Kept) -> bool {
    match kept {
        [first, rest @ ..] => *first as u8 == wanted as u8 || has(rest, wanted),
        [] => false,
    }
}

/// Treatment of the rows of a table by an export and an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Lines of an export contain the rows.
    Exported,
    /// An import derives the rows from other tables.
    Derived,
    /// An import leaves the table empty. The text is from `docs/import.md`.
    LeftOut(&'static str),
    /// Never written, unless several nodes share the log.
    NeverWritten,
}
use Transfer::{Derived, Exported, LeftOut, NeverWritten};

/// Text of the documents for rows of deleted users that are not removed yet.
const DELETED: &str = "deleted users, and expired stories, mutes and keys";
/// Text of the documents for grants of accounts.
const GRANTS: &str = "invites, apps, and the sessions and tokens of accounts";
/// Text of the documents for notifications.
const NOTIFICATIONS: &str =
    "notifications of favourites, boosts, quotes, follows, ends of polls and edits";
/// Text of the documents for rows without a bucket.
const EMPTIED: &str = "keys of emptied or deleted buckets";

/// Smallest and greatest tag of a table. Other rows of a store have tags outside of this range.
const LOWEST: u8 = 0x02;
const HIGHEST: u8 = 0xfb;

const fn ascend(tags: &[u8]) -> bool {
    match tags {
        [first, rest @ ..] => match rest {
            [second, ..] => *first < *second && ascend(rest),
            [] => true,
        },
        [] => true,
    }
}

/// Declares an enum for each kind of table, and the enum of all tables. Tags ascend within a kind, so rows in the order
/// of tables are in the order of their keys on disk. A table with `if FEATURE` exists only in builds with that feature.
///
/// The words of a point describe its row. The words of a set describe the items of an owner, then an item. The words of
/// a name describe its row, and contain `…` if the name is a text.
macro_rules! tables {
    (@subject nothing) => { None };
    (@subject $subject:ident) => { Some(Subject::$subject) };
    ($(
        $(#[$kind_doc:meta])*
        $kind:ident as $short:ident {
            $(
                $(#[$doc:meta])*
                $table:ident = $tag:literal $(: $($kept:ident)+)?, $($words:literal)/+,
                $transfer:ident $(($why:expr))? about $subject:ident $(if $feature:literal)?;
            )*
        }
    )*) => {
        $(
            $(#[$kind_doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub enum $kind { $($(#[$doc])* $(#[cfg(feature = $feature)])? $table,)* }

            impl $kind {
                /// All tables of this kind, in the order of their tags.
                pub const ALL: [Self; [$($(#[cfg(feature = $feature)])? $tag),*].len()] =
                    [$($(#[cfg(feature = $feature)])? Self::$table),*];

                /// Returns the first byte of the keys of the table's rows on disk.
                #[must_use]
                pub const fn tag(self) -> u8 {
                    match self { $($(#[cfg(feature = $feature)])? Self::$table => $tag),* }
                }

                /// Returns the index of the table in [`Self::ALL`].
                #[must_use]
                pub const fn index(self) -> usize {
                    self as usize
                }

                /// Whether, after a crash, more of the log may be applied to this table than to other tables.
                #[must_use]
                pub const fn is_ephemeral(self) -> bool {
                    has(self.kept(), Kept::Ephemeral)
                }

                /// Returns the words for operators.
                #[must_use]
                pub const fn words(self) -> &'static [&'static str] {
                    match self { $($(#[cfg(feature = $feature)])? Self::$table => &[$($words),+]),* }
                }

                /// Returns the treatment by an export.
                #[must_use]
                pub const fn transfer(self) -> Transfer {
                    match self { $($(#[cfg(feature = $feature)])? Self::$table => $transfer $(($why))?),* }
                }

                /// Returns the function that makes the subject of a row from its number: the key, the owner, or the
                /// name.
                pub(crate) fn subject(self) -> Option<fn(u64) -> Subject> {
                    match self {
                        $($(#[cfg(feature = $feature)])? Self::$table => tables!(@subject $subject)),*
                    }
                }

                const fn kept(self) -> &'static [Kept] {
                    match self {
                        $($(#[cfg(feature = $feature)])? Self::$table => &[$($(Kept::$kept),+)?]),*
                    }
                }
            }

            const _: () = assert!(ascend(&[LOWEST - 1, $($tag,)* HIGHEST + 1]), "tags ascend");
        )*

        /// A table of any kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Table { $(#[doc = "Table of this kind."] $short($kind),)* }

        impl Table {
            /// Returns the table with this tag.
            #[must_use]
            #[deny(unreachable_patterns, reason = "no two tables have the same tag")]
            pub const fn of_tag(tag: u8) -> Option<Self> {
                match tag {
                    $($($(#[cfg(feature = $feature)])? $tag => Some(Self::$short($kind::$table)),)*)*
                    _ => None,
                }
            }

            /// Returns the first byte of the keys of the table's rows on disk.
            #[must_use]
            pub const fn tag(self) -> u8 {
                match self { $(Self::$short(table) => table.tag()),* }
            }

            /// Returns the treatment by an export.
            #[must_use]
            pub const fn transfer(self) -> Transfer {
                match self { $(Self::$short(table) => table.transfer()),* }
            }
        }
    };
}

impl Table {
    /// Returns all tables, in the order of their tags.
    pub fn all() -> impl Iterator<Item = Self> {
        (LOWEST..=HIGHEST).filter_map(Self::of_tag)
    }
}

impl SetTable {
    /// Whether many items of an owner share a row.
    #[must_use]
    pub const fn is_packed(self) -> bool {
        has(self.kept(), Kept::Packed)
    }

    /// Whether the owners are users, who are numbered without gaps, and most of whom have items: an array of them is
    /// small.
    #[must_use]
    pub const fn has_dense_owners(self) -> bool {
        self.is_packed() || has(self.kept(), Kept::Dense)
    }
}

impl Subject {
    /// Returns the subject of a point, if it has one.
    #[must_use]
    pub fn of_point(table: PointTable, key: u64) -> Option<Self> {
        table.subject().map(|about| about(key))
    }

    /// Returns the subject of the items of an owner, if they have one.
    #[must_use]
    pub fn of_member(table: SetTable, owner: u64) -> Option<Self> {
        table.subject().map(|about| about(owner))
    }

    /// Returns the subject of a name, if it has one. The name is then a number.
    #[must_use]
    pub fn of_name(table: NameTable, name: &[u8]) -> Option<Self> {
        let about = table.subject()?;
        let number = name.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        Some(about(number))
    }
}

tables! {
    /// Tables from a number to bytes.
    PointTable as Point {
        /// User id -> profile.
        User = 0x02, "user", Exported about Profile;
        /// User id -> counts.
        Counts = 0x03, "counts of user", Derived about User;
        /// Post id -> post.
        Post = 0x04, "post", Exported about Content;
        /// Story id -> story without its text.
        Story = 0x05, "story", Exported about nothing;
        /// Story id -> text.
        StoryText = 0x06: Ephemeral, "text of story", Exported about nothing;
        /// Sample id -> sample.
        Sample = 0x07, "sample", Exported about nothing;
        /// Space -> bucket id; no row if no bucket has the space, or if it is the first space of a numbered bucket.
        BucketOfSpace = 0x08, "bucket of space", Derived about nothing;
        /// User id -> read positions of timelines; no row without markers.
        Markers = 0x09, "markers of user", Exported about nothing;
        /// User id times 2^32, plus the id of the user whom the note is about -> the note.
        Note = 0x0a, "note", Exported about nothing;
        /// Poll id -> number of voters, and of votes for each option; no row without votes.
        PollCounts = 0x0b, "counts of poll", Derived about nothing;
        /// User id -> account.
        Account = 0x0c, "account of user", Exported about nothing;
        /// App id -> app.
        App = 0x0d, "app", LeftOut(GRANTS) about nothing;
        /// Grant id -> grant: the permissions of an authorization code, a token or a session.
        Grant = 0x0e, "grant", LeftOut(GRANTS) about nothing;
        /// App id -> number of grants with which the app acts for users; no row for zero.
        AppUses = 0x0f, "uses of app", LeftOut(GRANTS) about nothing;
        /// Post id -> counts of the post; no row if all are zero.
        PostCounts = 0x10, "counts of post", Derived about Post;
        /// User id -> which notifications are stored and shown; no row for a user who never had any.
        NoticeState = 0x11, "notifications of user", LeftOut(NOTIFICATIONS) about nothing;
    }

    /// Tables from (owner, item) to a number.
    SetTable as Set {
        /// (story, viewer) -> time of the first view, in milliseconds since 1970.
        StoryViews = 0x13: Ephemeral, "views of story" / "user", Exported about nothing;
        /// (viewer, story) -> 0.
        Seen = 0x14: Ephemeral Dense, "stories seen by user" / "story", Derived about nothing;
        /// (set of samples, sample) -> 0.
        Samples = 0x15, "samples of set" / "sample", Derived about nothing;
        /// (0, space without a bucket) -> cursor: rows from there on are still to be removed. (1, 0) -> number of rows
        /// in all these spaces.
        OrphanedSpaces = 0x16, "spaces to be emptied" / "space", LeftOut(EMPTIED) about nothing;
        /// (0, space without rows and bucket) -> 0.
        FreeSpaces = 0x17, "free spaces" / "space", LeftOut(EMPTIED) about nothing;
        /// (post, reply) -> visibility of the reply. Rows of a deleted post stay until its replies are deleted.
        Replies = 0x18, "replies to post" / "post", Derived about Post;
        /// (0, deleted user with rows that are still to be removed) -> time of the deletion, in milliseconds since
        /// 1970.
        ErasingUsers = 0x19, "users to be erased" / "user", LeftOut(DELETED) about nothing;
        /// (post, kind of the reaction times 2^32 plus the user) -> stamp of the reaction.
        Reactions = 0x1a, "reactions to post" / "item", Exported about Post;
        /// (author of a note, user whom the note is about) -> 0.
        Notes = 0x1c, "notes of user" / "user", Derived about nothing;
        /// (user whom a note is about, author of the note) -> 0.
        NotedBy = 0x1d, "notes about user" / "user", Derived about nothing;
        /// (requested user, user who asks to follow them) -> 0.
        FollowRequests = 0x1e, "requests to follow user" / "user", Derived about nothing;
        /// (user who asks to follow, requested user) -> 0.
        Requested = 0x1f, "requests of user" / "user", Exported about nothing;
        /// (poll, voter) -> chosen options, a bit for each.
        PollVotes = 0x20, "votes of poll" / "user", Exported about nothing;
        /// (voter, poll) -> chosen options, a bit for each.
        Votes = 0x21, "votes of user" / "poll", Derived about nothing;
        /// (post, boost) -> user who boosted the post.
        Boosts = 0x22, "boosts of post" / "post", Derived about nothing;
        /// (list of posts, post) -> author. List 0 has the posts of the public timeline, list 1 those with pictures.
        /// List 2^32 + user has the posts of the user with pictures; its number is that in `AuthorPosts`.
        PostLists = 0x23, "list of posts" / "post", Derived about nothing;
        /// (user, direct post by or to the user) -> first post of the conversation.
        DirectPosts = 0x24, "direct posts of user" / "post", Derived about nothing;
        /// (post, reply that everybody may see) -> author of the reply. Rows of a deleted post stay until its replies
        /// are deleted.
        OpenReplies = 0x25, "post" / "reply", Derived about Post;
        /// (post, quote that everybody may see) -> author of the quote. Rows of a deleted post stay until its quotes
        /// are deleted.
        Quotes = 0x26, "quotes of post" / "post", Derived about Post;
        /// (follower, followed) -> 0.
        Following = 0x27: Packed, "follows of user" / "user", Exported about User;
        /// (followed, follower) -> 0.
        Followers = 0x28: Packed, "followers of user" / "user", Derived about User;
        /// (author, post) -> user to whom the post replies plus 1, or 0; plus 2^33 times the visibility.
        AuthorPosts = 0x29: Packed, "posts of user" / "post", Derived about User;
        /// (mentioned user, post) -> 2^63 plus the stamp of the edit that added the mention. If the post has had it
        /// from the start: the author plus 1 for a direct post, otherwise 0.
        Mentions = 0x2a: Packed, "mentions of user" / "post", Derived about nothing;
        /// (user, friend) -> 0, in both directions.
        Friends = 0x2b: Packed, "friends of user" / "user", Exported about nothing;
        /// (author, story) -> expiry, in milliseconds since 1970.
        AuthorStories = 0x2c: Packed, "stories of user" / "story", Derived about nothing;
        /// (deleted user, 0) -> 0. Rows are never removed.
        DeletedUsers = 0x2d: Packed, "deletion of user" / "item", Exported about Profile;
        /// (user, stamp of the reaction) -> favourited post.
        Favourites = 0x2e: Packed, "favourites of user" / "stamp", Derived about nothing;
        /// (user, blocked user) -> 0.
        Blocks = 0x2f: Packed, "blocks of user" / "user", Exported about nothing;
        /// (blocked user, blocking user) -> 0.
        BlockedBy = 0x30: Packed, "users who block user" / "user", Derived about nothing;
        /// (user, muted user) -> twice the end of the mute in milliseconds since 1970 (0 if it has no end), plus 1 if
        /// it also hides mentions.
        Mutes = 0x31: Packed, "mutes of user" / "user", Exported about nothing;
        /// (muted user, muting user) -> 0.
        MutedBy = 0x32: Packed, "users who mute user" / "user", Derived about nothing;
        /// (user, stamp of the reaction) -> bookmarked post.
        Bookmarks = 0x33: Packed, "bookmarks of user" / "stamp", Derived about nothing;
        /// (user, stamp of the reaction) -> own post that is pinned.
        Pins = 0x34: Packed, "pins of user" / "stamp", Derived about nothing;
        /// (user, stamp of the cause) -> kind of the notification times 2^32, plus the user who caused it.
        Notifications = 0x35: Packed, "notifications of user" / "stamp",
            LeftOut(NOTIFICATIONS) about nothing;
        /// (user who approves follows, 0) -> 0. (user whose account is disabled, 1) -> 0.
        LockedUsers = 0x36: Packed, "lock of user" / "item", Exported about Profile;
        /// (user, stamp of the reaction) -> post of which the user wants to see less.
        Less = 0x5b: Packed, "posts of which user wants less" / "stamp", Derived about nothing;
        /// (user, author in whom the user is not interested) -> 0.
        NotInterested = 0x5c: Packed, "uninteresting authors of user" / "user", Exported about nothing;
        /// (author, user who is not interested in the author) -> 0.
        NotInterestedBy = 0x5d: Packed, "users not interested in user" / "user", Derived about nothing;
    }

    /// Tables from bytes to bytes, in order.
    NameTable as Name {
        /// Handle -> user id.
        Handle = 0x37, "the handle \"…\"", Derived about nothing;
        /// Day and key digest -> content digest and outcome.
        Idempotency = 0x38, "the result of a request with an idempotency key",
            LeftOut("idempotency keys") about nothing;
        /// Name of a set of samples -> description of the set.
        SampleSet = 0x39, "the set of samples \"…\"", Derived about nothing;
        /// Set of samples, then label -> number of samples with the label.
        SampleLabel = 0x3a, "a label of samples, \"…\"", Derived about nothing;
        /// Name of a bucket -> bucket id.
        Bucket = 0x3b, "the bucket named \"…\"", Exported about nothing;
        /// Expiry of a key (milliseconds since 1970, 8 bytes), space (4 bytes), key -> nothing.
        KeyExpiry = 0x3c, "the expiry of a key", Derived about nothing;
        /// Node (16 bytes) -> last group of the node that counted; node, 2 -> last status of the node; 3 -> versions
        /// that all live nodes have. Only if several nodes share the log.
        ClusterNode = 0x3d, "the node \"…\"", NeverWritten about nothing;
        /// Due time (milliseconds since 1970, 8 bytes), kind and id of the work -> progress; empty before it begins.
        Due = 0x3e, "scheduled work", Derived about nothing;
        /// E-mail address of an account -> user id.
        Email = 0x3f, "the e-mail address \"…\"", Derived about nothing;
        /// SHA-256 of the code of an invite -> invite.
        Invite = 0x40, "an invite", LeftOut(GRANTS) about nothing;
        /// SHA-256 of a code, token or session -> grant id.
        GrantSecret = 0x41, "the hash of a code, token or session", LeftOut(GRANTS) about nothing;
        /// 0 and a user id, 1 and an app id for the app's own tokens, or 2 and a digest of the name of the key that
        /// created the grant; then the grant id (8 bytes each) -> nothing.
        GrantOf = 0x42, "a grant of a user, an app or a key", LeftOut(GRANTS) about nothing;
        /// Id (8 bytes) of an app that acts for no user -> nothing.
        UnusedApp = 0x44, "an app that nobody uses", LeftOut(GRANTS) about nothing;
        /// Hashtag, 0, id of a public post with all bits inverted (8 bytes), author (4 bytes) -> nothing. The posts of
        /// a hashtag are thus adjacent, newest first.
        TagPost = 0x45, "a post with the hashtag \"…\"", Derived about nothing;
        /// Author (4 bytes), hashtag, 0, id of a public post with all bits inverted (8 bytes) -> nothing.
        AuthorTag = 0x46, "a hashtag of a post", Derived about nothing;
        /// User (4 bytes), hashtag that the profile shows -> stamp of the addition.
        FeaturedTag = 0x47, "a hashtag on a profile", Exported about nothing;
        /// User (4 bytes) -> filters; no row without filters.
        Filters = 0x48, "the filters of a user", Exported about Marks;
        /// Author (4 bytes), scheduled post (8 bytes) -> scheduled post.
        Scheduled = 0x4a, "a scheduled post", Exported about nothing;
        /// User (4 bytes), hashtag that the user follows -> stamp of the addition.
        FollowedTag = 0x4b, "a hashtag that a user follows", Exported about nothing;
        /// Owner (4 bytes), list (8 bytes) -> list.
        List = 0x4d, "a list of a user", Exported about nothing;
        /// Owner (4 bytes), list (8 bytes), member (4 bytes) -> nothing.
        ListMember = 0x4e, "a member of a list", Exported about nothing;
        /// Owner, member (4 bytes each), list (8 bytes) -> nothing.
        ListedUser = 0x4f, "a member of a list", Derived about nothing;
        /// Picture (8 bytes) -> picture.
        Media = 0x50, "a picture", Exported about Media;
        /// SHA-256 of a file (32 bytes), picture that needs it (8 bytes) -> nothing.
        MediaFile = 0x51, "a file of a picture", Derived about nothing;
        /// Owner (4 bytes), picture (8 bytes) -> nothing.
        MediaOf = 0x52, "a picture of a user", Derived about nothing;
        /// Owner (4 bytes), or four bytes 0xff for all owners -> space that the pictures use; no row without pictures.
        MediaSpace = 0x54, "the space of a user's pictures", Derived about nothing;
        /// Post (8 bytes) -> versions of the post before its edits, oldest first; no row without edits.
        PostVersions = 0x55, "earlier versions of a post", Exported about nothing;
        /// User (4 bytes) -> read and removed conversations; no row without any.
        Conversations = 0x56, "read positions in conversations", Exported about nothing;
        /// User (4 bytes) -> options of follows; no row without options.
        FollowOptions = 0x57, "options of a user's follows", Exported about nothing;
        /// User (4 bytes) -> muted threads; no row without any.
        MutedThreads = 0x58, "the threads that a user has muted", Exported about Marks;
        /// User (4 bytes), first post of a conversation, direct post in it by or to the user with all bits inverted (8
        /// bytes each) -> nothing. The posts of a conversation are thus adjacent, newest first.
        ConversationPost = 0x5a, "a post of a conversation", Derived about nothing;
        /// Name of a ranked feed -> its definition in JSON.
        Feed = 0x5e, "the ranked feed \"…\"", Exported about nothing;
        /// A table that the next format adds.
        Next = 0xfb, "a row of the next format", NeverWritten about nothing if "next-format";
    }
}
