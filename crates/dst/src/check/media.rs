//! Comparison of pictures with the model.

use feed::UserId;
use feed::media::{Media, MediaId, MediaSpace, ProfilePicture};

use crate::model::ModelMedia;
use crate::run::Run;

impl Run {
    /// Checks the pictures of a user who is not deleted.
    pub(super) fn check_media(&self, user: u32) {
        let (facts, expected) = (self.node().node().facts(), &self.model.feed);
        let ids = facts.media_of(UserId(user), MediaId(0), usize::MAX);
        let wanted: Vec<MediaId> = expected.media_of(user).map(|(id, _)| MediaId(id)).collect();
        assert_eq!(ids, wanted, "pictures of {user}");
        let mut space = MediaSpace::default();
        for (id, wanted) in expected.media_of(user) {
            let Some(found) = facts.shown_media(MediaId(id)) else { panic!("no picture {id}") };
            assert_eq!(model_media(&found), *wanted, "picture {id}");
            found.files().for_each(|file| assert!(facts.needs_file(&file.hash), "of {id}"));
            space.pictures += 1;
            space.unattached += u32::from(wanted.unattached_since().is_some());
            space.bytes += wanted.bytes();
        }
        assert_eq!(facts.media_space(UserId(user)), space, "of {user}");
        let Some(found) = facts.user(UserId(user)) else { return };
        for (picture, found) in
            [(ProfilePicture::Avatar, found.avatar), (ProfilePicture::Header, found.header)]
        {
            assert_eq!(found, expected.profile_picture(user, picture), "{picture:?} of {user}");
        }
    }
}

fn model_media(media: &Media) -> ModelMedia {
    ModelMedia {
        owner: media.owner.0,
        key: media.key,
        files: media.files().copied().collect(),
        description: media.description.as_str().to_owned(),
        focus: media.focus,
        used: media.used,
    }
}
