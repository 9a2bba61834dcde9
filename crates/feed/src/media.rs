//! Pictures of posts and profiles: what the facts know of them, and the commands that change it. The files themselves are
//! beside the store, named after the SHA-256 of their bytes.
//!
//! A picture is uploaded first, **unattached**, and then attached to a post or to a profile. If its author deletes the post
//! to write it anew, it is unattached again. One that is unattached for a day is removed.
//!
//! **Invariant:** each file that a picture names has a row that leads from its hash to the picture, so a file without such
//! a row is used by nobody.
//! **Invariant:** the key of a picture is 128 random bits of the caller, and its address contains it. Whoever has the
//! address can see the picture, as in Mastodon; nobody else can guess it, also not from the file itself.

use rows::Stamp;
use serde::{Deserialize, Serialize};

use crate::ids::ScheduledId;
use crate::ids::{PostId, UserId, UserRef};
use crate::limits;
use crate::refusal::Refusal;
use crate::text::{fits, is_prose};

/// A picture: the [`Stamp`] of the command that added it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MediaId(pub u64);

impl MediaId {
    /// Milliseconds since 1970 at which it was added.
    #[must_use]
    pub const fn unix_ms(self) -> u64 {
        Stamp(self.0).unix_ms()
    }
}

/// Random bits in the address of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaKey(pub [u8; 16]);

/// SHA-256 of the bytes of a stored file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileHash(pub [u8; 32]);

/// A stored file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaFile {
    /// Names the file.
    pub hash: FileHash,
    /// Its length.
    pub bytes: u32,
    /// Whether it is a PNG; else it is a JPEG.
    pub is_png: bool,
    /// Pixels in a row.
    pub width: u16,
    /// Rows.
    pub height: u16,
}

/// What a picture shows, in words, for those who do not see it: at most 1,500 user-perceived characters, trimmed. May be
/// empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description(Box<str>);

impl Description {
    /// Trims and checks `text`.
    ///
    /// # Errors
    /// [`Refusal::BadDescription`] if it is too long or holds control characters other than line breaks and tabs.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let text = text.trim();
        let fits = fits(text, limits::DESCRIPTION_CHARS_MAX, limits::DESCRIPTION_BYTES_MAX);
        match fits && is_prose(text) {
            true => Ok(Self(text.into())),
            false => Err(Refusal::BadDescription),
        }
    }

    /// The checked text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The BlurHash of a picture: at most 64 printable ASCII characters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlurHash(Box<str>);

impl BlurHash {
    /// Checks `text`; `None` if it can be none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fits = text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| Self(text.into()))
    }

    /// The checked text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The point of a picture that stays visible where it is cut: in ten-thousandths of half its width and height, right and
/// up of the middle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Focus {
    x: i16,
    y: i16,
}

impl Focus {
    const SCALE: f32 = 10_000.0;

    /// Checks coordinates between -1 and 1.
    ///
    /// # Errors
    /// [`Refusal::BadFocus`]
    pub fn new(x: f32, y: f32) -> Result<Self, Refusal> {
        let part = |value: f32| (value.abs() <= 1.0).then(|| (value * Self::SCALE).round() as i16);
        let (x, y) = part(x).zip(part(y)).ok_or(Refusal::BadFocus)?;
        Ok(Self { x, y })
    }

    /// Between -1 and 1: right, and up.
    #[must_use]
    pub fn coordinates(self) -> (f32, f32) {
        (f32::from(self.x) / Self::SCALE, f32::from(self.y) / Self::SCALE)
    }
}

/// A picture of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProfilePicture {
    /// Beside everything that the user writes.
    Avatar,
    /// On the profile.
    Header,
}

/// What shows a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MediaUse {
    /// Nothing.
    Unattached {
        /// The command after which nothing did.
        since: Stamp,
    },
    /// A post.
    Post(PostId),
    /// The profile of its owner.
    Profile(ProfilePicture),
    /// Nothing yet: a scheduled post will.
    Scheduled(ScheduledId),
}

impl MediaUse {
    /// Whether nothing shows the picture.
    #[must_use]
    pub const fn is_unattached(self) -> bool {
        matches!(self, Self::Unattached { .. })
    }

