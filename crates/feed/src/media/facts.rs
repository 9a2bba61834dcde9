//! Facts about pictures: their owners, files and space.

use rows::{NameTable, Rows, Stamp, Table, decode, encode};

use crate::facts::{Facts, Txn};
use crate::ids::{PostId, UserId, UserRef};
use crate::index;
use crate::limits;
use crate::media::{FileHash, Media, MediaChange, MediaId, MediaSpace, MediaUse, ProfilePicture};
use crate::refusal::Refusal;
use crate::users::rules::resolve;
use crate::write;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Stored picture. Its owner may be deleted.
    #[must_use]
    pub fn media(&self, media: MediaId) -> Option<Media> {
        self.rows.name(NameTable::Media, &media.0.to_be_bytes()).map(|row| decode(&row))
    }

    /// Picture of a user who is not deleted.
    #[must_use]
    pub fn shown_media(&self, media: MediaId) -> Option<Media> {
        self.media(media).filter(|media| !self.is_deleted(media.owner))
    }

    /// Whether a picture needs the file with this hash.
    #[must_use]
    pub fn needs_file(&self, hash: &FileHash) -> bool {
        let first = self.rows.first_name(NameTable::MediaFile, &hash.0);
        first.is_some_and(|name| name.starts_with(&hash.0))
    }

    /// Hashes of files that pictures need, in order, from the key `from` on: each once, from at most `limit` rows. Also
    /// returns the key to continue from.
    #[must_use]
    pub fn needed_files(&self, from: &[u8], limit: usize) -> (Vec<FileHash>, Option<Vec<u8>>) {
        let names = self.rows.first_names(NameTable::MediaFile, from, limit);
        let next = names.last().filter(|_| names.len() >= limit);
        let next = next.map(|last| [last.as_slice(), &[0]].concat());
        let hashes = names.iter().filter_map(|name| name.first_chunk()).map(|hash| FileHash(*hash));
        let mut hashes: Vec<_> = hashes.collect();
        hashes.dedup();
        (hashes, next)
    }

    /// Pictures of a user from `from` on, in order: at most `limit`.
    #[must_use]
    pub fn media_of(&self, user: UserId, from: MediaId, limit: usize) -> Vec<MediaId> {
        let table = Table::Name(NameTable::MediaOf);
        self.items_of(user, table, from.0, limit).into_iter().map(MediaId).collect()
    }

    /// Space used by a user's pictures.
    #[must_use]
    pub fn media_space(&self, user: UserId) -> MediaSpace {
        self.space_in(&user.0.to_be_bytes())
    }

    /// Reason to refuse another picture of a user with files of `bytes`, for use as `profile` or unattached; `None` if
    /// the user may add it.
    #[must_use]
    pub fn media_refusal(
        &self,
        user: UserId,
        profile: Option<ProfilePicture>,
        bytes: u64,
    ) -> Option<Refusal> {
        let space = self.media_space(user);
        if profile.is_none() && space.unattached >= limits::UNATTACHED_MEDIA_MAX {
            return Some(Refusal::TooManyUnattachedMedia);
        }
        let is_full = space.pictures >= limits::USER_MEDIA_MAX
            || space.bytes.saturating_add(bytes) > limits::USER_MEDIA_BYTES_MAX;
        is_full.then_some(Refusal::TooManyMediaOfUser)
    }

    /// Space used by all pictures.
    #[must_use]
    pub fn all_media_space(&self) -> MediaSpace {
        self.space_in(&write::ALL_MEDIA_KEY)
    }

    fn space_in(&self, key: &[u8]) -> MediaSpace {
        let row = self.rows.name(NameTable::MediaSpace, key);
        row.map(|row| decode(&row)).unwrap_or_default()
    }
}

/// Decodes the id of a picture at the end of a key.
pub(crate) fn media_id(bytes: &[u8]) -> Option<MediaId> {
    bytes.try_into().ok().map(|id| MediaId(u64::from_be_bytes(id)))
}

/// Space used by one picture.
pub(crate) fn space_of(media: &Media) -> MediaSpace {
    let unattached = u32::from(media.used.is_unattached());
    MediaSpace { pictures: 1, unattached, bytes: media.bytes() }
}

