//! Pictures in the lines of posts and users: see [`lines`](super::lines). Their files are not in an export.

use std::borrow::Cow;

use feed::media::{Media, MediaFile, MediaId};
use feed::{Facts, Rows};
use serde::{Deserialize, Serialize};

use super::bytes::to_hex;
use super::lines::Id;

/// Picture of a post or profile.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Picture<'a> {
    pub(crate) id: Id,
    /// Key of 32 hexadecimal digits, a part of the picture's path.
    #[serde(borrow)]
    pub(crate) key: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) original: File<'a>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) preview: Option<File<'a>>,
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    pub(crate) blurhash: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    pub(crate) description: Cow<'a, str>,
    /// Offset of the focus from the middle, to the right and upwards, each between -1 and 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) focus: Option<(f32, f32)>,
}

/// File of a picture.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File<'a> {
    /// SHA-256 of the file, 64 hexadecimal digits.
    #[serde(borrow)]
    pub(crate) sha256: Cow<'a, str>,
    pub(crate) bytes: u32,
    /// Whether the file is a PNG; otherwise it is a JPEG.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) png: bool,
    pub(crate) width: u16,
    pub(crate) height: u16,
}

impl Picture<'_> {
    /// Creates the line of a stored picture.
    pub(crate) fn of<R: Rows + ?Sized>(facts: Facts<'_, R>, id: MediaId) -> Option<Self> {
        let Media { key, original, preview, blurhash, description, focus, .. } = facts.media(id)?;
        Some(Self {
            id: Id(id.0),
            key: to_hex(&key.0).into(),
            original: File::of(&original),
            preview: preview.as_ref().map(File::of),
            blurhash: blurhash.as_str().to_owned().into(),
            description: description.as_str().to_owned().into(),
            focus: focus.map(feed::media::Focus::coordinates),
        })
    }
}

impl File<'_> {
    fn of(file: &MediaFile) -> Self {
        let &MediaFile { hash, bytes, is_png, width, height } = file;
        Self { sha256: to_hex(&hash.0).into(), bytes, png: is_png, width, height }
    }
}