    /// When the picture is removed because nothing shows it, in milliseconds since 1970.
    #[must_use]
    pub const fn expires_ms(self) -> Option<u64> {
        match self {
            Self::Unattached { since } => Some(since.unix_ms() + limits::UNATTACHED_MS),
            _ => None,
        }
    }
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// The user who uploaded it.
    pub owner: UserId,
    /// Part of its address.
    pub key: MediaKey,
    /// The picture.
    pub original: MediaFile,
    /// A small one, if there is one.
    pub preview: Option<MediaFile>,
    /// A blurred one.
    pub blurhash: BlurHash,
    /// What it shows.
    pub description: Description,
    /// Its most important point, if the user named one.
    pub focus: Option<Focus>,
    /// What shows it.
    pub used: MediaUse,
}

impl Media {
    /// Its files.
    pub fn files(&self) -> impl Iterator<Item = &MediaFile> {
        std::iter::once(&self.original).chain(&self.preview)
    }

    /// Bytes of its files, in whole blocks of a disk.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files().map(MediaFile::disk_bytes).sum()
    }
}

impl MediaFile {
    /// See [`disk_bytes`].
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        disk_bytes(self.bytes.into())
    }
}

/// The bytes of a file in whole blocks of a disk, so that many small files count as what they take.
#[must_use]
pub const fn disk_bytes(bytes: u64) -> u64 {
    bytes.next_multiple_of(4_096)
}

/// What pictures take: those of a user, or all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaSpace {
    /// Number of pictures.
    pub pictures: u32,
    /// Number of those that are not attached.
    pub unattached: u32,
    /// Bytes of their files.
    pub bytes: u64,
}

/// A picture to be added, whose files are durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewMedia {
    /// The user who uploads it.
    pub owner: UserRef,
    /// 128 random bits.
    pub key: MediaKey,
    /// The picture.
    pub original: MediaFile,
    /// A small one.
    pub preview: Option<MediaFile>,
    /// A blurred one.
    pub blurhash: BlurHash,
    /// What it shows.
    pub description: Description,
    /// Its most important point.
    pub focus: Option<Focus>,
    /// The picture of the profile that it replaces, if it does.
    pub profile: Option<ProfilePicture>,
}

/// A change of what is said about a picture. `None` leaves a field as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaChange {
    /// The picture.
    pub media: MediaId,
    /// What it shows.
    pub description: Option<Description>,
    /// Its most important point.
    pub focus: Option<Focus>,
}

/// A command about pictures. Variants are stored as those of [`Command`](crate::Command) are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MediaCommand {
    /// Add a picture.
    Add(Box<NewMedia>),
    /// Change what is said about a picture that is unattached, or of a profile.
    Change {
        /// Its owner.
        user: UserRef,
        /// The change.
        change: Box<MediaChange>,
    },
    /// Delete an unattached picture.
    Delete {
        /// Its owner.
        user: UserRef,
        /// The picture.
        media: MediaId,
    },
    /// Remove a picture from a profile.
    ClearProfile {
        /// The user.
        user: UserRef,
        /// Which one.
        picture: ProfilePicture,
    },
    /// Delete a post whose author writes it anew. Its pictures are unattached from then on, as many as the author may have.
    Redraft {
        /// The post.
        post: PostId,
    },
}

impl MediaCommand {
    /// Whether it only removes something.
    #[must_use]
    pub fn removes(&self) -> bool {
        match self {
            Self::Add(_) | Self::Change { .. } => false,
            Self::Delete { .. } | Self::ClearProfile { .. } | Self::Redraft { .. } => true,
        }
    }
}

/// The result of a command about pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MediaDone {
    /// A picture was added.
    Added(MediaId),
    /// A picture was changed, or removed.
    Changed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_and_points_have_bounds() {
        assert_eq!(Description::parse(" a\ncat ").unwrap().as_str(), "a\ncat");
        assert!(Description::parse(&"\u{4e00}".repeat(1_500)).is_ok());
        for wrong in ["a".repeat(1_501), "e\u{301}\u{301}".repeat(1_500), "\u{0}".to_owned()] {
            assert_eq!(Description::parse(&wrong), Err(Refusal::BadDescription));
        }
        assert_eq!(Focus::new(-1.0, 0.5).unwrap().coordinates(), (-1.0, 0.5));
        for (x, y) in [(1.1, 0.0), (0.0, -1.5), (f32::NAN, 0.0), (0.0, f32::INFINITY)] {
            assert_eq!(Focus::new(x, y), Err(Refusal::BadFocus));
        }
        assert!(BlurHash::parse("a b").is_none() && BlurHash::parse(&"x".repeat(65)).is_none());
    }
}