impl Txn<'_> {
    /// Stores and counts a picture, or replaces it by one with the same owner and files.
    pub(crate) fn put_media(&mut self, id: MediaId, media: &Media) {
        self.replace_media(id, self.facts().media(id).as_ref(), Some(media));
    }

    /// Removes a picture. Files that no other picture needs are removed later.
    pub(crate) fn remove_media(&mut self, id: MediaId) {
        let Some(media) = self.facts().media(id) else { return };
        self.replace_media(id, Some(&media), None);
    }

    fn replace_media(&mut self, id: MediaId, old: Option<&Media>, new: Option<&Media>) {
        let rows = |media: Option<&Media>| media.map(|media| index::of_media(id, media));
        self.rows.put_name(NameTable::Media, &id.0.to_be_bytes(), new.map(encode));
        index::replace(self.rows, &rows(old).unwrap_or_default(), &rows(new).unwrap_or_default());
        if let Some(media) = new.or(old) {
            self.count_media(media.owner, old, new);
        }
    }

    /// Makes pictures unattached, up to their owner's limit.
    pub(crate) fn detach_media(&mut self, media: &[MediaId], since: Stamp) {
        for id in media {
            let Some(mut media) = self.facts().media(*id) else { continue };
            let unattached = self.facts().media_space(media.owner).unattached;
            if unattached < limits::UNATTACHED_MEDIA_MAX {
                media.used = MediaUse::Unattached { since };
                self.put_media(*id, &media);
            }
        }
    }

    /// Sets or clears a picture of a profile, and removes the previous one.
    pub(crate) fn set_profile_picture(
        &mut self,
        user: UserId,
        picture: ProfilePicture,
        media: Option<MediaId>,
    ) {
        let Some(mut profile) = self.facts().user(user) else { return };
        let field = match picture {
            ProfilePicture::Avatar => &mut profile.avatar,
            ProfilePicture::Header => &mut profile.header,
        };
        let before = std::mem::replace(field, media);
        self.put_user(user, &profile);
        before.into_iter().for_each(|before| self.remove_media(before));
    }

    fn count_media(&mut self, owner: UserId, before: Option<&Media>, after: Option<&Media>) {
        let (before, after) = (before.map(space_of), after.map(space_of));
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        if before == after {
            return;
        }
        for owner in [Some(owner), None] {
            let facts = self.facts();
            let space = owner.map_or_else(|| facts.all_media_space(), |of| facts.media_space(of));
            let space = MediaSpace {
                // A damaged row, which a repair corrects, must not stop the replay.
                pictures: (space.pictures + after.pictures).saturating_sub(before.pictures),
                unattached: (space.unattached + after.unattached).saturating_sub(before.unattached),
                bytes: space.bytes.saturating_add(after.bytes).saturating_sub(before.bytes),
            };
            write::media_space(self.rows, owner, &space);
        }
    }
}

pub(crate) fn changed(media: Media, change: &MediaChange) -> Media {
    let description = change.description.clone().unwrap_or(media.description);
    Media { description, focus: change.focus.or(media.focus), ..media }
}

/// Finds a picture of a user.
pub(crate) fn own(txn: &Txn<'_>, user: &UserRef, media: MediaId) -> Result<Media, Refusal> {
    let user = resolve(txn, user)?;
    let found = txn.facts().media(media).filter(|media| media.owner == user);
    found.ok_or(Refusal::MediaNotFound)
}

/// Finds an unattached picture of a user.
pub(crate) fn unattached(txn: &Txn<'_>, user: &UserRef, media: MediaId) -> Result<Media, Refusal> {
    let found = own(txn, user, media)?;
    match found.used {
        MediaUse::Unattached { .. } => Ok(found),
        _ => Err(Refusal::MediaAttached),
    }
}

/// Refuses pictures that a post by `author` with the current pictures `old` cannot have.
pub(crate) fn check(
    txn: &Txn<'_>,
    author: UserId,
    old: &[MediaId],
    new: &[MediaId],
) -> Result<(), Refusal> {
    if new.len() > limits::POST_MEDIA_MAX {
        return Err(Refusal::TooManyMedia);
    }
    for (at, media) in new.iter().enumerate() {
        // The second of two equal pictures would be attached already.
        if new.iter().take(at).any(|other| other == media) {
            return Err(Refusal::MediaAttached);
        }
        if !old.contains(media) {
            unattached(txn, &UserRef::Id(author), *media)?;
        }
    }
    Ok(())
}

/// Replaces the pictures of a post by `new`, which the caller has checked, and changes their metadata.
pub(crate) fn attach(
    txn: &mut Txn<'_>,
    post: PostId,
    (old, new): (&[MediaId], &[MediaId]),
    changes: &[MediaChange],
) {
    for media in old.iter().filter(|media| !new.contains(media)) {
        txn.remove_media(*media);
    }
    let is_changed =
        |id: &&MediaId| !old.contains(id) || changes.iter().any(|change| change.media == **id);
    for id in new.iter().filter(is_changed) {
        let Some(mut media) = txn.facts().media(*id) else { continue };
        media.used = MediaUse::Post(post);
        for change in changes.iter().filter(|change| change.media == *id) {
            media = changed(media, change);
        }
        txn.put_media(*id, &media);
    }
}
