//! Expected pictures. The files do not exist, and their hashes are invented.

use feed::limits::{
    POST_MEDIA_MAX, UNATTACHED_MEDIA_MAX, UNATTACHED_MS, USER_MEDIA_BYTES_MAX, USER_MEDIA_MAX,
};
use feed::media::{
    Focus, MediaChange, MediaCommand, MediaDone, MediaFile, MediaId, MediaKey, MediaUse, NewMedia,
    ProfilePicture,
};
use feed::{Done, Outcome, Refusal, Stamp};

use super::feed::Feed;
use super::posts::ids;

/// Expected picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelMedia {
    pub(crate) owner: u32,
    pub(crate) key: MediaKey,
    pub(crate) files: Vec<MediaFile>,
    pub(crate) description: String,
    pub(crate) focus: Option<Focus>,
    pub(crate) used: MediaUse,
}

impl ModelMedia {
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| u64::from(file.bytes).div_ceil(4_096) * 4_096).sum()
    }

    pub(crate) fn unattached_since(&self) -> Option<Stamp> {
        match self.used {
            MediaUse::Unattached { since } => Some(since),
            _ => None,
        }
    }

    fn change(&mut self, change: &MediaChange) {
        change.description.iter().for_each(|text| self.description = text.as_str().to_owned());
        self.focus = change.focus.or(self.focus);
    }
}

impl Feed {
    pub(super) fn change_media(&mut self, stamp: u64, command: &MediaCommand) -> Outcome {
        let done = match command {
            MediaCommand::Add(new) => self.add_media(stamp, new)?,
            MediaCommand::Change { user, change } => {
                let user = self.resolve(user)?;
                let media = self.own(user, change.media)?;
                if !matches!(media.used, MediaUse::Unattached { .. } | MediaUse::Profile(_)) {
                    return Err(Refusal::MediaAttached);
                }
                media.change(change);
                MediaDone::Changed
            }
            MediaCommand::Delete { user, media } => {
                let user = self.resolve(user)?;
                self.unattached(user, *media)?;
                self.media.remove(&media.0);
                MediaDone::Changed
            }
            MediaCommand::ClearProfile { user, picture } => {
                let user = self.resolve(user)?;
                self.clear_profile(user, *picture);
                MediaDone::Changed
            }
            MediaCommand::Redraft { post } => return self.redraft(stamp, *post),
        };
        Ok(Done::Media(done))
    }

    fn add_media(&mut self, stamp: u64, new: &NewMedia) -> Result<MediaDone, Refusal> {
        let owner = self.resolve(&new.owner)?;
        let unattached = MediaUse::Unattached { since: Stamp(stamp) };
        let used = new.profile.map_or(unattached, MediaUse::Profile);
        let media = ModelMedia {
            owner,
            key: new.key,
            files: std::iter::once(new.original).chain(new.preview).collect(),
            description: new.description.as_str().to_owned(),
            focus: new.focus,
            used,
        };
        if new.profile.is_none() && self.unattached_of(owner) >= UNATTACHED_MEDIA_MAX as usize {
            return Err(Refusal::TooManyUnattachedMedia);
        }
        let bytes: u64 = self.media_of(owner).map(|(_, media)| media.bytes()).sum();
        if self.media_of(owner).count() >= USER_MEDIA_MAX as usize
            || bytes + media.bytes() > USER_MEDIA_BYTES_MAX
        {
            return Err(Refusal::TooManyMediaOfUser);
        }
        if let Some(picture) = new.profile {
            self.clear_profile(owner, picture);
        }
        self.media.insert(stamp, media);
        Ok(MediaDone::Added(MediaId(stamp)))
    }

    /// Removes a picture that has been unattached until this time.
    pub(super) fn expire_media(&mut self, id: u64, expires_ms: u64) {
        let since = self.media.get(&id).and_then(ModelMedia::unattached_since);
        if since.is_some_and(|since| since.unix_ms() + UNATTACHED_MS == expires_ms) {
            self.media.remove(&id);
        }
    }

