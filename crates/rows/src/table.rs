//! All tables: the content of their rows, the tag of their rows on disk, and how they are kept. A table is one line.
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
macro_rules! tables {
    ($(
        $(#[$kind_doc:meta])*
        $kind:ident as $short:ident {
            $(
                $(#[$doc:meta])*
                $table:ident = $tag:literal $(: $($kept:ident)+)? $(if $feature:literal)?,
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
        User = 0x02,
        /// User id -> counts.
        Counts = 0x03,
        /// Post id -> post.
        Post = 0x04,
        /// Story id -> story without its text.
        Story = 0x05,
        /// Story id -> text.
        StoryText = 0x06: Ephemeral,
        /// Sample id -> sample.
        Sample = 0x07,
        /// Space -> bucket id; no row if no bucket has it, or if it is the first space of a numbered bucket.
        BucketOfSpace = 0x08,
        /// User id -> up to where the user has read timelines; no row before there are markers.
        Markers = 0x09,
        /// User id times 2^32, plus the id of the user whom it is about -> the user's note.
        Note = 0x0a,
        /// Poll id -> number of users who voted, and votes for each option; no row if nobody did.
        PollCounts = 0x0b,
        /// User id -> account.
        Account = 0x0c,
        /// App id -> app.
        App = 0x0d,
        /// Grant id -> grant: what an authorization code, a token or a session permits.
        Grant = 0x0e,
        /// App id -> number of grants by which it acts for users; no row if there are none.
        AppUses = 0x0f,
        /// Post id -> its counts; no row if all are zero.
        PostCounts = 0x10,
        /// User id -> which notifications are stored and shown; no row if there were none.
        Inbox = 0x11,
    }

    /// Tables from (owner, item) to a number.
    SetTable as Set {
        /// (story, viewer) -> when they first viewed it, in milliseconds since 1970.
        StoryViews = 0x13: Ephemeral,
        /// (viewer, story) -> 0.
        Seen = 0x14: Ephemeral Dense,
        /// (set of samples, sample) -> 0.
        Samples = 0x15,
        /// (0, space that no bucket has) -> the cursor from which its rows are not removed yet. (1, 0) -> the number of
        /// rows in all of them.
        OrphanedSpaces = 0x16,
        /// (0, space without rows that no bucket has) -> 0.
        FreeSpaces = 0x17,
        /// (post, reply to it) -> who may see the reply. Rows of a deleted post stay until its replies are deleted.
        Replies = 0x18,
        /// (0, deleted user whose rows are not all removed) -> when they were deleted, in milliseconds since 1970.
        ErasingUsers = 0x19,
        /// (post, kind of the reaction times 2^32 plus the user) -> the stamp of the reaction.
        Reactions = 0x1a,
        /// (user, user whom they have a note about) -> 0.
        Notes = 0x1c,
        /// (user, user who has a note about them) -> 0.
        NotedBy = 0x1d,
        /// (user, user who asks to follow them) -> 0.
        FollowRequests = 0x1e,
        /// (user, user whom they ask to follow) -> 0.
        Requested = 0x1f,
        /// (poll, user who voted) -> the chosen options, a bit for each.
        PollVotes = 0x20,
        /// (user, poll) -> the options that they chose, a bit for each.
        Votes = 0x21,
        /// (post, boost of it) -> the user who boosted it.
        Boosts = 0x22,
        /// (list of posts, post) -> the author. List 0 has the posts of the public timeline, list 1 those of them with
        /// pictures. (2^32 plus a user, post of the user with pictures) -> as `AuthorPosts`.
        PostLists = 0x23,
        /// (user, direct post by or to the user) -> the first post of its conversation.
        DirectPosts = 0x24,
        /// (post, reply to it that everybody may see) -> the author of the reply. Rows of a deleted post stay as those of
        /// `Replies`.
        OpenReplies = 0x25,
        /// (follower, followed) -> 0.
        Following = 0x27: Packed,
        /// (followed, follower) -> 0.
        Followers = 0x28: Packed,
        /// (author, post) -> 0, or the user replied to plus 1; and from bit 33 on, who may see it.
        AuthorPosts = 0x29: Packed,
        /// (mentioned, post) -> the author plus 1 of a direct post, and 0 of others.
        Mentions = 0x2a: Packed,
        /// (user, friend) -> 0, in both directions.
        Friends = 0x2b: Packed,
        /// (author, story) -> when it expires, in milliseconds since 1970.
        AuthorStories = 0x2c: Packed,
        /// (deleted user, 0) -> 0. Rows are never removed.
        DeletedUsers = 0x2d: Packed,
        /// (user, stamp of the reaction) -> the post that they favourited.
        Favourites = 0x2e: Packed,
        /// (user, user whom they block) -> 0.
        Blocks = 0x2f: Packed,
        /// (blocked user, user who blocks them) -> 0.
        BlockedBy = 0x30: Packed,
        /// (user, user whom they mute) -> twice the end in milliseconds since 1970, or 0 without an end; plus 1 if
        /// mentions are hidden too.
        Mutes = 0x31: Packed,
        /// (muted user, user who mutes them) -> 0.
        MutedBy = 0x32: Packed,
        /// (user, stamp of the reaction) -> the post that they bookmarked.
        Bookmarks = 0x33: Packed,
        /// (user, stamp of the reaction) -> the post of their own that they pinned.
        Pins = 0x34: Packed,
        /// (user, stamp of the cause) -> kind of the notification times 2^32, plus the user who caused it.
        Notifications = 0x35: Packed,
        /// (user whom others must ask to follow, 0) -> 0. (user whose account is disabled, 1) -> 0.
        LockedUsers = 0x36: Packed,
    }

    /// Tables from bytes to bytes, in order.
    NameTable as Name {
        /// Handle -> user id.
        Handle = 0x37,
        /// Day and key digest -> content digest and outcome.
        Idempotency = 0x38,
        /// Name of a set of samples -> its description.
        SampleSet = 0x39,
        /// Set of samples, then label -> number of samples that have it.
        SampleLabel = 0x3a,
        /// Name of a bucket -> its id.
        Bucket = 0x3b,
        /// When a key expires (milliseconds since 1970, 8 bytes), its space (4 bytes), the key -> nothing.
        KeyExpiry = 0x3c,
        /// Node (16 bytes) -> its last group that counts. Only a log that several nodes share has senders.
        Sender = 0x3d,
        /// When something is due (milliseconds since 1970, 8 bytes), what it is -> how far it is; nothing before it begins.
        Due = 0x3e,
        /// E-mail address of an account -> user id.
        Email = 0x3f,
        /// SHA-256 of the code of an invite -> invite.
        Invite = 0x40,
        /// SHA-256 of a code, token or session -> grant id.
        GrantSecret = 0x41,
        /// 0 and a user id, or 1 and an app id for its own tokens; grant id (8 bytes each) -> nothing.
        GrantOf = 0x42,
        /// App id (8 bytes) that acts for no user -> nothing.
        UnusedApp = 0x44,
        /// Hashtag, 0, id of a public post with all bits inverted (8 bytes), its author (4 bytes) -> nothing. So the posts
        /// of a hashtag are together, newest first.
        TagPost = 0x45,
        /// Author (4 bytes), hashtag, 0, id of a public post with all bits inverted (8 bytes) -> nothing.
        AuthorTag = 0x46,
        /// User (4 bytes), hashtag that the profile shows -> the stamp since when.
        FeaturedTag = 0x47,
        /// User (4 bytes) -> their filters; no row if there are none.
        Filters = 0x48,
        /// Author (4 bytes), scheduled post (8 bytes) -> scheduled post.
        Scheduled = 0x4a,
        /// User (4 bytes), hashtag that the user follows -> the stamp since when.
        FollowedTag = 0x4b,
        /// Owner (4 bytes), list (8 bytes) -> list.
        List = 0x4d,
        /// Owner (4 bytes), list (8 bytes), member (4 bytes) -> nothing.
        ListMember = 0x4e,
        /// Owner, member (4 bytes each), list (8 bytes) -> nothing.
        ListedUser = 0x4f,
        /// Picture (8 bytes) -> what is known of it.
        Media = 0x50,
        /// SHA-256 of a file (32 bytes), picture that needs it (8 bytes) -> nothing.
        MediaFile = 0x51,
        /// Owner (4 bytes), picture (8 bytes) -> nothing.
        MediaOf = 0x52,
        /// Owner (4 bytes), or four bytes 0xff for all -> what the pictures take; no row if there are none.
        MediaSpace = 0x54,
        /// Post (8 bytes) -> what it said before it was edited, the oldest version first; no row if it was not.
        PostVersions = 0x55,
        /// User (4 bytes) -> what they did with conversations; no row if nothing.
        Conversations = 0x56,
        /// User (4 bytes) -> what they chose of their follows; no row if nothing.
        FollowOptions = 0x57,
        /// User (4 bytes) -> the threads that they muted; no row if there are none.
        MutedThreads = 0x58,
        /// User (4 bytes), first post of a conversation, direct post of it by or to the user with all bits inverted (8 bytes
        /// each) -> nothing. So the posts of a conversation are together, newest first.
        ConversationPost = 0x5a,
        /// A table that the next format adds.
        Next = 0xfb if "next-format",
    }
}
