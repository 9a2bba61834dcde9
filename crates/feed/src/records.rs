//! Records stored in rows, and their encodings: postcard for records, little-endian words for counts.

use rows::{Stamp, Value};
use serde::{Deserialize, Serialize};

use crate::boost::Boost;
use crate::ids::{PostId, SampleSetId, UserId};
use crate::media::MediaId;
use crate::parts::parts;
use crate::poll::Poll;
use crate::post::{HomeUsers, Listed, ListedBoost, Visibility};
use crate::settings::{PostDefaults, ProfileFields};
use crate::tag::Tag;
use crate::text::{Bio, Handle, Label, Language, Name, PostText, SetName, Warning};
use crate::token;

parts! {
    /// A user.
    pub struct User {
        /// Unique handle; never changes.
        pub handle: Handle,
        /// Stamp of the registration.
        pub registered: Stamp,
    }
    parts {
        /// Display name.
        pub name: Name = 0,
        /// Text of the profile.
        pub bio: Bio = 1,
        /// Pairs of a name and a value on the profile.
        pub fields: ProfileFields = 2,
        /// Whether a program writes the user's posts.
        pub bot: bool = 3,
        /// Whether lists of suggested users leave this user out.
        pub undiscoverable: bool = 4,
        /// Whether searches may find the user's public posts.
        pub indexable: bool = 5,
        /// Defaults of new posts.
        pub defaults: PostDefaults = 6,
        /// Picture shown next to the user's posts.
        pub avatar: Option<MediaId> = 7,
        /// Header picture of the profile.
        pub header: Option<MediaId> = 8,
    }
}

parts! {
    /// A post. The id contains the time of writing. See also [`Draft`](crate::Draft).
    pub struct Post {
        /// Author of the post.
        pub author: UserId,
    }
    parts {
        /// Text of the post.
        pub text: PostText = 0,
        /// Parent post, for a reply; may be deleted.
        pub in_reply_to: Option<PostId> = 1,
        /// User replied to: the author of the parent post, or in a post of the 2014 report the user whose mention
        /// begins the text.
        pub reply_to: Option<UserId> = 2,
        /// Audience of the post.
        pub visibility: Visibility = 3,
        /// Content warning, shown instead of the text until the reader opens the post; may be empty.
        pub warning: Warning = 4,
        /// Whether pictures are hidden until the reader asks for them.
        pub sensitive: bool = 5,
        /// Language of the text.
        pub language: Option<Language> = 6,
        /// Pictures, at most [`limits::POST_MEDIA_MAX`](crate::limits::POST_MEDIA_MAX); empty for a boost.
        pub media: Vec<MediaId> = 7,
        /// Poll. Posts with pictures and boosts have no poll.
        pub poll: Option<Poll> = 8,
        /// Author of the parent post unless it is the same author, then every user mentioned in the text; each once.
        pub mentions: Vec<UserId> = 32,
        /// Stamp of the last edit.
        pub edited: Option<Stamp> = 33,
        /// Boosted post, for a boost, which has no text, mentions or parent of its own.
        pub boost: Option<Boost> = 34,
        /// First post of the conversation, for a direct post that replies to a direct post.
        pub conversation: Option<PostId> = 35,
        /// First post of the thread, for a reply: see [`Post::thread_or`].
        pub thread: Option<PostId> = 36,
    }
}

/// A posted story that is not swept yet. The id contains the time of posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Story {
    /// Author of the story.
    pub author: UserId,
    /// Time of expiry in milliseconds since 1970; 0 once the story is deleted.
    pub expires_ms: u64,
    /// Upper bound of the number of view rows that are not swept: a second view by the same friend counts again. The
    /// number of sweep commands depends on this count only, since the rows are ephemeral.
    pub views: u32,
}

/// A labelled drawing that was added by a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Set of the sample.
    pub set: SetName,
    /// Label of the drawing.
    pub label: Label,
    /// The drawing.
    pub bits: SampleBits,
}

/// A drawing of 32 rows of 32 pixels, one bit each. The first pixel is the most significant bit of the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
// In four parts, because serde supports arrays of at most 32 elements.
pub struct SampleBits([[u8; 32]; 4]);

/// A set of samples. It exists as long as it has samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleSet {
    /// Id of the set in rows.
    pub id: SampleSetId,
    /// Number of added samples.
    pub samples: u32,
    /// Number of distinct labels of the added samples.
    pub labels: u32,
}

/// Counts of a user's posts and relations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of posts that exist.
    pub posts: u32,
    /// Number of users who follow this user.
    pub followers: u32,
    /// Number of users that this user follows.
    pub following: u32,
    /// Number of friends.
    pub friends: u32,
    /// Number of users whom this user blocks.
    pub blocks: u32,
    /// Number of users whom this user mutes.
    pub mutes: u32,
    /// Number of users about whom this user has a note.
    pub notes: u32,
    /// Number of pending follow requests to this user.
    pub requests: u32,
    /// Number of pending follow requests by this user.
    pub requested: u32,
    /// Number of posts that are neither public nor unlisted.
    pub closed: u32,
}

impl Post {
    /// Creates a boost by `author`.
    #[must_use]
    pub fn of_boost(author: UserId, visibility: Visibility, boost: Boost) -> Self {
        Self { visibility, boost: Some(boost), ..Self::of(author) }
    }

