//! All tables. A table is one declaration: the content of its rows, the tag of their rows on disk, how they are kept, words
//! for operators, and how an export treats them.
//!
//! There are three kinds. Points map a number to bytes, sets map (owner, item) to a small number and are
//! read as ranges of one owner's items, names map bytes to bytes in order.
//!
//! The rows of an **ephemeral** table must be erased from every disk soon after they are removed, so a
//! store keeps such tables in separate files. After a crash, a store may have applied more of the log to
//! ephemeral tables than to the others.
//! **Invariant:** the outcome of a command, the totals and the rows of other tables never depend on
//! ephemeral rows.
//!
//! **Invariant:** tags are part of the format of stores: each belongs to one table of any kind, and says nothing about
//! it. A tag is never used again and never changes its meaning. A new table is the last line of its kind, and gets
//! the next free tag; in the store only the format version changes.

/// How a store keeps the rows of a table.
#[derive(Clone, Copy)]
enum Kept {
    /// In separate files, from which removed rows are erased soon.
    Ephemeral,
    /// Many items of an owner in one row. The owners are dense.
    Packed,
    /// With an array of the owners, who are users, numbered without gaps and most of them with items.
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
    /// Lines say what is in it.
    Exported,
    /// An import makes it of other tables.
    Derived,
    /// An import leaves it empty. Words of `docs/import.md`.
    LeftOut(&'static str),
    /// Nothing in a data directory with a log of its own writes it.
    NeverWritten,
}
use Transfer::{Derived, Exported, LeftOut, NeverWritten};

/// The documents' words for rows of deleted users that are not removed yet.
const DELETED: &str = "users who are deleted, expired stories, mutes and keys";
/// The documents' words for what accounts granted.
const GRANTS: &str = "invites, apps, and the sessions and tokens of accounts";
/// The documents' words for what users were notified of.
const NOTIFICATIONS: &str = "notifications of favourites, boosts, follows, ends of polls and edits";
/// The documents' words for rows without a bucket.
const EMPTIED: &str = "keys of buckets that were emptied";

/// Tags that are not of tables are below and above these: of other rows of a store.
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

/// Makes the enum of each kind of table, and the one of all. Tags ascend within a kind, so that rows in the order of
/// tables are in the order of their names on disk. A table with `if FEATURE` is only in builds with that feature.
///
/// The words of a point say what has its key, those of a set what an owner has / what an item is, and those of a name what
/// its row is, with `…` for a name that is a text.
macro_rules! tables {
    ($(
        $(#[$kind_doc:meta])*
        $kind:ident as $short:ident {
            $(
                $(#[$doc:meta])*
                $table:ident = $tag:literal $(: $($kept:ident)+)?, $($words:literal)/+,
                $transfer:ident $(($why:expr))? $(if $feature:literal)?;
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

                /// The first byte of the names of its rows on disk.
                #[must_use]
                pub const fn tag(self) -> u8 {
                    match self { $($(#[cfg(feature = $feature)])? Self::$table => $tag),* }
                }

                /// Its index in [`Self::ALL`].
                #[must_use]
                pub const fn index(self) -> usize {
                    self as usize
                }

                /// Whether rows of this table may be ahead of the others after a crash.
                #[must_use]
                pub const fn is_ephemeral(self) -> bool {
                    has(self.kept(), Kept::Ephemeral)
                }

                /// Words for operators.
                #[must_use]
                pub const fn words(self) -> &'static [&'static str] {
                    match self { $($(#[cfg(feature = $feature)])? Self::$table => &[$($words),+]),* }
                }

                /// Treatment by an export.
                #[must_use]
                pub const fn transfer(self) -> Transfer {
                    match self { $($(#[cfg(feature = $feature)])? Self::$table => $transfer $(($why))?),* }
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
        pub enum Table { $(#[doc = "One of its kind."] $short($kind),)* }

        impl Table {
            /// The table that has this tag.
            #[must_use]
            #[deny(unreachable_patterns, reason = "no two tables have the same tag")]
            pub const fn of_tag(tag: u8) -> Option<Self> {
                match tag {
                    $($($(#[cfg(feature = $feature)])? $tag => Some(Self::$short($kind::$table)),)*)*
                    _ => None,
                }
            }

            /// The first byte of the names of its rows on disk.
            #[must_use]
            pub const fn tag(self) -> u8 {
                match self { $(Self::$short(table) => table.tag()),* }
            }

            /// Treatment by an export.
            #[must_use]
            pub const fn transfer(self) -> Transfer {
                match self { $(Self::$short(table) => table.transfer()),* }
            }
        }
    };
}

impl Table {
    /// All tables, in the order of their tags.
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

    /// Whether owners are users, numbered without gaps and most of them with items, so that an array of them stays
    /// small.
    #[must_use]
    pub const fn has_dense_owners(self) -> bool {
        self.is_packed() || has(self.kept(), Kept::Dense)
    }
}

tables! {
    /// Tables from a number to bytes.
    PointTable as Point {
        /// User id -> profile.
        User = 0x02, "user", Exported;
        /// User id -> counts.
        Counts = 0x03, "counts of user", Derived;
        /// Post id -> post.
        Post = 0x04, "post", Exported;
        /// Story id -> story without its text.
        Story = 0x05, "story", Exported;
        /// Story id -> text.
        StoryText = 0x06: Ephemeral, "text of story", Exported;
        /// Sample id -> sample.
        Sample = 0x07, "sample", Exported;
        /// Space -> bucket id; no row if no bucket has it, or if it is the first space of a numbered bucket.
        BucketOfSpace = 0x08, "bucket of space", Derived;
        /// User id -> up to where the user has read timelines; no row before there are markers.
        Markers = 0x09, "markers of user", Exported;
        /// User id times 2^32, plus the id of the user whom it is about -> the user's note.
        Note = 0x0a, "note", Exported;
        /// Poll id -> number of users who voted, and votes for each option; no row if nobody did.
        PollCounts = 0x0b, "counts of poll", Derived;
        /// User id -> account.
        Account = 0x0c, "account of user", Exported;
        /// App id -> app.
        App = 0x0d, "app", LeftOut(GRANTS);
        /// Grant id -> grant: what an authorization code, a token or a session permits.
        Grant = 0x0e, "grant", LeftOut(GRANTS);
        /// App id -> number of grants by which it acts for users; no row if there are none.
        AppUses = 0x0f, "uses of app", LeftOut(GRANTS);
        /// Post id -> its counts; no row if all are zero.
        PostCounts = 0x10, "counts of post", Derived;
        /// User id -> which notifications are stored and shown; no row if there were none.
        Inbox = 0x11, "notifications of user", LeftOut(NOTIFICATIONS);
    }

    /// Tables from (owner, item) to a number.
    SetTable as Set {
        /// (story, viewer) -> when they first viewed it, in milliseconds since 1970.
        StoryViews = 0x13: Ephemeral, "views of story" / "user", Exported;
        /// (viewer, story) -> 0.
        Seen = 0x14: Ephemeral Dense, "stories seen by user" / "story", Derived;
        /// (set of samples, sample) -> 0.
        Samples = 0x15, "samples of set" / "sample", Derived;
        /// (0, space that no bucket has) -> the cursor from which its rows are not removed yet. (1, 0) -> the number of
        /// rows in all of them.
        OrphanedSpaces = 0x16, "spaces to be emptied" / "space", LeftOut(EMPTIED);
        /// (0, space without rows that no bucket has) -> 0.
        FreeSpaces = 0x17, "free spaces" / "space", LeftOut(EMPTIED);
        /// (post, reply to it) -> who may see the reply. Rows of a deleted post stay until its replies are deleted.
        Replies = 0x18, "replies to post" / "post", Derived;
        /// (0, deleted user whose rows are not all removed) -> when they were deleted, in milliseconds since 1970.
        ErasingUsers = 0x19, "users to be erased" / "user", LeftOut(DELETED);
        /// (post, kind of the reaction times 2^32 plus the user) -> the stamp of the reaction.
        Reactions = 0x1a, "reactions to post" / "item", Exported;
        /// (user, user whom they have a note about) -> 0.
        Notes = 0x1c, "notes of user" / "user", Derived;
        /// (user, user who has a note about them) -> 0.
        NotedBy = 0x1d, "notes about user" / "user", Derived;
        /// (user, user who asks to follow them) -> 0.
        FollowRequests = 0x1e, "requests to follow user" / "user", Derived;
        /// (user, user whom they ask to follow) -> 0.
        Requested = 0x1f, "requests of user" / "user", Exported;
        /// (poll, user who voted) -> the chosen options, a bit for each.
        PollVotes = 0x20, "votes of poll" / "user", Exported;
        /// (user, poll) -> the options that they chose, a bit for each.
        Votes = 0x21, "votes of user" / "poll", Derived;
        /// (post, boost of it) -> the user who boosted it.
        Boosts = 0x22, "boosts of post" / "post", Derived;
        /// (list of posts, post) -> the author. List 0 has the posts of the public timeline, list 1 those of them with
        /// pictures. (2^32 plus a user, post of the user with pictures) -> as `AuthorPosts`.
        PostLists = 0x23, "list of posts" / "post", Derived;
        /// (user, direct post by or to the user) -> the first post of its conversation.
        DirectPosts = 0x24, "direct posts of user" / "post", Derived;
        /// (post, reply to it that everybody may see) -> the author of the reply. Rows of a deleted post stay as those of
        /// `Replies`.
        OpenReplies = 0x25, "post" / "reply", Derived;
        /// (follower, followed) -> 0.
        Following = 0x27: Packed, "follows of user" / "user", Exported;
        /// (followed, follower) -> 0.
        Followers = 0x28: Packed, "followers of user" / "user", Derived;
        /// (author, post) -> 0, or the user replied to plus 1; and from bit 33 on, who may see it.
        AuthorPosts = 0x29: Packed, "posts of user" / "post", Derived;
        /// (mentioned, post) -> the author plus 1 of a direct post, and 0 of others.
        Mentions = 0x2a: Packed, "mentions of user" / "post", Derived;
        /// (user, friend) -> 0, in both directions.
        Friends = 0x2b: Packed, "friends of user" / "user", Exported;
        /// (author, story) -> when it expires, in milliseconds since 1970.
        AuthorStories = 0x2c: Packed, "stories of user" / "story", Derived;
        /// (deleted user, 0) -> 0. Rows are never removed.
        DeletedUsers = 0x2d: Packed, "deletion of user" / "item", Exported;
        /// (user, stamp of the reaction) -> the post that they favourited.
        Favourites = 0x2e: Packed, "favourites of user" / "stamp", Derived;
        /// (user, user whom they block) -> 0.
        Blocks = 0x2f: Packed, "blocks of user" / "user", Exported;
        /// (blocked user, user who blocks them) -> 0.
        BlockedBy = 0x30: Packed, "users who block user" / "user", Derived;
        /// (user, user whom they mute) -> twice the end in milliseconds since 1970, or 0 without an end; plus 1 if
        /// mentions are hidden too.
        Mutes = 0x31: Packed, "mutes of user" / "user", Exported;
        /// (muted user, user who mutes them) -> 0.
        MutedBy = 0x32: Packed, "users who mute user" / "user", Derived;
        /// (user, stamp of the reaction) -> the post that they bookmarked.
        Bookmarks = 0x33: Packed, "bookmarks of user" / "stamp", Derived;
        /// (user, stamp of the reaction) -> the post of their own that they pinned.
        Pins = 0x34: Packed, "pins of user" / "stamp", Derived;
        /// (user, stamp of the cause) -> kind of the notification times 2^32, plus the user who caused it.
        Notifications = 0x35: Packed, "notifications of user" / "stamp", LeftOut(NOTIFICATIONS);
        /// (user whom others must ask to follow, 0) -> 0. (user whose account is disabled, 1) -> 0.
        LockedUsers = 0x36: Packed, "lock of user" / "item", Exported;
    }

    /// Tables from bytes to bytes, in order.
    NameTable as Name {
        /// Handle -> user id.
        Handle = 0x37, "the handle \"…\"", Derived;
        /// Day and key digest -> content digest and outcome.
        Idempotency = 0x38, "the result of a request with an idempotency key",
            LeftOut("idempotency keys");
        /// Name of a set of samples -> its description.
        SampleSet = 0x39, "the set of samples \"…\"", Derived;
        /// Set of samples, then label -> number of samples that have it.
        SampleLabel = 0x3a, "a label of samples, \"…\"", Derived;
        /// Name of a bucket -> its id.
        Bucket = 0x3b, "the bucket named \"…\"", Exported;
        /// When a key expires (milliseconds since 1970, 8 bytes), its space (4 bytes), the key -> nothing.
        KeyExpiry = 0x3c, "the expiry of a key", Derived;
        /// Node (16 bytes) -> its last group that counts, and 2 -> its last status; 3 -> what the live nodes have in common. Only
        /// of a log that several nodes share.
        ClusterNode = 0x3d, "the node \"…\"", NeverWritten;
        /// When something is due (milliseconds since 1970, 8 bytes), what it is -> how far it is; nothing before it begins.
        Due = 0x3e, "something that is due", Derived;
        /// E-mail address of an account -> user id.
        Email = 0x3f, "the e-mail address \"…\"", Derived;
        /// SHA-256 of the code of an invite -> invite.
        Invite = 0x40, "an invite", LeftOut(GRANTS);
        /// SHA-256 of a code, token or session -> grant id.
        GrantSecret = 0x41, "the hash of a code, token or session", LeftOut(GRANTS);
        /// 0 and a user id, or 1 and an app id for its own tokens; grant id (8 bytes each) -> nothing.
        GrantOf = 0x42, "a grant of a user or of an app", LeftOut(GRANTS);
        /// App id (8 bytes) that acts for no user -> nothing.
        UnusedApp = 0x44, "an app that nobody uses", LeftOut(GRANTS);
        /// Hashtag, 0, id of a public post with all bits inverted (8 bytes), its author (4 bytes) -> nothing. So the posts
        /// of a hashtag are together, newest first.
        TagPost = 0x45, "a post with the hashtag \"…\"", Derived;
        /// Author (4 bytes), hashtag, 0, id of a public post with all bits inverted (8 bytes) -> nothing.
        AuthorTag = 0x46, "a hashtag of a post", Derived;
        /// User (4 bytes), hashtag that the profile shows -> the stamp since when.
        FeaturedTag = 0x47, "a hashtag on a profile", Exported;
        /// User (4 bytes) -> their filters; no row if there are none.
        Filters = 0x48, "the filters of a user", Exported;
        /// Author (4 bytes), scheduled post (8 bytes) -> scheduled post.
        Scheduled = 0x4a, "a scheduled post", Exported;
        /// User (4 bytes), hashtag that the user follows -> the stamp since when.
        FollowedTag = 0x4b, "a hashtag that a user follows", Exported;
        /// Owner (4 bytes), list (8 bytes) -> list.
        List = 0x4d, "a list of a user", Exported;
        /// Owner (4 bytes), list (8 bytes), member (4 bytes) -> nothing.
        ListMember = 0x4e, "a member of a list", Exported;
        /// Owner, member (4 bytes each), list (8 bytes) -> nothing.
        ListedUser = 0x4f, "a member of a list", Derived;
        /// Picture (8 bytes) -> what is known of it.
        Media = 0x50, "a picture", Exported;
        /// SHA-256 of a file (32 bytes), picture that needs it (8 bytes) -> nothing.
        MediaFile = 0x51, "a file of a picture", Derived;
        /// Owner (4 bytes), picture (8 bytes) -> nothing.
        MediaOf = 0x52, "a picture of a user", Derived;
        /// Owner (4 bytes), or four bytes 0xff for all -> what the pictures take; no row if there are none.
        MediaSpace = 0x54, "what the pictures of a user take", Derived;
        /// Post (8 bytes) -> what it said before it was edited, the oldest version first; no row if it was not.
        PostVersions = 0x55, "what a post said before", Exported;
        /// User (4 bytes) -> what they did with conversations; no row if nothing.
        Conversations = 0x56, "what a user has read of conversations", Exported;
        /// User (4 bytes) -> what they chose of their follows; no row if nothing.
        FollowOptions = 0x57, "what a user chose of their follows", Exported;
        /// User (4 bytes) -> the threads that they muted; no row if there are none.
        MutedThreads = 0x58, "the threads that a user has muted", Exported;
        /// User (4 bytes), first post of a conversation, direct post of it by or to the user with all bits inverted (8 bytes
        /// each) -> nothing. So the posts of a conversation are together, newest first.
        ConversationPost = 0x5a, "a post of a conversation", Derived;
        /// A table that the next format adds.
        Next = 0xfb, "a row of the next format", NeverWritten if "next-format";
    }
}
