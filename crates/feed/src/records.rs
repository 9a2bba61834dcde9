//! The records in rows, and their bytes: postcard for records, fixed little-endian words for counts.

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
        /// Unique; never changes.
        pub handle: Handle,
        /// When they registered.
        pub registered: Stamp,
    }
    parts {
        /// Shown beside posts.
        pub name: Name = 0,
        /// Shown on the profile.
        pub bio: Bio = 1,
        /// Pairs of a name and a value on the profile.
        pub fields: ProfileFields = 2,
        /// Whether a program writes the posts.
        pub bot: bool = 3,
        /// Whether lists of users to discover leave the user out.
        pub undiscoverable: bool = 4,
        /// Whether the user agrees to searches of their public posts.
        pub indexable: bool = 5,
        /// The defaults of new posts.
        pub defaults: PostDefaults = 6,
        /// The picture beside everything that the user writes.
        pub avatar: Option<MediaId> = 7,
        /// The picture on the profile.
        pub header: Option<MediaId> = 8,
    }
}

parts! {
    /// A post. Its id contains the time when it was written. See also [`Draft`](crate::Draft).
    pub struct Post {
        /// The user who wrote it.
        pub author: UserId,
    }
    parts {
        /// Its text.
        pub text: PostText = 0,
        /// The post replied to, which may be deleted by now.
        pub in_reply_to: Option<PostId> = 1,
        /// The user it replies to: the author of the post replied to, or for a post of the 2014 report, the user whose mention
        /// begins the text.
        pub reply_to: Option<UserId> = 2,
        /// Who may see it.
        pub visibility: Visibility = 3,
        /// Shown instead of the text until the reader asks for it; may be empty.
        pub warning: Warning = 4,
        /// Whether its images should be hidden until the reader asks for them.
        pub sensitive: bool = 5,
        /// The language of the text.
        pub language: Option<Language> = 6,
        /// Its pictures, at most [`limits::POST_MEDIA_MAX`](crate::limits::POST_MEDIA_MAX). A boost has none.
        pub media: Vec<MediaId> = 7,
        /// Its poll. A post with pictures has none, and neither has a boost.
        pub poll: Option<Poll> = 8,
        /// The author of the post replied to, unless that is the same author, then every user mentioned in
        /// the text; each once.
        pub mentions: Vec<UserId> = 32,
        /// When it was last edited.
        pub edited: Option<Stamp> = 33,
        /// The post that it shows again, if it is a boost. It has no text then, mentions nobody and replies to nothing.
        pub boost: Option<Boost> = 34,
        /// The first post of the conversation, of a direct post that replies to a direct post.
        pub conversation: Option<PostId> = 35,
        /// The first post of the thread, of a reply to a post: see [`Post::thread_or`].
        pub thread: Option<PostId> = 36,
    }
}

/// A story that was posted and not swept yet. Its id contains the time when it was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Story {
    /// The user who posted it.
    pub author: UserId,
    /// When it expires, in milliseconds since 1970; 0 once it is deleted.
    pub expires_ms: u64,
    /// Number of views by friends that are not swept yet: at least the number of its view rows, and more
    /// if a friend viewed it twice. The view rows are ephemeral, so the number of commands of a sweep must
    /// not depend on them; it depends on this number.
    pub views: u32,
}

/// A labelled drawing that was added by a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// The set it belongs to.
    pub set: SetName,
    /// The label of the drawing.
    pub label: Label,
    /// The drawing.
    pub bits: SampleBits,
}

/// A drawing of 32 rows of 32 pixels, a bit each, the first pixel in the most significant bit of the
/// first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
// In four parts, because serde supports arrays of at most 32 elements.
pub struct SampleBits([[u8; 32]; 4]);

/// A set of samples. It exists as long as it has samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleSet {
    /// Its id in rows.
    pub id: SampleSetId,
    /// Number of samples added.
    pub samples: u32,
    /// Number of different labels of these samples.
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
    /// Number of notes of this user about users.
    pub notes: u32,
    /// Number of users who ask to follow this user.
    pub requests: u32,
    /// Number of users whom this user asks to follow.
    pub requested: u32,
    /// Number of those posts that are not for everybody.
    pub closed: u32,
}

impl Post {
    /// A boost by `author`.
    #[must_use]
    pub fn of_boost(author: UserId, visibility: Visibility, boost: Boost) -> Self {
        Self { visibility, boost: Some(boost), ..Self::of(author) }
    }

    /// The number of the row of a mention by it.
    #[must_use]
    pub fn mention_number(&self) -> u64 {
        match self.visibility {
            Visibility::Direct => u64::from(self.author.0) + 1,
            _ => 0,
        }
    }

    /// The users whom it mentions without its author: mentions of oneself have no row and notify nobody.
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

    /// Its hashtags in the index, which has those of public posts.
    #[must_use]
    pub fn tags(&self) -> Vec<Tag> {
        match self.visibility {
            Visibility::Public => token::tags(self.text.as_str()),
            _ => Vec::new(),
        }
    }

    /// The id of what it boosts, or its own, which is `id`: a reaction to a boost is one to the boosted post.
    #[must_use]
    pub fn boosted_or(&self, id: PostId) -> PostId {
        self.boost.as_ref().map_or(id, |boost| boost.post)
    }

    /// The first post of its thread; of a post that replies to none its own id, which is `id`.
    #[must_use]
    pub fn thread_or(&self, id: PostId) -> PostId {
        self.thread.unwrap_or(id)
    }

    /// The first post of its conversation, if it is direct; of one that begins a conversation its own id, which is `id`.
    #[must_use]
    pub fn conversation_or(&self, id: PostId) -> Option<PostId> {
        (self.visibility == Visibility::Direct).then(|| self.conversation.unwrap_or(id))
    }

    /// The users on whom it depends in whose home it is, if it does: those whom it mentions, if it is direct, and those
    /// who boosted earlier.
    #[must_use]
    pub fn home_users(&self) -> Option<HomeUsers> {
        match &self.boost {
            Some(boost) => (!boost.earlier.is_empty()).then(|| boost.earlier.clone().into()),
            None => (self.visibility == Visibility::Direct).then(|| self.mentions.clone().into()),
        }
    }
}

impl Counts {
    /// Number of posts that everybody may see: what is public counts what is public.
    #[must_use]
    pub const fn open_posts(self) -> u32 {
        self.posts.saturating_sub(self.closed)
    }

    /// Little-endian words in the order of the fields: 16 bytes; 24 bytes if the user blocks or mutes anyone, 36 if there are
    /// notes or requests, and 40 if posts are not for everybody.
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
    /// If the row is not one of ours: rows are checked by the store, so this is a broken invariant.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Self {
        match Self::try_decode(bytes) {
            Some(counts) => counts,
            None => rows::malformed("row of counts", &format_args!("{} bytes", bytes.len())),
        }
    }

    /// As [`Counts::decode`], for bytes that may be damaged.
    #[must_use]
    pub fn try_decode(bytes: &[u8]) -> Option<Self> {
        let mut words = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
        let (posts, followers, following) = (words.next()?, words.next()?, words.next()?);
        let friends = words.next()?;
        let mut later = || words.next().unwrap_or(0);
        let (blocks, mutes) = (later(), later());
        let (notes, requests, requested, closed) = (later(), later(), later(), later());
        // As many words as [`Counts::encode`] writes.
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
    /// Whether it can be seen at `now_ms`, in milliseconds since 1970.
    #[must_use]
    pub fn is_live(&self, now_ms: u64) -> bool {
        let now_ms = now_ms - u64::from(rows::has_bug("show-expired-story"));
        now_ms < self.expires_ms
    }
}
