//! All tables: the content of their rows, the tag of their rows on disk, and how they are kept.
//!
//! There are three kinds. Points map a number to bytes, sets map (owner, item) to a small number and are
//! read as ranges of one owner's items, names map bytes to bytes in order. A set is **packed** if a store
//! keeps many items of an owner in one row.
//!
//! The rows of an **ephemeral** table must be erased from every disk soon after they are removed, so a
//! store keeps such tables in separate files. After a crash, a store may have applied more of the log to
//! ephemeral tables than to the others.
//! **Invariant:** the outcome of a command, the totals and the rows of other tables never depend on
//! ephemeral rows.
//!
//! **Invariant:** tags are part of the format of stores: each belongs to one table. A tag is never used
//! again and never changes its meaning.

/// Makes the enum of one kind of table. Tags ascend, so that rows in the order of tables are in the order
/// of their names on disk. A table with `if FEATURE` is only in builds with that feature.
macro_rules! tables {
    (
        $(#[$kind_doc:meta])*
        $kind:ident in $low:literal..=$high:literal {
            $($(#[$doc:meta])* $table:ident = $tag:literal $(if $feature:literal)?,)*
        }
    ) => {
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
        }

        const _: () = assert!(ascend(&[$low - 1, $($tag,)* $high + 1]), "tags ascend within their range");
    };
}

const fn ascend(tags: &[u8]) -> bool {
    match tags {
        [first, rest @ ..] => match rest {
            [second, ..] => *first < *second && ascend(rest),
            [] => true,
        },
        [] => true,
    }
}

tables! {
    /// Tables from a number to bytes.
    PointTable in 0x10..=0x1f {
        /// User id -> profile.
        User = 0x10,
        /// User id -> counts.
        Counts = 0x11,
        /// Post id -> post.
        Post = 0x12,
        /// Story id -> story without its text.
        Story = 0x13,
        /// Story id -> text. Ephemeral.
        StoryText = 0x14,
        /// Sample id -> sample.
        Sample = 0x15,
        /// Space -> bucket id; no row if no bucket has it, or if it is the first space of a numbered bucket.
        BucketOfSpace = 0x16,
        /// User id -> up to where the user has read timelines; no row before there are markers.
        Markers = 0x17,
        /// User id times 2^32, plus the id of the user whom it is about -> the user's note.
        Note = 0x18,
        /// Poll id -> number of users who voted, and votes for each option; no row if nobody did.
        PollCounts = 0x19,
        /// User id -> account.
        Account = 0x1a,
        /// App id -> app.
        App = 0x1b,
        /// Grant id -> grant: what an authorization code, a token or a session permits.
        Grant = 0x1c,
        /// App id -> number of grants by which it acts for users; no row if there are none.
        AppUses = 0x1d,
        /// Post id -> its counts; no row if all are zero.
        PostCounts = 0x1e,
        /// User id -> which notifications are stored and shown; no row if there were none.
        Inbox = 0x1f,
    }
}

impl PointTable {
    /// Whether rows of this table may be ahead of the others after a crash.
    #[must_use]
    pub const fn is_ephemeral(self) -> bool {
        matches!(self, Self::StoryText)
    }
}

tables! {
    /// Tables from (owner, item) to a number.
    SetTable in 0x20..=0x5f {
        /// (whole second since 1970 in which it expires or was deleted, story) -> author.
        Expiring = 0x26,
        /// (story, viewer) -> when they first viewed it, in milliseconds since 1970. Ephemeral.
        StoryViews = 0x27,
        /// (viewer, story) -> 0. Ephemeral.
        Seen = 0x28,
        /// (set of samples, sample) -> 0.
        Samples = 0x29,
        /// (0, space that no bucket has) -> the cursor from which its rows are not removed yet. (1, 0) -> the number of
        /// rows in all of them.
        OrphanedSpaces = 0x2b,
        /// (0, space without rows that no bucket has) -> 0.
        FreeSpaces = 0x2c,
        /// (post, reply to it) -> who may see the reply. Rows of a deleted post stay until its replies are deleted.
        Replies = 0x2d,
        /// (0, deleted user whose rows are not all removed) -> 0.
        ErasingUsers = 0x2f,
        /// (post, kind of the reaction times 2^32 plus the user) -> the stamp of the reaction.
        Reactions = 0x42,
        /// (0, deleted post whose reactions are not all removed) -> 0. (1, poll that no post has any more, whose votes are
        /// not all removed) -> 0.
        SweptPosts = 0x43,
        /// (user, user whom they have a note about) -> 0.
        Notes = 0x44,
        /// (user, user who has a note about them) -> 0.
        NotedBy = 0x45,
        /// (user, user who asks to follow them) -> 0.
        FollowRequests = 0x46,
        /// (user, user whom they ask to follow) -> 0.
        Requested = 0x47,
        /// (poll, user who voted) -> the chosen options, a bit for each.
        PollVotes = 0x48,
        /// (user, poll) -> the options that they chose, a bit for each.
        Votes = 0x49,
        /// (post, boost of it) -> the user who boosted it.
        Boosts = 0x4a,
        /// (list of posts, post) -> the author. List 0 has the posts of the public timeline, list 1 those of them with
        /// pictures. (2^32 plus a user, post of the user with pictures) -> as `AuthorPosts`.
        PostLists = 0x4b,
        /// (user, direct post by or to the user) -> the first post of its conversation.
        DirectPosts = 0x4c,
        /// (post, reply to it that everybody may see) -> the author of the reply. Rows of a deleted post stay as those of
        /// `Replies`.
        OpenReplies = 0x4d,
        /// (0, user whose account was disabled or enabled, and whose posts are not all removed from lists, or added again)
        /// -> no earlier post of theirs is left.
        RelistedUsers = 0x4e,
        /// (follower, followed) -> 0. Packed.
        Following = 0x50,
        /// (followed, follower) -> 0. Packed.
        Followers = 0x51,
        /// (author, post) -> 0, or the user replied to plus 1; and from bit 33 on, who may see it. Packed.
        AuthorPosts = 0x52,
        /// (mentioned, post) -> the author plus 1 of a direct post, and 0 of others. Packed.
        Mentions = 0x53,
        /// (user, friend) -> 0, in both directions. Packed.
        Friends = 0x54,
        /// (author, story) -> when it expires, in milliseconds since 1970. Packed.
        AuthorStories = 0x55,
        /// (deleted user, 0) -> 0. Rows are never removed. Packed.
        DeletedUsers = 0x56,
        /// (user, stamp of the reaction) -> the post that they favourited. Packed.
        Favourites = 0x57,
        /// (user, user whom they block) -> 0. Packed.
        Blocks = 0x58,
        /// (blocked user, user who blocks them) -> 0. Packed.
        BlockedBy = 0x59,
        /// (user, user whom they mute) -> twice the end in milliseconds since 1970, or 0 without an end; plus 1 if
        /// mentions are hidden too. Packed.
        Mutes = 0x5a,
        /// (muted user, user who mutes them) -> 0. Packed.
        MutedBy = 0x5b,
        /// (user, stamp of the reaction) -> the post that they bookmarked. Packed.
        Bookmarks = 0x5c,
        /// (user, stamp of the reaction) -> the post of their own that they pinned. Packed.
        Pins = 0x5d,
        /// (user, stamp of the cause) -> kind of the notification times 2^32, plus the user who caused it. Packed.
        Notifications = 0x5e,
        /// (user whom others must ask to follow, 0) -> 0. (user whose account is disabled, 1) -> 0. Packed.
        LockedUsers = 0x5f,
    }
}

/// Whether the tags of packed tables are above those of other kinds, and of the others the **early** ones below and the
/// late ones between those of names and of packed tables.
const fn are_apart(tables: &[SetTable]) -> bool {
    match tables {
        [first, rest @ ..] => {
            let packed = first.is_packed();
            let other = first.is_early() || matches!(first.tag(), 0x42..=0x4f);
            (first.tag() >= 0x50) == packed && other != packed && are_apart(rest)
        }
        [] => true,
    }
}

const _: () = assert!(are_apart(&SetTable::ALL));

impl SetTable {
    /// Whether rows of this table may be ahead of the others after a crash.
    #[must_use]
    pub const fn is_ephemeral(self) -> bool {
        matches!(self, Self::StoryViews | Self::Seen)
    }

    /// Whether its rows on disk are before those of names.
    #[must_use]
    pub const fn is_early(self) -> bool {
        self.tag() <= 0x2f
    }

    /// Whether many items of an owner share a row: of all tables with dense owners, but those whose removed items must
    /// be erased soon.
    #[must_use]
    pub const fn is_packed(self) -> bool {
        self.has_dense_owners() && !self.is_ephemeral()
    }

    /// Whether owners are users, numbered without gaps and most of them with items, so that an array of them stays
    /// small.
    #[must_use]
    pub const fn has_dense_owners(self) -> bool {
        !matches!(
            self,
            Self::Expiring
                | Self::StoryViews
                | Self::Samples
                | Self::OrphanedSpaces
                | Self::FreeSpaces
                | Self::Replies
                | Self::ErasingUsers
                | Self::Reactions
                | Self::SweptPosts
                | Self::Notes
                | Self::NotedBy
                | Self::FollowRequests
                | Self::Requested
                | Self::PollVotes
                | Self::Votes
                | Self::Boosts
                | Self::PostLists
                | Self::DirectPosts
                | Self::OpenReplies
                | Self::RelistedUsers
        )
    }
}

tables! {
    /// Tables from bytes to bytes, in order: early ones up to 0x3d, late ones from 0x60 on.
    NameTable in 0x30..=0x7f {
        /// Handle -> user id.
        Handle = 0x30,
        /// Day and key digest -> content digest and outcome.
        Idempotency = 0x31,
        /// Name of a set of samples -> its description.
        SampleSet = 0x32,
        /// Set of samples, then label -> number of samples that have it.
        SampleLabel = 0x33,
        /// Name of a bucket -> its id.
        Bucket = 0x34,
        /// When a key expires (milliseconds since 1970, 8 bytes), its space (4 bytes), the key -> nothing.
        KeyExpiry = 0x35,
        /// Node (16 bytes) -> its last group that counts. Only a log that several nodes share has senders.
        Sender = 0x36,
        /// When a mute ends (milliseconds since 1970, 8 bytes), its user, the muted user (4 bytes each) -> nothing.
        MuteEnd = 0x37,
        /// E-mail address of an account -> user id.
        Email = 0x38,
        /// SHA-256 of the code of an invite -> invite.
        Invite = 0x39,
        /// SHA-256 of a code, token or session -> grant id.
        GrantSecret = 0x3a,
        /// 0 and a user id, or 1 and an app id for its own tokens; grant id (8 bytes each) -> nothing.
        GrantOf = 0x3b,
        /// When a grant must be looked at (milliseconds since 1970), grant id (8 bytes each) -> nothing.
        GrantExpiry = 0x3c,
        /// App id (8 bytes) that acts for no user -> nothing.
        UnusedApp = 0x3d,
        /// Hashtag, 0, id of a public post with all bits inverted (8 bytes), its author (4 bytes) -> nothing. So the posts
        /// of a hashtag are together, newest first.
        TagPost = 0x60,
        /// Author (4 bytes), hashtag, 0, id of a public post with all bits inverted (8 bytes) -> nothing.
        AuthorTag = 0x61,
        /// User (4 bytes), hashtag that the profile shows -> the stamp since when.
        FeaturedTag = 0x62,
        /// User (4 bytes) -> their filters; no row if there are none.
        Filters = 0x63,
        /// When a poll ends (milliseconds since 1970), its post (8 bytes each) -> the first user who may be a voter that is not
        /// notified yet; nothing if nobody is. No row once all are.
        PollEnd = 0x64,
        /// Author (4 bytes), scheduled post (8 bytes) -> scheduled post.
        Scheduled = 0x65,
        /// User (4 bytes), hashtag that the user follows -> the stamp since when.
        FollowedTag = 0x66,
        /// When a scheduled post is due (milliseconds since 1970, 8 bytes), its author (4 bytes), its id (8 bytes) ->
        /// nothing.
        ScheduledDue = 0x67,
        /// Owner (4 bytes), list (8 bytes) -> list.
        List = 0x68,
        /// Owner (4 bytes), list (8 bytes), member (4 bytes) -> nothing.
        ListMember = 0x69,
        /// Owner, member (4 bytes each), list (8 bytes) -> nothing.
        ListedUser = 0x6a,
        /// Picture (8 bytes) -> what is known of it.
        Media = 0x6b,
        /// SHA-256 of a file (32 bytes), picture that needs it (8 bytes) -> nothing.
        MediaFile = 0x6c,
        /// Owner (4 bytes), picture (8 bytes) -> nothing.
        MediaOf = 0x6d,
        /// Picture (8 bytes) that is not attached -> nothing.
        UnattachedMedia = 0x6e,
        /// Owner (4 bytes), or four bytes 0xff for all -> what the pictures take; no row if there are none.
        MediaSpace = 0x6f,
        /// Post (8 bytes) -> what it said before it was edited, the oldest version first; no row if it was not.
        PostVersions = 0x70,
        /// User (4 bytes) -> what they did with conversations; no row if nothing.
        Conversations = 0x71,
        /// User (4 bytes) -> what they chose of their follows; no row if nothing.
        FollowOptions = 0x72,
        /// User (4 bytes) -> the threads that they muted; no row if there are none.
        MutedThreads = 0x73,
        /// When a post was edited (a stamp), the post (8 bytes each) -> the first user who may have boosted it and is not
        /// notified yet. No row once all are.
        EditNotices = 0x74,
        /// User (4 bytes), first post of a conversation, direct post of it by or to the user with all bits inverted (8 bytes
        /// each) -> nothing. So the posts of a conversation are together, newest first.
        ConversationPost = 0x75,
        /// A table that the next format adds.
        Next = 0x76 if "next-format",
    }
}

/// Whether the tags of late tables of names are above those of packed sets.
const fn names_are_apart(tables: &[NameTable]) -> bool {
    match tables {
        [first, rest @ ..] => (first.is_early() || first.tag() >= 0x60) && names_are_apart(rest),
        [] => true,
    }
}

const _: () = assert!(names_are_apart(&NameTable::ALL));

impl NameTable {
    /// Whether its rows on disk are before those of buckets, keys and packed sets.
    #[must_use]
    pub const fn is_early(self) -> bool {
        self.tag() <= 0x3d
    }
}
