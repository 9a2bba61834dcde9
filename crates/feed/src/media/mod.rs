//! Pictures of posts and profiles: their records and commands. The files are stored outside the store, named after the
//! SHA-256 of their bytes.
//!
//! An uploaded picture is **unattached** until it is attached to a post or a profile. It becomes unattached again when
//! its author deletes and redrafts the post. Pictures that are unattached for a day are removed.
//!
//! **Invariant:** each file of a picture has a row that leads from its hash to the picture, so a file without such a
//! row is unused.
//! **Invariant:** the address of a picture contains its key, 128 random bits from the caller. As in Mastodon, anybody
//! with the address can see the picture. Nobody can guess the address, not even from the file.

pub(crate) mod cost;
pub(crate) mod facts;
pub(crate) mod mend;
pub(crate) mod rules;

use rows::Stamp;
use serde::{Deserialize, Serialize};

use crate::ids::{PostId, ScheduledId, UserId, UserRef};
use crate::limits;
use crate::refusal::Refusal;
use crate::text::{fits, is_prose};

/// Id of a picture: the [`Stamp`] of the command that added it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MediaId(pub u64);

impl MediaId {
    /// Time of the upload, in milliseconds since 1970.
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
    /// Hash of the bytes, and name of the file.
    pub hash: FileHash,
    /// Length in bytes.
    pub bytes: u32,
    /// Whether the file is a PNG; otherwise a JPEG.
    pub is_png: bool,
    /// Width in pixels.
    pub width: u16,
    /// Height in pixels.
    pub height: u16,
}

/// Alternative text of a picture: at most 1,500 user-perceived characters, trimmed, possibly empty.
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
    /// Checks `text`; `None` if it is not a BlurHash.
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

/// Focal point of a picture, which stays visible when the picture is cropped. In ten-thousandths of half the width and
/// height, right and up from the center.
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

    /// Coordinates between -1 and 1: right and up from the center.
    #[must_use]
    pub fn coordinates(self) -> (f32, f32) {
        (f32::from(self.x) / Self::SCALE, f32::from(self.y) / Self::SCALE)
    }
}

/// A picture of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProfilePicture {
    /// Picture shown next to the user's posts.
    Avatar,
    /// Header of the profile.
    Header,
}

/// Current use of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MediaUse {
    /// Unused.
    Unattached {
        /// Stamp of the command since which the picture is unused.
        since: Stamp,
    },
    /// Shown by a post.
    Post(PostId),
    /// Shown on the profile of its owner.
    Profile(ProfilePicture),
    /// Reserved for a scheduled post.
    Scheduled(ScheduledId),
}

impl MediaUse {
    /// Whether the picture is unattached.
    #[must_use]
    pub const fn is_unattached(self) -> bool {
        matches!(self, Self::Unattached { .. })
    }

    /// Time of removal of an unattached picture, in milliseconds since 1970.
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
    /// User who uploaded the picture.
    pub owner: UserId,
    /// Secret part of the address.
    pub key: MediaKey,
    /// File of the picture.
    pub original: MediaFile,
    /// File of a smaller version, if any.
    pub preview: Option<MediaFile>,
    /// BlurHash, a blurred placeholder.
    pub blurhash: BlurHash,
    /// Alternative text.
    pub description: Description,
    /// Focal point, if set.
    pub focus: Option<Focus>,
    /// Current use.
    pub used: MediaUse,
}

impl Media {
    /// Files of the picture: the original and the preview.
    pub fn files(&self) -> impl Iterator<Item = &MediaFile> {
        std::iter::once(&self.original).chain(&self.preview)
    }

    /// Disk space of the picture's files, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files().map(MediaFile::disk_bytes).sum()
    }
}

impl MediaFile {
    /// Disk space of the file, in bytes: see [`disk_bytes`].
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        disk_bytes(self.bytes.into())
    }
}

/// Disk space of a file of this length: a multiple of 4,096 bytes, so that small files count as what they occupy.
#[must_use]
pub const fn disk_bytes(bytes: u64) -> u64 {
    bytes.next_multiple_of(4_096)
}

/// Space used by the pictures of one user or of all users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaSpace {
    /// Number of pictures.
    pub pictures: u32,
    /// Number of unattached pictures.
    pub unattached: u32,
    /// Disk space of their files, in bytes.
    pub bytes: u64,
}

/// A picture to add. Its files are already durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewMedia {
    /// User who uploads the picture.
    pub owner: UserRef,
    /// Secret part of the address: 128 random bits.
    pub key: MediaKey,
    /// File of the picture.
    pub original: MediaFile,
    /// File of a smaller version, if any.
    pub preview: Option<MediaFile>,
    /// BlurHash, a blurred placeholder.
    pub blurhash: BlurHash,
    /// Alternative text.
    pub description: Description,
    /// Focal point, if set.
    pub focus: Option<Focus>,
    /// Profile picture to replace with this one, if any.
    pub profile: Option<ProfilePicture>,
}

/// A change of a picture's metadata. `None` leaves a field unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaChange {
    /// The picture.
    pub media: MediaId,
    /// New alternative text.
    pub description: Option<Description>,
    /// New focal point.
    pub focus: Option<Focus>,
}

/// A command about pictures. Variants are stored by their position, as in [`Command`](crate::Command).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MediaCommand {
    /// Add a picture.
    Add(Box<NewMedia>),
    /// Change the metadata of an unattached picture or a profile picture.
    Change {
        /// Owner of the picture.
        user: UserRef,
        /// The change.
        change: Box<MediaChange>,
    },
    /// Delete an unattached picture.
    Delete {
        /// Owner of the picture.
        user: UserRef,
        /// The picture.
        media: MediaId,
    },
    /// Remove a picture from a profile.
    ClearProfile {
        /// The user.
        user: UserRef,
        /// The picture to remove.
        picture: ProfilePicture,
    },
    /// Delete a post so that its author can write it again. Its pictures become unattached, up to the author's limit.
    Redraft {
        /// The post.
        post: PostId,
    },
}

impl MediaCommand {
    /// Whether the command only removes something.
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
    /// A picture was changed or removed.
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
