//! Import of pictures, which are in the lines of their posts and users. The operator copies their files.

use std::collections::HashMap;

use feed::limits::{POST_MEDIA_MAX, USER_MEDIA_BYTES_MAX, USER_MEDIA_MAX};
use feed::media::{
    BlurHash, Description, FileHash, Focus, Media, MediaFile, MediaId, MediaKey, MediaSpace,
    MediaUse, ProfilePicture,
};
use feed::{Refusal, UserId, write};
use store::Loader;

use super::Wrong;
use super::ids::Ids;
use crate::export::bytes::from_hex;
use crate::export::media_lines::{File, Picture};

/// Space of the pictures that were read: 24 bytes for each user who has any.
#[derive(Default)]
pub(super) struct Pictures {
    of_users: HashMap<UserId, MediaSpace>,
    all: MediaSpace,
}

impl Pictures {
    /// Returns the number of pictures that were read.
    pub(super) fn count(&self) -> u64 {
        self.all.pictures.into()
    }

    /// Adds the pictures of a post or of a scheduled post.
    pub(super) fn of_post(
        &mut self,
        loader: &mut Loader,
        ids: &mut Ids,
        (owner, used): (UserId, MediaUse),
        lines: &[Picture<'_>],
    ) -> Result<Vec<MediaId>, Wrong> {
        if lines.len() > POST_MEDIA_MAX {
            return Err(Refusal::TooManyMedia.into());
        }
        lines.iter().map(|line| self.add(loader, ids, (owner, used), line)).collect()
    }

    /// Adds a picture of a profile.
    pub(super) fn of_profile(
        &mut self,
        loader: &mut Loader,
        ids: &mut Ids,
        (owner, picture): (UserId, ProfilePicture),
        line: Option<&Picture<'_>>,
    ) -> Result<Option<MediaId>, Wrong> {
        let used = MediaUse::Profile(picture);
        line.map(|line| self.add(loader, ids, (owner, used), line)).transpose()
    }

    fn add(
        &mut self,
        loader: &mut Loader,
        ids: &mut Ids,
        (owner, used): (UserId, MediaUse),
        line: &Picture<'_>,
    ) -> Result<MediaId, Wrong> {
        let id = MediaId(ids.used(line.id)?.0);
        let key =
            from_hex(&line.key).ok_or("the key of a picture must have 32 hexadecimal digits")?;
        let focus = line.focus.map(|(x, y)| Focus::new(x, y)).transpose();
        let media = Media {
            owner,
            key: MediaKey(key),
            original: file(&line.original)?,
            preview: line.preview.as_ref().map(file).transpose()?,
            blurhash: BlurHash::parse(&line.blurhash).ok_or("the BlurHash is invalid")?,
            description: Description::parse(&line.description)?,
            focus: focus?,
            used,
        };
        let space = self.of_users.entry(owner).or_default();
        for space in [&mut *space, &mut self.all] {
            space.pictures = space.pictures.checked_add(1).ok_or(Refusal::Full)?;
            space.bytes = space.bytes.saturating_add(media.bytes());
        }
        if space.pictures > USER_MEDIA_MAX || space.bytes > USER_MEDIA_BYTES_MAX {
            return Err(Refusal::TooManyMediaOfUser.into());
        }
        // A duplicate id is refused with the rows.
        write::media(loader, id, &media);
        Ok(id)
    }

    /// Writes the counts.
    pub(super) fn finish(self, loader: &mut Loader) {
        for (user, space) in self.of_users {
            write::media_space(loader, Some(user), &space);
        }
        write::media_space(loader, None, &self.all);
    }
}

fn file(line: &File<'_>) -> Result<MediaFile, Wrong> {
    let hash = from_hex(&line.sha256).ok_or("a SHA-256 must have 64 hexadecimal digits")?;
    let &File { bytes, png, width, height, .. } = line;
    if bytes as usize > media::STORED_BYTES_MAX || width == 0 || height == 0 {
        return Err("the file of the picture is too long, or has no width or height".into());
    }
    Ok(MediaFile { hash: FileHash(hash), bytes, is_png: png, width, height })
}