    /// Number of the post's mention rows: the author plus 1 for a direct post, else 0.
    #[must_use]
    pub fn mention_number(&self) -> u64 {
        match self.visibility {
            Visibility::Direct => u64::from(self.author.0) + 1,
            _ => 0,
        }
    }

    /// Mentioned users other than the author, whose self-mention has no row and no notification.
    pub fn mentioned_others(&self) -> impl Iterator<Item = UserId> + '_ {
        self.mentions.iter().copied().filter(|user| *user != self.author)
    }

    /// Entry of the post in list rows.
    #[must_use]
    pub fn listed(&self) -> Listed {
        let Some(boost) = &self.boost else { return Listed::new(self.reply_to, self.visibility) };
        let Boost { author, is_recent, .. } = *boost;
        let has_earlier = !boost.earlier.is_empty();
        Listed::boost(ListedBoost { author, is_recent, has_earlier }, self.visibility)
    }

    /// Hashtags in the index, which covers public posts only.
    #[must_use]
    pub fn tags(&self) -> Vec<Tag> {
        match self.visibility {
            Visibility::Public => token::tags(self.text.as_str()),
            _ => Vec::new(),
        }
    }

    /// Id of the boosted post if this is a boost, else the post's own `id`. Reactions to a boost go to the boosted
    /// post.
    #[must_use]
    pub fn boosted_or(&self, id: PostId) -> PostId {
        self.boost.as_ref().map_or(id, |boost| boost.post)
    }

    /// First post of the thread: the post's own `id` unless it is a reply.
    #[must_use]
    pub fn thread_or(&self, id: PostId) -> PostId {
        self.thread.unwrap_or(id)
    }

    /// First post of the conversation of a direct post: the post's own `id` if it begins the conversation.
    #[must_use]
    pub fn conversation_or(&self, id: PostId) -> Option<PostId> {
        (self.visibility == Visibility::Direct).then(|| self.conversation.unwrap_or(id))
    }

    /// Users that decide whose home shows the post, if any: those mentioned by a direct post, or the earlier boosters
    /// of the boosted post.
    #[must_use]
    pub fn home_users(&self) -> Option<HomeUsers> {
        match &self.boost {
            Some(boost) => (!boost.earlier.is_empty()).then(|| boost.earlier.clone().into()),
            None => (self.visibility == Visibility::Direct).then(|| self.mentions.clone().into()),
        }
    }
}

impl Counts {
    /// Number of public and unlisted posts, for the counts on a profile.
    #[must_use]
    pub const fn open_posts(self) -> u32 {
        self.posts.saturating_sub(self.closed)
    }

    /// Encodes the counts as little-endian words in the order of the fields: 16 bytes, 24 if the user blocks or mutes
    /// anyone, 36 with notes or requests, and 40 with posts that are neither public nor unlisted.
    #[must_use]
    pub fn encode(self) -> Value {
        let mut bytes = Value::new();
        let Self { posts, followers, following, friends, blocks, mutes, .. } = self;
        let Self { notes, requests, requested, closed, .. } = self;
        let words = [
            posts, followers, following, friends, blocks, mutes, notes, requests, requested, closed,
        ];
        let len = match (blocks | mutes, notes | requests | requested, closed) {
            (0, 0, 0) => 4,
            (_, 0, 0) => 6,
            (_, _, 0) => 9,
            _ => words.len(),
        };
        for word in words.into_iter().take(len) {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Reverses [`Counts::encode`].
    ///
    /// # Panics
    /// If the length is invalid. The store checks rows, so this is a broken invariant.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Self {
        match Self::try_decode(bytes) {
            Some(counts) => counts,
            None => rows::malformed("row of counts", &format_args!("{} bytes", bytes.len())),
        }
    }

    /// Decodes bytes that may be damaged; `None` if their length is invalid.
    #[must_use]
    pub fn try_decode(bytes: &[u8]) -> Option<Self> {
        let mut words = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
        let (posts, followers, following) = (words.next()?, words.next()?, words.next()?);
        let friends = words.next()?;
        let mut later = || words.next().unwrap_or(0);
        let (blocks, mutes) = (later(), later());
        let (notes, requests, requested, closed) = (later(), later(), later(), later());
        // The lengths that [`Counts::encode`] writes.
        let is_whole = matches!(bytes.len(), 16 | 24 | 36 | 40);
        is_whole.then_some(Self {
            posts,
            followers,
            following,
            friends,
            blocks,
            mutes,
            notes,
            requests,
            requested,
            closed,
        })
    }
}

impl From<[u8; 128]> for SampleBits {
    fn from(bytes: [u8; 128]) -> Self {
        let mut pieces = [[0; 32]; 4];
        pieces.as_flattened_mut().copy_from_slice(&bytes);
        Self(pieces)
    }
}

impl From<SampleBits> for [u8; 128] {
    fn from(SampleBits(pieces): SampleBits) -> Self {
        let mut bytes = [0; 128];
        bytes.copy_from_slice(pieces.as_flattened());
        bytes
    }
}

impl Story {
    /// Whether users can see the story at `now_ms`, in milliseconds since 1970.
    #[must_use]
    pub fn is_live(&self, now_ms: u64) -> bool {
        let now_ms = now_ms - u64::from(rows::has_bug("show-expired-story"));
        now_ms < self.expires_ms
    }
}