    fn unattached_of(&self, owner: u32) -> usize {
        self.media_of(owner).filter(|(_, media)| media.unattached_since().is_some()).count()
    }

    /// Deletes a post, but not its pictures.
    fn redraft(&mut self, stamp: u64, post: feed::PostId) -> Outcome {
        let media =
            self.posts.get(&post.0).map(|post| ids(&post.content.media)).unwrap_or_default();
        self.detach(stamp, &media);
        self.delete_post(post)
    }

    /// Makes pictures unattached, until their owner has as many unattached pictures as allowed.
    pub(super) fn detach(&mut self, stamp: u64, media: &[u64]) {
        for id in media {
            let Some(owner) = self.media.get(id).map(|media| media.owner) else { continue };
            let is_kept = self.unattached_of(owner) < UNATTACHED_MEDIA_MAX as usize;
            if let Some(media) = self.media.get_mut(id).filter(|_| is_kept) {
                media.used = MediaUse::Unattached { since: Stamp(stamp) };
            }
        }
    }

    fn clear_profile(&mut self, user: u32, picture: ProfilePicture) {
        let used = MediaUse::Profile(picture);
        self.media.retain(|_, media| media.owner != user || media.used != used);
    }

    /// Pictures of a user, by id.
    pub(crate) fn media_of(&self, user: u32) -> impl Iterator<Item = (u64, &ModelMedia)> {
        let of_user = self.media.iter().filter(move |(_, media)| media.owner == user);
        of_user.map(|(id, media)| (*id, media))
    }

    /// Returns the picture of a profile.
    pub(crate) fn profile_picture(&self, user: u32, picture: ProfilePicture) -> Option<MediaId> {
        let used = MediaUse::Profile(picture);
        self.media_of(user).find(|(_, media)| media.used == used).map(|(id, _)| MediaId(id))
    }

    fn own(&mut self, user: u32, media: MediaId) -> Result<&mut ModelMedia, Refusal> {
        let found = self.media.get_mut(&media.0).filter(|media| media.owner == user);
        found.ok_or(Refusal::MediaNotFound)
    }

    fn unattached(&mut self, user: u32, media: MediaId) -> Result<&mut ModelMedia, Refusal> {
        let found = self.own(user, media)?;
        match found.used {
            MediaUse::Unattached { .. } => Ok(found),
            _ => Err(Refusal::MediaAttached),
        }
    }

    /// Refuses pictures that a post by `author` cannot have. `old` are the pictures that the post already has.
    pub(super) fn check_media_of_post(
        &mut self,
        author: u32,
        old: &[u64],
        new: &[u64],
    ) -> Result<(), Refusal> {
        if new.len() > POST_MEDIA_MAX {
            return Err(Refusal::TooManyMedia);
        }
        for (at, media) in new.iter().enumerate() {
            if new[..at].contains(media) {
                return Err(Refusal::MediaAttached);
            }
            if !old.contains(media) {
                self.unattached(author, MediaId(*media))?;
            }
        }
        Ok(())
    }

    pub(super) fn attach(
        &mut self,
        post: feed::PostId,
        (old, new): (&[u64], &[u64]),
        changes: &[MediaChange],
    ) {
        for media in old.iter().filter(|media| !new.contains(media)) {
            self.media.remove(media);
        }
        for id in new {
            let Some(media) = self.media.get_mut(id) else { continue };
            media.used = MediaUse::Post(post);
            for change in changes.iter().filter(|change| change.media.0 == *id) {
                media.change(change);
            }
        }
    }

    /// Deletes pictures whose post or user was deleted.
    pub(super) fn forget_media(&mut self) {
        let Self { media, posts, users, .. } = self;
        media.retain(|_, media| {
            let is_shown = match media.used {
                MediaUse::Post(post) => posts.contains_key(&post.0),
                _ => true,
            };
            is_shown && !users[media.owner as usize].deleted
        });
    }
}
