//! Import of the earlier versions of edited posts.

use feed::limits::POST_MEDIA_MAX;
use feed::media::MediaId;
use feed::polls::PollOptions;
use feed::{PostId, PostVersion, Refusal};
use rows::Stamp;

use super::Wrong;
use super::ids::Ids;
use crate::export::lines::Id;
use crate::export::post_lines::{Post, Version};

/// Checks the time of a post's last edit, and its earlier versions.
pub(super) fn edits(
    ids: &mut Ids,
    id: PostId,
    line: &Post<'_>,
) -> Result<(Option<Stamp>, Vec<PostVersion>), Wrong> {
    let edited = line.edited.map(|time| ids.at(time)).transpose()?;
    if edited.is_some_and(|edited| edited.unix_ms() < id.unix_ms()) {
        return Err("the post was edited before it was written".into());
    }
    let versions = versions(ids, (id, edited), &line.versions)?;
    // The time of the last edit is in milliseconds; several versions may share one.
    let last = versions.last().map_or(id.0, |version| version.since.0);
    let edited = edited.map(|edited| ids.used(Id(edited.0.max(last + 1)))).transpose()?;
    Ok((edited, versions))
}

/// Checks the earlier versions of a post that was last edited at `edited`, and their number.
fn versions(
    ids: &mut Ids,
    (post, edited): (PostId, Option<Stamp>),
    lines: &[Version<'_>],
) -> Result<Vec<PostVersion>, Wrong> {
    let mut found: Vec<PostVersion> = Vec::new();
    for line in lines {
        let version = version(ids, line)?;
        let since = version.since;
        let is_later = found.last().map_or(since.0 >= post.0, |last| since > last.since);
        let is_earlier = edited.is_some_and(|edited| since.unix_ms() <= edited.unix_ms());
        if !is_later || !is_earlier {
            return Err(
                "versions must be in the order of time, from the post to its last edit".into()
            );
        }
        PostVersion::keep(&mut found, version);
    }
    Ok(found)
}

fn version(ids: &mut Ids, line: &Version<'_>) -> Result<PostVersion, Wrong> {
    if line.media.len() > POST_MEDIA_MAX {
        return Err(Refusal::TooManyMedia.into());
    }
    let media = line.media.iter().map(|id| Ok(MediaId(ids.used(*id)?.0)));
    let media = media.collect::<Result<Vec<_>, Wrong>>()?;
    let options = line.poll.iter().map(|option| &**option);
    let poll = (!line.poll.is_empty()).then(|| PollOptions::parse(options)).transpose()?;
    let content = line.content.with(media)?;
    content.check(poll.is_some())?;
    Ok(PostVersion { since: ids.used(line.since)?, content, poll })
}
