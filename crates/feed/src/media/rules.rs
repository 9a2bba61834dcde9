//! Adding, changing and removing pictures.

use rows::Stamp;

use crate::done::{Done, Outcome};
use crate::effect::{Act, Effect};
use crate::facts::Txn;
use crate::media::facts::{changed, own, unattached};
use crate::media::{Media, MediaCommand, MediaDone, MediaId, MediaUse, NewMedia};
use crate::posts;
use crate::refusal::Refusal;
use crate::users::rules::resolve;

pub(crate) fn apply(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    command: &MediaCommand,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let done = match command {
        MediaCommand::Add(new) => add(txn, stamp, new, effects)?,
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
            let user = resolve(txn, user)?;
            txn.set_profile_picture(user, *picture, None);
            effects.push(Effect::Act { user, act: Act::Edited });
            MediaDone::Changed
        }
        MediaCommand::Redraft { post } => {
            let media = txn.facts().post(*post).map(|post| post.content.media).unwrap_or_default();
            txn.detach_media(&media, stamp);
            return posts::rules::delete(txn, *post, effects);
        }
    };
    Ok(Done::Media(done))
}

fn add(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    new: &NewMedia,
    effects: &mut Vec<Effect>,
) -> Result<MediaDone, Refusal> {
    let owner = resolve(txn, &new.owner)?;
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
        effects.push(Effect::Act { user: owner, act: Act::Edited });
    }
    Ok(MediaDone::Added(id))
}

/// Removes a picture that is unattached until `expires_ms`.
pub(crate) fn expire(txn: &mut Txn<'_>, media: MediaId, expires_ms: u64) {
    let found = txn.facts().media(media);
    if found.is_some_and(|found| found.used.expires_ms() == Some(expires_ms)) {
        txn.remove_media(media);
    }
}
