//! Pictures as clients see them: their addresses, and what posts as JSON say of them.
//!
//! Read `uploads`, `converter`, `files`, then `check`, which compares the files with their names.

pub(crate) mod check;
pub(crate) mod converter;
pub(crate) mod files;
pub(crate) mod uploads;

use feed::media::{Media, MediaFile, MediaId};
use feed::{Facts, Post};
use rows::Rows;

/// The path of a file of a picture: the picture itself, or the small one. It contains the key, so whoever has it may read
/// the file.
#[must_use]
pub fn picture_path(id: MediaId, media: &Media, is_small: bool) -> String {
    let key = u128::from_be_bytes(media.key.0);
    let size = if is_small { "small" } else { "original" };
    let extension = if picture_file(media, is_small).is_png { "png" } else { "jpg" };
    format!("/media/{}-{key:032x}/{size}.{extension}", id.0)
}

/// The picture itself, or the small one, which is the picture itself if there is no other.
#[must_use]
pub fn picture_file(media: &Media, is_small: bool) -> &MediaFile {
    media.preview.as_ref().filter(|_| is_small).unwrap_or(&media.original)
}

/// The pictures of a post. Reads nothing if it has none.
pub(crate) fn pictures_of<R: Rows + ?Sized>(
    facts: Facts<'_, R>,
    post: &Post,
) -> Vec<(MediaId, Media)> {
    post.media.iter().filter_map(|id| Some((*id, facts.media(*id)?))).collect()
}
