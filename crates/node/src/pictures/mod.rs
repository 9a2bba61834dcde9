//! Pictures for clients: their paths, and their place in JSON posts.
//!
//! Read `uploads`, `converter`, `files`, then `check`, which compares the files with their names.

pub(crate) mod check;
pub(crate) mod converter;
pub(crate) mod files;
pub(crate) mod uploads;

use feed::media::{Media, MediaFile, MediaId};
use feed::{Facts, Post};
use rows::Rows;

/// Returns the path of a file of a picture: the picture itself, or the small version. The path contains a key, and
/// everyone who knows the path may read the file.
#[must_use]
pub fn picture_path(id: MediaId, media: &Media, is_small: bool) -> String {
    let key = u128::from_be_bytes(media.key.0);
    let size = if is_small { "small" } else { "original" };
    let extension = if picture_file(media, is_small).is_png { "png" } else { "jpg" };
    format!("/media/{}-{key:032x}/{size}.{extension}", id.0)
}

/// Returns the file of the picture, or of the small version, which may be the same.
#[must_use]
pub fn picture_file(media: &Media, is_small: bool) -> &MediaFile {
    media.preview.as_ref().filter(|_| is_small).unwrap_or(&media.original)
}

/// Returns the pictures of a post. Reads nothing if it has none.
pub(crate) fn pictures_of<R: Rows + ?Sized>(
    facts: Facts<'_, R>,
    post: &Post,
) -> Vec<(MediaId, Media)> {
    post.content.media.iter().filter_map(|id| Some((*id, facts.media(*id)?))).collect()
}
