//! Checks pictures: the lists of files, owners and unattached pictures, and the used space, follow from the records.

use rows::{NameTable, PointTable, RowsMut, Scan, Stamp, decode, encode};

use crate::ids::{PostId, UserId};
use crate::index;
use crate::media::facts::{media_id, space_of};
use crate::media::{Media, MediaId, MediaUse, ProfilePicture};
use crate::mend::{From, Mend, Rows, at};
use crate::posts::Post;
use crate::users::User;
use crate::write;

impl Mend {
    /// Checks pictures. Owners must exist; a picture that its post or profile lacks becomes unattached.
    pub(crate) fn media<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        from: &[u8],
    ) -> Option<From> {
        let mut counted = Vec::new();
        let next = step.each_name(NameTable::Media, from, |step, name, value| {
            let Some(id) = media_id(name) else { return };
            counted.extend(step.one_media(id, decode(value)).map(|media| (id, media)));
        });
        for (id, media) in counted {
            self.counted.last_stamp = self.counted.last_stamp.max(id.0);
            let one = space_of(&media);
            for key in [media.owner.0.to_be_bytes(), write::ALL_MEDIA_KEY] {
                let space = self.media.entry(key).or_default();
                space.pictures += one.pictures;
                space.unattached += one.unattached;
                space.bytes += one.bytes;
            }
        }
        next
    }

    /// Checks the space used by pictures.
    pub(crate) fn media_spaces<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        from: &[u8],
    ) -> Option<From> {
        let spaces = &self.media;
        let next = step.each_name(NameTable::MediaSpace, from, |step, name, _| {
            if !<[u8; 4]>::try_from(name).is_ok_and(|name| spaces.contains_key(&name)) {
                step.remove_named(NameTable::MediaSpace, name);
            }
        });
        if next.is_none() {
            for (key, space) in spaces {
                if step.put_named(NameTable::MediaSpace, key, encode(space)) {
                    let owner = u32::from_be_bytes(*key);
                    step.derived(format!("the counts of the pictures of user {owner} are wrong"));
                }
            }
        }
        next
    }
}

impl<R: Scan + RowsMut> Rows<'_, R> {
    fn one_media(&mut self, id: MediaId, mut media: Media) -> Option<Media> {
        let owner = self.user(media.owner.0.into()).filter(|owner| !self.is_erased(*owner));
        if owner.is_none() {
            self.lost(format!("picture {}: there is no user {}", at(id.0), media.owner.0));
            self.rows.put_name(NameTable::Media, &id.0.to_be_bytes(), None);
            return None;
        }
        // Data of a deleted user is removed anyway.
        if !self.shows(id, &media) && !self.is_deleted(media.owner) {
            self.derived(format!("picture {}: no post or profile has it", at(id.0)));
            media.used = MediaUse::Unattached { since: Stamp(id.0) };
        }
        self.put_named(NameTable::Media, &id.0.to_be_bytes(), encode(&media));
        self.put_index(|| format!("picture {}", at(id.0)), index::of_media(id, &media));
        Some(media)
    }

    /// Whether the post or profile of a picture has it.
    fn shows(&self, id: MediaId, media: &Media) -> bool {
        match media.used {
            MediaUse::Unattached { .. } => true,
            MediaUse::Post(post) => {
                let post = self.facts().stored_post(post);
                post.is_some_and(|post| {
                    post.author == media.owner && post.content.media.contains(&id)
                })
            }
            MediaUse::Scheduled(post) => {
                let post = self.facts().scheduled(media.owner, post);
                post.is_some_and(|post| post.draft.content.media.contains(&id))
            }
            MediaUse::Profile(picture) => {
                self.facts().stored_user(media.owner).is_some_and(|user| match picture {
                    ProfilePicture::Avatar => user.avatar == Some(id),
                    ProfilePicture::Header => user.header == Some(id),
                })
            }
        }
    }

    /// Checks the pictures of a post, which must exist. Returns whether the post was removed because nothing of it is
    /// left.
    pub(crate) fn media_of_post(&mut self, key: u64, post: &Post) -> bool {
        let id = PostId(key);
        let is_of_post = |media: &MediaId| {
            let found = self.facts().media(*media);
            found
                .is_some_and(|found| found.owner == post.author && found.used == MediaUse::Post(id))
        };
        let media: Vec<_> = post.content.media.iter().copied().filter(is_of_post).collect();
        let lost = post.content.media.len() - media.len();
        if lost == 0 {
            return false;
        }
        self.lost(format!("post {}: {lost} pictures", at(key)));
        let mut kept = post.clone();
        kept.content.media = media;
        let is_empty = kept.content.media.is_empty() && kept.content.text.as_str().is_empty();
        let row = (!is_empty).then(|| encode(&kept));
        self.rows.put_point(PointTable::Post, key, row);
        is_empty
    }

    /// Checks the pictures of a profile, which must exist.
    pub(crate) fn media_of_user(&mut self, id: UserId, user: &User) {
        let has = |media: Option<MediaId>, picture| {
            media.filter(|media| {
                let found = self.facts().media(*media);
                let used = MediaUse::Profile(picture);
                found.is_some_and(|found| found.owner == id && found.used == used)
            })
        };
        let avatar = has(user.avatar, ProfilePicture::Avatar);
        let header = has(user.header, ProfilePicture::Header);
        if (avatar, header) != (user.avatar, user.header) {
            self.lost(format!("user {}: a picture of the profile", id.0));
            let row = encode(&User { avatar, header, ..user.clone() });
            self.rows.put_point(PointTable::User, id.0.into(), Some(row));
        }
    }
}
