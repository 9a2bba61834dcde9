//! Posting, deleting and viewing stories.
//!
//! A story is dead after its expiry or deletion. Commands treat a dead story as missing. Its rows are removed later, a
//! bounded number per command.

use rows::Stamp;

use crate::done::{Done, Outcome};
use crate::effect::{Effect, StoryChange};
use crate::facts::Txn;
use crate::ids::{StoryId, UserRef};
use crate::limits::STORY_VIEWS_REMOVED;
use crate::refusal::Refusal;
use crate::stories::{Lifetime, Story};
use crate::text::PostText;
use crate::users::rules::resolve;

pub(crate) fn publish(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    author: &UserRef,
    text: &PostText,
    life: Lifetime,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let author = resolve(txn, author)?;
    let story = StoryId(stamp.0);
    let expires_ms = stamp.unix_ms() + life.ms();
    txn.put_story(story, &Story { author, expires_ms, views: 0 }, text);
    txn.total(|totals| totals.stories += 1);
    effects.push(Effect::Story { story, author, change: StoryChange::Posted { expires_ms } });
    Ok(Done::StoryPosted { story, expires_ms })
}

pub(crate) fn delete(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    id: StoryId,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let story = live(txn, stamp, id)?;
    txn.hide_story(id, &story);
    effects.push(Effect::Story { story: id, author: story.author, change: StoryChange::Gone });
    Ok(Done::StoryDeleted)
}

pub(crate) fn view(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    id: StoryId,
    viewer: &UserRef,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let viewer = resolve(txn, viewer)?;
    let story = live(txn, stamp, id)?;
    if viewer == story.author {
        return Ok(Done::StoryViewed);
    }
    if !txn.facts().are_friends(story.author, viewer) {
        return Err(Refusal::StoryNotFound);
    }
    // The view is an ephemeral row, so an effect may depend on it, but the outcome must not.
    if txn.put_view(id, &story, viewer, stamp.unix_ms()) {
        let (author, change) = (story.author, StoryChange::Viewed { viewer });
        effects.push(Effect::Story { story: id, author, change });
    }
    Ok(Done::StoryViewed)
}

fn live(txn: &Txn<'_>, stamp: Stamp, id: StoryId) -> Result<Story, Refusal> {
    let story = txn.facts().story(id).filter(|story| story.is_live(stamp.unix_ms()));
    story.ok_or(Refusal::StoryNotFound)
}

/// Removes a dead story, or as many of its views as one command may. Returns whether some are left. The number of
/// commands follows from the story's count of views, not from the ephemeral rows that are left.
pub(crate) fn remove(
    txn: &mut Txn<'_>,
    id: StoryId,
    died_ms: u64,
    effects: &mut Vec<Effect>,
) -> Option<u64> {
    let mut story = txn.facts().stored_story(id)?;
    if story.expires_ms > 0 {
        if story.expires_ms != died_ms {
            return None;
        }
        // The text is removed before the views.
        story = txn.end_story(id, &story);
        effects.push(Effect::Story { story: id, author: story.author, change: StoryChange::Gone });
    }
    let views = story.views.min(STORY_VIEWS_REMOVED);
    if views > 0 {
        txn.remove_views(id, &mut story, views);
    }
    if story.views > 0 {
        return Some(0);
    }
    txn.remove_story(id);
    txn.total(|totals| totals.stories -= 1);
    None
}
