//! Adding, changing and removing pictures.

use rows::Stamp;

use super::post;
use crate::command::{Done, Outcome};
use crate::effect::Effect;
use crate::facts::Txn;
use crate::ids::{PostId, UserId, UserRef};
use crate::limits;
use crate::media::{Media, MediaChange, MediaCommand, MediaDone, MediaId, MediaUse, NewMedia};
use crate::refusal::Refusal;

pub(super) fn apply(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    command: &MediaCommand,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let done = match command {
        MediaCommand::Add(new) => add(txn, stamp, new)?,
        MediaCommand::Change { user, change } => {
            let media = own(txn, user, change.media)?;
            if !matches!(media.used, MediaUse::Unattached { .. } | MediaUse::Profile(_)) {
                return Err(Refusal::MediaAttached);
            }
            txn.put_media(change.media, &changed(media, change));
            MediaDone::Changed
        }
        MediaCommand::Delete { user, media } => {
            unattached(txn, user, *media)?;
            txn.remove_media(*media);
            MediaDone::Changed
        }
        MediaCommand::ClearProfile { user, picture } => {
            let user = super::resolve(txn, user)?;
            txn.set_profile_picture(user, *picture, None);
            MediaDone::Changed
        }
        MediaCommand::Redraft { post } => {
            let media = txn.facts().post(*post).map(|post| post.media).unwrap_or_default();
            txn.detach_media(&media, stamp);
            return post::delete(txn, *post, effects);
        }
    };
    Ok(Done::Media(done))
}

fn add(txn: &mut Txn<'_>, stamp: Stamp, new: &NewMedia) -> Result<MediaDone, Refusal> {
    let owner = super::resolve(txn, &new.owner)?;
    let unattached = MediaUse::Unattached { since: stamp };
    let used = new.profile.map_or(unattached, MediaUse::Profile);
    let media = Media {
        owner,
        key: new.key,
        original: new.original,
        preview: new.preview,
        blurhash: new.blurhash.clone(),
        description: new.description.clone(),
        focus: new.focus,
        used,
    };
    if let Some(refusal) = txn.facts().media_refusal(owner, new.profile, media.bytes()) {
        return Err(refusal);
    }
    let id = MediaId(stamp.0);
    txn.put_media(id, &media);
    if let Some(picture) = new.profile {
        txn.set_profile_picture(owner, picture, Some(id));
    }
    Ok(MediaDone::Added(id))
}

fn changed(media: Media, change: &MediaChange) -> Media {
    let description = change.description.clone().unwrap_or(media.description);
    Media { description, focus: change.focus.or(media.focus), ..media }
}

/// Finds a picture of a user.
fn own(txn: &Txn<'_>, user: &UserRef, media: MediaId) -> Result<Media, Refusal> {
    let user = super::resolve(txn, user)?;
    let found = txn.facts().media(media).filter(|media| media.owner == user);
    found.ok_or(Refusal::MediaNotFound)
}

/// Finds an unattached picture of a user.
fn unattached(txn: &Txn<'_>, user: &UserRef, media: MediaId) -> Result<Media, Refusal> {
    let found = own(txn, user, media)?;
    match found.used {
        MediaUse::Unattached { .. } => Ok(found),
        _ => Err(Refusal::MediaAttached),
    }
}

/// Refuses pictures that a post by `author` with the current pictures `old` cannot have.
pub(super) fn check(
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

/// Replaces the pictures of a post by `new`, which are checked, and changes their metadata.
pub(super) fn attach(
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

/// Removes a picture that is unattached until `expires_ms`.
pub(super) fn expire(txn: &mut Txn<'_>, media: MediaId, expires_ms: u64) {
    let found = txn.facts().media(media);
    if found.is_some_and(|found| found.used.expires_ms() == Some(expires_ms)) {
        txn.remove_media(media);
    }
}
